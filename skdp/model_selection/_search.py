"""Search for the best of several private classifiers under one budget."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_regressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import ParameterGrid, ParameterSampler, train_test_split
from sklearn.utils import check_consistent_length
from sklearn.utils import check_random_state as generator_of
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._docstrings import complete_docstring, fill_docstring, quoted
from skdp._exported import Exported
from skdp._persons import planned_persons, taken_persons, without_number
from skdp._scikit_learn.callers import BAGS, is_one, join, one_run, parameters_of, warn_outside
from skdp._scikit_learn.copies import BoundToLedgers
from skdp._table_types import as_table, is_lazy
from skdp._validation import check_integer, check_number, check_random_state, shown
from skdp.estimators._planned_shape import read_shape
from skdp.inspection import check_pipeline
from skdp.metrics._evaluate import evaluate
from skdp.metrics._kind import FEWEST
from skdp.metrics._metrics import CLASSIFICATION
from skdp.metrics._predictions import taken
from skdp.model_selection._plan import COMPOSITION, STOPPING, SearchPlan
from skdp.preprocessing._frame_facts import leaves_to_learn
from skdp.privacy.budget import Budget, unit_of
from skdp.privacy.data.persons import Persons
from skdp.privacy.errors import DivergedError, LowSignalWarning, silently, warn
from skdp.privacy.ledger.charging import gaussian_mu_of, pay, prepaid, scheduled
from skdp.privacy.noise.sampling import order_of
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.release_plan import noise_stated

SCORES = {metric.scorer: metric for metric in CLASSIFICATION.values() if metric.searchable}  # by scikit-learn's names
RFE = ("RFE",)  # it fits until few features are left
OWN = ("epsilon", "delta", "adjacency")  # parameters of candidates that the search sets
Part = tuple[Any, Any, Any]  # X, y, and the number of the person of each row; None if records are protected
FEWEST_TRIALS = 5  # mean number; then no trial is run in less than one of 148 searches


def _delegates(method: str) -> Callable[[Any], bool]:
    def has(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), method)
        return True

    return has


@fill_docstring(scores=quoted(SCORES))
@dataclass(eq=False, repr=False)
class _DPSearch(Exported, ClassifierMixin, MetaEstimatorMixin, BoundToLedgers, ABC):
    """Base of the searches; subclasses list the candidates.

    Parameters
    ----------
    estimator : estimator
        A private classifier of two classes with ``predict_proba``, or a pipeline with exactly one such step. The search sets its
        ``epsilon``, ``delta`` and ``adjacency``. With ``privacy_unit="person"`` the search protects persons: it divides them, not
        their rows, and its numbers of records are numbers of persons.
    scoring : str, default="roc_auc"
        One of {scores}.
        Score by which candidates are compared, released with noise.
    epsilon : float, default=1.0
        Budget of all fits, scores and the refit together.
    delta : float or None, default=None
        Budget of all fits, scores and the refit together. None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables are neighbours.
    mechanism : {"auto", "composition", "random_stopping"}, default="auto"
        With "composition" every candidate is tried, and every score is released. With "random_stopping" the number of trials is
        secret, every trial draws a candidate, and only the best trial is released; candidates may remain untried. "auto" takes
        the first for up to three candidates.
    mean_trials : float, default=8
        Mean number of trials of random stopping, at least 5. No trial is run with probability ``exp(-mean_trials)``.
    refit : bool or "auto", default="auto"
        Whether the chosen candidate is fitted once more on all records, with half of the squared Gaussian-DP parameter. Otherwise
        the model is that of the chosen trial. "auto" refits after composition.
    validation_size : float, default=0.2
        Share of the records on which candidates are scored. They are drawn in public, whatever their labels are; persons are
        drawn in secret.
    random_state : int, Generator, RandomState or None, default=None
        Seed of what is public: the division of the records. It changes no noise and no secret draw.

    Attributes
    ----------
    best_estimator_ : estimator
        The final model.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_score_ : float
        Its noisy score. It is the largest of several, and so biased upwards: publish the score of other records.
    best_index_ : int
        Its place among the candidates.
    cv_results_ : dict of arrays
        What was released: with random stopping, the chosen candidate alone.
    plan_ : SearchPlan
        Division of the budget.
    privacy_report_ : PrivacyReport
        Guarantee of the whole search. The report of ``best_estimator_`` is that of one part of it.
    privacy_spent_ : PrivacySpent
        Epsilon and delta of the whole search.
    classes_ : ndarray of shape (2,)
        Labels of the chosen model.
    n_features_in_ : int
        Number of features of the chosen model.
    """

    estimator: Any
    _: KW_ONLY
    scoring: str = "roc_auc"
    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "replace_one"
    mechanism: str = "auto"
    mean_trials: float = 8
    refit: bool | str = "auto"
    validation_size: float = 0.2
    random_state: Any = None

    @abstractmethod
    def _candidates(self, seed: int) -> list[dict[str, Any]]:
        """Return the parameters of all candidates, from public facts."""

    def plan(self, n_samples: Any, *, persons: Any = None) -> SearchPlan:
        """Return the cost of a search on a table, compared with a fit with fixed parameters.

        Parameters
        ----------
        n_samples : int, tuple of int or table
            Number of records; or the shape (n_samples, n_features); or a table, of which only the shape is read.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row of a given table is, if persons are protected, as for `fit`; without a table, ``n_samples`` is the
            number of persons.

        Returns
        -------
        SearchPlan
            Print it.

        Raises
        ------
        TypeError, ValueError
            As `fit` does for parameters.
        """
        self._check_parameters()
        candidates = self._candidates(0)
        models = [self._candidate(candidate) for candidate in candidates]
        n_samples, n_persons = planned_persons(_unit_of(models), type(self).__name__, n_samples, persons)
        return self._plan(candidates, models, n_persons or read_shape(n_samples, None).n_samples)

    @one_run()
    @silently
    def fit(self, X: Any, y: Any = None, *, persons: Any = None) -> Any:
        """Search for the best candidate, and keep its model.

        Everything is charged once, before the first fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Training records.
        y : array-like of shape (n_samples,), default=None
            Labels of two classes, which no search does without.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, for candidates with ``privacy_unit="person"``: an id per row, integers or texts, or the name of a
            column of a data frame. All rows of a person are in one part.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        TypeError, ValueError
            For parameters or records that are not valid, candidates that are not private, and pipelines with steps that learn
            without noise. Nothing is charged then. ValueError after the charge if no trial succeeds.
        RuntimeError
            After the charge, if random stopping draws no trial, which has the probability ``exp(-mean_trials)`` for any records.
        BudgetExceededError
            If an active ledger has too little left.
        """
        self._check_parameters()
        X = as_table(X)
        if is_lazy(X):
            raise TypeError("A search needs a table in memory; expected an array, a sparse matrix or a data frame.")
        noise = NoiseSource(self.random_state)
        seed = self._seed(noise)
        candidates = self._candidates(seed)
        models = [self._candidate(candidate) for candidate in candidates]
        X, group = taken_persons(_unit_of(models), None, X, y, persons)
        del persons
        with without_number(None if group is None else group.n_rows):
            n_rows = self._checked_length(X, y)
        plan = self._plan(candidates, models, n_rows if group is None else group.n_persons)
        for doubt in plan.doubts:
            warn(f"{doubt}.", LowSignalWarning)
        parts = _divided(plan, X, y, group, seed, noise)
        whole = X, y, None if group is None else group.numbers
        bound = self._refusals(plan, models, parts[0], whole)
        given = {name: shown(value) for name, value in self.get_params(deep=False).items() if name != "random_state"}
        parameters = noise_stated(given, noise)
        pay(plan.spending(type(self).__name__, parameters), bound)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some follow from releases, and those of other trials are secret
            with _secret_draws(noise):
                attributes = self._searched(plan, candidates, models, parts, noise)
            if plan.refit:
                model = self._candidate(attributes["best_params_"], plan.epsilon_refit, plan.budget)
                with prepaid(plan.mu_refit, plan.budget.adjacency, plan.budget.unit):
                    attributes["best_estimator_"] = _fitted(model, *whole)
        report = plan.report(type(self).__name__, parameters, planned=False, reproducible=not noise.secure)
        self._commit({**attributes, "plan_": plan, "privacy_report_": report, "privacy_spent_": report.spent})
        return self

    def _check_parameters(self) -> None:
        if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")) or isinstance(self.estimator, type):
            raise TypeError(f"estimator={shown(self.estimator)}; expected a private classifier, or a pipeline that ends in one.")
        if is_regressor(self.estimator):
            raise TypeError(
                f"{type(self).__name__} scores the probabilities of two classes, and {type(self.estimator).__name__} predicts "
                "numbers; expected a classifier. The defaults of regressors need no search."
            )
        for name, values in (
            ("scoring", tuple(SCORES)),
            ("mechanism", ("auto", COMPOSITION, STOPPING)),
            ("refit", (True, False, "auto")),
        ):
            value = getattr(self, name)
            if not isinstance(value, (str, bool)) or value not in values:
                raise ValueError(f"{name}={shown(value)}; expected one of {', '.join(map(repr, values))}.")
        check_number("mean_trials", self.mean_trials, minimum=FEWEST_TRIALS)
        check_number("validation_size", self.validation_size, above=0.0, below=1.0)
        check_random_state(self.random_state)

    def _checked_length(self, X: Any, y: Any) -> int:
        """Return the number of labels; refuse none, more than two, and another number than that of the records."""
        if y is None:
            raise ValueError("y is None; expected the labels of two classes.")
        labels = quoting_no_data(y, lambda: column_or_1d(y))
        if len(quoting_no_data(y, lambda: np.unique(labels))) > 2:
            raise ValueError("y has more than two labels; expected two, as scores are those of two classes.")
        check_consistent_length(X, labels)
        return len(labels)

    def _seed(self, noise: NoiseSource) -> int:
        """Return the seed of what is public: the division of the records, and drawn candidates."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        read = noise.read if self.random_state is None else self.random_state.bytes
        return int.from_bytes(read(4), "little")

    def _plan(self, candidates: list[dict[str, Any]], models: list[Any], n_samples: int) -> SearchPlan:
        budget = Budget.from_parameters(self.epsilon, self.delta, self.adjacency, n_samples, _unit_of(models))
        if budget.delta == 0:
            raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
        n_validation = round(self.validation_size * n_samples)
        if n_validation < FEWEST or n_samples - n_validation < 2:
            raise ValueError(
                f"validation_size={self.validation_size!r} leaves {n_validation} {budget.unit}s for scores; expected at least "
                f"{FEWEST}."
            )
        kinds = {type(_spender(model)[1]) for model in models}
        sizes = n_samples - n_validation, n_validation
        same_kind, metric = len(kinds) == 1 and len(models) > 1, SCORES[self.scoring].name
        return SearchPlan.make(budget, len(candidates), self.mean_trials, sizes, self.mechanism, self.refit, same_kind, metric)

    def _candidate(self, candidate: dict[str, Any], epsilon: float | None = None, budget: Budget | None = None) -> Any:
        """Return an unfitted candidate, with a part of the budget if one is given."""
        drawn = {name: clone(value, safe=False) for name, value in candidate.items()}
        if any(name.rpartition("__")[2] in OWN for name in drawn):
            raise ValueError(f"A candidate has its own {' or '.join(OWN)}; expected those of the search only, for all together.")
        model = clone(self.estimator).set_params(**drawn)
        if not hasattr(model, "predict_proba"):
            unscored = " Clusters and components have no private score: fit each candidate in a ledger, where it is paid for."
            raise TypeError(
                f"{type(model).__name__} has no predict_proba; expected a private classifier with probabilities."
                f"{unscored * hasattr(model, 'transform')}"
            )
        # lines and files of trials would reveal their number, and workers do not know what is paid
        silent = {"verbose": False, "memory": None, "n_jobs": None}
        for prefix, part in _parts(model).items():
            of_part = part.get_params(deep=False)
            model.set_params(**{f"{prefix}{name}": value for name, value in silent.items() if of_part.get(name, value) != value})
        prefix, _ = _spender(model)
        if budget is not None:
            own = {"epsilon": epsilon, "delta": budget.delta, "adjacency": budget.adjacency}
            model.set_params(**{f"{prefix}{name}": value for name, value in own.items()})
        return model

    def _refusals(self, plan: SearchPlan, models: list[Any], of_fits: Part, whole: Part) -> list[tuple[str, str]]:
        """Run every fit up to its charge, so that errors come before the search is charged; return the bound ledgers."""
        bound = list(self._ledgers)
        for model in models:
            prefix, spender = _spender(model)
            task = spender._task()
            classes = task.classes if leaves_to_learn(getattr(task, "schema", None)) else task.label_set()
            if classes is not None and len(classes) != 2:
                raise ValueError(f"A candidate has {len(classes)} classes; expected two, as scores are those of two classes.")
            holders = [part for place, part in _parts(model).items() if place != prefix and prefix.startswith(place)]
            if plan.budget.unit == "person" and not all(is_one(part, "Pipeline") for part in holders):
                raise TypeError(
                    f"privacy_unit='person' in a {type(model).__name__}, which does not pass persons on; expected the private "
                    "classifier, or a pipeline that ends in it."
                )
            if any(getattr(part, "_skl_callbacks", None) for part in _parts(model).values()):
                raise TypeError(
                    "A candidate, or a part of it, has callbacks, which would get models that are secret, and their number. "
                    "Use none: call set_callbacks() of each part that has some."
                )
            again = clone(model)
            rest = {f"{prefix}delta": plan.budget.delta, f"{prefix}adjacency": plan.budget.adjacency}
            model.set_params(**{f"{prefix}epsilon": plan.epsilon_trial}, **rest)
            again.set_params(**{f"{prefix}epsilon": plan.epsilon_refit or plan.epsilon_trial}, **rest)
            if plan.budget.private:
                _check_steps(model)
            spent, of_fit = scheduled(partial(_fitted, model, *of_fits))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the same as before
                scheduled(partial(_fitted, again, *whole))
            bound += of_fit
            gaussian_mu_of(spent)
        return list(dict.fromkeys(bound))

    def _searched(
        self, plan: SearchPlan, candidates: list[dict[str, Any]], models: list[Any], parts: list[Part], noise: NoiseSource
    ) -> dict[str, Any]:
        """Run the trials; return the released results."""
        if plan.mechanism == COMPOSITION:
            order = list(range(len(candidates)))
        else:  # from the source of noise, whatever random_state is: the number of trials and the other trials are secret
            secret = np.random.default_rng(int.from_bytes(noise.read(32), "little"))
            order = secret.integers(len(candidates), size=secret.poisson(plan.mean_trials)).tolist()
            if not order:
                raise RuntimeError(
                    f"Random stopping drew no trial, which has the probability {np.exp(-plan.mean_trials):.2g} for any records; "
                    "the charge stands."
                )
        best, scores = (-np.inf, -1, None), []
        for index in order:
            score, model = self._trial(candidates[index], plan, parts)
            scores.append(score)
            best = (score, index, model) if score > best[0] else best
        if best[2] is None:
            raise ValueError("No candidate could be fitted and scored; the charge stands.")
        kept = range(len(candidates)) if plan.mechanism == COMPOSITION else (best[1],)
        released = scores if plan.mechanism == COMPOSITION else [best[0]]
        return {
            "best_score_": best[0],
            "best_params_": candidates[best[1]],
            "best_index_": best[1],
            "best_estimator_": best[2],
            "cv_results_": _table([candidates[index] for index in kept], np.array(released)),
        }

    def _trial(self, candidate: dict[str, Any], plan: SearchPlan, parts: list[Part]) -> tuple[float, Any]:
        """Return the private score and the model of one candidate; minus infinity and None for one whose fit diverges."""
        of_fits, (X_test, y_test, persons) = parts
        model = self._candidate(candidate, plan.epsilon_trial, plan.budget)
        metric = SCORES[self.scoring]
        try:
            with prepaid(plan.mu_trial, plan.budget.adjacency, plan.budget.unit):
                _fitted(model, *of_fits)
        except (DivergedError, ArithmeticError, ValueError):  # from releases: these records passed all checks before the charge
            return -np.inf, None
        with prepaid(plan.mu_trial, plan.budget.adjacency, plan.budget.unit):  # which no record lets fail
            found = evaluate(
                model,
                X_test,
                y_test,
                metrics=metric.name,
                epsilon=plan.epsilon_trial,
                delta=plan.budget.delta,
                adjacency=plan.budget.adjacency,
                noise="gaussian",
                persons=persons,
            )
        score = metric.sign * metric.interval(found.table, found.level)[0]
        return (score, model) if np.isfinite(score) else (-np.inf, None)

    @available_if(_delegates("predict"))
    def predict(self, X: Any) -> Any:
        """Predict labels with the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_delegates("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    @available_if(_delegates("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Predict decision values with the chosen model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the chosen model by ``scoring``, as searches of scikit-learn do.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records that the search did not have.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        float
            The exact score, which is not private: `skdp.metrics.evaluate` publishes one.
        """
        check_is_fitted(self, "best_estimator_")
        return float(get_scorer(self.scoring)(self.best_estimator_, X, y))

    @property
    def classes_(self) -> Any:
        """Labels of the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features of the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return int(self.best_estimator_.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: two classes, and noise that does not repeat."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags


@complete_docstring
@dataclass(eq=False, repr=False)
class DPGridSearchCV(_DPSearch):
    """Choose among all combinations of parameters, or among estimators, within one privacy budget.

    Parameters
    ----------
    param_grid : dict or list of dict
        Values by name of the parameter, as for scikit-learn's ``GridSearchCV``. A step of a pipeline is a parameter, too, so that
        ``{"model": [A(), B()]}`` chooses between estimators.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, plan_, privacy_report_, privacy_spent_, classes_
    n_features_in_

    See Also
    --------
    skdp.metrics.evaluate : Publishes a score of test records.
    skdp.inspection.check_pipeline : Names the steps of a pipeline that learn without noise.

    Notes
    -----
    **When it pays.** In 24 measured cases (four tables, epsilon 0.5, 1 and 3) a search over parameters of one classifier was
    worse than its defaults, by 0.0004 to 0.035 of AUC, and the best candidate was at most 0.008 better than these. A search may
    pay for a choice between estimators, if you do not know which one suits the records. `plan` states what it costs.

    **Privacy.** One permutation, which does not depend on the records, divides them into a part for fits and a part for scores.
    Neighbours differ in one record of one part, so a fit and a score that are each mu-GDP together are mu-GDP. A record that is
    scored never ends a trial; a fit that diverges does, by its releases, and the trial counts as the worst. Composition adds the
    squares of all trials and of the refit. Random stopping has the bound of Papernot and Steinke (2022), Theorem 6, with the
    exact Gaussian curve of a trial. The whole is charged once to active ledgers, before the first fit. Only solvers of full-data
    Gaussian releases are accepted, which "auto" chooses. With random stopping, the time and the memory of the search depend on
    the number of trials, which is secret: keep them to yourself.

    References
    ----------
    .. [1] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import Pipeline
    >>> from skdp import DPAdditiveClassifier, DPLogisticRegression
    >>> from skdp.model_selection import DPGridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = (np.abs(X[:, 0]) + rng.normal(size=20_000) / 4 > 0.5).astype(int)
    >>> models = [DPLogisticRegression(data_norm=2.0), DPAdditiveClassifier(feature_bounds=(-1, 1))]
    >>> search = DPGridSearchCV(Pipeline([("model", models[0])]), {"model": models}, epsilon=2.0)
    >>> search.fit(X, y).best_index_
    1
    """

    param_grid: Any

    def _candidates(self, seed: int) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


@complete_docstring
@dataclass(eq=False, repr=False)
class DPRandomizedSearchCV(_DPSearch):
    """Choose among drawn combinations of parameters, or among estimators, within one privacy budget.

    Parameters
    ----------
    param_distributions : dict or list of dict
        Lists of values, or distributions with a method ``rvs``, by name of the parameter.
    n_iter : int, default=10
        Number of candidates that are drawn.
    random_state : int, Generator, RandomState or None, default=None
        Seed of what is public: the division of the records, and the candidates. It changes no noise and no secret draw.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, plan_, privacy_report_, privacy_spent_, classes_
    n_features_in_

    See Also
    --------
    skdp.metrics.evaluate : Publishes a score of test records.
    skdp.inspection.check_pipeline : Names the steps of a pipeline that learn without noise.

    Notes
    -----
    **When it pays.** In 24 measured cases (four tables, epsilon 0.5, 1 and 3) a search over parameters of one classifier was
    worse than its defaults, by 0.0004 to 0.035 of AUC, and the best candidate was at most 0.008 better than these. A search may
    pay for a choice between estimators, if you do not know which one suits the records. `plan` states what it costs.

    **Privacy.** One permutation, which does not depend on the records, divides them into a part for fits and a part for scores.
    Neighbours differ in one record of one part, so a fit and a score that are each mu-GDP together are mu-GDP. A record that is
    scored never ends a trial; a fit that diverges does, by its releases, and the trial counts as the worst. Composition adds the
    squares of all trials and of the refit. Random stopping has the bound of Papernot and Steinke (2022), Theorem 6, with the
    exact Gaussian curve of a trial. The whole is charged once to active ledgers, before the first fit. Only solvers of full-data
    Gaussian releases are accepted, which "auto" chooses. With random stopping, the time and the memory of the search depend on
    the number of trials, which is secret: keep them to yourself.

    References
    ----------
    .. [1] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import DPRandomizedSearchCV
    >>> drawn = {"alpha": loguniform(1e-4, 1e-2)}
    >>> search = DPRandomizedSearchCV(DPLogisticRegression(data_norm=2.0), drawn, n_iter=3, epsilon=1.0)
    >>> print(search.plan(10_000))  # doctest: +ELLIPSIS
    Search     3 candidates, composition: every candidate is tried once, and every score is released
    ...
    Doubt      The candidates are of one class...
    """

    param_distributions: Any
    _: KW_ONLY
    n_iter: int = 10

    def _candidates(self, seed: int) -> list[dict[str, Any]]:
        check_integer("n_iter", self.n_iter, minimum=1)
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=seed))


def _parts(model: Any) -> dict[str, Any]:
    """Return a candidate and all estimators that it holds, by the prefix of their parameters."""
    held = parameters_of("", model).items()
    return {join(name, ""): part for name, part in held if hasattr(part, "get_params") and not isinstance(part, type)}


def _spender(model: Any) -> tuple[str, Any]:
    """Return the prefix of the parameters of the one step that spends a budget, and the step, which is fitted once."""
    parts = _parts(model)
    for part in parts.values():
        if is_one(part, *RFE) or (is_one(part, *BAGS) and part.n_estimators != 1):
            raise TypeError(
                f"{type(part).__name__} of a candidate fits what it holds several times; a trial pays for one fit. Use a "
                "private classifier, or a pipeline that fits one once."
            )
    found = [
        (prefix, part)
        for prefix, part in parts.items()
        if any(kind.__module__.startswith("skdp.") for kind in type(part).__mro__)
        and set(OWN) <= set(part.get_params(deep=False))
    ]
    found = [(prefix, part) for prefix, part in found if not any(prefix != q and prefix.startswith(q) for q, _ in found)]
    if len(found) != 1:
        raise TypeError(
            f"{len(found)} steps of {type(model).__name__} spend a budget; expected exactly one, a private classifier of skdp."
        )
    return found[0]


def _unit_of(models: list[Any]) -> str:
    """Return what all candidates protect; raise ValueError if some protect persons, and others records."""
    units = {unit_of(getattr(_spender(model)[1], "privacy_unit", "record")) for model in models}
    if len(units) > 1:
        raise ValueError("Some candidates protect records, and others persons; expected one privacy_unit for all.")
    return units.pop()


def _divided(plan: SearchPlan, X: Any, y: Any, group: Persons | None, seed: int, noise: NoiseSource) -> list[Part]:
    """Return the part for fits and the part for scores. All rows of a person are in one, by a secret order of all persons."""
    parts, numbers = [], np.arange(plan.n_units)
    if group is None:
        divided = train_test_split(numbers, test_size=plan.n_validation, random_state=seed)
    else:  # not by a public seed: another id of one person would move the numbers of others
        divided = np.split(order_of(noise.key(), plan.n_units), [plan.n_train])
    for units in divided:
        places = units if group is None else np.flatnonzero(np.isin(group.numbers, units))
        parts.append((taken(X, places), taken(y, places), None if group is None else group.numbers[places]))
    return parts


def _fitted(model: Any, X: Any, y: Any, persons: Any) -> Any:
    """Fit a candidate; pipelines pass the persons on to the step that spends the budget."""
    if persons is None:
        return model.fit(X, y)
    with config_context(enable_metadata_routing=False):  # then a step needs no request for an argument that names it
        return model.fit(X, y, **{f"{_spender(model)[0]}persons": persons})


@contextmanager
def _secret_draws(noise: NoiseSource) -> Iterator[None]:
    """Let parts with random_state=None draw from secret bits: a known state of NumPy would reveal the number of trials."""
    shared = generator_of(None)
    before = shared.get_state()
    shared.seed(np.frombuffer(noise.read(32), dtype=np.uint32))
    try:
        yield
    finally:
        shared.set_state(before)


def _check_steps(model: Any) -> None:
    """Refuse a candidate with steps that learn without noise; warn about unknown ones."""
    check = check_pipeline(model)
    if check.leaks:
        raise ValueError(
            f"{', '.join(check.leaks)} of a candidate learn from the records without noise, which no budget of a search covers. "
            "See skdp.inspection.check_pipeline; nothing was charged."
        )
    if check.unknown:
        warn_outside(
            f"What {', '.join(check.unknown)} of a candidate keep after fit may depend on the records; no budget covers that."
        )


def _table(candidates: list[dict[str, Any]], scores: np.ndarray) -> dict[str, Any]:
    """Return released results in scikit-learn's form."""
    names = sorted({name for candidate in candidates for name in candidate})
    columns: dict[str, Any] = {}
    for name in names:
        column = np.ma.masked_all(len(candidates), dtype=object)
        for row, candidate in enumerate(candidates):
            if name in candidate:
                column[row] = candidate[name]
        columns[f"param_{name}"] = column
    ranks = np.array([1 + int((scores > score).sum()) for score in scores], dtype=np.int32)
    return {**columns, "params": candidates, "mean_test_score": scores, "rank_test_score": ranks}
