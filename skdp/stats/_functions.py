"""Release statistics of a column as functions in NumPy's manner."""

from typing import Any

from skdp.stats import _numbers
from skdp.stats._statistic import Statistic


def mean(x: Any, **given: Any) -> Statistic:
    return _numbers.released(_numbers.Mean, x, **given)


def sum(x: Any, **given: Any) -> Statistic:
    return _numbers.released(_numbers.Sum, x, **given)


def var(x: Any, **given: Any) -> Statistic:
    return _numbers.released(_numbers.Var, x, **given)


def std(x: Any, **given: Any) -> Statistic:
    return _numbers.released(_numbers.Std, x, **given)
