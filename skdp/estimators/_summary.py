"""Shows the coefficients of a model with standard errors, tests and intervals, as text, HTML and data frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from skdp._files._suffixes import imported
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import Contrasts

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
