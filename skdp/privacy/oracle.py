"""Answer the queries of solvers with noise: every value that depends on the training data leaves through the oracle."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.budget import Budget
from skdp.privacy.data.private_data import PrivateData
from skdp.privacy.errors import DivergedError, PrivacyAccountingError, SourceError, silent
from skdp.privacy.noise.gaussian import MAX_FEATURES, GridGaussian
from skdp.privacy.noise.sampling import order_of
from skdp.privacy.noise.selection import GumbelNoise
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import Query, Scores
from skdp.privacy.schedule import Curve, Laplace, PoissonGaussian, Release, Schedule, Selection, SinglePass, Staircase

__all__ = ["Oracle"]

# Largest clip norm, and largest rounding factor, of a query. A choice whose square is finite in float64. Queries beyond it are
# refused: the iteration diverged or the scaling is ill-conditioned.
LARGEST_CLIP_NORM = 1e150


class Oracle:
    """Answer the queries of one schedule once each and in order, on all records or on a fresh secret sample.

    Parameters
    ----------
    rows : PrivateData
        The training data.
    schedule : Schedule
        The releases that may be made.
    budget : Budget
        Adjacency, and whether noise is added.
    scale : float
        Standard deviation over sensitivity of a release of weight 1, from `calibrate`.
    noise : NoiseSource
        Source of the noise.
    on_release : callable, optional
        Called after each release, with no argument.
    """

    def __init__(
        self,
        rows: PrivateData,
        schedule: Schedule,
        budget: Budget,
        scale: float,
        noise: NoiseSource,
        on_release: Callable[[], object] | None = None,
    ) -> None:
        if budget.private and not (0 < scale < math.inf):
            raise PrivacyAccountingError(f"The noise scale is {scale!r}; expected a positive number.")
        self._rows, self._schedule, self._budget, self._scale, self._noise = rows, tuple(schedule), budget, scale, noise
        self._on_release, self._process = on_release, os.getpid()
        # Each release, with the number of times that it comes in a row from there on; `_left` is that of the present one
        self._left = 0
        self._pending = ((left, release) for count, release in schedule.entries for left in range(count, 0, -1))
        # Releases with the same clip norm, sensitivity and size are calibrated once
        self._calibrated = lru_cache(maxsize=8)(GridGaussian.calibrated)
        self._transcript: list[Release] = []
        self._answering = False
        self._uses = np.zeros(rows.n_samples if schedule.passes_once else 0, dtype=np.uint8)
        named = schedule.passes_once and budget.unit == "person"
        self._order = order_of(noise.key(), rows.n_samples) if named else None  # None: numbers of records are their places

    @property
    def transcript(self) -> tuple[Release, ...]:
        """Releases made so far, in order."""
        return tuple(self._transcript)

    @property
    def uses(self) -> np.ndarray:
        """Number of single-pass releases that each record, or person, has entered; empty if none is scheduled.

        The counts, of shape (n_samples,), depend on the numbers that queries name, not on the data.
        """
        return self._uses.copy()

    def ask(self, query: Query) -> np.ndarray:
        """Return the noisy answer to the next query of the schedule.

        Parameters
        ----------
        query : Query
            The question.

        Returns
        -------
        ndarray of shape (query.size,), or (n_choices,) for a selection
            The un-noised answer plus noise, on a grid. For a selection, the index of the chosen candidate of each group, which is
            0 if the clip norm is 0.

        Raises
        ------
        PrivacyAccountingError
            If the query is not next on the schedule, differs from what the schedule states, contains a number that is not
            finite, or names a record that a single pass has used; nothing is evaluated then. Also if the evaluation fails:
            the error leaves out the reason, which may quote data.
        """
        release = self._admit(query)
        records = self._use(query.records, release)
        with self._undisturbed():
            answer = self._answer(query, release, records)
        self._transcript.append(release)
        if self._on_release is not None:
            self._on_release()
        return answer

    def map_rows(self, matrix: Any) -> None:
        """Replace every row x by ``x @ matrix``, clipped to the same norm again, for all further queries; this is no release.

        *Proof that it costs nothing.* A mapped row depends on its own record and on earlier releases. These are the same for
        both tables, so the mapped rows of all records that the tables share are the same, and null records stay null. Every query
        bounds what one record adds to it, whatever its row is, by clips that see the mapped row. So its sensitivity stays as it
        was.

        Parameters
        ----------
        matrix : sparse of shape (n_features, m)
            Computed from earlier releases and public facts only.

        Raises
        ------
        PrivacyAccountingError
            If the matrix is not finite or has another shape, or while a query is answered. Also if mapping the rows fails: the
            error leaves out the reason, which may quote data.
        """
        n_features = self._rows.n_features
        if (
            not sparse.issparse(matrix)
            or matrix.ndim != 2
            or matrix.shape[0] != n_features
            or not 0 < matrix.shape[1] <= MAX_FEATURES
        ):
            raise PrivacyAccountingError(f"Rows are mapped by a sparse matrix; expected its shape to be ({n_features}, m).")
        if matrix.dtype.kind not in "fiu" or not np.isfinite(matrix.tocoo().data).all():
            raise DivergedError("Rows are mapped by a matrix with a number that is not finite; expected finite numbers.")
        self._replace_rows("The map of rows", lambda rows: rows.mapped(matrix))

    def map_targets(self, function: Callable[[np.ndarray, np.ndarray | None], np.ndarray]) -> None:
        """Replace every target by a function of itself and of the exposure of its record, for all further queries; no release.

        *Proof that it costs nothing.* The new target of a record depends on its own record, on public facts and on earlier
        releases, and is clipped to [-1, 1]. The proof of `map_rows` holds: sensitivities do not depend on what targets are.

        Parameters
        ----------
        function : callable
            Maps arrays of targets and of exposures (None without them) record by record; from earlier releases and public facts.
        """
        self._replace_rows("The map of targets", lambda rows: rows.retargeted(function))

    def bin_rows(self, bins_of: Callable[[Any], np.ndarray], coef: np.ndarray) -> None:
        """Replace every row by the bins of its cells and by a score, its raw prediction, for all further queries; no release.

        *Proof that it costs nothing.* Bins and score of a record depend on its own row, on a public function and on earlier
        releases. The proof of `map_rows` holds: queries of binned records bound what one record adds, whatever they are.

        Parameters
        ----------
        bins_of : callable
            Public function that maps rows in CSR to bins, of shape (n_columns, m).
        coef : ndarray of shape (n_coordinates, n_outputs)
            Coefficients of the raw prediction, computed from earlier releases and public facts only.
        """
        if not np.isfinite(coef).all():
            raise DivergedError("Scores need finite coefficients; expected a model that has not diverged.")
        self._replace_rows("The bins of rows", lambda rows: rows.binned(bins_of, coef))

    def add_tree(self, columns: np.ndarray, splits: np.ndarray, values: np.ndarray, share: float) -> None:
        """Add to the score of every record the value of its leaf, for all further queries; no release.

        *Proof that it costs nothing.* The leaf of a record depends on its own bins and on the tree. Tree and values depend on
        earlier releases and public facts. So do, for each record alone, all scores.

        Parameters
        ----------
        columns, splits : ndarray
            The tree, as `skdp.privacy.data.binned_records.leaves` takes it.
        values : ndarray of float32 of shape (n_outputs, n_leaves)
            What a leaf adds.
        share : float
            Share of the values that the averaged model has.
        """
        if not np.isfinite(values).all():
            raise DivergedError("A tree has a value that is not finite; expected finite numbers.")
        self._replace_rows("A tree", lambda rows: rows.grown(columns, splits, values, share))

    def finish(self) -> None:
        """Check that every scheduled release was made.

        Raises
        ------
        PrivacyAccountingError
            If the transcript is shorter than the schedule: the report would state releases that were never made.
        """
        if self.transcript != self._schedule:
            raise PrivacyAccountingError(
                f"{len(self._transcript)} of the {len(self._schedule)} scheduled releases were made; expected all of them."
            )

    def _replace_rows(self, name: str, work: Callable[[Any], Any]) -> None:
        """Replace the rows by what ``work`` makes of them, record by record."""
        if self._answering or os.getpid() != self._process:
            raise PrivacyAccountingError("Rows are mapped by the process of the fit and between two releases only.")
        with self._undisturbed():
            self._rows = self._quoting_nothing(name, lambda: work(self._rows))

    def _admit(self, query: Query) -> Release:
        if os.getpid() != self._process:
            raise PrivacyAccountingError("The fit was forked: each process would make releases that were charged only once.")
        if not (0 <= float(query.clip_norm) <= LARGEST_CLIP_NORM) or not all(map(_finite, query.parameters())):
            raise DivergedError(
                f"{type(query).__name__} was asked at a point, or with a clip norm, that is not finite or too large: the "
                "iteration diverged. A smaller step size of the solver avoids it."
            )
        if not (1 <= query.rounding <= LARGEST_CLIP_NORM):
            raise DivergedError(f"The rounding of {type(query).__name__} has no bound: the scaling is too ill-conditioned.")
        self._left, release = next(self._pending, (0, None))
        if release is None or type(query) is not release.query or release.clip_norm not in (None, query.clip_norm):
            expected = (
                "no further release" if release is None else f"{release.query.__name__} with clip norm {release.clip_norm!r}"
            )
            raise PrivacyAccountingError(
                f"{type(query).__name__} with clip norm {query.clip_norm!r} was asked; the schedule expects {expected}."
            )
        return release

    def _use(self, named: np.ndarray | None, release: Release) -> np.ndarray | None:
        """Count and return the records of a single-pass release; queries of other mechanisms must not name records."""
        if not isinstance(release.mechanism, SinglePass):
            if named is not None:
                raise PrivacyAccountingError(f"Records were named for {release.mechanism!r}; expected a single pass.")
            return None
        records = np.array(named)  # a copy: what is counted is what is read
        if records.ndim != 1 or records.dtype.kind != "i" or records.size > release.mechanism.batch_size:
            raise PrivacyAccountingError(f"A single pass expects the numbers of at most {release.mechanism.batch_size} records.")
        if np.any(records[:1] < 0) or np.any(records[-1:] >= self._uses.size) or np.any(records[1:] <= records[:-1]):
            raise PrivacyAccountingError("The records of a single pass are not sorted, distinct numbers of rows.")
        if self._uses[records].any():
            raise PrivacyAccountingError("A record was named that an earlier release of the single pass has used.")
        self._uses[records] += 1
        return records if self._order is None else np.sort(self._order[records])

    def _answer(self, query: Query, release: Release, records: np.ndarray | None) -> np.ndarray:
        rows, mechanism = self._rows, release.mechanism
        alike = self._left if release.size in (None, query.size) else 1
        if isinstance(query, Scores) and not isinstance(mechanism, Selection):
            raise PrivacyAccountingError(f"{type(query).__name__} bounds each of its scores alone; expected a selection.")
        if query.clip_norm == 0:
            return np.zeros(mechanism.n_choices if isinstance(mechanism, Selection) else query.size)
        if isinstance(mechanism, Selection):
            return np.array(self._select(query, mechanism))
        if isinstance(mechanism, PoissonGaussian):
            rows, alike = rows.sampled(self._noise.key(), mechanism.sampling_rate), 1  # a fresh key, which nothing keeps
        if records is not None:
            rows = rows.subset(records)
        if not self._budget.private:
            return query.evaluate(rows)  # an error may show: nothing is private here
        if isinstance(mechanism, Curve):
            return self._with_curve(query, mechanism, rows)
        if isinstance(mechanism, Laplace):
            return self._with_laplace(query, mechanism)
        noise = self._calibrated(  # in float64: in float32 the allowance for rounding would be lost
            clip_norm=float(query.clip_norm),
            relative_sensitivity=float(query.sensitivity(self._budget.adjacency)) / float(query.clip_norm),
            scale=self._scale * mechanism.weight,
            n_samples=rows.n_samples,
            size=query.size,
            summation_error=rows.summation_error * query.rounding,
        )
        return noise.add_to(self._evaluate(query, rows), self._noise, alike)

    def _with_curve(self, query: Query, mechanism: Curve, rows: PrivateData) -> np.ndarray:
        if not mechanism.admits(query, self._scale, self._budget):
            raise PrivacyAccountingError(f"The {type(query).__name__} that was asked for is not the one that was scheduled.")
        evaluate = partial(self._evaluate, rows=rows)
        answer = partial(mechanism.answer, query, self._scale, self._budget, self._noise, evaluate)
        return self._quoting_nothing(type(query).__name__, answer)

    def _with_laplace(self, query: Query, mechanism: Laplace) -> np.ndarray:
        sensitivity = query.l1_sensitivity(self._budget.adjacency)
        if isinstance(mechanism, Staircase) and query.size != 1:
            raise PrivacyAccountingError(f"{type(query).__name__} has {query.size} integers; expected one for staircase noise.")
        noise = mechanism.noise(sensitivity, self._scale)
        return noise.add_to(self._evaluate(query, self._rows), self._noise)

    def _select(self, query: Query, mechanism: Selection) -> list[int]:
        if not isinstance(query, Scores):
            raise PrivacyAccountingError(f"{type(query).__name__} has no scores to select by.")
        if (n_choices := len(query.groups(np.empty(query.size)))) != mechanism.n_choices:
            raise PrivacyAccountingError(f"{n_choices} choices were asked for; expected {mechanism.n_choices}.")
        if not self._budget.private:
            return [int(np.argmax(scores)) for scores in query.groups(query.evaluate(self._rows))]
        noise = GumbelNoise.calibrated(
            sensitivity=query.sensitivity(self._budget.adjacency),
            scale=self._scale * mechanism.weight,
            rounding=query.rounding_error(self._rows.n_samples, self._rows.summation_error),
            n_choices=n_choices,
        )
        return [noise.select(scores, self._noise) for scores in query.groups(self._evaluate(query, self._rows))]

    def _evaluate(self, query: Query, rows: PrivateData) -> np.ndarray:
        return self._quoting_nothing(type(query).__name__, lambda: _vector(query.evaluate(rows), query.size))

    def _quoting_nothing(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the result of work on the data; an error names the query and leaves out its reason, which may quote data.

        A part of the user's may raise anything, among it errors that Python passes by ``except Exception``. Only what ended the
        pass of an engine keeps its text, which is this package's.
        """
        failure: BaseException
        try:
            return work()
        except KeyboardInterrupt:
            failure = KeyboardInterrupt()
        except MemoryError:
            failure = MemoryError(f"{name} needs more memory than there is.")
        except BaseException as error:
            if error is self._rows.failure:
                failure = SourceError(str(error))
            else:
                failure = PrivacyAccountingError(f"{name} failed; fit public data with epsilon=inf to see why.")
        raise failure  # outside the except clause: the original error, which may quote data, does not become its context

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Silence warnings, which may quote data, and mark that a query is being answered."""
        outer, self._answering = self._answering, True
        try:
            with silent():
                yield
        finally:
            self._answering = outer


def _finite(parameter: float | np.ndarray) -> bool:
    if isinstance(parameter, float):
        return math.isfinite(parameter)
    # A finite sum of squares has finite terms; it may overflow, and then tells nothing.
    known = parameter.dtype == np.float64 and math.isfinite(np.vdot(parameter, parameter))
    return known or bool(np.isfinite(parameter).all())


def _vector(answer: Any, size: int) -> np.ndarray:
    """Return an answer as plain numbers: an array of text, of objects or of a class of the user's could pass on more."""
    vector = np.asarray(answer, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"An answer has the shape {vector.shape}; expected ({size},).")
    return vector
