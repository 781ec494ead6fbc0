"""Noise of benchmarks: the same in every run, or secure."""

from contextlib import AbstractContextManager, nullcontext

from skdp.testing import reproducible_noise

__all__ = ["noise_of"]


def noise_of(seed: int | None) -> AbstractContextManager[None]:
    """Return the block in which fits have the noise of a seed; None leaves it secure."""
    return nullcontext() if seed is None else reproducible_noise(seed)
