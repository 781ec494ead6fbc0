"""Draw the records of each mini-batch of a single pass: publicly, independent of the data."""

import math

import numpy as np

# Draws beyond their mean number, over sqrt(n): seven standard deviations, by the proof in `steps_for_half`. A smaller value makes
# it more likely that a pass ends before half of the records were used.
ROOM = 4.0


def draws_for_half(n_samples: int) -> float:
    """Return the mean number of uniform draws until half of the records were drawn, ``n log 2``."""
    return n_samples * math.log(2)


def steps_for_half(n_samples: int, batch_size: int) -> int:
    """Return a number of mini-batches in which half of the records are drawn, except with probability 1e-11.

    Parameters
    ----------
    n_samples : int
        Number of records.
    batch_size : int
        Draws per mini-batch.

    Returns
    -------
    int
        At least 1. *Proof.* The number of draws is a sum of n / 2 independent geometric variables, with mean at most n log 2 +
        1 and variance n (1 - log 2).
    """
    return max(1, math.ceil((draws_for_half(n_samples) + ROOM * math.sqrt(n_samples) + 1) / batch_size))


def fresh_batches(n_samples: int, batch_size: int, n_steps: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw mini-batches uniformly with replacement, and keep the records of each that were not drawn before.

    Parameters
    ----------
    n_samples : int
        Number of records.
    batch_size : int
        Draws per mini-batch.
    n_steps : int
        Largest number of mini-batches.
    rng : Generator
        Generator of public choices.

    Returns
    -------
    list of ndarray of int
        Sorted record numbers of each mini-batch, which may be empty. The list ends when half of the records, rounded up, were
        used.
    """
    batches: list[np.ndarray] = []
    used, left = np.zeros(n_samples, dtype=bool), (n_samples + 1) // 2
    while left and len(batches) < n_steps:
        drawn = np.unique(rng.integers(n_samples, size=batch_size))
        fresh = drawn[~used[drawn]]
        if fresh.size > left:
            fresh = np.sort(rng.choice(fresh, left, replace=False))
        used[fresh] = True
        left -= fresh.size
        batches.append(fresh)
    return batches
