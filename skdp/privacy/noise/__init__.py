"""Privacy noise: where its randomness comes from, and its distributions."""

from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.selection import GumbelNoise
from skdp.privacy.noise.source import NoiseSource, reproducible_noise

__all__ = ["GridGaussian", "GumbelNoise", "NoiseSource", "reproducible_noise"]
