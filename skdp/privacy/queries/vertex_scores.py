"""Score the vertices of a polytope by how much each lowers the linearised objective, for Frank-Wolfe."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries._base import Loss, Scores, SumQuery

__all__ = ["Vertex", "Vertices"]


class Vertices:
    """Hold a copy of the vertices of a polytope, made before any data are read, and multiply them by gradients.

    Parameters
    ----------
    table : array-like or sparse of shape (n_vertices, n_coefficients)
        One vertex per row, finite numbers.

    Raises
    ------
    PrivacyAccountingError
        If it is not a table of finite numbers with at least one row and column, or if its l1 norms overflow.
    """

    __slots__ = ("_l1_radius", "_table")

    def __init__(self, table: Any) -> None:
        own = _copied(table)
        if own.ndim != 2 or 0 in own.shape or not np.isfinite(own.data).all():
            raise PrivacyAccountingError(
                "Vertices of a polytope are the rows of a table; expected finite numbers and at least one row."
            )
        with np.errstate(over="ignore"):
            norms = np.asarray(abs(own).sum(axis=1)).ravel()
        # A sum of m numbers is rounded by at most (m - 1) 2^-53 of itself, here taken twice.
        longest = int(np.diff(own.indptr).max())
        self._table = own
        self._l1_radius = float(norms.max()) * (1 + max(longest - 1, 0) * 2.0**-52)  # above the rounding of the sum
        if not self._l1_radius < np.inf:
            raise PrivacyAccountingError("The l1 norms of the vertices of a polytope overflow; expected finite norms.")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of vertices and of coefficients."""
        return self._table.shape

    @property
    def l1_radius(self) -> float:
        """Largest l1 norm of a vertex, rounded up."""
        return self._l1_radius

    def products(self, gradient: np.ndarray) -> np.ndarray:
        """Return ``<v, gradient>`` for every vertex v, shape (n_vertices,)."""
        return self._table @ gradient

    def vertex(self, index: int) -> np.ndarray:
        """Return a vertex, shape (n_coefficients,)."""
        return self._table[[index]].toarray()[0]


def _copied(table: Any) -> Any:
    """Return a copy as a plain CSR array: a subclass in the table could read the un-noised gradients it is multiplied by."""
    if not sparse.issparse(table):
        return sparse.csr_array(np.atleast_2d(np.array(table, dtype=np.float64)))
    entries = table.tocoo()
    values, rows, columns = (np.array(part) for part in (entries.data, entries.row, entries.col))
    return sparse.csr_array((values.astype(np.float64), (rows, columns)), shape=tuple(map(int, table.shape)))


@dataclass(frozen=True, eq=False)
class Vertex(SumQuery, Scores):
    r"""Score every vertex v of a polytope by minus the inner product with a gradient that is clipped in every coordinate.

    The score is :math:`-\langle v, \sum_i h_i + o \rangle` with :math:`h_i = \mathrm{clip}(x_i r_i^\top)`, every entry clipped to
    [-clip_norm, clip_norm], ``r_i = weight_i * loss'(x_i^T coef, y_i)``, the row x_i clipped to the data norm, and a public o.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.
    coef : ndarray of shape (n_features, n_outputs)
        Point at which the gradient is taken: an earlier release or a public start.
    clip_norm : float
        Bound on the absolute value of every coordinate of one record's gradient.
    vertices : Vertices
        Vertices of the polytope, in the coordinates of the flattened coefficients; no subclass, because it would see un-noised
        gradients.
    offset : ndarray of shape (n_features, n_outputs)
        Gradient of the terms that do not depend on the records, in the sum form; an earlier release or public.
    """

    loss: Loss
    coef: np.ndarray
    clip_norm: float
    vertices: Vertices
    offset: np.ndarray

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2.0, "zero_out": 1.0}  # relative to the l1 radius, too

    def __post_init__(self) -> None:
        if type(self.vertices) is not Vertices or self.vertices.shape[1] != np.size(self.coef):
            raise PrivacyAccountingError(
                f"vertices={type(self.vertices).__name__}; expected skdp.privacy.queries.Vertices of {np.size(self.coef)} "
                "coefficients, because other classes could read un-noised gradients."
            )

    @property
    def radius(self) -> float:
        """Largest l1 norm of a vertex, computed from the vertices."""
        return self.vertices.l1_radius

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.vertices.shape[0]

    def parameters(self) -> tuple[float | np.ndarray, ...]:
        """Return the numbers of all fields, and the radius."""
        return *super().parameters(), np.array(self.radius)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 2CR under ``replace_one`` and CR under ``zero_out``, with clip norm C and l1 radius R.

        Proof. ``coef``, the loss, C, the vertices and the offset are the same for both tables, so only the terms of the replaced
        record differ. A score moves by :math:`\langle v, h(z') - h(z) \rangle`, by Hoelder's inequality at most
        :math:`\|v\|_1 \max_j |h_j(z') - h_j(z)| \le 2CR`, or CR for a null record, where ``h(z') = 0``.
        ``TrainingData.clipped_sum`` makes :math:`|h_j| \le C` for every finite record, label, weight and loss. The bound is
        attained by records whose gradients are clipped in all coordinates.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm * self.radius

    def rounding_error(self, n_samples: int, summation_error: float) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it."""
        offset = float(np.abs(self.offset).max(initial=0.0)) / self.clip_norm
        return self.score_rounding(n_samples, self.coef.size, summation_error, offset) * self.clip_norm * self.radius

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum of clipped gradients, in C order of ``coef``."""
        return rows.clipped_sum(self.coef, self.residuals, self.clip_norm).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised scores of the vertices; larger is better."""
        return -self.vertices.products((total.reshape(self.coef.shape) + self.offset).ravel())
