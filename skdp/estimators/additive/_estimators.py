"""Private additive models: the sum of one function per column, which can be read like a scorecard."""

from typing import Any

from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask
from skdp.estimators._inference import IntervalMixin, IntervalTask
from skdp.estimators._regressor import DPRegressor, RegressionTask
from skdp.estimators._sample_weight import WeightedMixin
from skdp.estimators._unsupported import explain_refusals
from skdp.estimators.additive._base import AdditiveModel
from skdp.estimators.additive._knots import intervals_for_classes, intervals_for_numbers
from skdp.estimators.additive._task import AdditiveTask
from skdp.preprocessing import AdditiveBasis
from skdp.solvers import Solver

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor"]


class AdditiveClassificationTask(IntervalTask, AdditiveTask, ProbabilisticTask):
    """Task of an additive classifier."""

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_classes(signal, basis)


class DPAdditiveClassifier(WeightedMixin, IntervalMixin, AdditiveModel, DPProbabilisticClassifier):
    r"""Additive logistic regression whose fitted model is differentially private.

    The log-odds are the sum of one function per column: piecewise linear for a number, one value per category. Each pair of
    columns in ``interactions`` adds a function of both. For more than two classes there is one such sum per class. The functions
    are combinations of public basis functions, which cost no privacy: hats on public knots, the scaled value itself, and
    indicators. One call of ``fit`` finds the combination from noisy answers only. There is nothing to tune.

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
        Algorithm, as for `DPLogisticRegression`; "auto" takes "standardized_gd", which needs no tuning.
    schema : "learn", path-like, dict, Schema or None, default=None
        Public facts about the columns of a data frame, in the form that `skdp.preprocessing.from_schema` takes: bounds of
        numbers, "log" for amounts with a long tail, categories. With a key "columns", it ignores other columns. It must not be
        computed from the data. "learn" learns the columns with 2 to 10 % of the squared budget, as
        `skdp.preprocessing.LearnedSchema` does. A dict of some columns alone, such as ``{"hour": "category"}``, describes these,
        and the others are learned. None learns the columns of a data frame in memory, too, unless ``feature_bounds`` or
        ``data_norm`` is given, or the solver cannot share the budget. A table in partitions, such as one of Parquet files, needs
        "learn".
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Without a schema, all columns are numbers, and these are their public bounds, in the units of X: a number B for
        ``|x_ij| <= B``, a pair (low, high) for all columns, one pair per column, or a dict from every column name (x0, x1, ...
        for arrays) to a number or a pair. None means 1 and warns. Values outside the bounds are clipped to them. They must not be
        computed from the data.
    interactions : list of pair of str or int, default=()
        Pairs of columns, by name or position, whose joint effect the model includes. Each pair adds the products of the hats or
        indicators of its two columns, and every product adds noise: name only a few pairs that are known to matter.
    knots : "auto", "private" or int, default="auto"
        Number of even intervals between the knots of a number; four more knots lie below the first of them. 0 means no hats: the
        model is linear in the numbers. "auto" takes between 4 and 16, the more the smaller the noise is, and none when noise
        would dominate. "private" has the same number of knots: five are even, the others follow the distribution of the records,
        which a release with 5 % of the budget estimates. It is meant for bounds that are known to fit the values badly. Of six
        tables, it gained .02 to .03 of AUC on one and up to .015 on another, and lost up to .014 on the others. With
        ``inference=True``, "auto" and "private" have 4 to 8 intervals between quantiles, which the same release estimates.
    monotone : dict or None, default=None
        Columns of numbers, by name or position, whose function may only rise (1) or only fall (-1). Isotonic regression makes the
        released function monotone, at no cost in budget; functions of pairs stay unchanged.
    alpha : float or None, default=None
        Strength of an additional L2 penalty on the coefficients of the basis, excluding the intercept. If None, the solver sets
        it: 0 for "standardized_gd", which has its own ridge.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a record's scaled numbers (in [-1, 1], 0 at zero or at the nearest bound) and
        indicators together. The fit scales longer records down to it. None means ``sqrt(n_categories + n_numbers / 3 + 0.6 *
        sqrt(n_numbers))``, which one record in 40 exceeds if the numbers are spread evenly. No record exceeds
        ``sqrt(n_columns)``. It must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient. If None, the solver sets it.
    classes : array-like of shape (n_classes,) or None, default=None
        Class labels, which are public. None takes the labels in the schema. If there are none, they are read from y, and the
        guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Public weight per class label, by which a record's loss is multiplied; 1 for other labels. "balanced" would read y and is
        refused.
    max_sample_weight : float or None, default=None
        Public bound on the weights of records, which ``fit`` then takes as ``sample_weight``. Each weight is a private part of
        its record; a larger one counts as the bound. The bound must not be computed from the data. None takes no weights.
    inference : bool, default=False
        Whether the fit releases, within the same epsilon, what confidence bands and tests of the population need: `bands`,
        `column_tests` and `predict_interval` use it. The functions then have few knots, so that the budget identifies them, and
        are not smoothed: they predict less well. It needs bounds and categories of all columns from public knowledge. Errors of
        a number count as symmetric: with skewed ones, such as costs, bands are not for the mean.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the choices that need no secrecy: initial weights, public blocks and the order of a single pass. It never seeds
        the noise, which comes from the operating system's cryptographic generator.
    verbose : int or None, default=None
        None shows a progress bar on a terminal if the fit takes more than 3 seconds; 0 shows nothing; 1 prints about ten lines; 2
        prints one line per release, and partitions done where a pass takes long.

    Attributes
    ----------
    basis_ : AdditiveBasis
        The basis functions, with public or released knots; ``terms`` lists the coefficients of each column.
    coef_ : ndarray of shape (1, n_functions) or (n_classes, n_functions)
        Released coefficients of the functions.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    noise_ : CoefficientNoise
        Noise of the coefficients. Present only if the solver reports it.
    inference_ : Inference
        The parts of the covariance of the coefficients. Present only after a fit for inference.
    shape_functions_ : dict of ShapeFunction
        The function of each column, with a band for the noise, or after a fit for inference with a confidence band.
    baseline_ : ndarray of shape (1,)
        Raw prediction of an average record, of shape (n_classes,) for more than two classes.
    n_iter_ : int
        Number of steps, which is public.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The privacy report: guarantee, releases, noise and assumptions.
    schema_ : Schema
        The columns. Present only with a schema, or if they were learned.
    learnt_ : dict
        What was learned of each column: kind, limits, scale, share of missing cells, and numbers of integers or categories.
        ``pandas.DataFrame(learnt_).T`` is a table. Present only if columns were learned.
    n_features_in_ : int
        Number of columns: those of the schema where there is one.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names. Present only if X has column names.

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLogisticRegression : Linear in the columns.
    DPAdditiveRegressor : For numbers as targets.
    skdp.solvers.StandardizedGradientDescent : The solver "standardized_gd".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: public functions map each record by itself, and the fitted attributes are computed from the releases of the
    schedule on the mapped records and from public values. Hats have a bounded norm by construction, and rows that are longer than
    the bound are scaled down to it. No knot depends on the records unless ``knots="private"`` or ``inference=True``: then sums
    of hats are released first, with sensitivity 1 (``sqrt(2)`` under ``replace_one``), and map the rows of all further releases.
    Fits for inference make the releases of `skdp.solvers.InferenceDescent` besides. The following are
    public: the shape of X, its column names and their dtypes, the schema or the bounds, the class labels, all parameters and the
    number of steps. The guarantee assumes that the numbers in X are finite, or missing where the schema has a ``fill``, and that
    every label is one of the classes. It treats one record as one person. Two fits spend twice the budget; ``score`` on training
    records is not private.

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

    _task_class = AdditiveClassificationTask

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
        max_sample_weight: float | None = None,
        inference: bool = False,
        random_state: Any = None,
        verbose: int | None = None,
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
        self.max_sample_weight = max_sample_weight
        self.inference = inference
        self.random_state = random_state
        self.verbose = verbose


class AdditiveRegressionTask(IntervalTask, AdditiveTask, RegressionTask):
    """Task of an additive regressor."""

    dyadic = False  # each hat costs in the second moment, which the solver releases

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_numbers(signal, basis)


class DPAdditiveRegressor(WeightedMixin, IntervalMixin, AdditiveModel, DPRegressor):
    r"""Additive regression whose fitted model is differentially private.

    The prediction is the sum of one function per column: piecewise linear for a number, one value per category. Each pair of
    columns in ``interactions`` adds a function of both. The functions are combinations of public basis functions, which cost no
    privacy: hats on public knots, the scaled value itself, and indicators. One call of ``fit`` finds the combination from noisy
    answers only. There is nothing to tune.

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
        Algorithm, as for `DPLinearRegression`; "auto" takes "whitened_gd", which needs no tuning.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. None takes the range in ``schema``; without a schema it means (-1, 1) and warns.
    schema : "learn", path-like, dict, Schema or None, default=None
        Public facts about the columns of a data frame, in the form that `skdp.preprocessing.from_schema` takes: bounds of
        numbers, "log" for amounts with a long tail, categories. With a key "columns", it ignores other columns. It must not be
        computed from the data. "learn" learns the columns with 2 to 10 % of the squared budget, as
        `skdp.preprocessing.LearnedSchema` does. A dict of some columns alone, such as ``{"hour": "category"}``, describes these,
        and the others are learned. None learns the columns of a data frame in memory, too, unless ``feature_bounds`` or
        ``data_norm`` is given, or the solver cannot share the budget. A table in partitions, such as one of Parquet files, needs
        "learn".
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Without a schema, all columns are numbers, and these are their public bounds, in the units of X: a number B for
        ``|x_ij| <= B``, a pair (low, high) for all columns, one pair per column, or a dict from every column name (x0, x1, ...
        for arrays) to a number or a pair. None means 1 and warns. Values outside the bounds are clipped to them. They must not be
        computed from the data.
    interactions : list of pair of str or int, default=()
        Pairs of columns, by name or position, whose joint effect the model includes. Each pair adds the products of the hats or
        indicators of its two columns, and every product adds noise: name only a few pairs that are known to matter.
    knots : "auto", "private" or int, default="auto"
        Number of even intervals between knots of a number. 0 means no hats: the model is linear in the numbers. "auto" takes 16,
        8 or 4, as many as the noise allows, and none when noise would dominate. "private" has the same number of knots: a few are
        even, the others follow the distribution of the records, which a release with 5 % of the budget estimates. It gained up to
        .004 of R2 on one of two tables.
    monotone : dict or None, default=None
        Columns of numbers, by name or position, whose function may only rise (1) or only fall (-1). Isotonic regression makes the
        released function monotone, at no cost in budget; functions of pairs stay unchanged.
    alpha : float or None, default=None
        Strength of an additional L2 penalty on the coefficients of the basis, excluding the intercept. If None, the solver sets
        it: 0 for "whitened_gd", which shrinks the coefficients according to the known noise instead.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a record's scaled numbers (in [-1, 1], 0 at zero or at the nearest bound) and
        indicators together. The fit scales longer records down to it. None means ``sqrt(n_categories + n_numbers / 3 + 0.6 *
        sqrt(n_numbers))``, which one record in 40 exceeds if the numbers are spread evenly. No record exceeds
        ``sqrt(n_columns)``. It must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient. If None, the solver sets it.
    max_sample_weight : float or None, default=None
        Public bound on the weights of records, which ``fit`` then takes as ``sample_weight``. Each weight is a private part of
        its record; a larger one counts as the bound. The bound must not be computed from the data. None takes no weights.
    inference : bool, default=False
        Whether the fit releases, within the same epsilon, what confidence bands and tests of the population need: `bands`,
        `column_tests` and `predict_interval` use it. The functions then have few knots, so that the budget identifies them, and
        are not smoothed: they predict less well. It needs bounds and categories of all columns from public knowledge. Errors of
        a number count as symmetric: with skewed ones, such as costs, bands are not for the mean.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the choices that need no secrecy: initial weights, public blocks and the order of a single pass. It never seeds
        the noise, which comes from the operating system's cryptographic generator.
    verbose : int or None, default=None
        None shows a progress bar on a terminal if the fit takes more than 3 seconds; 0 shows nothing; 1 prints about ten lines; 2
        prints one line per release, and partitions done where a pass takes long.

    Attributes
    ----------
    basis_ : AdditiveBasis
        The basis functions, with public or released knots; ``terms`` lists the coefficients of each column.
    coef_ : ndarray of shape (n_functions,)
        Released coefficients of the functions.
    intercept_ : float
        Released intercept.
    target_bounds_ : tuple of float
        The range of predictions.
    noise_ : CoefficientNoise
        Noise of the coefficients. Present only if the solver reports it.
    inference_ : Inference
        The parts of the covariance of the coefficients. Present only after a fit for inference.
    shape_functions_ : dict of ShapeFunction
        The function of each column, with a band for the noise, or after a fit for inference with a confidence band.
    baseline_ : ndarray of shape (1,)
        Raw prediction of an average record.
    n_iter_ : int
        Number of steps, which is public; 0 if only the mean of y was estimated.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The privacy report: guarantee, releases, noise and assumptions.
    schema_ : Schema
        The columns. Present only with a schema, or if they were learned.
    learnt_ : dict
        What was learned of each column: kind, limits, scale, share of missing cells, and numbers of integers or categories.
        ``pandas.DataFrame(learnt_).T`` is a table. Present only if columns were learned.
    n_features_in_ : int
        Number of columns: those of the schema where there is one.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names. Present only if X has column names.

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLinearRegression : Linear in the columns.
    DPAdditiveClassifier : For classes.
    skdp.solvers.WhitenedGradientDescent : The solver "whitened_gd".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: public functions map each record by itself, and the fitted attributes are computed from the releases of the
    schedule on the mapped records and from public values. Hats have a bounded norm by construction, and rows that are longer than
    the bound are scaled down to it. No knot depends on the records unless ``knots="private"`` or ``inference=True``: then sums
    of hats are released first, with sensitivity 1 (``sqrt(2)`` under ``replace_one``), and map the rows of all further releases.
    Fits for inference make the releases of `skdp.solvers.InferenceDescent` besides. The following are
    public: the shape of X, its column names and their dtypes, the schema or the bounds, ``target_bounds``, all parameters and the
    number of steps. The guarantee assumes that y is finite and that the numbers in X are finite, or missing where the schema has
    a ``fill``. It treats one record as one person. Two fits spend twice the budget; ``score`` on training records is not private.

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

    _task_class = AdditiveRegressionTask

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
        max_sample_weight: float | None = None,
        inference: bool = False,
        random_state: Any = None,
        verbose: int | None = None,
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
        self.max_sample_weight = max_sample_weight
        self.inference = inference
        self.random_state = random_state
        self.verbose = verbose
