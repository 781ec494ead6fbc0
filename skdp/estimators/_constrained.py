"""Private linear models whose coefficients lie in a given set."""

from typing import Any, ClassVar

from skdp.constraints import Constraint, constraint_of
from skdp.estimators._classifier import DPProbabilisticClassifier
from skdp.estimators._regressor import DPRegressor
from skdp.estimators._unsupported import explain_refusals
from skdp.solvers import Solver

__all__ = ["DPConstrainedClassifier", "DPConstrainedRegression"]


class DPConstrainedRegression(DPRegressor):
    r"""Linear regression over a set of coefficients, whose fitted model is differentially private.

    One call of ``fit`` minimises, on noisy answers only,

    .. math:: \frac1n \sum_i \ell(x_i^\top w - y_i) + \frac{\alpha}{2} \|w\|^2 \quad \text{over } w \in \mathcal{C},

    for example over a ball of the l1 norm, where noise costs little even with many features.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive: smaller is more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "frank_wolfe"
        supports.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables the guarantee makes indistinguishable: those that differ in one record replaced by any other, or in one
        record replaced by a null record that contributes nothing (what DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name out of `skdp.solvers.SOLVERS` such as ``"frank_wolfe"``, or a solver object such as
        ``AcceleratedMirrorDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    constraint : {"l1", "l2", "simplex", "box"} or Constraint, default="l1"
        Set that the coefficients are to lie in, the intercept apart: one of the given ``radius`` by its name, an object of
        `skdp.constraints`, or any object with its methods ``project`` and ``scaled``.
    radius : float, default=1.0
        Size of a set given by its name, in units of y per unit of X; not used for an object.
    loss : {"squared", "huber"}, default="squared"
        Half the squared residual, which needs a range of y; or Huber's loss, whose slope is bounded by ``threshold``.
    threshold : float, default=1.0
        Residual from which on Huber's loss is linear, in the units of y; positive.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in its units; targets outside are clipped to it during the fit, and predictions to it
        afterwards. Must not be computed from the data. None means (-1, 1) for the squared loss, and
        warns; Huber's loss then takes y to lie near 0, and warns if ``threshold`` is 1 and ``solver`` is "auto".
    alpha : float or None, default=0.0
        Strength of an L2 penalty in addition. None leaves it to the solver, from public facts.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from column name (x0, x1, ... for arrays) to such, with every column in it. Must not be
        computed from the data. They give ``data_norm`` its default, and solvers that work coordinate by coordinate their clip
        norms; of a pair the larger absolute value counts. Nothing is scaled by them, because the set of coefficients is in the
        units of X; nor are entries clipped: those beyond lengthen the row, see ``data_norm``.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X; longer rows are scaled down to it during the fit.
        None means the norm of the feature bounds, ``sqrt(n_features)`` without such. Must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. None leaves it to the solver.
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not constrained. "accmd" and "frank_wolfe" cannot. Without one, y is not centred.
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
        Released coefficients, in the set to within rounding.
    intercept_ : float
        Released intercept, zero without ``fit_intercept``.
    target_bounds_ : tuple of float or None
        The range of predictions, where it was given.
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
    DPConstrainedClassifier : The same for class labels.
    DPLinearRegression : Without constraint.
    skdp.solvers.AcceleratedMirrorDescent : The solver "accmd".
    skdp.solvers.FrankWolfe : The solver "frank_wolfe".

    Notes
    -----
    The solver works in units of half the width of ``target_bounds``, of the threshold where there are none; the set is scaled to
    them, and ``alpha`` and ``clip_norm`` are in them.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: the fitted attributes are computed from the releases of the solver's schedule and from public values.
    Public are the shape of X, its column names, all parameters, ``target_bounds`` and the constraint among them, and the number
    of steps; that X and y are finite is assumed. One record is taken to be one person. Two fits spend twice; cross-validation
    and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Section 5.
    .. [2] K. Talwar, A. Thakurta, L. Zhang, "Nearly-optimal private LASSO", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPConstrainedRegression
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(20000, 100))
    >>> y = X[:, 0] / 2 - X[:, 1] / 2
    >>> model = DPConstrainedRegression(target_bounds=(-1, 1), feature_bounds=1.0).fit(X, y)
    >>> bool(abs(model.coef_).sum() <= 1 + 1e-9)
    True
    """

    _losses: ClassVar[tuple[str, ...]] = ("squared", "huber")

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        constraint: "str | Constraint" = "l1",
        radius: float = 1.0,
        loss: str = "squared",
        threshold: float = 1.0,
        target_bounds: tuple[float, float] | None = None,
        alpha: float | None = 0.0,
        feature_bounds: Any = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.constraint = constraint
        self.radius = radius
        self.loss = loss
        self.threshold = threshold
        self.target_bounds = target_bounds
        self.alpha = alpha
        self.feature_bounds = feature_bounds
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.verbose = verbose

    def _constraint(self) -> Constraint:
        return constraint_of(self.constraint, self.radius)


class DPConstrainedClassifier(DPProbabilisticClassifier):
    r"""Logistic regression over a set of coefficients, whose fitted model is differentially private.

    One call of ``fit`` minimises, on noisy answers only,

    .. math:: \frac1n \sum_i \ell(x_i^\top w, y_i) + \frac{\alpha}{2} \|w\|^2 \quad \text{over } w \in \mathcal{C}

    with the logistic loss for two classes and the softmax cross-entropy for more.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive: smaller is more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "frank_wolfe"
        supports.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables the guarantee makes indistinguishable: those that differ in one record replaced by any other, or in one
        record replaced by a null record that contributes nothing (what DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name out of `skdp.solvers.SOLVERS` such as ``"frank_wolfe"``, or a solver object such as
        ``AcceleratedMirrorDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    constraint : {"l1", "l2", "simplex", "box"} or Constraint, default="l1"
        Set that the coefficients are to lie in, the intercept apart: one of the given ``radius`` by its name, an object of
        `skdp.constraints`, or any object with its methods ``project`` and ``scaled``. With more than two
        classes it is one set for the coefficients of all, feature by feature.
    radius : float, default=1.0
        Size of a set given by its name, in log-odds per unit of X; not used for an object.
    alpha : float or None, default=0.0
        Strength of an L2 penalty in addition. None leaves it to the solver, from public facts.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from column name (x0, x1, ... for arrays) to such, with every column in it. Must not be
        computed from the data. They give ``data_norm`` its default, and solvers that work coordinate by coordinate their clip
        norms; of a pair the larger absolute value counts. Nothing is scaled by them, because the set of coefficients is in the
        units of X; nor are entries clipped: those beyond lengthen the row, see ``data_norm``.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X; longer rows are scaled down to it during the fit.
        None means the norm of the feature bounds, ``sqrt(n_features)`` without such. Must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. None leaves it to the solver.
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not constrained. "accmd" and "frank_wolfe" cannot.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``.
    classes : array-like or None, default=None
        All class labels. None reads the label set from y; the guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Positive number per class label, 1 where a label is missing; from public knowledge, not from y.
    random_state : int, Generator, RandomState or None, default=None
        Seed of choices that need no secrecy: initial weights, public blocks, the order of a single pass. It never seeds the
        noise, which comes from the operating system's cryptographic generator.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line per release.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients, in the set to within rounding; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept, zero without ``fit_intercept``.
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
    DPConstrainedRegression : The same for numbers.
    DPLogisticRegression : Without constraint.
    skdp.solvers.AcceleratedMirrorDescent : The solver "accmd".
    skdp.solvers.FrankWolfe : The solver "frank_wolfe".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: the fitted attributes are computed from the releases of the solver's schedule and from public values.
    Public are the shape of X, its column names, the class labels, all parameters, the constraint among them,
    and the number of steps; that X is finite and y within the classes is assumed. One record is taken to be one person. Two fits
    spend twice; cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPConstrainedClassifier
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(20000, 100))
    >>> model = DPConstrainedClassifier(constraint="l1", radius=2.0, feature_bounds=1.0).fit(X, X[:, 0] > 0)
    >>> bool(abs(model.coef_).sum() <= 2 + 1e-9)
    True
    """

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        constraint: "str | Constraint" = "l1",
        radius: float = 1.0,
        alpha: float | None = 0.0,
        feature_bounds: Any = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        classes: Any = None,
        class_weight: dict[Any, float] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.constraint = constraint
        self.radius = radius
        self.alpha = alpha
        self.feature_bounds = feature_bounds
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: a model through the origin cannot follow class weights, and scores poorly with them."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.fit_intercept
        return tags

    def _constraint(self) -> Constraint:
        return constraint_of(self.constraint, self.radius)
