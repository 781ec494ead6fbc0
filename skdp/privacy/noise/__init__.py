"""Draw all privacy noise and Poisson samples: a secure source of random bits, and the distributions of the noise."""

from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.selection import GumbelNoise
from skdp.privacy.noise.source import NoiseSource, reproducible_noise

__all__ = ["GridGaussian", "GumbelNoise", "NoiseSource", "reproducible_noise"]
