"""Check public bounds of columns, and learn those of others from two histograms, with nothing cut that shows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skdp._validation import LARGEST, shown
from skdp.preprocessing._fine_rule import refine
from skdp.preprocessing._octave_rule import place_octaves
from skdp.privacy.queries import JointHistogram, Query
from skdp.privacy.queries.column_histograms import EVEN_BINS, NUMBER_BINS, FineBins, octave_bins
from skdp.stats._plan import Ask, StatisticsPlan

Pair = tuple[float, float]

# Shares of epsilon of the two histograms of all columns from which bounds are learned: by octave, then in even bins. A choice.
LEARNING = (0.15, 0.1)
# Laplace noise has longer tails than the Gaussian noise for which the rules have their limits: a count is beyond LONGER times 3.7
# standard deviations as rarely as a Gaussian one is beyond 3.7, and nearly so at 4.5.
LONGER = 1.7
# Count beyond which an octave shows, in standard deviations, and the share of the records that it is from which on a warning says
# that bounds may not be found. With n = 5000 and five made-up columns, 30 fits each, they held .75 of the records and more at a
# share of .3, and none at all in some fits at .5.
SEEN, HARDLY_SEEN = 3.7, 0.3


@dataclass(frozen=True)
class Bounds:
    """Hold public bounds of columns, and learn the others by the rule of targets.

    Parameters
    ----------
    given : tuple of (tuple of float or None)
        Bounds of each column; None to learn them.
    weighted : bool, default=False
        Whether records have weights, or rows are of persons.
    """

    given: tuple[Pair | None, ...]
    weighted: bool = False

    @cached_property
    def unknown(self) -> list[int]:
        """Numbers of the columns whose bounds are learned."""
        return [column for column, pair in enumerate(self.given) if pair is None]

    @cached_property
    def share(self) -> float:
        """Share of epsilon that learning spends."""
        return sum(LEARNING) if self.unknown else 0.0

    @property
    def queries(self) -> list[tuple[Query, float]]:
        """Queries of the releases, which come first, with their shares: two for each column."""
        pairs = [(self._octaves(column), self._fine(column, -1.0, 1.0)) for column in self.unknown]
        return [(query, share / len(pairs)) for pair in pairs for query, share in zip(pair, LEARNING, strict=True)]

    @property
    def in_words(self) -> str:
        """What learning spends, for the report."""
        return f", and {self.share:.0%} of epsilon for histograms from which bounds are learned" if self.unknown else ""

    def hidden(self, plan: StatisticsPlan) -> str | None:
        """Return what noise is likely to hide, as the end of a sentence, if bounds are learned and may not be found."""
        if not self.unknown or not plan.budget.private:
            return None
        seen = SEEN * LONGER * plan.stds[0] / self.queries[0][0].unit  # type: ignore[attr-defined]
        return "the bounds, which are learned, and so the result" if seen > HARDLY_SEEN * plan.n_samples else None

    def learned(self, ask: Ask, plan: StatisticsPlan) -> list[Pair]:
        """Ask for the histograms; return the bounds of all columns."""
        places = {column: 2 * place for place, column in enumerate(self.unknown)}
        return [self._learned(ask, plan, n, places[n]) if pair is None else pair for n, pair in enumerate(self.given)]

    def _learned(self, ask: Ask, plan: StatisticsPlan, column: int, place: int) -> Pair:
        def shares(query: JointHistogram, release: int) -> tuple[np.ndarray, float]:
            scale = query.unit * plan.n_samples
            return ask(query) / scale, LONGER * plan.stds[release] / scale

        finding = place_octaves(*shares(self._octaves(column), place), target=True)
        low, high = finding.number().bounds
        finer = refine(finding, *shares(self._fine(column, low, high), place + 1), target=True)
        return finer.number().bounds if finding.narrows else (low, high)

    def _octaves(self, column: int) -> JointHistogram:
        return JointHistogram((column,), (octave_bins,), (NUMBER_BINS,), self.weighted)

    def _fine(self, column: int, low: float, high: float) -> JointHistogram:
        return JointHistogram((column,), (FineBins(low, high, np.zeros(0)),), (EVEN_BINS,), self.weighted)


def checked_bounds(bounds: Any, name: str = "bounds") -> Pair | None:
    """Return public bounds, or None to learn them; raise TypeError or ValueError for others."""
    if bounds is None:
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}={shown(bounds)}; expected two numbers (low, high) from public knowledge, or None to learn them."
        ) from None
    if not (-LARGEST <= low < high <= LARGEST and high / 2 - low / 2 > 0):
        raise ValueError(f"{name}={shown(bounds)}; expected low < high, numbers up to {LARGEST:g}.")
    return low, high
