"""What tests and benchmarks of private estimators need: noise that repeats."""

from skdp.privacy.noise.source import reproducible_noise

__all__ = ["reproducible_noise"]
