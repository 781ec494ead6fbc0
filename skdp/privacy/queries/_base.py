"""Define the interfaces of queries and of losses."""

import math
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from skdp.privacy.data.kernels import Records
from skdp.privacy.data.kernels import clip_residuals as clip_residuals
from skdp.privacy.data.private_data import PrivateData
from skdp.privacy.errors import PrivacyAccountingError


class WithParameters:
    """Base of the dataclasses that contain earlier releases: queries, and parts of them."""

    def parameters(self) -> tuple[float | np.ndarray, ...]:
        """Return the floats and arrays in all fields but ``records``; the oracle checks that they are finite.

        Earlier releases are among them. For the records of a single pass the oracle has other rules.
        """
        found: list[float | np.ndarray] = []
        for name in _names(type(self)):  # type: ignore[arg-type]
            found += _numbers(getattr(self, name))
        return tuple(found)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name != "records")


def _numbers(value: object) -> tuple[float | np.ndarray, ...]:
    if value is None:
        return ()
    if isinstance(value, float):
        return (value,)
    if isinstance(value, np.ndarray):
        return (np.asarray(value),)  # no subclass: one may hide numbers, as masks do
    if isinstance(value, WithParameters):
        return value.parameters()
    if isinstance(value, np.floating):
        return (float(value),)
    return (np.array(value),) if isinstance(value, tuple) and any(isinstance(part, float) for part in value) else ()


class Query(WithParameters):
    """Base of the questions about the training data; a query contains only public facts and earlier releases.

    Attributes
    ----------
    relative_sensitivity : dict
        Sensitivity over clip norm, per adjacency.
    clip_norm : float
        Bound on the norm of one record's contribution to the answer.
    size : int
        Number of coordinates of the answer.
    additive : bool
        False if the answer is not a sum of contributions of the records, so that an audit cannot take one out.
    by_row : bool
        True if the query reads whole rows: then a table stored by columns is converted once.
    by_column : bool
        True if the query reads columns: then a sparse table stored by rows is converted once, unless whole rows are read too.
    in_memory : str or None
        Why the query needs a table in memory, as the end of a sentence about the solver; None if it takes a table in partitions.
    joins_rows : bool
        True if the answer is no sum over the rows of a person, who then has to be in memory with all of them.
    one_pass : bool
        False if an answer reads the records an unknown number of times, or only in part.
    shares_partial : bool
        True if consecutive releases of the query ask for one sum over the records, which is kept.
    grows : bool
        True if the scores of the records change between its releases, so that a table in partitions needs a kept copy.
    records : ndarray of int or None
        Sorted row numbers of the records that a single-pass release reads; None for other mechanisms.
    """

    relative_sensitivity: ClassVar[dict[str, float]]
    additive: ClassVar[bool] = True
    by_row: ClassVar[bool] = False
    by_column: ClassVar[bool] = False
    in_memory: ClassVar[str | None] = "asks for more than a sum over the records"
    joins_rows: ClassVar[bool] = False
    one_pass: ClassVar[bool] = True
    shares_partial: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    records: np.ndarray | None = None

    if TYPE_CHECKING:  # each query has both; a property here would be the default of a field of the same name

        @property
        def clip_norm(self) -> float: ...

        @property
        def size(self) -> int: ...

    @property
    def rounding(self) -> float:
        """Bound on the rounding error of the answer, relative to that of a sum of clipped rows."""
        return 1.0

    def sensitivity(self, adjacency: str) -> float:
        """Return a bound on the change of the answer between neighbours; the docstring is the proof.

        Parameters
        ----------
        adjacency : {"replace_one", "zero_out"}
            Which tables are neighbours.

        Returns
        -------
        float
            Bound on the Euclidean norm of the change.
        """
        raise NotImplementedError

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return a bound on the sum of the absolute changes of the answer, for one of integers, which float64 adds exactly."""
        raise PrivacyAccountingError(f"{type(self).__name__} does not count; expected integers for Laplace noise.")

    def evaluate(self, rows: Any) -> np.ndarray:
        """Return the un-noised answer; only the oracle calls this.

        Parameters
        ----------
        rows : PrivateData
            The training data, or a sample of them.

        Returns
        -------
        ndarray of shape (size,)
            The answer without noise.
        """
        raise NotImplementedError


class SumQuery(Query):
    """Base of the queries whose answer follows from one sum over the records.

    `partial` returns the sum over the records of a table, of a part of it or of a sample, so that sums of parts can be added up.
    `finish` computes the answer from the sum over all records, once.

    The proof of a sensitivity is about the exact sum of the computed terms, so it holds for every cut of the table. Neighbours
    have the same cut. A term depends on its record, its place in the cut and public facts, so those of shared records cancel.

    Sample weights change no sensitivity of an answer that is linear in the sum. A record z of weight v in [0, 1], over the public
    bound, contributes ``v t(z)``, where t(z) is its term without weight: the weight is applied after the clip, so that long and
    short gradients keep their ratio, and the answer is that of a table in which records are repeated. *Proof.* Shared records
    cancel. The change ``v t(z) - v' t(z')`` is linear in v and in v', so its norm is convex in each, and is largest where both
    weights are 0 or 1. There it is the change of ``replace_one`` without weights, that of ``zero_out``, or 0. The sensitivity
    under ``replace_one`` is never smaller than that under ``zero_out``, so each bounds all changes under its adjacency.

    The change is at most twice the bound on one contribution, which is the default of ``relative_sensitivity``.
    """

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2.0, "zero_out": 1.0}
    in_memory: ClassVar[str | None] = None

    def partial(self, rows: Any) -> np.ndarray:
        """Return the un-noised sum over some records, a vector."""
        raise NotImplementedError

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised answer from the sum over all records."""
        return total

    def summed(self) -> tuple[np.ndarray, ...] | None:
        """Return all that the sum depends on, beside the records and the type of the query; None if no other query shares it."""
        return None

    def evaluate(self, rows: PrivateData) -> np.ndarray:
        """Return the un-noised answer, a vector of shape (size,); only the oracle calls this."""
        return self.finish(rows.reduced(self))


class NonNegativeQuery(SumQuery):
    """Base of the sums in which the contributions of two records never have a negative inner product, such as counts.

    *Proof of its relative sensitivity.* With contributions v and w of norm at most c, the squared norm of the change is
    ``||v||**2 + ||w||**2 - 2 v^T w``, at most ``2 c**2``, and ``c**2`` where one record is null.
    """

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}


class CountQuery(NonNegativeQuery):
    """Base of the counts to which a record adds 1 in one place, and a null record nothing: replacing a record moves that 1."""

    @property
    def clip_norm(self) -> float:
        """Norm of one record's contribution, 1."""
        return 1.0

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return 2 under ``replace_one`` and 1 under ``zero_out``, the number of counts that move by 1 (see `sensitivity`).

        It also holds for sample weights in [0, 1]: the mechanism rounds counts, and a count that moves by at most 1 does so after
        it is rounded, too. A person moves many counts, each by a fraction, so it does not hold for counts of persons.
        """
        return 2 if adjacency == "replace_one" else 1


class Scores(Query):
    """Base of the questions with one score per candidate, of which only the index of a nearly best candidate is released.

    Larger scores are better, ``size`` is the number of candidates, and ``sensitivity`` is that of each score. Scores follow from
    a gradient of ``loss``, or from counts. The candidates may be in several groups, with a winner in each; then ``sensitivity``
    is that of the sum over the groups of the largest change in each.
    """

    loss: "Loss"

    @staticmethod
    def score_rounding(n_samples: int, n_coefficients: int, summation_error: float, offset: float = 0.0) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it, relative to clip norm and l1 radius.

        A score is an inner product with a sum. Each coordinate of the sum has an error of at most ``summation_error``, and is at
        most ``n_samples + offset`` in absolute value. The inner product adds at most one rounding per coordinate, and the noise
        two more.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_coefficients : int
            Length of a vertex.
        summation_error : float
            Bound on the error of a coordinate of the sum over the records, relative to the clip norm.
        offset : float, default=0.0
            Largest absolute coordinate of the vector that is added to the sum, relative to the clip norm.

        Returns
        -------
        float
            The bound.
        """
        return summation_error + (n_coefficients + 8) * 2.0**-53 * (n_samples + offset) * (1 + 2.0**-20)

    def rounding_error(self, n_samples: int, summation_error: float) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it.

        Parameters
        ----------
        n_samples : int
            Number of records.
        summation_error : float
            Bound on the float64 error of a sum over the rows, relative to the largest norm of a term.

        Returns
        -------
        float
            The bound, in the units of a score.
        """
        raise NotImplementedError

    def groups(self, scores: np.ndarray) -> list[np.ndarray]:
        """Return the scores of each group of candidates."""
        return [scores]

    def residuals(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the derivative of each record in its raw predictions, finite; a kernel for ``TrainingData.clipped_sum``."""
        return np.nan_to_num(slopes(self.loss, raw, records), copy=False)


class Loss(Protocol):
    """Define a pointwise loss of the raw prediction by pure functions, which queries call on un-noised data.

    Attributes
    ----------
    name : str
        Name in reports and error messages.
    lipschitz : float
        Bound on the norm of the derivative in the raw prediction.
    smoothness : float
        Lipschitz constant of the derivative; ``inf`` for a non-smooth loss.
    targets : {"classes", "numbers"}
        What is predicted.
    convex : bool
        Whether the loss is convex in the raw prediction.
    bounded : bool
        Whether ``lipschitz`` holds for all raw predictions. If not, it holds for those in [-1, 1], and the clip enforces it.
    one_sided : bool, optional
        True if the derivative has a fixed sign for each label.
    log_odds : bool, optional
        True where the raw prediction is the log-odds of two classes.
    log_probabilities : bool, optional
        True where raw predictions are the logarithms of the probabilities of several classes, but for a constant.
    quadratic : bool, optional
        True for half the squared difference of raw prediction and target: sums of products of columns determine its minimum.
    least_squares : bool, optional
        True for half the squared distance of raw predictions and targets, of which there may be several.
    quantile : float, optional
        The quantile of the targets that minimises the mean loss, in (0, 1).
    """

    @property
    def name(self) -> str:
        """Name of the loss."""
        ...

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of the derivative in the raw prediction."""
        ...

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the derivative."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of raw predictions per record."""
        ...

    @property
    def targets(self) -> str:
        """What is predicted: "classes" (labels are class numbers) or "numbers"."""
        ...

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the raw prediction."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether `lipschitz` holds for all raw predictions."""
        ...

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each record, shape (m,), from raw predictions of shape (m, n_outputs)."""
        ...

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative in the raw predictions, shape (m, n_outputs), as a new array."""
        ...


class ClassLoss(Loss, Protocol):
    """Define a loss of class labels."""

    def constant(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the best constant raw predictions, shape (n_outputs,), for given frequencies of the classes."""
        ...


@runtime_checkable
class CurvedLoss(Loss, Protocol):
    """Define a loss with second derivatives; solvers use it only for losses with one raw prediction per record."""

    def curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the second derivatives, shape (m, n_outputs), as a new array; at most ``smoothness``."""
        ...

    def upper_curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return second derivatives of parabolas that touch the loss and are nowhere below it; at most ``smoothness``."""
        ...


def slopes(loss: Loss, raw: np.ndarray, records: Records) -> np.ndarray:
    """Return the derivatives of a loss in the raw predictions, times the factors of the records' losses, as a new array."""
    derivatives = loss.derivative(raw, records.targets)
    if records.weights is not None:
        derivatives *= records.weights[:, None]
    return derivatives


def lengths_of(records: Records) -> np.ndarray:
    """Return the norms of the rows; a null record has the norm 0.

    Parameters
    ----------
    records : Records
        A block of records.

    Returns
    -------
    ndarray of shape (m,)
        Finite numbers.
    """
    known = records.inverse_norms > 0
    return np.divide(1.0, records.inverse_norms, where=known, out=np.zeros(known.size))
