"""Release single numbers of a column."""

import math
from typing import Any

from scipy.special import ndtri

from skdp._validation import check_level, shown
from skdp.privacy.errors import silently
from skdp.privacy.queries import ClippedMoments, WeightedMoments
from skdp.privacy.queries.clipped_moments import UNIT
from skdp.stats._plan import Statement, StatisticsPlan, as_text, budget_of
from skdp.stats._reading import reading
from skdp.stats._statistic import Statistic


@silently
def mean(
    x: Any,
    *,
    epsilon: float,
    bounds: Any,
    column: str | None = None,
    adjacency: str = "replace_one",
    confidence: float = 0.95,
    persons: Any = None,
    sample_weight: Any = None,
    max_sample_weight: float | None = None,
    random_state: Any = None,
) -> Statistic:
    """Release the mean of a column, clipped to bounds."""
    check_level(confidence, "confidence")
    low, high = checked_bounds(bounds)
    columns = None if column is None else (column,)
    weights = {"sample_weight": sample_weight, "max_sample_weight": max_sample_weight}
    with reading(x, columns, persons=persons, **weights) as table:
        del x, persons, weights, sample_weight
        budget = budget_of(table, epsilon, 0.0, adjacency)
        query = (WeightedMoments if table.weighted else ClippedMoments)(low, high)
        statement = Statement("mean", "sums", "the only one", as_text({"bounds": (low, high), "column": column}))
        plan = StatisticsPlan.of_queries([query], [1.0], True, budget, n_samples=table.n_samples, statement=statement)
        (total, _, counted), report = plan.run(table, lambda ask: ask(query) / UNIT, random_state)
        n, half, noise = table.n_samples, (high - low) / 2, plan.stds[0] / UNIT
        value = total / max(counted if table.weighted else n - counted, 1)
        std = half * noise / n
        half_width = float(-ndtri((1 - confidence) / 2)) * math.hypot(std, half / math.sqrt(n))
        value = float(low + half * (1 + min(max(value, -1.0), 1.0)))
        return Statistic("mean", value, (value - half_width, value + half_width), confidence, std, report)


def checked_bounds(bounds: Any, name: str = "bounds") -> tuple[float, float]:
    """Return public bounds; raise TypeError or ValueError for others."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={shown(bounds)}; expected (low, high) from public knowledge, or None to learn them.") from None
    if not (-1e50 <= low < high <= 1e50 and high / 2 - low / 2 > 0):
        raise ValueError(f"{name}={shown(bounds)}; expected low < high, numbers up to 1e50.")
    return low, high
