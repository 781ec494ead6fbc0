"""Tables with many features, the balls that their best coefficients lie in, and the least loss over such a ball.

Made-up records have an entry of -1 or 1 per column ("signs"), or are like bags of words: 40 entries of the same size, in rows of
norm 1 ("words"). Ten columns count, or all of them ("spread"); the log-odds of classes have a variance of 2.5 each time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from benchmarks.tables import data_directory, existing
from skdp.constraints import L1Ball, L2Ball

__all__ = ["POPULATIONS", "Wide", "draw_table", "mean_loss", "minimum", "product", "reuters"]

LISTS, COUNTED = 40, 10  # words of a record, and columns whose coefficients are not 0
N_TEST = 5000
NOISE = 0.1  # of targets
LARGE = 10**8  # number of cells above which a dense table is stored in bytes
BLOCK = 1000  # rows that are cast to float64 at a time
CHECKED = 10  # number of steps between two computations of the gap
POWER_STEPS = 30


@dataclass(frozen=True)
class Wide:
    """A table, and what is publicly known of it.

    Parameters
    ----------
    X, X_test : ndarray or CSR of shape (n, p)
        Records.
    y, y_test : ndarray of shape (n,)
        Labels 0 and 1, or targets in [-1, 1].
    task : {"classification", "regression"}
        What is to be predicted.
    feature_bound, data_norm : float
        Bounds of the entries and of the norm of a row.
    radii : dict
        Radius of the l1 ball and of the l2 ball, "l1" and "l2": the norms of the coefficients that made the table.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    task: str
    feature_bound: float
    data_norm: float
    radii: dict[str, float]


@dataclass(frozen=True)
class Population:
    """A population of records.

    Parameters
    ----------
    rows : callable
        From a number of records, of columns, and a generator.
    coef : callable
        From a number of columns.
    bounds : callable
        From a number of columns to a bound of the entries and one of the norm of a row.
    task : {"classification", "regression"}, default="classification"
        Labels of a logistic model, or targets of a linear one.
    """

    rows: Callable[[int, int, np.random.Generator], Any]
    coef: Callable[[int], np.ndarray]
    bounds: Callable[[int], tuple[float, float]]
    task: str = "classification"

    def draw(self, n_samples: int, n_features: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """Return records and targets."""
        X, coef = self.rows(n_samples, n_features, rng), self.coef(n_features)
        used = np.flatnonzero(coef)
        scores = product(X[:, used] if used.size < n_features else X, coef[used])
        if self.task == "regression":
            return X, (scores + NOISE * rng.standard_normal(n_samples)).clip(-1, 1)
        return X, (rng.random(n_samples) < expit(scores)).astype(int)


def signs(n_samples: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Independent entries of -1 and 1; in bytes where they are many, as double precision would take gigabytes."""
    drawn = 2 * rng.integers(0, 2, (n_samples, n_features), dtype=np.int8) - 1
    return drawn if drawn.size > LARGE else drawn.astype(np.float64)


def words(n_samples: int, n_features: int, rng: np.random.Generator) -> Any:
    """One word of each of 40 lists: the first in every second record, of the others the t-th in proportion to 1/t."""
    chances = 1 / np.arange(1, n_features // LISTS)
    chances = np.concatenate([[0.5], 0.5 * chances / chances.sum()])
    columns = np.sort(LISTS * rng.choice(chances.size, (n_samples, LISTS), p=chances) + np.arange(LISTS), axis=1)
    stored = np.full(columns.size, 1 / math.sqrt(LISTS)), columns.ravel(), np.arange(0, columns.size + 1, LISTS)
    return sparse.csr_array(stored, shape=(n_samples, LISTS * chances.size))


def counted(size: float) -> Callable[[int], np.ndarray]:
    """Coefficients of the first ten columns, of this size and alternating sign."""
    return lambda n_features: np.where(np.arange(n_features) < COUNTED, alternating(size, n_features), 0.0)


def spread(n_features: int) -> np.ndarray:
    """Return nonzero coefficients of all columns, with the norm of ten coefficients of 1/2."""
    return alternating(math.sqrt(COUNTED / n_features) / 2, n_features)


def alternating(size: float, n_features: int) -> np.ndarray:
    """Numbers of one size, whose sign alternates."""
    return size * (-1.0) ** np.arange(n_features)


def sign_bounds(n_features: int) -> tuple[float, float]:
    """Bounds of rows of signs."""
    return 1.0, math.sqrt(n_features)


POPULATIONS = {
    "signs": Population(signs, counted(0.5), sign_bounds),
    "words": Population(words, counted(math.sqrt(LISTS)), lambda n_features: (1 / math.sqrt(LISTS), 1.0)),
    "spread": Population(signs, spread, sign_bounds),
    "lasso": Population(signs, counted(0.1), sign_bounds, "regression"),
}


def draw_table(name: str, n_samples: int, n_features: int) -> Wide:
    """Return a training and a test table, always the same ones.

    Parameters
    ----------
    name : str
        Out of ``POPULATIONS``.
    n_samples, n_features : int
        Shape of the training table.

    Returns
    -------
    Wide
        The table, with radii by which the coefficients are just inside of the balls.
    """
    population, coef = POPULATIONS[name], POPULATIONS[name].coef(n_features)
    X, y = population.draw(n_samples, n_features, np.random.default_rng((0, n_samples, n_features)))
    X_test, y_test = population.draw(N_TEST, n_features, np.random.default_rng((1, n_samples, n_features)))
    radii = {"l1": float(np.abs(coef).sum()), "l2": float(np.linalg.norm(coef))}
    return Wide(X, y, X_test, y_test, population.task, *population.bounds(n_features), radii)


def reuters(radius: float) -> Wide:
    """Return news about foreign exchange among others (Reuters-21578, published split), with a column of ones.

    One record in fourteen has the label 1, and "accmd" and "frank_wolfe" have no intercept: the constant is a column like the
    others.

    Parameters
    ----------
    radius : float
        Of both balls.

    Returns
    -------
    Wide
        Rows of norm 1: texts of norm 1 and the constant, over the root of 2.
    """
    with np.load(existing(data_directory() / "reuters_money_fx_csr.npz")) as stored:
        X = sparse.csr_array((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        y, train = stored["y"].astype(int), stored["split"] == "train"
    size = 1 / math.sqrt(2)
    X = sparse.csr_array(sparse.hstack([X.astype(np.float64), np.ones((len(y), 1))], format="csr") * size)
    return Wide(X[train], y[train], X[~train], y[~train], "classification", size, 1.0, {"l1": radius, "l2": radius})


def product(X: Any, coef: np.ndarray) -> np.ndarray:
    """Return ``X @ coef`` without a copy of a dense table in float64."""
    if sparse.issparse(X):
        return X @ coef
    return np.concatenate([X[start : start + BLOCK].astype(np.float64, copy=False) @ coef for start in range(0, len(X), BLOCK)])


def mean_loss(raw: np.ndarray, y: np.ndarray, task: str) -> float:
    """Return the mean logistic loss, or half the mean squared error, of raw predictions."""
    if task == "regression":
        return float(np.mean(np.square(raw - y)) / 2)
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -raw, raw))))


def minimum(table: Wide, ball: L1Ball | L2Ball, gap: float, most: int) -> tuple[np.ndarray, float]:
    r"""Return coefficients in a ball, and by how much their mean training loss is above the least at most.

    Accelerated projected gradient steps, which start anew where the loss would rise. The gap is
    :math:`\max_v \langle \nabla F(w), w - v \rangle` over the ball, which by convexity is at least :math:`F(w) - \min F`.

    Parameters
    ----------
    table : Wide
        Records.
    ball : L1Ball or L2Ball
        Set of coefficients.
    gap : float
        At which to stop.
    most : int
        Steps after which to stop.

    Returns
    -------
    coef : ndarray of shape (p,)
        In the ball.
    gap : float
        Bound on the excess.
    """
    X = table.X if sparse.issparse(table.X) else table.X.astype(np.float32)
    step = 1 / curvature(X, table.task)
    coef = before = np.zeros(X.shape[1])
    raw = raw_before = np.zeros(X.shape[0])
    age = 1.0
    for number in range(most):
        if number % CHECKED == 0 and distance(X, raw, table, coef, ball) <= gap:
            break
        following = (1 + math.sqrt(1 + 4 * age * age)) / 2
        ahead = (age - 1) / following
        point, gradient = coef + ahead * (coef - before), slope(X, raw + ahead * (raw - raw_before), table)
        before, raw_before, age = coef, raw, following
        coef = ball.project(point - step * gradient)
        raw = times(X, coef)
        if gradient @ (coef - before) > 0:
            age = 1.0
    return coef, distance(X, raw, table, coef, ball)


def distance(X: Any, raw: np.ndarray, table: Wide, coef: np.ndarray, ball: L1Ball | L2Ball) -> float:
    """Bound on the excess of coefficients in a ball, whose raw predictions are given."""
    gradient = slope(X, raw, table)
    return float(gradient @ (coef - ball.linear_minimizer(gradient)))


def slope(X: Any, raw: np.ndarray, table: Wide) -> np.ndarray:
    """Gradient of the mean loss at raw predictions."""
    residual = raw - table.y if table.task == "regression" else expit(raw) - table.y
    return times(X.T, residual / len(table.y))


def curvature(X: Any, task: str) -> float:
    """Bound on the second derivative of the mean loss, to two per cent: the largest eigenvalue of ``X.T @ X / n``."""
    vector = np.random.default_rng(0).standard_normal(X.shape[1])
    size = 1.0
    for _ in range(POWER_STEPS):
        vector = times(X.T, times(X, vector / np.linalg.norm(vector))) / X.shape[0]
        size = float(np.linalg.norm(vector))
    return 1.05 * size * (1.0 if task == "regression" else 0.25)


def times(X: Any, vector: np.ndarray) -> np.ndarray:
    """Product in the precision of the table."""
    return np.asarray(X @ vector.astype(X.dtype), dtype=np.float64)
