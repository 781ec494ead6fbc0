"""Private linear classification that minimises the loss of the worst group."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from skdp._data_validation import Facts
from skdp._progress import with_callbacks
from skdp._table_types import is_lazy
from skdp._validation import check_integer
from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask, check_two_classes
from skdp.estimators._group_labels import Groups, check_group_sizes, read_groups
from skdp.estimators._plan import Plan
from skdp.estimators._report import brief
from skdp.estimators._unsupported import complete_estimator
from skdp.privacy.errors import silent, warn
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import GroupDROProblem, Problem, Solver, SolverResult


class GroupDROTask(ProbabilisticTask):
    """Task of a classifier for the worst of several public groups."""

    takes_groups = True

    def read(  # type: ignore[override]
        self, scratch: Any, X: Any, y: Any, groups: Any = None
    ) -> tuple[Facts, Any, np.ndarray, np.ndarray | None]:
        facts, table, codes = super().read(scratch, X, y)
        public, numbers = read_groups(groups, facts.n_samples)
        return replace(facts, extra=public), table, codes, numbers

    def check_inputs(self, n_samples: int, **inputs: Any) -> None:
        read_groups(inputs["groups"], n_samples)

    def problem_of(self, facts: Facts) -> Problem:
        check_two_classes(len(facts.labels), "as the groups are compared by the logistic loss of one score")
        sizes = Groups.of(facts).sizes or (facts.n_samples,)
        return self._problem(facts.n_samples, facts.n_features, self._loss(2), GroupDROProblem, group_sizes=sizes)

    def described(self, plan: Plan) -> dict[str, Any]:
        sizes = brief(list(cast(GroupDROProblem, plan.problem).group_sizes))
        return {**super().described(plan), "group_sizes": sizes}

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        groups = Groups.of(facts)
        return {
            **super().model(plan, result, facts),
            "groups_": groups.labels,
            "group_sizes_": np.array(groups.sizes),
            "group_weights_": result.dual,
        }


@complete_estimator
@dataclass(eq=False, repr=False)
class DPGroupDROClassifier(DPProbabilisticClassifier):
    r"""Logistic regression for two classes that minimises the loss of the worst group, with differential privacy.

    One call of ``fit`` uses only noisy answers about the data to approach the saddle point of

    .. math:: \min_{w, b} \max_{v \ge 0, \sum_g v_g = 1}
       \sum_g v_g \frac{1}{n_g} \sum_{i \in g} \ell(x_i^\top w + b, y_i) + \frac{\alpha}{2} \|w\|^2,

    which minimises the largest mean logistic loss of a group of records. The groups are public.

    Parameters
    ----------
    delta : float or None, default=None
        Privacy parameter, at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``; 0 (pure epsilon-DP) is not supported.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which pairs of tables the guarantee covers. They differ in one record, which is replaced by any other record of the same
        group ("replace_one") or by a null record of the same group that contributes nothing ("zero_out").
    solver : "auto", str or Solver, default="auto"
        Algorithm: "sgda", which "auto" takes, "privatediff", or a solver object such as ``SGDA(300)``.
    alpha : float or None, default=None
        Strength of an L2 penalty on the coefficients of the standardised features, excluding the intercept. None means 0.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from every column name (x0, x1, ... for arrays) to a number or a pair. They must not be
        computed from the data. The fit clips the columns to these bounds and divides each column by the larger absolute value of
        its bounds, so that columns of different scales have the same influence; ``coef_`` is in the units of X. A model with an
        intercept also shifts each column whose bounds exclude zero, so that the nearer bound becomes zero. The penalty applies to
        the coefficients of the scaled columns. None takes X as it is.
    classes : array-like or None, default=None
        Both class labels. None reads the label set from y; the guarantee then holds between tables with the same label set.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features)
        Released coefficients.
    intercept_ : ndarray of shape (1,)
        Released intercept.
    groups_ : ndarray of shape (n_groups,)
        Sorted group labels, which are public; the single label 0 if ``groups=None``.
    group_sizes_ : ndarray of shape (n_groups,)
        Number of training records in each group, which is public.
    group_weights_ : ndarray of shape (n_groups,)
        Released weights v of the groups; the larger the weight, the more the group influenced the fit.
    n_iter_
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting, or by numerical accounting if the solver samples.
    privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, for any number of classes but two, and for groups that do not
        match the records, before anything is released.

    See Also
    --------
    DPLogisticRegression : Minimises the mean over all records; more accurate on average.
    skdp.minimax.GroupDROSaddle : The saddle problem.
    skdp.solvers.SGDA : The solver "sgda".

    Notes
    -----
    Predictions need no group. The average accuracy falls, and the smallest group sets the noise: if it has all the weight, the
    noise of a gradient is ``n / n_min`` times the noise for the mean over all records.

    With ``groups=None`` there is one group, and the fit is a logistic regression by gradient descent; `DPLogisticRegression` does
    that better. Cross-validation and searches give ``groups`` to the splitter only, unless metadata routing is on and
    ``set_fit_request(groups=True)`` asks for them (or ``params={"groups": groups}``, in ``cross_validate``): check ``groups_``.
    To form groups from two attributes, join them into one label. A fit takes several times as long as one of
    `DPLogisticRegression`.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency, *if the groups are public*: their sizes are read without noise, and neighbouring tables have the same group
    for every record. Use groups that anybody may know, such as the hospital or the year. Groups that are made from the labels
    make the labels public, and a column that must be protected must not be given as groups; the software cannot check this. One
    record's gradient is multiplied by ``n_min / n_g`` times the weight of its group before it is clipped: the bound holds for a
    record of any group, and sums are divided by public sizes, so records of small and of large groups are protected equally.
    Everything else is as for the solver: the attributes are computed from its releases and from public values. The following are
    public, too: the shape of X, its column names, the class labels, all parameters and the number of steps. The guarantee assumes
    that X is finite and that every label is one of the classes. It treats one record as one person. Two fits spend twice the
    budget; cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang, "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020:
       the objective.
    .. [2] R. Zhang et al., "Improved Rates of Differentially Private Nonconvex-Strongly-Concave Minimax Optimization", AAAI 2025:
       the solvers.

    Examples
    --------
    A tenth of the records follow a different rule:

    >>> import numpy as np
    >>> from skdp import DPGroupDROClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.uniform(-1, 1, size=(20000, 2)), np.where(np.arange(20000) < 2000, "few", "many")
    >>> y = X[:, 0] + np.where(groups == "few", 1.0, -0.2) * X[:, 1] > 0
    >>> model = DPGroupDROClassifier(epsilon=1.0).fit(X, y, groups=groups)
    >>> model.groups_.tolist()
    ['few', 'many']
    >>> bool(model.score(X[:2000], y[:2000]) > 0.8)
    True
    """

    _task_class = GroupDROTask

    _refused: ClassVar[dict[str, str]] = {
        "class_weight": "every group counts by its mean loss; a class may be a group where the label is public, else give none",
        "clip_norm": "SGDA(primal_clip_norm=..., dual_clip_norm=...) as solver sets the bounds of both sides",
        "fit_intercept": "there is always an intercept, from which the features are centred",
        "groups": "groups go with the records: fit(X, y, groups=groups)",
        "intercept_scaling": "the intercept has a scale of its own",
        "l1_ratio": "the penalty is L2; alpha sets its strength",
        "loss": "the loss is the logistic one",
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    solver: "str | Solver" = "auto"
    alpha: float | None = None
    schema: Any = None
    feature_bounds: Any = None
    data_norm: float | None = None
    classes: Any = None
    random_state: Any = None
    verbose: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: two classes only; with noise, tables of a test's size are classified poorly."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = self._is_noisy()
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the model, spending the budget once.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            {records}
        y : array-like of shape (n_samples,)
            Labels of two classes.
        groups : array-like of shape (n_samples,) or None, default=None
            Public label of every record's group, all text or all numbers, with at least two records per group. None means one
            group. They must not be made from y.
        **unsupported : dict
            Refused: ``sample_weight`` and other arguments raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. An interrupted fit leaves it unchanged.
        """
        with silent():
            if is_lazy(X) and groups is not None:
                raise TypeError(
                    "groups is given beside a table in partitions, which names its own; expected npy(X, y, groups=...)."
                )
            if groups is not None and groups is y:
                raise ValueError(
                    "groups is y; expected public groups, which are not made from the labels: their sizes are published."
                )
            if groups is None and not is_lazy(X):
                warn(
                    "groups=None: all records are one group, and the mean loss of all is minimised. Use one public label per "
                    "record, or DPLogisticRegression, which does that better.",
                    UserWarning,
                )
            return self._fit(X, y, unsupported, groups=groups)

    def plan(
        self,
        n_samples: Any,
        n_features: int | None = None,
        n_classes: int | None = None,
        *,
        persons: None = None,
        group_sizes: Any = None,
    ) -> PrivacyReport:
        """Return the report of a fit on a table of the given shape, before any data is touched.

        Parameters
        ----------
        n_samples : int, tuple of int or table
            Number of records, at least 2; or the shape (n_samples, n_features); or a table; only its shape is read.
        n_features : int or None, default=None
            Number of columns, at least 1. None where a shape or a table tells it.
        n_classes : int or None, default=None
            Number of classes: 2, or None.
        persons : None, default=None
            Not taken: the sizes of groups are public, and a person may be in several of them.
        group_sizes : sequence of int, dict or None, default=None
            Number of records of every group; they add up to n_samples. None is one group.

        Returns
        -------
        PrivacyReport
            Spent budget, releases, noise, how large the noise is against the signal, and how many records, in groups of the
            same shares, or which epsilon, would be enough.

        Raises
        ------
        TypeError, ValueError
            As `fit` does.
        """
        check_integer("n_classes", n_classes, minimum=2, maximum=2, optional=True)
        if persons is not None:
            raise TypeError("persons is given to DPGroupDROClassifier, which protects single rows; expected None.")

        def groups(n_samples: int) -> Groups:
            return Groups(sizes=check_group_sizes(group_sizes, n_samples))

        return self._planned(self._task(), n_samples, n_features, n_classes, groups)
