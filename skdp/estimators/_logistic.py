"""Private logistic regression, binary and multinomial."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from skdp.estimators._base import LinearModel, WeightedMixin
from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask
from skdp.estimators._inference import InferenceMixin, InferenceTask
from skdp.estimators._plan import Plan
from skdp.estimators._shrunk_indicators import shrunk_indicators
from skdp.estimators._unsupported import complete_estimator
from skdp.privacy.oracle import Oracle
from skdp.solvers import SolverResult


class LogisticTask(InferenceTask, ProbabilisticTask):
    """Task of a logistic regression: shrink the effects of indicators."""

    def solved(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        return shrunk_indicators(self.row_schema, super().solved(plan, oracle, rng))


@complete_estimator
@dataclass(eq=False, repr=False)
class DPLogisticRegression(WeightedMixin, InferenceMixin, LinearModel, DPProbabilisticClassifier):
    r"""Logistic regression whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b, y_i) + \frac{\alpha}{2} \|w\|^2

    with the logistic loss for two classes and the softmax cross-entropy for more. The penalty can also be L1 or an elastic net.

    Parameters
    ----------
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "objective" and
        "output" support.
    alpha : float or None, default=None
        Strength of the penalty, which excludes the intercept (only "objective" and "output" include it); ``1 / (C n_samples)`` in
        terms of scikit-learn's ``C``. 0 means no penalty. If None, the solver sets it from public facts.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1,
        and a value in between is an elastic net. If it is positive, "auto" takes "gd".
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. If None, the solver sets it
        ("standardized_gd" from its first release, "gd" from public facts).
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise of "gd" and "sgd" grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``. "standardized_gd" sets its own constant.
    classes : array-like or None, default=None
        All class labels. None reads the label set from y; the guarantee then holds between tables with the same label set. Of two
        that are stated, the second is the event, whatever their order in ``classes_``.
    inference : bool, default=False
        Whether the fit also releases what confidence intervals and tests need, within the same budget; for two classes, with a
        ``schema`` of all columns, ``feature_bounds`` or ``data_norm``. `summary`, `confidence_intervals`, `contrast`, `wald_test`
        and `predict_interval` use it. The solver is then "inference", whose coefficients are not shrunk: they predict less well
        where noise is large. A schema leaves numbers in their units, and codes categories relative to their first level.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels. ``coef_``, ``decision_function`` and the columns of ``predict_proba`` follow this order.
    event_ : object
        Class whose odds `summary`, `contrast` and `confidence_intervals` state: the second of two stated ``classes``, or else
        ``classes_[1]``. Present only for two classes.
    coef_, intercept_, inference_
    n_iter_ : int
        Number of steps, which is public. Absent for "objective" and "output", whose number of steps depends on the data.
    noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_
    hardly_seen_ : dict
        Levels that no training record had, or so few that the releases do not tell their effect, by column, each with the largest
        share of the records that may have it, or nan where none is released, as by solvers of gradients alone. They take the
        average effect of the column. The report says where a solver tells nothing of them. Present only if a schema prepares the
        rows, with noise and without inference.
    learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    skdp.solvers.StandardizedGradientDescent : The solver "standardized_gd", the usual choice of "auto".
    skdp.solvers.GradientDescent : The solver "gd".

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, the class labels, all parameters and the number of steps. The
    guarantee assumes that X is finite and that every label is one of the classes. It treats one record as one person. Two fits
    spend twice the budget; cross-validation and grid searches fit many times; ``score`` on training records is not private.

    With a schema and two classes, the default solver tells the covariance of its noise. The coefficients of the indicators of a
    column are then posterior means, which shrink effects that noise explains: post-processing.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017.
    .. [2] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12 (2011).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression
    >>> X, y = make_classification(n_samples=2000, random_state=0)
    >>> model = DPLogisticRegression(epsilon=1.0, feature_bounds=5.0).fit(X, y)
    >>> model.coef_.shape
    (1, 20)
    >>> print(f"{model.privacy_spent_.epsilon:.3f}")
    1.000
    """

    _task_class = LogisticTask

    _: KW_ONLY
    l1_ratio: float = 0.0
    classes: Any = None
    class_weight: dict[Any, float] | None = None
