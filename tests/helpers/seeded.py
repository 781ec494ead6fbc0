"""Noise that repeats, for tests that compare fits."""

from skdp.privacy.noise.source import NoiseSource
from skdp.testing import reproducible_noise


def fitted(model, *data, seed=0, **given):
    """The model, fitted with the noise of a seed."""
    with reproducible_noise(seed):
        return model.fit(*data, **given)


def source(seed=0):
    """A source of noise from a seed."""
    with reproducible_noise(seed):
        return NoiseSource()
