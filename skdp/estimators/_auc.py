"""Private maximisation of the area under the ROC curve."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdp._data_validation import Facts
from skdp._validation import check_integer, check_number, check_option, shown
from skdp.data._predictions import scored, takes_tables
from skdp.estimators._classifier import DPClassifier, ProbabilisticTask, check_two_classes
from skdp.estimators._plan import Plan
from skdp.estimators._raw_predictions import raw_predictions
from skdp.estimators._unsupported import complete_estimator
from skdp.scorers import MLPScorer
from skdp.solvers import AUCProblem, Problem, Solver, SolverResult

SCORERS = ("linear", "mlp")
BLOCK = 4096  # rows that go through a network at a time
MOST_LAYERS, WIDEST_LAYER = 16, 2**20


class AUCTask(ProbabilisticTask):
    """Task of a score for ranking: its kind, and the share of positive records."""

    scorer: Any
    hidden_layer_sizes: Any
    positive_rate: Any
    class_balance: Any

    def check_parameters(self) -> None:
        super().check_parameters()
        check_option("scorer", self.scorer, list(SCORERS))
        _check_layers(self.hidden_layer_sizes)
        check_number("positive_rate", self.positive_rate, above=0.0, below=1.0, optional=True)
        check_number("class_balance", self.class_balance, minimum=0.0, maximum=1.0)

    def problem_of(self, facts: Facts) -> Problem:
        check_two_classes(len(facts.labels), "as the ROC curve is of one against the other")
        return self._problem(
            facts.n_samples,
            facts.n_features,
            self._loss(2),
            AUCProblem,
            positive_rate=None if self.positive_rate is None else float(self.positive_rate),
            class_balance=float(self.class_balance),
            hidden_layer_sizes=() if self.scorer == "linear" else tuple(int(size) for size in self.hidden_layer_sizes),
        )

    def _of_features(self, plan: Plan, coef: np.ndarray) -> np.ndarray:
        problem = cast(AUCProblem, plan.problem)
        return (
            super()._of_features(plan, coef) if problem.linear else cast(MLPScorer, problem.scorer()).layers(coef[:, 0])[0][0].T
        )

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        problem = cast(AUCProblem, plan.problem)
        if problem.linear:
            return super().model(plan, result, facts)
        (first, bias), *layers = cast(MLPScorer, problem.scorer()).layers(result.coef[:, 0])
        outer = (first, bias) if plan.scaling is None else plan.scaling.to_columns(first, bias)
        weights, biases = zip(outer, *layers, strict=True)
        return {
            **self._labels(facts),
            "coefs_": [np.ascontiguousarray(matrix.T) for matrix in weights],
            "intercepts_": [vector.copy() for vector in biases],
        }


@complete_estimator
@dataclass(eq=False, repr=False)
class DPAUCMaximizer(DPClassifier):
    r"""Maximise the area under the ROC curve of a score for two classes, with differential privacy.

    The area (AUC) is the probability that a record of the second class scores higher than a record of the first:

    .. math:: \Pr[s(x) > s(x') \mid y = 1, y' = 0], \qquad s(x) = x^\top w + b

    Only the order of the scores matters. "auto" uses only noisy answers about the data to minimise the logistic loss of the
    score.

    Parameters
    ----------
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 (pure epsilon-DP) is not supported.
    solver : "auto", str or Solver, default="auto"
        Algorithm. ``"standardized_gd"`` minimises the logistic loss; "auto" takes it for a linear score. "sgda", which "auto"
        takes for a network, and "privatediff" solve the least-squares saddle problem of [1]_; "moments" computes its solution in
        closed form, for a linear score. Or a solver object such as ``SGDA(batch_size=2048)``. The report names the choice and its
        reason.
    scorer : {"linear", "mlp"}, default="linear"
        Kind of score: linear in the features, or a network of dense layers with rectified linear units.
    hidden_layer_sizes : sequence of int, default=(256, 128)
        Widths of the hidden layers of "mlp". The default suits images and tens of thousands of records. A network that is too
        wide for the table ranks no better than chance; the line on noise in ``plan(n_samples, n_features)`` warns of this.
    positive_rate : float or None, default=None
        Share of ``classes_[1]``, in (0, 1), if it is publicly known; it must not be computed from y. None estimates it with 1 %
        of the squared Gaussian-DP parameter of the budget, and up to 40 % on small tables (2 % for "sgda" and "privatediff";
        "moments" releases the counts anyway). The report shows this release.
    class_balance : float, default=0.0
        Power b in [0, 1]: a record of the larger class weighs ``(p_min / p_maj)**b`` in the gradient, before the clip, with the
        released or public class frequencies. 1 gives both classes the same weight; see Notes. Only "standardized_gd" uses it: the
        other solvers ignore it and give both classes the same weight ("moments" has a parameter for it).
    alpha : float or None, default=None
        Strength of an L2 penalty, which excludes the intercept. If None, the solver sets it from public facts. "sgda" and
        "privatediff" penalise the variables they optimise: the coefficients of the standardised features, or all parameters of a
        network.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from every column name (x0, x1, ... for arrays) to a number or a pair. They must not be
        computed from the data. The fit clips the columns to these bounds and divides each column by the larger absolute value of
        its bounds, so that columns of different scales have the same influence; ``coef_`` is in the units of X. A model with an
        intercept also shifts each column whose bounds exclude zero, so that the nearer bound becomes zero. The penalty applies to
        the coefficients of the scaled columns. None takes X as it is.
    classes : array-like or None, default=None
        Both class labels; records of the second one, in sorted order, should score higher. None reads the label set from y; the
        guarantee then holds between tables with the same label set.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features)
        Released coefficients of a linear score.
    intercept_ : ndarray of shape (1,)
        Released intercept of a linear score. It does not change the AUC, but changes the labels that `predict` returns.
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Released weights of "mlp", a matrix per layer, as in scikit-learn's MLPClassifier.
    intercepts_ : list of ndarray of shape (n_outputs,)
        Released biases of "mlp".
    n_iter_
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting, or by numerical accounting if the solver samples, as it does for
        networks.
    privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range and for any number of classes but two, before anything is
        released.

    See Also
    --------
    DPLogisticRegression : Has probabilities and more than two classes.
    skdp.solvers.StandardizedGradientDescent : The solver "standardized_gd".

    Notes
    -----
    The surrogate of "auto" is the logistic loss, because it gives a higher AUC at equal epsilon than the square-loss saddle
    problem of [1]_ and [2]_. The optimum of that problem is a class-balanced discriminant analysis, whose AUC is lower on most
    tables, and its noise is larger. "auto" runs `DPLogisticRegression` without its last stage, which calibrates probabilities and
    does not change the order of the scores; the budget of that stage goes to the steps. Hence there are no probabilities, and the
    threshold 0 of `predict` is only approximate.

    With ``class_balance`` the rare class has more weight, and fewer records determine the gradient. This ranks better on some
    tables and worse on others, above all where noise limits the fit. Finding out which would spend budget, so it is off by
    default.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    class frequencies are a release or the given ``positive_rate``; they are never read from y without noise. The following are
    public: the shape of X, its column names, the class labels, all parameters (including ``positive_rate``) and the number of
    steps. The guarantee assumes that X is finite and that every label is one of the classes. It treats one record as one person.
    Two fits spend twice the budget; cross-validation and grid searches fit many times; ``score`` on training records is not
    private. An interrupted fit leaves no partial model, and its budget stays spent.

    References
    ----------
    .. [1] Y. Ying, L. Wen, S. Lyu, "Stochastic Online AUC Maximization", NeurIPS 2016: the saddle point.
    .. [2] R. Zhang et al., "Improved Rates of Differentially Private Nonconvex-Strongly-Concave Minimax Optimization", AAAI 2025.
    .. [3] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 4: the steps.
    .. [4] S. Agarwal, "Surrogate regret bounds for bipartite ranking via strongly proper losses", JMLR 15 (2014): why the
       logistic loss ranks.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPAUCMaximizer
    >>> X, y = make_classification(n_samples=5000, weights=[0.9], random_state=0)
    >>> model = DPAUCMaximizer(epsilon=1.0, feature_bounds=5.0).fit(X, y)
    >>> model.coef_.shape
    (1, 20)
    >>> bool(model.score(X, y) > 0.8)
    True
    >>> print(f"{model.privacy_spent_.epsilon:.3f}")
    1.000
    """

    _task_class = AUCTask

    _only_ranks: ClassVar[bool] = True  # labels would need a threshold, which is not released
    _refused: ClassVar[dict[str, str]] = {
        "activation": "hidden units of a network are rectified linear ones",
        "batch_size": "samples belong to the solver: solver=SGDA(batch_size=2048)",
        "learning_rate": "steps follow from public facts; SGDA(primal_step_size=...) as solver sets them",
        "learning_rate_init": "steps follow from public facts; SGDA(primal_step_size=...) as solver sets them",
        "class_weight": "only the order counts; class_balance=1 makes both classes weigh the same, by released frequencies",
        "clip_norm": "it would have to be tuned; StandardizedGradientDescent(clip=...) as solver sets it relative to usual norms",
        "fit_intercept": "an intercept moves no AUC; there is always one, from which the features are centred",
        "intercept_scaling": "an intercept moves no AUC; there is always one, with a scale of its own",
        "l1_ratio": "the penalty is L2; alpha sets its strength",
        "loss": "the surrogate belongs to the solver",
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    solver: "str | Solver" = "auto"
    scorer: str = "linear"
    hidden_layer_sizes: Any = (256, 128)
    positive_rate: float | None = None
    class_balance: float = 0.0
    alpha: float | None = None
    schema: Any = None
    feature_bounds: Any = None
    data_norm: float | None = None
    classes: Any = None
    random_state: Any = None
    verbose: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: two classes only; with noise, tables of a test's size are ranked poorly."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = self._is_noisy()
        return tags

    @property
    def predict_proba(self) -> Any:
        """Refused: scores are for ranking and have no scale."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_proba: its scores are for ranking and are not log-odds; expected "
            "decision_function, or DPLogisticRegression, which has probabilities."
        )

    @takes_tables
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
            Higher means more likely ``classes_[1]``.
        """
        if not hasattr(self, "coefs_"):
            return super().decision_function(X)
        table = self._rows_of(X)
        rows = table.tocsr() if sparse.issparse(table) else table
        scores = [forward(rows[start : start + BLOCK], self.coefs_, self.intercepts_) for start in range(0, rows.shape[0], BLOCK)]
        return np.concatenate(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the area under the ROC curve of the scores, without noise.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,) or None, default=None
            Labels from ``classes_``; both must be present. A table in partitions may name them.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the records.

        Returns
        -------
        float
            1 if every record of ``classes_[1]`` scores higher than every record of ``classes_[0]``; 1/2 for a constant score. If
            the records are private, so is the score: keep it as secret as they are.

        Raises
        ------
        ValueError
            If y holds one class only, or another label.
        """
        check_is_fitted(self)
        X, y = scored(X, y)
        labels = column_or_1d(y)
        positive = labels == self.classes_[1]
        if not np.logical_or(positive, labels == self.classes_[0]).all():
            raise ValueError(
                "y holds labels that are not in classes_; the AUC is of the two classes that the model was fitted to."
            )
        if positive.all() or not positive.any():
            raise ValueError("y holds one class only: the AUC compares records of two; expected labels of both classes.")
        return float(roc_auc_score(positive, self.decision_function(X), sample_weight=sample_weight))


def forward(block: Any, weights: list[np.ndarray], biases: list[np.ndarray]) -> np.ndarray:
    """Return the scores of some rows, shape (m,), by a network of rectified linear units."""
    units = block
    for matrix, vector in zip(weights[:-1], biases[:-1], strict=True):
        units = raw_predictions(units, matrix, vector)
        np.maximum(units, 0.0, out=units)
    return raw_predictions(units, weights[-1], biases[-1])[:, 0]


def _is_whole(value: object) -> bool:
    """Tell whether a value is an integer of any type."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _check_layers(sizes: Any) -> None:
    """Raise TypeError or ValueError unless the hidden layers are a short sequence of positive integers."""
    if not isinstance(sizes, (tuple, list)) or not 1 <= len(sizes) <= MOST_LAYERS or not all(map(_is_whole, sizes)):
        raise TypeError(f"hidden_layer_sizes={shown(sizes)}; expected a tuple of 1 to {MOST_LAYERS} integers, such as (32,).")
    for place, size in enumerate(sizes):
        check_integer(f"hidden_layer_sizes[{place}]", size, minimum=1, maximum=WIDEST_LAYER)
