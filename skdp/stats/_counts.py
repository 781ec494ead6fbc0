"""Release counts."""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._validation import check_level
from skdp.privacy.errors import silently
from skdp.privacy.queries import SingleCount
from skdp.stats._plan import Statement, StatisticsPlan, as_text, budget_of
from skdp.stats._reading import reading
from skdp.stats._statistic import Statistic


@silently
def count(
    x: Any,
    *,
    epsilon: float,
    column: str | None = None,
    adjacency: str = "replace_one",
    confidence: float = 0.95,
    persons: Any = None,
    sample_weight: Any = None,
    max_sample_weight: float | None = None,
    random_state: Any = None,
) -> Statistic:
    """Release the number of cells of a column that are not missing."""
    check_level(confidence, "confidence")
    columns = None if column is None else (column,)
    weights = {"sample_weight": sample_weight, "max_sample_weight": max_sample_weight}
    with reading(x, columns, persons=persons, **weights) as table:
        del x, persons, weights, sample_weight
        budget = budget_of(table, epsilon, 0.0, adjacency)
        query = SingleCount((0,), (absent,), (1,), table.weighted)
        statement = Statement("count", "a count", "the only one", as_text({"column": column}))
        plan = StatisticsPlan.of_queries([query], [1.0], True, budget, n_samples=table.n_samples, statement=statement)
        found, report = plan.run(table, lambda ask: ask(query)[0] / query.unit, random_state)
        factor, std = table.max_sample_weight or 1.0, plan.stds[0] / query.unit
        half_width = float(-ndtri((1 - confidence) / 2)) * math.hypot(std, math.sqrt(table.n_samples) / 2)
        value, low, high = (float(factor * max(number, 0.0)) for number in (found, found - half_width, found + half_width))
        return Statistic("count", value, (low, high), confidence, factor * std, report)


def absent(cells: np.ndarray) -> np.ndarray:
    """Return 0 for cells that are present, and 1 for missing ones."""
    return np.isnan(cells).astype(np.intp)
