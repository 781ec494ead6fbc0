"""Private logistic regression, binary and multinomial."""

import math
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp._progress import with_callbacks
from skdp._tables import Facts, read_table, read_unlabelled
from skdp._validation import check_class_weight, check_classes, check_integer
from skdp.estimators._base import MOST_SAMPLES, DPEstimator
from skdp.estimators._plan import Plan
from skdp.estimators._refusals import explain_refusals
from skdp.estimators._statement import report
from skdp.losses import Logistic, Multinomial
from skdp.privacy.budget import Budget
from skdp.privacy.noise import NoiseSource
from skdp.privacy.report import PrivacyReport
from skdp.solvers import Problem, Solver, SolverResult

__all__ = ["DPLogisticRegression"]

MOST_CLASSES = 2**20  # that a plan is made for


class DPLogisticRegression(ClassifierMixin, DPEstimator):
    r"""Logistic regression whose fitted model is differentially private.

    One call of ``fit`` minimises, on noisy answers only,

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b, y_i) + \frac{\alpha}{2} \|w\|^2

    with the logistic loss for two classes and the softmax cross-entropy for more.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive: smaller is more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 is pure epsilon-DP, which "objective" and
        "output" support.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables the guarantee makes indistinguishable: those that differ in one record replaced by any other, or in one
        record replaced by a null record that contributes nothing (what DP-SGD libraries report).
    solver : "auto", str or Solver, default="auto"
        Algorithm: ``"standardized_gd"``, ``"gd"``, ``"sgd"``, ``"objective"``, ``"output"``, or a solver object such as
        ``GradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    alpha : float or None, default=None
        Strength of the L2 penalty, which spares the intercept ("objective" and "output" include it); ``1 / (C n_samples)`` in
        terms of scikit-learn's ``C``. None leaves it to the solver, from public facts.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X; longer rows are scaled down to it during the fit.
        None means ``sqrt(n_features)``, which features in [-1, 1] never exceed but one-hot columns stay far below. Must not
        be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. None leaves it to the
        solver ("standardized_gd": from its first release; "gd": from public facts).
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise of "gd" and "sgd" grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``. "standardized_gd" has its own.
    classes : array-like or None, default=None
        All class labels. None reads the label set from y; the guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Positive number per class label, 1 where a label is missing; from public knowledge, not from y.
    random_state : int, Generator, RandomState or None, default=None
        None draws noise from the operating system's cryptographic generator. Anything else makes the noise reproducible,
        which is for tests: it is not private against someone who knows the seed.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line per release.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept, zero without ``fit_intercept``.
    n_iter_ : int
        Number of steps, public; not for "objective" and "output", where it would depend on the data.
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
    skdp.solvers.StandardizedGradientDescent : The solver "standardized_gd".
    skdp.solvers.GradientDescent : The solver "gd".
    skdp.solvers.SGD : The solver "sgd".
    skdp.solvers.ObjectivePerturbation : The solver "objective".
    skdp.solvers.OutputPerturbation : The solver "output".
    skdp.solvers.Newton : The solver "newton", for two classes.

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    adjacency in force: the fitted attributes are computed from the releases of the solver's schedule and from public values.
    Public are the shape of X, its column names, dtype and storage, the class labels, all parameters and the number of steps;
    that X is finite and y within the classes is assumed. One record is taken to be one person. Two fits spend twice;
    cross-validation and grid searches fit many times; ``score`` on training records is not private.

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
    >>> model = DPLogisticRegression(epsilon=1.0, random_state=0).fit(X, y)
    >>> model.coef_.shape
    (1, 20)
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
        alpha: float | None = None,
        data_norm: float | None = None,
        clip_norm: float | None = None,
        fit_intercept: bool = True,
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
        self.alpha = alpha
        self.data_norm = data_norm
        self.clip_norm = clip_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, **unsupported: Any) -> "DPLogisticRegression":
        """Fit the model, spending the budget once.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records; a data frame's column names are kept. Not copied where its dtype is an integer, float32 or float64.
        y : array-like of shape (n_samples,)
            Class labels.
        **unsupported : dict
            Refused: ``sample_weight`` and other arguments raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. A fit that is interrupted leaves it as it was.
        """
        return self._fit(X, y, unsupported)

    def plan(self, n_samples: int, n_features: int, n_classes: int = 2) -> PrivacyReport:
        """Return the report of a fit on a table of the given shape, before any data is touched.

        Parameters
        ----------
        n_samples : int
            Number of records, at least 2.
        n_features : int
            Number of features, at least 1.
        n_classes : int, default=2
            Number of classes, at least 2; taken from ``classes`` where that is given.

        Returns
        -------
        PrivacyReport
            Spent budget, releases, noise, and how large the noise is against the signal.

        Raises
        ------
        TypeError, ValueError
            As `fit` does.
        """
        check_integer("n_samples", n_samples, minimum=2, maximum=MOST_SAMPLES)
        check_integer("n_features", n_features, minimum=1, maximum=MOST_SAMPLES)
        check_integer("n_classes", n_classes, minimum=2, maximum=MOST_CLASSES)
        self._check_parameters()
        classes = None if self.classes is None else check_classes(self.classes)
        weights = check_class_weight(self.class_weight, classes)
        unknown = [*weights, *(object() for _ in range(n_classes))][:n_classes]  # labels nobody named weigh 1
        plan = self._plan(int(n_samples), int(n_features), unknown if classes is None else classes.tolist(), weights)
        return report(self, plan, NoiseSource(self.random_state))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the raw predictions.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records, used as given: rows are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log-odds of ``classes_[1]`` for two classes, one raw prediction per class for more.
        """
        check_is_fitted(self)
        raw = read_unlabelled(self, X) @ self.coef_.T + self.intercept_
        return raw[:, 0] if self.classes_.size == 2 else raw

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class label of each record.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of ``classes_``.
        """
        raw = self.decision_function(X)
        return self.classes_[(raw > 0).astype(np.intp) if raw.ndim == 1 else raw.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum to 1, columns in the order of ``classes_``.
        """
        raw = self.decision_function(X)
        return np.stack([expit(-raw), expit(raw)], axis=1) if raw.ndim == 1 else softmax(raw, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Computed without underflow, columns in the order of ``classes_``.
        """
        raw = self.decision_function(X)
        return np.stack([log_expit(-raw), log_expit(raw)], axis=1) if raw.ndim == 1 else log_softmax(raw, axis=1)

    def _read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        return read_table(scratch, X, y, self.classes)

    def _plan_of(self, facts: Facts) -> Plan:
        weights = check_class_weight(self.class_weight, facts.classes)
        return self._plan(facts.n_samples, facts.n_features, facts.labels, weights, facts.storage == "CSC")

    def _model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        coef, intercept = plan.problem.unpack(result.coef)
        return {"classes_": facts.classes, "coef_": coef, "intercept_": intercept}

    def _assumed_of_y(self) -> str:
        if self.classes is None:
            return "the label set is read from y: neighbours have the same label set (classes=[...] removes this)"
        return "every label is one of the given classes"

    def _plan(
        self, n_samples: int, n_features: int, classes: list[Any], weights: dict[Any, float], by_column: bool = False
    ) -> Plan:
        problem = Problem(
            n_samples=n_samples,
            n_features=n_features,
            loss=Logistic() if len(classes) == 2 else Multinomial(len(classes)),
            budget=Budget.from_parameters(self.epsilon, self.delta, self.adjacency, n_samples),
            data_norm=math.sqrt(n_features) if self.data_norm is None else float(self.data_norm),
            intercept_scaling=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            class_weight=tuple(weights.get(label, 1.0) for label in classes) if weights else None,
        )
        return Plan.make(problem, self.solver, self.alpha, self.clip_norm, by_column)
