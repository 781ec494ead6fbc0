"""Sum the clipped differences of records from the nearest of some centres, and count records by this centre or their distance."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CountQuery, SumQuery, WithParameters, lengths_of
from skdp.privacy.queries.standardized_gradient import Standardization

__all__ = ["Centres", "ClusterCounts", "ClusterDistances", "ClusterSteps", "FewCountsSteps"]


@dataclass(frozen=True, eq=False)
class Centres(WithParameters):
    """Hold the centres of clusters, and find the nearest one of each record.

    Parameters
    ----------
    points : ndarray of shape (n_clusters, n_features)
        Centres among standardised rows z, from earlier releases and public facts.
    geometry : Standardization
        Map from rows to z, with intercept; the same.
    """

    points: np.ndarray
    geometry: Standardization

    def __post_init__(self) -> None:
        """Raise ValueError for a geometry without intercept, whose rows have no constant."""
        if not self.geometry.intercept:
            raise ValueError("Centres need a geometry with intercept: the constant of a row is what they are subtracted from.")

    @property
    def coef(self) -> np.ndarray:
        """Coefficients of the raw predictions ``z' c - ||c||**2 / 2``, of which that of the nearest centre c is the largest."""
        return self.geometry.to_rows(np.vstack([self.points.T, -np.square(self.points).sum(axis=1) / 2]))

    @property
    def reach(self) -> float:
        """Bound on the norm of z and of a centre together."""
        return self.geometry.largest_norm + math.sqrt(float(np.square(self.points).sum(axis=1).max()))

    def nearest(self, raw: np.ndarray, records: Records) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the nearest centre of each record, the lower one of two at the same distance, and the distance.

        The distance is finite, and is never smaller than the true one: its square is the difference of numbers whose rounding
        errors are bounded by products of ``reach``.
        """
        labels = raw.argmax(axis=1)
        error = 16 * (self.points.shape[1] + 16) * 2.0**-53 * self.reach**2
        squares = np.square(lengths_of(records)) - 1.0 - 2.0 * raw[np.arange(len(raw)), labels]
        return labels, np.sqrt(np.fmin(np.fmax(squares, 0.0), np.finfo(np.float64).max) + error)  # 0 for nan


@dataclass(frozen=True, eq=False)
class ClusterCounts(CountQuery):
    """Count the records of each cluster, those that are nearest to its centre.

    Parameters
    ----------
    centres : Centres
        Centres among standardised rows.
    """

    centres: Centres

    @property
    def size(self) -> int:
        """Number of clusters."""
        return len(self.centres.points)

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The centres are the same for both tables, and the nearest one of a record depends on this record and on them only,
        also as computed. So one record adds 1 to one count, and a null record to none. Replacing a record lowers one count by 1
        and raises another by 1, or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return self.centres.geometry.view(rows).counts_at(self.centres.coef, lambda raw, records: raw.argmax(axis=1), self.size)


@dataclass(frozen=True, eq=False)
class ClusterDistances(CountQuery):
    """Count the records by the distance from the nearest centre, in given ranges.

    Parameters
    ----------
    centres : Centres
        Centres among standardised rows.
    edges : ndarray of shape (size,)
        Upper ends of the ranges, increasing. Larger distances count in the last range.
    """

    centres: Centres
    edges: np.ndarray

    @property
    def size(self) -> int:
        """Number of ranges."""
        return self.edges.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The centres are the same for both tables, and the distance of a record depends on this record and on the centres
        only, also as computed. So one record adds 1 to one count, and a null record to none. Replacing a record lowers one count
        by 1 and raises another by 1, or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return self.centres.geometry.view(rows).counts_at(self.centres.coef, self._ranges, self.size)

    def _ranges(self, raw: np.ndarray, records: Records) -> np.ndarray:
        edges = np.sort(self.edges)  # if unsorted, a range could depend on the record before
        return np.minimum(np.searchsorted(edges, self.centres.nearest(raw, records)[1]), self.size - 1)


@dataclass(frozen=True, eq=False)
class ClusterSteps(SumQuery):
    r"""Sum ``(a, clip(z - c))`` over the records of each cluster, those that are nearest to its centre c.

    Differences are clipped to the norm r. Ties go to the cluster with the lower number. The weight a of the counts is r.

    Parameters
    ----------
    centres : Centres
        Centres among standardised rows.
    radius : float
        The bound r, from earlier releases or public.
    """

    centres: Centres
    radius: float

    count_weight: ClassVar[float] = 1.0  # a / r, at most 1
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        r"""Norm of the longest contribution, :math:`\sqrt{a^2 + r^2}`."""
        return self.radius * math.hypot(1.0, self.count_weight)

    @property
    def size(self) -> int:
        """Number of coordinates, one more than features for each cluster."""
        return self.centres.points.size + len(self.centres.points)

    @property
    def rounding(self) -> float:
        """Bound on the rounding relative to that of summing the contributions: rows are summed, and moved to z and c after it."""
        largest = max(float(self.centres.geometry.scale.max()), 1.0)
        spread = self.centres.geometry.data_norm + float(np.linalg.norm(self.centres.geometry.centre))
        return 1.0 + 4.0 * (largest * (spread + 1.0) + self.centres.reach) / max(self.clip_norm, 1e-300)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt{a^2 + r^2}` under ``zero_out`` and 2r under ``replace_one``; the counts cost nothing there.

        Proof. The centres are the same for both tables. The nearest one, and the factor that clips the difference, depend on the
        record and the centres only, and `Centres.nearest` never computes a distance below the true one. So shared records
        cancel. A record adds :math:`(a, D)` with :math:`\|D\| \le r` in the block of one cluster, and a null record nothing. Two
        records of one cluster have the same a, and differ by :math:`\|D - D'\| \le 2r`. In different clusters they differ by
        :math:`\sqrt{2 a^2 + \|D\|^2 + \|D'\|^2} \le \sqrt{2 (a^2 + r^2)} \le 2r`, as :math:`a \le r`. Two opposite differences
        of norm r in one cluster attain it.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums of clipped rows and of clipping factors by cluster, then the counts."""
        counts = np.zeros(len(self.centres.points))

        def factors(raw: np.ndarray, records: Records) -> np.ndarray:
            labels, distances = self.centres.nearest(raw, records)
            counts[:] += np.bincount(labels, weights=records.present, minlength=counts.size)
            result = np.zeros_like(raw)
            result[np.arange(len(raw)), labels] = np.minimum(1.0, self.radius / distances)
            return result

        sums = self.centres.geometry.view(rows).sum(self.centres.coef, factors)
        return np.concatenate([sums.ravel(), counts])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the counts times a, then the sums of clipped differences, cluster by cluster."""
        k = len(self.centres.points)
        *sums, factors = self.centres.geometry.from_rows(total[:-k].reshape(-1, k))
        steps = np.array(sums).T - self.centres.points * factors[:, None]
        return np.concatenate([self.radius * self.count_weight * total[-k:], steps.ravel()])


class FewCountsSteps(ClusterSteps):
    """Sum the same with counts of half the weight, for ``zero_out``, where counts cost what they weigh."""

    count_weight: ClassVar[float] = 0.5
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2 / math.hypot(1.0, 0.5), "zero_out": 1.0}
