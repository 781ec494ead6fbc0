"""Private additive models: the sum of one function per column, which can be read like a scorecard."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from skdp.estimators._base import WeightedMixin
from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask
from skdp.estimators._inference import IntervalMixin, IntervalTask
from skdp.estimators._regressor import DPRegressor, RegressionTask
from skdp.estimators._unsupported import complete_estimator
from skdp.estimators.additive._base import AdditiveModel
from skdp.estimators.additive._knots import intervals_for_classes, intervals_for_numbers
from skdp.estimators.additive._task import AdditiveTask
from skdp.preprocessing import AdditiveBasis


class AdditiveClassificationTask(IntervalTask, AdditiveTask, ProbabilisticTask):
    """Task of an additive classifier."""

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_classes(signal, basis)


@complete_estimator
@dataclass(eq=False, repr=False)
class DPAdditiveClassifier(WeightedMixin, IntervalMixin, AdditiveModel, DPProbabilisticClassifier):
    r"""Additive logistic regression whose fitted model is differentially private.

    The log-odds are the sum of one function per column: piecewise linear for a number, one value per category. Each pair of
    columns in ``interactions`` adds a function of both. For more than two classes there is one such sum per class. The functions
    are combinations of basis functions that follow from the bounds and categories: hats on knots, the scaled value itself, and
    indicators. One call of ``fit`` finds the combination from noisy answers only. There is nothing to tune.

    Parameters
    ----------
    solver : "auto", str or Solver, default="auto"
        Algorithm, as for `DPLogisticRegression`; "auto" takes "standardized_gd", which needs no tuning.
    knots : "auto", "private" or int, default="auto"
        Number of even intervals between the knots of a number; four more knots lie below the first of them. 0 means no hats: the
        model is linear in the numbers. "auto" takes between 4 and 16, the more the smaller the noise is, and none when noise
        would dominate. "private" has the same number of knots: five are even, the others follow the distribution of the records,
        which a release with 5 % of the budget estimates. It is meant for bounds that are known to fit the values badly. Of six
        tables, it gained .02 to .03 of AUC on one and up to .015 on another, and lost up to .014 on the others. With
        ``inference=True``, "auto" and "private" have 4 to 8 intervals between quantiles, which the same release estimates.
    alpha : float or None, default=None
        Strength of an additional L2 penalty on the coefficients of the basis, excluding the intercept. If None, the solver sets
        it: 0 for "standardized_gd", which has its own ridge.
    class_weight : dict or None, default=None
        Public weight per class label, by which a record's loss is multiplied; 1 for other labels. "balanced" would read y and is
        refused.

    Attributes
    ----------
    basis_
    coef_ : ndarray of shape (1, n_functions) or (n_classes, n_functions)
        Released coefficients of the functions.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept.
    classes_, noise_, inference_, shape_functions_
    baseline_ : ndarray of shape (1,)
        Raw prediction of an average record, of shape (n_classes,) for more than two classes.
    n_iter_, privacy_spent_, privacy_report_, schema_, learnt_, n_features_in_, feature_names_in_

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

    _: KW_ONLY
    interactions: Any = ()
    knots: Any = "auto"
    monotone: dict[Any, int] | None = None
    classes: Any = None
    class_weight: dict[Any, float] | None = None


class AdditiveRegressionTask(IntervalTask, AdditiveTask, RegressionTask):
    """Task of an additive regressor."""

    dyadic = False  # each hat costs in the second moment, which the solver releases

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_numbers(signal, basis)


@complete_estimator
@dataclass(eq=False, repr=False)
class DPAdditiveRegressor(WeightedMixin, IntervalMixin, AdditiveModel, DPRegressor):
    r"""Additive regression whose fitted model is differentially private.

    The prediction is the sum of one function per column: piecewise linear for a number, one value per category. Each pair of
    columns in ``interactions`` adds a function of both. The functions are combinations of basis functions that follow from the
    bounds and categories: hats on knots, the scaled value itself, and indicators. One call of ``fit`` finds the combination from
    noisy answers only. There is nothing to tune.

    Parameters
    ----------
    solver : "auto", str or Solver, default="auto"
        Algorithm, as for `DPLinearRegression`; "auto" takes "whitened_gd", which needs no tuning.
    knots : "auto", "private" or int, default="auto"
        Number of even intervals between knots of a number. 0 means no hats: the model is linear in the numbers. "auto" takes 16,
        8 or 4, as many as the noise allows, and none when noise would dominate. "private" has the same number of knots: a few are
        even, the others follow the distribution of the records, which a release with 5 % of the budget estimates. It gained up to
        .004 of R2 on one of two tables.
    alpha : float or None, default=None
        Strength of an additional L2 penalty on the coefficients of the basis, excluding the intercept. If None, the solver sets
        it: 0 for "whitened_gd", which shrinks the coefficients according to the known noise instead.

    Attributes
    ----------
    basis_
    coef_ : ndarray of shape (n_functions,)
        Released coefficients of the functions.
    intercept_, target_bounds_, link_, calibration_, noise_, inference_, shape_functions_
    baseline_ : ndarray of shape (1,)
        Raw prediction of an average record.
    n_iter_ : int
        Number of steps, which is public; 0 if only the mean of y was estimated.
    privacy_spent_, privacy_report_, schema_, learnt_, n_features_in_, feature_names_in_

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

    _: KW_ONLY
    target_bounds: tuple[float, float] | None = None
    link: str = "identity"
    max_exposure: float = 1.0
    interactions: Any = ()
    knots: Any = "auto"
    monotone: dict[Any, int] | None = None
