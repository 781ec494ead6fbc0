"""Score fitted models privately inside cross-validations and searches of scikit-learn."""

from dataclasses import dataclass
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from skdp._docstrings import fill_docstring, quoted
from skdp._persons import check_given
from skdp._scikit_learn.callers import check_splits
from skdp._validation import shown
from skdp.metrics._definition import ErrorMetric
from skdp.metrics._error_kind import kind_of_errors, refuse_bounds
from skdp.metrics._evaluate import evaluate
from skdp.metrics._kind import FEWEST, budget_of
from skdp.metrics._metrics import METRICS
from skdp.privacy.budget import unit_of
from skdp.privacy.ledger.active import active, carried
from skdp.privacy.ledger.charging import along

SCORERS = {metric.scorer: metric for metric in METRICS.values() if metric.scorer}  # by scikit-learn's names


@dataclass(frozen=True)
class DPScorer:
    """Score a fitted model on sensitive records, with differential privacy for these; `dp_scorer` makes it.

    Parameters
    ----------
    scoring : str
        Name of the score.
    epsilon, delta : float
        Budget of each call.
    adjacency : {"replace_one", "zero_out"}
        Which tables of records are neighbours.
    error_bound, target_bounds : float or None, and tuple of float or None
        Public bounds of the scores of regressors.
    privacy_unit : {"record", "person"}
        What is protected.
    random_state : int, Generator, RandomState or None
        Seed of the noise inside `skdp.testing.reproducible_noise`.
    """

    scoring: str
    epsilon: float
    delta: float | None
    adjacency: str
    error_bound: float | None = None
    target_bounds: tuple[float, float] | None = None
    privacy_unit: str = "record"
    random_state: Any = None

    def set_score_request(self, *, persons: bool | str | None) -> "DPScorer":
        """State by which name scikit-learn passes the ids of persons on, as scorers of scikit-learn do for sample weights.

        Parameters
        ----------
        persons : bool, str or None
            True for their own name, or another one, such as "groups", which splitters get, too. False passes none on; None, the
            default, raises an error if some are given.

        Returns
        -------
        DPScorer
            The scorer itself.

        Raises
        ------
        RuntimeError
            If metadata routing is off, as it is by default.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request needs metadata routing; expected sklearn.set_config(enable_metadata_routing=True) before."
            )
        vars(self)["_persons"] = persons
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn passes on to the scorer.

        Returns
        -------
        MetadataRequest
            The request for persons.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="persons", alias=vars(self).get("_persons"))
        return request

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles, with the active ledgers: a worker process charges them."""
        own = vars(self).get("_ledgers", ())
        return {**vars(self), "_ledgers": tuple(dict.fromkeys((*own, *carried())))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state of a copy; ledgers that are active here are charged anyway and are not kept."""
        paying = {account.token for account in active()}
        vars(self).update(state)
        if "_ledgers" in state:  # an older file has none
            vars(self)["_ledgers"] = tuple(token for token in state["_ledgers"] if token not in paying)

    def __deepcopy__(self, memo: dict[int, Any]) -> "DPScorer":
        """Return the scorer itself, which stays in the process."""
        return self

    def __call__(self, estimator: Any, X: Any, y: Any, *, persons: Any = None) -> float:
        """Charge the active ledgers, and those that were active where the scorer was pickled, and return the private score.

        Parameters
        ----------
        estimator : classifier or regressor
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each record is, with ``privacy_unit="person"``.

        Returns
        -------
        float
            The score, larger is better; nan if its interval is too wide for one.
        """
        metric = SCORERS[self.scoring]
        check_given(self.privacy_unit, persons, "scorer(model, X, y, persons=ids)", "set_score_request")
        if persons is not None:
            check_splits()
        with along(vars(self).get("_ledgers")):
            found = evaluate(
                estimator,
                *(X, y),
                metrics=[metric.name],
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                error_bound=self.error_bound,
                target_bounds=self.target_bounds,
                persons=persons,
                random_state=self.random_state,
            )
        return metric.sign * found[metric.name].value


@fill_docstring(scorers=quoted(SCORERS))
def dp_scorer(
    scoring: str,
    *,
    epsilon: float = 1.0,
    delta: float | None = None,
    adjacency: str = "replace_one",
    error_bound: float | None = None,
    target_bounds: tuple[float, float] | None = None,
    privacy_unit: str = "record",
    random_state: Any = None,
) -> DPScorer:
    """Make a scorer with differential privacy, called as ``scorer(model, X, y)``.

    **Every call spends the whole budget**: ``cross_val_score`` with five folds spends it five times, once on each fold, and a
    grid search once for each candidate and fold. The active ledgers charge each call and add the charges up, also of calls in
    worker processes (``n_jobs``).

    Parameters
    ----------
    scoring : str
        Out of {scorers}.
        These are scikit-learn's names, for which larger is better.
    epsilon, delta : float
        Budget of each call. None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables of records are neighbours.
    error_bound : float or None, default=None
        Absolute errors, or deviances, of a regressor beyond this public number count as this number. None finds a bound within
        the budget.
    target_bounds : tuple of float or None, default=None
        Public range of the targets of a regressor, to which they are clipped. "r2" needs it.
    privacy_unit : {"record", "person"}, default="record"
        What is protected: a single row, or all rows of a person. With "person" the scorer is called with ``persons=ids``;
        scikit-learn passes them on if metadata routing is on and ``scorer.set_score_request(persons="groups")`` asks for them.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

    Returns
    -------
    DPScorer
        The scorer.

    Raises
    ------
    ValueError
        For parameters that are not valid.

    See Also
    --------
    evaluate : Several metrics with intervals for one budget.
    skdp.model_selection.DPGridSearchCV : Chooses among candidates within one budget for fits and scores.

    Notes
    -----
    **Privacy.** A call is an `evaluate` of one metric: its result is a function of that release. Folds of one table are disjoint
    and each is scored once per candidate, but their records also train the models of the other folds. So the ledger adds up.
    Which rows are in a fold must not depend on their labels: take ``cv=KFold(...)``, since an integer means stratified folds.

    scikit-learn turns errors of a scorer into nan and warns, also where a ledger has too little left. ``error_score="raise"``
    stops at the error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from skdp import DPLogisticRegression, PrivacyLedger
    >>> from skdp.metrics import dp_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(30_000, 3))
    >>> y = (X @ [4, -2, 1] + rng.logistic(size=30_000) / 2 > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[0, 1])
    >>> with PrivacyLedger(epsilon=10.0, delta=1e-6) as ledger:
    ...     scorer = dp_scorer("roc_auc", epsilon=1.0)
    ...     scores = cross_val_score(model, X, y, cv=KFold(3), scoring=scorer, error_score="raise")
    >>> len(scores), len(ledger.entries)
    (3, 6)
    """
    if scoring not in SCORERS:
        raise ValueError(f"scoring={shown(scoring)}; expected one of {', '.join(SCORERS)}.")
    budget_of(FEWEST, epsilon, delta, adjacency, unit=unit_of(privacy_unit))
    metric = SCORERS[scoring]
    if isinstance(metric, ErrorMetric):
        kind_of_errors((metric,), error_bound, target_bounds)
    else:
        refuse_bounds(error_bound, target_bounds)
    return DPScorer(scoring, epsilon, delta, adjacency, error_bound, target_bounds, privacy_unit, random_state)
