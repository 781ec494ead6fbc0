"""Private linear support vector machines."""

from typing import Any

from skdp._validation import shown
from skdp.estimators._classifier import ClassificationTask, DPClassifier
from skdp.estimators._sample_weight import WeightedMixin
from skdp.estimators._unsupported import explain_refusals
from skdp.losses import Hinge, HuberHinge, SquaredHinge
from skdp.privacy.queries import Loss
from skdp.solvers import Solver

__all__ = ["DPLinearSVC"]

LOSSES = {loss.name: loss for loss in (Hinge, HuberHinge, SquaredHinge)}


class SVCTask(ClassificationTask):
    """Task of a support vector machine: its loss."""

    loss: Any

    def check_parameters(self) -> None:
        super().check_parameters()
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise ValueError(f"loss={shown(self.loss)}; expected one of {sorted(LOSSES)}.")

    def _loss(self, n_classes: int) -> Loss:
        return LOSSES[self.loss](1 if n_classes == 2 else n_classes)


class DPLinearSVC(WeightedMixin, DPClassifier):
    r"""Linear support vector classification whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b, y_i) + \frac{\alpha}{2} \|w\|^2

    with a loss of the margin, which is 0 for records on the correct side and far enough from the boundary. For more than two
    classes, it minimises the sum of the losses of each class against the rest: one release serves all classes, so they share one
    budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive; smaller values are more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "objective" and
        "output" support for two classes and the loss "huber_hinge".
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which pairs of tables the guarantee covers. They differ in one record, which is replaced by any other record
        ("replace_one") or by a null record that contributes nothing ("zero_out", which DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name from `skdp.solvers.SOLVERS` such as ``"gd"``, or a solver object such as
        ``GradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    loss : {"huber_hinge", "hinge", "squared_hinge"}, default="huber_hinge"
        See Notes.
    alpha : float or None, default=None
        Strength of the penalty, which excludes the intercept (only "objective" and "output" include it); ``1 / (C n_samples)`` in
        terms of scikit-learn's ``C``. 0 means no penalty. If None, the solver sets it from public facts.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1,
        and a value in between is an elastic net. If it is positive, "auto" takes "gd".
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
        never exceed it, and rows of one-hot columns stay far below it. It must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. If None, the solver sets it
        ("standardized_gd" from its first release, "gd" from public facts).
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise of "gd" and "sgd" grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``. "standardized_gd" sets its own constant.
    classes : array-like or None, default=None
        All class labels. None reads the label set from y; the guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Positive weight per class label; a label that is missing has weight 1. The weights must come from public knowledge, not
        from y.
    max_sample_weight : float or None, default=None
        Public bound on the weights of records, which ``fit`` then takes as ``sample_weight``. Each weight is a private part of
        its record; a larger one counts as the bound. The bound must not be computed from the data. None takes no weights.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the choices that need no secrecy: initial weights, public blocks and the order of a single pass. It never seeds
        the noise, which comes from the operating system's cryptographic generator.
    verbose : int or None, default=None
        None shows a progress bar on a terminal if the fit takes more than 3 seconds; 0 shows nothing; 1 prints about ten lines; 2
        prints one line per release, and partitions done where a pass takes long.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept; zero if ``fit_intercept=False``.
    n_iter_ : int
        Number of steps, which is public. Absent for "objective" and "output", whose number of steps depends on the data.
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

    @explain_refusals
    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        adjacency: str = "replace_one",
        solver: "str | Solver" = "auto",
        loss: str = "huber_hinge",
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        schema: Any = None,
        feature_bounds: Any = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: Any = None,
        class_weight: dict[Any, float] | None = None,
        max_sample_weight: float | None = None,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.solver = solver
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.schema = schema
        self.feature_bounds = feature_bounds
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.max_sample_weight = max_sample_weight
        self.random_state = random_state
        self.verbose = verbose
