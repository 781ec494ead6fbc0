"""Private fits of a saddle problem that the user brings."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from skdp._data_validation import Facts, read_regression_table
from skdp._progress import with_callbacks
from skdp._validation import shown
from skdp.estimators._base import DPEstimator
from skdp.estimators._dry_run import try_saddle
from skdp.estimators._plan import Plan
from skdp.estimators._unsupported import explain_refusals
from skdp.minimax import SaddleProblem
from skdp.minimax._validation import check_sizes
from skdp.privacy.budget import Budget
from skdp.solvers import MinimaxProblem, NoLoss, Problem, Solver, SolverResult

__all__ = ["DPMinimax"]


class DPMinimax(DPEstimator):
    r"""The variables of a saddle problem of one's own, learnt with differential privacy.

    .. math:: \min_w \max_v \frac1n \sum_i f(w, v; x_i, y_i) + r(w, v)

    The problem says what the gradients of f are, record by record, as products (see `skdp.minimax.SaddleProblem`); clipping,
    sums, noise and accounting are this package's.

    Parameters
    ----------
    saddle : SaddleProblem or callable
        The problem, or what makes it of the number of features.
    epsilon : float, default=1.0
        Privacy parameter, positive: smaller is more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; pure epsilon-DP, 0, is not supported.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables the guarantee makes indistinguishable: those that differ in one record replaced by any other, or in one
        record replaced by a null record that contributes nothing (what DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: "sgda", which "auto" takes, "privatediff", or a solver object such as ``PrivateDiff(200, batch_size=512)``.
    alpha : float or None, default=None
        Strength of an L2 penalty on the primal variables. None is 0.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X; longer rows are scaled down to it during the fit.
        None means ``sqrt(n_features)``, which features in [-1, 1] never exceed. Must not be computed from the data.
    random_state : int, Generator, RandomState or None, default=None
        Seed of choices that need no secrecy: initial weights, public blocks, the order of a single pass. It never seeds the
        noise, which comes from the operating system's cryptographic generator.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line per release.

    Attributes
    ----------
    primal_ : ndarray of shape (n_primal,)
        Released primal variables w.
    dual_ : ndarray of shape (n_dual,)
        Released dual variables v.
    n_iter_ : int
        Number of primal steps, public.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact or numerical accounting.
    privacy_report_ : PrivacyReport
        The statement of guarantees.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, where X had them.

    Raises
    ------
    TypeError, ValueError
        From ``fit``, for parameters or data out of range, or for a problem that fails on made-up records, before anything is
        released.

    See Also
    --------
    skdp.minimax.SaddleProblem : What a problem has to say.
    skdp.solvers.SGDA : The solver "sgda".
    skdp.solvers.PrivateDiff : The solver "privatediff".

    Notes
    -----
    Before anything is paid for, the problem runs once on made-up records of the shape and storage of the table, which finds most
    errors in it, among them gradients of a record that depend on the other ones.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force, if the problem keeps to three things: its methods work out a record's gradients from that record, the
    point and public constants alone, keep nothing of what they see, and fail for no record, whatever it is: that a fit ends with
    an error is seen, and no noise hides it. Numbers that are not finite do no harm. The report names it as unreviewed for these
    reasons. Public are the shape of X, its column names, the problem, all parameters, and the number of steps;
    that X and y are finite is assumed. One record is taken to be one person. Two fits spend twice.

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

    feature_bounds: Any = None  # what other estimators have as parameters
    clip_norm: Any = None
    fit_intercept: Any = False
    intercept_scaling: Any = 1.0
    _refused: ClassVar[dict[str, str]] = {
        "classes": "targets are numbers here; encode labels by a public rule first",
        "feature_bounds": "data_norm bounds the length of a row; bounds of features are the problem's",
        "loss": "the saddle problem says what is minimised and maximised",
        "target_bounds": "the problem sees targets as they are; let it clip them itself, by public bounds",
    }

    @explain_refusals
    def __init__(
        self,
        saddle: "SaddleProblem | Callable[[int], SaddleProblem]",
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        alpha: float | None = None,
        data_norm: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.saddle = saddle
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.alpha = alpha
        self.data_norm = data_norm
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> Any:
        """Solve the problem, spending the budget once.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records; a data frame's column names are kept. Not copied where its dtype is an integer, float32 or float64.
        y : array-like of shape (n_samples,) or None, default=None
            Targets, finite numbers, which the problem sees as they are. None is zeros.
        **unsupported : dict
            Refused: ``sample_weight`` and other arguments raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. A fit that is interrupted leaves it as it was.
        """
        return self._fit(X, y, unsupported)

    def _check_parameters(self) -> None:
        super()._check_parameters()
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

    def _read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        y = np.zeros(_length(X)) if y is None else y
        return read_regression_table(scratch, X, y, 0.0, 1.0, bounded=False)

    def _problem_of(self, facts: Facts) -> Problem:
        n_samples, n_features = facts.n_samples, facts.n_features
        saddle = self._saddle(n_features)
        problem = MinimaxProblem(
            n_samples=n_samples,
            n_features=n_features,
            loss=NoLoss(saddle.name),
            budget=Budget.from_parameters(self.epsilon, self.delta, self.adjacency, n_samples),
            data_norm=math.sqrt(n_features) if self.data_norm is None else float(self.data_norm),
            intercept_scaling=0.0,
            saddle=saddle,
        )
        try_saddle(problem, sparse_rows=facts.storage != "dense")
        return problem

    def _model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        return {"primal_": result.coef[:, 0].copy(), "dual_": result.dual}

    def _assumed_of_y(self) -> str:
        return "every target, where there are any, is a finite number"


def _length(X: Any) -> int:
    """Number of rows of what is yet to be checked."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)
