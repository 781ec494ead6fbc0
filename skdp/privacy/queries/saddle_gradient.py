"""Sum clipped gradients of a saddle problem: of both sides, of one side, and differences of primal ones at two points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from skdp.privacy.data.gradient_factors import CANCELLED, Factors, clipped_sum, differences, lengths, n_entries
from skdp.privacy.data.kernels import fixed
from skdp.privacy.data.training_data import SHORTEST, Batch, TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries._base import SumQuery

__all__ = ["DualGradient", "JointGradient", "PrimalDifference", "PrimalGradient", "Saddle", "SaddlePoint"]


class SaddlePoint(Protocol):
    """Define the gradients of a batch of records at one point, as factors: one row per record, computed from that record alone.

    "Alone" holds to the last bit: the numbers of a record must not depend on its position in the batch or on other records.
    Functions of single entries and `skdp.minimax.products` satisfy this; ``rows @ coef`` and means over the batch do not.
    """

    def primal(self) -> Sequence[Factors]:
        """Return the gradients in the primal variables as parts in order, with ``Saddle.n_primal`` entries in total."""
        ...

    def dual(self) -> Sequence[Factors]:
        """Return the gradients in the dual variables as parts in order, with ``Saddle.n_dual`` entries in total."""
        ...


class Saddle(Protocol):
    r"""Define a saddle problem :math:`\min_w \max_v \frac1n \sum_i f(w, v; z_i) + g(w, v)`; only queries pass records to it.

    Attributes
    ----------
    name : str
        Name in reports.
    n_primal, n_dual : int
        Numbers of entries of w and v.
    """

    @property
    def name(self) -> str:
        """Name of the problem."""
        ...

    @property
    def n_primal(self) -> int:
        """Number of primal variables."""
        ...

    @property
    def n_dual(self) -> int:
        """Number of dual variables."""
        ...

    def read(self, batch: Batch) -> Batch:
        """Return the batch in the form that ``at`` takes, such as with scaled rows; both points of a difference share it."""
        ...

    def at(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> SaddlePoint:
        """Return the gradients of ``f(w, v; z)`` of the records of a batch at a point."""
        ...


@dataclass(frozen=True, eq=False)
class _AtPoint(SumQuery):
    """Hold a problem and the point at which its gradients are taken, which the problem cannot change."""

    saddle: Saddle
    primal: np.ndarray
    dual: np.ndarray

    by_row: ClassVar[bool] = True

    def _point(self, batch: Batch) -> SaddlePoint:
        return self.saddle.at(self.saddle.read(batch), fixed(self.primal), fixed(self.dual))


class _OneSide(_AtPoint):
    """Sum gradients in the variables of one side over the records, each clipped to the clip norm."""

    clip_norm: float
    side: ClassVar[str]

    @property
    def size(self) -> int:
        """Number of variables of the side."""
        return int(getattr(self, self.side).size)

    def sensitivity(self, adjacency: str) -> float:
        """Return 2C under ``replace_one`` and C under ``zero_out``, C being the clip norm.

        Proof. The point, the problem and C are the same for both tables, and the factors of a record come from that record alone,
        to the last bit (see `skdp.minimax.SaddlePoint`), so the terms of shared records cancel. What is left is the gradient of
        the replaced record minus that of its replacement. For all factors that the problem may return, the summed term is their
        product times ``1 / max(N, C)``, where N is the norm of that product (``lengths``). So a term is at most 1 before the sum
        is multiplied by C. A record whose N is not finite is left out, and a null record has the weight 0.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum, of shape (size,)."""

        def terms(batch: Batch) -> np.ndarray:
            return _clipped(getattr(self._point(batch), self.side)(), batch, self.clip_norm, self.size)

        return rows.batch_sum(terms, self.size)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sum times the clip norm: `partial` divides every term by it."""
        return self.clip_norm * total


@dataclass(frozen=True, eq=False)
class PrimalGradient(_OneSide):
    """Sum the gradients in the primal variables over the records, each clipped.

    Parameters
    ----------
    saddle : Saddle
        The problem.
    primal : ndarray of shape (n_primal,)
        Primal point at which the gradients are taken: an earlier release or a public start.
    dual : ndarray of shape (n_dual,)
        Dual point: an earlier release or a public start.
    clip_norm : float
        Bound on the norm of one record's gradient; may come from earlier releases.
    """

    clip_norm: float

    side: ClassVar[str] = "primal"


@dataclass(frozen=True, eq=False)
class DualGradient(_OneSide):
    """Sum the gradients in the dual variables over the records, each clipped.

    Parameters
    ----------
    saddle : Saddle
        The problem.
    primal : ndarray of shape (n_primal,)
        Primal point at which the gradients are taken: an earlier release or a public start.
    dual : ndarray of shape (n_dual,)
        Dual point: an earlier release or a public start.
    clip_norm : float
        Bound on the norm of one record's gradient; may come from earlier releases.
    """

    clip_norm: float

    side: ClassVar[str] = "dual"


@dataclass(frozen=True, eq=False)
class JointGradient(_AtPoint):
    r"""Sum the clipped gradients of both sides from the same records, as one release.

    The answer is :math:`(\sqrt{1 - s} \sum_i g_i / C_1, \sqrt s \sum_i h_i / C_0)` with the primal gradients g clipped to
    :math:`C_1` and the dual gradients h clipped to :math:`C_0`; ``split`` returns both sums. If z is the noise multiplier of the
    release, the primal sum has the noise multiplier :math:`z / \sqrt{1 - s}` and the dual sum :math:`z / \sqrt s`. The squares of
    their inverses add up to :math:`1 / z^2`.

    Parameters
    ----------
    saddle : Saddle
        The problem.
    primal : ndarray of shape (n_primal,)
        Primal point at which the gradients are taken: an earlier release or a public start.
    dual : ndarray of shape (n_dual,)
        Dual point: an earlier release or a public start.
    primal_clip_norm, dual_clip_norm : float
        Bounds :math:`C_1` and :math:`C_0` on the norms of one record's gradients, positive; may come from earlier releases.
    dual_share : float
        Share s of the dual gradient in the squared Gaussian-DP parameter of the release, in (0, 1).
    """

    primal_clip_norm: float
    dual_clip_norm: float
    dual_share: float

    clip_norm: ClassVar[float] = 1.0

    @property
    def size(self) -> int:
        """Number of variables of both sides."""
        return self.primal.size + self.dual.size

    def split(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the two sums of clipped gradients in a released answer.

        Parameters
        ----------
        answer : ndarray of shape (n_primal + n_dual,)
            Answer of the oracle.

        Returns
        -------
        primal : ndarray of shape (n_primal,)
            Noisy sum of primal gradients.
        dual : ndarray of shape (n_dual,)
            Noisy sum of dual gradients.
        """
        primal, dual = np.split(answer, [self.primal.size])
        return self.primal_clip_norm / math.sqrt(1 - self.dual_share) * primal, self.dual_clip_norm / math.sqrt(
            self.dual_share
        ) * dual

    def sensitivity(self, adjacency: str) -> float:
        """Return 2 under ``replace_one`` and 1 under ``zero_out``.

        Proof. As for one side, the terms of shared records cancel. One record adds a primal part of norm at most ``sqrt(1 - s)``
        and a dual part of norm at most ``sqrt(s)``, in different coordinates: together a vector of norm at most 1. A record with
        one norm that is not finite adds only the other part.
        """
        return self.relative_sensitivity[adjacency]

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised answer, of shape (n_primal + n_dual,)."""
        # Parts of norm at most the roots of their shares, in different coordinates: norm 1 together.
        primal_weight, dual_weight = math.sqrt(1 - self.dual_share), math.sqrt(self.dual_share)

        def terms(batch: Batch) -> np.ndarray:
            point = self._point(batch)
            primal = _clipped(point.primal(), batch, self.primal_clip_norm, self.primal.size)
            dual = _clipped(point.dual(), batch, self.dual_clip_norm, self.dual.size)
            return np.concatenate([primal_weight * primal, dual_weight * dual])

        return rows.batch_sum(terms, self.size)


@dataclass(frozen=True, eq=False)
class PrimalDifference(_AtPoint):
    r"""Sum the differences of the primal gradients at two points over the records, each clipped.

    The clip norm is :math:`D = \min(C_2 (\|w - w'\| + \|v - v'\|) + C_3, C_4)`, from public constants and the distance of the
    points, which are earlier releases.

    Parameters
    ----------
    saddle : Saddle
        The problem.
    primal : ndarray of shape (n_primal,)
        Primal point at which the gradients are taken.
    dual : ndarray of shape (n_dual,)
        Dual point at which the gradients are taken.
    previous_primal, previous_dual : ndarray of the same shapes
        Point at which the subtracted gradients are taken.
    slope, offset, largest : float
        Constants :math:`C_2`, :math:`C_3` and :math:`C_4`, non-negative.
    """

    previous_primal: np.ndarray
    previous_dual: np.ndarray
    slope: float
    offset: float
    largest: float

    rounding: ClassVar[float] = 2 / CANCELLED  # each of two terms may be 1 / CANCELLED times as long as D

    @cached_property
    def clip_norm(self) -> float:
        """Bound D on the norm of one record's contribution; 0 if it would be below 2**-480."""
        with np.errstate(all="ignore"):  # if the distance overflows, `largest` counts
            moved = float(np.linalg.norm(self.primal - self.previous_primal) + np.linalg.norm(self.dual - self.previous_dual))
        bound = min(self.slope * moved + self.offset, self.largest)
        return bound if bound >= SHORTEST else 0.0

    @property
    def size(self) -> int:
        """Number of primal variables."""
        return self.primal.size

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return the two points; the constants may be infinite, which the clip norm is not."""
        return self.primal, self.dual, self.previous_primal, self.previous_dual

    def sensitivity(self, adjacency: str) -> float:
        """Return 2D under ``replace_one`` and D under ``zero_out``, D being the clip norm.

        Proof. Both points and all constants are the same for both tables, so D is too, and the terms of shared records cancel.
        What is left is the term of the replaced record, and under ``replace_one`` that of its replacement. Such a term is the sum
        of the products of factors times ``D / max(N, D)``, with N never below the norm of that sum (``differences``). So it is at
        most D for all factors that the problem may return. A record whose N is not finite is left out, a null record has the
        weight 0, and with D = 0 nothing is read. The two products of a part may each be 1 / CANCELLED times as long as their sum,
        and so may the rounding of the sums over records, which ``rounding`` covers.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum, of shape (n_primal,)."""

        def terms(batch: Batch) -> np.ndarray:
            read = self.saddle.read(batch)
            at_previous = fixed(self.previous_primal), fixed(self.previous_dual)
            here = _checked(self.saddle.at(read, fixed(self.primal), fixed(self.dual)).primal(), batch, self.size)
            there = _checked(self.saddle.at(read, *at_previous).primal(), batch, self.size)
            return clipped_sum(*differences(here, there), batch.present, self.clip_norm)

        return rows.batch_sum(terms, self.size)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sum times the clip norm: `partial` divides every term by it."""
        return self.clip_norm * total


def _clipped(parts: Sequence[Factors], batch: Batch, clip_norm: float, size: int) -> np.ndarray:
    checked = _checked(parts, batch, size)
    return clipped_sum([[part] for part in checked], lengths(checked), batch.present, clip_norm)


def _checked(parts: Sequence[Factors], batch: Batch, size: int) -> Sequence[Factors]:
    """Return the factors; raise PrivacyAccountingError if they are not those of one gradient per record."""
    parts = tuple(parts)
    if not all(type(part) is Factors and isinstance(part.constant, (int, float)) for part in parts):
        raise PrivacyAccountingError("Gradients of a saddle problem must be Factors, and their constants Python numbers.")
    if not all(_plain(part.left) and (_plain(part.right) or _plain_sparse(part.right)) for part in parts):
        raise PrivacyAccountingError(
            "Factors of gradients must be two-dimensional arrays of float64, or CSR without duplicate entries."
        )
    rows = {matrix.shape[:1] for part in parts for matrix in (part.left, part.right)}
    if rows != {batch.targets.shape} or n_entries(parts) != size:
        raise PrivacyAccountingError(f"Gradients of a saddle problem are not one row per record with {size} entries in all.")
    return parts


def _plain(matrix: object) -> bool:
    """Return whether it is a two-dimensional array of float64, whose squares neither wrap around nor are complex."""
    return type(matrix) is np.ndarray and matrix.ndim == 2 and matrix.dtype == np.float64


def _plain_sparse(matrix: Any) -> bool:
    """Return whether it is such a matrix in CSR; duplicate entries would be squared separately."""
    if not (sparse.issparse(matrix) and matrix.format == "csr" and matrix.ndim == 2 and matrix.dtype == np.float64):
        return False
    # A new array computes its own flags, and does not trust those of the problem's.
    own = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)  # computes its own flag
    return bool(own.has_canonical_format or own.sorted_indices().has_canonical_format)
