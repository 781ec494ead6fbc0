"""Private linear support vector machines."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from skdp._validation import check_option
from skdp.estimators._base import LinearModel, WeightedMixin
from skdp.estimators._classifier import ClassificationTask, DPClassifier
from skdp.estimators._unsupported import complete_estimator
from skdp.losses import Hinge, HuberHinge, SquaredHinge
from skdp.privacy.queries import Loss

LOSSES = {loss.name: loss for loss in (Hinge, HuberHinge, SquaredHinge)}


class SVCTask(ClassificationTask):
    """Task of a support vector machine: its loss."""

    loss: Any

    def check_parameters(self) -> None:
        super().check_parameters()
        check_option("loss", self.loss, sorted(LOSSES))

    def _loss(self, n_classes: int) -> Loss:
        return LOSSES[self.loss](1 if n_classes == 2 else n_classes)


@complete_estimator
@dataclass(eq=False, repr=False)
class DPLinearSVC(WeightedMixin, LinearModel, DPClassifier):
    r"""Linear support vector classification whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b, y_i) + \frac{\alpha}{2} \|w\|^2

    with a loss of the margin, which is 0 for records on the correct side and far enough from the boundary. For more than two
    classes, it minimises the sum of the losses of each class against the rest: one release serves all classes, so they share one
    budget.

    Parameters
    ----------
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "objective" and
        "output" support for two classes and the loss "huber_hinge".
    loss : {"huber_hinge", "hinge", "squared_hinge"}, default="huber_hinge"
        See Notes.
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

    Attributes
    ----------
    classes_, coef_, intercept_
    n_iter_ : int
        Number of steps, which is public. Absent for "objective" and "output", whose number of steps depends on the data.
    noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_, n_features_in_
    feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLogisticRegression : The same with probabilities.
    skdp.solvers.StandardizedGradientDescent : The solver "standardized_gd", the usual choice of "auto".
    skdp.solvers.GradientDescent : The solver "gd".

    Notes
    -----
    The margin z is the raw prediction, or its negative for records of the other class. The losses are

    - ``"huber_hinge"``: :math:`1 - z` below 1/2, 0 above 3/2, :math:`(3/2 - z)^2 / 2` between, the hinge with a rounded corner;
    - ``"hinge"``: :math:`\max(0, 1 - z)`;
    - ``"squared_hinge"``: :math:`\max(0, 1 - z)^2`, the default of scikit-learn's ``LinearSVC``.

    The slope of the first two is at most 1, so that a record has little influence even if nothing is clipped. The slope of
    "squared_hinge" is unbounded, so that clipping changes the loss. "hinge" has a corner, around which steps of constant length
    oscillate; "huber_hinge" has none. The model has no probabilities; use `DPLogisticRegression` for them. A calibrator that is
    fitted to these predictions on private records is not private.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, the class labels, all parameters and the number of steps. The
    guarantee assumes that X is finite and that every label is one of the classes. It treats one record as one person. Two fits
    spend twice the budget; cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] C. Cortes, V. Vapnik, "Support-vector networks", Machine Learning 20 (1995).
    .. [2] O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19 (2007): "huber_hinge".
    .. [3] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12 (2011),
       Section 3.4: private support vector machines with this loss.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLinearSVC
    >>> X, y = make_classification(n_samples=2000, random_state=0)
    >>> model = DPLinearSVC(epsilon=1.0, feature_bounds=5.0).fit(X, y)
    >>> model.coef_.shape
    (1, 20)
    >>> print(f"{model.privacy_spent_.epsilon:.3f}")
    1.000
    """

    _task_class = SVCTask

    _: KW_ONLY
    loss: str = "huber_hinge"
    l1_ratio: float = 0.0
    classes: Any = None
    class_weight: dict[Any, float] | None = None
