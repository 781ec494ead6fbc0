"""Look at a table before it is modelled: statistics with noise and with intervals, each with a privacy budget of its own."""

from skdp.stats._counts import count
from skdp.stats._describe import describe, plan_describe
from skdp.stats._description import Description
from skdp.stats._numbers import mean
from skdp.stats._statistic import Statistic

__all__ = ["Description", "Statistic", "count", "describe", "mean", "plan_describe"]
