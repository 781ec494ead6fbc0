"""What a query is, and what a loss is."""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from skdp.privacy.data.kernels import clip_residuals
from skdp.privacy.data.training_data import Records, TrainingData

__all__ = ["ClassLoss", "CurvedLoss", "Loss", "Query", "Scores", "clip_residuals", "lengths_of"]


class Query(Protocol):
    """A question about the training data, made of public facts and earlier releases only.

    Attributes
    ----------
    relative_sensitivity : dict
        Sensitivity over clip norm, per adjacency.
    clip_norm : float
        Bound on the norm of one record's contribution to the answer.
    size : int
        Number of coordinates of the answer.
    additive : bool, optional
        False where the answer is not a sum of contributions of the records, so that an audit cannot take one out.
    by_row : bool, optional
        True where whole rows are read, so that a table stored by columns is converted once.
    by_column : bool, optional
        True where columns are read, so that a sparse table stored by rows is converted once, unless whole rows are read, too.
    records : ndarray of int or None, optional
        Sorted numbers of the records that a single-pass release is of; None, as where it is missing, for other mechanisms.
    rounding : float, optional
        How much larger the rounding error of the answer may be than that of a sum of clipped rows; 1 where it is missing.
    """

    relative_sensitivity: ClassVar[dict[str, float]]

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution to the answer."""
        ...

    @property
    def size(self) -> int:
        """Number of coordinates of the answer."""
        ...

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return the earlier releases that the question contains, for the oracle to check."""
        ...

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest change of the answer between neighbours; the proof is the docstring."""
        ...

    def evaluate(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised answer, a vector of shape (size,); only the oracle calls this."""
        ...


@runtime_checkable
class Scores(Query, Protocol):
    """A question whose answer is one score per candidate, larger ones better; only the place of a nearly best one is released.

    ``size`` is the number of candidates, and ``sensitivity`` is that of each score.
    """

    def rounding_error(self, n_samples: int, summation_error: float) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it.

        ``summation_error`` is that of a sum over the rows, over the largest norm of a term.
        """
        ...


class Loss(Protocol):
    """A pointwise loss on the raw prediction: pure functions, called on un-noised data inside queries.

    Attributes
    ----------
    name : str
        As reports and error messages give it.
    lipschitz : float
        Bound on the norm of the derivative in the raw prediction.
    smoothness : float
        Lipschitz constant of the derivative; ``inf`` for a non-smooth loss.
    targets : {"classes", "numbers"}
        What is predicted.
    convex : bool
        Whether it is convex in the raw prediction.
    bounded : bool
        Whether ``lipschitz`` holds for all raw predictions; else for those in [-1, 1] only, and the clip enforces it.
    one_sided : bool, optional
        True where the derivative keeps its sign, for each label.
    log_odds : bool, optional
        True where the raw prediction is the log-odds of two classes.
    quadratic : bool, optional
        True for half the squared difference of raw prediction and target: sums of products of columns determine its minimum.
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
        """Raw predictions per record."""
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
        """Return the derivative in the raw predictions, shape (m, n_outputs), freshly allocated."""
        ...


class ClassLoss(Loss, Protocol):
    """A loss of class labels."""

    def constant(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the best raw predictions, shape (n_outputs,), for records that share them, from frequencies of the classes."""
        ...


@runtime_checkable
class CurvedLoss(Loss, Protocol):
    """A loss that knows its second derivative in each raw prediction; solvers use it for one raw prediction per record."""

    def curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the second derivatives, shape (m, n_outputs), freshly allocated; at most `smoothness`."""
        ...

    def upper_curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return those of parabolas that touch the loss and are nowhere below it, freshly allocated; at most `smoothness`."""
        ...


def lengths_of(records: Records) -> np.ndarray:
    """Return the norms of the rows, 0 also for a null record.

    Parameters
    ----------
    records : Records
        A block.

    Returns
    -------
    ndarray of shape (m,)
        Finite numbers.
    """
    known = records.inverse_norms > 0
    return np.divide(1.0, records.inverse_norms, where=known, out=np.zeros(known.size))
