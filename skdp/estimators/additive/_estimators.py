"""Private additive models: a sum of a function of each column, read like a scorecard."""

from typing import Any

from skdp.estimators._classifier import DPProbabilisticClassifier
from skdp.estimators._regressor import DPRegressor
from skdp.estimators._unsupported import explain_refusals
from skdp.estimators.additive._base import AdditiveModel
from skdp.estimators.additive._knots import intervals_for_classes, intervals_for_numbers
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.solvers import Solver

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor"]


class DPAdditiveClassifier(AdditiveModel, DPProbabilisticClassifier):
    r"""Additive logistic regression whose fitted model is differentially private.

    The log-odds are a sum of one function per column: piecewise linear in a number, one value per category, and for pairs of
    columns that are named in ``interactions`` a function of both. For more than two classes there is one such sum per class.
    The functions are combinations of public ones, which cost no privacy: hats on public knots, beside the scaled value itself,
    and indicators. One call of ``fit`` finds the combination on noisy answers only. Nothing has to be tuned.

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
        Algorithm, as for `DPLogisticRegression`; "auto" takes "standardized_gd", which needs no tuning.
    schema : path-like, dict, Schema or None, default=None
        Public facts of the columns of a data frame, as `skdp.preprocessing.from_schema` takes them: bounds of numbers, "log"
        for amounts with a long tail, categories. Columns that it does not name are not looked at. Must not be computed from the
        data.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Without a schema, all columns are numbers, and these are their public bounds, in the units of X: a number B for
        ``|x_ij| <= B``, a pair (low, high) for all columns, one pair per column, or a dict from column name (x0, x1, ... for
        arrays) to such, with every column in it. None means 1, and warns. Values outside are clipped to them. Must not be
        computed from the data.
    interactions : list of pair of str or int, default=()
        Pairs of columns whose joint effect is wanted, by name or place. Each gives the products of hats or indicators of the
        two, and every product costs: name few, and those that are known to matter.
    knots : "auto", "private" or int, default="auto"
        Number of even intervals between knots of a number; four more knots crowd under the first. 0 is no hats: linear in the
        numbers. "auto" takes between 4 and 16, more where noise is smaller, and none where it would win. "private" has as many
        knots, five of them even ones and the others where the records are, from a release with 5 % of the budget: for bounds
        that are known to suit the values badly. Of six tables it gained .02 to .03 of AUC on one and up to .015 on another,
        and lost up to .014 on the others.
    monotone : dict or None, default=None
        Columns of numbers, by name or place, whose function may only rise (1) or only fall (-1). The released function is brought
        in order by isotonic regression, which costs no budget; pairs are left as they are.
    alpha : float or None, default=None
        Strength of a further L2 penalty on the coefficients of the basis, which spares the intercept; None leaves it to the
        solver (0 for "standardized_gd", which has a ridge of its own).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a record's scaled numbers (in [-1, 1], 0 at zero or at the nearest bound) and
        indicators together; longer ones are scaled down to it during the fit. None takes
        ``sqrt(n_categories + n_numbers / 3 + 0.6 * sqrt(n_numbers))``, which one record in 40 exceeds where numbers are spread
        evenly. ``sqrt(n_columns)`` is never exceeded. Must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; None leaves it to the solver.
    classes : array-like of shape (n_classes,) or None, default=None
        Class labels, public. None takes those of the schema; where there are none either, they are read from y, and the
        guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Public factor of the loss of a record, per class label; 1 for others. "balanced" would read y and is refused.
    random_state : int, Generator, RandomState or None, default=None
        Seed of choices that need no secrecy: initial weights, public blocks, the order of a single pass. It never seeds the
        noise, which comes from the operating system's cryptographic generator.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line per release.

    Attributes
    ----------
    basis_ : AdditiveBasis
        The functions, of public or released knots: ``terms`` says which coefficients belong to which column.
    coef_ : ndarray of shape (1, n_functions) or (n_classes, n_functions)
        Released coefficients of the functions.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    noise_ : CoefficientNoise
        What is known of the coefficients' noise, where the solver tells it.
    shape_functions_ : dict of ShapeFunction
        The function of each column, with a band of noise.
    baseline_ : ndarray of shape (1,)
        Raw prediction of a usual record, of shape (n_classes,) for more than two classes.
    n_iter_ : int
        Number of steps, public.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The statement of guarantees.
    n_features_in_ : int
        Number of columns: those of the schema where there is one.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names, where X had them.

    Raises
    ------
    TypeError, ValueError
        From ``fit``, for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLogisticRegression : Linear in the columns.
    DPAdditiveRegressor : For numbers as targets.
    skdp.solvers.StandardizedGradientDescent : The solver "standardized_gd".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: every record is mapped by itself, by public functions, and the fitted attributes are computed from the
    releases of the schedule on the result and from public values. Hats have a bounded norm by construction, and rows that are
    longer than the bound are scaled down to it. No knot depends on the records unless ``knots="private"``: then sums of hats
    are released first, with sensitivity 1 (``sqrt(2)`` under ``replace_one``), and map the rows of all further releases. Public
    are the shape of X, its column names and their dtypes, schema or bounds, the class labels, all parameters and the number of
    steps; that numbers of X are finite, or missing where the schema has a ``fill``, and y within the classes is assumed. One
    record is taken to be one person. Two fits spend twice; ``score`` on training records is not private.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani, "Generalized Additive Models", Statistical Science 1 (1986).
    .. [2] H. Nori, R. Caruana, Z. Bu, J. H. Shen, J. Kulkarni, "Accuracy, Interpretability, and Differential Privacy via
       Explainable Boosting", ICML 2021: private additive models by boosting, which have to learn their bins.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 2))
    >>> y = (X[:, 0] ** 2 + 0.3 * X[:, 1] > 0.3).astype(int)
    >>> model = DPAdditiveClassifier(epsilon=1.0, feature_bounds=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> print(f"{model.privacy_spent_.epsilon:.3f}")
    1.000
    """

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        schema: Any = None,
        feature_bounds: Any = None,
        interactions: Any = (),
        knots: Any = "auto",
        monotone: dict[Any, int] | None = None,
        alpha: float | None = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        classes: Any = None,
        class_weight: dict[Any, float] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.schema = schema
        self.feature_bounds = feature_bounds
        self.interactions = interactions
        self.knots = knots
        self.monotone = monotone
        self.alpha = alpha
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _label_set(self) -> Any:
        return Schema.read(self.schema).classes if self.classes is None and self.schema is not None else self.classes

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_classes(signal, basis)


class DPAdditiveRegressor(AdditiveModel, DPRegressor):
    r"""Additive regression whose fitted model is differentially private.

    The prediction is a sum of one function per column: piecewise linear in a number, one value per category, and for pairs of
    columns that are named in ``interactions`` a function of both. The functions are combinations of public ones, which cost no
    privacy: hats on public knots, beside the scaled value itself, and indicators. One call of ``fit`` finds the combination on
    noisy answers only. Nothing has to be tuned.

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
        Algorithm, as for `DPLinearRegression`; "auto" takes "whitened_gd", which needs no tuning.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in its units; targets outside are clipped to it during the fit, and predictions to it
        afterwards. Must not be computed from the data. None takes those of ``schema``; without, it means (-1, 1), and warns.
    schema : path-like, dict, Schema or None, default=None
        Public facts of the columns of a data frame, as `skdp.preprocessing.from_schema` takes them: bounds of numbers, "log"
        for amounts with a long tail, categories. Columns that it does not name are not looked at. Must not be computed from the
        data.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Without a schema, all columns are numbers, and these are their public bounds, in the units of X: a number B for
        ``|x_ij| <= B``, a pair (low, high) for all columns, one pair per column, or a dict from column name (x0, x1, ... for
        arrays) to such, with every column in it. None means 1, and warns. Values outside are clipped to them. Must not be
        computed from the data.
    interactions : list of pair of str or int, default=()
        Pairs of columns whose joint effect is wanted, by name or place. Each gives the products of hats or indicators of the
        two, and every product costs: name few, and those that are known to matter.
    knots : "auto", "private" or int, default="auto"
        Number of even intervals between knots of a number. 0 is no hats: linear in the numbers. "auto" takes 16, 8 or 4, as
        many as the noise allows, and none where it would win. "private" has as many knots, a few of them even ones and the
        others where the records are, from a release with 5 % of the budget: up to .004 more of R2 on one of two tables.
    monotone : dict or None, default=None
        Columns of numbers, by name or place, whose function may only rise (1) or only fall (-1). The released function is brought
        in order by isotonic regression, which costs no budget; pairs are left as they are.
    alpha : float or None, default=None
        Strength of a further L2 penalty on the coefficients of the basis, which spares the intercept; None leaves it to the
        solver (0 for "whitened_gd", which shrinks by what it knows of the noise).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a record's scaled numbers (in [-1, 1], 0 at zero or at the nearest bound) and
        indicators together; longer ones are scaled down to it during the fit. None takes
        ``sqrt(n_categories + n_numbers / 3 + 0.6 * sqrt(n_numbers))``, which one record in 40 exceeds where numbers are spread
        evenly. ``sqrt(n_columns)`` is never exceeded. Must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; None leaves it to the solver.
    random_state : int, Generator, RandomState or None, default=None
        Seed of choices that need no secrecy: initial weights, public blocks, the order of a single pass. It never seeds the
        noise, which comes from the operating system's cryptographic generator.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line per release.

    Attributes
    ----------
    basis_ : AdditiveBasis
        The functions, of public or released knots: ``terms`` says which coefficients belong to which column.
    coef_ : ndarray of shape (n_functions,)
        Released coefficients of the functions.
    intercept_ : float
        Released intercept.
    target_bounds_ : tuple of float
        The range of predictions.
    noise_ : CoefficientNoise
        What is known of the coefficients' noise, where the solver tells it.
    shape_functions_ : dict of ShapeFunction
        The function of each column, with a band of noise.
    baseline_ : ndarray of shape (1,)
        Raw prediction of a usual record.
    n_iter_ : int
        Number of steps, public; 0 where only the mean of y was estimated.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The statement of guarantees.
    n_features_in_ : int
        Number of columns: those of the schema where there is one.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names, where X had them.

    Raises
    ------
    TypeError, ValueError
        From ``fit``, for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLinearRegression : Linear in the columns.
    DPAdditiveClassifier : For classes.
    skdp.solvers.WhitenedGradientDescent : The solver "whitened_gd".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: every record is mapped by itself, by public functions, and the fitted attributes are computed from the
    releases of the schedule on the result and from public values. Hats have a bounded norm by construction, and rows that are
    longer than the bound are scaled down to it. No knot depends on the records unless ``knots="private"``: then sums of hats
    are released first, with sensitivity 1 (``sqrt(2)`` under ``replace_one``), and map the rows of all further releases. Public
    are the shape of X, its column names and their dtypes, schema or bounds, ``target_bounds``, all parameters and the number of
    steps; that y and numbers of X are finite, or missing where the schema has a ``fill``, is assumed. One record is taken to be
    one person. Two fits spend twice; ``score`` on training records is not private.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani, "Generalized Additive Models", Statistical Science 1 (1986).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 2))
    >>> y = X[:, 0] ** 2 + 0.3 * X[:, 1]
    >>> model = DPAdditiveRegressor(epsilon=1.0, feature_bounds=1.0, target_bounds=(-1, 2)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _dyadic = False  # each hat costs in the second moment, which the solver releases

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        target_bounds: tuple[float, float] | None = None,
        schema: Any = None,
        feature_bounds: Any = None,
        interactions: Any = (),
        knots: Any = "auto",
        monotone: dict[Any, int] | None = None,
        alpha: float | None = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.target_bounds = target_bounds
        self.schema = schema
        self.feature_bounds = feature_bounds
        self.interactions = interactions
        self.knots = knots
        self.monotone = monotone
        self.alpha = alpha
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.random_state = random_state
        self.verbose = verbose

    def _given_bounds(self) -> Any:
        stated = self.target_bounds is not None or self.schema is None
        return self.target_bounds if stated else Schema.read(self.schema).target_bounds

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_numbers(signal, basis)
