"""Private linear regression of a quantile."""

from typing import Any, ClassVar

from skdp._validation import check_number
from skdp.estimators._regressor import DPRegressor
from skdp.estimators._unsupported import explain_refusals
from skdp.losses import Quantile
from skdp.privacy.queries import Loss
from skdp.solvers import Solver

__all__ = ["DPQuantileRegressor"]


class DPQuantileRegressor(DPRegressor):
    r"""Linear regression of a quantile of y, whose fitted model is differentially private.

    One call of ``fit`` minimises, on noisy answers only, the pinball loss

    .. math:: \frac1n \sum_i \max\{q (y_i - t_i), (1 - q) (t_i - y_i)\} + \frac{\alpha}{2} \|w\|^2, \quad t_i = x_i^\top w + b.

    Its slope is bounded whatever y is, so nothing has to be known of y: its unit and its place are learnt with a small share of
    the budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive: smaller is more private. ``float("inf")`` adds no noise and warns.
    quantile : float, default=0.5
        Which quantile q, in (0, 1); 0.5 is the median.
    delta : float or None, default=None
        Privacy parameter, positive and at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables the guarantee makes indistinguishable: those that differ in one record replaced by any other, or in one
        record replaced by a null record that contributes nothing (what DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name out of `skdp.solvers.SOLVERS` such as ``"rescaled_gd"``, or a solver object such as
        ``RescaledGradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in its units; targets outside are clipped to it during the fit, and predictions to it
        afterwards. Must not be computed from the data. Without one the range is learnt, which takes some hundred records at
        epsilon 1 (below that, predictions may have any size), and loses coverage where most targets are one number.
    alpha : float or None, default=None
        Strength of the penalty, which spares the intercept; scikit-learn's is 1. None leaves it to the solver: none for "auto".
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1
        as in scikit-learn, between is elastic net. Other than 0 needs ``target_bounds``, or a solver that is named: "gd" and
        "sgd" take y in units of half its range, without a range in units of 1, and get nowhere where y is large.
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
    DPRobustRegressor : With the absolute loss the same as the median, and other losses that outliers do not move.
    skdp.solvers.RescaledGradientDescent : The default solver.

    Notes
    -----
    The default solver asks histograms of y first, of about 5 % of the budget (more where n is small), and works in units of the
    spread that these tell. A spread below 2**-30 of the largest absolute values of y is not resolved. Other solvers work in
    units of half the width of ``target_bounds``, and of y itself without such. Lines of several quantiles may cross, each fit
    spends its own budget. To predict an interval, fit two quantiles with half of epsilon each.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: the fitted attributes are computed from the releases of the solver's schedule and from public values.
    Public are the shape of X, its column names, all parameters, ``target_bounds`` among them, and the
    number of steps; that X and y are finite is assumed. One record is taken to be one person. Two fits spend twice;
    cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 3))
    >>> y = 2e5 + 1e4 * (X @ [1.0, 2.0, 0.0] + rng.normal(size=5000))
    >>> model = DPQuantileRegressor(epsilon=1.0, quantile=0.9).fit(X, y)
    >>> bool(0.85 < np.mean(y <= model.predict(X)) < 0.95)
    True
    """

    loss = "quantile"
    _losses: ClassVar[tuple[str, ...]] = ("quantile",)
    _stays_in_reach: ClassVar[bool] = True

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        quantile: float = 0.5,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
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
        self.quantile = quantile
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("quantile", self.quantile, above=0.0, below=1.0)

    def _loss(self) -> Loss:
        return Quantile(float(self.quantile))
