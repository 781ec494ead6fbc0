"""Minimise a strongly convex sum of clipped losses."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, solve

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries._base import Loss, Query
from skdp.privacy.queries._newton_minimizer import conjugate_gradients, minimize
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.privacy.queries.gradient import Gradient

__all__ = ["Minimum"]

# Largest number of coordinates for which the Hessian is formed; conjugate gradients are used for more. A choice for speed.
LARGEST_HESSIAN = 200

# Half the width of the difference quotient of a derivative, in units of the raw prediction. A choice: it affects the speed only.
WIDTH = 1e-4

# Smallest factor of that width, used where the clip leaves little of the derivative. A choice: it affects the speed only.
NARROWEST = 1e-5


@dataclass(frozen=True, eq=False)
class Minimum(Query):
    r"""Minimise :math:`J(w) = \sum_i \ell_i(w) + \Lambda/2 \|w\|^2 + b^\top w` up to a public norm of the gradient.

    The gradient of :math:`\ell_i` is that of the loss of record i, clipped: ``clip(weight_i * loss'(x_i^T w, y_i)) x_i``. The
    clipped derivative in the raw prediction still increases with it, so it belongs to a convex function.

    Parameters
    ----------
    loss : Loss
        Pointwise convex loss of one raw prediction.
    facts : Minimization
        Public facts, with the clip norm and the penalty.
    tilt : ndarray of shape (size,) or None, default=None
        The vector b, which the oracle draws.
    """

    loss: Loss
    facts: Minimization
    tilt: np.ndarray | None = None

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2.0, "zero_out": 1.0}
    additive: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False  # the minimiser reads the records until it has converged
    in_memory: ClassVar[str] = "reads the records as often as they decide"
    by_row: ClassVar[bool] = True  # the bound on rounding is for sums by rows, and the Hessian needs whole rows

    @property
    def clip_norm(self) -> float:
        """Bound on the change of the answer if one record becomes a null record."""
        return (self.facts.clip_norm + 2 * self.facts.precision) / self.facts.strength

    @property
    def size(self) -> int:
        """Number of coordinates of the minimum."""
        return self.facts.size

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`k (C + 2 \tau) / \Lambda`, with k = 2 under ``replace_one`` and 1 under ``zero_out``.

        Proof. Let w and w' be the answers for neighbours, G and G' the gradients of their objectives, and :math:`e = G(w)` and
        :math:`e' = G'(w')`, of norm at most :math:`\tau`. G is a sum of gradients of convex functions and :math:`\Lambda w`, so
        it is :math:`\Lambda`-strongly monotone and :math:`\Lambda \|w - w'\| \le \|G(w) - G(w')\|`. Here :math:`G(w) = e` and
        :math:`G(w') = e' + h(w') - h'(w')`, where h and h' are the clipped gradients of the records that the tables do not
        share. Their difference has norm at most 2 C, or C if h' is that of a null record. So
        :math:`\Lambda \|w - w'\| \le k C + 2 \tau`. The answer has such a gradient because ``minimize`` ends at no other point,
        and :math:`\tau` covers the rounding of the gradient.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def tilted(self, tilt: np.ndarray) -> "Minimum":
        """Return the same query with another b; only the oracle calls this."""
        return replace(self, tilt=tilt)

    def evaluate(self, rows: TrainingData) -> np.ndarray:
        """Return a point at which the norm of the gradient is at most ``facts.precision``."""
        facts = self.facts
        if rows.n_samples != facts.n_samples:
            raise PrivacyAccountingError(f"The table has another number of records; expected {facts.n_samples}.")
        tilt = np.zeros(facts.size) if self.tilt is None else self.tilt

        def gradient(point: np.ndarray) -> np.ndarray:
            records = Gradient(self.loss, point[:, None], facts.clip_norm).evaluate(rows)
            return records + facts.strength * point + tilt

        def newton(point: np.ndarray, slope: np.ndarray) -> np.ndarray:
            try:
                return -self._solved(rows, point, slope)
            except (ArithmeticError, ValueError, LinAlgError):  # an error would reveal something about the data
                return np.zeros_like(slope)

        step = 1 / (facts.strength + facts.n_samples * facts.smoothness)
        return minimize(gradient, newton, facts.size, step, facts.precision - facts.gradient_error)

    def _solved(self, rows: TrainingData, point: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return the inverse of the Hessian times a gradient, approximately if there are many coordinates."""
        strength = self.facts.strength
        if self.size <= LARGEST_HESSIAN:
            hessian = rows.gram(point[:, None], self._curvature)
            hessian.flat[:: self.size + 1] += strength
            return solve(hessian, slope, assume_a="pos")

        def product(vector: np.ndarray) -> np.ndarray:
            return rows.sum(np.stack([point, vector], axis=1), self._directional).ravel() + strength * vector

        return conjugate_gradients(product, slope)

    def _directional(self, raw: np.ndarray, records: Records) -> np.ndarray:
        return self._curvature(raw[:, :1].copy(), records) * raw[:, 1:]

    def _curvature(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return a difference quotient of the clipped derivative; it affects the speed only."""
        residuals = Gradient(self.loss, np.zeros((0, 1)), self.facts.clip_norm).residuals
        width = WIDTH * np.clip(self.facts.clip_norm * records.inverse_norms, NARROWEST, 1.0)[:, None]  # narrow where the clip is
        quotient = residuals(raw + width, records) - residuals(raw - width, records)
        return np.maximum(quotient / (2 * width), 0.0)
