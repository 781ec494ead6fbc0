"""Define the base of all private estimators: `fit` in five lines (`DPEstimator._fit`), `plan`, and the public facts of a fit."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts, Part, Table, read_unlabelled, read_weights
from skdp._progress import CallbackSupportMixin, Progress, asks_for_data
from skdp._scikit_learn.copies import BoundToLedgers
from skdp._scikit_learn.pipelines import refuse_selection, warn_of_learning_steps
from skdp._table_types import as_table
from skdp._validation import (
    check_integer,
    check_number,
    check_random_state,
    check_scale,
    column_labels,
    shown,
)
from skdp.constraints import Constraint
from skdp.estimators._choice import Choice
from skdp.estimators._contradictions import contradictions, warn_of_long_rows
from skdp.estimators._display import Displayed
from skdp.estimators._foreign_classes import refuse_foreign_parts
from skdp.estimators._interrupted import told_when_interrupted
from skdp.estimators._kept_moments import KeptMoments
from skdp.estimators._learnt import learning_of
from skdp.estimators._needs_memory import refuse_partitions
from skdp.estimators._partitioned import PartitionedTable, in_partitions, planned_partitions, read_partitions
from skdp.estimators._plan import Plan
from skdp.estimators._planned_fit import PlannedFit
from skdp.estimators._planned_shape import planned_table, read_shape
from skdp.estimators._prepared_rows import prepared
from skdp.estimators._public_columns import check_public_columns
from skdp.estimators._report import report
from skdp.estimators._sample_weight import refuse_weighted_partitions, taken_weights
from skdp.estimators._shrunk_indicators import average_effects
from skdp.estimators._signal import needed
from skdp.estimators._units import described_units, row_facts, scaling_of
from skdp.estimators._unsupported import REFUSED, refuse, refuse_fit_arguments
from skdp.losses import SquaredDistance
from skdp.preprocessing import Schema
from skdp.preprocessing._frame_facts import warn_of_ids, warn_of_left_out
from skdp.preprocessing._octave_rule import nearer
from skdp.preprocessing._parts import Shares, hardly_seen_in_words
from skdp.preprocessing._pipeline import prepared_names
from skdp.privacy.budget import Budget
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.errors import TableWarning, warn
from skdp.privacy.ledger.charging import pay
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Loss, TotalWeight
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import Problem, SolverResult

__all__ = ["DPEstimator"]

READ = "the shape of the given table, and nothing else of it"
# Largest ratio of a learnt limit to the end of its core. Noise puts limits 4 cores away for a tail that it hides: rows are long
# there, and records between far limits are in few hats. With 2 for 4 at epsilon .1, zero_out and replace_one, additive models
# gained +.026 and +.043 on ijcnn1, +.062 and +.047 on bike, -.001 twice on adult, +.002 and +.011 on spambase (means of 8 fits);
# linear ones .000 and +.002, -.005 and +.005 (+- .006), .000 twice, +.011 and -.001 (medians), and then on mammography,
# california, bank and covertype, which were looked at once, +.003 and +.004, .000 and -.002 (+- .004), .000 for the others.
FURTHEST_LIMITS = 2.0


class DPEstimator(BoundToLedgers, Displayed, CallbackSupportMixin, BaseEstimator, ABC):
    """Base of the private estimators. Subclasses declare the parameters, read tables, state problems and build models."""

    l1_ratio: Any = 0.0  # for subclasses without this parameter
    schema: Any = None  # the same
    max_sample_weight: Any = None  # the same
    _chosen_by: Choice | None = None  # during a fit, or for a plan, if another estimator chose this one
    _bounding: ClassVar[tuple[str, ...]] = ("schema", "feature_bounds", "data_norm")  # each tells where the entries of X lie
    _outside: ClassVar[str] = "rows that are longer than these allow to be cut"  # what is assumed of other records
    _takes_weights: ClassVar[bool] = False
    _learns_by_default: ClassVar[bool] = True  # whether columns are learnt if X is a data frame of which nothing is stated
    _warns_of_noise: ClassVar[bool] = True  # whether a fit says what would be enough to stand out from the noise
    _takes_groups: ClassVar[bool] = False  # whether the records of a table in partitions are in public groups
    _counted: Mapping[str, Shares] = MappingProxyType({})  # released shares of parts of columns, from an earlier stage of the fit

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse tables are accepted, and secure noise is not reproducible."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self._is_noisy() and NoiseSource().secure
        tags.input_tags.sparse = True
        return tags

    def _is_noisy(self) -> bool:
        """Return whether the fit adds noise. Tags call it before epsilon is checked."""
        return not (isinstance(self.epsilon, Real) and self.epsilon == math.inf)

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``solver__name`` sets a parameter of a solver object.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self
            The estimator.
        """
        refuse(type(self), params)
        return super().set_params(**params)

    @property
    def partial_fit(self) -> Any:
        """Raise AttributeError: every call would be another private fit."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: {REFUSED['partial_fit']}.")

    @property
    def feature_names_out_(self) -> np.ndarray:
        """Names of the columns of ``coef_``: those of X, or the features that the fit makes of them."""
        check_is_fitted(self)
        names = getattr(self, "prepared_features_", getattr(self, "feature_names_in_", None))
        return np.array(column_labels(names, np.shape(self.coef_)[-1]), dtype=object)

    def _fit(self, X: Any, y: Any, unsupported: dict[str, Any], **beside: Any) -> Any:
        """Fit in five lines: read the table, plan the fit, pay for it, run it, and set all attributes at once.

        The first two lines raise all errors about the parameters and the table. The third charges the ledgers, which may refuse.
        Only the fourth puts the records behind the oracle: apart from the checks of the table, nothing before it depends on them.
        """
        beside |= taken_weights(self, unsupported)
        refuse_fit_arguments(type(self), unsupported)
        warn_of_learning_steps()
        X = as_table(X)
        warn_of_ids(self.schema, X, getattr(self, "feature_bounds", None))
        if (learning := learning_of(self, X)) is not None:
            refuse_selection()
            given = [X, y]
            del X, y
            return learning.fit(given, **beside)
        warn_of_left_out(self.schema, X)
        with self._checked(X, y, **beside) as table:
            del X, y  # no frame holds them from here on, but that of the caller
            fit = PlannedFit.of(self, table.facts)
            if fit.plan.problem.n_features != fit.attributes["n_features_in_"]:
                refuse_selection()
            pay(fit.spending, self._ledgers)
            result = self._released(fit, table)
            return self._attributed(self._attributes(fit, result, table.given), self._contradictions(fit.plan, result, fit.facts))

    def _checked(self, X: Any, y: Any, **beside: Any) -> "Table | PartitionedTable":
        """Check the parameters, then the training table; ``beside`` are further inputs of `_read`."""
        self._check_parameters()
        return self._table(X, y, **beside)

    def _table(self, X: Any, y: Any, sample_weight: Any = None, **beside: Any) -> "Table | PartitionedTable":
        """Check the training table, whose rows a schema prepares where there is one; the weights are taken out of their list."""
        given = (X, y) if asks_for_data(self) else (None, None)
        schema = self._prepared_by()
        X = X if schema is None else prepared(schema, X)
        table: Table | PartitionedTable
        if in_partitions(X):
            refuse_weighted_partitions(self)
            table = read_partitions(self, X, y)
        else:
            table = Table(*self._read(self._scratch(), X, y, **beside), given=given)
            if sample_weight is not None:
                table.sample_weight = read_weights(sample_weight.pop(), self.max_sample_weight, table.facts.n_samples)
        table.facts = self._of_prepared(table.facts)
        return table

    @property
    def _name(self) -> str:
        """The name of the estimator in the report, and in the entries of ledgers."""
        return type(self._user_model).__name__

    @property
    def _user_model(self) -> Any:
        """The estimator that the user fits: this one, unless another one chose it."""
        return self if self._chosen_by is None else self._chosen_by.user_model

    def _stated(self) -> Schema | None:
        """Return the schema, checked; None without one."""
        return None if self.schema is None else Schema.read(self.schema)

    def _usable(self, schema: Schema, learnt: Collection[str]) -> Schema:
        """Return a schema with nearer limits of learnt columns, and without facts that the model cannot take."""
        columns = {name: nearer(facts, FURTHEST_LIMITS) if name in learnt else facts for name, facts in schema.columns.items()}
        return replace(schema, columns=columns)

    def _prepared_by(self) -> Schema | None:
        """Return the schema that prepares the rows; None where the columns of X are the features."""
        return self._stated()

    def _of_prepared(self, facts: Facts) -> Facts:
        """Return the facts of prepared rows with the schema that prepares them and the names of the features."""
        schema = self._prepared_by()
        return facts if schema is None else replace(facts, schema=schema, feature_names=prepared_names(schema))

    def _plan_of(self, facts: Facts) -> Plan:
        """Plan the fit from public facts."""
        problem, by_column = self._problem_of(facts), facts.storage == "CSC"
        return Plan.make(problem, self._algorithm(), self.alpha, self.clip_norm, by_column)

    def _algorithm(self) -> Any:
        """Return the solver that the parameters ask for: "auto", a name or an object."""
        return self.solver

    @told_when_interrupted()
    def _released(self, fit: PlannedFit, table: "Table | PartitionedTable") -> SolverResult:
        """Put the records behind the oracle and solve the problem through it; the table is empty afterwards."""
        return self._run(fit.plan, table.rows(fit.plan.row_bounds), fit.noise, fit.rng, fit.progress)

    def _run(self, plan: Plan, rows: Any, noise: NoiseSource, rng: np.random.Generator, progress: Progress) -> SolverResult:
        """Solve the problem through the oracle; ``rng`` is for public choices."""
        oracle = Oracle(rows, plan.schedule, plan.problem.budget, plan.scale, noise, progress.tick)
        del rows  # the oracle may replace them
        progress.begin()
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging iterate is refused by the oracle
            result = self._solved(plan, oracle, rng)
        oracle.finish()
        if np.shape(result.coef) != plan.problem.shape or not np.isfinite(result.coef).all():
            raise ValueError(f"{plan.solver!r} returned no finite array of shape {plan.problem.shape}: the iteration diverged.")
        return result

    def _solved(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        """Run the solver and return its result; subclasses add releases that come before it."""
        ask, problem = KeptMoments(refuse_foreign_parts(oracle.ask, plan), plan), plan.problem
        if problem.max_sample_weight is None:
            return ask.beside(plan.solver.solve(problem, ask, rng))
        problem = problem.weighing(float(ask(TotalWeight())[0]))
        return replace(plan.solver.solve(problem, ask, rng), moments=None)  # that are means of weighted records

    def _attributed(self, attributes: dict[str, Any], contradictions: Iterable[str]) -> Any:
        """Set all fitted attributes at once, then warn about assumptions that the releases contradict."""
        self._commit(attributes)
        for sentence in contradictions:  # the model is there, whatever a warning does
            warn(sentence, UserWarning)
        return self

    @told_when_interrupted()
    def _attributes(self, fit: PlannedFit, result: SolverResult, given: tuple[Any, Any]) -> dict[str, Any]:
        """Return all attributes of the fitted estimator, and pass them to the callbacks."""
        result, hardly_seen = self._supported(fit.plan, result, fit.facts)
        attributes = {**fit.attributes, **hardly_seen, **self._model(fit.plan, result, fit.facts)}
        attributes |= {} if result.n_iter is None else {"n_iter_": result.n_iter}
        if named := hardly_seen_in_words(attributes.get("hardly_seen_", {})):
            learnt = {**(fit.statement.learnt or {}), "hardly_seen": named}
            attributes["privacy_report_"] = replace(fit.statement, learnt=learnt)
        fit.progress.end(self._user_model._attributes_for(self, attributes), given)
        return attributes

    def _attributes_for(self, model: Any, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes that callbacks get of this estimator, if these are those of the model that it fits."""
        return attributes

    def _supported(self, plan: Plan, result: SolverResult, facts: Facts) -> tuple[SolverResult, dict[str, Any]]:
        """Return the model without effects of which the releases tell next to nothing, and an attribute that names them."""
        if facts.schema is None or result.inference is not None or not plan.problem.budget.private:
            return result, {}
        coef = result.coef.copy()
        hardly_seen = average_effects(facts.schema, self._of_features(plan, coef), result.kept, self._counted)
        return replace(result, coef=coef), {"hardly_seen_": hardly_seen}

    def _of_features(self, plan: Plan, coef: np.ndarray) -> np.ndarray:
        """Return the view (n_features, k) of released coefficients by which the features enter the model."""
        return coef[: plan.problem.n_features]

    @abstractmethod
    def _read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        """Check the training table; return its public facts, X, and the numbers that represent y behind the oracle.

        A fit with further inputs takes them as further arguments, and may return the number of each record's group, too.
        """

    def _check_beside(self, n_samples: int, **beside: Any) -> None:
        """Raise TypeError or ValueError for further inputs of `_table` that are not valid."""
        if beside.get("sample_weight"):
            read_weights(beside["sample_weight"][0], self.max_sample_weight, n_samples)

    @abstractmethod
    def _target_reader(self) -> Callable[[Any, Any], Part]:
        """Return a function that checks y, and X as a table of numbers; it holds public facts only, and can be pickled."""

    def _part_reader(self, table: Any) -> Callable[[Any, Any], Part]:
        """Return the same for the parts of a given table in partitions."""
        return self._target_reader()

    @abstractmethod
    def _problem_of(self, facts: Facts) -> Problem:
        """Return the problem for the solver, from public facts."""

    @abstractmethod
    def _model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        """Return the attributes of the fitted model."""

    @abstractmethod
    def _assumed_of_y(self) -> str:
        """Return what the guarantee assumes about y, for the report."""

    def _assumed_of_x(self) -> str:
        """Return what the guarantee assumes about X, for the report."""
        facts = self._stated()
        if facts is None:
            return "every entry of X is a finite number"
        if not any(column.plain for column in facts.columns.values()):
            return "the cells of X may be anything"
        which = "in it" if all(column.plain for column in facts.columns.values()) else "of a described column"
        numbers = f"every number {which} is finite, or missing where the schema has a fill"
        return f"the dtypes of the columns of X are public, and {numbers}"

    def plan(self, n_samples: Any, n_features: int | None = None, n_classes: int | None = None) -> PrivacyReport:
        """Return the report of a fit on a table of the given shape, before any data is touched.

        Parameters
        ----------
        n_samples : int, tuple of int or table
            Number of records, at least 2; or the shape (n_samples, n_features); or a table, of which only the shape is read.
        n_features : int or None, default=None
            Number of columns, at least 1. None if a shape, a table or a schema gives it.
        n_classes : int or None, default=None
            Number of classes, at least 2, if neither ``classes`` nor a schema gives it. None then means 2, and the report states
            this assumption. Regressors accept only None.

        Returns
        -------
        PrivacyReport
            Spent budget, releases, noise, the size of the noise relative to the signal, and the number of records or the epsilon
            that would be enough.

        Raises
        ------
        TypeError, ValueError
            As `fit` does.
        """
        table = planned_table(self.schema, n_samples, n_features)
        warn_of_ids(self.schema, table, getattr(self, "feature_bounds", None))
        if (learning := learning_of(self, table)) is not None:
            return learning.report(n_classes)
        warn_of_left_out(self.schema, table)
        return self._planned_report(*self._planned_facts(n_samples, n_features, n_classes))

    def _planned_facts(self, n_samples: Any, n_features: Any, n_classes: Any) -> tuple[Facts, dict[str, Any]]:
        """Return the public facts of a planned fit, and further entries for the report."""
        shape = read_shape(n_samples, n_features)
        n_columns = self._n_columns(shape.n_features)
        self._check_parameters()
        classes, assumed = self._planned_classes(n_classes)
        facts = self._of_prepared(Facts(shape.n_samples, n_columns, classes=classes))
        facts = replace(facts, partitions=planned_partitions(n_samples, facts))
        return facts, {**({"read": READ} if shape.of_table else {}), **assumed}

    def _planned_report(self, facts: Facts, public: dict[str, Any]) -> PrivacyReport:
        """Return the report of a plan, with further public facts."""
        plan = self._plan_of(facts)
        if facts.partitions is not None:
            refuse_partitions(plan, type(self).__name__, facts.partitions.kept is not None)
        statement = report(self, plan, NoiseSource(), facts, planned=True, as_given=True)
        return replace(statement, public={**statement.public, **public}, needed=needed(self, facts, plan))

    def _n_columns(self, n_features: int | None) -> int:
        """Return the number of features for a plan."""
        if (facts := self._stated()) is not None:
            return facts.n_features
        if n_features is None:
            raise TypeError("n_features=None; expected an integer, or a shape or table as n_samples.")
        return n_features

    def _planned_classes(self, n_classes: int | None) -> tuple[np.ndarray | None, dict[str, Any]]:
        """Return the classes for a plan, and what the report says about them."""
        if n_classes is not None:
            raise TypeError(f"n_classes={shown(n_classes)}; expected None: {type(self).__name__} predicts numbers.")
        return None, {}

    def _contradictions(self, plan: Plan, result: SolverResult, facts: Facts) -> Iterable[str]:
        """Return a sentence for each assumption that the releases contradict, from releases and public facts only."""
        names = None if facts.feature_names is None else facts.feature_names.tolist()
        return () if result.moments is None else contradictions(self, plan, result.moments, names)

    def _scaling(self, facts: Facts) -> ColumnScaling | None:
        """Return the public map of the columns; None if no bounds scale them."""
        return scaling_of(self, facts.n_features, facts.feature_names)

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, minimum=0.0, maximum=1e50, optional=True)
        check_number("l1_ratio", self.l1_ratio, minimum=0.0, maximum=1.0)
        self._constraint()
        self._check_bounds()
        check_scale("data_norm", self.data_norm, optional=True)
        check_scale("clip_norm", self.clip_norm, optional=True)
        check_scale("max_sample_weight", self.max_sample_weight, optional=True)
        check_scale("intercept_scaling", self.intercept_scaling)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept={shown(self.fit_intercept)}; expected True or False.")
        check_integer("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, minimum=0, optional=True)
        check_random_state(self.random_state)

    def _check_bounds(self) -> None:
        if check_public_columns(self.schema, self.feature_bounds) is not None and self.data_norm is not None:
            raise ValueError(
                f"data_norm={shown(self.data_norm)} beside schema=...; expected None: a schema prepares rows of length at most 1."
            )
        self._warn_of_unbounded()

    def _warn_of_unbounded(self) -> None:
        """Warn, before anything is charged, if no parameter tells where the entries of X lie."""
        if all(getattr(self, name) is None for name in self._bounding):
            usual = "feature_bounds=1.0" if "feature_bounds" in self._bounding else "data_norm=math.sqrt(n_features)"
            warn(
                f"{'Neither' if self._bounding[1:] else 'No'} {' nor '.join(self._bounding)} is given: all columns are taken to "
                f"lie in [-1, 1], and {self._outside}. {usual} says so without this warning.",
                TableWarning,
            )

    def _constraint(self) -> Constraint | None:
        """Return the constraint on the coefficients of the features, in the units of y."""
        return None

    def _units(self, n_targets: int | None = None) -> tuple[Any, Any]:
        """Return the centre and the unit of the targets, or of each of several."""
        return 0.0, 1.0

    def _problem(self, n_samples: int, n_features: int, loss: Loss, kind: type[Problem] = Problem, **fields: Any) -> Problem:
        """Return the public facts of the fit; ``fields`` are further ones of ``kind``."""
        constraint = self._constraint()
        unit = 1.0 if constraint is None else self._units()[1]
        return kind(
            n_samples=n_samples,
            loss=loss,
            budget=self._budget(n_samples),
            intercept_scaling=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            l1_ratio=float(self.l1_ratio),
            max_sample_weight=None if self.max_sample_weight is None else float(self.max_sample_weight),
            constraint=constraint if constraint is None or unit == 1 else _scaled(constraint, 1 / unit),
            **self._row_facts(n_samples, n_features),
            **fields,
        )

    def _budget(self, n_samples: int) -> Budget:
        return Budget.from_parameters(self.epsilon, self.delta, self.adjacency, n_samples)

    def _row_facts(self, n_samples: int, n_features: int) -> dict[str, Any]:
        """Return the public facts about the rows behind the oracle, by field name of `Problem`."""
        short = self.schema is not None and self._public_rows()[0] is None
        return {"n_features": n_features, "data_norm": 1.0} if short else row_facts(self, n_features)

    def _public_rows(self) -> tuple[Any, Any]:
        """Return the bounds of the features and of the length of a row, each None if it is not known."""
        return self.feature_bounds, self.data_norm

    def _rows_of(self, X: Any) -> Any:
        """Return the rows of a table to predict for, with the columns of ``coef_``."""
        if (schema := getattr(self, "schema_", None)) is not None:
            return prepared(schema, X, self)
        table = read_unlabelled(self, X)
        d, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        warn_of_long_rows(table, row_facts(self, d)["data_norm"], scaling_of(self, d, names))
        return table

    def _described(self, plan: Plan) -> dict[str, Any]:
        """Return further public choices for the report, by name."""
        return described_units(self)

    def _solver_title(self, plan: Plan) -> str:
        """Return the title of the algorithm for the report."""
        return plan.solver.title_for(plan.problem)

    def _outlook(self, plan: Plan) -> str:
        """Return what public facts tell of parts of the model, for the report, after a semicolon; "" if nothing."""
        outlook = plan.solver.outlook(plan.problem)[1]
        return f"; intervals: {outlook}" if outlook else ""

    def _left_out(self, plan: Plan) -> str:
        """Return a warning for a part of the model that public facts leave out; "" if there is none."""
        level, outlook = plan.solver.outlook(plan.problem)
        if level < 1:
            return ""
        where = f"At epsilon={float(self.epsilon):g} and n_samples={plan.problem.n_samples}, "
        return f"{where}{outlook}. The budget is spent all the same. plan(n_samples, n_features) tells you this before a fit."

    def _coefficients(self, plan: Plan, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (n_outputs, n_features) and intercept in the units of X and y; projects again after rounding."""
        loss, constraint = plan.problem.loss, self._constraint()
        centre, unit = self._units(loss.n_outputs if isinstance(loss, SquaredDistance) else None)
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


def _scaled(constraint: Constraint, factor: float) -> Constraint:
    """Return the set in other units; check what a user's object returns."""
    scaled = constraint.scaled(factor)
    if not callable(getattr(scaled, "project", None)):
        raise TypeError(f"constraint={shown(constraint)}: scaled(factor) returned {shown(scaled)}; expected a set with project.")
    return scaled
