r"""Coordinate descent and how its coordinates are drawn, where columns have very different scales.

The numeric columns are centred at the middle of their public range and not scaled, beside zeros and ones, and the solvers are
given the bounds. The excess risk is the mean training loss less that of the minimum, without a penalty worth the name.

The convex theorem bounds the excess by :math:`\sqrt{D N} / s`, with :math:`D = \sum_j M_j (w_j - w_j^*)^2 / p_j`, the smoothness
constants :math:`M_j` of the columns and the same N for all ways to draw single coordinates with probabilities :math:`p_j`. With
:math:`p_j` in proportion to :math:`M_j`, and a start at 0, D is :math:`\sum_j M_j \sum_j {w_j^*}^2`, and :math:`d \sum_j M_j
{w_j^*}^2` with equal ones: importance sampling has the better bound if and only if coefficients, in the units of their columns,
are larger where columns are wider. This ratio is measured, too.
"""

import itertools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import expit, log_expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks import bounds
from benchmarks.noise import noise_of
from benchmarks.tables import Table, data_directory, existing, one_hot, published_split, random_split, read_npz
from benchmarks.writing import figure, row
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.solvers import BlockCoordinateDescent, Solver

__all__ = ["draw", "markdown", "measure"]

EPSILONS, REPEATS = (0.1, 1.0), 5
ADJACENCY = "replace_one"
QUICK_TABLES, QUICK_REPEATS = ("wide and narrow", "california"), 2
ABOUT = """\
Medians of {repeats} fits at each epsilon, {adjacency}, all else by default. Numeric columns are centred and not scaled;
`feature_bounds` are their public ranges. The excess risk is that of the training loss over its minimum. A step on some columns
counts as their share of a pass. What `solver="auto"` takes is `standardized_gd`, or `whitened_gd` for california: it first learns
the scales privately. "scaled": columns are divided by their bounds first, as `BoundedScaler` does.
"""
RATIOS = """\
The bound of the convex theorem with importance sampling over that with uniform sampling, from the public smoothness constants of
the columns and the minimum: below 1 the theorem favours importance sampling.
"""


@dataclass(frozen=True)
class RawTable:
    """Hold a table in its own units.

    Parameters
    ----------
    table : Table
        Training and test part.
    feature_bounds : ndarray of shape (n_features,)
        Largest absolute value of each column, public.
    blocks : list of list of int
        Columns that stand for one categorical column, or one numeric column each.
    """

    table: Table
    feature_bounds: np.ndarray
    blocks: list[list[int]]


def raw_adult(directory: Path) -> RawTable:
    """Income, with capital gains in dollars."""
    frame = pd.read_csv(existing(directory / "adult.csv.gz"), keep_default_na=False)
    low_high = {**bounds.ADULT_RANGES, **{name: (0, top) for name, top in bounds.ADULT_LOGARITHMS.items()}}
    y = (frame["income"] == ">50K").to_numpy().astype(int)
    X, raw, blocks = columns(frame.replace("", "?"), low_high, bounds.ADULT_CATEGORIES)
    return RawTable(published_split(X, y, frame["split"].to_numpy()), raw, blocks)


def raw_covertype(directory: Path) -> RawTable:
    """Kinds of trees, with distances in metres."""
    X, y, _ = read_npz(directory / "covertype_subset.npz")
    low, high = np.array(list(bounds.COVERTYPE_RANGES.values()), dtype=np.float64).T
    X[:, : low.size] = X[:, : low.size].clip(low, high) - (low + high) / 2
    numeric = [[place] for place in range(low.size)]
    groups = [list(range(low.size, low.size + 4)), list(range(low.size + 4, X.shape[1]))]  # wilderness area, kind of soil
    widths = np.concatenate([(high - low) / 2, np.ones(X.shape[1] - low.size)])
    return RawTable(random_split(X, y), widths, numeric + groups)


def raw_california(directory: Path) -> RawTable:
    """House values, with numbers of rooms and of people."""
    frame = pd.read_csv(existing(directory / "california_housing.csv.gz")).fillna({"total_bedrooms": 0})
    low_high = {**bounds.CALIFORNIA_RANGES, **{name: (0, top) for name, top in bounds.CALIFORNIA_LOGARITHMS.items()}}
    low, high = bounds.CALIFORNIA_TARGET["median_house_value"]
    y = 2 * (frame["median_house_value"].to_numpy() - low) / (high - low) - 1
    X, raw, blocks = columns(frame, low_high, bounds.CALIFORNIA_CATEGORIES)
    return RawTable(random_split(X, y, "regression"), raw, blocks)


def wide_and_narrow(directory: Path) -> RawTable:
    """Generate 3 wide columns with the whole signal, and 37 that are a tenth as wide; 20 000 training records; reads no file."""
    rng, widths = np.random.default_rng(0), np.repeat([1.0, 0.1], [3, 37])
    X = rng.uniform(-1, 1, size=(40_000, widths.size)) * widths
    y = (rng.random(len(X)) < expit(X[:, :3] @ [2.0, -2.0, 2.0])).astype(int)
    return RawTable(Table(X[:20_000], y[:20_000], X[20_000:], y[20_000:]), widths, [[0], [1], [2], list(range(3, 40))])


RAW_TABLES: dict[str, Callable[[Path], RawTable]] = {
    "adult": raw_adult,
    "covertype": raw_covertype,
    "california": raw_california,
    "wide and narrow": wide_and_narrow,
}


def columns(frame: pd.DataFrame, low_high: dict[str, Any], categories: Any) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Centred numeric columns, then one-hot ones; their bounds and blocks."""
    low, high = np.array(list(low_high.values()), dtype=np.float64).T
    numbers = frame[list(low_high)].to_numpy(np.float64).clip(low, high) - (low + high) / 2
    binary = one_hot(frame, categories)
    ends = len(low) + np.cumsum([0, *(len(list(known)) for known in categories.values())])
    groups = [list(range(start, stop)) for start, stop in itertools.pairwise(ends)]
    widths = np.concatenate([(high - low) / 2, np.ones(binary.shape[1])])
    return np.hstack([numbers, binary]), widths, [[place] for place in range(len(low))] + groups


class Contestant(NamedTuple):
    """A solver, the share of the coordinates that a step moves, on average, and whether columns are divided by their bounds."""

    solver: str | Solver
    share: float = 1.0
    scaled: bool = False


def contestants(raw: RawTable) -> dict[str, Contestant]:
    """Return the compared solvers by name."""
    d = raw.feature_bounds.size + 1  # the intercept is a coordinate, too, and a separate block
    learned = "standardized_gd" if raw.table.task == "classification" else "whitened_gd"
    by_blocks = BlockCoordinateDescent("blocks", blocks=raw.blocks)
    return {
        "skgd uniform": Contestant(BlockCoordinateDescent("uniform"), 1 / d),
        "skgd importance": Contestant(BlockCoordinateDescent("importance"), 1 / d),
        "skgd nice": Contestant(BlockCoordinateDescent("nice"), round(math.sqrt(d)) / d),
        "skgd blocks": Contestant(by_blocks, 1 / (len(raw.blocks) + 1)),
        "skgd full": Contestant(BlockCoordinateDescent("full")),
        "gd": Contestant("gd"),
        "sgd": Contestant("sgd"),
        learned: Contestant(learned),
        "gd, scaled": Contestant("gd", scaled=True),
        f"{learned}, scaled": Contestant(learned, scaled=True),
    }


def scaled(raw: RawTable) -> RawTable:
    """Return a table with columns over their bounds, as `BoundedScaler` makes them."""
    table, widths = raw.table, raw.feature_bounds
    inside = Table(table.X_train / widths, table.y_train, table.X_test / widths, table.y_test, table.task)
    return RawTable(inside, np.ones_like(widths), raw.blocks)


def measure(quick: bool, jobs: int | None) -> dict[str, Any]:
    """Measure excess risks.

    Parameters
    ----------
    quick : bool
        Whether two minutes are all there is.
    jobs : int or None
        Processes.

    Returns
    -------
    dict
        A record per table, solver and epsilon; and for each table the bound of importance sampling over that of uniform.
    """
    tables, repeats = (QUICK_TABLES, QUICK_REPEATS) if quick else (tuple(RAW_TABLES), REPEATS)
    records, ratios = [], {}
    for name in tables:
        raw = RAW_TABLES[name](data_directory())
        minimum = least(raw)
        ratios[name], best = bound_ratio(raw.feature_bounds, minimum), risk(raw.table, minimum)
        for solver, chosen in contestants(raw).items():
            given = scaled(raw) if chosen.scaled else raw
            for epsilon in EPSILONS:
                fits = Parallel(jobs)(delayed(fit)(given, chosen.solver, epsilon, seed) for seed in range(repeats))
                found = {key: [one[key] for one in fits] for key in fits[0]}
                found["excess_risk"] = [value - best for value in found.pop("risk")]
                about = {"table": name, "epsilon": epsilon, "solver": solver}
                records.append(about | found | {"passes": chosen.share * found["passes"][0]})
            print(f"{name}: {solver}", flush=True)
    return {"settings": {"adjacency": ADJACENCY, "repeats": repeats}, "bound_ratios": ratios, "records": records}


def fit(raw: RawTable, solver: Any, epsilon: float, seed: int) -> dict[str, float]:
    """Training risk, test score, passes and seconds of one private fit."""
    if solver == "skgd" or isinstance(solver, BlockCoordinateDescent):
        given: dict[str, Any] = {"feature_bounds": np.column_stack([-raw.feature_bounds, raw.feature_bounds])}
    else:  # which would scale by them
        given = {"data_norm": float(np.linalg.norm(raw.feature_bounds))}
    given["adjacency"] = ADJACENCY
    kind, table = DPLogisticRegression, raw.table
    if table.task == "regression":
        kind, given = DPLinearRegression, given | {"target_bounds": (-1, 1)}
    model, X = kind(epsilon, solver=solver, **given), np.asfortranarray(table.X_train)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with noise_of(seed):
            model.fit(X, table.y_train)
    seconds = time.perf_counter() - start
    return {"risk": risk(table, model), "score": test_score(table, model), "passes": passes(model), "seconds": seconds}


class Line(NamedTuple):
    """A linear model."""

    coef_: np.ndarray
    intercept_: float


def least(raw: RawTable) -> Line:
    """Minimum of the training loss, found with columns over their bounds."""
    table = scaled(raw).table
    model = LinearRegression()
    if table.task == "classification":
        model = LogisticRegression(C=1e6, tol=1e-8, max_iter=10_000)
    model.fit(table.X_train, table.y_train)
    return Line(np.ravel(model.coef_) / raw.feature_bounds, float(np.ravel(model.intercept_)[0]))


def bound_ratio(feature_bounds: np.ndarray, minimum: Line) -> float:
    """Return the convex theorem's bound with importance sampling over that with uniform sampling; the intercept has bound 1."""
    smoothness = np.append(feature_bounds, 1.0) ** 2  # up to a factor
    squares = np.append(minimum.coef_, minimum.intercept_) ** 2
    return float(np.sqrt(smoothness.mean() * squares.mean() / (smoothness * squares).mean()))


def risk(table: Table, model: Any) -> float:
    """Mean training loss of a fitted model: logistic, or half the squared error."""
    raw = table.X_train @ model.coef_.ravel() + np.ravel(model.intercept_)[0]
    if table.task == "regression":
        return float(np.mean((raw - table.y_train) ** 2) / 2)
    return float(-log_expit(np.where(table.y_train == 1, raw, -raw)).mean())


def test_score(table: Table, model: Any) -> float:
    """AUC or R2 on test records."""
    if table.task == "regression":
        return float(r2_score(table.y_test, model.predict(table.X_test)))
    return float(roc_auc_score(table.y_test, model.decision_function(table.X_test)))


def passes(model: Any) -> float:
    """Releases of a fit, each as much of a pass as the share of the records that it reads; expected."""
    return float(sum(line.count * line.sampling_rate for line in model.privacy_report_.releases))


def markdown(contents: dict[str, Any]) -> str:
    """Return the excess risks, and the prediction of the theorem for importance sampling.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.

    Returns
    -------
    str
        Markdown.
    """
    heads = ["table", "epsilon", "solver", "excess risk", "AUC or R2", "passes", "seconds"]
    lines = [ABOUT.format(**contents["settings"]), row(heads), row(["---"] * len(heads))]
    for record in contents["records"]:
        excess, score, seconds = (float(np.median(record[key])) for key in ("excess_risk", "score", "seconds"))
        cells = [record["table"], f"{record['epsilon']:g}", record["solver"], f"{excess:.3g}"]
        lines.append(row([*cells, f"{score:.3f}", f"{record['passes']:.0f}", f"{seconds:.2f}"]))
    lines += ["", RATIOS, row(["table", "ratio"]), row(["---"] * 2)]
    return "\n".join([*lines, *(row([name, f"{ratio:.3g}"]) for name, ratio in contents["bound_ratios"].items())])


def draw(contents: dict[str, Any], path: Path) -> None:
    """Plot excess risks by solver, medians and ranges; nothing where matplotlib is missing.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.
    path : Path
        PNG file.
    """
    records = contents["records"]
    tables = list(dict.fromkeys(record["table"] for record in records))
    picture = figure(figsize=(9, 3.3 * math.ceil(len(tables) / 2)))
    if picture is None:
        return
    for place, table in enumerate(tables):
        axes = picture.add_subplot(math.ceil(len(tables) / 2), 2, place + 1)
        draw_table(axes, [record for record in records if record["table"] == table])
        axes.set(title=table, xlabel="excess risk", xscale="log")
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.grid(axis="x", which="both", alpha=0.3)
        if place == 0:
            picture.legend(loc="outside lower center", ncols=len(EPSILONS))
    picture.savefig(path, dpi=100)


def draw_table(axes: Any, records: list[dict[str, Any]]) -> None:
    """Plot the excess risks of one table, a line per solver."""
    solvers = list(dict.fromkeys(record["solver"] for record in records))
    for number, epsilon in enumerate(dict.fromkeys(record["epsilon"] for record in records)):
        chosen = {record["solver"]: record["excess_risk"] for record in records if record["epsilon"] == epsilon}
        low, middle, high = np.quantile([chosen[solver] for solver in solvers], (0, 0.5, 1), axis=1)
        heights = np.arange(len(solvers)) + 0.2 * number
        axes.errorbar(middle, heights, xerr=(middle - low, high - middle), fmt="o", markersize=5, label=f"epsilon {epsilon:g}")
    axes.set_yticks(range(len(solvers)), solvers)
    axes.invert_yaxis()
