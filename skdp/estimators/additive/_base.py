"""Define the base of the additive models: map the columns by public functions, then run an ordinary private fit."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts, Part, read_unlabelled
from skdp._validation import check_feature_bounds, check_integer, check_number, shown
from skdp.data._predictions import takes_tables
from skdp.estimators._base import DPEstimator
from skdp.estimators._contradictions import of_columns, of_first_categories
from skdp.estimators._inference import KINDS, NOT_INFERRED, for_inference
from skdp.estimators._plan import Plan
from skdp.estimators._prepared_rows import named_columns_of
from skdp.estimators._public_columns import check_interactions, check_public_columns, named_pairs, public_columns
from skdp.estimators.additive._inferred import InferredShapes, all_means, independent, intervals_for_inference
from skdp.estimators.additive._knots import SHARE, drowned, front_of, moves, release_knots
from skdp.estimators.additive._reading import (
    Additive,
    FunctionReader,
    columns_of,
    labels_of_columns,
    number_of_records,
    training_columns,
)
from skdp.estimators.additive._smoothing import smoothed
from skdp.estimators.additive._support import supported
from skdp.estimators.additive._terms import (
    LEVEL,
    ShapeFunction,
    Shapes,
    check_monotone,
    monotone_coefficients,
    monotone_directions,
)
from skdp.losses import Logistic, Squared
from skdp.preprocessing import AdditiveBasis, Number, Schema, Term
from skdp.preprocessing._octave_rule import on_one_scale
from skdp.privacy.budget import Budget, default_delta
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Loss
from skdp.solvers import Problem, SolverResult, WaldTest, signal_to_noise

__all__ = ["Additive", "AdditiveModel"]

# Smallest number of records of a fit, and largest number of even intervals between knots; the latter is a choice.
FEWEST_SAMPLES, MOST_INTERVALS = 2, 256
# What else hides a function of a classifier, for its warning.
ONE_CLASS = " Where nearly all records have one class, the log-odds are not identified either."


class AdditiveModel(DPEstimator):
    """Base of additive models: the sum of one function per column and per named pair of columns.

    Subclasses declare the parameters ``schema``, ``feature_bounds``, ``interactions`` and ``knots`` in addition to those of
    `DPEstimator`, and define how many hats are worth their noise.
    """

    inference: Any = False  # what some estimators have as a parameter
    _bounding: ClassVar[tuple[str, ...]] = ("schema", "feature_bounds")
    _outside: ClassVar[str] = "values outside to be at the nearer end"
    _dyadic: ClassVar[bool] = True  # whether there are more knots below the first even one
    l1_ratio: Any = 0.0  # what other estimators have as parameters
    fit_intercept: Any = True
    intercept_scaling: Any = 1.0
    _refused: ClassVar[dict[str, str]] = {
        "fit_intercept": "there is always one: functions of columns are told apart from each other by their means",
        "intercept_scaling": "the solvers have a scale of their own",
        "l1_ratio": "the penalty is L2; alpha sets its strength",
        "max_bins": "knots=... sets the number of even intervals between knots",
        "n_knots": "knots=... sets the number of even intervals between knots",
    }

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: text needs a schema, tables are dense, and scores on small tables are poor with noise."""
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = self._is_noisy()
        tags.input_tags.sparse = False
        tags.input_tags.string = tags.input_tags.categorical = self.schema is not None
        return tags

    def _interval_rows(self, X: Any) -> tuple[Any, Any]:
        """Return the rows of a table whose factors have intervals, and the squares of what predictions may be off by besides."""
        columns, shapes = self._columns_to_predict(X), self._shapes()
        assert isinstance(shapes, InferredShapes)
        beside: Any = 0.0
        for values in self.basis_.values_of(columns):
            if values.place is not None:
                beside = beside + shapes.bends(values.term, (1 + values.place) / 2)
        return self.basis_.transform(columns)[:, independent(self.basis_)], beside

    @abstractmethod
    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        """Return the number of even intervals between knots that are worth their noise, from public facts; 0 for no hats."""

    def _n_columns(self, n_features: int | None) -> int:
        """Return the number of columns for a plan."""
        facts = check_public_columns(self.schema, self.feature_bounds)
        if facts is not None:
            return len(facts.columns)
        bounds = check_feature_bounds(self.feature_bounds)
        if n_features is None and bounds is not None and bounds.ndim == 2:
            return len(bounds)
        if n_features is None:
            raise TypeError("n_features=None; expected the number of columns of X, where neither a schema nor bounds tell it.")
        return super()._n_columns(n_features)

    def _basis(self, n_samples: int, n_columns: int, names: Sequence[str] | None = None) -> AdditiveBasis:
        """Return the functions of the columns, after checking all parameters that name columns.

        Without names and schema they are for a plan, where any pair of numbers stands for any other.
        """
        facts = on_one_scale(public_columns(self.schema, self.feature_bounds, n_columns, names))
        known = list(facts.columns)
        if names is None and self.schema is None:
            pairs = tuple((known[0], known[0]) for _ in self.interactions)
        else:
            pairs = named_pairs(self.interactions, known)
            monotone_directions(self.monotone, facts)
        length = None if self.data_norm is None else float(self.data_norm)
        basis = AdditiveBasis(facts, 0, pairs, self._dyadic, length)
        if self.inference:  # so that no row is longer, and none is shortened: with hats, there are no scaled values
            ones = len(basis.facts.columns) if self.knots == 0 else max(len(basis.categories), 1)
            basis = replace(basis, dyadic=False, length=math.sqrt(ones))
        if not isinstance(self.knots, str):
            return replace(basis, n_intervals=int(self.knots))
        if self.inference:
            loss: Loss = Squared() if hasattr(self, "target_bounds") else Logistic()
            problem = Problem(n_samples, 1, loss, self._known_budget(n_samples), 1.0, 1.0)
            return replace(basis, n_intervals=intervals_for_inference(problem, lambda m: replace(basis, n_intervals=m)))
        return replace(basis, n_intervals=self._n_intervals(signal_to_noise(self._known_budget(n_samples), n_samples), basis))

    def _additive(self, n_samples: int, n_columns: int, names: Sequence[str] | None = None) -> Additive:
        """Return the functions, and the release that places the knots, if it is requested and noise would not dominate it."""
        basis = self._basis(n_samples, n_columns, names)
        asked = self.knots == "private" or (self.inference and self.knots == "auto")
        if not asked or drowned(self._known_budget(n_samples), n_samples, basis):
            return Additive(basis=basis, inference=bool(self.inference))
        return Additive(basis=basis, inference=bool(self.inference), front=front_of(basis, bool(self.inference)), share=1 - SHARE)

    def _known_budget(self, n_samples: int) -> Budget:
        """Return the budget without warnings, which the plan gives; delta = 0 is replaced by the default delta."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            budget = self._budget(n_samples)
            return budget if budget.delta else replace(budget, delta=default_delta(n_samples))

    def _check_parameters(self) -> None:
        if self.inference:
            self._check_inference()
        elif for_inference(self.solver):
            raise ValueError(
                f"solver={shown(self.solver)} fits coefficients that are identified; expected it with inference=True."
            )
        super()._check_parameters()
        check_interactions(self.interactions)
        if isinstance(self.knots, str):
            if self.knots not in ("auto", "private"):
                raise ValueError(f"knots={shown(self.knots)}; expected 'auto', 'private' or a number of intervals.")
        else:
            check_integer("knots", self.knots, minimum=0, maximum=MOST_INTERVALS)
        check_monotone(self.monotone)
        if self.inference:
            self._check_inference()
        elif for_inference(self.solver):
            raise ValueError(
                f"solver={shown(self.solver)} fits coefficients that are identified; expected it with inference=True."
            )

    def _check_inference(self) -> None:
        """Raise ValueError for what has no intervals."""
        given = {name: getattr(self, name) for name in ("interactions", "monotone", "data_norm") if getattr(self, name)}
        if given:
            what = ", ".join(f"{name}={shown(value)}" for name, value in given.items())
            raise ValueError(
                f"inference=True with {what}, which intervals do not allow; expected it without {' and '.join(given)}."
            )
        facts = check_public_columns(self.schema, self.feature_bounds)
        if not (self.feature_bounds is not None if facts is None else all(column.plain for column in facts.columns.values())):
            raise ValueError(
                "inference=True needs bounds and categories of all columns from public knowledge, given to the estimator itself, "
                'also in a pipeline, as schema={"columns": {...}} or feature_bounds: values beyond bounds that were learnt would '
                "bias confidence intervals."
            )

    def _check_bounds(self) -> None:
        check_public_columns(self.schema, self.feature_bounds)
        self._warn_of_unbounded()

    @property
    def feature_names_out_(self) -> np.ndarray:
        """Names of the columns of ``coef_``: the functions of each column, and of each pair, with their numbers."""
        check_is_fitted(self)
        terms = [(":".join(term.names), term.columns.stop - term.columns.start) for term in self.basis_.terms]
        return np.array([f"{name}[{number}]" for name, size in terms for number in range(size)], dtype=object)

    @property
    def shape_functions_(self) -> dict[Any, ShapeFunction]:
        """The function of each column, by name, and of each pair, by both names: grid, values, band and importance."""
        return self._functions(LEVEL, False, None)

    def bands(self, level: float = 0.95, *, simultaneous: bool = False, kind: str | None = None) -> dict[Any, ShapeFunction]:
        """Return the functions of ``shape_functions_`` with bands of another level, or with bands for whole curves.

        Parameters
        ----------
        level : float, default=0.95
            Share of the fits whose band holds the curve, in (0, 1): fits with fresh noise to the same records for "noise", and to
            fresh records for "confidence".
        simultaneous : bool, default=False
            Whether a band holds the whole curve at once, at all points of its grid, or each point by itself. Curves of different
            columns are not joint.
        kind : {"confidence", "noise"} or None, default=None
            "noise" is for the curve that these records would have without privacy noise. "confidence" is for the curve of the
            population from which the records come, and needs ``inference=True``. None means the latter after such a fit, and
            else the former.

        Returns
        -------
        dict of ShapeFunction
            By the name of the column, or both names of a pair. The ends of a band are infinite where a fit for inference does
            not identify the curve; None if the solver reports no noise.

        Raises
        ------
        AttributeError
            If ``kind`` is "confidence" and the model was not fitted for inference.
        TypeError, ValueError
            If a parameter is not valid.

        Notes
        -----
        The width of a simultaneous band is a quantile of the largest deviation over the grid, in 4000 simulations of the noise
        whose covariance was released. For boosted models it is that of independent points (Sidak 1967), which is not smaller.

        **Privacy.** Post-processing of what was released.
        """
        check_number("level", level, above=0.0, below=1.0)
        if not isinstance(simultaneous, (bool, np.bool_)):
            raise TypeError(f"simultaneous={shown(simultaneous)}; expected True or False.")
        if kind not in (None, *KINDS):
            raise ValueError(f"kind={shown(kind)}; expected one of {list(KINDS)}, or None.")
        if kind == "confidence" and not hasattr(self, "inference_"):
            raise AttributeError(f"kind={kind!r}: {NOT_INFERRED}")
        return self._functions(float(level), bool(simultaneous), kind)

    def column_tests(self) -> dict[Any, WaldTest]:
        """Return a test, for each column and named pair, that its function is constant.

        After a fit for inference the hypothesis is that the column has no effect in the population from which the records come.
        Else it is that the function of these records is constant but for the privacy noise.

        Returns
        -------
        dict of WaldTest
            By the name of the column, or both names of a pair. The statistic is chi-squared over its degrees of freedom, on the
            covariance of the noise; after a fit for inference, it has an F law, and is NaN, with ``estimable=False``, where the
            budget does not identify all of the function.

        Raises
        ------
        AttributeError
            If the solver reports no noise, or the model has trees, whose leaves have no joint covariance.

        Notes
        -----
        Without ``inference=True`` the hypothesis is about these records: fits to them, with fresh noise, have a mean function
        that is constant. A small p-value says that the privacy noise alone does not make the function that was released. It says
        nothing about other samples of records: in a large table, chance makes functions of columns without any effect in the
        population, and this test finds them. Noise that is stated too large, as it is for most tables, makes p-values too large.

        **Privacy.** Post-processing of what was released.
        """
        shapes = self._shapes()
        if not isinstance(shapes, InferredShapes) and (type(shapes) is not Shapes or shapes.noise is None):
            raise AttributeError("This model has no tests of columns: they need the joint noise of each function.")
        found = {_name_of(term): shapes.test(term) for term in shapes.basis.terms}
        if unknown := [name for name, test in found.items() if not test.estimable]:
            warn(
                f"The functions of {unknown} are not identified at this budget, or only in part: they have no test. Take more "
                "records, a larger epsilon, fewer columns, or bounds closer to where the records are, from public knowledge; "
                f"describe a column of two values as a category.{ONE_CLASS if hasattr(self, 'classes_') else ''}",
                LowSignalWarning,
            )
        return found

    def _functions(self, level: float, simultaneous: bool, kind: str | None) -> dict[Any, ShapeFunction]:
        shapes = self._shapes()
        if isinstance(shapes, InferredShapes) and kind is not None:
            shapes = replace(shapes, kind=kind)
        squeeze = len(shapes.coef) == 1
        return {_name_of(term): shapes.function(term, squeeze, level, simultaneous) for term in shapes.basis.terms}

    @property
    def baseline_(self) -> np.ndarray:
        """Raw prediction of an average record, of shape (n_outputs,), to which `explain` adds."""
        shapes = self._shapes()
        return np.ravel(self.intercept_) + shapes.coef @ shapes.centre

    @takes_tables
    def explain(self, X: Any) -> np.ndarray:
        """Return what each column, and each named pair, adds to the raw prediction of each record.

        Parameters
        ----------
        X : DataFrame, or array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_terms), or (n_samples, n_terms, n_classes) for more than two classes
            Contributions, in the order of ``shape_functions_``. Together with ``baseline_`` they add up to the log-odds of a
            classifier, or to the prediction of a regressor before it is clipped to ``target_bounds``.
        """
        check_is_fitted(self)
        rows, shapes = self._rows_of(X), self._shapes()
        parts = [
            rows[:, term.columns] @ shapes.coef[:, term.columns].T - shapes.coef[:, term.columns] @ shapes.centre[term.columns]
            for term in shapes.basis.terms
        ]
        contributions = np.stack(parts, axis=1)
        return contributions[:, :, 0] if len(shapes.coef) == 1 else contributions

    def _shapes(self) -> Shapes:
        check_is_fitted(self)
        directions = monotone_directions(self.monotone, self.basis_.facts)
        if (inference := getattr(self, "inference_", None)) is not None:
            n, coef = self.privacy_report_.public["n_samples"], np.atleast_2d(self.coef_)
            moved = moves(self.privacy_report_.budget, n, self.basis_)
            return InferredShapes(self.basis_, coef, None, directions, inference, "confidence", n, moved)
        return Shapes(self.basis_, np.atleast_2d(self.coef_), getattr(self, "noise_", None), directions)

    def _read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        columns, names = self._columns(scratch, X)
        _check_number(len(columns))
        additive = self._additive(len(columns), len(names), names)
        basis = additive.behind
        del X
        packs = additive.front is None and not additive.inference and basis.packs(len(columns))
        rows = basis.packed(columns) if packs else additive.rows(basis, columns)
        checked = sparse.csr_array(rows.shape) if packs else rows  # packed rows are finite
        facts, table, labels = super()._read(self._scratch(), checked, y)  # type: ignore[safe-super]
        known = getattr(scratch, "feature_names_in_", None)
        return replace(facts, n_features=len(names), feature_names=known, extra=additive), rows if packs else table, labels

    def _part_reader(self, table: Any) -> Callable[[Any, Any], Part]:
        facts, n_samples = self._stated(), number_of_records(table)
        _check_number(n_samples)
        names = labels_of_columns(table) if facts is None else list(facts.columns)
        additive = self._additive(n_samples, len(names), names)
        basis = additive.behind
        return FunctionReader(n_samples, additive, basis, facts, self._target_reader())

    def _columns(self, scratch: Any, X: Any) -> tuple[Any, list[str]]:
        """Return the columns of a training table and their names; set the names of a frame and the number on the scratch copy."""
        return training_columns(scratch, X, self._stated())

    def _rows_of(self, X: Any) -> Any:
        return self.basis_.transform(self._columns_to_predict(X))

    def _raw(self, X: Any) -> np.ndarray:
        columns = self._columns_to_predict(X)
        coef = np.atleast_2d(self.coef_)
        total = sum(self.basis_.raw(values, coef) for values in self.basis_.values_of(columns)) + self.intercept_
        return total[:, 0] if self.coef_.ndim == 1 else np.asarray(total)

    def _columns_to_predict(self, X: Any) -> Any:
        """Return the columns of a table, checked, as the basis takes them."""
        check_is_fitted(self)
        if self.schema is None and not hasattr(self, "learnt_"):
            return read_unlabelled(self, X, accept_sparse=False)
        return columns_of(self.basis_.facts, named_columns_of(self, X))

    def _planned_facts(self, n_samples: Any, n_features: Any, n_classes: Any) -> tuple[Facts, dict[str, Any]]:
        facts, public = super()._planned_facts(n_samples, n_features, n_classes)
        if facts.partitions is None:
            return facts, public
        additive = self._additive(facts.n_samples, facts.n_features)
        basis = additive.behind
        number = -(-facts.n_samples // chunk_rows(basis.n_features))
        return replace(facts, partitions=replace(facts.partitions, number=number, bytes_per_pass=None)), public

    def _row_facts(self, n_samples: int, n_features: int) -> dict[str, Any]:
        additive = self._additive(n_samples, n_features)
        width = {"n_features": additive.n_functions, "n_stored": additive.basis.n_stored}
        return {**width, "data_norm": additive.data_norm, "extra": additive}

    def _contradictions(self, plan: Plan, result: SolverResult, facts: Facts) -> Iterator[str]:
        """Yield a sentence for categories and bounds that, as the released moments show, do not match the records."""
        if (moments := result.moments) is not None:
            basis = Additive.of(result).basis
            if self.inference:
                moments = replace(moments, mean=all_means(basis, moments.mean), squares=None)
                yield from of_first_categories(basis, moments)
            yield from of_columns(self, basis, moments)

    def _usable(self, schema: Schema, learnt: Collection[str]) -> Schema:
        """Return a schema in which monotone columns of numbers have no indicators."""
        schema = super()._usable(schema, learnt)
        columns = {**schema.columns}
        for name in monotone_directions(self.monotone, schema):
            column = columns[name]
            if isinstance(column, Number) and column.learnt is not None:
                columns[name] = replace(column, learnt=replace(column.learnt, integers=(), missing=False))
        return replace(schema, columns=columns)

    def _prepared_by(self) -> None:
        """Return None: the basis prepares the rows."""

    def _of_prepared(self, facts: Facts) -> Facts:
        return replace(facts, stated=self._stated())

    def _scaling(self, facts: Facts) -> None:
        """Return None: the basis maps the columns."""

    def _plan_of(self, facts: Facts) -> Plan:
        plan = super()._plan_of(facts)
        read = facts.extra
        if not isinstance(read, Additive):  # of a table that nobody has
            return plan
        planned = Additive.of(plan.problem)
        if self.schema is not None and planned.basis != read.basis:
            raise ValueError("The schema has changed while it was read; expected a file that nobody writes to.")
        return replace(plan, problem=replace(plan.problem, extra=replace(planned, basis=read.basis)))

    def _solved(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        additive = Additive.of(plan.problem)
        if additive.front is not None:
            additive = replace(additive, basis=release_knots(plan.problem, additive.basis, oracle, additive.inference))
        result = smoothed(additive.basis, super()._solved(plan, oracle, rng))
        if not self.inference and self._judges_support(plan):
            result, hardly_seen = supported(additive.basis, result, self._counted)
            additive = replace(additive, hardly_seen=hardly_seen)
        return replace(result, extra=additive)

    def _judges_support(self, plan: Plan) -> bool:
        """Return whether effects of which the releases tell next to nothing are taken out of the functions."""
        return True

    def _problem(self, n_samples: int, n_features: int, loss: Loss, kind: type[Problem] = Problem, **fields: Any) -> Problem:
        if self.monotone and loss.n_outputs > 1:
            raise ValueError(
                f"monotone={shown(self.monotone)} with {loss.n_outputs} classes; expected two: a function per class."
            )
        return super()._problem(n_samples, n_features, loss, kind, **fields)

    def _described(self, plan: Plan) -> dict[str, Any]:
        additive = Additive.of(plan.problem)
        basis = additive.basis
        where = "public knots each" if additive.front is None else "knots each, placed by the first release"
        none = "no hats, whose noise would win" if isinstance(self.knots, str) else "no hats, as asked for"
        hats = f"hats on {basis.knots.size} {where}" if basis.n_intervals else none
        numbers = f"{len(basis.numbers)}, with {hats}" if basis.numbers else "0"
        sizes = f"categories: {len(basis.categories)}; pairs: {len(basis.interactions)}; functions: {additive.n_functions}"
        return {"basis": f"numbers: {numbers}; {sizes}"}

    def _model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        basis = Additive.of(result).basis
        model: dict[str, Any] = super()._model(plan, result, facts)  # type: ignore[safe-super]
        if self.inference:
            coef = np.zeros((*model["coef_"].shape[:-1], basis.n_features))
            coef[..., independent(basis)] = model["coef_"]
            model["coef_"] = coef
        noise = None if result.noise is None else replace(result.noise, unit=self._units()[1])
        if directions := monotone_directions(self.monotone, basis.facts):
            shapes = Shapes(basis, np.atleast_2d(model["coef_"]), noise, directions)
            model["coef_"] = monotone_coefficients(shapes).reshape(model["coef_"].shape)
        model["hardly_seen_"] = Additive.of(result).hardly_seen
        return {**model, "basis_": basis, **({} if noise is None else {"noise_": noise})}


def _name_of(term: Term) -> Any:
    """Return the name of the column of a function, or the names of both."""
    return term.names[0] if len(term.names) == 1 else term.names


def _check_number(n_samples: int) -> None:
    if n_samples < FEWEST_SAMPLES:
        raise ValueError(f"Found array with {n_samples} sample(s) while a minimum of {FEWEST_SAMPLES} is required.")
