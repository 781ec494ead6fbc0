"""Compare statistics with those of diffprivlib, and measure what their intervals cover and the time of a description."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.noise import noise_of
from benchmarks.tables import data_directory
from benchmarks.writing import made_with, row, write_json
from skdp import stats
from skdp.preprocessing import hash_bucket
from skdp.stats import describe

__all__ = ["TABLES", "compare", "compare_single", "cover", "cover_single", "measure"]

EPSILONS, LEVELS = (0.1, 0.5, 1.0, 3.0), (0.05, 0.25, 0.5, 0.75, 0.95)
SIZES = (500, 5000, 50_000)  # of the tables whose intervals are counted
SINGLE_SIZES = (300, 2000, 20_000)  # of the columns of single statistics
ADJACENCIES = ("replace_one", "zero_out")
LEAST, MOST = 0.93, 0.99  # coverage of a 95 % interval
SET_CONSTANTS = ("adult", "california")  # the tables on which constants were chosen
ABOUT = """\
Errors of one description per budget: of the mean, in standard deviations; of the standard deviation, as a share of it; of five
quantiles, in ranks; and of shares of categories, in total variation. Ours < diffprivlib's, means over columns and medians over
{repeats} seeds; **bold** where ours is not ahead. Both have the same cells and the same public bounds, but for "learned", where
ours alone has to learn bounds and categories. diffprivlib divides epsilon by the number of statistics, or takes its own advanced
composition where that gives more. delta = 1/n^2. Constants were chosen on {chosen}, and not on the other tables.
`python -m benchmarks statistics` writes this page; it needs diffprivlib, and takes hours.
"""
SINGLE_ABOUT = """\
One statistic per budget, with the same cells and public bounds. Errors of the mean and of the sum over n in standard deviations,
of var and std as a share, of counts as a share of n, of `histogram` (20 bins) in total variation, of `median` and of
`quantile` (.95) in ranks: ours < diffprivlib's, medians over columns and seeds. diffprivlib's counts have the noise of
`zero_out`.
"""
COVERAGE_ABOUT = """\
{repeats} tables or columns drawn from each population with replacement: the least and the largest share, over columns, of
intervals that cover what the name of the statistic says of the population. Columns below .93 are named.
"""
Errors = tuple[float, float, float, float]


@dataclass(frozen=True)
class Case:
    """Hold a table, and what is known of it.

    Parameters
    ----------
    frame : DataFrame
        Records.
    bounds : dict
        Public bounds of the columns of numbers.
    learned : bool, default=False
        Whether ours learns all columns.
    """

    frame: Any
    bounds: dict[str, tuple[float, float]]
    learned: bool = False

    @property
    def others(self) -> list[str]:
        """Columns of categories."""
        return [name for name in self.frame.columns if name not in self.bounds]

    @property
    def schema(self) -> Any:
        """What ours is told."""
        if self.learned:
            return None
        numbers = {name: {"kind": "number", "bounds": list(bounds)} for name, bounds in self.bounds.items()}
        labels = {name: sorted(map(str, self.frame[name].dropna().unique())) for name in self.others}
        return {**numbers, **{name: {"kind": "category", "categories": names} for name, names in labels.items()}}

    def sample(self, n: int, seed: int, missing: float = 0.0) -> "Case":
        """Return some records, drawn with replacement if there are too few, some of whose cells are missing."""
        rng = np.random.default_rng(seed)
        frame = self.frame.iloc[rng.choice(len(self.frame), n, n > len(self.frame))].reset_index(drop=True)
        for name in self.bounds if missing else ():
            frame[name] = frame[name].astype(float).where(rng.random(n) >= missing)
        return Case(frame, self.bounds, self.learned)


def adult(columns: tuple[str, ...] = (), learned: bool = False) -> Case:
    """Return census records; columns of text are categories."""
    bounds = {
        "age": (0, 120),
        "education-num": (1, 16),
        "capital-gain": (0, 1e5),
        "capital-loss": (0, 1e4),
        "hours-per-week": (0, 100),
    }
    frame = pd.read_csv(data_directory() / "adult.csv.gz")
    return Case(frame[[*bounds, *columns]], bounds, learned)


def california() -> Case:
    """Return districts of California."""
    bounds = {"longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 60), "total_rooms": (0, 50_000)}
    bounds |= {"population": (0, 50_000), "median_income": (0, 20)}
    frame = pd.read_csv(data_directory() / "california_housing.csv.gz").dropna()
    return Case(frame[[*bounds]], bounds)


def bank() -> Case:
    """Return clients of a bank."""
    bounds = {
        "age": (0, 120),
        "balance": (-1e5, 1e6),
        "day": (1, 31),
        "duration": (0, 1e4),
        "campaign": (0, 100),
        "previous": (0, 500),
    }
    frame = pd.read_csv(data_directory() / "bank_full.csv.gz")
    return Case(frame[[*bounds]], bounds)


def of_arrays(name: str, bounds: Callable[[int], list[tuple[float, float]]]) -> Case:
    """Return a table of numbers."""
    X = np.load(data_directory() / f"{name}.npz")["X"].astype(float)
    columns = [f"x{place}" for place in range(X.shape[1])]
    return Case(pd.DataFrame(X, columns=columns), dict(zip(columns, bounds(X.shape[1]), strict=True)))


def covertype() -> Case:
    """Return the ten numbers of forest cells."""
    found = of_arrays("covertype_subset", lambda d: [(0.0, 8000.0)] * d)
    names = list(found.frame.columns)[:10]
    ends = [(0, 9000), (0, 360), (0, 90), (0, 2000), (-1000, 1000), (0, 10_000), (0, 255), (0, 255), (0, 255), (0, 10_000)]
    return Case(found.frame[names], dict(zip(names, ends, strict=True)))


def made_up(size: int = 400_000) -> Case:
    """Return columns of known shapes: even, normal, two with heavy tails, and two of few numbers that are not 0."""
    rng = np.random.default_rng(0)
    frame = {"even": rng.random(size), "normal": rng.normal(size=size), "log-normal": np.exp(2 * rng.normal(size=size))}
    frame |= {"Pareto": rng.pareto(2.0, size), "one in 100": 50.0 * (rng.random(size) < 0.01)}
    frame |= {"one in 1000": 100.0 * (rng.random(size) < 0.001)}
    ends = [(0, 1), (-10, 10), (0, 1000), (0, 1000), (0, 100), (0, 100)]
    return Case(pd.DataFrame(frame), {name: (float(low), float(high)) for name, (low, high) in zip(frame, ends, strict=True)})


MIXED = ("adult, mixed", "adult, mixed, learned")
CATEGORIES = ("workclass", "education", "marital-status", "occupation", "race", "sex")
TABLES: dict[str, Callable[[], Case]] = {
    "adult": adult,
    "california": california,
    "bank": bank,
    "mammography": lambda: of_arrays("mammography", lambda d: [(-20.0, 20.0)] * d),
    "covertype": covertype,
    "adult, mixed": lambda: adult(CATEGORIES),
    "adult, mixed, learned": lambda: adult(CATEGORIES, learned=True),
    "made up": made_up,
}
CELLS = {  # numbers of records, and the share of missing cells
    "adult": ((48_842, 0.0), (2000, 0.0), (300, 0.0)),
    "california": ((20_433, 0.0), (2000, 0.0)),
    "bank": ((45_211, 0.0), (2000, 0.0), (20_000, 0.1)),
    "mammography": ((11_183, 0.0), (2000, 0.0)),
    "covertype": ((2000, 0.0), (300_000, 0.0), (20_000, 0.1)),
    "adult, mixed": ((20_000, 0.0),),
    "adult, mixed, learned": ((300, 0.0), (20_000, 0.0), (48_842, 0.1)),
    "made up": ((300, 0.0), (20_000, 0.0)),
}


def errors(case: Case, statistics: dict[str, tuple[float, float, list[float]]], shares: dict[str, dict[str, float]]) -> Errors:
    """Return the mean errors of mean, deviation, ranks of quantiles, and shares; a number that is not determined counts as 0."""
    found = []
    for name, (mean, std, quantiles) in statistics.items():
        low, high = case.bounds[name]
        x = np.sort(case.frame[name].dropna().clip(low, high).to_numpy(dtype=float))
        ranks = [
            (np.searchsorted(x, v) / x.size - q, q - np.searchsorted(x, v, "right") / x.size)
            for q, v in zip(LEVELS, quantiles, strict=True)
        ]
        spread = max(x.std(), 1e-12)
        found.append([abs(mean - x.mean()) / spread, abs(std / spread - 1), np.mean([max(*pair, 0.0) for pair in ranks])])
    apart = [
        0.5 * sum(abs(case.frame[name].eq(label).mean() - share) for label, share in of_labels.items())
        for name, of_labels in shares.items()
    ]
    return (*np.nan_to_num(np.mean(found, axis=0), nan=1.0).tolist(), float(np.mean(apart)) if apart else math.nan)


def ours(case: Case, epsilon: float, adjacency: str) -> Errors:
    """Return the errors of our description."""
    found = describe(case.frame, epsilon=epsilon, adjacency=adjacency, schema=case.schema, quantiles=LEVELS)
    by_name = {column.name: column for column in found.columns}
    statistics = {
        name: (one.mean.value, one.std.value, [q.value for q in one.quantiles.values()])
        for name, one in by_name.items()
        if name in case.bounds and hasattr(one, "quantiles")
    }
    shares = {}
    for name in case.others:
        told = {label: one.value for label, one in getattr(by_name[name], "shares", {}).items()}
        labels = case.frame[name].dropna().unique()
        shares[name] = {label: told.get(f"bucket {hash_bucket(label)}" if case.learned else str(label), 0.0) for label in labels}
    return errors(case, statistics, shares)


def theirs(case: Case, epsilon: float, seed: int) -> Errors:
    """Return the errors of diffprivlib, a statistic at a time."""
    from diffprivlib import BudgetAccountant, tools

    n = len(case.frame)
    number = 7 * len(case.bounds) + len(case.others)
    accountant = BudgetAccountant(epsilon=epsilon, delta=1 / n**2, slack=1 / n**2)
    each = max(epsilon / number, float(accountant.remaining(number)[0]))
    free = {"epsilon": each, "accountant": BudgetAccountant(), "random_state": seed}
    statistics = {}
    for name, bounds in case.bounds.items():
        x = case.frame[name].dropna().clip(*bounds).to_numpy(dtype=float)
        if not x.size:
            continue
        quantiles = []
        for place, q in enumerate(LEVELS):
            try:
                quantiles.append(float(tools.quantile(x, q, bounds=bounds, **{**free, "random_state": seed + place})))
            except RuntimeError:  # where many records are equal, it may find no candidate
                quantiles.append(sum(bounds) / 2)
        statistics[name] = (float(tools.mean(x, bounds=bounds, **free)), float(tools.std(x, bounds=bounds, **free)), quantiles)
    shares = {}
    for name in case.others:
        cells = case.frame[name].astype(object)
        labels, codes = np.unique(cells.where(cells.notna(), "nan").to_numpy(dtype=str), return_inverse=True)
        counts, _ = tools.histogram(codes, bins=len(labels), range=(-0.5, len(labels) - 0.5), **free)
        shares[name] = dict(zip(labels.tolist(), (np.maximum(counts, 0) / n).tolist(), strict=True))
    return errors(case, statistics, shares)


def compare(
    repeats: int, tables: Sequence[str], cells: Mapping[str, Sequence[tuple[int, float]]] = CELLS
) -> Iterator[dict[str, Any]]:
    """Yield the errors of both in each cell.

    Parameters
    ----------
    repeats : int
        Seeds per cell.
    tables : sequence of str
        Names of tables.
    cells : dict
        Numbers of records, and shares of missing cells, of each table.

    Yields
    ------
    dict
        A cell.
    """
    for name in tables:
        whole = TABLES[name]()
        for n, missing in cells[name]:
            for epsilon in EPSILONS:
                cases = [whole.sample(n, seed, missing) for seed in range(repeats)]
                found: dict[str, Any] = {
                    "diffprivlib": _medians([theirs(case, epsilon, seed) for seed, case in enumerate(cases)])
                }
                for adjacency in ADJACENCIES:
                    of_seeds = []
                    for seed, case in enumerate(cases):
                        with noise_of(seed):
                            of_seeds.append(ours(case, epsilon, adjacency))
                    found[adjacency] = _medians(of_seeds)
                yield {"table": name, "n": n, "missing": missing, "epsilon": epsilon, **found}


def _medians(found: list[Errors]) -> list[float]:
    return np.median(found, axis=0).tolist()


def cover(repeats: int, tables: Sequence[str], clip: str = "auto", sizes: Sequence[int] = SIZES) -> Iterator[dict[str, Any]]:
    """Yield the coverage of the intervals of tables drawn from a population, for what the name of a row says.

    Parameters
    ----------
    repeats : int
        Tables per cell.
    tables : tuple of str
        Names of populations.
    clip : {"auto", "bounds"}, default="auto"
        As of `describe`.
    sizes : sequence of int
        Numbers of records.

    Yields
    ------
    dict
        A cell: the coverage by column.
    """
    for name in tables:
        whole = TABLES[name]()
        sorted_cells = {column: np.sort(whole.frame[column].clip(*bounds)) for column, bounds in whole.bounds.items()}
        for n in sizes:
            for epsilon in EPSILONS:
                hits: dict[tuple[str, str], list[bool]] = {}
                for seed in range(repeats):
                    case = whole.sample(n, 1000 + seed)
                    with noise_of(hash((n, epsilon, seed)) % 2**32):
                        found = describe(case.frame, epsilon=epsilon, schema=whole.schema, quantiles=LEVELS, clip=clip)
                    for column, statistic, hit in _hits(found, whole, sorted_cells):
                        hits.setdefault((statistic, column), []).append(hit)
                rates: dict[str, dict[str, float]] = {}
                for (statistic, column), values in hits.items():
                    rates.setdefault(statistic, {})[column] = float(np.mean(values))
                for statistic, of_columns in rates.items():
                    yield {"statistic": statistic, "table": name, "n": n, "epsilon": epsilon, "rates": of_columns}


def _hits(found: Any, whole: Case, cells: dict[str, np.ndarray]) -> Iterator[tuple[str, str, bool]]:
    for column in found.columns:
        if column.name in cells:
            x = cells[column.name]
            clipped = np.clip(x, *column.limits)
            for statistic, one, truth in (("mean", column.mean, clipped.mean()), ("std", column.std, clipped.std())):
                if one.determined:
                    yield column.name, statistic, bool(one.low <= truth <= one.high)
            for q, one in column.quantiles.items():
                if one.determined:
                    below, upto = np.searchsorted(x, one.low) / x.size, np.searchsorted(x, one.high, "right") / x.size
                    yield column.name, "quantiles", bool(below <= q <= upto)
        else:
            for label, one in column.shares.items():
                yield f"{column.name} {label}", "shares", bool(one.low <= whole.frame[column.name].eq(label).mean() <= one.high)


def timed(n: int = 300_000, d: int = 14) -> dict[str, float]:
    """Return seconds of a description of made-up numbers, with bounds and with learned columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, d)).round(2), columns=[f"x{place}" for place in range(d)])
    found = {}
    for name, schema in (("bounds", {c: {"kind": "number", "bounds": [-10, 10]} for c in frame}), ("learned", None)):
        start = time.perf_counter()
        describe(frame, epsilon=1.0, schema=schema)
        found[name] = time.perf_counter() - start
    return found


# Single statistics that both libraries have, and those that take bounds.
SINGLE = ("mean", "sum", "var", "std", "count", "count_nonzero", "histogram", "median", "quantile")
OF_BOUNDS = ("mean", "sum", "var", "std")


def of_ours(function: str, x: np.ndarray, bounds: tuple[float, float] | None, epsilon: float, **given: Any) -> Any:
    """Return a statistic of ours, of a column between public or learned bounds."""
    called = partial(getattr(stats, function), x, epsilon=epsilon, **given)
    if function == "histogram":
        return called(bins=20, range=bounds)
    if function == "quantile":
        return called(q=0.95, bounds=bounds)
    return called() if function.startswith("count") else called(bounds=bounds)


def of_theirs(function: str, x: np.ndarray, bounds: tuple[float, float], epsilon: float, seed: int) -> Any:
    """Return a statistic of diffprivlib; NaN where it fails."""
    from diffprivlib import BudgetAccountant, tools

    given = {"epsilon": epsilon, "accountant": BudgetAccountant(), "random_state": seed}
    if function == "count":
        return tools.count_nonzero(np.ones(x.size), **given)
    if function == "count_nonzero":
        return tools.count_nonzero(x, **given)
    if function == "histogram":
        return np.maximum(tools.histogram(x, bins=20, range=bounds, **given)[0], 0)
    try:
        if function == "quantile":
            return tools.quantile(x, 0.95, bounds=bounds, **given)
        return getattr(tools, function)(x, bounds=bounds, **given)
    except RuntimeError:  # where many records are equal, it may find no candidate
        return math.nan


def exact(function: str, x: np.ndarray, bounds: tuple[float, float]) -> Any:
    """Return a statistic without noise."""
    if function == "histogram":
        return np.histogram(x, 20, bounds)[0]
    return x.size if function == "count" else np.count_nonzero(x) if function == "count_nonzero" else getattr(np, function)(x)


def error(function: str, x: np.ndarray, value: Any, bounds: tuple[float, float]) -> float:
    """Return an error in a unit of its own: standard deviations, shares, ranks, total variation."""
    if function in ("median", "quantile"):
        q, cells = 0.5 if function == "median" else 0.95, np.sort(x)
        below, upto = np.searchsorted(cells, value) / x.size, np.searchsorted(cells, value, "right") / x.size
        return 1.0 if math.isnan(value) else max(below - q, q - upto, 0.0)
    truth = exact(function, x, bounds)
    scale = {"mean": x.std(), "sum": x.size * x.std(), "var": x.var(), "std": x.std()}.get(function, x.size)
    return float(np.abs(np.asarray(value) - truth).sum() / max(scale, 1e-12)) / (2 if function == "histogram" else 1)


def compare_single(repeats: int, tables: Sequence[str], sizes: Sequence[int] = SINGLE_SIZES) -> Iterator[dict[str, Any]]:
    """Yield the errors of single statistics, medians over columns and seeds.

    Parameters
    ----------
    repeats : int
        Seeds per cell.
    tables : sequence of str
        Names of tables.
    sizes : sequence of int
        Numbers of records.

    Yields
    ------
    dict
        A cell: a function, a table, a size and an epsilon.
    """
    for name in tables:
        whole = TABLES[name]()
        for n in sizes:
            cases = [whole.sample(n, seed) for seed in range(repeats)]
            columns = [
                (place, np.clip(case.frame[column].to_numpy(dtype=float), *bounds), bounds)
                for place, (case, (column, bounds)) in enumerate(product(cases, whole.bounds.items()))
            ]
            for function in SINGLE:
                for epsilon in EPSILONS:
                    found: dict[str, list[float]] = {}
                    for place, x, bounds in columns:
                        seed = hash((place, epsilon, n)) % 2**32  # of noise, for each column and cell
                        one = of_theirs(function, x, bounds, epsilon, seed)
                        found.setdefault("diffprivlib", []).append(error(function, x, one, bounds))
                        for adjacency in ADJACENCIES:
                            with noise_of(seed):
                                one = of_ours(function, x, bounds, epsilon, adjacency=adjacency).value
                            found.setdefault(adjacency, []).append(error(function, x, one, bounds))
                    errors_of = {key: float(np.median(values)) for key, values in found.items()}
                    yield {"function": function, "table": name, "n": n, "epsilon": epsilon, **errors_of}


def cover_single(
    repeats: int,
    tables: Sequence[str],
    functions: Sequence[str] = ("mean", "sum", "var", "std", "count_nonzero", "median", "quantile"),
    sizes: Sequence[int] = SIZES,
) -> Iterator[dict[str, Any]]:
    """Yield the coverage of the intervals of single statistics, with public and with learned bounds.

    Parameters
    ----------
    repeats : int
        Columns per cell, drawn from a population.
    tables : sequence of str
        Names of populations.
    functions : sequence of str
        Names of functions.
    sizes : sequence of int
        Numbers of records.

    Yields
    ------
    dict
        A cell: the coverage by column, of what the name of the statistic says.
    """
    for name in tables:
        whole = TABLES[name]()
        cells = {column: whole.frame[column].clip(*bounds).to_numpy(dtype=float) for column, bounds in whole.bounds.items()}
        for function in functions:
            for learned in (False, True) if function in OF_BOUNDS else (False,):
                for n in sizes:
                    for epsilon in EPSILONS:
                        rates = {
                            column: covered(function, x, None if learned else whole.bounds[column], n, epsilon, repeats, place)
                            for place, (column, x) in enumerate(cells.items())
                        }
                        facts = {"function": function, "learned": learned, "table": name}
                        yield {**facts, "n": n, "epsilon": epsilon, "rates": rates}


def covered(
    function: str,
    population: np.ndarray,
    bounds: tuple[float, float] | None,
    n: int,
    epsilon: float,
    repeats: int,
    place: int = 0,
) -> float:
    """Return the share of intervals that cover the statistic of a population, of the values that its name says."""
    hits, truths = 0, {}
    cells = np.sort(population)
    for seed in range(repeats):
        x = population[np.random.default_rng([seed, place]).integers(population.size, size=n)]
        with noise_of(hash((seed, place, n, epsilon)) % 2**32):
            found = of_ours(function, x, bounds, epsilon)
        low, high = found.interval
        if function in ("median", "quantile"):
            q = 0.5 if function == "median" else 0.95
            below, upto = np.searchsorted(cells, low) / cells.size, np.searchsorted(cells, high, "right") / cells.size
            hits += below <= q <= upto
            continue
        if found.name not in truths:
            _, _, limits = found.name.partition(" of values clipped to [")
            ends = [float(end) for end in limits.rstrip("]").split(",")] if limits else (-math.inf, math.inf)
            truth = float(exact(function, np.clip(population, *ends), (-math.inf, math.inf)))
            truths[found.name] = truth * n / population.size if function in ("sum", "count_nonzero") else truth
        hits += low <= truths[found.name] <= high
    return hits / repeats


def measure(tables: Sequence[str], repeats: int, coverage: int, out: Path, quick: bool = False) -> None:
    """Write all measurements as statistics.json and statistics.md.

    Parameters
    ----------
    tables : sequence of str
        Names of tables.
    repeats : int
        Seeds per cell of the comparisons; 0 for none.
    coverage : int
        Tables per cell of the coverage; 0 for none.
    out : Path
        Directory.
    quick : bool, default=False
        Whether a cell of each kind is enough.
    """
    warnings.simplefilter("ignore")
    numbers = [name for name in tables if name not in MIXED]
    one, sizes = {name: CELLS[name][-1:] for name in tables}, SIZES[:1]
    parts = {
        "describe": lambda: compare(repeats, tables, one if quick else CELLS),
        "single": lambda: compare_single(repeats, numbers, SINGLE_SIZES[:1] if quick else SINGLE_SIZES),
        "coverage": lambda: cover(coverage, numbers, sizes=sizes if quick else SIZES),
        "single_coverage": lambda: cover_single(coverage, numbers, sizes=sizes if quick else SIZES),
    }
    wanted = {name: bool(coverage if "coverage" in name else repeats) for name in parts}
    contents: dict[str, Any] = {**made_with(), "repeats": repeats, "coverage_repeats": coverage}
    contents |= {"seconds": timed(3000 if quick else 300_000), **{name: [] for name in parts}}
    for name, cells in parts.items():
        for cell in cells() if wanted[name] else ():
            contents[name].append(cell)
            write_json(contents, out / "statistics.json")
        (out / "statistics.md").write_text(page(contents), encoding="utf-8")


def page(contents: Mapping[str, Any]) -> str:
    """Return the page of results."""
    lines = ["# Statistics", "", ABOUT.format(repeats=contents["repeats"], chosen=" and ".join(SET_CONSTANTS))]
    for adjacency in ADJACENCIES:
        lines += ["", f"## `describe`, {adjacency}", ""]
        lines += heads("table", "n", "missing", "epsilon", "mean", "std", "quantiles", "shares")
        for cell in contents["describe"]:
            pairs = zip(cell[adjacency], cell["diffprivlib"], strict=True)
            facts = [cell["table"], str(cell["n"]), f"{cell['missing']:g}", f"{cell['epsilon']:g}"]
            lines.append(row([*facts, *("" if math.isnan(one) else beside(one, other) for one, other in pairs)]))
    lines += ["", "## Single statistics", "", SINGLE_ABOUT, ""]
    lines += heads("function", "table", "n", *(f"{epsilon:g}, {adjacency}" for adjacency in ADJACENCIES for epsilon in EPSILONS))
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for cell in contents["single"]:
        found.setdefault((cell["function"], cell["table"], cell["n"]), []).append(cell)
    for key, of_key in found.items():
        told = [beside(cell[adjacency], cell["diffprivlib"]) for adjacency in ADJACENCIES for cell in of_key]
        lines.append(row([*map(str, key), *told]))
    if contents["coverage_repeats"]:
        lines += ["", "## Coverage of 95 % intervals", "", COVERAGE_ABOUT.format(repeats=contents["coverage_repeats"]), ""]
        lines += heads("statistic", "population", "n", *(f"{epsilon:g}" for epsilon in EPSILONS), "outside")
    rates: dict[tuple[str, str, int], dict[float, dict[str, float]]] = {}
    for cell in (*contents["coverage"], *contents["single_coverage"]):
        name = f"`describe`, {cell['statistic']}" if "statistic" in cell else f"`{cell['function']}`"
        name += ", learned bounds" if cell.get("learned") else ""
        rates.setdefault((name, cell["table"], cell["n"]), {})[cell["epsilon"]] = cell["rates"]
    for facts, by_epsilon in rates.items():
        ends = {epsilon: (min(of.values()), max(of.values())) for epsilon, of in by_epsilon.items()}
        outside = [
            f"{column} {rate:.3f} at {epsilon:g}"
            for epsilon, of in by_epsilon.items()
            for column, rate in of.items()
            if rate < LEAST
        ]
        told = ["{:.3f} to {:.3f}".format(*ends[epsilon]) if epsilon in ends else "not determined" for epsilon in EPSILONS]
        lines.append(row([*map(str, facts), *told, "; ".join(outside)]))
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in contents["seconds"].items())
    return "\n".join([*lines, "", f"Seconds of `describe` for 300 000 x 14 on one thread: {seconds}.", ""])


def heads(*texts: str) -> list[str]:
    """Return the first two lines of a table."""
    return [row([*texts]), row(["---"] * len(texts))]


def beside(one: float, other: float) -> str:
    """Return both errors as text, in bold where ours is not ahead."""
    return f"{one:.3g} < {other:.3g}" if one < other else f"**{one:.3g}** > {other:.3g}"
