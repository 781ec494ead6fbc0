"""Hold the description of a table, print it, and draw it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from skdp._files._suffixes import imported
from skdp._plots import draw_bins, pyplot
from skdp.preprocessing._schema import Schema
from skdp.privacy.queries.haar_counts import LEAVES
from skdp.privacy.report._html import PAGE, as_fragment
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent
from skdp.stats._distribution import Distribution
from skdp.stats._estimate import Estimate
from skdp.stats._statistic import short

BARS = 24  # of the picture of a column of numbers. A choice: they fit beside a line of text
SHOWN = 0.005  # share of the cells beyond the picture at either end; a choice, so that tails leave room for the others
HEIGHT = 30  # of a small picture, in pixels
MOST_ROWS = 12  # categories in a picture
FIRST_ROWS = ("count", "missing", "share true", "mean", "mean of clipped values", "std", "std of clipped values")
DAY, FURTHEST_DATE = 86400.0, 2.5e11  # seconds: of a day; and from 1970 to a year of four digits, beyond which numbers are shown
NOT_DETERMINED = "not determined"
LINE = "1px solid rgba(128,128,128,.4)"  # grey lines and inherited colours are readable on light and dark pages
CELL = f"text-align:left;vertical-align:top;padding:.3em .8em .3em 0;border-bottom:{LINE};white-space:nowrap"


@dataclass(frozen=True, eq=False)
class DescribedColumn:
    """Hold what was released of a column.

    Parameters
    ----------
    name : str
        The column.
    count : Estimate
        Number of cells that are there, or their total weight.
    missing : Estimate
        Share of missing cells.
    """

    name: str
    count: Estimate
    missing: Estimate

    def text(self, row: str, number: float, found: Estimate) -> str:
        """Return a number of a row as text, with the digits that the interval of its estimate supports."""
        return short(number, found.high - found.low)


@dataclass(frozen=True, eq=False)
class DescribedNumbers(DescribedColumn):
    """Hold what was released of a column of numbers.

    Parameters
    ----------
    distribution : Distribution
        How the cells are distributed between the bounds.
    known : bool
        Whether the bounds were stated, not learned.
    limits : tuple of float
        Values beyond these count as the nearer one in the mean and the deviation.
    mean, std : Estimate
        Of the values clipped to the limits.
    quantiles : dict
        An `Estimate` of each, by its level.
    dates : bool
        Whether the numbers are moments, in seconds since 1970.
    truths : bool, default=False
        Whether the cells are true or false, of which the mean is the share of true ones.
    """

    distribution: Distribution
    known: bool
    limits: tuple[float, float]
    mean: Estimate
    std: Estimate
    quantiles: dict[float, Estimate]
    dates: bool
    truths: bool = False

    def text(self, row: str, number: float, found: Estimate) -> str:
        """Return a number of a row as text: moments as dates, their deviation in days."""
        if not self.dates or row in ("count", "missing") or not abs(number) < FURTHEST_DATE:
            return super().text(row, number, found)
        if row.startswith("std"):
            return f"{short(number / DAY, (found.high - found.low) / DAY)} days"
        return _moment(number, "D" if found.high - found.low > DAY else "m")

    @property
    def limits_in_words(self) -> str:
        """The limits as text."""
        shown = [_moment(end, "D") if self.dates and abs(end) < FURTHEST_DATE else f"{end:.6g}" for end in self.limits]
        return f"[{', '.join(shown)}]"

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value that a cell may have."""
        return self.distribution.bounds

    @property
    def clipped(self) -> bool:
        """Whether mean and deviation are of clipped values: the limits are no bounds that the user stated."""
        return not self.known or self.limits != self.bounds

    def rows(self) -> Iterator[tuple[str, str, Estimate]]:
        """Yield the row of each statistic in a table, its whole name, and its estimate."""
        yield "count", "count", self.count
        yield "missing", "share missing", self.missing
        if self.truths:
            yield "share true", "share true of those that are there", self.mean
            return
        row, name = (" of clipped values", f" of values clipped to {self.limits_in_words}") if self.clipped else ("", "")
        yield f"mean{row}", f"mean{name}", self.mean
        yield f"std{row}", f"std{name}", self.std
        for level, found in self.quantiles.items():
            yield f"{100 * level:.6g}%", f"quantile {level:g}", found

    def bars(self, z: float) -> tuple[np.ndarray, list[Estimate]]:
        """Return the ends of the bins of a picture, and the share of the records in each."""
        low, high = (self.distribution.quantile(q) for q in (SHOWN, 1 - SHOWN))
        if low == high:
            low, high = low - 0.5, high + 0.5
        if self.distribution.whole:  # each bin has as many integers as the others
            low, high = math.floor(low), math.ceil(high)
            width = math.ceil((high - low + 1) / BARS)
            ends = np.arange(low - 0.5, high + width, width)
        else:
            ends = np.linspace(low, high, BARS + 1)
        starts, stops = self.distribution.ends
        lengths = np.where(stops > starts, stops - starts, 1.0)
        found = []
        for first, last in pairwise(ends):
            inside = np.clip(np.minimum(stops, last) - np.maximum(starts, first), 0, None) / lengths
            atoms = (starts == stops) & (starts >= first) & ((starts < last) | (last == ends[-1]) & (starts <= last))
            chosen = np.zeros(LEAVES)
            chosen[: starts.size] = np.where(starts == stops, atoms, inside)
            found.append(self.distribution.share(chosen, z))
        return ends, found


@dataclass(frozen=True, eq=False)
class DescribedCategory(DescribedColumn):
    """Hold what was released of a category.

    Parameters
    ----------
    shares : dict
        The share of the records in each category, by its name.
    """

    shares: dict[str, Estimate]

    def all_shares(self) -> Iterator[tuple[str, Estimate]]:
        """Yield the categories and their shares, the most frequent one first, and then missing cells."""
        rest = {"other", "(numbers)", "(other)"}
        yield from sorted(self.shares.items(), key=lambda item: (item[0] in rest, -item[1].value))
        yield "(missing)", self.missing


@dataclass(frozen=True, eq=False)
class Description:
    """Hold the description of a table, which may be published; it prints like ``DataFrame.describe``.

    Parameters
    ----------
    columns : tuple of DescribedColumn
        What was released, in the order of the table.
    confidence : float
        Coverage of each interval, which is for the noise and for the sampling of the records.
    z : float
        Half the length of an interval in standard deviations.
    schema : Schema
        Bounds and categories of all columns, for an estimator that then learns nothing of them.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.
    """

    columns: tuple[DescribedColumn, ...]
    confidence: float
    z: float
    schema: Schema
    privacy_report: PrivacyReport

    @property
    def privacy_spent(self) -> PrivacySpent:
        """Spent epsilon and delta."""
        return self.privacy_report.spent

    @cached_property
    def numbers(self) -> tuple[DescribedNumbers, ...]:
        """The columns of numbers."""
        return tuple(column for column in self.columns if isinstance(column, DescribedNumbers))

    @property
    def table(self) -> Any:
        """The statistics of the columns of numbers, a DataFrame like that of ``DataFrame.describe``; NaN if not determined."""
        return self._frame(lambda column, row, found: found.value)

    @property
    def intervals(self) -> Any:
        """Value and interval of each statistic under its whole name, a DataFrame by column and statistic."""
        rows = [(column.name, name, found) for column in self.numbers for _, name, found in column.rows()]
        return _by_pairs(rows, ("column", "statistic"))

    @property
    def categories(self) -> Any:
        """Shares of the records with their intervals, a DataFrame by column and category."""
        return _by_pairs([(column.name, name, found) for column, name, found in self._shares()], ("column", "category"))

    @property
    def limits(self) -> Any:
        """Bounds of the columns of numbers, who chose them, and the limits of mean and deviation, a DataFrame by column."""
        rows = {
            column.name: {
                "low": column.limits[0],
                "high": column.limits[1],
                "lower bound": column.bounds[0],
                "upper bound": column.bounds[1],
                "bounds": "type" if column.truths else "stated" if column.known else "learned",
            }
            for column in self.numbers
        }
        return imported("pandas").DataFrame.from_dict(rows, orient="index")

    def __str__(self) -> str:
        """Return the statistics as text, what is clipped, the categories, and the guarantee."""
        parts = [f"{self.confidence:.0%} intervals for noise and sampling are in .intervals and .categories"]
        if self.numbers:
            parts.append(self._frame(_short, "").to_string())
        parts += [self._of_clipping] if self._of_clipping else []
        for column in self.columns:
            if isinstance(column, DescribedCategory):
                parts.append(
                    f"{column.name}: " + ", ".join(f"{name} {_short(column, '', one)}" for name, one in column.all_shares())
                )
        return "\n\n".join([*parts, self.privacy_report.summary])

    def __repr__(self) -> str:
        """Return the text of `print`."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return a line for each column, with a small picture and intervals, for notebooks."""
        lines = []
        for column in self.numbers:
            found = {row: one for row, _, one in column.rows()}
            cells = [_with_interval(column, row, found[row]) if row in found else "" for row in self._heads]
            lines.append([escape(column.name), self._picture(column), *cells])
        parts = [_html_table(["column", "", *self._heads], lines)] if lines else []
        shares, last = [], ""
        for category, name, one in self._shares():
            named = "" if category.name == last else escape(category.name)
            shares.append([named, escape(name), _bar(one), _with_interval(category, "", one).replace("<br>", " ")])
            last = category.name
        parts += [_html_table(["column", "category", "", "share"], shares)] if shares else []
        parts += [f"<p>{escape(self._of_clipping)}.</p>"] if self._of_clipping else []
        note = f"{self.confidence:.0%} intervals are for noise and sampling. {self.privacy_report.summary}"
        return f'<div style="color:inherit;overflow-x:auto">{"".join(parts)}<p>{escape(note)}</p></div>'

    def to_html(self) -> str:
        """Return the description and its privacy report as an HTML page.

        Returns
        -------
        str
            A complete HTML document, which loads nothing from elsewhere.
        """
        content = (
            '<section class="skdp-report" style="max-width: none"><h1>Description of a table</h1>'
            f"{self._repr_html_()}</section>\n{as_fragment(self.privacy_report)}"
        )
        return PAGE.format(title="Description of a table", fragment=content)

    def plot(self) -> Any:
        """Draw a small picture of each column, with bands for noise and sampling.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        plt = pyplot()
        n_rows = math.ceil(len(self.columns) / 3)
        figure, axes = plt.subplots(n_rows, 3, figsize=(9, 2.2 * n_rows), layout="constrained", squeeze=False)
        for ax in axes.flat[len(self.columns) :]:
            ax.set_axis_off()
        for ax, column in zip(axes.flat, self.columns, strict=False):
            ax.set_title(column.name, fontsize=10)
            ax.tick_params(labelsize=8)
            if isinstance(column, DescribedNumbers):
                ends, found = column.bars(self.z)
                draw_bins(ax, ends, *zip(*((one.value, one.low, one.high) for one in found), strict=True))
            elif isinstance(column, DescribedCategory):
                shares = dict([*column.all_shares()][:MOST_ROWS])
                values = [one.value for one in shares.values()]
                sides = np.abs([[value - one.low, one.high - value] for value, one in zip(values, shares.values(), strict=True)])
                ax.barh([*shares], values, xerr=sides.T, alpha=0.6, error_kw={"linewidth": 1})
                ax.invert_yaxis()
                ax.set_xlim(left=0)
        return figure

    @property
    def _of_clipping(self) -> str:
        """Limits of the columns whose mean and deviation are of clipped values, as text; empty without any."""
        named = ", ".join(f"{column.name} to {column.limits_in_words}" for column in self.numbers if column.clipped)
        return f"Values are clipped for mean and std: {named}" if named else ""

    def _shares(self) -> Iterator[tuple[DescribedCategory, str, Estimate]]:
        for column in self.columns:
            if isinstance(column, DescribedCategory):
                yield from ((column, name, found) for name, found in column.all_shares())

    def _frame(self, cell: Any, empty: Any = math.nan) -> Any:
        cells = {column.name: {row: cell(column, row, found) for row, _, found in column.rows()} for column in self.numbers}
        return imported("pandas").DataFrame(cells, index=self._heads).fillna(empty)

    @property
    def _heads(self) -> list[str]:
        """Rows of the table; those of clipped values stand beside those of all."""
        rows = dict.fromkeys(row for column in self.numbers for row, _, _ in column.rows())
        return [*(row for row in FIRST_ROWS if row in rows), *(row for row in rows if row not in FIRST_ROWS)]

    def _picture(self, column: DescribedNumbers) -> str:
        _, found = column.bars(self.z)
        if not all(one.determined for one in found):
            return ""
        unit, width = HEIGHT / max(one.high for one in found), 5
        bars = "".join(
            f'<rect x="{width * place}" y="{HEIGHT - unit * one.value:.1f}" width="{width - 1}" height="{unit * one.value:.1f}"/>'
            f'<path d="M{width * place + 2} {HEIGHT - unit * one.low:.1f}V{HEIGHT - unit * one.high:.1f}" stroke="currentColor"/>'
            for place, one in enumerate(found)
        )
        return (
            f'<svg width="{width * len(found)}" height="{HEIGHT}" fill="#4c78a8" role="img" aria-label="histogram">{bars}</svg>'
        )


def _moment(seconds: float, unit: str) -> str:
    return str(np.datetime64(round(seconds), "s").astype(f"M8[{unit}]")).replace("T", " ")


def _short(column: DescribedColumn, row: str, found: Estimate) -> str:
    """Return an estimate as text, with the digits that its interval supports."""
    return column.text(row, found.value, found) if found.determined else NOT_DETERMINED


def _with_interval(column: DescribedColumn, row: str, found: Estimate) -> str:
    if not found.determined:
        return NOT_DETERMINED
    value, low, high = (column.text(row, number, found) for number in (found.value, found.low, found.high))
    return f"{value}<br><small>{low} to {high}</small>"


def _bar(found: Estimate) -> str:
    width = 120 * found.value if found.determined else 0.0
    return (
        f'<svg width="120" height="12" fill="#4c78a8" role="img" aria-label="share"><rect width="{width:.1f}" height="12"/></svg>'
    )


def _html_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return rows of HTML as a table with a heading."""
    head = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in line) + "</tr>" for line in lines)
    style = "border-collapse:collapse;border:0;font:inherit;color:inherit;background:transparent;width:auto;margin:1em 0"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _by_pairs(rows: Sequence[tuple[str, str, Estimate]], names: tuple[str, str]) -> Any:
    pandas = imported("pandas")
    index = pandas.MultiIndex.from_tuples([row[:2] for row in rows], names=names)
    return pandas.DataFrame([(one.value, one.low, one.high) for *_, one in rows], index=index, columns=["value", "low", "high"])
