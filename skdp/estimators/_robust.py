"""Private linear regression with losses that outliers do not move."""

from typing import Any, ClassVar

from skdp.estimators._regressor import ROBUST, DPRegressor
from skdp.estimators._unsupported import explain_refusals
from skdp.solvers import Solver

__all__ = ["DPRobustRegressor"]


class DPRobustRegressor(DPRegressor):
    r"""Linear regression with a loss of bounded slope, whose fitted model is differentially private.

    One call of ``fit`` goes, on noisy answers only, towards a stationary point of

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b - y_i) + \frac{\alpha}{2} \|w\|^2.

    The absolute error and that beyond a threshold have kinks; the other losses are half the squared residual near 0. Those of
    Welsch, Tukey and Cauchy are not convex: residuals far beyond the threshold lose their influence, so that no share of outliers
    that is small can move the model far.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive: smaller is more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, positive and at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables the guarantee makes indistinguishable: those that differ in one record replaced by any other, or in one
        record replaced by a null record that contributes nothing (what DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name out of `skdp.solvers.SOLVERS` such as ``"gd"``, or a solver object such as
        ``GradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    loss : {"welsch", "tukey", "cauchy", "huber", "absolute", "epsilon_insensitive"}, default="welsch"
        See `skdp.losses`; the last three are convex.
    threshold : float, default=1.0
        Size of residual from which on the loss flattens, for "epsilon_insensitive" up to which it is 0, in the units of y;
        positive. For "absolute" it is the unit of solvers that do not learn one, without ``target_bounds``.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in its units; targets outside are clipped to it during the fit, and predictions to it
        afterwards. Must not be computed from the data. The fit starts from the middle of the range, from 0 without one, and
        from there a loss that is not convex does not see targets that are many thresholds away. For the first four losses,
        None warns if ``threshold`` is 1 and ``solver`` is "auto".
    alpha : float or None, default=None
        Strength of the penalty, which spares the intercept. 0 is no penalty; None leaves it to the solver, from public facts.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1,
        between is elastic net.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from column name (x0, x1, ... for arrays) to such, with every column in it. Must not be
        computed from the data. The columns are clipped to them and divided by the larger absolute value during the fit, so that
        columns of different scales count alike; ``coef_`` is in the units of X. Models with an intercept shift columns whose
        bounds leave out zero, so that the nearer bound is zero. Penalties are on the coefficients of the scaled columns.
        The solver "skgd" scales nothing: it takes its clip norms from them. None takes X as it is.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X, and with ``feature_bounds`` of the scaled columns;
        longer rows are scaled down to it during the fit. None means ``sqrt(n_features)``, which features in [-1, 1] never
        exceed. Must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. None leaves it to the solver.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, y is not centred.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of choices that need no secrecy: initial weights, public blocks, the order of a single pass. It never seeds the
        noise, which comes from the operating system's cryptographic generator.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line per release.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Released coefficients.
    intercept_ : float
        Released intercept, zero without ``fit_intercept``.
    target_bounds_ : tuple of float
        The range of predictions: ``target_bounds``; without them, the range of the released model over rows up to
        ``data_norm`` long, to which the fit cut longer ones.
    n_iter_ : int
        Number of steps, public.
    noise_multiplier_ : float
        Standard deviation of the noise over the clip norm; only where the schedule has one kind of Gaussian release.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The statement of guarantees.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, where X had them.

    Raises
    ------
    TypeError, ValueError
        From ``fit``, for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLinearRegression : With the squared loss, nothing to tune and intervals.
    skdp.solvers.GradientDescent : The solver "gd".

    Notes
    -----
    The solver works in units of half the width of ``target_bounds``, of the threshold where there are none; ``alpha`` and
    ``clip_norm`` are in them.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: the fitted attributes are computed from the releases of the solver's schedule and from public values.
    Public are the shape of X, its column names, all parameters, ``target_bounds`` among them, and the
    number of steps; that X and y are finite is assumed. One record is taken to be one person. Two fits spend twice;
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

    _losses: ClassVar[tuple[str, ...]] = ("absolute", *ROBUST)
    _stays_in_reach: ClassVar[bool] = True

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        loss: str = "welsch",
        threshold: float = 1.0,
        target_bounds: tuple[float, float] | None = None,
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        feature_bounds: Any = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        verbose: int = 0,
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
        self.feature_bounds = feature_bounds
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.verbose = verbose
