"""What tests and benchmarks of private estimators need: noise that repeats."""

from skdp.privacy.noise import reproducible_noise

__all__ = ["reproducible_noise"]
