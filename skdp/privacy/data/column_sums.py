"""Sums over rows that are clipped by coordinate or in some coordinates only."""

from typing import Any

import numpy as np

from skdp.privacy.data.column_cache import Columns, clipped_term
from skdp.privacy.data.kernels import Kernel, Records, clip_residuals
from skdp.privacy.data.storage import Blocks, Part, clipped_products, dense, largest_entries, scaled

__all__ = ["ColumnSums"]


class ColumnSums:
    """What `Rows` can sum by coordinate."""

    _blocks: Blocks
    _scales: np.ndarray
    _intercept_scaling: float
    _columns: Columns | None
    _largest: tuple[np.ndarray, np.ndarray] | None
    n_features: int

    def sum(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return ``sum_i x_i kernel(x_i^T coef)^T``."""
        raise NotImplementedError

    def block_sum(self, coef: np.ndarray, block: np.ndarray, kernel: Kernel, clip_norm: float) -> np.ndarray:
        r"""Return :math:`\sum_i \mathrm{clip}(x_{i,S} r_i^\top)` over a block S of coordinates, r_i being the kernel's.

        Raw predictions are kept from call to call; columns of coefficients that are the same as in the last call are not read,
        unless the table is a sample or stored by rows and sparse.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, k)
            Points at which raw predictions are taken; the last row belongs to the intercept where there is one.
        block : ndarray of int of shape (n_block,)
            Ascending coordinates.
        kernel : callable
            Maps raw predictions (rows of a block, k) and their `Records` to residuals (rows of the block, k) of any size.
        clip_norm : float
            Bound on the Frobenius norm of a term.

        Returns
        -------
        ndarray of shape (n_block, k)
            The sum, accumulated in float64.

        Raises
        ------
        ValueError
            If there is not one row of coefficients per coordinate: sums of one coordinate could stand for several.
        """
        if len(coef) != self.n_features + (self._intercept_scaling > 0):
            raise ValueError("Sums over a block of coordinates are for coefficients of all coordinates.")

        def slopes(raw: np.ndarray, part: Part) -> np.ndarray:
            records = self._records(part)
            residuals = kernel(raw, records)
            if records.present is not None:
                residuals *= records.present[:, None]  # what is not finite becomes NaN, and that 0
            return residuals

        def clipped(raw: np.ndarray, records: Records) -> np.ndarray:
            return clip_residuals(kernel(raw, records), records.inverse_norms, clip_norm)

        if block.size == coef.shape[0]:
            return self.sum(coef, clipped)
        if not self._blocks.keeps_columns:
            return self._block_sum_by_rows(coef, block, slopes, clip_norm)
        return self._kept_columns().block_sum(coef, block, slopes, clip_norm)

    def clipped_sum(self, coef: np.ndarray, kernel: Kernel, limits: float | np.ndarray, *, kept: bool = False) -> np.ndarray:
        """Return ``sum_i clip(x_i kernel(x_i^T coef)^T)``, where every product of an entry and a residual is clipped.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, k)
            Points at which raw predictions are taken; the last row belongs to the intercept where there is one.
        kernel : callable
            Maps raw predictions (rows of a block, k) and their `Records` to finite residuals (rows of the block, k).
        limits : float or ndarray of shape (n_coordinates,)
            Bound on the absolute value of a product, by the coordinate of the entry.
        kept : bool, default=False
            Move the raw predictions of `block_sum` to the point, in place of working them out.

        Returns
        -------
        ndarray of shape (n_coordinates, k)
            The sum, accumulated in float64.

        Raises
        ------
        ValueError
            If there is not one row of coefficients per coordinate.
        """
        if len(coef) != self.n_features + (self._intercept_scaling > 0):
            raise ValueError(
                "Products are clipped for coefficients of all coordinates: without intercept only where it has none."
            )
        limits, constant = np.broadcast_to(np.asarray(limits, dtype=np.float64), len(coef)), self._intercept_scaling
        bounds, last = limits[: self.n_features], np.zeros((1 if constant else 0, coef.shape[1]))
        if self._largest is None or not np.array_equal(self._largest[0], bounds):
            self._largest = bounds.copy(), largest_entries(self._blocks, bounds)

        def counted(raw: np.ndarray, records: Records) -> np.ndarray:
            residuals = kernel(raw, records)
            if constant:
                products = np.clip(constant * residuals, -limits[-1], limits[-1])
                np.add(last, products.sum(axis=0) if records.present is None else records.present @ products, out=last)
            return residuals

        raw = self._kept_columns().raw(coef) if kept and self._blocks.keeps_columns else None
        products = self._products_by_columns if self._blocks.by_column else self._products_by_rows
        return np.concatenate([products(coef, counted, raw, *self._largest), last])

    def _products_by_rows(
        self, coef: np.ndarray, kernel: Kernel, raw: np.ndarray | None, limits: np.ndarray, largest: np.ndarray
    ) -> np.ndarray:
        total: Any = 0.0
        for part in self._blocks.parts():
            block = self._blocks.rows(part)
            residuals = self._slopes(coef, kernel, raw, part, block)
            total = total + clipped_products(block, residuals, largest[part], limits)
        return np.asarray(total)

    def _products_by_columns(
        self, coef: np.ndarray, kernel: Kernel, raw: np.ndarray | None, limits: np.ndarray, largest: np.ndarray
    ) -> np.ndarray:
        if raw is None:
            residuals, _ = self._residuals_by_columns(coef, kernel)
        else:
            residuals = np.concatenate([self._slopes(coef, kernel, raw, part, None) for part in self._blocks.parts()])
        chunks = self._blocks.columns()
        return np.concatenate([clipped_products(chunk, residuals, largest, limits[place]) for place, chunk in chunks])

    def _slopes(self, coef: np.ndarray, kernel: Kernel, raw: np.ndarray | None, part: Part, block: Any) -> np.ndarray:
        """Residuals of some rows times the row scales; from the raw predictions that are kept, where they are."""
        if raw is None:
            return self._residuals(kernel, self._blocks.predictions(block, coef[: self.n_features]), coef, part)[0]
        return kernel(raw[part].copy(), self._records(part)) * self._scales[part, None]

    def _block_sum_by_rows(self, coef: np.ndarray, block: np.ndarray, slopes: Any, clip_norm: float) -> np.ndarray:
        total, features = np.zeros((block.size, coef.shape[1])), block[block < self.n_features]
        constant = self._intercept_scaling if features.size < block.size else 0.0
        for part in self._blocks.parts():
            rows = self._blocks.rows(part)
            residuals = slopes(self._clipped(self._blocks.predictions(rows, coef[: self.n_features]), coef, part), part)
            chunk = dense(scaled(rows[:, features], self._scales[part]))
            total += clipped_term(chunk, constant, residuals, clip_norm)
        return total

    def _kept_columns(self) -> Columns:
        if self._columns is None:
            self._columns = Columns(self._blocks, self._scales, self._intercept_scaling)
        return self._columns

    def _clipped(self, raw: np.ndarray, coef: np.ndarray, part: Part) -> np.ndarray:
        """Raw predictions of clipped rows, with intercept, from those of the rows as given; in place."""
        scales = self._scales[part, None]
        raw *= scales
        np.copyto(raw, 0.0, where=scales == 0)  # 0 times a product that overflowed, at some points and not at others
        if self._intercept_scaling:
            raw += self._intercept_scaling * coef[self.n_features]
        return raw

    def _records(self, part: Part) -> Records:
        raise NotImplementedError

    def _residuals(self, kernel: Kernel, raw: np.ndarray, coef: np.ndarray, part: Part) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _residuals_by_columns(self, coef: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError
