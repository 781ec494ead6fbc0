"""Sum powers of the errors and the targets of a regression, or moments of some numbers, from which its metrics follow."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.queries._base import SumQuery

__all__ = ["ErrorSums", "MomentSums"]

# Weights and centres of the summands, in the order of `ErrorSums`: those of the errors, then those that need the target. Powers
# that only variances need have the weight 1/2, which costs less noise in the others. Centres are the middles of the ranges.
WEIGHTS = np.array([1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5])
CENTRES = np.array([0.5, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0])
OF_ERRORS = 4


@dataclass(frozen=True)
class ErrorSums(SumQuery):
    """Sum the powers of each record's clipped error and target that give MAE, RMSE, R2, coverage, and their variances.

    The targets of scored records are absolute errors, which are divided by ``error_bound`` and clipped to e in [0, 1]. Their
    scores are (u, s): u, clipped to [-1, 1], is the target of the regression over half its public range, and the sign of s tells
    whether the target is at most the prediction. A record adds ``e - 1/2, e^2 - 1/2, (e^4 - 1/2) / 2, sign(s) / 2``, and with
    ``with_target`` also ``u, u^2 - 1/2, (u^4 - 1/2) / 2, (e^2 u^2 - 1/2) / 2, u^3 / 2, e^2 u / 2``.

    Parameters
    ----------
    error_bound : float
        Errors beyond this positive number count as this one: a public fact, or from an earlier release.
    with_target : bool
        Whether to sum what contains u.
    """

    error_bound: float
    with_target: bool

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``sqrt(43 / 16)`` with the target and ``sqrt(13 / 16)`` without."""
        return math.sqrt(43 / 16 if self.with_target else 13 / 16)

    @property
    def size(self) -> int:
        """Number of sums, 10 with the target and 4 without."""
        return WEIGHTS.size if self.with_target else OF_ERRORS

    def sensitivity(self, adjacency: str) -> float:
        """Return c under ``zero_out`` and 2c under ``replace_one``, c being the clip norm.

        Proof. Shared records contribute the same and cancel. By clipping, e is in [0, 1] and u in [-1, 1]. So e, e^2, e^4, u^2,
        u^4 and e^2 u^2 are in [0, 1] and at most 1/2 from 1/2, the sign is -1, 0 or 1, and u, u^3 and e^2 u are in [-1, 1]. The
        squares of the four contributions without u are at most 1/4, 1/4, 1/16 and 1/4, whose sum is 13/16. The squares of the
        other six are at most 1, 1/4, 1/16, 1/16, 1/4 and 1/4, whose sum is 30/16. A record with e = 1 and u = 1 attains
        all of them. So a contribution has a norm of at most c, a null record adds nothing, and two are at most 2c apart.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ScoredRecords) -> np.ndarray:
        """Return the un-noised sums, without null records."""
        return rows.term_sum(self._terms)

    def _terms(self, records: ScoredRecords) -> np.ndarray:
        e = np.minimum(np.nan_to_num(np.abs(records.targets)), self.error_bound) / self.error_bound
        u, sign = np.clip(np.nan_to_num(records.scores[:, 0]), -1.0, 1.0), np.sign(np.nan_to_num(records.scores[:, 1])) / 2
        squares, targets = e**2, u**2
        powers = [e, squares, squares**2, sign, u, targets, targets**2, squares * targets, u**3, squares * u]
        return (np.stack(powers[: self.size]) - CENTRES[: self.size, None]) * WEIGHTS[: self.size, None]


@dataclass(frozen=True)
class MomentSums(SumQuery):
    r"""Sum some numbers of each record in [0, 1], and their products in pairs.

    The numbers x are functions of a scored record, clipped to [0, 1]; nan counts as 0. A record adds :math:`x_j - 1/2` for each
    of the k numbers, then :math:`(x_i x_j - 1/2) / 2` for each pair i <= j.

    Parameters
    ----------
    numbers : callable
        Maps scores and targets of records to their numbers, of shape (n_numbers, n_samples), each from its record alone.
    n_numbers : int
        k.
    """

    numbers: Callable[[np.ndarray, np.ndarray], np.ndarray]
    n_numbers: int

    @property
    def clip_norm(self) -> float:
        r"""Bound on the norm of one record's contribution, :math:`\sqrt{k (k + 9) / 32}`."""
        return math.sqrt(self.n_numbers * (self.n_numbers + 9) / 32)

    @property
    def size(self) -> int:
        """Number of sums, ``k (k + 3) / 2``."""
        return self.n_numbers * (self.n_numbers + 3) // 2

    def sensitivity(self, adjacency: str) -> float:
        r"""Return c under ``zero_out`` and 2c under ``replace_one``, c being the clip norm.

        Proof. Shared records contribute the same and cancel. By clipping, numbers and products are in [0, 1], and at most 1/2
        from 1/2. The squares of the k first contributions are at most 1/4, those of the :math:`k (k + 1) / 2` others at most
        1/16, whose sum is :math:`k/4 + k (k + 1) / 32 = k (k + 9) / 32`. So a contribution has a norm of at most c, a null record
        adds nothing, and two are at most 2c apart. Records with all numbers 0 and all numbers 1 attain both: they are opposite.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ScoredRecords) -> np.ndarray:
        """Return the un-noised sums, without null records."""
        return rows.term_sum(self._terms)

    def _terms(self, records: ScoredRecords) -> np.ndarray:
        x = np.clip(np.nan_to_num(self.numbers(records.scores, records.targets)), 0.0, 1.0)
        first, second = np.triu_indices(self.n_numbers)
        return np.concatenate([x - 0.5, (x[first] * x[second] - 0.5) / 2])
