"""Hold the description of a table, print it, and draw it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from skdp._files._suffixes import imported
from skdp._plots import pyplot
from skdp.preprocessing._schema import Schema
from skdp.privacy.queries.haar_counts import LEAVES
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent
from skdp.stats._distribution import Distribution
from skdp.stats._limited import Estimate
from skdp.stats._statistic import short

BARS = 24  # of the picture of a column of numbers. A choice: they fit beside a line of text
SHOWN = 0.005  # share of the cells beyond the picture at either end; a choice, so that tails leave room for the others
MOST_ROWS = 12  # categories in a picture
NOT_DETERMINED = "not determined"


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
    """

    distribution: Distribution
    known: bool
    limits: tuple[float, float]
    mean: Estimate
    std: Estimate
    quantiles: dict[float, Estimate]

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value that a cell may have."""
        return float(self.distribution.edges[0]), float(self.distribution.edges[-1])

    @property
    def clipped(self) -> bool:
        """Whether mean and deviation are of clipped values: the limits are no bounds that the user stated."""
        return not self.known or self.limits != self.bounds

    def rows(self) -> Iterator[tuple[str, str, Estimate]]:
        """Yield the row of each statistic in a table, its whole name, and its estimate."""
        yield "count", "count", self.count
        yield "missing", "share missing", self.missing
        low, high = self.limits
        row, name = (" of clipped values", f" of values clipped to [{low:.6g}, {high:.6g}]") if self.clipped else ("", "")
        yield f"mean{row}", f"mean{name}", self.mean
        yield f"std{row}", f"std{name}", self.std
        for level, found in self.quantiles.items():
            yield f"{100 * level:.6g}%", f"quantile {level:g}", found

    def bars(self, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ends of bins, the share of the records in each, and half the length of its interval."""
        low, high = (self.distribution.quantile(q) for q in (SHOWN, 1 - SHOWN))
        if low == high:
            low, high = low - 0.5, high + 0.5
        whole = high - low < BARS and float(low).is_integer() and float(high).is_integer()
        ends = np.arange(low - 0.5, high + 1) if whole else np.linspace(low, high, BARS + 1)
        starts, stops = self.distribution.ends
        lengths = np.where(stops > starts, stops - starts, 1.0)
        found = []
        for first, last in zip(ends[:-1], ends[1:], strict=True):
            inside = np.clip(np.minimum(stops, last) - np.maximum(starts, first), 0, None) / lengths
            atoms = (starts == stops) & (starts >= first) & ((starts < last) | (last == ends[-1]) & (starts <= last))
            chosen = np.zeros(LEAVES)
            chosen[: starts.size] = np.where(starts == stops, atoms, inside)
            found.append(self.distribution.share(chosen, z))
        shares, halves = np.array(found).T
        return ends, shares, halves


@dataclass(frozen=True, eq=False)
class DescribedCategory(DescribedColumn):
    """Hold what was released of a category.

    Parameters
    ----------
    shares : dict
        The share of the records in each category, by its name.
    """

    shares: dict[str, Estimate]


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
        return self._frame(lambda found: found.value)

    @property
    def intervals(self) -> Any:
        """Value and interval of each statistic under its whole name, a DataFrame by column and statistic."""
        rows = [(column.name, name, found) for column in self.numbers for _, name, found in column.rows()]
        return _by_pairs(rows, ("column", "statistic"))

    @property
    def categories(self) -> Any:
        """Shares of the records with their intervals, a DataFrame by column and category."""
        rows = [(column.name, name, found) for column, name, found in self._shares()]
        return _by_pairs(rows, ("column", "category"))

    @property
    def limits(self) -> Any:
        """Bounds of the columns of numbers, who chose them, and the limits of mean and deviation, a DataFrame by column."""
        rows = {
            column.name: {
                "low": column.limits[0],
                "high": column.limits[1],
                "lower bound": column.bounds[0],
                "upper bound": column.bounds[1],
                "bounds": "stated" if column.known else "learned",
            }
            for column in self.numbers
        }
        return imported("pandas").DataFrame.from_dict(rows, orient="index")

    def __str__(self) -> str:
        """Return the statistics as text, what is clipped, the categories, and the guarantee."""
        parts = [f"{self.confidence:.0%} intervals for noise and sampling are in .intervals and .categories"]
        if self.numbers:
            parts.append(self._frame(_short, "").to_string())
        if clipped := [f"{column.name} to [{low:.6g}, {high:.6g}]" for column, (low, high) in self._clipped()]:
            parts.append(f"Clipped for mean and std: {', '.join(clipped)}")
        for column in self.columns:
            if isinstance(column, DescribedCategory):
                parts.append(f"{column.name}: " + ", ".join(f"{name} {_short(found)}" for name, found in _all_shares(column)))
        return "\n\n".join([*parts, self.privacy_report.summary])

    def __repr__(self) -> str:
        """Return the text of `print`."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return a line for each column, with a small picture and intervals, for notebooks."""
        heads = list(dict.fromkeys(row for column in self.numbers for row, _, _ in column.rows()))
        lines = [
            _line(column.name, self._picture(column), {row: (name, found) for row, name, found in column.rows()}, heads)
            for column in self.numbers
        ]
        parts = [_table(["column", "", *heads], lines)] if lines else []
        shares = [
            f"<tr>{_cell(escape(column.name) if first else '', 'th')}{_cell(escape(name))}{_cell(_bar(found))}"
            f"{_cell(_with_interval(found))}</tr>"
            for column in self.columns
            if isinstance(column, DescribedCategory)
            for first, (name, found) in zip([True, *[False] * len(column.shares)], _all_shares(column), strict=True)
        ]
        parts += [_table(["column", "category", "", "share"], shares)] if shares else []
        clipped = [f"{column.name} to [{low:.6g}, {high:.6g}]" for column, (low, high) in self._clipped()]
        parts += [f"<p>Clipped for mean and std: {escape(', '.join(clipped))}.</p>"] if clipped else []
        note = f"{self.confidence:.0%} intervals are for noise and sampling. {self.privacy_report.summary}"
        return f'<div style="color:inherit;overflow-x:auto">{"".join(parts)}<p>{escape(note)}</p></div>'

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
                ends, shares, halves = column.bars(self.z)
                ax.stairs(shares, ends, fill=True, alpha=0.6)
                ax.stairs(shares + halves, ends, baseline=np.maximum(shares - halves, 0), fill=True, color="black", alpha=0.2)
                ax.set_ylim(bottom=0)
            elif isinstance(column, DescribedCategory):
                found = [*_all_shares(column)][:MOST_ROWS]
                values = [one.value for _, one in found]
                sides = [[one.value - one.low for _, one in found], [one.high - one.value for _, one in found]]
                ax.barh([name for name, _ in found], values, xerr=sides, alpha=0.6, error_kw={"linewidth": 1})
                ax.invert_yaxis()
                ax.set_xlim(left=0)
        return figure

    def _clipped(self) -> list[tuple[DescribedNumbers, tuple[float, float]]]:
        return [(column, column.limits) for column in self.numbers if column.clipped]

    def _shares(self) -> Iterator[tuple[DescribedCategory, str, Estimate]]:
        for column in self.columns:
            if isinstance(column, DescribedCategory):
                yield from ((column, name, found) for name, found in _all_shares(column))

    def _frame(self, cell: Any, empty: Any = math.nan) -> Any:
        cells = {column.name: {row: cell(found) for row, _, found in column.rows()} for column in self.numbers}
        rows = [*dict.fromkeys(row for column in self.numbers for row, _, _ in column.rows())]
        # mean and std of some columns are of clipped values: these rows stand together
        rows.sort(key=lambda row: ("count", "missing", "mean", "mean of clipped values", "std", "std of clipped values").index(row) if "%" not in row else 9)
        return imported("pandas").DataFrame(cells, index=rows).fillna(empty)

    def _picture(self, column: DescribedNumbers) -> str:
        _, shares, halves = column.bars(self.z)
        if not np.isfinite(shares).all():
            return ""
        top, width = max(float((shares + halves).max()), 1e-9), 5
        bars = "".join(
            f'<rect x="{width * place}" y="{30 * (1 - share / top):.1f}" width="{width - 1}" height="{30 * share / top:.1f}"/>'
            f'<line x1="{width * place + 2}" x2="{width * place + 2}" y1="{30 * (1 - (share + half) / top):.1f}" '
            f'y2="{30 * (1 - max(share - half, 0) / top):.1f}" stroke="currentColor" stroke-opacity=".6"/>'
            for place, (share, half) in enumerate(zip(shares, halves, strict=True))
        )
        return f'<svg width="{width * len(shares)}" height="30" fill="#4c78a8" role="img" aria-label="histogram">{bars}</svg>'
