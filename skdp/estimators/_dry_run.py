"""Try a user's saddle problem on synthetic records, before anything is charged."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import check_number
from skdp.minimax import Batch, Factors, SaddleProblem
from skdp.minimax._validation import SIDES, check_numbers, dense_factors, gradients, not_finite, variables
from skdp.privacy.data.kernels import fixed
from skdp.privacy.queries import JointGradient, PrimalDifference
from skdp.solvers import MinimaxProblem

# Number of synthetic records: CELLS divided by the number of features, between FEWEST and MOST. A choice: more records are more
# likely to show rounding that depends on the position of a record, and cost more time.
FEWEST, MOST, CELLS = 9, 65, 2**18
AWAY = 0.1  # standard deviation of the step away from the start, where all gradients may be equal; a choice
DENSITY = 0.5  # share of nonzero entries in synthetic sparse rows; a choice

Point = tuple[np.ndarray, np.ndarray]
Sides = tuple[Sequence[Factors], Sequence[Factors]]


def try_saddle(problem: MinimaxProblem, sparse_rows: bool) -> None:
    """Raise TypeError or ValueError for a problem that fails on synthetic records; everything here is public.

    Parameters
    ----------
    problem : MinimaxProblem
        Public facts, with the problem.
    sparse_rows : bool
        Whether the rows are stored in CSR.
    """
    saddle = problem.saddle
    assert saddle is not None
    rng = np.random.default_rng(0)
    try:
        start, point = _points(saddle, problem, rng)
    except (TypeError, ValueError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{saddle!r}: {error}") from error
    rows = _made_up(problem, sparse_rows, rng)
    n_records = rows.shape[0]
    targets = fixed(np.arange(n_records) % 2.0)
    try:
        _compare(saddle, rows, targets, point)
        table: Any = _MadeUp(Batch(rows, targets))
        with np.errstate(all="ignore"):
            JointGradient(saddle, *point, 1.0, 1.0, 0.5).partial(table)
            PrimalDifference(saddle, *point, *start, 1.0, 0.0, 1.0).partial(table)
    except Exception as error:
        stored = "CSR" if sparse_rows else "dense"
        raise ValueError(
            f"{saddle!r} fails on {n_records} made-up records of {problem.n_features} features, {stored}: {error}"
        ) from error


def _points(saddle: SaddleProblem, problem: MinimaxProblem, rng: np.random.Generator) -> tuple[Point, Point]:
    """Return the problem's start and a point nearby, after checks of everything that needs no records."""
    check_numbers(saddle, problem.signal_to_noise if problem.budget.delta else math.inf, 100)  # no solver takes delta = 0
    start = variables(saddle, saddle.start(rng), "start")
    moved = [part + AWAY * rng.normal(size=part.size) for part in start]
    point = variables(saddle, saddle.project(*moved), "project")
    variables(saddle, saddle.public_gradient(*point), "public_gradient")
    for dual in (start[1], point[1]):
        check_number("primal_reach", saddle.primal_reach(dual), above=0.0)
    return start, point


@dataclass(frozen=True)
class _MadeUp:
    """The part of a table that queries of saddle problems use."""

    batch: Batch

    def batch_sum(self, terms: Callable[[Batch], np.ndarray], size: int) -> np.ndarray:
        return np.zeros(size) + terms(self.batch)


def _made_up(problem: MinimaxProblem, sparse_rows: bool, rng: np.random.Generator) -> Any:
    """Return synthetic records within the data norm, in the storage of the table."""
    rows = rng.normal(size=(min(max(FEWEST, CELLS // problem.n_features), MOST), problem.n_features))
    if sparse_rows:
        rows *= rng.random(rows.shape) < DENSITY
    rows *= problem.data_norm / max(float(np.linalg.norm(rows, axis=1).max()), 1e-300)
    return sparse.csr_array(rows) if sparse_rows else rows


def _compare(saddle: SaddleProblem, rows: Any, targets: np.ndarray, point: Point) -> None:
    """Raise ValueError unless every record has the same factors alone and among others, to the last bit."""
    whole = _gradients(saddle, rows, targets, point)
    for side, parts in zip(SIDES, whole, strict=True):
        if not_finite(parts).all():
            raise ValueError(f"the {side} gradients of all records are NaN or infinite; expected finite numbers.")
    together = dense_factors(chain(*whole))
    for place in range(len(targets)):
        alone = dense_factors(chain(*_gradients(saddle, rows[place : place + 1], targets[place : place + 1], point)))
        if len(alone) != len(together) or any(
            not np.array_equal(one[0], all_of[place], equal_nan=True) for one, all_of in zip(alone, together, strict=True)
        ):
            raise ValueError(
                "the gradients of a record are not the same, to the last bit, alone and among others; "
                "expected functions of single entries, and skdp.minimax.products in place of @."
            )


def _gradients(saddle: SaddleProblem, rows: Any, targets: np.ndarray, point: Point) -> Sides:
    """Return the gradients of both sides; an overflow is not an error."""
    with np.errstate(all="ignore"):
        return gradients(saddle, Batch(rows, targets), *point)
