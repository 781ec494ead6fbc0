"""Look at a table before it is modelled: statistics with noise and with intervals, each with a privacy budget of its own."""

from skdp.stats._counts import Counts
from skdp.stats._describe import describe, plan_describe
from skdp.stats._description import Description
from skdp.stats._functions import (
    corr,
    count,
    count_nonzero,
    cov,
    crosstab,
    histogram,
    histogram2d,
    histogramdd,
    mean,
    median,
    quantile,
    std,
    sum,
    var,
)
from skdp.stats._statistic import Statistic, StatisticTable

__all__ = [
    "Counts",
    "Description",
    "Statistic",
    "StatisticTable",
    "corr",
    "count",
    "count_nonzero",
    "cov",
    "crosstab",
    "describe",
    "histogram",
    "histogram2d",
    "histogramdd",
    "mean",
    "median",
    "plan_describe",
    "quantile",
    "std",
    "sum",
    "var",
]
