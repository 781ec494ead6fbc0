"""Define the task of a fit: the parameters of an estimator, resolved once, and what follows from them and from public facts."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from skdp._data_validation import Facts, Part, RecordReader, Table, read_weights
from skdp._progress import Progress, asks_for_data
from skdp._table_types import is_lazy
from skdp._validation import (
    check_feature_bounds,
    check_integer,
    check_number,
    check_random_state,
    check_scale,
    check_truth,
    column_labels,
    shown,
)
from skdp.constraints import Constraint
from skdp.estimators._contradictions import contradictions
from skdp.estimators._foreign_classes import refuse_foreign_parts
from skdp.estimators._kept_moments import KeptMoments
from skdp.estimators._partitioned import PartitionedTable, planned_partitions, read_partitions
from skdp.estimators._plan import Plan
from skdp.estimators._planned_fit import PlannedFit
from skdp.estimators._planned_shape import read_shape
from skdp.estimators._prepared_rows import prepared
from skdp.estimators._public_columns import check_public_columns
from skdp.estimators._report import report
from skdp.estimators._shrunk_indicators import average_effects
from skdp.estimators._signal import needed
from skdp.losses import SquaredDistance
from skdp.preprocessing import Schema
from skdp.preprocessing._parts import Shares, hardly_seen_in_words
from skdp.preprocessing._pipeline import prepared_names
from skdp.privacy.budget import Budget, default_delta
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.errors import TableWarning, told_when_interrupted, warn
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Loss, TotalWeight
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import SOLVERS, Problem, Solver, SolverResult, signal_to_noise

READ = "the shape of the given table, and nothing else of it"
# Largest ratio of a learned limit to the end of its core. Noise puts limits 4 cores away for a tail that it hides: rows are long
# there, and records between far limits are in few hats. With 2 for 4 at epsilon .1, zero_out and replace_one, additive models
# gained +.026 and +.043 on ijcnn1, +.062 and +.047 on bike, -.001 twice on adult, +.002 and +.011 on spambase (means of 8 fits);
# linear ones .000 and +.002, -.005 and +.005 (+- .006), .000 twice, +.011 and -.001 (medians), and then on mammography,
# california, bank and covertype, which were looked at once, +.003 and +.004, .000 and -.002 (+- .004), .000 for the others.
FURTHEST_LIMITS = 2.0


@dataclass(frozen=True)
class Choice:
    """Hold the estimator that the user fits, which chose another one to be fitted.

    Parameters
    ----------
    user_model : estimator
        The estimator that the user fits. Reports, ledgers and progress name it, and its callbacks are called.
    reason : str
        Why it chose the other one; a function of public facts.
    """

    user_model: Any
    reason: str


class Task(ABC):
    """Hold the parameters of an estimator for one fit or plan, and what follows from them and from public facts.

    The parameters are attributes; those that an estimator lacks have defaults here. A task never changes: `replaced` returns
    another one. Each kind of estimator has its own class, which reads its tables, states its problems and builds its models.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted.
    chosen_by : Choice or None, default=None
        What another estimator states that chose this one; None if the user did.
    counted : dict, default={}
        Released shares of parts of columns, from an earlier stage of the fit.
    **changed : object
        Parameters that differ from those of the estimator.
    """

    epsilon: Any
    delta: Any
    adjacency: Any
    solver: Any = "auto"
    alpha: Any = None
    l1_ratio: Any = 0.0
    schema: Any = None
    feature_bounds: Any = None
    data_norm: Any = None
    clip_norm: Any = None
    fit_intercept: Any = True
    intercept_scaling: Any = 1.0
    max_sample_weight: Any = None
    max_exposure: Any = None
    exposed: bool = False  # whether records of this fit have exposures
    inference: Any = False
    privacy_unit: Any = "record"
    n_persons: int | None = None  # public number of persons of the table of this fit; None if records are protected
    faintness: float = 0.0  # of the signal of a fit that learns its columns; see `Problem`
    random_state: Any
    verbose: Any

    bounding: ClassVar[tuple[str, ...]] = ("schema", "feature_bounds", "data_norm")  # each tells where the entries of X lie
    outside: ClassVar[str] = "rows that are longer than these allow to be cut"  # what is assumed of other records
    learns_by_default: ClassVar[bool] = True  # whether columns are learned if X is a data frame of which nothing is stated
    # What a model is that noise drowns, and what one does that it does not drown.
    drowned: ClassVar[str] = "may be a constant"
    aim: ClassVar[str] = "predict more than a constant"
    warns_of_noise: ClassVar[bool] = True  # whether a fit says what would be enough to stand out from the noise
    takes_y: ClassVar[bool] = True  # whether a table has targets, which the fit reads
    takes_groups: ClassVar[bool] = False  # whether the records of a table in partitions are in public groups
    takes_several: ClassVar[bool] = False  # whether y may have a column for each of several targets

    estimator: Any
    chosen_by: Choice | None
    _changed: dict[str, Any]
    counted: Mapping[str, Shares]  # released shares of parts of columns, from an earlier stage of the fit

    def __init__(
        self,
        estimator: Any,
        chosen_by: Choice | None = None,
        counted: Mapping[str, Shares] = MappingProxyType({}),
        **changed: Any,
    ) -> None:
        parameters = {**estimator.get_params(deep=False), **changed}
        vars(self).update(parameters, estimator=estimator, chosen_by=chosen_by, counted=counted, _changed=changed)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of a task cannot be set; expected replaced({name}=...).")

    def replaced(self, counted: Mapping[str, Shares] | None = None, **changed: Any) -> Any:
        """Return the same task with other parameters.

        Parameters
        ----------
        counted : dict or None, default=None
            Released shares of parts of columns; None for those of this task.
        **changed : object
            Parameters by name.

        Returns
        -------
        Task
            Of the same class.
        """
        counted = self.counted if counted is None else counted
        return type(self)(self.estimator, self.chosen_by, counted, **{**self._changed, **changed})

    @property
    def kind(self) -> str:
        """The name of the class of the estimator."""
        return type(self.estimator).__name__

    def units_of(self, n_rows: int) -> int:
        """Return the public number of records or persons of a table with so many rows."""
        return n_rows if self.n_persons is None else self.n_persons

    @property
    def takes_weights(self) -> bool:
        """Whether records may have weights."""
        return "max_sample_weight" in vars(self)

    def scratch(self) -> Any:
        """Return an unfitted copy of the estimator with these parameters, which scikit-learn's validation writes to."""
        scratch = self.estimator._scratch()
        vars(scratch).update(self._changed)
        return scratch

    def checked(self, X: Any, y: Any, **inputs: Any) -> "Table | PartitionedTable":
        """Check the parameters, then the training table; ``inputs`` are further ones of `read`."""
        self.check_parameters()
        return self.table(X, y, **inputs)

    def table(
        self, X: Any, y: Any, sample_weight: Any = None, persons: Any = None, exposure: Any = None, **inputs: Any
    ) -> "Table | PartitionedTable":
        """Check the training table, whose rows a schema prepares where there is one.

        Weights, exposures and the persons of the rows are taken out of their lists.
        """
        given = (X, y) if asks_for_data(self) else (None, None)
        schema = self.row_schema
        X = X if schema is None else prepared(schema, X)
        table: Table | PartitionedTable
        if is_lazy(X):
            if self.max_sample_weight is not None:
                raise TypeError(
                    f"max_sample_weight={shown(self.max_sample_weight)} with a table in partitions, which has no weights; "
                    "expected a table in memory, or None."
                )
            if exposure is not None:
                raise TypeError("exposure is given with a table in partitions, which has none; expected a table in memory.")
            table = read_partitions(self, X, y, None if persons is None else persons.pop())
        else:
            table = Table(*self.read(self.scratch(), X, y, **inputs), given=given)
            if sample_weight is not None:
                table.sample_weight = self.weights("sample_weight", sample_weight.pop(), table.facts.n_samples)
            if exposure is not None:
                table.exposure = self.weights("exposure", exposure.pop(), table.facts.n_samples)
            if persons is not None:
                table.persons = persons.pop()
                if len(table.persons.numbers) != table.facts.n_samples:  # of a table that lies about its length
                    raise ValueError("X and persons have different lengths; expected one id per row.")
                table.facts = replace(table.facts, n_samples=table.persons.n_persons)
        table.facts = self.facts_of_rows(table.facts)
        return table

    @property
    def name(self) -> str:
        """The name of the estimator in the report, and in the entries of ledgers."""
        return type(self.user_model).__name__

    @property
    def user_model(self) -> Any:
        """The estimator that the user fits: this one, unless another one chose it."""
        return self.estimator if self.chosen_by is None else self.chosen_by.user_model

    @cached_property
    def read_schema(self) -> Schema | None:
        """The schema, read once and checked; None without one."""
        return None if self.schema is None else Schema.read(self.schema)

    @property
    def input_schema(self) -> Schema | None:
        """The schema as the model takes it."""
        return self.read_schema

    def usable(self, schema: Schema, learned: Collection[str]) -> Schema:
        """Return a schema with nearer limits of learned columns, and without facts that the model cannot take."""
        columns = {name: facts.nearer(FURTHEST_LIMITS) if name in learned else facts for name, facts in schema.columns.items()}
        return replace(schema, columns=columns)

    @property
    def row_schema(self) -> Schema | None:
        """The schema that prepares the rows; None where the columns of X are the features."""
        return self.input_schema

    def facts_of_rows(self, facts: Facts) -> Facts:
        """Return the facts of prepared rows with the schema that prepares them and the names of the features."""
        schema = self.row_schema
        return facts if schema is None else replace(facts, schema=schema, feature_names=prepared_names(schema))

    def plan_of(self, facts: Facts) -> Plan:
        """Plan the fit from public facts."""
        problem, by_column = self.problem_of(facts), facts.storage == "CSC"
        return Plan.make(problem, self.algorithm(), self.alpha, self.clip_norm, by_column)

    def algorithm(self) -> Any:
        """Return the solver that the parameters ask for: "auto", a name or an object."""
        return self.solver

    @told_when_interrupted()
    def released(self, fit: PlannedFit, table: "Table | PartitionedTable") -> SolverResult:
        """Put the records behind the oracle and solve the problem through it; the table is empty afterwards."""
        return self.run(fit.plan, table.rows(fit.plan.row_bounds), fit.noise, fit.rng, fit.progress)

    def run(self, plan: Plan, rows: Any, noise: NoiseSource, rng: np.random.Generator, progress: Progress) -> SolverResult:
        """Solve the problem through the oracle; ``rng`` is for public choices."""
        oracle = plan.oracle(rows, noise, progress.tick)
        del rows  # the oracle may replace them
        progress.begin()
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging iterate is refused by the oracle
            result = self.answered(plan, oracle, rng)
        oracle.finish()
        if np.shape(result.coef) != plan.problem.shape or not np.isfinite(result.coef).all():
            raise ValueError(f"{plan.solver!r} returned no finite array of shape {plan.problem.shape}: the iteration diverged.")
        return result

    def answered(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        """Make all releases of the plan; subclasses add those that come before and after all others."""
        return self.solved(plan, oracle, rng)

    def solved(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        """Run the solver and return its result; subclasses add releases that come before it."""
        ask, problem = KeptMoments(refuse_foreign_parts(oracle.ask, plan), plan), plan.problem
        if problem.max_sample_weight is None:
            return ask.beside(plan.solver.solve(problem, ask, rng))
        problem = problem.weighing(float(ask(TotalWeight())[0]))
        return replace(plan.solver.solve(problem, ask, rng), moments=None)  # that are means of weighted records

    @told_when_interrupted()
    def attributes(self, fit: PlannedFit, result: SolverResult, given: tuple[Any, Any]) -> dict[str, Any]:
        """Return all attributes of the fitted estimator, and pass them to the callbacks."""
        result, hardly_seen = self.supported(fit.plan, result, fit.facts)
        attributes = {**fit.attributes, **hardly_seen, **self.fitted(fit.plan, result, fit.facts)}
        attributes |= {} if result.n_iter is None else {"n_iter_": result.n_iter}
        told = [hardly_seen_in_words(attributes.get("hardly_seen_", {})), self.unknown(fit.plan, result, fit.facts)]
        named = {"hardly_seen": ". ".join(filter(None, told)), "calibration": str(attributes.get("calibration_", ""))}
        if learned := {name: text for name, text in named.items() if text}:
            attributes["privacy_report_"] = replace(fit.statement, learned={**(fit.statement.learned or {}), **learned})
        fit.progress.end(self.user_model._attributes_for(self.estimator, attributes), given)
        return attributes

    def supported(self, plan: Plan, result: SolverResult, facts: Facts) -> tuple[SolverResult, dict[str, Any]]:
        """Return the model without effects of which the releases tell next to nothing, and an attribute that names them."""
        if facts.schema is None or result.inference is not None or not plan.problem.budget.private:
            return result, {}
        coef = result.coef.copy()
        hardly_seen = average_effects(facts.schema, self._of_features(plan, coef), result.kept, self.counted)
        return replace(result, coef=coef), {"hardly_seen_": hardly_seen}

    def unknown(self, plan: Plan, result: SolverResult, facts: Facts) -> str:
        """Return a statement that no release tells of levels that no record had; "" if there are none, or if releases tell."""
        schema = facts.stated if facts.schema is None else facts.schema
        columns = {} if schema is None else schema.columns
        levels = any(column.exhaustive and name not in self.counted for name, column in columns.items())
        if (
            not levels
            or not plan.problem.budget.private
            or self.faintness >= 1
            or (result.kept is not None and result.inference is None)
        ):
            return ""
        if result.inference is not None:
            why = "inference leaves all effects as released"
        elif plan.problem.max_sample_weight is not None:
            why = "means of weighted records tell no shares"
        else:
            why = f"solver={shown(plan.solver.name)} releases no counts"
        return f"Nothing is known of levels that no record had: {why}; predictions for them may be noise"

    def _of_features(self, plan: Plan, coef: np.ndarray) -> np.ndarray:
        """Return the view (n_features, k) of released coefficients by which the features enter the model."""
        return coef[: plan.problem.n_features]

    def read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        """Check the training table; return its public facts, X, and the numbers that represent y behind the oracle.

        A fit with further inputs takes them as further arguments, and may return the number of each record's group, too.
        """
        return self.target_reader()(X, y, scratch)

    def check_inputs(self, n_samples: int, **inputs: Any) -> None:
        """Raise TypeError or ValueError for further inputs of `table` that are not valid."""
        for name in {"sample_weight", "exposure"} & {*inputs}:
            self.weights(name, inputs[name][0], n_samples)

    def weights(self, name: str, given: Any, n_samples: int) -> np.ndarray:
        """Return sample weights or exposures over their public bound, checked."""
        return read_weights(name, given, getattr(self, f"max_{name}"), n_samples)

    def known_budget(self, n_samples: int) -> Budget:
        """Return the budget without warnings, which the plan gives; delta = 0 is replaced by the default delta."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            budget = self.budget(n_samples)
            return budget if budget.delta else replace(budget, delta=default_delta(n_samples))

    def signal(self, budget: Budget, n_samples: int) -> float:
        """Return the signal-to-noise ratio of what is left of a budget for all but the releases around."""
        return signal_to_noise(budget, n_samples)

    @abstractmethod
    def target_reader(self) -> RecordReader:
        """Return a function that checks y, and X as a table of numbers; it holds public facts only, and can be pickled."""

    def part_reader(self, table: Any) -> Callable[[Any, Any], Part]:
        """Return the same for the parts of a given table in partitions."""
        return self.target_reader()

    @abstractmethod
    def problem_of(self, facts: Facts) -> Problem:
        """Return the problem for the solver, from public facts."""

    def fitted(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        """Return the attributes of the fitted model, with what releases after all others change."""
        return self.model(plan, result, facts)

    @abstractmethod
    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        """Return the attributes of the fitted model."""

    @abstractmethod
    def assumed_of_y(self) -> str:
        """Return what the guarantee assumes about y, for the report."""

    def assumed_of_x(self) -> str:
        """Return what the guarantee assumes about X, for the report."""
        facts = self.input_schema
        if facts is None:
            return "every entry of X is a finite number"
        if not any(column.plain for column in facts.columns.values()):
            return "the cells of X may be anything"
        which = "in it" if all(column.plain for column in facts.columns.values()) else "of a described column"
        numbers = f"every number {which} is finite, or missing where the schema has a fill"
        return f"the dtypes of the columns of X are public, and {numbers}"

    def planned_facts(self, n_samples: Any, n_features: Any, n_classes: Any) -> tuple[Facts, dict[str, Any]]:
        """Return the public facts of a planned fit, and further entries for the report."""
        shape = read_shape(n_samples, n_features)
        n_columns = self.n_columns(shape.n_features)
        self.check_parameters()
        classes, assumed = self.planned_classes(n_classes)
        facts = self.facts_of_rows(Facts(self.units_of(shape.n_samples), n_columns, classes=classes))
        facts = replace(facts, partitions=planned_partitions(n_samples, facts, self.n_persons is not None))
        return facts, {**({"read": READ} if shape.of_table else {}), **assumed}

    def planned_report(self, facts: Facts, public: dict[str, Any]) -> PrivacyReport:
        """Return the report of a plan, with further public facts."""
        plan = self.plan_of(facts)
        if facts.partitions is not None:
            plan.refuse_partitions(self.kind, facts.partitions.kept is not None)
        statement = report(self, plan, NoiseSource(), facts, planned=True, as_given=True)
        return replace(statement, public={**statement.public, **public}, needed=needed(self, facts, plan))

    def n_columns(self, n_features: int | None) -> int:
        """Return the number of features for a plan."""
        if (facts := self.input_schema) is not None:
            return facts.n_features
        if n_features is None:
            raise TypeError("n_features=None; expected an integer, or a shape or table as n_samples.")
        return n_features

    def planned_classes(self, n_classes: int | None) -> tuple[np.ndarray | None, dict[str, Any]]:
        """Return the classes for a plan, and what the report says about them."""
        if n_classes is not None:
            raise TypeError(f"n_classes={shown(n_classes)}; expected None: {self.kind} has no classes.")
        return None, {}

    def contradictions(self, plan: Plan, result: SolverResult, facts: Facts) -> Iterable[str | Warning]:
        """Return a sentence, or a warning, for each assumption that releases contradict, from releases and public facts only."""
        names = None if facts.feature_names is None else facts.feature_names.tolist()
        return () if result.moments is None else contradictions(self, plan, result.moments, names)

    def scaling(self, n_features: int, names: Any) -> ColumnScaling | None:
        """Return the public map of the columns that ``feature_bounds`` define; None if they do not scale."""
        if not self._scales_columns:
            return None
        bounds = check_feature_bounds(self.public_rows()[0], n_features, column_labels(names, n_features))
        return ColumnScaling.of_bounds(np.broadcast_to(np.asarray(bounds), (n_features, 2)), shifts=bool(self.fit_intercept))

    @property
    def _scales_columns(self) -> bool:
        """Whether ``feature_bounds`` scale the columns.

        They do not if the coefficients are constrained in the units of X, or if the solver itself uses the bounds.
        """
        named = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        bounded = isinstance(named, (type, Solver)) and getattr(named, "uses_bounds", False)
        return self.public_rows()[0] is not None and self.constraint_set() is None and not bounded

    def check_parameters(self) -> None:
        check_number("alpha", self.alpha, minimum=0.0, maximum=1e50, optional=True)
        check_number("l1_ratio", self.l1_ratio, minimum=0.0, maximum=1.0)
        self.constraint_set()
        schema = check_public_columns(self.read_schema, self.feature_bounds)
        if schema is not None and self.data_norm is not None and "data_norm" in self.bounding:
            raise ValueError(
                f"data_norm={shown(self.data_norm)} beside schema=...; expected None: a schema prepares rows of length at most 1."
            )
        if all(getattr(self, name) is None for name in self.bounding):  # no parameter tells where the entries of X lie
            usual = "feature_bounds=1.0" if "feature_bounds" in self.bounding else "data_norm=math.sqrt(n_features)"
            warn(
                f"{'Neither' if self.bounding[1:] else 'No'} {' nor '.join(self.bounding)} is given: all columns are taken to "
                f"lie in [-1, 1], and {self.outside}. {usual} says so without this warning.",
                TableWarning,
            )
        check_scale("data_norm", self.data_norm, optional=True)
        check_scale("clip_norm", self.clip_norm, optional=True)
        check_scale("max_sample_weight", self.max_sample_weight, optional=True)
        check_scale("max_exposure", self.max_exposure, optional=True)
        check_scale("intercept_scaling", self.intercept_scaling)
        check_truth("fit_intercept", self.fit_intercept)
        check_integer("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, minimum=0, optional=True)
        check_random_state(self.random_state)

    def constraint_set(self) -> Constraint | None:
        """Return the constraint on the coefficients of the features, in the units of y."""
        return None

    def units(self, n_targets: int | None = None) -> tuple[Any, Any]:
        """Return the centre and the unit of the targets, or of each of several."""
        return 0.0, 1.0

    def _problem(self, n_samples: int, n_features: int, loss: Loss, kind: type[Problem] = Problem, **fields: Any) -> Problem:
        """Return the public facts of the fit; ``fields`` are further ones of ``kind``."""
        constraint = self.constraint_set()
        unit = 1.0 if constraint is None else self.units()[1]
        return kind(
            n_samples=n_samples,
            loss=loss,
            budget=self.budget(n_samples),
            intercept_scaling=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            l1_ratio=0.0 if self.faintness >= 1 else float(self.l1_ratio),
            max_sample_weight=None if self.max_sample_weight is None else float(self.max_sample_weight),
            constraint=constraint if constraint is None or unit == 1 else _scaled(constraint, 1 / unit),
            faintness=self.faintness,
            **self._row_facts(n_samples, n_features),
            **fields,
        )

    def budget(self, n_samples: int) -> Budget:
        return Budget.from_parameters(self.epsilon, self.delta, self.adjacency, n_samples, self.privacy_unit)

    def _row_facts(self, n_samples: int, n_features: int) -> dict[str, Any]:
        """Return the public facts about the rows behind the oracle, by field name of `Problem`."""
        short = self.schema is not None and self.public_rows()[0] is None
        return {"n_features": n_features, "data_norm": 1.0} if short else self.row_facts(n_features)

    def row_facts(self, n_features: int) -> dict[str, Any]:
        """Return the width, the longest length and the bounds of the rows, by field name of `Problem`."""
        feature_bounds, row_norm = self.public_rows()
        bounds = check_feature_bounds(feature_bounds, n_features)
        largest: Any = None if bounds is None else np.abs(bounds).max(axis=-1).tolist()
        largest = 1.0 if self._scales_columns else tuple(largest) if isinstance(largest, list) else largest
        if row_norm is None:  # that of the longest row whose features are within their bounds, or within 1 without bounds
            each = 1.0 if largest is None else largest
            row_norm = np.linalg.norm(each) if isinstance(each, tuple) else math.sqrt(n_features) * each
        return {"n_features": n_features, "data_norm": float(row_norm), "feature_bounds": largest}

    def public_rows(self) -> tuple[Any, Any]:
        """Return the bounds of the features and of the length of a row, each None if it is not known."""
        return self.feature_bounds, self.data_norm

    def described(self, plan: Plan) -> dict[str, Any]:
        """Return further public choices for the report, by name."""
        if not self._scales_columns:
            return {}
        return {"columns": "clipped to feature_bounds and divided by the larger one; data_norm is in these units"}

    def solver_title(self, plan: Plan) -> str:
        """Return the title of the algorithm for the report."""
        return plan.solver.title_for(plan.problem)

    def outlook(self, plan: Plan) -> str:
        """Return what public facts tell of parts of the model, for the report, after a semicolon; "" if nothing."""
        outlook = plan.solver.outlook(plan.problem)[1]
        return f"; intervals: {outlook}" if outlook else ""

    def left_out(self, plan: Plan) -> str:
        """Return a warning for a part of the model that public facts leave out; "" if there is none."""
        level, outlook = plan.solver.outlook(plan.problem)
        if level < 1:
            return ""
        where = f"At epsilon={float(self.epsilon):g} and n_samples={plan.problem.n_samples}, "
        return f"{where}{outlook}. The budget is spent all the same. plan(n_samples, n_features) tells you this before a fit."

    def coefficients(self, plan: Plan, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (n_outputs, n_features) and intercept in the units of X and y; projects again after rounding."""
        loss, constraint = plan.problem.loss, self.constraint_set()
        centre, unit = self.units(loss.n_outputs if isinstance(loss, SquaredDistance) else None)
        weights, intercept = plan.problem.unpack(coef)
        with np.errstate(over="ignore", invalid="ignore"):
            weights, intercept = np.reshape(unit, (-1, 1)) * weights, centre + unit * intercept
            if plan.scaling is not None:
                weights, intercept = plan.scaling.to_columns(weights, intercept)
            if constraint is not None:
                inside = np.asarray(constraint.project(weights.T.ravel()), dtype=np.float64)
                weights = np.ascontiguousarray(inside.reshape(weights.T.shape).T)
        if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
            raise ValueError("The coefficients are beyond the range of float64: the iteration diverged.")
        return weights, intercept


def taken_weights(task: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Take the weights out of further arguments of ``fit``, in a list from which the table takes them.

    Raises TypeError for weights without a public bound, and ValueError for a bound without weights.
    """
    if not task.takes_weights:
        return {}
    name, weights, largest = task.kind, given.pop("sample_weight", None), task.max_sample_weight
    if weights is None and largest is None:
        return {}
    if largest is None:
        raise TypeError(
            f"{name} does not take sample_weight: a weight is part of a record, and the noise needs a public bound on it; "
            "expected max_sample_weight=..., a number that is not computed from the records."
        )
    if weights is None:
        raise ValueError(
            f"max_sample_weight={shown(largest)} without sample_weight; expected fit(X, y, sample_weight=...) with one weight "
            f"per record, or max_sample_weight=None. Searches and cross-validation pass weights on if metadata routing is on and "
            f"{name}.set_fit_request(sample_weight=True) asks for them."
        )
    return {"sample_weight": [weights]}


def _scaled(constraint: Constraint, factor: float) -> Constraint:
    """Return the set in other units; check what a user's object returns."""
    scaled = constraint.scaled(factor)
    if not callable(getattr(scaled, "project", None)):
        raise TypeError(f"constraint={shown(constraint)}: scaled(factor) returned {shown(scaled)}; expected a set with project.")
    return scaled
