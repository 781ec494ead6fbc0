"""Private linear regression with robust losses."""

from typing import Any, ClassVar

from skdp.estimators._regressor import ROBUST, DPRegressor, RegressionTask
from skdp.estimators._unsupported import explain_refusals
from skdp.solvers import Solver

__all__ = ["DPRobustRegressor"]


class RobustTask(RegressionTask):
    """Task of a robust regression: its losses."""

    losses: ClassVar[tuple[str, ...]] = ("absolute", *ROBUST)
    stays_in_reach: ClassVar[bool] = True


class DPRobustRegressor(DPRegressor):
    r"""Linear regression with a loss of bounded slope, whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to approach a stationary point of

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b - y_i) + \frac{\alpha}{2} \|w\|^2.

    The absolute and the epsilon-insensitive loss have kinks; the other losses are half the squared residual near 0. The losses of
    Welsch, Tukey and Cauchy are not convex: residuals far beyond the threshold lose their influence, so that a small share of
    outliers cannot move the model far.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive; smaller values are more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, positive and at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which pairs of tables the guarantee covers. They differ in one record, which is replaced by any other record
        ("replace_one") or by a null record that contributes nothing ("zero_out", which DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name from `skdp.solvers.SOLVERS` such as ``"gd"``, or a solver object such as
        ``GradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    loss : {"welsch", "tukey", "cauchy", "huber", "absolute", "epsilon_insensitive"}, default="welsch"
        See `skdp.losses`; the last three are convex.
    threshold : float or None, default=None
        Size of the residual beyond which the loss flattens, in the units of y; positive. "epsilon_insensitive" is 0 up to it. For
        "absolute" without a range of y it is the unit of y in solvers that do not learn one. None means a quarter of the width of
        the range of y, given or learned, or 1 if there is no range.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. The fit starts from the middle of the range, or from 0 if there is none. From there,
        targets that are many thresholds away have almost no influence on a loss that is not convex. None learns the range
        together with columns that are learned, for the first four losses. If no column is learned there is no range, and None
        warns for these losses if ``threshold`` is None, too, and ``solver`` is "auto".
    alpha : float or None, default=None
        Strength of the penalty, which excludes the intercept. 0 means no penalty. If None, the solver sets it from public facts.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1,
        and a value in between is an elastic net.
    schema : "learn", path-like, dict, Schema or None, default=None
        Public facts about the columns of a data frame, in the form that `skdp.preprocessing.from_schema` takes; they must not be
        computed from the data. "learn" learns the columns with 2 to 10 % of the squared budget, as
        `skdp.preprocessing.LearnedSchema` does. A dict of some columns alone, such as ``{"hour": "category"}``, describes these,
        and the others are learned. The fit prepares the rows by the schema: they have length at most 1, and the coefficients are
        those of ``prepared_features_``. It takes the place of ``feature_bounds`` and ``data_norm``. None learns the columns of a
        data frame in memory, too, if neither of these two is given and the solver can share the budget.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from every column name (x0, x1, ... for arrays) to a number or a pair. They must not be
        computed from the data. The fit clips the columns to these bounds and divides each column by the larger absolute value of
        its bounds, so that columns of different scales have the same influence; ``coef_`` is in the units of X. A model with an
        intercept also shifts each column whose bounds exclude zero, so that the nearer bound becomes zero. The penalty applies to
        the coefficients of the scaled columns. The solver "skgd" does not scale columns: it sets its clip norms from the bounds.
        None takes X as it is.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X, or of the scaled columns if there are
        ``feature_bounds``. The fit scales longer rows down to it. None means ``sqrt(n_features)``: rows of features in [-1, 1]
        never exceed it. It must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. If None, the solver sets it.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, y is not centred.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the choices that need no secrecy: initial weights, public blocks and the order of a single pass. It never seeds
        the noise, which comes from the operating system's cryptographic generator.
    verbose : int or None, default=None
        None shows a progress bar on a terminal if the fit takes more than 3 seconds; 0 shows nothing; 1 prints about ten lines; 2
        prints one line per release, and partitions done where a pass takes long.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Released coefficients.
    intercept_ : float
        Released intercept; zero if ``fit_intercept=False``.
    target_bounds_ : tuple of float
        Range of the predictions: ``target_bounds``, or the learned range of y, or without them the range of the released model
        over rows of norm at most ``data_norm``, to which the fit scaled longer rows.
    n_iter_ : int
        Number of steps, which is public.
    noise_multiplier_ : float
        Standard deviation of the noise divided by the clip norm. Present only if the schedule has a single kind of Gaussian
        release.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The privacy report: guarantee, releases, noise and assumptions.
    schema_ : Schema
        The columns. Present only if a schema prepares the rows.
    prepared_features_ : ndarray of str
        Names of the prepared features, in the order of the coefficients. Present only if a schema prepares the rows.
    hardly_seen_ : dict
        Levels that no training record had, or so few that the releases do not tell their effect, by column, each with the largest
        share of the records that may have it. They take the average effect of the column. Present only if a schema prepares the
        rows, with noise.
    learnt_ : dict
        What was learned of each column: kind, limits, scale, share of missing cells, and numbers of integers or categories.
        ``pandas.DataFrame(learnt_).T`` is a table. Present only if columns were learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names. Present only if X has column names.

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLinearRegression : Squared loss, nothing to tune, intervals.
    skdp.solvers.GradientDescent : The solver "gd".

    Notes
    -----
    The solver's unit of y is half the width of ``target_bounds``, or the threshold if there are no bounds; ``alpha`` and
    ``clip_norm`` are in this unit.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, all parameters (including ``target_bounds``) and the number of steps.
    The guarantee assumes that X and y are finite. It treats one record as one person. Two fits spend twice the budget;
    cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRobustRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 3))
    >>> y = np.where(np.arange(5000) % 10 == 0, 50.0, X @ [1.0, 2.0, 0.0])  # every tenth is an outlier
    >>> model = DPRobustRegressor(epsilon=1.0).fit(X, y)
    >>> model.coef_.shape
    (3,)
    """

    _task_class = RobustTask

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        loss: str = "welsch",
        threshold: float | None = None,
        target_bounds: tuple[float, float] | None = None,
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        schema: Any = None,
        feature_bounds: Any = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.loss = loss
        self.threshold = threshold
        self.target_bounds = target_bounds
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.schema = schema
        self.feature_bounds = feature_bounds
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.verbose = verbose
