"""Checks a saddle problem of your own on generated data."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import check_integer, check_number
from skdp.minimax._saddle_problem import SaddleProblem
from skdp.minimax._validation import SIDES, check_numbers, check_sizes, dense_factors, gradients, not_finite, variables
from skdp.privacy.data.gradient_factors import Factors
from skdp.privacy.data.kernels import Batch
from skdp.privacy.errors import shown

# Largest number of records that are also evaluated alone, in batches of one. A choice that bounds the time of the check.
MOST_ALONE = 256


def check_saddle(
    problem: SaddleProblem,
    X: Any,
    y: Any = None,
    *,
    n_trials: int = 20,
    step: float = 1e-3,
    tolerance: float = 1e-3,
    random_state: int = 0,
) -> None:
    """Check a saddle problem on generated data: shapes, independence of records, and gradients.

    The guarantee of a fit needs the second: the factors of a record must not depend, not even in the last bit, on its place in
    the batch or on other records. The check compares random batches, so a problem that passes may still be wrong; a problem that
    fails is wrong.

    Parameters
    ----------
    problem : SaddleProblem
        Problem to check. If it has a method ``value(batch, primal, dual)``, which returns f of every record as an array of shape
        (m,), the gradients are compared with finite differences of f. Without it, the values of the gradients are not checked.
    X : array-like, CSR or CSC of shape (n_samples, n_features)
        Generated rows: at least two, better tens or hundreds.
    y : array-like of shape (n_samples,) or None, default=None
        Class numbers or targets. None is zeros.
    n_trials : int, default=20
        Number of random batches, and of directions of finite differences.
    step : float, default=1e-3
        Step of finite differences.
    tolerance : float, default=1e-3
        Largest difference between a slope and its finite difference, over the largest slope of a record.
    random_state : int, default=0
        Seed of the points and batches.

    Raises
    ------
    TypeError, ValueError
        If a check fails or a parameter is out of its range; the message says which, and what is expected.

    Notes
    -----
    **Privacy.** Use generated data only: error messages depend on single records.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.minimax import AUCSaddle, check_saddle
    >>> from skdp.scorers import LinearScorer
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> check_saddle(AUCSaddle(LinearScorer(3), positive_rate=0.3), X, np.arange(50) % 2)
    """
    check_integer("n_trials", n_trials, minimum=1)
    check_number("step", step, above=0.0)
    check_number("tolerance", tolerance, above=0.0)
    X, targets = _table(problem, X, y)
    rng = np.random.default_rng(random_state)
    check_sizes(problem)
    check_numbers(problem, 100.0, 10)
    start = variables(problem, problem.start(np.random.default_rng(rng.integers(2**32))), "start")
    points = [tuple(side + spread * rng.normal(size=side.size) for side in start) for spread in (0.0, 0.1, 1.0)]
    _check_public(problem, *points[-1])
    for primal, dual in points:
        _check_factors(problem, X, targets, primal, dual)
        _check_alone(problem, X, targets, primal, dual, rng, n_trials)
        if hasattr(problem, "value") and primal is not points[0][0]:  # the start may be on a kink for all records
            _check_slopes(problem, X, targets, (primal, dual), rng, n_trials, step, tolerance)


def _table(problem: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Rows in the form that a fit passes on, and targets."""
    if not isinstance(problem, SaddleProblem):
        made = f"an object that it makes, such as {problem.__name__}(...)" if isinstance(problem, type) else "a SaddleProblem"
        raise TypeError(f"problem={shown(problem)}; expected {made}.")
    X = X.tocsr().astype(np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64, order="C")
    targets = np.zeros(X.shape[:1]) if y is None else np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] < 2 or targets.shape != X.shape[:1]:
        raise ValueError(f"X has the shape {X.shape} and y {targets.shape}; expected at least two rows, and a target for each.")
    return X, targets


def _check_public(problem: SaddleProblem, primal: np.ndarray, dual: np.ndarray) -> None:
    """Check that projecting twice changes nothing, and that public gradients have the right sizes."""
    inside = variables(problem, problem.project(primal.copy(), dual.copy()), "project")
    if not all(np.allclose(one, other) for one, other in zip(inside, problem.project(*inside), strict=True)):
        raise ValueError("project moves what it has projected; expected a projection to stay.")
    variables(problem, problem.public_gradient(primal, dual), "public_gradient")


def _check_factors(problem: SaddleProblem, X: Any, y: np.ndarray, primal: np.ndarray, dual: np.ndarray) -> None:
    """Check types, sizes and finite numbers, for one record and for many."""
    for kept in (slice(None), slice(1)):
        for side, parts in zip(SIDES, gradients(problem, Batch(X[kept], y[kept]), primal, dual), strict=True):
            lost = not_finite(parts)
            if lost.any():
                raise ValueError(
                    f"The {side} gradient of {lost.sum()} of {lost.size} records is NaN or infinite, which a fit takes for 0; "
                    "expected finite numbers."
                )


def _check_alone(
    problem: SaddleProblem, X: Any, y: np.ndarray, primal: np.ndarray, dual: np.ndarray, rng: np.random.Generator, n_trials: int
) -> None:
    """Compare every record's factors in random batches, to the last bit, with those in the batch of all."""
    whole, m = _bits(problem, X, y, primal, dual), len(y)
    batches = [rng.choice(m, int(rng.integers(1, m)), replace=False) for _ in range(n_trials)]
    for chosen in [*rng.permutation(m)[:MOST_ALONE, None], *batches]:
        size = len(chosen)
        for record, found in zip(chosen, _bits(problem, X[chosen], y[chosen], primal, dual), strict=True):
            if found != whole[record]:
                raise ValueError(
                    f"The factors of a record differ between a batch of {size} and one of {m} records; expected them to be "
                    "worked out from that record alone, to the last bit: by functions of single entries and "
                    "skdp.minimax.products, not by rows @ coef or means over the batch."
                )


def _check_slopes(
    problem: Any,
    X: Any,
    y: np.ndarray,
    point: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    n_trials: int,
    step: float,
    tolerance: float,
) -> None:
    """Compare slopes of every record's value, in random directions, with those that follow from the factors."""
    batch = problem.read(Batch(X, y))
    for number, parts in enumerate(gradients(problem, Batch(X, y), *point)):
        for _ in range(n_trials):
            direction = rng.normal(size=point[number].size)
            direction /= np.linalg.norm(direction)
            values = []
            for way in (step, -step):
                moved = [side + way * direction if side is point[number] else side for side in point]
                values.append(_values(problem, batch, *moved))
            weighted = direction * problem.dual_weights if SIDES[number] == "dual" else direction
            slopes, stated = (values[0] - values[1]) / (2 * step), _slopes(parts, weighted)
            largest = float(np.abs(slopes).max())
            if not np.median(np.abs(slopes - stated)) <= tolerance * max(largest, 1e-12):  # kinks may be off
                raise ValueError(
                    f"The {SIDES[number]} gradient differs from finite differences of value by more than tolerance="
                    f"{tolerance:g} of the largest, for half of the records; expected the gradient of value, in the order of "
                    "Factors.total."
                )


def _values(problem: Any, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """Values of f, one per record."""
    values = problem.value(batch, primal, dual)
    if np.shape(values) != batch.targets.shape:
        raise ValueError(f"value gives the shape {np.shape(values)}; expected one number per record, {batch.targets.shape}.")
    return np.asarray(values)


def _bits(problem: SaddleProblem, X: Any, y: np.ndarray, primal: np.ndarray, dual: np.ndarray) -> list[list[bytes]]:
    """Bytes of each record's rows of all factors."""
    matrices = dense_factors(chain(*gradients(problem, Batch(X, y), primal, dual)))
    return [[row.tobytes() for row in rows] for rows in zip(*matrices, strict=True)]


def _slopes(parts: Sequence[Factors], direction: np.ndarray) -> np.ndarray:
    """Inner product of every record's gradient with a direction."""
    total, first = np.zeros(parts[0].left.shape[0]), 0
    for part in parts:
        k, p = part.left.shape[1], part.right.shape[1]
        total += np.einsum("ij,ij->i", part.left, part.right @ direction[first : first + k * p].reshape(k, p).T)
        if part.constant:
            total += part.constant * (part.left @ direction[first + k * p : first + part.size])
        first += part.size
    return total
