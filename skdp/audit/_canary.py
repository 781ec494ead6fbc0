"""Make canaries, the records that an attack looks for, and the two tables that differ in them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from skdp._label_types import otherwise_spelt
from skdp._validation import check_bounds, check_classes
from skdp.solvers import Problem

N_TARGETS = 2001  # number of targets among which the steepest slope of a loss is searched; more find it more exactly


@dataclass(frozen=True)
class Canaries:
    """Hold a table whose first records are canaries, and what replaces each of them in the other table.

    Parameters
    ----------
    X : ndarray, CSR or CSC of shape (n_samples, n_features)
        Records; the same in both tables.
    y : ndarray of shape (n_samples,)
        Labels, those of the canaries first.
    rows : ndarray of shape (m, n_features)
        The first rows of X.
    codes : tuple of float
        Class numbers, or targets in [-1, 1], of the canaries and of their replacements.
    other : object
        Label of the replacement of a canary; None for a null record.
    persons : ndarray of int of shape (n_samples,) or None, default=None
        Whose each row is, if persons are protected. The one canary is a person then, who has the first rows, all equal. A null
        person replaces her, or one with a single row of the other label.
    """

    X: Any
    y: np.ndarray
    rows: np.ndarray
    codes: tuple[float, float]
    other: Any
    persons: np.ndarray | None = None

    @property
    def null(self) -> bool:
        """Whether canaries are replaced by null records and not by the other label."""
        return self.other is None

    def labels(self, absent: np.ndarray) -> np.ndarray:
        """Return the labels of the table in which some canaries are replaced.

        Parameters
        ----------
        absent : ndarray of int
            Indices of the replaced canaries.

        Returns
        -------
        ndarray of shape (n_samples,)
            A copy of the labels. For null records the labels do not change; `TrainingData.without` makes these records.
        """
        labels = self.y.copy()
        if not self.null:
            labels[absent] = self.other
        return labels

    def n_rows(self, absent: np.ndarray) -> int:
        """Return the number of rows of all canaries, or of the person who replaces one."""
        if self.persons is None:
            return len(self.rows)
        return 1 if len(absent) and not self.null else int(np.count_nonzero(self.persons == self.persons[0]))

    def table(self, absent: np.ndarray) -> tuple[Any, np.ndarray, dict[str, Any]]:
        """Return X, y and the other arguments of a fit of the table in which some canaries are replaced."""
        if self.persons is None:
            return self.X, self.labels(absent), {}
        places = slice(self.n_rows(np.array([], dtype=int)) - self.n_rows(absent), None)
        labels = self.labels(absent + places.start)
        return self.X[places], labels[places], {"persons": self.persons[places]}


def make_canaries(
    estimator: Any, problem: Problem, X: Any, y: Any, directions: Any, n_canaries: int = 1, persons: Any = None
) -> Canaries:
    """Replace the first records by canaries.

    The norm of a canary is the public bound. Its label is the rarest label among the other records: the model predicts it least,
    so the residual is the largest. Under ``replace_one`` the other table has the most frequent other label. In a regression, the
    two labels are the targets with the steepest losses; for the squared loss these are the ends of ``target_bounds``.

    Parameters
    ----------
    estimator : DPEstimator
        The estimator, whose ``classes`` may be None.
    problem : Problem
        Public facts of the fit.
    X, y : array-like
        Records that the estimator accepts.
    directions : callable
        Function that maps the rows of the other records to unit vectors, of shape (n_canaries, n_features).
    n_canaries : int, default=1
        Number of canaries.
    persons : ndarray of int of shape (n_samples,) or None, default=None
        Whose each row is, if persons are protected. The canary has the rows of the first person, which are the first rows.

    Returns
    -------
    Canaries
        The two tables.

    Raises
    ------
    ValueError
        If the records other than the canaries lack a class.
    """
    X = check_array(X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
    labels = np.array(y).ravel()
    n_rows = n_canaries if persons is None else int(np.count_nonzero(persons == persons[0]))
    if problem.loss.targets == "numbers":
        ends, codes, labels = *_steepest(estimator, problem), labels.astype(np.float64)
    else:
        ends, codes = _rarest_and_most_frequent(estimator, labels, n_rows)
    rows = problem.data_norm * directions(X[n_rows:])
    labels[:n_rows] = ends[0]
    replaced = None if problem.budget.adjacency == "zero_out" else ends[1]
    X = _with_first_rows(X, np.repeat(rows, n_rows // n_canaries, axis=0))
    return Canaries(X, labels, rows, codes, replaced, persons)


def _steepest(estimator: Any, problem: Problem) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the targets with the smallest and largest slope of the loss at prediction 0, in units of y and of the queries."""
    (centre, unit), bounds = estimator._task().units(), estimator.target_bounds
    low, high = (-unit, unit) if bounds is None else check_bounds("target_bounds", bounds)
    targets = np.linspace(high, low, N_TARGETS)
    slopes = problem.loss.derivative(np.zeros((N_TARGETS, 1)), (targets - centre) / unit)
    ends = float(targets[slopes.argmin()]), float(targets[slopes.argmax()])
    return ends, ((ends[0] - centre) / unit, (ends[1] - centre) / unit)


def _rarest_and_most_frequent(estimator: Any, labels: np.ndarray, n_canaries: int) -> tuple[tuple[Any, Any], tuple[int, int]]:
    """Return the label that is rarest among the other records, the most frequent other label, and their class numbers."""
    given = getattr(estimator, "classes", None)
    classes = np.unique(labels) if given is None else otherwise_spelt(check_classes(given), labels, labels)
    counts = np.array([np.count_nonzero(labels[n_canaries:] == label) for label in classes])
    if given is None and not counts.all():
        raise ValueError(
            f"The first {n_canaries} records, which the canaries replace, are all records of a class; expected more of them, or "
            "classes=[...], because neighbouring tables have the same label set."
        )
    canary = int(counts.argmin())
    other = max((code for code in range(classes.size) if code != canary), key=lambda code: counts[code])
    return (classes[canary], classes[other]), (canary, other)


def least_direction(others: Any) -> np.ndarray:
    """Return the unit vector in whose direction the records vary least: the last right-singular vector.

    Parameters
    ----------
    others : ndarray, CSR or CSC of shape (m, n_features)
        Records other than the canary.

    Returns
    -------
    ndarray of shape (1, n_features)
        The vector; any unit vector if all records are zero.
    """
    moments = others.T @ others
    _, vectors = np.linalg.eigh(moments.toarray() if sparse.issparse(moments) else moments)
    return vectors[:, :1].T.astype(np.float64)


def random_directions(n_canaries: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Return random unit vectors; they are orthogonal if there are at most as many as features.

    Parameters
    ----------
    n_canaries, n_features : int
        Shape.
    rng : Generator
        Random generator.

    Returns
    -------
    ndarray of shape (n_canaries, n_features)
        Rows of norm 1.
    """
    rows = rng.normal(size=(n_canaries, n_features))
    if n_canaries <= n_features:
        return np.linalg.qr(rows.T)[0].T
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _with_first_rows(X: Any, rows: np.ndarray) -> Any:
    if sparse.issparse(X):
        return sparse.vstack([sparse.csr_array(rows, dtype=X.dtype), X[len(rows) :]], format=X.format)
    X = X.copy()
    X[: len(rows)] = rows
    return X
