"""Private fits of a user-defined saddle problem."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp._data_validation import Facts, TargetReader
from skdp._progress import with_callbacks
from skdp._validation import check_number, shown
from skdp.estimators._base import DPEstimator
from skdp.estimators._plan import Plan
from skdp.estimators._task import Task
from skdp.estimators._unsupported import complete_estimator
from skdp.minimax import Batch, Factors, SaddleProblem
from skdp.minimax._validation import SIDES, check_numbers, check_sizes, dense_factors, gradients, not_finite, variables
from skdp.privacy.data.kernels import fixed
from skdp.privacy.errors import silent
from skdp.privacy.queries import JointGradient, PrimalDifference
from skdp.solvers import MinimaxProblem, NoLoss, Problem, Solver, SolverResult

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


class MinimaxTask(Task):
    """Task of a saddle problem of the user."""

    saddle: Any

    learns_by_default = False
    bounding: ClassVar[tuple[str, ...]] = ("data_norm",)

    def check_parameters(self) -> None:
        super().check_parameters()
        if not isinstance(self.saddle, SaddleProblem) and not callable(self.saddle):
            raise TypeError(
                f"saddle={shown(self.saddle)}; expected a SaddleProblem, or what makes one of the number of features."
            )

    def _saddle(self, n_features: int) -> SaddleProblem:
        saddle = self.saddle if isinstance(self.saddle, SaddleProblem) else self.saddle(n_features)
        if not isinstance(saddle, SaddleProblem):
            raise TypeError(f"saddle({n_features}) returned {shown(saddle)}; expected a SaddleProblem.")
        check_sizes(saddle)
        return saddle

    def target_reader(self) -> TargetReader:
        return TargetReader(0.0, 1.0, bounded=False, optional=True)

    def problem_of(self, facts: Facts) -> Problem:
        n_samples, n_features = facts.n_samples, facts.n_features
        saddle = self._saddle(n_features)
        problem = MinimaxProblem(
            n_samples=n_samples,
            n_features=n_features,
            loss=NoLoss(saddle.name),
            budget=self.budget(n_samples),
            data_norm=math.sqrt(n_features) if self.data_norm is None else float(self.data_norm),
            intercept_scaling=0.0,
            saddle=saddle,
        )
        try_saddle(problem, sparse_rows=facts.storage != "dense")
        return problem

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        return {"primal_": result.coef[:, 0].copy(), "dual_": result.dual}

    def assumed_of_y(self) -> str:
        return "every target, where there are any, is a finite number"


@complete_estimator
@dataclass(eq=False, repr=False)
class DPMinimax(DPEstimator):
    r"""Solve a user-defined saddle problem with differential privacy.

    .. math:: \min_w \max_v \frac1n \sum_i f(w, v; x_i, y_i) + r(w, v)

    The problem defines the gradients of f, record by record, as products (see `skdp.minimax.SaddleProblem`). The package does the
    clipping, the sums, the noise and the accounting.

    Parameters
    ----------
    saddle : SaddleProblem or callable
        The problem, or a function that returns it for a given number of features.
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 (pure epsilon-DP) is not supported.
    solver : "auto", str or Solver, default="auto"
        Algorithm: "sgda", which "auto" takes, "privatediff", or a solver object such as ``PrivateDiff(200, batch_size=512)``.
    alpha : float or None, default=None
        Strength of an L2 penalty on the primal variables. None means 0.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X. The fit scales longer rows down to it. None means
        ``sqrt(n_features)``: rows of features in [-1, 1] never exceed it. It must not be computed from the data.

    Attributes
    ----------
    primal_ : ndarray of shape (n_primal,)
        Released primal variables w.
    dual_ : ndarray of shape (n_dual,)
        Released dual variables v.
    n_iter_ : int
        Number of primal steps, which is public.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact or numerical accounting.
    privacy_report_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range and for a problem that fails on synthetic records, before anything
        is released.

    See Also
    --------
    skdp.minimax.SaddleProblem : What a problem must define.
    skdp.solvers.SGDA : The solver "sgda".
    skdp.solvers.PrivateDiff : The solver "privatediff".

    Notes
    -----
    Before anything is charged, ``fit`` runs the problem once on synthetic records with the number of features and the storage of
    the table. This finds most errors in it, such as gradients of a record that depend on other records.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency, if the problem meets three conditions. Its methods compute a record's gradients only from that record, the
    point and public constants; they store nothing that they see; and they never raise for an individual record: a failing fit is
    observable, and no noise hides it. Gradients that are not finite do no harm. The report names the problem as unreviewed for
    these reasons. The following are public: the shape of X, its column names, the problem, all parameters and the number of
    steps. The guarantee assumes that X and y are finite. It treats one record as one person. Two fits spend twice the budget.

    References
    ----------
    .. [1] R. Zhang et al., "Improved Rates of Differentially Private Nonconvex-Strongly-Concave Minimax Optimization", AAAI 2025.

    Examples
    --------
    The mean of the features as a saddle point, ``f(w, v; x) = v @ (x - w) - v @ v / 2``:

    >>> import numpy as np
    >>> from skdp import DPMinimax
    >>> from skdp.minimax import Factors, SaddleProblem
    >>> class Mean(SaddleProblem):
    ...     name = "mean"
    ...
    ...     def __init__(self, n_features):
    ...         self.n_primal = self.n_dual = n_features
    ...
    ...     def at(self, batch, primal, dual):
    ...         ones = np.ones((len(batch.targets), 1))
    ...         left, moved = np.repeat(-dual[None], len(ones), axis=0), batch.rows - primal
    ...
    ...         class Point:
    ...             def primal(self):
    ...                 return [Factors(left, ones)]
    ...
    ...             def dual(self):
    ...                 return [Factors(moved - dual, ones)]
    ...
    ...         return Point()
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(10000, 2))
    >>> model = DPMinimax(Mean, epsilon=1.0).fit(X)
    >>> model.primal_.shape
    (2,)
    """

    _task_class = MinimaxTask

    _refused: ClassVar[dict[str, str]] = {
        "classes": "targets are numbers here; encode labels by a public rule first",
        **dict.fromkeys(
            ("feature_bounds", "bounds"), "data_norm bounds the length of a row; bounds of features are the problem's"
        ),
        "loss": "the saddle problem says what is minimised and maximised",
        "schema": "the problem sees numbers; make_pipeline(skdp.preprocessing.from_schema(schema), DPMinimax(data_norm=1)) takes "
        "the table that the schema describes",
        "target_bounds": "the problem sees targets as they are; let it clip them itself, by public bounds",
    }

    saddle: "SaddleProblem | Callable[[int], SaddleProblem]"
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    solver: "str | Solver" = "auto"
    alpha: float | None = None
    data_norm: float | None = None
    random_state: Any = None
    verbose: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, persons: Any = None, **unsupported: Any) -> Any:
        """Solve the problem, spending the budget once.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            {records}
        y : array-like of shape (n_samples,) or None, default=None
            Targets, finite numbers, which the problem sees unchanged. None means zeros.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, with ``privacy_unit="person"``: an id per row, integers or texts, or the name of a column of a data
            frame, which is no feature then. Ids are private, and nothing keeps them.
        **unsupported : dict
            Refused: ``sample_weight`` and other arguments raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. An interrupted fit leaves it unchanged.
        """
        with silent():
            return self._fit(X, y, unsupported, persons=persons)
