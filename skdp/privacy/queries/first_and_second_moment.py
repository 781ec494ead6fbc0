"""Sum rows that are standardised by earlier releases and shortened to norm 1, alone or with their products."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import NonNegativeQuery
from skdp.privacy.queries._half_vector import half_vector_size, symmetric
from skdp.privacy.queries._unit_rows import UnitRows

__all__ = ["FirstAndSecondMoment", "FirstMoment", "FourthMoments"]

# What rounding may add to a norm of 1; far below the relative slack of the noise, which is 2**-30.
ROUNDING = 2.0**-40
MEAN_WEIGHT = 0.35  # of the first moment; larger values make it more exact, and the second one less (proof)


@dataclass(frozen=True, eq=False)
class FirstMoment(UnitRows):
    """Sum ``v = z min(1, 1 / ||z||)`` over all records, where z is the row standardised by earlier releases.

    Parameters
    ----------
    geometry : Standardization
        Centre, and one scale per feature.
    """

    clip_norm: ClassVar[float] = 1.0

    @property
    def size(self) -> int:
        """Number of features d."""
        return self.geometry.centre.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and 2 under ``replace_one``.

        Proof. Shared records cancel, as the geometry is the same for both tables. One record contributes v with ``||v|| <= 1`` by
        clipping, that of the row or that of the columns, and a null record nothing. Two opposite unit vectors attain the bound
        for two.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums of shortened rows that are not centred.

        Where the clip of the columns to public bounds leaves no z longer than 1, up to rounding, no row is shortened, and no norm
        is computed.
        """
        geometry = self.geometry
        if rows.reach(geometry.centre, geometry.scale) > 1 + ROUNDING:
            return self._sums(rows)
        return np.append(rows.totals()[: self.size], [rows.total_weight()] * geometry.intercept)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the centred sums."""
        return self._means(total)[:, 0]


@dataclass(frozen=True, eq=False)
class FirstAndSecondMoment(UnitRows):
    r"""Sum ``g v`` and, as a half-vector, :math:`v v^\top` over all records, for g = 0.35.

    ``v = z min(1, 1 / ||z||)``, where z is the row standardised by earlier releases, without the 1 for the intercept: if z is
    longer than 1 it is scaled down to norm 1.

    Parameters
    ----------
    geometry : Standardization
        Centre, and one scale per feature.
    """

    clip_norm: ClassVar[float] = math.hypot(1.0, MEAN_WEIGHT)
    relative_sensitivity: ClassVar[dict[str, float]] = {
        "replace_one": math.sqrt(2.0) * (1 + MEAN_WEIGHT**2 / 2) / clip_norm,
        "zero_out": 1.0,
    }

    @property
    def size(self) -> int:
        """Number of coordinates, ``d + d (d + 1) / 2``."""
        return self.geometry.centre.size + half_vector_size(self.geometry.centre.size)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``sqrt(1 + g**2)`` under ``zero_out`` and ``sqrt(2) (1 + g**2 / 2)`` under ``replace_one``.

        Proof, for any weight g of the first moment with :math:`g^2 \le 2`, here 0.35. Shared records cancel, as the geometry is
        the same for both tables. Half-vectors keep the Frobenius norm, so one record contributes a vector of squared norm
        :math:`g^2 a + a^2 \le g^2 + 1` with :math:`a = \|v\|^2 \le 1` by clipping, attained by unit vectors, and a null record
        nothing: that is ``zero_out``. For two records with the vectors v and w, b the squared norm of w and :math:`s = v^\top w`,

        .. math:: g^2 \|v - w\|^2 + \|v v^\top - w w^\top\|^2 = g^2 (a + b - 2 s) + a^2 + b^2 - 2 s^2
                  \le 2 g^2 (1 - s) + 2 (1 - s^2),

        as the left side grows with a and with b. The right side is largest at :math:`s = -g^2 / 2`, which is at least -1, where
        it is :math:`2 (1 + g^2 / 2)^2`; attained by unit vectors.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums of shortened rows that are not centred, then those of their products, row by row."""
        both = self.geometry.view(rows).gram(self._origin, self._of_both)
        return np.concatenate([both[:, -1], both[:, :-1].ravel()])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the weighted sum of v, then the half-vector."""
        sums, products = np.split(total, [len(self._origin)])
        return np.concatenate([MEAN_WEIGHT * self._means(sums)[:, 0], self._half_vector(products)])

    def _of_both(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the factors of the products, then those of the rows."""
        factors = self._factors(records)[:, None]
        return np.hstack([np.square(factors), factors])

    def parts(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of an answer without their weights.

        Parameters
        ----------
        answer : ndarray of shape (size,)
            Answer of the oracle.

        Returns
        -------
        sums : ndarray of shape (n_features,)
            Sum of v.
        products : ndarray of shape (n_features, n_features)
            Sum of ``v v^T``, symmetric.
        """
        d = self.geometry.centre.size
        return answer[:d] / MEAN_WEIGHT, symmetric(answer[d:], d)


@dataclass(frozen=True, eq=False)
class FourthMoments(UnitRows):
    r"""Sum :math:`(u_k^\top v)^4` over all records, for directions :math:`u_k` from earlier releases.

    ``v = z min(1, 1 / ||z||)``, where z is the row standardised by earlier releases. What a record adds is shortened to norm 1.

    Parameters
    ----------
    geometry : Standardization
        Centre, and one scale per feature.
    directions : ndarray of shape (size, n_features)
        Orthonormal directions, one per row.
    """

    directions: np.ndarray

    clip_norm: ClassVar[float] = 1.0
    relative_sensitivity: ClassVar[dict[str, float]] = NonNegativeQuery.relative_sensitivity

    @property
    def size(self) -> int:
        """Number of directions."""
        return len(self.directions)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. Shared records cancel, as geometry and directions are the same for both tables. One record contributes numbers
        that are not negative, of norm at most 1 by clipping, and a null record nothing. For two, the inner product of both
        contributions is not negative, so that the squared norm of the difference is at most 2; attained by two of the directions.
        For orthonormal directions nothing is clipped, as :math:`\sum_k (u_k^\top v)^4 \le (\sum_k (u_k^\top v)^2)^2 \le 1`.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum."""
        coef = np.zeros((len(self._origin), self.size))
        coef[: self.directions.shape[1]] = self.directions.T
        return self.geometry.view(rows).score_sums(self.geometry.to_rows(coef), self._powers)

    def _powers(self, raw: np.ndarray, records: Records) -> np.ndarray:
        powers = np.square(np.square(raw * self._factors(records)[:, None]))
        lengths = np.linalg.norm(powers, axis=1, keepdims=True)
        return np.asarray(powers / np.maximum(lengths, 1.0))
