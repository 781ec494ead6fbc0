"""The one holder of the training data: sums over its rows, block by block, without a copy."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from skdp.privacy.data.column_cache import ColumnCache, clipped_term
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.data.kernels import SHORTEST, Batch, Kernel, Records, clip_residuals, fixed
from skdp.privacy.data.storage import (
    Part,
    Storage,
    clipped_products,
    dense,
    entry_sums,
    largest_entries,
    pieces,
    row_norms,
    scaled,
    standardized_squares,
    summation_error,
    transposed,
)

__all__ = ["SHORTEST", "Batch", "Records", "TrainingData", "summation_error"]

CELLS = 2**20  # of a dense batch of whole rows


class TrainingData:
    """Training data behind the oracle: rows clipped to ``data_norm``, then extended by ``intercept_scaling``.

    Clipping is a factor per row, applied to raw predictions and residuals; the table itself is never copied. A row whose
    squared norm overflows float64 counts as a row of zeros.

    Parameters
    ----------
    X : ndarray, CSR or CSC of shape (n_samples, n_features)
        Finite records; a sparse table has no duplicate entries.
    y : ndarray of shape (n_samples,)
        Encoded labels.
    groups : ndarray of shape (n_samples,) or None, default=None
        Number of each record's public group. Only saddle problems get it, in a `Batch`: the labels of all other queries are
        ``y`` alone.
    data_norm : float
        Bound on the Euclidean norm of a row; longer rows are scaled down to it.
    intercept_scaling : float, default=0.0
        Constant appended to each row; 0 for a model without intercept.
    class_weight : ndarray of shape (n_classes,) or None, default=None
        Factor of the loss of a record, by label.
    by_row : bool, default=False
        Convert CSC to CSR once, because whole rows will be read.
    by_column : bool, default=False
        Convert CSR to CSC once, because columns will be read; nothing is converted for it where ``by_row`` is true.
    scaling : ColumnScaling or None, default=None
        Public map of the entries, before rows are clipped; None leaves them in the units of X.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        *,
        data_norm: float,
        intercept_scaling: float = 0.0,
        class_weight: np.ndarray | None = None,
        by_row: bool = False,
        by_column: bool = False,
        scaling: ColumnScaling | None = None,
    ) -> None:
        self._blocks, self._y, self._groups = Storage(X, by_row, by_column, scaling), y, groups
        self._by_column = self._blocks.by_column or (by_column and not by_row)
        self._presence: np.ndarray | None = None  # 0 for a null record, 1 for another; None where there is no null record
        self._whole: TrainingData | None = None  # the table that this is a sample of
        self._view: tuple[np.ndarray, np.ndarray, TrainingData] | None = None
        self._counts: tuple[np.ndarray, np.ndarray] | None = None
        self._columns: ColumnCache | None = None
        self._largest: tuple[np.ndarray, np.ndarray] | None = None
        self._data_norm, self._intercept_scaling, self._class_weight = data_norm, intercept_scaling, class_weight
        self.n_samples, self.n_features = X.shape
        self._clip()

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the rows, over the largest norm of a term; the same for dense and CSR."""
        return summation_error(self.n_samples, self._by_column)

    def subset(self, indices: np.ndarray) -> "TrainingData":
        """Return the same table reduced to a sample of its rows, which are gathered block by block, when they are summed.

        Parameters
        ----------
        indices : ndarray of int
            Sorted row numbers; may be empty.

        Returns
        -------
        TrainingData
            Sums over it have the error bound of the whole table.

        Raises
        ------
        ValueError
            If the table is stored by columns: it would have to be converted for every sample.
        """
        sample = self._copied()
        sample._blocks, sample._whole = self._blocks.subset(indices), self
        return sample

    def without(self, indices: np.ndarray) -> "TrainingData":
        """Return the same table with null records in place of some, as the adjacency ``zero_out`` understands them.

        A null record has no bound left for its residual, which `clip_residuals` therefore makes 0.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers.

        Returns
        -------
        TrainingData
            As many records; the null ones contribute nothing to the answer of any query.
        """
        table = self._copied()
        table._whole = None
        if len(indices):
            table._presence = np.ones(self.n_samples) if self._presence is None else self._presence.copy()
            table._presence[indices] = 0.0
        table._inverse_norms, table._scales = self._inverse_norms.copy(), self._scales.copy()
        table._inverse_norms[indices] = table._scales[indices] = 0.0
        return table

    def mapped(self, matrix: Any) -> "TrainingData":
        """Return the same records with rows ``x @ matrix``, x as it was given, clipped to ``data_norm`` anew.

        Parameters
        ----------
        matrix : sparse of shape (n_features, m)
            From earlier releases.

        Returns
        -------
        TrainingData
            Stored as CSR; null records stay null.
        """
        table, blocks = self._copied(), self._blocks.mapped(matrix)
        table._whole, table._blocks, table.n_features = None, blocks, blocks.n_features
        table._clip()
        return table if self._presence is None else table.without(np.flatnonzero(self._presence == 0))

    def standardized(self, centre: np.ndarray, scale: np.ndarray) -> "TrainingData":
        """Return the same records with the norms that their rows have in another geometry: ``(scale * (x - centre), 1)``.

        Sums over the view are those of ``(x, 1)`` still; mapping coefficients and sums is up to the query.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
            From earlier releases.
        scale : ndarray of shape (n_features,) or (n_features, n_features)
            From earlier releases; a matrix stands for ``scale.T @ (x - centre)``.

        Returns
        -------
        TrainingData
            A view, kept until others are asked for. Without intercept the last entry of 1 is missing.
        """
        if self._whole is not None and self._blocks.sample is not None:
            return self._whole.standardized(centre, scale).subset(self._blocks.sample)  # norms are worked out once
        if self._view is None or not (np.array_equal(self._view[0], centre) and np.array_equal(self._view[1], scale)):
            view, constant = self._copied(), 1.0 if self._intercept_scaling else 0.0
            with np.errstate(all="ignore"):
                norms = np.sqrt(standardized_squares(self._blocks, self._scales, centre, scale) + constant)
                view._inverse_norms = np.divide(1.0, np.maximum(norms, SHORTEST), where=norms > 0, out=norms)
            if self._presence is not None:
                view._inverse_norms[self._presence == 0] = 0.0
            view._intercept_scaling = constant
            self._view = centre.copy(), scale.copy(), view
        return self._view[2]

    def moments(self) -> np.ndarray:
        """Return the sums of the clipped rows and of their squares, entry by entry, without the intercept's constant."""
        return entry_sums(self._blocks, self._scales)

    def totals(self) -> np.ndarray:
        """Return the sums of the clipped rows, without the intercept's constant, and of the targets, clipped to [-1, 1].

        Returns
        -------
        ndarray of shape (n_features + 1,)
            Features first, accumulated in float64.
        """
        total = np.zeros(self.n_features + 1)
        if self._blocks.by_column:
            for columns, chunk in self._blocks.columns():
                total[:-1][columns] = chunk.T @ self._scales
        for part in self._blocks.parts():
            if not self._blocks.by_column:
                total[:-1] += self._blocks.rows(part).T @ self._scales[part]
            targets, present = np.clip(self._y[part], -1.0, 1.0), self._present(part)
            total[-1] += targets.sum() if present is None else targets @ present
        return total

    def histogram(self, bins: Callable[[Records], np.ndarray], size: int) -> np.ndarray:
        """Return how many records fall into each bin.

        Parameters
        ----------
        bins : callable
            Maps `Records` to the number of each record's bin.
        size : int
            Number of bins.

        Returns
        -------
        ndarray of shape (size,)
            Without null records.
        """
        counts = np.zeros(size)
        for part in self._blocks.parts():
            records = self._records(part)
            counts += np.bincount(bins(records), weights=records.present, minlength=size)
        return counts

    def label_counts(self, n_classes: int) -> np.ndarray:
        """Return how many records there are of each class.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        ndarray of shape (n_classes,)
            Without null records.
        """
        counts = np.zeros(n_classes)
        for part in self._blocks.parts():
            counts += np.bincount(self._y[part], weights=self._present(part), minlength=n_classes)
        return counts

    def score_counts(self, coef: np.ndarray, limit: float, n_bins: int) -> np.ndarray:
        """Return how many records of each of two classes have a raw prediction near each of some evenly spaced numbers.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, 1)
            Of the raw prediction; an earlier release. The counts for the last one are kept.
        limit, n_bins : float, int
            So many numbers span [-limit, limit]; predictions beyond count at the ends.

        Returns
        -------
        ndarray of shape (2, n_bins)
            Without null records.
        """
        asked = np.append(coef, [limit, n_bins])
        if self._counts is None or not np.array_equal(self._counts[0], asked):
            counts, width = np.zeros((2, n_bins)), 2 * limit / (n_bins - 1)

            def count(raw: np.ndarray, records: Records) -> np.ndarray:
                places = np.rint((np.clip(np.nan_to_num(raw[:, 0]), -limit, limit) + limit) / width).astype(np.intp)
                np.add.at(counts, (records.labels, places), 1.0 if records.present is None else records.present)
                return np.zeros((raw.shape[0], 1))

            self.sum(coef, count)
            self._counts = asked, counts
        return self._counts[1]

    def batch_sum(self, terms: Callable[[Batch], np.ndarray], size: int) -> np.ndarray:
        """Return the sum of what a function makes of whole rows, batch by batch.

        Parameters
        ----------
        terms : callable
            Maps a `Batch` to the sum of its records' contributions, of shape (size,).
        size : int
            Number of coordinates.

        Returns
        -------
        ndarray of shape (size,)
            The sum, accumulated in float64, by blocks of as many rows as all sums: batches within, then blocks.

        Raises
        ------
        ValueError
            If the table is stored by columns: whole rows are needed.
        """
        if self._blocks.by_column:
            raise ValueError("Batches of whole rows need a table stored by rows; expected by_row=True.")
        total, length = np.zeros(size), max(1, CELLS // self.n_features)
        for block in self._blocks.parts():
            partial = np.zeros(size)
            for part in pieces(block, length):
                rows = scaled(self._blocks.rows(part), self._scales[part])  # always a copy: its layout orders later sums
                groups = None if self._groups is None else fixed(self._groups[part])
                term = terms(Batch(rows, fixed(self._y[part]), fixed(self._present(part)), groups=groups))
                if np.shape(term) != (size,):  # broadcast, one coordinate would count as many
                    raise ValueError(f"A batch has a sum of shape {np.shape(term)}; expected ({size},).")
                partial += term
            total += partial
        return total

    def sum(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return ``sum_i x_i kernel(x_i^T coef)^T``, one pass over the data.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, m)
            Points at which raw predictions are taken; the last row belongs to the intercept where there is one.
        kernel : callable
            Maps raw predictions (rows of a block, m) and their `Records` to residuals (rows of the block, k).

        Returns
        -------
        ndarray of shape (n_coordinates, k)
            The sum, accumulated in float64.
        """
        return self._sum_by_columns(coef, kernel) if self._blocks.by_column else self._sum_by_blocks(coef, kernel)

    def gram(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return ``sum_i kernel(x_i^T coef) x_i x_i^T``, one pass over the data.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, m)
            Points at which raw predictions are taken.
        kernel : callable
            Maps raw predictions (rows of a block, m) and their `Records` to weights (rows of the block, 1).

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates)
            The sum, accumulated in float64; null records contribute nothing.

        Raises
        ------
        ValueError
            If the table is stored by columns: whole rows are needed.
        """
        if self._blocks.by_column:
            raise ValueError("A matrix of products needs a table stored by rows; expected by_row=True.")
        total = np.zeros((coef.shape[0], coef.shape[0]))
        for part in self._blocks.parts():
            block = dense(scaled(self._blocks.rows(part), self._scales[part]))
            if self._intercept_scaling:
                block = np.column_stack([block, np.full(len(block), self._intercept_scaling)])
            factors, present = kernel(block @ coef, self._records(part)), self._present(part)
            total += block.T @ (block * (factors if present is None else factors * present[:, None]))
        return total

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

    def _sum_by_blocks(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        total: np.ndarray | None = None
        for part in self._blocks.parts():
            block = self._blocks.rows(part)
            residuals, intercept = self._residuals(kernel, self._blocks.predictions(block, coef[: self.n_features]), coef, part)
            term = np.concatenate([transposed(block) @ residuals, intercept])
            total = term if total is None else np.add(total, term, out=total)
        return np.asarray(total)

    def _sum_by_columns(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        residuals, intercept = self._residuals_by_columns(coef, kernel)
        return np.concatenate([*(transposed(chunk) @ residuals for _, chunk in self._blocks.columns()), intercept])

    def _residuals_by_columns(self, coef: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        raw = np.zeros((self.n_samples, coef.shape[1]))
        for columns, chunk in self._blocks.columns():
            raw += chunk @ coef[columns]
        residuals, intercept = raw, np.zeros((1, 1))
        for part in self._blocks.parts():
            block, term = self._residuals(kernel, raw[part], coef, part)
            if block.shape[1] != residuals.shape[1]:  # the kernel combines several points into one
                residuals = np.empty((self.n_samples, block.shape[1]))
            residuals[part] = block
            intercept = intercept + term if term.size else term
        return residuals, intercept

    def _residuals(self, kernel: Kernel, raw: np.ndarray, coef: np.ndarray, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of one block times the row scales, and the intercept's row of the sum (none without intercept)."""
        residuals, constant = kernel(self._clipped(raw, coef, part), self._records(part)), self._intercept_scaling
        intercept = constant * residuals.sum(axis=0, keepdims=True) if constant else residuals[:0]
        residuals *= self._scales[part, None]
        return residuals, intercept

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

    def _kept_columns(self) -> ColumnCache:
        if self._columns is None:
            self._columns = ColumnCache(self._blocks, self._scales, self._intercept_scaling)
        return self._columns

    def _clipped(self, raw: np.ndarray, coef: np.ndarray, part: Part) -> np.ndarray:
        """Raw predictions of clipped rows, with intercept, from those of the rows as given; in place."""
        scales = self._scales[part, None]
        raw *= scales
        np.copyto(raw, 0.0, where=scales == 0)  # 0 times a product that overflowed, at some points and not at others
        if self._intercept_scaling:
            raw += self._intercept_scaling * coef[self.n_features]
        return raw

    def _clip(self) -> None:
        with np.errstate(all="ignore"):
            norms, longest = row_norms(self._blocks), self._data_norm
            self._scales = longest / np.maximum(norms, longest)  # 0 where the squared norm overflowed
            np.hypot(np.minimum(norms, longest, out=norms), self._intercept_scaling, out=norms)
            self._inverse_norms = np.divide(1.0, np.maximum(norms, SHORTEST), where=norms > 0, out=norms)

    def _copied(self) -> "TrainingData":
        """The same table without what was kept for later queries, which may not hold for what it is made into."""
        table = copy.copy(self)
        table._view = table._counts = table._columns = table._largest = None
        return table

    def _records(self, part: Part) -> Records:
        labels = self._y[part]
        weights = None if self._class_weight is None else self._class_weight[labels]
        return Records(labels, self._inverse_norms[part], weights, self._present(part))

    def _present(self, part: Part) -> np.ndarray | None:
        return None if self._presence is None else self._presence[part]
