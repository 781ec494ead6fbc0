"""Provide reproducible noise for tests and benchmarks of private estimators."""

from skdp.privacy.noise.source import reproducible_noise

__all__ = ["reproducible_noise"]
