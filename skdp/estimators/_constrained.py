"""Private linear models with constrained coefficients."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from skdp.constraints import Constraint, constraint_of
from skdp.estimators._base import LinearModel
from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask
from skdp.estimators._regressor import DPRegressor, RegressionTask
from skdp.estimators._task import Task
from skdp.estimators._unsupported import complete_estimator


class ConstrainedTask(Task):
    """Task of a constrained model: its set."""

    constraint: Any
    radius: Any

    def constraint_set(self) -> Constraint:
        return constraint_of(self.constraint, self.radius)


@dataclass(eq=False, repr=False)
class ConstrainedModel(LinearModel):
    """Base of the constrained models.

    Parameters
    ----------
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "frank_wolfe"
        supports.
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name from `skdp.solvers.SOLVERS` such as ``"frank_wolfe"``, or a solver object such as
        ``AcceleratedMirrorDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    constraint : {"l1", "l2", "simplex", "box"} or Constraint, default="l1"
        Set of allowed coefficients; the intercept is free. Either the name of a set of size ``radius``, an object of
        `skdp.constraints`, or any object with the methods ``project`` and ``scaled``.
    alpha : float or None, default=0.0
        Strength of an additional L2 penalty. If None, the solver sets it from public facts.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from every column name (x0, x1, ... for arrays) to a number or a pair. They must not be
        computed from the data. They set the default of ``data_norm``, and the clip norms of solvers that work coordinate by
        coordinate; only the larger absolute value of a pair matters. They do not scale the columns, because the set of
        coefficients is in the units of X, and they do not clip entries: an entry beyond its bound makes the row longer (see
        ``data_norm``).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X. The fit scales longer rows down to it. None means the
        norm of the feature bounds, or ``sqrt(n_features)`` if there are none. It must not be computed from the data.
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not constrained. "accmd" and "frank_wolfe" do not support it.
    """

    _: KW_ONLY
    constraint: "str | Constraint" = "l1"
    radius: float = 1.0
    alpha: float | None = 0.0
    fit_intercept: bool = False


class ConstrainedRegressionTask(ConstrainedTask, RegressionTask):
    """Task of a constrained regression: its losses."""

    losses: ClassVar[tuple[str, ...]] = ("squared", "huber")


@complete_estimator
@dataclass(eq=False, repr=False)
class DPConstrainedRegression(ConstrainedModel, DPRegressor):
    r"""Linear regression over a set of coefficients, whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise

    .. math:: \frac1n \sum_i \ell(x_i^\top w - y_i) + \frac{\alpha}{2} \|w\|^2 \quad \text{over } w \in \mathcal{C},

    for example over an l1 ball, for which the noise costs little accuracy even with many features.

    Parameters
    ----------
    radius : float, default=1.0
        Size of a set given by its name, in units of y per unit of X; not used for an object.
    loss : {"squared", "huber"}, default="squared"
        Half the squared residual, which needs a range of y, or Huber's loss, whose slope is at most ``threshold``.
    threshold : float or None, default=None
        Residual beyond which Huber's loss is linear, in the units of y; positive. None means a quarter of the width of the range
        of y, given or learned, or 1 if there is no range.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. None learns the range together with columns that are learned. If no column is learned,
        None means (-1, 1) for the squared loss, and warns; Huber's loss then assumes that y lies near 0, and warns if
        ``threshold`` is None and ``solver`` is "auto".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not constrained. "accmd" and "frank_wolfe" do not support it. Without one, y is not
        centred.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Released coefficients, in the set up to rounding.
    intercept_
    target_bounds_ : tuple of float or None
        Range of the predictions; None if it was not given.
    n_iter_, noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_
    n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPConstrainedClassifier : For class labels.
    DPLinearRegression : Without a constraint.
    skdp.solvers.AcceleratedMirrorDescent : The solver "accmd".
    skdp.solvers.FrankWolfe : The solver "frank_wolfe".

    Notes
    -----
    The solver's unit of y is half the width of ``target_bounds``, or the threshold if there are no bounds. The set is scaled to
    this unit, and ``alpha`` and ``clip_norm`` are in this unit.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, all parameters (including ``target_bounds`` and the constraint) and
    the number of steps. The guarantee assumes that X and y are finite. It treats one record as one person. Two fits spend twice
    the budget; cross-validation and grid searches fit many times; ``score`` on training records is not private.

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

    _task_class = ConstrainedRegressionTask

    _: KW_ONLY
    loss: str = "squared"
    threshold: float | None = None
    target_bounds: tuple[float, float] | None = None


class ConstrainedClassificationTask(ConstrainedTask, ProbabilisticTask):
    """Task of a constrained classifier."""


@complete_estimator
@dataclass(eq=False, repr=False)
class DPConstrainedClassifier(ConstrainedModel, DPProbabilisticClassifier):
    r"""Logistic regression over a set of coefficients, whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise

    .. math:: \frac1n \sum_i \ell(x_i^\top w, y_i) + \frac{\alpha}{2} \|w\|^2 \quad \text{over } w \in \mathcal{C}

    with the logistic loss for two classes and the softmax cross-entropy for more.

    Parameters
    ----------
    constraint : {"l1", "l2", "simplex", "box"} or Constraint, default="l1"
        Set of allowed coefficients; the intercept is free. Either the name of a set of size ``radius``, an object of
        `skdp.constraints`, or any object with the methods ``project`` and ``scaled``. With more than two classes, a single set
        constrains the coefficients of all classes, feature by feature.
    radius : float, default=1.0
        Size of a set given by its name, in log-odds per unit of X; not used for an object.

    Attributes
    ----------
    classes_
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients, in the set up to rounding; one row for two classes.
    intercept_, n_iter_, noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_
    n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPConstrainedRegression : For numbers as targets.
    DPLogisticRegression : Without a constraint.
    skdp.solvers.AcceleratedMirrorDescent : The solver "accmd".
    skdp.solvers.FrankWolfe : The solver "frank_wolfe".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, the class labels, all parameters (including the constraint) and the
    number of steps. The guarantee assumes that X is finite and that every label is one of the classes. It treats one record as
    one person. Two fits spend twice the budget; cross-validation and grid searches fit many times; ``score`` on training records
    is not private.

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

    _task_class = ConstrainedClassificationTask

    _: KW_ONLY
    classes: Any = None
    class_weight: dict[Any, float] | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: a model through the origin cannot follow class weights, and scores poorly with them."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.fit_intercept
        return tags
