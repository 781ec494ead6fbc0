"""Fit several private steps, one after another, under one budget."""

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import available_if

from skdp._data_validation import len_of, quoting_no_data
from skdp._exported import Exported
from skdp._persons import planned_persons, taken_persons, without_number
from skdp._scikit_learn.copies import BoundToLedgers
from skdp._table_types import as_frame, as_table, is_lazy
from skdp._validation import check_number, shown
from skdp.estimators._report import LEARNED, beside_released, stated_parameters
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.errors import LowSignalWarning, PrivacyAccountingError, heard, silently, told_when_interrupted, warn
from skdp.privacy.ledger.charging import gaussian_mu_of, pay, prepaid, scheduled
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.release_plan import Cost
from skdp.privacy.report.statement import OTHER_FITS, PrivacyReport, assumed_of, foreign_class

__all__ = ["DPPipeline"]

OWN = ("epsilon", "delta", "adjacency", "privacy_unit")  # parameters that the pipeline sets for its steps
SLACK = 1e-8  # relative amount by which parts are rounded down: above the rounding of the conversions between epsilon and mu
OF_STEP = " of the step "
SAME = 40  # leading characters in which warnings are alike that say the same of a planned and of a fitted step
DELEGATED = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "inverse_transform")


@dataclass(frozen=True)
class Part:
    """Hold an unfitted step with its part of the budget.

    Parameters
    ----------
    name : str
        Of the step.
    model : estimator
        The step.
    mu : float
        Gaussian-DP parameter of its part.
    released : tuple of str, default=()
        Names of parameters that follow from releases of earlier steps.
    first : bool, default=True
        Whether no other step is before it.
    """

    name: str
    model: Any
    mu: float
    released: tuple[str, ...] = ()
    first: bool = True

    def behind(self, step: Any, n_features: int) -> "Part":
        """Return the step with facts about the rows that another one makes, if it has parameters for them and states none."""
        given, facts = self.model.get_params(deep=False), step._facts_of_output()
        names = [name for name in ("schema", "feature_bounds", "data_norm") if name in given]
        stated = any(given[name] is not None for name in names)
        known = {} if stated else {name: facts[name] for name in [name for name in names if name in facts][-1:]}
        if given.get("n_components") is not None:  # how many features a step learns is not known before
            known["n_components"] = min(given["n_components"], n_features)
        return replace(self, model=clone(self.model).set_params(**known), released=tuple(known), first=False)

    def stated(self, report: PrivacyReport) -> PrivacyReport:
        """Return the report of the step, which says what follows from earlier steps."""
        assumed = report.assumptions
        if not self.first:
            assumed = tuple(_of_rows(line) for line in assumed if line != LEARNED or "schema" not in self.released)
        if self.released:
            names = " and ".join(self.released)
            assumed = (f"{names}{OF_STEP}{self.name}: from what earlier steps released", *beside_released(assumed))
        return replace(report, assumptions=assumed)


def _of_rows(line: str) -> str:
    """Return an assumption of a step, of whose rows earlier steps make sure."""
    of_x, _, of_y = line.partition("; ")
    return f"its rows are what earlier steps make of the records; {of_y}" if " of X" in of_x else line


def _has(name: str) -> Callable[[Any], bool]:
    """Return a check whether the last step has a method, and all steps the one that goes back through them."""

    def has(pipeline: Any) -> bool:
        for _, step in pipeline.steps[0 if name == "inverse_transform" else -1 :]:
            getattr(step, name)
        return True

    return has


OF_DELEGATED = """Return ``{name}`` of the last step for what the steps before it make of X.

Parameters
----------
X : array-like or data frame of shape (n_samples, n_features)
    Records of your own.

Returns
-------
ndarray
    What the last step returns.
"""


def _delegate(name: str) -> Any:
    """Return the method of scikit-learn's pipeline, called on the fitted steps."""

    def method(self: Any, X: Any) -> Any:
        return getattr(self._fitted, name)(X)

    method.__name__, method.__doc__ = name, OF_DELEGATED.format(name=name)
    return available_if(_has(name))(method)


class DPPipeline(Exported, BoundToLedgers, Pipeline):
    r"""Pipeline of private steps that spends one budget.

    Each step is fitted on what the steps before it release, with a part of the budget, and the whole is charged once, before the
    first release. A scikit-learn pipeline of several private steps spends the budget of each of them.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and steps. All but the last are transformers that learn with a budget, such as
        `skdp.preprocessing.LearnedSchema`; the last is any estimator of skdp whose releases are full-data Gaussian, as those of
        its default solver are. No step sets its own ``epsilon``, ``delta``, ``adjacency`` or ``privacy_unit``: one that differs
        from the default of the step is an error, and one that equals it cannot be told from none, and counts for nothing.
    epsilon : float, default=1.0
        Budget of all steps together.
    delta : float or None, default=None
        Budget of all steps together, positive. None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables are neighbours.
    privacy_unit : {"record", "person"}, default="record"
        What the guarantee protects; with "person", ``fit(X, y, persons=ids)``.
    shares : "auto" or dict, default="auto"
        Part of the squared Gaussian-DP parameter that each step but the last gets, by name. The last one gets the rest. "auto" is
        .10 for `skdp.preprocessing.LearnedSchema`, and .25 for others.

    Attributes
    ----------
    steps_ : list of (str, estimator)
        The fitted steps; ``pipeline[name]`` and ``pipeline.named_steps`` are these after a fit. The report of each is that of
        its part.
    privacy_report_ : PrivacyReport
        Guarantee of the whole, with a heading for each step.
    privacy_spent_ : PrivacySpent
        Epsilon and delta of the whole.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names. Present only if X has column names.
    classes_ : ndarray
        Labels of the last step, if that is a classifier.

    Raises
    ------
    TypeError, ValueError, PrivacyAccountingError
        From ``fit``, before anything is charged: for steps that set a budget, that are not private, or that release other than
        full-data Gaussian answers; for a table in partitions; and for what a step refuses.

    See Also
    --------
    skdp.inspection.check_pipeline : Names the steps of a pipeline that learn without noise.

    Notes
    -----
    **When it pays.** Estimators of skdp learn the columns of a data frame by themselves, with ``schema="learn"``. A pipeline is
    for a share of your choice, and for steps that a single estimator does not have.

    **Privacy.** A step with the share s of the budget is :math:`\sqrt s \mu`-GDP, whatever the earlier steps released: it is
    calibrated to that before the first release. The map of the rows depends on these releases alone, and maps each record by
    itself. Squares of adaptive compositions of full-data Gaussian releases add up, to :math:`\mu^2` of the whole budget.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import DPLogisticRegression
    >>> from skdp.pipeline import DPPipeline
    >>> from skdp.preprocessing import LearnedSchema
    >>> hours = np.arange(20_000) % 24
    >>> calls = pd.DataFrame({"hour": hours, "length": 60.0 * np.exp(hours / 8)})
    >>> model = DPPipeline([("columns", LearnedSchema()), ("model", DPLogisticRegression(classes=[False, True]))], epsilon=1.0)
    >>> model = model.fit(calls, hours > 11)
    >>> print(f"{model.privacy_spent_.epsilon:.3f}, {model.score(calls, hours > 11) > 0.9}")
    1.000, True
    """

    memory = None
    verbose = False
    transform_input = None

    def __init__(
        self,
        steps: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "replace_one",
        privacy_unit: str = "record",
        shares: Any = "auto",
    ) -> None:
        self.steps = steps
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.privacy_unit = privacy_unit
        self.shares = shares

    def __getitem__(self, place: Any) -> Any:
        """Return a step by its name or number, the fitted one after a fit; of a slice, a scikit-learn pipeline of such steps."""
        return Pipeline(getattr(self, "steps_", self.steps))[place]

    @property
    def named_steps(self) -> Bunch:
        """The steps by name, fitted ones after a fit."""
        return Bunch(**dict(getattr(self, "steps_", self.steps)))

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the pipeline is fitted."""
        return hasattr(self, "steps_")

    @property
    def _fitted(self) -> Pipeline:
        if not hasattr(self, "steps_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call 'fit' with appropriate arguments first.")
        return Pipeline(self.steps_)

    @property
    def classes_(self) -> Any:
        """Labels of the last step."""
        return self._fitted.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self._fitted.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Column names."""
        return np.asarray(self._fitted.feature_names_in_)

    def _task(self) -> Any:
        return self.steps[-1][1]._task()

    predict, predict_proba, predict_log_proba = map(_delegate, DELEGATED[:3])
    decision_function, transform, inverse_transform = map(_delegate, DELEGATED[3:])

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the last step, without noise.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,) or None, default=None
            What is predicted.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the records.

        Returns
        -------
        float
            The score.
        """
        return float(self._fitted.score(X, y, sample_weight))

    @available_if(_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns that the last step makes.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X.

        Returns
        -------
        ndarray of str
            The names.
        """
        return self._fitted.get_feature_names_out(input_features)

    @silently
    def fit(self, X: Any, y: Any = None, *, persons: Any = None) -> Any:  # type: ignore[override]
        """Fit all steps, spending the budget once.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Records, in memory.
        y : array-like of shape (n_samples,) or None, default=None
            What the last step predicts.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, with ``privacy_unit="person"``: an id per row, or the name of a column of a data frame.

        Returns
        -------
        self
            The fitted pipeline. An interrupted fit leaves it unchanged.
        """
        X = as_table(X)
        if is_lazy(X):
            raise TypeError(
                f"{type(self).__name__} needs a table in memory: all errors about y come before the charge, and y of a table in "
                'partitions is read with the last step; expected an array or a data frame, or schema="learn" of an estimator.'
            )
        X = X if hasattr(X, "shape") else quoting_no_data(X, lambda: np.asarray(X))
        self._check_steps()
        X, group = taken_persons(self.privacy_unit, type(self).__name__, X, y, persons)
        del persons
        n_rows = len_of(X)
        with without_number(None if group is None else n_rows):
            parts = self._parts(n_rows if group is None else group.n_persons)
            budget = self._budget(n_rows if group is None else group.n_persons)
            given = {} if group is None else {"persons": group}
            with heard() as before:
                lines, bound = self._refusals(parts, X, y, n_rows, given)
            for one in {str(one.message)[:SAME]: one for one in before}.values():
                warn(str(one.message), one.category)
            cost = Cost.gaussian(budget, lines, math.fsum(part.mu**2 for part in parts))
            noise = NoiseSource()
            pay(cost.spending(type(self).__name__, stated_parameters(self), noise), bound)
            with heard() as later, told_when_interrupted():
                fitted = self._fitted_steps(parts, X, y, given)
        reports = [(name, step.privacy_report_) for name, step in fitted]
        report = self._report(replace(cost, lines=tuple(line for _, one in reports for line in one.releases)), reports)
        self._commit({"steps_": fitted, "privacy_report_": report, "privacy_spent_": report.spent})
        known = {str(one.message)[:SAME] for one in before}
        for one in later:  # the model is there, whatever a warning does
            if str(one.message)[:SAME] not in known:
                warn(str(one.message), one.category)
        return self

    @available_if(_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, *, persons: Any = None) -> Any:  # type: ignore[override]
        """Fit all steps, and map the records by them.

        Parameters
        ----------
        X, y, persons : object
            As for `fit`.

        Returns
        -------
        ndarray
            What `transform` returns.
        """
        return self.fit(X, y, persons=persons).transform(X)

    @property
    def fit_predict(self) -> Any:  # type: ignore[override]
        """Raise AttributeError: predictions for training records are functions of each record without noise."""
        raise AttributeError(
            f"{type(self).__name__} has no fit_predict: predictions for the records of the fit are functions of each record "
            "without noise; expected fit, and predict for records that are yours to look at."
        )

    def plan(
        self, n_samples: Any, n_features: int | None = None, n_classes: int | None = None, *, persons: Any = None
    ) -> PrivacyReport:
        """Return the report of a fit, before any data is touched.

        Parameters
        ----------
        n_samples : int, tuple of int, array or DataFrame
            Number of records, the shape, or a table, of which the shape, the names and the types of the columns are read.
        n_features : int or None, default=None
            Number of columns; None if a shape or a table is given.
        n_classes : int or None, default=None
            Number of classes of the last step.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row of a given table is; without a table, ``n_samples`` is the number of persons.

        Returns
        -------
        PrivacyReport
            Spent budget, and releases and noise of each step; of a step behind one that learns columns, for a likely number.
        """
        self._check_steps()
        table, n_persons = planned_persons(self.privacy_unit, type(self).__name__, as_frame(n_samples), persons)
        if isinstance(table, tuple) and n_features is None:
            table, n_features = table
        n_rows = table.shape[0] if hasattr(table, "shape") else table
        n_features = table.shape[1] if hasattr(table, "shape") else n_features
        n_units = n_rows if n_persons is None else n_persons
        parts, reports, width = self._parts(n_units), [], n_features
        cost = Cost.gaussian(self._budget(n_units), (), math.fsum(part.mu**2 for part in parts))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowSignalWarning)
            for place, part in enumerate(parts):
                last = place == len(parts) - 1
                given = (n_classes,) if last and n_classes is not None else ()
                if place == 0 and hasattr(table, "shape") and n_persons is None:
                    report = part.model.plan(table, None, *given)
                else:
                    report = part.model.plan(n_units, width, *given)
                reports.append((part.name, part.stated(report)))
                if not last:
                    width = part.model._likely_widths(table if place == 0 and hasattr(table, "shape") else None, width)[0]
                    parts[place + 1] = parts[place + 1].behind(part.model, width)
        lines = tuple(line for _, one in reports for line in one.releases)
        for _, one in reports:
            _check_gaussian(one)
        return self._report(replace(cost, lines=lines), reports, planned=True)

    def _check_steps(self) -> None:
        """Raise TypeError or ValueError for steps that are not private, or that set a budget of their own."""
        if not isinstance(self.steps, (list, tuple)) or not all(
            isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in self.steps
        ):
            raise TypeError(f"steps={shown(self.steps)}; expected a list of pairs of a name and an estimator of skdp.")
        if not self.steps or len(dict(self.steps)) < len(self.steps):
            raise ValueError("steps are none, or have the same name twice; expected different names.")
        for place, (name, step) in enumerate(self.steps):
            if not _spends(step) or (place < len(self.steps) - 1 and not hasattr(step, "_facts_of_output")):
                what = (
                    "an estimator of skdp" if place == len(self.steps) - 1 else "a transformer of skdp, such as LearnedSchema()"
                )
                raise TypeError(
                    f"The step {name!r} is {shown(step)}; expected {what} with a budget. Put steps that learn nothing before "
                    f"{type(self).__name__}, in a scikit-learn pipeline around it."
                )
            usual = inspect.signature(inspect.unwrap(type(step).__init__)).parameters
            params = step.get_params(deep=False)
            if own := [one for one in OWN if one in params and params[one] != usual[one].default]:
                raise ValueError(
                    f"The step {name!r} sets its own {' and '.join(own)}; expected those of {type(self).__name__} alone, which "
                    "all steps share."
                )

    def _budget(self, n_samples: int) -> Budget:
        budget = Budget.from_parameters(self.epsilon, self.delta, self.adjacency, n_samples, self.privacy_unit)
        if budget.delta == 0:
            raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
        return budget

    def _parts(self, n_samples: int) -> list[Part]:
        """Divide the budget among copies of the steps."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `fit` and `plan` ask for it once more
            budget = self._budget(n_samples)
        shares = self._shares()
        shares[self.steps[-1][0]] = 1 - math.fsum(shares.values())
        mu, parts = gaussian_mu(budget.epsilon, budget.delta), []
        for name, step in self.steps:
            of_step = mu * math.sqrt(shares[name]) * (1 - SLACK)
            epsilon = gaussian_epsilon(of_step, budget.delta)
            if not epsilon > 0:
                raise ValueError(
                    f"epsilon={budget.epsilon:g} with delta={budget.delta:g} leaves no epsilon for the step {name!r}; expected a "
                    "larger epsilon, a smaller delta, or a larger share."
                )
            own = {"epsilon": epsilon, "delta": budget.delta, "adjacency": budget.adjacency, "privacy_unit": budget.unit}
            parts.append(Part(name, clone(step).set_params(**own), of_step))
        return parts

    def _shares(self) -> dict[str, float]:
        """Return the shares of all steps but the last; raise TypeError or ValueError for others."""
        names = [name for name, _ in self.steps[:-1]]
        if isinstance(self.shares, str) and self.shares == "auto":
            return {name: step._usual_share for name, step in self.steps[:-1]}
        if not isinstance(self.shares, Mapping) or {*self.shares} != {*names}:
            raise ValueError(
                f"shares={shown(self.shares)}; expected 'auto', or a dict with the share of each step but the last: {names}."
            )
        for name, share in self.shares.items():
            check_number(f"shares[{name!r}]", share, above=0.0, below=1.0)
        if math.fsum(self.shares.values()) >= 1:
            raise ValueError(f"shares={shown(self.shares)} leave nothing for the last step; expected a sum below 1.")
        return dict(self.shares)

    def _refusals(
        self, parts: list[Part], X: Any, y: Any, n_rows: int, given: dict[str, Any]
    ) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
        """Run each step up to its charge, so that all errors come before that of the whole; return its lines and bound ledgers.

        Steps behind others get rows of zeros, of each likely number of columns.
        """
        lines: list[str] = []
        bound, tables, before = [*self._ledgers], [X], None
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            for table in tables:
                planned = part if before is None else part.behind(before, table.shape[1])
                try:
                    spent, of_step = scheduled(partial(planned.model.fit, table, *((y,) if last else ()), **given))
                    mu = gaussian_mu_of(spent)
                except PrivacyAccountingError as error:
                    raise PrivacyAccountingError(f"The step {part.name!r}: {error}") from None
                bound += of_step
            likely = [f"{part.name}: full-data Gaussian releases on its rows, mu = {mu:.6g} together"]
            lines += spent.schedule if before is None else likely
            if not last:
                before, widths = part.model, dict.fromkeys(width for one in tables for width in part.model._likely_widths(one))
                tables = [np.broadcast_to(0.0, (n_rows, width)) for width in widths]
        return tuple(lines), list(dict.fromkeys(bound))

    def _fitted_steps(self, parts: list[Part], X: Any, y: Any, given: dict[str, Any]) -> list[tuple[str, Any]]:
        """Fit all steps, each on what the steps before it make of the records."""
        fitted: list[tuple[str, Any]] = []
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            with prepaid(part.mu, self.adjacency, self.privacy_unit):
                step = part.model.fit(X, *((y,) if last else ()), **given)
            step.privacy_report_ = parts[place].stated(step.privacy_report_)
            fitted.append((part.name, step))
            if not last:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of training records
                    X = step.transform(X)
                parts[place + 1] = parts[place + 1].behind(step, X.shape[1])
        return fitted

    def _report(self, cost: Cost, reports: list[tuple[str, PrivacyReport]], planned: bool = False) -> PrivacyReport:
        first, passes = reports[0][1], [one.public["passes"] for _, one in reports]
        number, assumed = cost.budget.number, []
        for (name, one), (_, step) in zip(reports, self.steps, strict=True):
            own = [line for line in (*one.assumptions, foreign_class(step)) if line and line not in COMMON]
            assumed += [line if line.startswith("no ") or OF_STEP in line else f"step {name}: {line}" for line in own]
        of_parameters = sorted(line for line in assumed if line.startswith("no "))  # "no other parameter" comes first
        return cost.report(
            type(self).__name__,
            planned=planned,
            reproducible_noise=not NoiseSource().secure,
            solver="pipeline",
            solver_title=" -> ".join(f"{name} ({one.estimator})" for name, one in reports),
            solver_reason="the squares of their Gaussian-DP parameters add up to that of the budget",
            noise_size="; ".join(f"{name}: {one.noise_size}" for name, one in reports),
            public={
                number: first.public[number],
                "n_features": first.public["n_columns" if "n_columns" in first.public else "n_features"],
                "parameters": stated_parameters(self),
                "n_releases": sum(one.public["n_releases"] for _, one in reports),
                "passes": next((text for text in passes if isinstance(text, str)), None) or sum(passes),
            },
            assumptions=(
                *dict.fromkeys(line for line in assumed if line not in of_parameters),
                *of_parameters[:1],
                OTHER_FITS,
                *assumed_of(cost.budget.unit),
            ),
            steps=dict(reports),
        )


COMMON = (OTHER_FITS, *assumed_of("record"), *assumed_of("person"))


def _spends(step: Any) -> bool:
    """Return whether a step is an estimator of skdp with a budget."""
    of_skdp = any(kind.__module__.startswith("skdp.") for kind in type(step).__mro__)
    return of_skdp and not isinstance(step, type) and {*OWN} <= {*step.get_params(deep=False)}


def _check_gaussian(report: PrivacyReport) -> None:
    """Raise PrivacyAccountingError for a step whose planned releases are not full-data Gaussian."""
    if any(line.mechanism != "Gaussian" for line in report.releases):
        raise PrivacyAccountingError(
            f"{report.estimator} has releases other than Gaussian ones of all records, which cannot share a budget with other "
            "steps; expected a solver of full-data Gaussian releases, as 'auto' chooses."
        )
