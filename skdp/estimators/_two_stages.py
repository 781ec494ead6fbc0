"""Fit in two stages under one budget: learn the columns of a data frame, then fit the rows that the learned schema prepares."""

import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._data_validation import Facts, LabelReader, TargetReader, check_label_set, len_of, quoting_no_data, refuse_dates
from skdp._progress import asks_for_data
from skdp._table_types import is_dask, is_lazy
from skdp._validation import shown
from skdp.data._cells import CellReader, loaded_cells, typed_columns
from skdp.estimators._link import LEAST_SIGNAL
from skdp.estimators._partitioned import USUAL
from skdp.estimators._plan import Plan
from skdp.estimators._planned_fit import PlannedFit, warn_of_many_labels
from skdp.estimators._report import beside_learned, report, stated_parameters
from skdp.estimators._signal import needed, noise_level, warn_of_low_signal
from skdp.losses import RobustLoss
from skdp.preprocessing._cells import is_number
from skdp.preprocessing._frame_facts import FrameFacts, framed, leaves_to_learn, warn_of_ids, warn_of_left_out
from skdp.preprocessing._learning import Learned, LearningPlan, in_words, learn, warn_of_unlearned
from skdp.preprocessing._parts import Shares
from skdp.preprocessing._pipeline import from_schema
from skdp.preprocessing._range_search import HARDLY_ANY, search_share
from skdp.preprocessing._schema import Schema
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.errors import (
    LowSignalWarning,
    NotPrivateWarning,
    PrivacyAccountingError,
    WeakPrivacyWarning,
    told_when_interrupted,
    warn,
)
from skdp.privacy.ledger.charging import pay
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import ColumnHistograms
from skdp.privacy.queries.column_histograms import contribution
from skdp.privacy.release_plan import Cost
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import signal_to_noise

# Losses of numbers whose solvers learn neither the location nor the unit of y.
LOSSES_OF_A_UNIT = frozenset({"squared", *(kind.name for kind in RobustLoss.__subclasses__())})

# Noise of a bin, as a share of the records, that the share of the budget for the columns aims at, and the limits of this share.
# Choices: on tables of 10 to 60 columns, shares from .02 to .1 gave the same models, and smaller ones lost integers.
AIM, LEAST_SHARE, LARGEST_SHARE = 0.004 * math.sqrt(0.5), 0.02, 0.1
# Numbers of common categories of a column of text for which the second stage is planned before anything is charged. What is
# learned may have another number; a fit that a plan refuses for either is refused.
LIKELY, MANY = 2, 20
SLACK = 1e-12  # relative amount by which the first stage spends less than what is left, above the rounding of a difference


def learning_of(task: Any, X: Any) -> "Learning | LearningInPartitions | None":
    """Return the first stage of a fit; None if nothing is to be learned about the columns of X.

    Columns are learned if the schema leaves some to learn. They are also learned if X is a data frame of which nothing is stated,
    and the solver of the fit can share its budget.
    """
    asked = leaves_to_learn(task.schema, None if _lacks_range(task) else X)
    unstated = all(getattr(task, name) is None for name in ("schema", "feature_bounds", "data_norm"))
    is_frame = {"columns", "dtypes", "shape"} <= set(dir(type(X)))
    if not asked and not (unstated and task.learns_by_default and is_frame):
        return None
    if is_lazy(X):
        if not asked:
            return None
        columns = typed_columns(X)
        return LearningInPartitions(task, _facts_of(task, columns), (columns.n_samples or task.n_persons) is not None)
    frame = framed(X)
    if not asked and frame is not X and all(map(is_number, X.dtypes)):
        warn(
            "X is a data frame whose columns have no strings for names, so that it is taken for an array: nothing is learned "
            'about its columns. Use X.columns = X.columns.astype(str), or schema="learn", to learn them; or bounds.',
            UserWarning,
        )
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit and the report plan it once more
            return replace(Learning.of(task, frame), named=frame is X)
    except (TypeError, ValueError, PrivacyAccountingError):
        if asked or not all(map(is_number, X.dtypes)) or (_lacks_range(task) and task.linked):
            raise  # without learning, neither text nor a link without a range has a fit: what prevents that is what is wrong
        return None  # the usual fit states what is wrong, or needs no schema


def first_stage(task: Any, X: Any) -> "Learning | LearningInPartitions | None":
    """Return the first stage of a fit or a plan, as `learning_of` does; warn of columns that are ids or that are left out."""
    if task.schema is None and isinstance(X, np.ndarray):  # whose columns have no names
        return None
    warn_of_ids(task.schema, X, task.feature_bounds, task.privacy_unit)
    learning = learning_of(task, X)
    if learning is None:
        warn_of_left_out(task.schema, X)
    return learning


def _facts_of(task: Any, X: Any) -> FrameFacts:
    """Return what is public about a frame."""
    facts = FrameFacts.of(X, task.schema, _lacks_range(task))
    return facts if task.n_persons is None else replace(facts, n_samples=task.n_persons)


def _warn_of_target(name: Any, learned: Collection[str]) -> None:
    """Warn if a column that is learned has the name of y: a model of y from y is of no use, and costs the budget all the same."""
    if isinstance(name, str) and name in learned:
        warn(
            f"X has a column {name!r}, the name of y. If it is the target, the model learns the target from itself, for the "
            f"whole budget. Leave it out, such as by X.drop(columns=[{name!r}]), or give y another name.",
            UserWarning,
        )


def _robust(task: Any) -> bool:
    """Return whether few targets that are far from all others should not matter."""
    return getattr(task, "loss", "squared") in LOSSES_OF_A_UNIT - {"squared"}


def _lacks_range(task: Any) -> bool:
    """Return whether an estimator needs a range of the target that its parameters do not give."""
    loss = getattr(task, "loss", None)
    return getattr(task, "target_bounds", 0) is None and isinstance(loss, str) and loss in LOSSES_OF_A_UNIT


def _fits_means(task: Any) -> bool:
    """Return whether the mean of y may be all that is fitted: public facts choose the solver, and 0 is a model."""
    return bool(task.fit_intercept and task.constraint_set() is None and isinstance(task.solver, str) and task.solver == "auto")


@dataclass(frozen=True)
class Learning:
    r"""Hold what is public about a fit that learns the columns first.

    *Proof of the budget.* The budget is equivalent to :math:`\mu`-GDP for Gaussian releases. The fit of the second stage is
    calibrated to an epsilon that :math:`\mu_2`-GDP implies, :math:`\mu_2 < \mu`, which is fixed before any data is read. Its
    releases are full-data Gaussian, so that they are :math:`\mu_2`-GDP whatever the number of features that was learned. The
    first stage is :math:`\mu_1`-GDP with :math:`\mu_1^2 = \mu^2 - \mu_2^2`. Adaptive composition of both is :math:`\mu`-GDP. The
    map of the rows depends on the releases of the first stage alone, and maps each record by itself.

    Parameters
    ----------
    task : Task
        With the parameters that the user gave.
    facts : FrameFacts
        What is public about the frame.
    budget : Budget
        What both stages spend together.
    plan : LearningPlan
        The first stage.
    rest : Budget
        What the second stage spends.
    named : bool
        Whether the names of the columns are those of a data frame.
    """

    task: Any
    facts: FrameFacts
    budget: Budget
    plan: LearningPlan
    rest: Budget
    named: bool = True

    @classmethod
    def of(cls, task: Any, X: Any) -> "Learning":
        """Plan both stages; raise an error if the second one cannot be planned for what may be learned."""
        facts = _facts_of(task, X)
        learning = cls.planned(task, facts)
        list(learning.likely_plans())  # which raises their errors
        return learning

    @classmethod
    def planned(cls, task: Any, facts: FrameFacts) -> "Learning":
        """Split the budget between the stages."""
        budget = task.budget(facts.n_samples)
        if budget.delta == 0:
            raise ValueError("delta=0: columns are learned with Gaussian noise; expected a positive delta, or a full schema.")
        target = _lacks_range(task) and not facts.of_target.get("target_bounds")
        mu = gaussian_mu(budget.epsilon, budget.delta)
        signal = signal_to_noise(budget, facts.n_samples)
        searched = target and not (getattr(task, "linked", False) and signal >= LEAST_SIGNAL)  # whose level needs the tail of y
        search = search_share(mu, facts.n_samples, budget.adjacency) if searched else 0.0
        faintness = HARDLY_ANY / signal if search and _fits_means(task) else 0.0
        counted = target and not search
        learns = counted or (bool(facts.are_text) and faintness < 1)
        of_columns = _share(facts, counted, mu * math.sqrt(1 - search), budget.adjacency) if learns else 0.0
        share = search + (1 - search) * of_columns
        rest = replace(budget, epsilon=gaussian_epsilon(mu * math.sqrt(1 - share), budget.delta))
        try:
            of_fit = gaussian_mu(rest.epsilon, rest.delta)
        except ValueError:
            of_fit = 0.0
        if not of_fit:
            raise ValueError(
                f"epsilon={budget.epsilon:g} with delta={budget.delta:g} leaves no epsilon for the fit beside the columns that "
                "are learned; expected a larger epsilon, a smaller delta, or a full schema."
            )
        left = math.sqrt(mu**2 - of_fit**2) * (1 - SLACK) if budget.private else math.inf
        plan = LearningPlan.make(facts, target, budget, left, _robust(task), search / share)
        return cls(task.replaced(faintness=faintness), facts, budget, plan, rest)

    def likely_plans(self) -> Iterator[Plan]:
        """Plan the second stage for few and for many categories of text."""
        return (self.second_plan(None, of_text)[-1] for of_text in (LIKELY, MANY))

    def second(self, schema: Schema, counted: Mapping[str, Shares] | None = None) -> Any:
        """Return the task of the second stage, with the released shares of parts of columns where they are known."""
        usable = self.task.usable(schema, self.facts.are_text)
        return self.task.replaced(counted, schema=usable, epsilon=self.rest.epsilon, delta=self.rest.delta)

    def second_plan(
        self, classes: np.ndarray | None, of_text: int = LIKELY, n_classes: Any = None, extra: Any = None
    ) -> tuple[Any, Facts, Plan]:
        """Plan the second stage for a schema as it might be learned; return its estimator, its facts and the plan."""
        likely = self.facts.likely(of_text)
        inner = self.second(replace(likely, target_bounds=(-1.0, 1.0)) if self.plan.target else likely)
        with _of_second_stage():
            inner.check_parameters()
            classes = inner.planned_classes(n_classes)[0] if classes is None else classes
            facts = inner.facts_of_rows(Facts(self.facts.n_samples, inner.n_columns(None), classes=classes))
            facts = facts if extra is None else replace(facts, extra=extra)
            return inner, facts, _gaussian(inner.plan_of(facts))

    def fit(self, given: list[Any], **inputs: Any) -> Any:
        """Read the table, pay for both stages, run them, and set all attributes at once.

        Parameters
        ----------
        given : list
            X and y; taken out of the list, so that no other frame holds them.
        **inputs : object
            Further inputs of the fit.

        Returns
        -------
        estimator
            The fitted one.
        """
        y, X = given.pop(), given.pop()
        task, told = self.task, (X, y) if asks_for_data(self.task) else (None, None)
        X = framed(X)
        task.budget(self.facts.n_samples)  # which warns if it is weak
        _warn_of_target(getattr(y, "name", None), self.facts.are_text)
        targets, classes = self._checked(X, y)
        task.check_inputs(len_of(X), **inputs)
        persons = inputs.get("persons", ())
        return self.both(lambda: self.facts.rows(X, targets, *persons), classes, lambda: (X, y), told, **inputs)

    def both(
        self,
        cells_of: Callable[[], Any],
        classes: np.ndarray | None,
        table_of: Callable[[], tuple[Any, Any]],
        given: tuple[Any, Any] = (None, None),
        **inputs: Any,
    ) -> Any:
        """Pay for both stages, run them, and set all attributes at once.

        Parameters
        ----------
        cells_of : callable
            Returns the ColumnCells or PartitionedCells that the first stage counts, and which nothing holds after it.
        classes : ndarray or None
            Labels of the target.
        table_of : callable
            Returns X and y for the second stage.
        given : tuple, default=(None, None)
            The table as given to ``fit``, if callbacks ask for it.
        **inputs : object
            Further inputs of the second stage.

        Returns
        -------
        estimator
            The fitted one.
        """
        task, cells = self.task, cells_of()
        inner, facts, plan = self.second_plan(classes)
        if classes is not None and inner.label_set() is None:
            warn_of_many_labels(classes)
        warn_of_low_signal(task, facts, plan, self._level_of(classes, None))
        self.plan.warn_of_low_signal()
        noise = NoiseSource(task.random_state)
        pay(self._cost.spending(task.name, stated_parameters(task.estimator), noise), task.estimator._ledgers)
        with told_when_interrupted():
            oracle = self.plan.oracle(cells, noise)
            learned = learn(oracle.ask, self.plan)
            oracle.finish()
            del cells, oracle
            inner, (X, y) = self.second(self.facts.schema(learned), learned.counted), table_of()
            with _of_second_stage(), inner.table(X, y, **inputs) as table:
                del X, y, table_of
                fit = PlannedFit.of(inner, table.facts, noise)
                _gaussian(fit.plan)
                columns = self._columns(table.facts, inner.input_schema, learned)
                fit = replace(fit, statement=self.statement(fit.statement, columns["learnt_"]), columns=columns)
                result = inner.released(fit, table)
            attributes = inner.attributes(fit, result, given)
        task.estimator._attributed(attributes, inner.contradictions(fit.plan, result, fit.facts))
        warn_of_unlearned(learned, self.plan)
        return task.estimator

    def _columns(self, facts: Facts, schema: Schema, learned: Learned) -> dict[str, Any]:
        """Return the attributes of the fitted estimator, and of what callbacks get, that state the columns of the table."""
        names = {"n_features_in_": len(self.facts.names), "feature_names_in_": np.array(self.facts.names, dtype=object)}
        columns = {**facts.attributes, **names, "schema_": schema, "learnt_": learned.described(schema.columns)}
        if not self.named:
            del columns["feature_names_in_"]
        return columns

    def report(self, n_classes: Any, extra: Any = None) -> PrivacyReport:
        """Return the report of a fit that is planned; ``extra`` are further facts of the table."""
        self.task.budget(self.facts.n_samples)
        inner, facts, plan = self.second_plan(None, n_classes=n_classes, extra=extra)
        statement = report(inner, plan, NoiseSource(), facts, planned=True)
        level = self._level_of(None, n_classes, extra)
        return replace(self.statement(statement), needed=needed(self.task, facts, plan, level))

    def _level_of(self, classes: np.ndarray | None, n_classes: Any, extra: Any = None) -> Callable[[int, float], float]:
        """Return the noise level of the second stage by the number of records and the epsilon of both stages."""

        def level(n_samples: int, epsilon: float) -> float:
            other = self.task.replaced(epsilon=epsilon)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    learning = Learning.planned(other, replace(self.facts, n_samples=n_samples))
                    resized = None if extra is None else extra.resized(n_samples)
                    return noise_level(learning.second_plan(classes, n_classes=n_classes, extra=resized)[-1])
                except (ValueError, PrivacyAccountingError):
                    return math.inf

        return level

    def statement(self, of_fit: PrivacyReport, learned: dict[str, dict[str, Any]] | None = None) -> PrivacyReport:
        """Return the report of both stages from that of the second one, with what was learned and is taken, by column."""
        plan, public = self.plan, of_fit.public
        passes = public["passes"]  # a text where it follows from the records
        prepared = {} if learned is None or {*learned} <= {"y"} else self._of_learned(public)
        both = {
            "n_columns": len(self.facts.names),
            "read_as": self.facts.read_as,
            "parameters": stated_parameters(self.task.estimator),
            "n_releases": len(plan.schedule) + public["n_releases"],
            "passes": passes if isinstance(passes, str) else (plan.schedule.passes or 0) + passes,
        }
        if (table := public.get("table")) is not None:
            reads = 1 + (plan.schedule.passes or 0) * table["kept_copy"].startswith("none")
            both["table"] = {**table, "reads_of_source": table["reads_of_source"] + reads}
        return replace(
            of_fit,
            budget=self.budget,
            spent=self._cost.spent,
            releases=(*plan.lines, *of_fit.releases),
            noise_size=f"columns: {plan.outlook}; then {of_fit.noise_size}",
            public=_without(prepared, {**public, **both}),
            learned=None if learned is None else in_words(learned) | prepared,
            assumptions=(*self.facts.assumptions, *beside_learned(of_fit.assumptions, self.facts.stated)),
        )

    def _of_learned(self, public: Mapping[str, Any]) -> dict[str, str]:
        """Return what the report of the second stage states as public, and what depends on the columns as they were learned."""
        names = ("n_features", "feature_names") if public["feature_names"] != [*self.facts.names] else ()
        basis = {name: value for name, value in public["resolved"].items() if name == "basis"}
        return {**{name: str(public[name]) for name in names}, **basis}

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Check y, and the columns that the user describes; return the targets whose range is learned, and the classes."""
        targets, classes = self.target_reader.check_target(y, len_of(X))
        if classes is not None:
            check_label_set(classes)
        if (described := self.described) is not None:
            self._refuse_words(X)
            quoting_no_data(X, lambda: described.fit_transform(X))
        return targets if self.plan.target else None, classes

    def _refuse_words(self, X: Any) -> None:
        """Raise an error that names the columns of text that the user describes as numbers, unless they hold numbers alone."""
        columns = self.facts.stated.numbers
        refuse_dates(X[[*columns]])
        texts = [name for name in columns if not is_number(X[name].dtype)]
        numbers = Schema({name: columns[name] for name in texts}, None, None)
        try:
            if texts:
                quoting_no_data(X, lambda: from_schema(numbers).fit_transform(X))
            return
        except (TypeError, ValueError):
            pass
        raise ValueError(
            f"schema gives bounds to the columns {texts}, whose type is not a number, and whose cells are not all numbers. "
            'Use numbers, with a fill for gaps; dates as numbers; or the word "number", which learns a column cell by cell.'
        )

    @property
    def target_reader(self) -> LabelReader | TargetReader:
        """Reader of y; public facts that can be pickled."""
        found: LabelReader | TargetReader = self.second(self.facts.likely()).target_reader()
        return TargetReader() if self.plan.target else found

    @property
    def described(self) -> Any:
        """Transformer of the columns that the user describes, which checks them; None if there are none."""
        stated = self.facts.stated.columns
        return from_schema(Schema(stated, None, None)) if stated else None

    @property
    def _cost(self) -> Cost:
        """What both stages cost; the releases of the second one are not known before the first one is made."""
        mu = gaussian_mu(self.rest.epsilon, self.rest.delta)
        rest = f"then full-data Gaussian releases of the fit on the learned columns, mu = {mu:.6g} together"
        return Cost.gaussian(self.budget, (*self.plan.lines, rest), self.plan.mu**2 + mu**2)


@contextmanager
def _of_second_stage() -> Iterator[None]:
    """Silence warnings about the budget and the signal: what the first stage leaves is not what the user asked for."""
    with warnings.catch_warnings():
        for kind in (LowSignalWarning, NotPrivateWarning, WeakPrivacyWarning):
            warnings.simplefilter("ignore", kind)
        yield


@dataclass(frozen=True)
class LearningInPartitions:
    """Hold what is public about such a fit of a table in partitions, whose number of records may not be known before it is read.

    Parameters
    ----------
    task : Task
        With the parameters that the user gave.
    facts : FrameFacts
        What is public about the table.
    known : bool
        Whether that includes the number of records.
    """

    task: Any
    facts: FrameFacts
    known: bool

    def report(self, n_classes: Any, extra: Any = None) -> PrivacyReport:
        """Return the report of a fit that is planned; ``extra`` are further facts of the table."""
        self._refuse_groups()
        if not self.known:
            raise ValueError("The table does not tell its number of records; expected plan(n_samples, n_features).")
        return self._planned(self.facts, kept=True).report(n_classes, extra)

    def fit(self, given: list[Any], **inputs: Any) -> Any:
        """Read the cells, pay for both stages, run them, and set all attributes at once; the second one reads again."""
        y, X = given.pop(), given.pop()
        task, kept = self.task, is_dask(X) or X.cache is not None
        self._refuse_groups()
        if asks_for_data(task) or inputs.keys() - {"persons"}:
            raise TypeError(
                "Columns are learned from a table in partitions without callbacks that ask for X and y, and without further "
                "inputs of fit but persons; expected a full schema, or none of these."
            )
        usual = self._planned(replace(self.facts, n_samples=self.facts.n_samples if self.known else USUAL[0]), kept)
        check_target = usual.target_reader.check_target if task.takes_y else None
        reader = CellReader(self.facts, check_target, usual.described)
        stated = getattr(usual.target_reader, "classes", None) is not None
        with loaded_cells(X, y, reader, usual.plan.target, stated, *inputs.get("persons", ())) as cells:
            learning = self._planned(replace(self.facts, n_samples=cells.rows.n_samples), kept)
            task.budget(cells.rows.n_samples)  # which warns if it is weak

            def again() -> tuple[Any, Any]:
                same = cells.again()
                if is_dask(same):
                    return same, y
                cells.rows.close()  # no further release counts them; workers keep them, because Dask may lose what is read anew
                return same, None

            return learning.both(lambda: cells.rows, cells.labels, again, **inputs)

    def _refuse_groups(self) -> None:
        """Raise TypeError for an estimator that takes groups."""
        if self.task.takes_groups:
            raise TypeError(
                f"{self.task.kind} takes groups, which cannot be read together with columns that are learned from "
                "a table in partitions; expected a schema of all columns, such as LearnedSchema() learns with a budget of its "
                "own, or a data frame in memory."
            )

    def _planned(self, facts: FrameFacts, kept: bool) -> Learning:
        """Plan both stages; refuse a solver that needs a table in memory."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit and the report plan it once more
            learning = Learning.planned(self.task, facts)
            for plan in learning.likely_plans():
                plan.refuse_partitions(self.task.kind, kept)
        return learning


def _share(facts: FrameFacts, target: bool, mu: float, adjacency: str) -> float:
    """Return the part of the squared Gaussian-DP parameter that the columns get, from public facts."""
    noise = ColumnHistograms.relative_sensitivity[adjacency] * contribution(len(facts.are_text), target) / (mu * facts.n_samples)
    return min(max((noise / AIM) ** 2, LEAST_SHARE), LARGEST_SHARE)


def _gaussian(plan: Plan) -> Plan:
    """Return the plan; raise an error unless all releases are full-data Gaussian."""
    if not plan.schedule.full_gaussian:
        raise ValueError(
            f"solver={shown(plan.solver)} uses releases that are not full-data Gaussian, which cannot share a budget with the "
            "histograms of the columns; expected a solver of full-data Gaussian releases, as 'auto' chooses where there is one, "
            "a schema that leaves nothing to learn, or LearnedSchema, which has a budget of its own, before it in a pipeline."
        )
    return plan


def _without(names: Collection[str], public: Mapping[str, Any]) -> dict[str, Any]:
    """Return public facts, and the mapping of what was resolved, without some."""
    resolved = {name: value for name, value in public["resolved"].items() if name not in names}
    return {name: value for name, value in {**public, "resolved": resolved}.items() if name not in names}
