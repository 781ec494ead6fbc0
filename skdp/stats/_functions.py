"""Release statistics of a table as functions in NumPy's manner."""

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

from skdp._docstrings import fill_docstring
from skdp._validation import Function, explain_keywords
from skdp.stats import _covariances, _numbers, _quantiles
from skdp.stats._counts import Counts, Side, counted, in_grid, listed, side_of
from skdp.stats._reading import Columns, Reading, vector
from skdp.stats._statistic import Statistic, StatisticTable

TAKEN = (  # by all functions; in the docstring of each
    "``epsilon`` (float) is the budget, without a delta. ``column`` (str) names the column if ``x`` is a table. ``adjacency`` "
    '({"replace_one", "zero_out"}, default="replace_one") says which tables are neighbours. ``confidence`` (float, default=0.95) '
    "is the coverage of the interval. ``persons`` (an id per row, or the name of a column) protects persons with all their rows, "
    "of which each then counts once. ``sample_weight`` (a number per row), with the public bound ``max_sample_weight``, weighs "
    "records. ``random_state`` seeds the noise inside `skdp.testing.reproducible_noise`"
)
X = (
    "A vector of numbers, a column of pandas, polars or Dask, or a table of one of these or of `skdp.data`. A missing cell is "
    "NaN, and so is an infinite one"
)
BOUNDS = (
    "Public bounds of the column, to which its cells are clipped. None learns them with a quarter of epsilon, such that no tail "
    "is cut off that shows in the noise"
)
ERRORS = "For what cannot be read, and parameters that are not valid, before anything is charged. Messages quote no data"
OPTIONS = {"epsilon", "column", "adjacency", "confidence", "persons", "sample_weight", "max_sample_weight", "random_state"}
HINTS = {  # keywords of other functions, and what is right here
    "columns": "column names the columns of a table",
    "axis": "each call takes one column, and describe takes a table",
    **dict.fromkeys(("accountant", "ledger"), "`with PrivacyLedger(path, epsilon=..., delta=...):` around the call is charged"),
    "range": "bounds are the public bounds of a column",
    "bounds": "range has the public ends of bins, and other counts need none",
    "weights": "sample_weight has the weights of records, with their public bound max_sample_weight",
    "density": "counts divided by their sum are shares",
    "normalize": "counts divided by their sum are shares",
    "ddof": "variances are divided by the number of cells",
}


def filled(function: Function) -> Function:
    """Fill the docstring, and let the function name itself where a keyword is unknown or epsilon is missing."""

    @wraps(function)
    def checked(*arguments: Any, **given: Any) -> Any:
        if "epsilon" not in given:
            raise TypeError(f"{function.__name__}() missing 1 required keyword-only argument: 'epsilon'")
        return function(*arguments, **given)

    return fill_docstring(taken=TAKEN, x=X, bounds=BOUNDS, errors=ERRORS)(explain_keywords(HINTS, OPTIONS)(checked))  # type: ignore[return-value]


@filled
def mean(x: Any, *, bounds: tuple[float, float] | None = None, **given: Any) -> Statistic:
    r"""Release the mean of a column, without its missing cells.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    bounds : tuple of float or None, default=None
        {bounds}.
    **given : Any
        {taken}.

    Returns
    -------
    Statistic
        The mean in the unit of the column.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** Pure epsilon. The release is the sum of the clipped cells, in units z of half the range from its middle. The sum
    of :math:`(1 - z^2) / 2` and the number of missing cells cost nothing beside it (`skdp.privacy.queries.ClippedMoments`): they
    tell the spread for the interval, and the number of cells for the mean. The noise is Laplace noise on integers. From about
    epsilon 2 on, if the type of the column has no missing cells, nine tenths of epsilon are for staircase noise in the sum.

    **The interval** is Fieller's, with the quantile of normal sampling errors and of the noise together. It is wider by what a
    few records at the far bound would add that happened not to be in the table, as Wilson's is for a share. Cells count as
    missing by the mean itself only if their number is above 3 standard deviations of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import mean
    >>> found = mean(np.arange(10_000) % 100, epsilon=1.0, bounds=(0, 100))
    >>> bool(48 < float(found) < 51), found.privacy_spent.delta
    (True, 0.0)
    """
    return _numbers.released(_numbers.Mean, x, bounds=bounds, **given)


@filled
def sum(x: Any, *, bounds: tuple[float, float] | None = None, **given: Any) -> Statistic:
    """Release the sum of a column, of which missing cells count as 0.

    With persons, it is the sum over persons of the means of their rows.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    bounds : tuple of float or None, default=None
        {bounds}.
    **given : Any
        {taken}.

    Returns
    -------
    Statistic
        The sum in the unit of the column. Its interval is that of the expected sum of as many other records.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** Pure epsilon, as for `mean`. The noise is in proportion to the range between the bounds, including 0 where cells
    can be missing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import sum
    >>> bool(9e3 < float(sum(np.ones(10_000), epsilon=1.0, bounds=(0, 2))) < 11e3)
    True
    """
    return _numbers.released(_numbers.Sum, x, bounds=bounds, **given)


@filled
def var(x: Any, *, bounds: tuple[float, float] | None = None, **given: Any) -> Statistic:
    """Release the variance of a column, divided by the number of cells, without missing ones.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    bounds : tuple of float or None, default=None
        {bounds}.
    **given : Any
        {taken}.

    Returns
    -------
    Statistic
        The variance in the squared unit of the column.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** Pure epsilon: a tenth for a rough mean and the number of missing cells, .85 with staircase noise for the squares
    about this mean, or for the variance itself where that has less noise (few records, or a mean near a bound), and .05 for
    fourth powers, which only the interval needs (`skdp.privacy.queries.Deviations`).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import var
    >>> bool(700 < float(var(np.arange(10_000) % 100, epsilon=1.0, bounds=(0, 100))) < 970)
    True
    """
    return _numbers.released(_numbers.Var, x, bounds=bounds, **given)


@filled
def std(x: Any, *, bounds: tuple[float, float] | None = None, **given: Any) -> Statistic:
    """Release the standard deviation of a column: the root of its variance, as `var` releases it.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    bounds : tuple of float or None, default=None
        {bounds}.
    **given : Any
        {taken}.

    Returns
    -------
    Statistic
        The standard deviation in the unit of the column.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `var`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import std
    >>> bool(26 < float(std(np.arange(10_000) % 100, epsilon=1.0, bounds=(0, 100))) < 31)
    True
    """
    return _numbers.released(_numbers.Std, x, bounds=bounds, **given)


@filled
def count(x: Any, **given: Any) -> Statistic:
    """Release the number of cells of a column that are not missing.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    **given : Any
        {taken}.

    Returns
    -------
    Statistic
        The number, from 0 to the public number of records. With weights it is their sum.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** Pure epsilon. One record moves a single count by 1 under both adjacencies.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import count
    >>> bool(4950 < float(count(np.where(np.arange(10_000) % 2, 1.0, np.nan), epsilon=1.0)) < 5050)
    True
    """
    return counted("count", False, x, **given)


@filled
def count_nonzero(x: Any, **given: Any) -> Statistic:
    """Release the number of cells of a column that are neither 0 nor missing, such as those that are true.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    **given : Any
        {taken}.

    Returns
    -------
    Statistic
        The number, from 0 to the public number of records.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `count`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import count_nonzero
    >>> bool(4950 < float(count_nonzero(np.arange(10_000) % 2 == 0, epsilon=1.0)) < 5050)
    True
    """
    return counted("count_nonzero", True, x, **given)


@filled
def quantile(x: Any, q: Any, *, bounds: tuple[float, float] | None = None, **given: Any) -> Statistic | StatisticTable:
    r"""Release one or several quantiles of a column, without its missing cells.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    q : float or sequence of float
        Share of the cells that is below, or several, each between 0 and 1.
    bounds : tuple of float or None, default=None
        {bounds}.
    **given : Any
        {taken}. With ``confidence=None`` there is no interval but the bounds, and a quantile has a fifth less noise.

    Returns
    -------
    Statistic or StatisticTable
        The quantile in the unit of the column, or a table of those in ``q``. Where noise
        hides it, an end of an interval is a bound.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** Pure epsilon. One quantile is chosen by the exponential mechanism among 8192 public numbers and the gaps between
    them, by the distance of its rank; replacing a record moves ranks by 1. Several are chosen level by level, each among the
    records between those that are chosen already [1]_; values that many records share are divided evenly. All choices of a level
    cost what one costs (`skdp.privacy.queries.RankScores`). Intervals are for sampling and for the noise in the ranks, and take a
    fifth of epsilon for further choices. They hold if at least half of the cells are there.

    References
    ----------
    .. [1] H. Kaplan, S. Schnapp, U. Stemmer, "Differentially private approximate quantiles", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import quantile
    >>> bool(85 < float(quantile(np.arange(10_000) % 100, 0.9, epsilon=1.0, bounds=(0, 99))) < 95)
    True
    """
    return _quantiles.released("quantile", x, q, bounds=bounds, **given)


@filled
def median(x: Any, *, bounds: tuple[float, float] | None = None, **given: Any) -> Statistic:
    """Release the median of a column, without its missing cells: `quantile` for one half.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    bounds : tuple of float or None, default=None
        {bounds}.
    **given : Any
        {taken}. With ``confidence=None`` there is no interval but the bounds, and the median has a fifth less noise.

    Returns
    -------
    Statistic
        The median in the unit of the column.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `quantile`. The noise of ``zero_out`` is half of that of ``replace_one``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import median
    >>> bool(45 < float(median(np.arange(10_000) % 100, epsilon=1.0, bounds=(0, 99))) < 55)
    True
    """
    found = _quantiles.released("median", x, 0.5, bounds=bounds, **given)
    assert isinstance(found, Statistic)
    return found


@filled
def cov(x: Any, *, bounds: Any = None, delta: float | None = None, **given: Any) -> StatisticTable:
    r"""Release the covariances of columns, divided by the number of records, of those in which no cell is missing.

    Parameters
    ----------
    x : array-like of shape (n_samples, n_columns), DataFrame, or table in partitions
        The columns; numbers.
    bounds : tuple of float, sequence or dict of them, or None, default=None
        Public bounds of all columns, of each, or of those that are named, to which cells are clipped. The others are learned with
        a quarter of the budget.
    delta : float or None, default=None
        Delta, ``max(1 / n_samples**2, 1e-11)`` by default, which is spent only if Gaussian noise is smaller for it; 0 for none.
    **given : Any
        {taken}. ``column`` is a tuple of names.

    Returns
    -------
    StatisticTable
        The covariances in the units of both columns: ``table`` is a data frame. They are positive semidefinite.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** One release: the sums of the products of all pairs, of the columns and of the complete records, in units of half
    of each range (`skdp.privacy.queries.ProductMoments`). Laplace noise grows with the square of the number of columns, and is
    the smaller one for few of them; Gaussian noise grows with the number. A missing cell takes its record out of all entries. How
    many are complete has noise, unless the types of the columns have no missing cells.

    **The nearest matrix** that is positive semidefinite is returned, which follows from the release. Intervals are from before.
    They are for noise and sampling, where the spread of products is the largest that variances and bounds allow, so that they are
    often wider than need be.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import cov
    >>> x = np.arange(10_000) % 100
    >>> found = cov(np.column_stack([x, 100 - x]), epsilon=1.0, bounds=(0, 100))
    >>> bool(np.all(np.abs(found.value - [[833, -833], [-833, 833]]) < 100))
    True
    """
    return _covariances.released("cov", x, bounds=bounds, delta=delta, **given)


@filled
def corr(x: Any, *, bounds: Any = None, delta: float | None = None, **given: Any) -> StatisticTable:
    """Release the correlations of columns, of the records in which no cell is missing.

    Parameters
    ----------
    x : array-like of shape (n_samples, n_columns), DataFrame, or table in partitions
        The columns; numbers.
    bounds : tuple of float, sequence or dict of them, or None, default=None
        Public bounds, as for `cov`.
    delta : float or None, default=None
        Delta, as for `cov`.
    **given : Any
        {taken}. ``column`` is a tuple of names.

    Returns
    -------
    StatisticTable
        The correlations. One is NaN, printed as "not determined", if a variance is below 3 standard deviations of its noise.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `cov`, from which correlations follow. An interval has all correlations that intervals of a covariance
    and of both variances allow, and is often wider than need be.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import corr
    >>> x = np.arange(10_000) % 100
    >>> found = corr(np.column_stack([x, 100 - x]), epsilon=1.0, bounds=(0, 100))
    >>> bool(found.value[0, 1] < -0.8)
    True
    """
    return _covariances.released("corr", x, bounds=bounds, delta=delta, **given)


@filled
def histogram(x: Any, bins: Any = 10, *, range: tuple[float, float] | None = None, **given: Any) -> Counts:
    """Release the numbers of cells of a column in bins.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        {x}.
    bins : int or sequence of float, default=10
        Number of even bins, or public edges, of which the last bin includes both.
    range : tuple of float or None, default=None
        Public ends of the even bins; None to learn them with a quarter of epsilon.
    **given : Any
        {taken}.

    Returns
    -------
    Counts
        The counts, ``counts, edges = histogram(...)``, with intervals; ``elsewhere`` is what is in no bin.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** Pure epsilon. A record is in one bin, or elsewhere: replacing it moves two counts by 1, so that the noise is
    twice that of ``zero_out``, which other libraries use without saying so. Below an epsilon of 1 the counts are the nearest ones
    from 0 on that add up to the public number of records; from 1 on, and with weights, they are cut at 0. Intervals are of the
    counts before that.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import histogram
    >>> counts, edges = histogram(np.arange(10_000) % 100, bins=4, epsilon=1.0, range=(0, 100))
    >>> edges.tolist(), bool(abs(counts - 2500).max() < 50)
    ([0.0, 25.0, 50.0, 75.0, 100.0], True)
    """
    return in_grid("histogram", x, lambda table: [side_of(table.names[0], bins, range)], **given)


@filled
def histogram2d(
    x: Any, y: Any = None, bins: Any = 10, *, range: Any = None, column: tuple[str, str] | None = None, **given: Any
) -> Counts:
    """Release the numbers of records in the cells of a grid of two columns.

    Parameters
    ----------
    x, y : array-like of shape (n_samples,)
        The columns; or a table as x, of which ``column`` names two.
    bins : int, or sequence of two, default=10
        Number of bins or edges of both columns, or of each.
    range : sequence of two tuples of float or None, default=None
        Public ends of the bins of each column; None to learn them.
    column : tuple of str or None, default=None
        Names of the two columns of a table.
    **given : Any
        {taken}.

    Returns
    -------
    Counts
        The counts, ``counts, x_edges, y_edges = histogram2d(...)``.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `histogram`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import histogram2d
    >>> x = np.arange(10_000) % 100
    >>> histogram2d(x, x // 10, bins=5, epsilon=1.0, range=[(0, 100), (0, 10)]).counts.shape
    (5, 5)
    """
    if y is not None:
        x = Columns({"x": vector(x), "y": vector(y)})
    return _of_grid("histogram2d", x, bins, range, 2, column=column, **given)


@filled
def histogramdd(x: Any, bins: Any = 10, *, range: Any = None, column: tuple[str, ...] | None = None, **given: Any) -> Counts:
    """Release the numbers of records in the cells of a grid of several columns.

    Parameters
    ----------
    x : array-like of shape (n_samples, n_columns), DataFrame, or table in partitions
        The columns.
    bins : int, or sequence with an entry per column, default=10
        Number of bins or edges of all columns, or of each.
    range : sequence of tuple of float or None, default=None
        Public ends of the bins of each column; None to learn them.
    column : tuple of str or None, default=None
        Names of the columns of a table; None for all.
    **given : Any
        {taken}.

    Returns
    -------
    Counts
        The counts.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `histogram`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import histogramdd
    >>> x = np.random.default_rng(0).uniform(size=(10_000, 3))
    >>> histogramdd(x, bins=2, epsilon=1.0, range=[(0, 1)] * 3).counts.shape
    (2, 2, 2)
    """
    return _of_grid("histogramdd", x, bins, range, None, column=column, **given)


@filled
def crosstab(x: Any, index: str, columns: str, *, categories: Mapping[str, Sequence[Any]], **given: Any) -> Counts:
    """Release the numbers of records by the categories of two columns.

    Parameters
    ----------
    x : DataFrame, or table in partitions
        The table.
    index, columns : str
        Names of the columns whose categories are the rows and the columns of the result.
    categories : dict of str to list
        Public categories of both columns. Other cells are elsewhere.
    **given : Any
        {taken}.

    Returns
    -------
    Counts
        The counts; ``table`` is a data frame with the categories.

    Raises
    ------
    TypeError, ValueError
        {errors}.

    Notes
    -----
    **Privacy.** That of `histogram`. Categories that are taken from the records would leak.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.stats import crosstab
    >>> table = pd.DataFrame({"smokes": ["no", "no", "yes"] * 3000, "ill": [0, 1, 1] * 3000})
    >>> found = crosstab(table, "smokes", "ill", categories={"smokes": ["no", "yes"], "ill": [0, 1]}, epsilon=1.0)
    >>> found.table.shape
    (2, 2)
    """
    known = listed(categories, (index, columns))
    described = {name: {"kind": "category", "categories": [*categories[name]]} for name in known}
    sides = [Side(name, len(names), (-1.0, 1.0), names) for name, names in known.items()]
    return in_grid("crosstab", x, lambda table: sides, column=(index, columns), kind=None, described=described, **given)


def _of_grid(function: str, x: Any, bins: Any, ranges: Any, width: int | None, **given: Any) -> Counts:
    def sides(table: Reading) -> list[Side]:
        names = table.names
        if width is not None and len(names) != width:
            raise ValueError(f"x has {len(names)} columns; expected {width}.")
        each = list(bins) if isinstance(bins, Sequence) and len(bins) == len(names) else [bins] * len(names)
        ends = [None] * len(names) if ranges is None else list(ranges)
        if len(ends) != len(names):
            raise ValueError(f"range has {len(ends)} entries; expected one for each of {len(names)} columns.")
        return [side_of(*facts) for facts in zip(names, each, ends, strict=True)]

    return in_grid(function, x, sides, **given)
