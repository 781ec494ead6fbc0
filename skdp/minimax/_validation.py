"""Validates the attributes and results of a saddle problem, with messages for its author."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import check_integer, check_number
from skdp.minimax._saddle_problem import SaddleProblem
from skdp.privacy.data.gradient_factors import Factors, n_entries
from skdp.privacy.data.kernels import Batch
from skdp.privacy.errors import shown

SIDES = ("primal", "dual")


def variables(problem: SaddleProblem, pair: Any, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both parts of a method's result, after a check.

    Parameters
    ----------
    problem : SaddleProblem
        Problem that has the method.
    pair : object
        Result of the method.
    method : str
        Name of the method.

    Returns
    -------
    primal : ndarray of shape (n_primal,)
        Finite floats.
    dual : ndarray of shape (n_dual,)
        The same.

    Raises
    ------
    TypeError, ValueError
        If the result is no pair, or has other shapes or types.
    """
    expected = f"expected a pair of finite arrays of floats of shapes ({problem.n_primal},) and ({problem.n_dual},)"
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"{method} returned {shown(pair)}; {expected}.")
    for part, side, size in zip(pair, SIDES, (problem.n_primal, problem.n_dual), strict=True):
        if not isinstance(part, np.ndarray):
            raise TypeError(f"{method} returned {shown(part)} for the {side} variables; {expected}.")
        if part.shape != (size,) or part.dtype.kind != "f" or not np.isfinite(part).all():
            finite = "" if part.dtype.kind != "f" or np.isfinite(part).all() else " that is not finite"
            raise ValueError(f"{method} returned an array of {part.dtype} of shape {part.shape}{finite}; {expected}.")
    return pair[0], pair[1]


def check_sizes(problem: SaddleProblem) -> None:
    """Raise TypeError or ValueError unless numbers of variables and batch size are positive.

    Parameters
    ----------
    problem : SaddleProblem
        Problem to check.
    """
    for name in ("n_primal", "n_dual"):
        check_integer(f"{type(problem).__name__}.{name}", getattr(problem, name, None), minimum=1)
    check_number(f"{type(problem).__name__}.batch_size", problem.batch_size, minimum=1.0, optional=True)


def check_numbers(problem: SaddleProblem, signal: float, n_steps: int) -> None:
    """Raise TypeError or ValueError unless clip norms and steps are positive numbers.

    Parameters
    ----------
    problem : SaddleProblem
        Problem to check.
    signal : float
        Signal-to-noise ratio for its ``step_sizes``.
    n_steps : int
        Number of steps for its ``step_sizes``.
    """
    for name in ("primal_clip_norm", "dual_clip_norm", "divisor"):
        check_number(name, getattr(problem, name), above=0.0)
    check_number("difference_slope", problem.difference_slope, minimum=0.0)
    weights = np.asarray(problem.dual_weights)
    if weights.shape not in ((), (problem.n_dual,)) or weights.dtype.kind not in "iuf" or not np.isfinite(weights).all():
        raise ValueError(f"dual_weights={shown(problem.dual_weights)}; expected a finite number, or one per dual variable.")
    steps = problem.step_sizes(signal, n_steps)
    if not isinstance(steps, (tuple, list)) or len(steps) != 2:
        raise TypeError(f"step_sizes returned {shown(steps)}; expected two numbers, the steps of the descent and of the ascent.")
    for name, step in zip(("descent", "ascent"), steps, strict=True):
        check_number(f"step of the {name}", step, above=0.0)


def gradients(
    problem: SaddleProblem, batch: Batch, primal: np.ndarray, dual: np.ndarray
) -> tuple[Sequence[Factors], Sequence[Factors]]:
    """Return the gradients of both sides of some records, after a check that they are sequences of factors.

    Parameters
    ----------
    problem : SaddleProblem
        Problem to check.
    batch : Batch
        Generated records.
    primal : ndarray of shape (n_primal,)
        Primal variables of the point.
    dual : ndarray of shape (n_dual,)
        Dual variables of the point.

    Returns
    -------
    primal : sequence of Factors
        At least one.
    dual : sequence of Factors
        At least one.

    Raises
    ------
    TypeError, ValueError
        If they are not sequences of factors, or have other types or shapes.
    """
    point = problem.at(problem.read(batch), primal, dual)
    sides = []
    for side in SIDES:
        if not callable(getattr(point, side, None)):
            raise TypeError(f"at returned {_kind(point)}; expected an object with methods primal() and dual().")
        parts = getattr(point, side)()
        if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(part, Factors) for part in parts):
            raise TypeError(f"{side}() of what at returned gives {_kind(parts)}; expected a list of skdp.minimax.Factors.")
        _check_parts(parts, side, len(batch.targets), getattr(problem, f"n_{side}"))
        sides.append(parts)
    return sides[0], sides[1]


def _check_parts(parts: Sequence[Factors], side: str, m: int, size: int) -> None:
    """Raise TypeError or ValueError unless m records have gradients of the stated size."""
    matrices: list[Any] = [matrix for part in parts for matrix in (part.left, part.right)]
    for matrix in matrices:
        if not (type(matrix) is np.ndarray or (sparse.issparse(matrix) and matrix.format == "csr")):
            raise TypeError(f"A factor of the {side} gradient is a {type(matrix).__name__}; expected an array, or CSR.")
        if matrix.dtype != np.float64 or matrix.ndim != 2 or matrix.shape[0] != m:
            raise ValueError(
                f"A factor of the {side} gradient of {m} records is {matrix.dtype} of shape {matrix.shape}; expected float64 of "
                f"shape ({m}, number of entries): one row per record."
            )
    if n_entries(parts) != size:
        raise ValueError(f"The {side} gradient has {n_entries(parts)} entries; expected n_{side}={size}.")


def _kind(value: Any) -> str:
    """Type of a value, with the types of its entries."""
    inside = sorted({type(part).__name__ for part in value}) if isinstance(value, (list, tuple)) else []
    return f"a {type(value).__name__}" + (f" of {', '.join(inside)}" if inside else "")


def not_finite(parts: Sequence[Factors]) -> np.ndarray:
    """Tell which records have gradients with NaN or infinite entries.

    Parameters
    ----------
    parts : sequence of Factors
        Factors of the gradients of m records.

    Returns
    -------
    ndarray of bool of shape (m,)
        True where an entry is not finite: in a fit such a gradient counts as 0.
    """
    return np.asarray(~np.all([np.isfinite(matrix).all(axis=1) for matrix in dense_factors(parts)], axis=0))


def dense_factors(parts: Iterable[Factors]) -> list[np.ndarray]:
    """Return both factors of every part of some gradients, as arrays.

    Parameters
    ----------
    parts : iterable of Factors
        Factors of the gradients of m records.

    Returns
    -------
    list of ndarray
        With a row per record.
    """
    matrices: list[Any] = [matrix for part in parts for matrix in (part.left, part.right)]
    return [matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix) for matrix in matrices]
