"""Define the task of an additive model: map the columns by public functions, then run an ordinary private fit."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from skdp._data_validation import Facts, Part, check_label_set
from skdp._validation import check_feature_bounds, check_integer, shown
from skdp.estimators._contradictions import of_columns, of_first_categories
from skdp.estimators._inference import for_inference
from skdp.estimators._plan import Plan
from skdp.estimators._public_columns import check_interactions, check_public_columns, named_pairs, public_columns
from skdp.estimators._task import Task
from skdp.estimators.additive._inferred import all_means, independent, intervals_for_inference
from skdp.estimators.additive._knots import SHARE, drowned, front_of, release_knots
from skdp.estimators.additive._reading import Additive, FunctionReader, labels_of_columns, number_of_records, training_columns
from skdp.estimators.additive._smoothing import smoothed
from skdp.estimators.additive._support import supported, supports
from skdp.estimators.additive._terms import Shapes, check_monotone, monotone_coefficients, monotone_directions
from skdp.losses import Logistic, Squared
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Loss
from skdp.solvers import Problem, SolverResult

# Smallest number of records of a fit, and largest number of even intervals between knots; the latter is a choice.
FEWEST_SAMPLES, MOST_INTERVALS = 2, 256


class AdditiveTask(Task):
    """Task of the sum of one function per column and per named pair of columns."""

    interactions: Any
    knots: Any
    monotone: Any

    bounding: ClassVar[tuple[str, ...]] = ("schema", "feature_bounds")
    outside: ClassVar[str] = "values outside to be at the nearer end"
    dyadic: ClassVar[bool] = True  # whether there are more knots below the first even one

    @abstractmethod
    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        """Return the number of even intervals between knots that are worth their noise, from public facts; 0 for no hats."""

    def n_columns(self, n_features: int | None) -> int:
        """Return the number of columns for a plan."""
        facts = check_public_columns(self.input_schema, self.feature_bounds)
        if facts is not None:
            return len(facts.columns)
        bounds = check_feature_bounds(self.feature_bounds)
        if n_features is None and bounds is not None and bounds.ndim == 2:
            return len(bounds)
        if n_features is None:
            raise TypeError("n_features=None; expected the number of columns of X, where neither a schema nor bounds tell it.")
        return super().n_columns(n_features)

    def _basis(self, n_samples: int, n_columns: int, names: Sequence[str] | None = None) -> AdditiveBasis:
        """Return the functions of the columns, after checking all parameters that name columns.

        Without names and schema they are for a plan, where any pair of numbers stands for any other.
        """
        given = public_columns(self.input_schema, self.feature_bounds, n_columns, names)
        facts = replace(given, columns={name: column.on_one_scale() for name, column in given.columns.items()})
        known = list(facts.columns)
        if names is None and self.schema is None:
            pairs = tuple((known[0], known[0]) for _ in self.interactions)
        else:
            pairs = named_pairs(self.interactions, known)
            monotone_directions(self.monotone, facts)
        length = None if self.data_norm is None else float(self.data_norm)
        basis = AdditiveBasis(facts, 0, pairs, self.dyadic, length)
        if self.inference:  # so that no row is longer, and none is shortened: with hats, there are no scaled values
            ones = len(basis.facts.columns) if self.knots == 0 else max(len(basis.categories), 1)
            basis = replace(basis, dyadic=False, length=math.sqrt(ones))
        if not isinstance(self.knots, str):
            return replace(basis, n_intervals=int(self.knots))
        if self.inference:
            loss: Loss = Squared() if hasattr(self, "target_bounds") else Logistic()
            problem = Problem(n_samples, 1, loss, self.known_budget(n_samples), 1.0, 1.0)
            return replace(basis, n_intervals=intervals_for_inference(problem, lambda m: replace(basis, n_intervals=m)))
        return replace(basis, n_intervals=self._n_intervals(self.signal(self.known_budget(n_samples), n_samples), basis))

    def additive(self, n_samples: int, n_columns: int, names: Sequence[str] | None = None) -> Additive:
        """Return the functions, and the release that places the knots, if it is requested and noise would not dominate it."""
        basis = self._basis(n_samples, n_columns, names)
        asked = self.knots == "private" or (self.inference and self.knots == "auto")
        if not asked or drowned(self.known_budget(n_samples), n_samples, basis):
            return Additive(basis=basis, inference=bool(self.inference))
        return Additive(basis=basis, inference=bool(self.inference), front=front_of(basis, bool(self.inference)), share=1 - SHARE)

    def check_parameters(self) -> None:
        if self.inference:
            self._check_inference()
        elif for_inference(self.solver):
            raise ValueError(
                f"solver={shown(self.solver)} fits coefficients that are identified; expected it with inference=True."
            )
        super().check_parameters()
        check_interactions(self.interactions)
        if isinstance(self.knots, str):
            if self.knots not in ("auto", "private"):
                raise ValueError(f"knots={shown(self.knots)}; expected 'auto', 'private' or a number of intervals.")
        else:
            check_integer("knots", self.knots, minimum=0, maximum=MOST_INTERVALS)
        check_monotone(self.monotone)

    def _check_inference(self) -> None:
        """Raise ValueError for what has no intervals."""
        given = {name: getattr(self, name) for name in ("interactions", "monotone", "data_norm") if getattr(self, name)}
        if given:
            what = ", ".join(f"{name}={shown(value)}" for name, value in given.items())
            raise ValueError(
                f"inference=True with {what}, which intervals do not allow; expected it without {' and '.join(given)}."
            )
        facts = check_public_columns(self.input_schema, self.feature_bounds)
        if not (self.feature_bounds is not None if facts is None else all(column.plain for column in facts.columns.values())):
            raise ValueError(
                "inference=True needs bounds and categories of all columns from public knowledge, given to the estimator itself, "
                'also in a pipeline, as schema={"columns": {...}} or feature_bounds: values beyond bounds that were learned '
                "would bias confidence intervals."
            )

    def read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        columns, names = self._columns(scratch, X)
        n_samples = self.units_of(len(columns))
        _check_number(n_samples)
        additive = self.additive(n_samples, len(names), names)
        basis = additive.behind
        del X
        if additive.front is None and not additive.inference and basis.packs(n_samples):  # packed rows are finite
            rows: Any = basis.packed(columns)
            numbers, labels = self.target_reader().check_target(y, len(columns))
            if labels is not None:
                check_label_set(labels)
            facts = Facts(len(columns), len(names), storage="CSR", classes=labels)
        else:
            facts, rows, numbers = super().read(self.scratch(), additive.rows(basis, columns), y)
        known = getattr(scratch, "feature_names_in_", None)
        return replace(facts, n_features=len(names), feature_names=known, extra=additive), rows, numbers

    def part_reader(self, table: Any) -> Callable[[Any, Any], Part]:
        facts, n_samples = self.input_schema, number_of_records(table)
        _check_number(n_samples)
        names = labels_of_columns(table) if facts is None else list(facts.columns)
        additive = self.additive(n_samples, len(names), names)
        basis = additive.behind
        return FunctionReader(n_samples, additive, basis, facts, self.target_reader())

    def _columns(self, scratch: Any, X: Any) -> tuple[Any, list[str]]:
        """Return the columns of a training table and their names; set the names of a frame and the number on the scratch copy."""
        return training_columns(scratch, X, self.input_schema)

    def planned_facts(self, n_samples: Any, n_features: Any, n_classes: Any) -> tuple[Facts, dict[str, Any]]:
        facts, public = super().planned_facts(n_samples, n_features, n_classes)
        if facts.partitions is None:
            return facts, public
        additive = self.additive(facts.n_samples, facts.n_features)
        basis = additive.behind
        number = None if self.n_persons is not None else -(-facts.n_samples // chunk_rows(basis.n_features))
        return replace(facts, partitions=replace(facts.partitions, number=number, bytes_per_pass=None)), public

    def _row_facts(self, n_samples: int, n_features: int) -> dict[str, Any]:
        additive = self.additive(n_samples, n_features)
        width = {"n_features": additive.n_functions, "n_stored": additive.basis.n_stored}
        return {**width, "data_norm": additive.data_norm, "extra": additive}

    def contradictions(self, plan: Plan, result: SolverResult, facts: Facts) -> Iterator[str | Warning]:
        """Yield a sentence for categories and bounds that, as the released moments show, do not match the records."""
        if (moments := result.moments) is not None:
            basis = Additive.of(result).basis
            if self.inference:
                moments = replace(moments, mean=all_means(basis, moments.mean), squares=None)
                yield from of_first_categories(basis, moments)
            yield from of_columns(self, basis, moments)

    def usable(self, schema: Schema, learned: Collection[str]) -> Schema:
        """Return a schema in which monotone columns of numbers have no indicators."""
        schema = super().usable(schema, learned)
        columns = {**schema.columns}
        for name in monotone_directions(self.monotone, schema):
            columns[name] = columns[name].without_indicators()
        return replace(schema, columns=columns)

    @property
    def row_schema(self) -> None:
        """None: the basis prepares the rows."""

    def facts_of_rows(self, facts: Facts) -> Facts:
        return replace(facts, stated=self.input_schema)

    def scaling(self, n_features: int, names: Any) -> None:
        """Return None: the basis maps the columns."""

    def plan_of(self, facts: Facts) -> Plan:
        plan = super().plan_of(facts)
        read = facts.extra
        if not isinstance(read, Additive):  # of a table that nobody has
            return plan
        planned = Additive.of(plan.problem)
        return replace(plan, problem=replace(plan.problem, extra=replace(planned, basis=read.basis)))

    def solved(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        additive = Additive.of(plan.problem)
        if additive.front is not None:
            additive = replace(additive, basis=release_knots(plan.problem, additive.basis, oracle, additive.inference))
        return replace(smoothed(additive.basis, super().solved(plan, oracle, rng)), extra=additive)

    def supported(self, plan: Plan, result: SolverResult, facts: Facts) -> tuple[SolverResult, dict[str, Any]]:
        """Return the model without effects of levels and ranges that hardly any record has, and an attribute that names them."""
        if self.inference:
            return result, {"hardly_seen_": {}}
        additive = Additive.of(result)
        found = supports(additive.basis, result.moments, self.counted, additive.in_bins)
        result = replace(supported(additive.basis, result, found), extra=additive.supported(found))
        return result, {"hardly_seen_": {name: support.hardly_seen for name, support in found.items()}}

    def unknown(self, plan: Plan, result: SolverResult, facts: Facts) -> str:
        """Return the statement for functions, which released means alone judge."""
        return super().unknown(plan, replace(result, kept=result.moments), facts)

    def _problem(self, n_samples: int, n_features: int, loss: Loss, kind: type[Problem] = Problem, **fields: Any) -> Problem:
        if self.monotone and loss.n_outputs > 1:
            raise ValueError(
                f"monotone={shown(self.monotone)} with {loss.n_outputs} classes; expected two: a function per class."
            )
        return super()._problem(n_samples, n_features, loss, kind, **fields)

    def described(self, plan: Plan) -> dict[str, Any]:
        additive = Additive.of(plan.problem)
        basis = additive.basis
        where = f"knots each, placed by {'their bounds' if additive.front is None else 'the first release'}"
        none = "no hats, whose noise would win" if isinstance(self.knots, str) else "no hats, as asked for"
        hats = f"hats on {basis.knots.size} {where}" if basis.n_intervals else none
        numbers = f"{len(basis.numbers)}, with {hats}" if basis.numbers else "0"
        sizes = f"categories: {len(basis.categories)}; pairs: {len(basis.interactions)}; functions: {additive.n_functions}"
        others = super().described(plan)
        others.pop("columns", None)  # the basis maps them
        return {**others, "basis": f"numbers: {numbers}; {sizes}"}

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        basis = Additive.of(result).basis
        model: dict[str, Any] = super().model(plan, result, facts)  # type: ignore[safe-super]
        if self.inference:
            coef = np.zeros((*model["coef_"].shape[:-1], basis.n_features))
            coef[..., independent(basis)] = model["coef_"]
            model["coef_"] = coef
        noise = None if result.noise is None else replace(result.noise, unit=self.units()[1])
        if directions := monotone_directions(self.monotone, basis.facts):
            shapes = Shapes(basis, np.atleast_2d(model["coef_"]), noise, directions)
            model["coef_"] = monotone_coefficients(shapes).reshape(model["coef_"].shape)
        return {**model, "basis_": basis, **({} if noise is None else {"noise_": noise})}


def _check_number(n_samples: int) -> None:
    if n_samples < FEWEST_SAMPLES:
        raise ValueError(f"Found array with {n_samples} sample(s) while a minimum of {FEWEST_SAMPLES} is required.")
