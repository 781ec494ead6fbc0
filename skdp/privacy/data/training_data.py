"""Hold the training data and sum functions of its clipped rows, block by block, without a copy of the table."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.column_cache import ColumnCache, clipped_term
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.data.kernels import (
    SHORTEST,
    Batch,
    Kernel,
    Records,
    clip_residuals,
    clipped_targets,
    fixed,
    part_of,
    weighted,
)
from skdp.privacy.data.persons import Persons, SomeRows, shares_of
from skdp.privacy.data.private_data import PrivateData, Sums
from skdp.privacy.data.storage import (
    Part,
    Storage,
    clipped_products,
    column_sums,
    dense,
    entry_sums,
    largest_entries,
    pieces,
    row_norms,
    scaled,
    standardized_squares,
    transposed,
)
from skdp.privacy.data.summation import BLOCK, TreeSum, chunk_rows, summation_error
from skdp.privacy.noise.sampling import sample_of

# Largest common scale that multiplies norms, and not rows. A choice: an entry whose square underflows stays below 2**-111 when it
# is scaled.
COMMON = 2.0**400
# Largest number of entries in a batch of whole rows. A choice: 8 MB in float64. It sets the order of sums within a block, so
# another value changes their rounding.
CELLS = 2**20


class LastSum:
    """Keep the last sum over all records that several queries share: a calibration asks for the same in each release."""

    def __init__(self) -> None:
        self._kept: tuple[type, tuple[np.ndarray, ...], np.ndarray] | None = None

    def of(self, query: Sums, reduce: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the kept sum if the query asks for it, and the sum that ``reduce`` returns otherwise."""
        summed = query.summed()
        if summed is None:
            return reduce()
        if self._kept is None or self._kept[0] is not type(query) or not all(map(np.array_equal, self._kept[1], summed)):
            total = reduce()
            total.setflags(write=False)
            self._kept = type(query), tuple(np.array(part) for part in summed), total
        return self._kept[2]


class TrainingData(PrivateData):
    """Hold the rows, clipped to ``data_norm`` and extended by ``intercept_scaling``, for the oracle and its queries.

    Clipping multiplies raw predictions and residuals by a factor per row; the table itself is never copied. A row whose squared
    norm overflows float64 counts as a row of zeros.

    Parameters
    ----------
    X : ndarray, CSR, CSC or PackedRows of shape (n_samples, n_features)
        Finite records; a sparse table has no duplicate entries.
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Class numbers, or numbers: the targets of all queries.
    groups : ndarray of shape (n_samples,) or None, default=None
        Number of each record's public group. Only saddle problems get it, in a `Batch`.
    data_norm : float
        Bound on the Euclidean norm of a row; longer rows are scaled down to it.
    intercept_scaling : float, default=0.0
        Constant appended to each row; 0 for a model without intercept.
    class_weight : ndarray of shape (n_classes,) or None, default=None
        Factor of the loss of a record, by label.
    by_row : bool, default=False
        Convert CSC to CSR once, because queries will read whole rows.
    by_column : bool, default=False
        Convert CSR to CSC once, because queries will read columns; ignored if ``by_row`` is true.
    scaling : ColumnScaling or None, default=None
        Public map of the entries, applied before rows are clipped; None leaves them in the units of X.
    keep : callable or None, default=None
        Stores an array of length n_samples that is computed once, by name, and returns it; None keeps it in memory.
    sample_weight : ndarray of shape (n_samples,) or None, default=None
        Weight of each record over the public bound; None means 1. It is clipped to [0, 1] and rounded to a multiple of 2**-22.
        In each sum it multiplies the clipped term of its record. A record of weight 0 is a null record.
    persons : Persons, SomeRows or None, default=None
        Whose each row is, or the weights of a part of their rows; None if every row is a person. With persons, rows have their
        weights and no others, ``n_samples`` is the number of persons, and each row is computed alone, because a person with more
        rows moves those of others.
    exposure : ndarray of shape (n_samples,) or None, default=None
        Exposure of each record over its public bound, clipped to [0, 1]; None if records have none.

    Attributes
    ----------
    n_samples : int
        Public number of records, or of persons.
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
        keep: Callable[[str, np.ndarray], np.ndarray] | None = None,
        sample_weight: np.ndarray | None = None,
        persons: Persons | SomeRows | None = None,
        exposure: np.ndarray | None = None,
    ) -> None:
        self._exposure = shares_of(exposure)
        self._amounts: np.ndarray | None = None  # targets before they were mapped
        self._keep, self._original = keep, True
        self._persons: Any = persons  # of SomeRows, only the weights are known
        by_row = by_row or persons is not None  # additions by column are as many as rows, whose number is private
        self._blocks, self._y, self._groups = Storage(X, by_row, by_column, scaling, persons is not None), y, groups
        self._by_column = self._blocks.by_column or (by_column and not by_row)
        # Weight in [0, 1], 0 for a null record; None if all weigh 1
        self._presence = shares_of(sample_weight) if persons is None else persons.weights
        self._whole: TrainingData | None = None  # the table from which this sample was drawn
        self._view: tuple[np.ndarray, np.ndarray, TrainingData] | None = None
        self._lengths: tuple[np.ndarray, np.ndarray] | None = None  # a centre, and the squared distances from it
        self._last = LastSum()
        self._columns: ColumnCache | None = None
        self._largest: tuple[np.ndarray, np.ndarray] | None = None
        self._data_norm, self._intercept_scaling, self._class_weight = data_norm, intercept_scaling, class_weight
        self._n_rows, self.n_features = X.shape
        self.n_samples = self._n_rows if persons is None else persons.n_persons
        self._chunk_rows = chunk_rows(self.n_features)
        self._clip()

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the rows, relative to the largest norm of a term; same for dense and CSR."""
        return summation_error(self.n_samples, self._by_column)

    def reduced(self, query: Sums) -> np.ndarray:
        """Return the un-noised sum of a query over all records; the last one is kept for queries that ask for the same sum.

        A sample of records is summed chunk by chunk of the table. So its sum is, to the last bit, that of the samples of the
        chunks, which `TreeSum` adds up. A chunk has no more rows in the sample than in the table, so the bound on the number of
        additions holds.

        Parameters
        ----------
        query : Sums
            A query of a sum.

        Returns
        -------
        ndarray
            What ``query.finish`` takes.
        """
        return self._last.of(query, lambda: self._sum_of_chunks(query))

    def subset(self, indices: np.ndarray) -> "TrainingData":
        """Return the same table reduced to some records, or to all rows of some persons.

        Rows are copied block by block when they are summed. They keep their weights.

        Parameters
        ----------
        indices : ndarray of int
            Sorted numbers of records, or of persons; may be empty.

        Returns
        -------
        TrainingData
            The sample; its sums have the error bound of the whole table.

        Raises
        ------
        ValueError
            If the table is stored by columns: every sample would need a conversion.
        """
        return self._of_rows(indices if self._persons is None else self._persons.rows_of(indices))

    def sampled(self, key: bytes, rate: float, first_chunk: int = 0) -> "TrainingData":
        """Return the Poisson sample of a key: every record, or person, enters independently with the same probability.

        A person has one coin for all her rows, which her number decides, and not the place or the number of rows.

        Parameters
        ----------
        key : bytes
            32 secret random bytes, drawn for one release; not kept.
        rate : float
            Probability in (0, 1].
        first_chunk : int, default=0
            Number of chunks that come before these records, if they are a part of a table.

        Returns
        -------
        TrainingData
            The sample. Which records, or persons, of a chunk are in it follows from the key and the number of the chunk.
        """
        length, n = self._chunk_rows, self.n_samples
        drawn = [
            start + sample_of(key, first_chunk + number, min(length, n - start), rate)
            for number, start in enumerate(range(0, max(1, n), length))
        ]
        return self.subset(np.concatenate(drawn))

    def without(self, indices: np.ndarray) -> "TrainingData":
        """Return the same table with some records replaced by null records, as the adjacency ``zero_out`` defines them.

        The inverse norm of a null record is 0, so `clip_residuals` sets its residual to 0.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers of the records to replace.

        Returns
        -------
        TrainingData
            A table with as many records; null records contribute nothing to the answer of any query.
        """
        table = self._copied()
        table._whole = None
        if len(indices):
            table._presence = np.ones(self._n_rows) if self._presence is None else self._presence.copy()
            table._presence[indices] = 0.0
        table._norms, table._scales, table._unclipped = self._inverse_norms.copy(), self._scales.copy(), False
        table._norms[indices] = table._scales[indices] = 0.0
        table._some_null = True
        return table

    def mapped(self, matrix: Any, store: Callable[..., tuple[Any, ...]] | None = None) -> "TrainingData":
        """Return the same records with rows ``x @ matrix``, where x is not clipped, then clipped to ``data_norm``.

        Parameters
        ----------
        matrix : sparse of shape (n_features, m)
            Computed from earlier releases.
        store : callable or None, default=None
            Stores the mapped table, targets and groups elsewhere, and returns them with what then is ``keep``.

        Returns
        -------
        TrainingData
            The mapped table, stored as CSR; null records stay null.
        """
        table, blocks = self._copied(), self._blocks.mapped(matrix)
        if store is not None:
            X, table._y, table._groups, table._keep = store(blocks.table, self._y, self._groups)
            blocks = Storage(X)
        table._whole, table._blocks, table.n_features = None, blocks, blocks.n_features
        table._clip()
        return table

    def binned(self, bins_of: Callable[[Any], np.ndarray], coef: np.ndarray) -> BinnedRecords:
        """Return the bins of the records, and their raw predictions; rows are not clipped, as in a prediction.

        Parameters
        ----------
        bins_of : callable
            Public function that maps rows in CSR to bins, of shape (n_columns, m).
        coef : ndarray of shape (n_coordinates, n_outputs)
            Coefficients of the raw prediction, from earlier releases; the last row belongs to the intercept if there is one.

        Returns
        -------
        BinnedRecords
            Records that trees are added to, without weights of labels; null records stay null.
        """
        if self._blocks.by_column:
            raise ValueError("Bins need a table stored by rows; expected by_row=True.")
        scores = np.empty((coef.shape[1], self._n_rows), dtype=np.float32)
        for part in self._blocks.parts():
            raw = self._blocks.predictions(self._blocks.factor(part), coef[: self.n_features])
            raw += self._intercept_scaling * coef[self.n_features] if self._intercept_scaling else 0.0
            scores[:, part] = np.nan_to_num(raw.T.astype(np.float32))
        bins = self._blocks.bins(bins_of)
        beside = {"amounts": self._amounts, "exposure": self._exposure}
        return BinnedRecords(bins, self._y, scores, self._presence, self._chunk_rows, self.n_samples, **beside)

    def retargeted(self, function: Callable[[np.ndarray, np.ndarray | None], np.ndarray]) -> "TrainingData":
        """Return the same records with a function of targets and exposures as targets; the former ones are kept as amounts.

        Parameters
        ----------
        function : callable
            Maps targets and exposures, record by record, to finite numbers, which are clipped to [-1, 1].

        Returns
        -------
        TrainingData
            A table that shares the rows.
        """
        table = self._copied()
        table._whole, table._amounts = None, self._y
        with np.errstate(all="ignore"):
            table._y = np.clip(np.nan_to_num(function(self._y, self._exposure)), -1.0, 1.0)
        return table

    def standardized(self, centre: np.ndarray, scale: np.ndarray) -> "TrainingData":
        """Return the same records with norms measured in standardised coordinates, ``(scale * (x - centre), 1)``.

        Sums over the view are still sums of ``(x, 1)``; the query maps coefficients and sums.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
            Computed from earlier releases.
        scale : ndarray of shape (n_features,) or (n_features, n_features)
            Computed from earlier releases; a matrix stands for ``scale.T @ (x - centre)``.

        Returns
        -------
        TrainingData
            A view, kept until a call with another centre or scale. Without intercept it has no last entry of 1.
        """
        if self._whole is not None and self._blocks.sample is not None:
            return self._whole.standardized(centre, scale)._of_rows(self._blocks.sample)  # norms are computed once
        if self._view is None or not (np.array_equal(self._view[0], centre) and np.array_equal(self._view[1], scale)):
            view, constant = self._copied(), 1.0 if self._intercept_scaling else 0.0
            with np.errstate(all="ignore"):
                # Only the norms change: 1 / ||z|| for the clip, with the 1 of the intercept.
                norms = self._squares(centre, scale) + constant
                np.sqrt(norms, out=norms)
                inverse = np.divide(1.0, np.maximum(norms, SHORTEST), where=norms > 0, out=norms)
            if self._presence is not None:
                inverse[self._presence == 0] = 0.0
            self._view = None  # what is kept overwrites the norms of the last view
            view._norms = self._kept("view", inverse)
            view._intercept_scaling = constant
            self._view = centre.copy(), scale.copy(), view
        return self._view[2]

    def _squares(self, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the squared norms of standardised rows; those for scales of 1 are kept, for scales that are all the same."""
        scales = None if self._unclipped else self._scales
        if scale.ndim == 2 or not 0 < scale.max() == scale.min() <= COMMON:
            return standardized_squares(self._blocks, scales, centre, scale)
        if self._lengths is None or not np.array_equal(self._lengths[0], centre):
            self._lengths = None  # what is kept overwrites the last ones
            squares = standardized_squares(self._blocks, scales, centre, np.ones(centre.size))
            self._lengths = centre.copy(), self._kept("lengths", squares)
        return self._lengths[1] * scale[0] ** 2

    def reach(self, centre: np.ndarray, scale: np.ndarray) -> float:
        """Return a public bound on the norm of ``scale * (x - centre)``, for one scale per feature; it may be infinite."""
        return self._blocks.reach(centre, scale)

    def moments(self) -> np.ndarray:
        """Return the sums of the entries of clipped rows and of their squares, without the intercept's constant."""
        return entry_sums(self._blocks, self._scales, self._chunk_rows, self._presence)

    def total_weight(self) -> float:
        """Return the sum of the weights of the records, each in [0, 1]: their number, where there are no weights."""
        if self._presence is None:
            return float(self._n_rows if self._blocks.sample is None else self._blocks.sample.size)
        return float(sum(self._presence[part].sum() for part in self._blocks.parts()))

    def total_exposure(self) -> float:
        """Return the sum of the exposures of the records, each in [0, 1] and times the weight of its record; 0 without any."""
        total = TreeSum(self._chunk_rows)
        for part in self._blocks.parts():
            exposure, present = part_of(self._exposure, part), self._present(part)
            exposure = np.zeros(len(self._y[part])) if exposure is None else exposure
            total.add(np.array([exposure.sum() if present is None else exposure @ present]), len(exposure))
        return float(total.total()[0])

    def totals(self) -> np.ndarray:
        """Return the sums of the clipped rows, without the intercept's constant, and of the targets, clipped to norm 1.

        Returns
        -------
        ndarray of shape (n_features + n_targets,)
            Sums of the features, then of the targets, accumulated in float64.
        """
        total, d = TreeSum(self._chunk_rows), self.n_features
        for part in self._blocks.parts():
            targets, present = clipped_targets(self._y[part]), self._present(part)
            term = np.zeros(d + targets[:1].size)
            if not self._blocks.by_column:
                scales = self._scales[part] if present is None else self._scales[part] * present
                term[:d] = self._blocks.rows(part).T @ scales
            term[d:] = targets.sum(axis=0) if present is None else targets.T @ present
            total.add(term, len(targets))
        sums = total.total()
        if self._blocks.by_column:
            scales = self._scales if self._presence is None else self._scales * self._presence
            for columns, chunk in self._blocks.columns():
                sums[:d][columns] = chunk.T @ scales
        return sums

    def histogram(self, bins: Callable[[Records], np.ndarray], size: int) -> np.ndarray:
        """Return the number of records in each bin.

        Parameters
        ----------
        bins : callable
            Maps `Records` to the index of the bin of each record.
        size : int
            Number of bins.

        Returns
        -------
        ndarray of shape (size,)
            Counts, without null records.
        """
        counts = np.zeros(size)
        for part in self._blocks.parts():
            records = self._records(part)
            counts += np.bincount(bins(records), weights=records.present, minlength=size)
        return counts

    def label_counts(self, n_classes: int) -> np.ndarray:
        """Return the number of records of each class.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        ndarray of shape (n_classes,)
            Counts, without null records.
        """
        counts = np.zeros(n_classes)
        for part in self._blocks.parts():
            counts += np.bincount(self._y[part], weights=self._present(part), minlength=n_classes)
        return counts

    def counts_at(self, coef: np.ndarray, places: Kernel, size: int) -> np.ndarray:
        """Return the number of records at each place, where a place follows from the raw predictions of a record.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, m)
            Coefficients of the raw predictions; an earlier release.
        places : callable
            Maps raw predictions of shape (rows of a block, m) and their `Records` to the place of each record.
        size : int
            Number of places.

        Returns
        -------
        ndarray of shape (size,)
            Counts, without null records.
        """
        counts = np.zeros(size)

        def count(raw: np.ndarray, records: Records) -> np.ndarray:
            counts[:] += np.bincount(places(raw, records), weights=records.present, minlength=size)
            return raw[:, :0]

        self.sum(coef, count)
        return counts

    def score_sums(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return the sum of a function of the raw predictions and the targets of the records.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, n_outputs)
            Coefficients of the raw predictions; an earlier release.
        kernel : callable
            Maps raw predictions of shape (m, n_outputs) and `Records` to clipped terms of shape (m, size).

        Returns
        -------
        ndarray of shape (size,)
            The sum in float64.
        """
        total = TreeSum(self._chunk_rows)

        def added(raw: np.ndarray, records: Records) -> np.ndarray:
            total.add(column_sums(weighted(kernel(raw, records), records.present)), len(raw))
            return raw[:, :0]

        self.sum(coef, added)
        return total.total()

    def batch_sum(self, terms: Callable[[Batch], np.ndarray], size: int) -> np.ndarray:
        """Return the sum of a function of whole rows, evaluated batch by batch.

        Parameters
        ----------
        terms : callable
            Maps a `Batch` to the sum of its records' contributions, of shape (size,).
        size : int
            Number of coordinates.

        Returns
        -------
        ndarray of shape (size,)
            The sum in float64, accumulated over the batches of each block of rows, then over the blocks.

        Raises
        ------
        ValueError
            If the table is stored by columns: whole rows are needed.
        """
        if self._blocks.by_column:
            raise ValueError("Batches of whole rows need a table stored by rows; expected by_row=True.")
        total, length = TreeSum(self._chunk_rows), max(1, CELLS // self.n_features)
        for block in self._blocks.parts():
            partial, n_rows = np.zeros(size), 0
            for part in pieces(block, length):
                rows = scaled(self._blocks.rows(part), self._scales[part])  # always a copy: its layout orders later sums
                groups = None if self._groups is None else fixed(self._groups[part])
                term = terms(Batch(rows, fixed(self._y[part]), fixed(self._present(part)), groups=groups))
                if np.shape(term) != (size,):  # broadcasting would repeat a coordinate
                    raise ValueError(f"A batch has a sum of shape {np.shape(term)}; expected ({size},).")
                partial += term
                n_rows += rows.shape[0]
            total.add(partial, n_rows)
        return total.total()

    def sum(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return ``sum_i x_i kernel(x_i^T coef)^T`` in one pass over the data.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, m)
            Points at which raw predictions are taken; the last row belongs to the intercept if there is one.
        kernel : callable
            Maps raw predictions (rows of a block, m) and their `Records` to residuals (rows of the block, k).

        Returns
        -------
        ndarray of shape (n_coordinates, k)
            The sum, accumulated in float64.
        """
        return self._sum_by_columns(coef, kernel) if self._blocks.by_column else self._sum_by_blocks(coef, kernel)

    def gram(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return ``sum_i k_i1 x_i x_i^T``, then the sums ``sum_i k_ij x_i`` as columns, in one pass over the data.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, m)
            Points at which raw predictions are taken.
        kernel : callable
            Maps raw predictions (rows of a block, m) and their `Records` to weights k (rows of the block, 1 + n_sums); the first
            column, that of the products, is not negative.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates + n_sums)
            The sums, accumulated in float64; null records contribute nothing.

        Raises
        ------
        ValueError
            If the table is stored by columns: whole rows are needed.
        """
        if self._blocks.by_column:
            raise ValueError("A matrix of products needs a table stored by rows; expected by_row=True.")
        total = TreeSum(self._chunk_rows)
        for part in self._blocks.parts():
            block, factors = self._factored(part, coef, kernel)
            sums = block.T @ factors
            if constant := self._intercept_scaling:
                sums = np.vstack([sums, constant * column_sums(factors)])
            term, d = np.empty((len(sums), len(sums) + sums.shape[1] - 1)), self.n_features
            # Rows times the roots of their weights: the product of a matrix with itself takes half of the operations. A root adds
            # one rounding, relative to the term.
            block = block * np.sqrt(np.maximum(factors[:, :1], 0.0))
            term[:d, :d], term[:, len(sums) :] = block.T @ block, sums[:, 1:]
            term[d:, : len(sums)] = constant * sums[:, :1].T
            term[:d, d : len(sums)] = constant * sums[:d, :1]
            total.add(term, len(block))
        return total.total()

    def score_products(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        r"""Return :math:`\sum_i s_i s_i^	op` for the scores :math:`s_i = \sum_j v_j k(x_j^	op c) x_j` of persons with rows j.

        Without persons a record is one row, and its product is multiplied by its weight.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, m)
            Points at which raw predictions are taken.
        kernel : callable
            Maps raw predictions (rows of a block, m) and their `Records` to factors k (rows of the block, 1).

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates)
            The sum, accumulated in float64; null records contribute nothing.
        """
        if self._persons is None:
            return self.gram(coef, lambda raw, records: np.square(kernel(raw, records)))
        total, numbers, rows = TreeSum(self._chunk_rows), self._persons.numbers, self._blocks.sample
        rows = self._persons.order if rows is None else rows[np.argsort(numbers[rows], kind="stable")]
        scores, last = np.zeros((0, len(coef))), None
        for start in range(0, rows.size, BLOCK):
            part = rows[start : start + BLOCK]
            block, factors = self._factored(part, coef, kernel)
            if self._intercept_scaling:
                block = np.column_stack([block, np.full(len(block), self._intercept_scaling)])
            starts = np.flatnonzero(np.diff(numbers[part], prepend=-1))
            if numbers[part[0]] == last:
                # The last person of the block before has more rows: her score so far is one more row. Rows of a person are added
                # one after another, so that the bits of her score do not depend on where blocks end.
                block, factors = np.vstack([scores[-1], block]), np.append(1.0, factors)
                starts[1:] += 1
                scores = scores[:-1]
            total.add(scores.T @ scores, len(scores))
            ends = np.append(starts, len(block))
            scores = sparse.csr_array((factors.ravel(), np.arange(len(block)), ends), shape=(len(starts), len(block))) @ block
            last = numbers[part[-1]]
        total.add(scores.T @ scores, len(scores))
        return total.total()

    def _factored(self, part: Part, coef: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """Return clipped rows without the intercept's constant, and their weighted factors."""
        block = dense(scaled(self._blocks.rows(part), self._scales_of(part)))
        raw = self._blocks.predictions(block, coef[: self.n_features])
        if self._intercept_scaling:
            raw += self._intercept_scaling * coef[self.n_features]
        return block, weighted(kernel(raw, self._records(part)), self._present(part))

    def block_sum(self, coef: np.ndarray, block: np.ndarray, kernel: Kernel, clip_norm: float) -> np.ndarray:
        r"""Return :math:`\sum_i \mathrm{clip}(x_{i,S} r_i^\top)` over a block S of coordinates, with residuals r_i of the kernel.

        Raw predictions are kept between calls. Columns whose coefficients did not change since the last call are not read, except
        for samples and tables in CSR.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, k)
            Points at which raw predictions are taken; the last row belongs to the intercept if there is one.
        block : ndarray of int of shape (n_block,)
            Coordinates, in ascending order.
        kernel : callable
            Maps raw predictions (rows of a block, k) and their `Records` to residuals (rows of the block, k) of any norm.
        clip_norm : float
            Bound on the Frobenius norm of a term.

        Returns
        -------
        ndarray of shape (n_block, k)
            The sum, accumulated in float64.

        Raises
        ------
        ValueError
            If there is not one row of coefficients per coordinate: broadcasting could repeat a coordinate.
        """
        if len(coef) != self.n_features + (self._intercept_scaling > 0):
            raise ValueError("Sums over a block of coordinates need one row of coefficients for every coordinate.")

        def slopes(raw: np.ndarray, part: Part) -> np.ndarray:
            return kernel(raw, self._records(part))

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
            Points at which raw predictions are taken; the last row belongs to the intercept if there is one.
        kernel : callable
            Maps raw predictions (rows of a block, k) and their `Records` to finite residuals (rows of the block, k).
        limits : float or ndarray of shape (n_coordinates,)
            Bound on the absolute value of a product, by the coordinate of the entry.
        kept : bool, default=False
            Update the raw predictions that `block_sum` keeps, and do not compute them from scratch.

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
                "Clipped products need one row of coefficients for every coordinate, including the intercept if there is one."
            )
        limits, constant = np.broadcast_to(np.asarray(limits, dtype=np.float64), len(coef)), self._intercept_scaling
        bounds, last = limits[: self.n_features], TreeSum(self._chunk_rows)
        if self._largest is None or not np.array_equal(self._largest[0], bounds):
            largest = largest_entries(self._blocks, bounds)
            self._largest = bounds.copy(), self._kept("largest", largest) if self._original else largest

        def counted(raw: np.ndarray, records: Records) -> np.ndarray:
            residuals = kernel(raw, records)
            if constant:
                products = np.clip(constant * residuals, -limits[-1], limits[-1])
                term = products.sum(axis=0) if records.present is None else records.present @ products
                last.add(term[None], len(products))
            return residuals

        raw = self._kept_columns().raw(coef) if kept and self._blocks.keeps_columns else None
        products = self._products_by_columns if self._blocks.by_column else self._products_by_rows
        sums = products(coef, counted, raw, *self._largest)
        return np.concatenate([sums, last.total()]) if constant else sums

    def _of_rows(self, rows: np.ndarray) -> "TrainingData":
        """Return the same table reduced to the rows with these sorted numbers."""
        sample = self._copied()
        sample._norms = self._inverse_norms  # computed once, for all rows
        sample._blocks, sample._whole = self._blocks.subset(rows), self
        return sample

    def _sum_of_chunks(self, query: Sums) -> np.ndarray:
        sample, length = self._blocks.sample, self._chunk_rows
        if sample is None or not sample.size or self._n_rows <= length or self._persons is not None:
            return query.partial(self)  # a chunk of rows may end within a person
        # Cut the sample where chunks of the table end. A chunk without a record in the sample adds zeros, as its place in the
        # tree follows from the table.
        table, total = self._whole or self, TreeSum(length)
        ends = np.searchsorted(sample, np.arange(length, self._n_rows + length, length)).tolist()
        parts = [sample[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        terms = [query.partial(table._of_rows(part)) if part.size else None for part in parts]
        nothing = np.zeros_like(next(term for term in terms if term is not None))  # the sum over no records
        for term in terms:
            total.add_chunk(nothing.copy() if term is None else term)
        return total.total()

    def _sum_by_blocks(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        total, of_sample = TreeSum(self._chunk_rows), self._blocks.sample is not None
        for part in self._blocks.parts():
            block = self._blocks.factor(part)
            raw = self._clipped(self._blocks.predictions(block, coef[: self.n_features]), coef, part)
            residuals, intercept = self._residuals(kernel, raw, part)
            total.add(np.concatenate([transposed(block, of_sample) @ residuals, intercept]), block.shape[0])
        return total.total()

    def _sum_by_columns(self, coef: np.ndarray, kernel: Kernel) -> np.ndarray:
        residuals = raw = self._raw_by_columns(coef)
        intercept = np.zeros((1, 1))
        for part in self._blocks.parts():
            block, term = self._residuals(kernel, raw[part], part)
            if block.shape[1] != residuals.shape[1]:  # the kernel combines several points into one
                residuals = np.empty((self._n_rows, block.shape[1]))
            residuals[part] = block
            intercept = intercept + term if term.size else term
        return np.concatenate([*(transposed(chunk) @ residuals for _, chunk in self._blocks.columns()), intercept])

    def _raw_by_columns(self, coef: np.ndarray) -> np.ndarray:
        """Return the raw predictions of clipped rows, from a table stored by columns."""
        raw = np.zeros((self._n_rows, coef.shape[1]))
        for columns, chunk in self._blocks.columns():
            raw += chunk @ coef[columns]
        for part in self._blocks.parts():
            self._clipped(raw[part], coef, part)
        return raw

    def _residuals(self, kernel: Kernel, raw: np.ndarray, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals of one block times the row scales, and the intercept's row of the sum (none without intercept)."""
        records, constant = self._records(part), self._intercept_scaling
        # sum_i scale_i x_i r_i': rows are never scaled, their raw predictions and residuals are.
        residuals = kernel(raw, records)
        if records.present is not None:
            residuals *= records.present[:, None]
        intercept = constant * column_sums(residuals)[None] if constant else residuals[:0]
        if not self._unclipped:
            residuals *= self._scales[part, None]
        return residuals, intercept

    def _products_by_rows(
        self, coef: np.ndarray, kernel: Kernel, raw: np.ndarray | None, limits: np.ndarray, largest: np.ndarray
    ) -> np.ndarray:
        total = TreeSum(self._chunk_rows)
        for part in self._blocks.parts():
            block = self._blocks.rows(part)
            if raw is None:
                kept = self._clipped(self._blocks.predictions(block, coef[: self.n_features]), coef, part)
            else:
                kept = raw[part].copy()
            residuals = self._slopes(kernel, kept, part)
            total.add(clipped_products(block, residuals, largest[part], limits, self._present(part)), block.shape[0])
        return total.total()

    def _products_by_columns(
        self, coef: np.ndarray, kernel: Kernel, raw: np.ndarray | None, limits: np.ndarray, largest: np.ndarray
    ) -> np.ndarray:
        raw = self._raw_by_columns(coef) if raw is None else raw.copy()
        residuals = np.concatenate([self._slopes(kernel, raw[part], part) for part in self._blocks.parts()])
        return np.concatenate(
            [
                clipped_products(chunk, residuals, largest, limits[place], self._presence)
                for place, chunk in self._blocks.columns()
            ]
        )

    def _slopes(self, kernel: Kernel, raw: np.ndarray, part: Part) -> np.ndarray:
        """Return residuals of some rows times the row scales, for products that are clipped before they are weighted."""
        return kernel(raw, self._records(part)) * self._scales[part, None]

    def _block_sum_by_rows(self, coef: np.ndarray, block: np.ndarray, slopes: Any, clip_norm: float) -> np.ndarray:
        total, features = TreeSum(self._chunk_rows), block[block < self.n_features]
        constant = self._intercept_scaling if features.size < block.size else 0.0
        for part in self._blocks.parts():
            rows = self._blocks.rows(part)
            residuals = slopes(self._clipped(self._blocks.predictions(rows, coef[: self.n_features]), coef, part), part)
            chunk = dense(scaled(rows[:, features], self._scales[part]))
            total.add(clipped_term(chunk, constant, residuals, clip_norm, self._present(part)), len(chunk))
        return total.total()

    def _kept_columns(self) -> ColumnCache:
        if self._columns is None:
            self._columns = ColumnCache(self._blocks, self._scales, self._intercept_scaling, self._chunk_rows, self._presence)
        return self._columns

    def _clipped(self, raw: np.ndarray, coef: np.ndarray, part: Part) -> np.ndarray:
        """Turn raw predictions of unclipped rows into those of clipped rows with intercept, in place."""
        if not self._unclipped:
            scales = self._scales[part, None]
            raw *= scales
            if self._some_null:
                np.copyto(raw, 0.0, where=scales == 0)  # not NaN from 0 times a product that overflowed
        if self._intercept_scaling:
            raw += self._intercept_scaling * coef[self.n_features]
        return raw

    def _clip(self) -> None:
        # Whether no row can be longer than it may be, by the public bounds of the columns: norms are then computed when needed.
        self._unclipped = self._presence is None and self._blocks.reach() <= self._data_norm
        self._norms: np.ndarray | None = None
        self._some_null = False  # whether a factor of a row is 0
        if self._unclipped:
            self._scales = np.broadcast_to(1.0, self._n_rows)
        else:
            self._norms = self._measure()

    @property
    def _inverse_norms(self) -> np.ndarray:
        """One over the norm of each row, with the constant of the intercept."""
        if self._norms is None:
            self._norms = self._measure()
        return self._norms

    def _scales_of(self, part: Part) -> np.ndarray | None:
        """Return the factors that clip some rows; None if all are 1."""
        return None if self._unclipped else self._scales[part]

    def _measure(self) -> np.ndarray:
        """Set the factors that clip rows, and return one over the norm of each clipped row."""
        with np.errstate(all="ignore"):
            norms, longest = row_norms(self._blocks), self._data_norm
            # Rows x become s x with s = min(1, R / ||x||); with the constant k of the intercept their norm is hypot(s ||x||, k).
            scales = longest / np.maximum(norms, longest)  # 0 if the squared norm overflowed
            np.hypot(np.minimum(norms, longest, out=norms), self._intercept_scaling, out=norms)
            inverse = np.divide(1.0, np.maximum(norms, SHORTEST), where=norms > 0, out=norms)
        if self._presence is not None:
            inverse[self._presence == 0] = scales[self._presence == 0] = 0.0
        if not self._unclipped:
            self._scales, self._some_null = self._kept("scales", scales), not scales.all()
        return self._kept("norms", inverse)

    def _kept(self, name: str, array: np.ndarray) -> np.ndarray:
        return array if self._keep is None else self._keep(name, array)

    def _copied(self) -> "TrainingData":
        """Return the same table without the results kept for later queries, which may not hold for the copy."""
        table = copy.copy(self)
        table._view = table._columns = table._largest = table._lengths = None
        table._original = False  # a copy that kept its largest entries would overwrite those of this table
        table._last = LastSum()
        return table

    def _records(self, part: Part) -> Records:
        targets = self._y[part]
        weights = None if self._class_weight is None else self._class_weight[targets]
        return Records(targets, self._inverse_norms[part], weights, self._present(part), exposure=part_of(self._exposure, part))

    def _present(self, part: Part) -> np.ndarray | None:
        return part_of(self._presence, part)
