"""Adds confidence intervals, tests and a summary to linear models that are fitted for inference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts
from skdp._files._suffixes import imported
from skdp._label_types import classes_of
from skdp._validation import check_number, check_truth, shown
from skdp.estimators._base import PenalizedModel
from skdp.estimators._plan import Plan
from skdp.estimators._task import Task
from skdp.preprocessing import Schema
from skdp.preprocessing._schema import TreatmentSchema
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import Contrasts, InferenceDescent, SolverResult, WaldTest

INTERCEPT = "(intercept)"
ODDS = "odds_ratio", "odds_lower", "odds_upper"
UNKNOWN = "not identified at this budget"
SKEWED = (
    "Errors count as symmetric, and {size}. Where they are skewed, as those of costs and counts are, an interval is not one for "
    "the mean: large values count less."
)
WEIGHTED = (
    "If {means} are not linear in the columns, coefficients are those of a weighted fit, which may differ from {ordinary}, even "
    "in sign. Records beyond the stated bounds or data_norm are clipped to them."
)
UNLISTED = 'Missing cells and values that are not listed count as "other" where that is listed, and else as the level named here.'


@dataclass(frozen=True, eq=False)
class Summary:
    """Table of coefficients in the manner of statistical packages; post-processing of a private fit.

    Parameters
    ----------
    title : str
        Name of the estimator.
    contrasts : Contrasts
        One entry per coefficient.
    level : float
        Level of the intervals.
    report : PrivacyReport
        Report of the fit.
    classes : sequence
        The two classes, the second of which has the odds; empty for numbers.
    references : dict of str to str
        Reference level of each category.
    per : dict of str to float
        Unit of the odds ratio of a coefficient where it is not 1.
    """

    title: str
    contrasts: Contrasts
    level: float
    report: PrivacyReport
    classes: Sequence[Any] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    per: Mapping[str, float] = field(default_factory=dict)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per coefficient.

        Columns: coef, se, noise (share of the variance that is privacy noise), t, p, lower, upper, estimable, and for two classes
        odds_ratio, odds_lower, odds_upper, odds_per and event. Odds are those of the event. Odds ratios are for this many units
        of the column more: 1, or a power of ten where the column is in large units. Where the budget does not identify a
        coefficient, estimable is False, coef, t, p and odds_ratio are NaN, and the ends are infinite, or 0 and infinite for odds.
        """
        return imported("pandas").DataFrame(self._columns(), index=self.contrasts.names)

    def __str__(self) -> str:
        """Return the table as text."""
        rows = [self._heads(), *self._rows()]
        first = max(len(row[0]) for row in rows)
        widths = [max(len(row[place]) for row in rows if len(row) > 2) for place in range(1, len(rows[0]))]
        lines = []
        for row in rows:
            if len(row) == 2:
                lines.append(f"{row[0]:<{first}}  {row[1]}")
            else:
                cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True))
                lines.append("  ".join([f"{row[0]:<{first}}", *cells]))
        rule = "-" * max(map(len, lines))
        return "\n".join([self._head(), rule, lines[0], rule, *lines[1:], rule, *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(head)}</th>" for head in self._heads())
        body = []
        for row in self._rows():
            cells = row[1:] if len(row) > 2 else ()
            rest = f'<td colspan="{len(self._heads()) - 1}">{UNKNOWN}</td>' if not cells else ""
            body.append(f"<tr><th>{escape(row[0])}</th>{rest}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        notes = "<br>".join(map(escape, self._notes()))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        return f"<div><p>{escape(self._head())}</p>{table}<p>{notes}</p></div>"

    def _columns(self) -> dict[str, np.ndarray]:
        found = self.contrasts
        columns = {
            "coef": found.estimate,
            "se": found.standard_error,
            "noise": found.noise_share,
            "t": found.statistic,
            "p": found.pvalue,
            "lower": found.lower,
            "upper": found.upper,
        }
        if len(self.classes):
            units = np.array([self.per.get(str(name), 1.0) for name in found.names])
            with np.errstate(over="ignore"):
                ratios = (np.exp(units * ends) for ends in (found.estimate, found.lower, found.upper))
                columns |= dict(zip(ODDS, ratios, strict=True))
            columns |= {"odds_per": units, "event": np.full(len(units), self.classes[1], dtype=object)}
        return {**columns, "estimable": found.estimable}

    def _heads(self) -> tuple[str, ...]:
        tail = (1 - self.level) / 2
        ends = f"[{tail:.4g}", f"{1 - tail:.4g}]"
        return "", "coef", "se", "noise %", "t", "P>|t|", *ends, *(("odds ratio", *ends) if len(self.classes) else ())

    def _rows(self) -> list[tuple[str, ...]]:
        columns = self._columns()
        rows: list[tuple[str, ...]] = []
        for place, name in enumerate(self.contrasts.names):
            cell = {key: values[place] for key, values in columns.items()}
            if not cell["estimable"]:
                rows.append((str(name), UNKNOWN))
                continue
            pvalue = "<.001" if cell["p"] < 0.001 else f"{cell['p']:.3f}"
            shares = f"{100 * cell['noise']:.0f}", f"{cell['t']:.2f}", pvalue
            ends = [f"{cell[key]:.4g}" for key in ("lower", "upper")]
            if len(self.classes):  # those of the intercept are odds
                ends += [f"{cell[key]:.4g}" for key in ODDS] if name != INTERCEPT else [""] * len(ODDS)
            rows.append((str(name), f"{cell['coef']:.4g}", f"{cell['se']:.4g}", *shares, *ends))
        return rows

    def _head(self) -> str:
        persons = " persons" if self.report.budget.unit == "person" else ""
        return (
            f"{self.title}: n = {self.report.n_units}{persons}, epsilon = {self.report.spent.epsilon:.4g}, "
            f"delta = {self.report.spent.delta:.2g}"
        )

    def _notes(self) -> list[str]:
        size = "of any size (robust errors)" if any(line.query == "Meat" for line in self.report.releases) else "of one size"
        levels = ", ".join(f"{name}={level}" for name, level in self.references.items())
        per = ", ".join(f"{unit:,.0f} of {name}" for name, unit in self.per.items())
        return [
            *(
                [f"Odds are those of {self.classes[1]!r} against {self.classes[0]!r}."]
                if len(self.classes)
                else [SKEWED.format(size=size)]
            ),
            *([f"Odds ratios are per {per}, and per unit of other columns."] if per and len(self.classes) else []),
            *([f"Levels of categories are relative to {levels}.", UNLISTED] if levels else []),
            *([] if self.references else ["Coefficients are per unit of the columns as the estimator got them."]),
            WEIGHTED.format(
                means="log-odds" if len(self.classes) else "means",
                ordinary="maximum likelihood" if len(self.classes) else "least squares",
            ),
            "se: sampling and privacy noise. noise %: share of the variance that is privacy noise.",
            "Computed from the releases of the fit: reading it costs nothing.",
        ]


KINDS = ("confidence", "noise")
NOT_INFERRED = "This model was not fitted for inference; expected inference=True, and a new fit."
# Standard deviation of a column, as released, from which odds ratios are for the largest power of ten below it. A choice: effects
# of .1 to 1 per standard deviation of 30 have odds ratios of 1.003 to 1.03 per unit.
LARGE = 30.0
# Largest condition number of the rows of a joint hypothesis. A choice: beyond it they count as dependent.
LARGEST_CONDITION = 1e10
MOST_NAMED = 10  # largest number of coefficients that a warning lists


class IntervalTask(Task):
    """Task of a model with ``inference=True``: its solver, and what its intervals need."""

    def algorithm(self) -> Any:
        """Return the solver, or the one for inference."""
        automatic = isinstance(self.solver, str) and self.solver == "auto"
        return "inference" if automatic and self.inference else self.solver

    def plan_of(self, facts: Facts) -> Plan:
        if self.inference and facts.classes is not None and len(facts.classes) > 2:
            raise ValueError(
                f"inference=True with {len(facts.classes)} classes; expected two, such as one against the others, or "
                "inference=False, whose coefficients have no intervals."
            )
        plan: Plan = super().plan_of(facts)
        return replace(plan, reason="chosen by inference=True") if self.algorithm() is not self.solver else plan

    def check_parameters(self) -> None:
        check_truth("inference", self.inference)
        super().check_parameters()
        if self.inference and not for_inference(self.algorithm()):
            raise ValueError(
                f"inference=True with solver={shown(self.solver)}; expected 'auto', 'inference' or an InferenceDescent."
            )

    def _warn_without_bounds(self) -> None:
        """Raise where `DPRegressor` warns: a target that is moved to an end of a range that it does not keep biases intervals."""
        if for_inference(self.algorithm()):
            raise ValueError(
                "A fit for inference without target_bounds; expected target_bounds=(low, high), from public knowledge, that all "
                "targets keep: y beyond them counts as the nearer end, which would bias confidence intervals."
            )
        super()._warn_without_bounds()  # type: ignore[misc]

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        model = super().model(plan, result, facts)  # type: ignore[safe-super]
        if (inference := result.inference) is not None:
            offset, unit = self.units()
            if plan.scaling is not None:
                inference = replace(inference, geometry=plan.scaling.geometry(inference.geometry))
            model["inference_"] = replace(inference, offset=offset, unit=unit)
        return model


@dataclass(eq=False, repr=False)
class IntervalMixin(PenalizedModel):
    """Add ``inference=True`` to a model: its solver, and intervals of predictions, by post-processing alone.

    Subclasses map tables by ``_interval_rows``.
    """

    _: KW_ONLY
    inference: bool = False

    def predict_interval(self, X: Any, level: float = 0.95) -> np.ndarray:
        """Return a confidence interval for the mean target, or the probability of ``classes_[1]``, of records like each of these.

        The probability is that of the second column of ``predict_proba``, whatever the event is.

        Parameters
        ----------
        X : {rows} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped.
        level : float, default=0.95
            Probability that an interval holds the mean, in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends: for numbers within ``target_bounds_``, for probabilities within [0, 1]. They are the whole range
            where the budget does not identify a prediction.

        Raises
        ------
        AttributeError
            If the model was not fitted for inference.
        """
        self._inferred()
        table, beside = self._interval_rows(X)
        rows = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
        constant = np.full(len(rows), float(self._inferred().geometry.intercept))
        names, of = np.arange(len(rows)).astype(str), "predictions"
        found = self._contrasts(rows, constant, names, level, "confidence", beside, of)
        ends = np.column_stack([found.lower, found.upper])
        return expit(ends) if hasattr(self, "classes_") else np.asarray(self._in_bounds(ends))

    def _inferred(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "inference_"):
            raise AttributeError(NOT_INFERRED)
        return self.inference_

    def _contrasts(
        self,
        rows: np.ndarray,
        constant: np.ndarray,
        names: np.ndarray,
        level: float,
        kind: str,
        beside: Any = 0.0,
        of: str = "combinations of coefficients",
    ) -> Contrasts:
        inference = self._inferred()
        check_number("level", level, above=0.0, below=1.0)
        if kind not in KINDS:
            raise ValueError(f"kind={shown(kind)}; expected one of {list(KINDS)}.")
        found: Contrasts = inference.contrasts(rows, constant, names, float(level), kind, beside)
        if not (unknown := np.count_nonzero(~found.estimable)):
            return found
        without = "their interval is the whole range" if of == "predictions" else "they have no interval, and no p-value"
        spelt = "; spell categories as the cells do" if getattr(getattr(self, "schema_", None), "references", {}) else ""
        separated = " Where columns nearly separate the classes, nothing is identified." if hasattr(self, "classes_") else ""
        hidden = names[~found.estimable].tolist()
        more = f" and {unknown - MOST_NAMED} more" if unknown > MOST_NAMED else ""
        named = "" if of == "predictions" or unknown == len(rows) else f", {hidden[:MOST_NAMED]}{more}"
        warn(
            f"{unknown} of {len(rows)} {of} are not identified at this budget{named}: {without}. Take more records or a larger "
            f"epsilon; leave out rare levels, list a frequent level of a category first, and leave out columns that others "
            f"nearly determine{spelt}. Of indicators of a category that are columns of your own, leave one out, as a schema does."
            f"{separated}",
            LowSignalWarning,
        )
        return found


class InferenceTask(IntervalTask):
    """Task of a linear model with ``inference=True``: categories relative to a level."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if not for_inference(self.algorithm()):
            return
        if isinstance(stated := self.input_schema, TreatmentSchema) and stated.references and not self.fit_intercept:
            raise ValueError("inference=True with categories and fit_intercept=False; expected True, for the reference levels.")
        if all(known is None for known in self.public_rows()):
            raise ValueError(
                "inference=True needs schema, feature_bounds or data_norm, from public knowledge: without them longer rows would "
                "be scaled down, which would bias confidence intervals. Use bounds that all records keep."
            )

    def plan_of(self, facts: Facts) -> Plan:
        if for_inference(self.algorithm()) and facts.feature_names is not None and INTERCEPT in facts.feature_names:
            raise ValueError(f"X has a column {INTERCEPT!r}, as results for inference call the intercept; expected another name.")
        plan = super().plan_of(facts)
        if not isinstance(stated := self.input_schema, TreatmentSchema):
            return plan
        blocks = tuple(places for name, places in stated.blocks() if name in stated.references)
        return replace(plan, problem=replace(plan.problem, extra=replace(plan.problem.extra, blocks=blocks)))

    @cached_property
    def input_schema(self) -> Schema | None:
        """The schema, with treatment coding for inference."""
        schema = self.read_schema
        return schema if schema is None or not for_inference(self.algorithm()) else TreatmentSchema.of(schema)

    def public_rows(self) -> tuple[Any, Any]:
        if isinstance(stated := self.input_schema, TreatmentSchema):
            return stated.row_facts["feature_bounds"], stated.row_facts["data_norm"]
        rows: tuple[Any, Any] = super().public_rows()
        return rows

    def described(self, plan: Plan) -> dict[str, Any]:
        described: dict[str, Any] = super().described(plan)
        if not isinstance(stated := self.input_schema, TreatmentSchema):
            return described
        levels = ", ".join(f"{name}={level}" for name, level in stated.references.items())
        relative = f"; levels of categories are relative to {levels}. {UNLISTED}" if levels else ""
        return {**described, "columns": f"in their units, clipped to the bounds of the schema{relative}"}


class InferenceMixin(IntervalMixin):
    """Adds ``inference=True`` to a linear model: intervals, contrasts, Wald tests and a summary, by post-processing alone.

    Subclasses declare the parameter ``inference``.

    Parameters
    ----------
    inference : bool, default=False
        Whether the fit also releases what confidence intervals and tests need, within the same budget; with a ``schema`` of all
        columns, ``feature_bounds`` or ``data_norm``. `summary`, `confidence_intervals`, `contrast`, `wald_test` and
        `predict_interval` use it. The solver is then "inference", whose coefficients are not shrunk: they predict less well where
        noise is large. A schema leaves numbers in their units, and codes categories relative to their first level.

    Attributes
    ----------
    inference_ : Inference
        The parts of the covariance of the coefficients. Present only after a fit for inference.
    """

    def confidence_intervals(self, level: float = 0.95, kind: str = "confidence") -> Any:
        """Return an interval for each coefficient, the intercept last.

        Parameters
        ----------
        level : float, default=0.95
            Probability that an interval holds its coefficient, in (0, 1).
        kind : {"confidence", "noise"}, default="confidence"
            "confidence" is for the coefficient of the population from which the records come. "noise" is for the coefficient
            that these records would have without privacy noise.

        Returns
        -------
        DataFrame of shape (n_coefficients, 2) or ndarray of the same shape
            Lower and upper ends; infinite where the budget does not identify a coefficient. A DataFrame if pandas is installed.

        Raises
        ------
        AttributeError
            If the model was not fitted for inference.
        ValueError
            If ``level`` or ``kind`` is not valid.
        """
        found = self._of_event(self._contrasts(*self._each(), level, kind, of="coefficients"))
        ends = np.column_stack([found.lower, found.upper])
        return framed(ends, found.names, ["lower", "upper"])

    def contrast(self, L: Any, names: Any = None, *, level: float = 0.95, kind: str = "confidence") -> Contrasts:
        """Return estimates, intervals and tests of linear combinations of the coefficients.

        Parameters
        ----------
        L : array-like of shape (m, n_features) or (m, n_features + 1), or one row of these, or dict, str, or list of either
            Factors of the coefficients; the factor of the intercept is the last of ``n_features + 1``, and else 0. A dict has
            factors by the names of the coefficients (x0, x1, ... for arrays), and "(intercept)". A text is the name of a column
            of the table, and stands for its coefficients: those of all levels but the reference level of a category. The name of
            a coefficient stands for that one, and a list of names for those of all of them.
        names : str, list of str or None, default=None
            Names of the combinations. None takes those of the coefficients that L names as text, and else c0, c1, ...
        level : float, default=0.95
            Probability that an interval holds its combination, in (0, 1).
        kind : {"confidence", "noise"}, default="confidence"
            As in `confidence_intervals`.

        Returns
        -------
        Contrasts
            With the fields estimate, standard_error, df, statistic, pvalue, lower, upper, estimable and noise_share; its method
            ``to_frame()`` returns a DataFrame.

        Raises
        ------
        AttributeError
            If the model was not fitted for inference.
        ValueError
            If the shape of L or of ``names`` does not fit.
        """
        rows, constant = self._combinations(L)
        names = [names] if isinstance(names, str) else names
        given = self._row_names(L, len(rows)) if names is None else np.array([str(name) for name in names])
        if given.shape != (len(rows),):
            raise ValueError(f"There are {given.size} names; expected {len(rows)}, one for each row of L.")
        return self._of_event(self._contrasts(rows, constant, given, level, kind))

    def wald_test(self, L: Any) -> WaldTest:
        """Return the test that all of some linear combinations of the coefficients are 0.

        Parameters
        ----------
        L : array-like of shape (m, n_features) or (m, n_features + 1), or one row of these, or dict, str, or list of either
            Factors of the coefficients, as in `contrast`; the rows are linearly independent. The name of a column tests whether
            this column matters beside the others, and a list of names whether any of these columns does.

        Returns
        -------
        WaldTest
            With the fields statistic, df, pvalue and estimable.

        Raises
        ------
        AttributeError
            If the model was not fitted for inference.
        ValueError
            If the shape of L does not fit, or its rows are linearly dependent.
        """
        rows, constant = self._combinations(L)
        both = np.column_stack([rows, constant])
        both = both / np.maximum(np.abs(both).max(axis=1, keepdims=True), 1e-300)  # the length of a row changes no test
        lengths = np.linalg.norm(both, axis=1, keepdims=True)
        if (lengths == 0).any() or np.linalg.cond(both / np.where(lengths > 0, lengths, 1)) > LARGEST_CONDITION:
            raise ValueError("The rows of L are linearly dependent; expected one row for each independent combination.")
        found: WaldTest = self._inferred().wald(both[:, :-1], both[:, -1])
        if not found.estimable:
            self._contrasts(both[:, :-1], both[:, -1], self._row_names(L, len(both)), 0.95, "confidence")  # warns
        return found

    def _row_names(self, L: Any, n_rows: int) -> np.ndarray:
        of_columns = self._named(L)
        return np.array([f"c{i}" for i in range(n_rows)] if of_columns is None else of_columns)

    def summary(self, level: float = 0.95) -> Summary:
        """Return a table of the coefficients with standard errors, tests and intervals, for print, HTML and data frames.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals, in (0, 1).

        Returns
        -------
        Summary
            ``print(summary)`` shows a text, a notebook a table, and ``summary.to_frame()`` returns a DataFrame.

        Raises
        ------
        AttributeError
            If the model was not fitted for inference.
        """
        return Summary(
            type(self).__name__,
            self._of_event(self._contrasts(*self._each(), level, "confidence", of="coefficients")),
            level,
            self.privacy_report_,
            np.asarray(classes_of(self)).tolist() if hasattr(self, "event_") else (),
            getattr(getattr(self, "schema_", None), "references", {}),
            self._per(),
        )

    def _of_event(self, found: Contrasts) -> Contrasts:
        """Return combinations of coefficients for the log-odds of the event; coefficients are for those of ``classes_[1]``."""
        if (event := getattr(self, "event_", None)) is None:
            return found
        return found.of_event(event, bool(event != self.classes_[1]))

    def _per(self) -> dict[str, float]:
        """Return the units of the odds ratios of coefficients whose columns are in large units: powers of ten, by name."""
        scale = self._inferred().geometry.scale
        spreads = 1 / scale if scale.ndim == 1 else np.linalg.norm(np.linalg.inv(scale), axis=0)
        large = {name: spread for name, spread in zip(self._names(), spreads.tolist(), strict=True) if spread >= LARGE}
        return {name: 10.0 ** math.floor(math.log10(spread)) for name, spread in large.items() if math.isfinite(spread)}

    def _interval_rows(self, X: Any) -> tuple[Any, float]:
        return self._rows_of(X), 0.0

    def _each(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows for each coefficient, the intercept last if there is one."""
        inference, names = self._inferred(), self._names()
        d = len(names)
        rows = np.eye(d + 1)[: d + bool(inference.geometry.intercept)]
        return rows[:, :d], rows[:, d], np.array([*names, INTERCEPT][: len(rows)])

    def _names(self) -> list[str]:
        """Names of the coefficients."""
        return [*map(str, self.feature_names_out_)]

    def _references(self) -> dict[str, str]:
        """Reference level of each coefficient that is relative to one."""
        schema = getattr(self, "schema_", None)
        levels = {} if schema is None else schema.references
        blocks = {} if schema is None else dict(schema.blocks())
        return {name: level for column, level in levels.items() for name in self._names()[blocks[column]]}

    def _combinations(self, L: Any) -> tuple[np.ndarray, np.ndarray]:
        """Factors of the coefficients and of the intercept, checked."""
        self._inferred()
        d = len(self._names())
        named = self._by_name(L)
        try:
            given = np.atleast_2d(np.asarray(named, dtype=np.float64))
        except (TypeError, ValueError):
            raise TypeError(
                f"L={shown(L)}; expected numbers, the name of a column, a list of names, or dicts of factors by name."
            ) from None
        if given.ndim != 2 or given.shape[1] not in (d, d + 1) or not len(given):
            raise ValueError(f"L has shape {np.shape(L)}; expected (m, {d}), or (m, {d + 1}) with factors of the intercept.")
        if not np.isfinite(given).all():
            raise ValueError("L has entries that are not finite; expected numbers.")
        constant = given[:, d] if given.shape[1] > d else np.zeros(len(given))
        if constant.any() and not self._inferred().geometry.intercept:
            raise ValueError("L has factors of the intercept, but the model has none.")
        return given[:, :d], constant

    def _by_name(self, L: Any) -> Any:
        """Rows of factors, from dicts of them, or from the name of a column of the table."""
        names = [*self._names(), INTERCEPT]
        if (chosen := self._named(L)) is not None:
            return np.eye(len(names))[[names.index(name) for name in chosen]]
        if hasattr(L, "to_dict") and np.ndim(L) == 1 and all(isinstance(name, str) for name in L.index):
            L = L.to_dict()  # a Series of factors by name
        given = [L] if isinstance(L, Mapping) else L
        if not (isinstance(given, (list, tuple)) and given and all(isinstance(row, Mapping) for row in given)):
            return L
        if not all(given):
            raise ValueError(f"L={shown(L)}; expected dicts with the factor of at least one of {names}.")
        if unknown := sorted({str(name) for row in given for name in row} - set(names)):
            hints = "".join(dict.fromkeys(map(self._hint, unknown)))
            raise ValueError(f"L names {unknown}; expected some of {names}.{hints}")
        if text := {str(name): factor for row in given for name, factor in row.items() if isinstance(factor, str)}:
            raise TypeError(f"L has the factors {text}, which are text; expected numbers.")
        return [[row.get(name, 0.0) for name in names] for row in given]

    def _named(self, L: Any) -> list[str] | None:
        """Names of the coefficients that a text or a list of texts stands for; None for anything else."""
        if isinstance(L, str):
            return self._coefficients_of(L)
        if isinstance(L, (list, tuple)) and L and all(isinstance(name, str) for name in L):
            return [one for name in L for one in self._coefficients_of(name)]
        return None

    def _coefficients_of(self, name: str) -> list[str]:
        """Names of the coefficients of a column of the table, or of the one with this name."""
        schema, names = getattr(self, "schema_", None), self._names()
        found = {one: [one] for one in (*names, INTERCEPT)}
        columns = found if schema is None else {column: names[place] for column, place in schema.blocks()}
        if name not in (found := found | columns):
            beside = "" if schema is None else f", or a coefficient, one of {[*names, INTERCEPT]}"
            hint = self._hint(name)
            raise ValueError(f"L={name!r} is no column; expected one of {list(columns)}{beside}, or factors of these.{hint}")
        return found[name]

    def _hint(self, name: str) -> str:
        """Say what a name is that is not one of a coefficient."""
        if (schema := getattr(self, "schema_", None)) is None:
            return ""
        for column, _ in schema.blocks():
            level = schema.references.get(column)
            if name in (column, f"{column}_{level}"):
                relative = "" if level is None else f", relative to {level!r}, which has none"
                return f" The coefficients of {column!r} are {self._coefficients_of(column)}{relative}."
        return ""


def framed(values: np.ndarray, index: np.ndarray, columns: list[str]) -> Any:
    """Return a DataFrame if pandas is installed, else the array."""
    try:
        return imported("pandas").DataFrame(values, index=index, columns=columns)
    except ImportError:
        return values


def for_inference(solver: Any) -> bool:
    """Return whether a solver, by name or as an object, is that for inference."""
    return isinstance(solver, InferenceDescent) or (isinstance(solver, str) and solver == InferenceDescent.name)
