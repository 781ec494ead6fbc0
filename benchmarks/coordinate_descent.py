"""Coordinate methods where the columns have very different scales: numbers as they were measured, beside zeros and ones.

The numeric columns are centred at the middle of their public range and not scaled, and the solvers are given the bounds. The
excess risk is the mean training loss less that of the minimum, without a penalty worth the name.
"""

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks import bounds
from benchmarks.tables import Table, data_directory, existing, one_hot, published_split, random_split, read_npz
from benchmarks.writing import figure, made_with, row, write_json
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.solvers import BlockCoordinateDescent, Solver

__all__ = ["EPSILONS", "RAW_TABLES", "compare"]

EPSILONS = (0.1, 1.0)
ADJACENCY = "replace_one"
ABOUT = """\
Means over {repeats} fits at each epsilon, {adjacency}, all else by default. Numeric columns are centred and not scaled;
`feature_bounds` are their public ranges. The excess risk is that of the training loss over its minimum. A step on some columns
counts as their share of a pass. The last solver first learns the scales privately: what `solver="auto"` takes.
"""


@dataclass(frozen=True)
class RawTable:
    """A table in its own units.

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


RAW_TABLES: dict[str, Callable[[Path], RawTable]] = {
    "adult": raw_adult,
    "covertype": raw_covertype,
    "california": raw_california,
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
    """A solver, and the share of the coordinates that a step moves, on average."""

    solver: str | Solver
    share: float = 1.0


def contestants(raw: RawTable) -> dict[str, Contestant]:
    """What is compared, by name."""
    d = raw.feature_bounds.size + 1  # the intercept is a coordinate, too, and a block of its own
    learnt = "standardized_gd" if raw.table.task == "classification" else "whitened_gd"
    by_blocks = BlockCoordinateDescent("blocks", blocks=raw.blocks)
    return {
        "skgd uniform": Contestant(BlockCoordinateDescent("uniform"), 1 / d),
        "skgd importance": Contestant(BlockCoordinateDescent("importance"), 1 / d),
        "skgd nice": Contestant(BlockCoordinateDescent("nice"), round(math.sqrt(d)) / d),
        "skgd blocks": Contestant(by_blocks, 1 / (len(raw.blocks) + 1)),
        "skgd full": Contestant(BlockCoordinateDescent("full")),
        "gd": Contestant("gd"),
        "sgd": Contestant("sgd"),
        learnt: Contestant(learnt),
    }


def compare(tables: list[str], repeats: int, out: Path) -> list[dict[str, Any]]:
    """Measure excess risks; write JSON, Markdown and a plot.

    Parameters
    ----------
    tables : list of str
        Out of ``RAW_TABLES``.
    repeats : int
        Fits per cell.
    out : Path
        Directory of ``coordinates.json``, ``coordinates.md`` and ``coordinates.png``.

    Returns
    -------
    list of dict
        A record per table, epsilon and solver.
    """
    records = [record for name in tables for record in measured(name, repeats)]
    settings = {"adjacency": ADJACENCY, "repeats": repeats}
    write_json({**made_with(), "settings": settings, "records": records}, out / "coordinates.json")
    (out / "coordinates.md").write_text(markdown(records, settings), encoding="utf-8")
    draw(records, out / "coordinates.png")
    return records


def measured(name: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Records of one table."""
    raw = RAW_TABLES[name](data_directory())
    table, kind = raw.table, DPLogisticRegression if raw.table.task == "classification" else DPLinearRegression
    given = {"feature_bounds": raw.feature_bounds, "adjacency": ADJACENCY}
    given |= {"target_bounds": (-1, 1)} if kind is DPLinearRegression else {}
    best = least_risk(raw)
    for solver, (chosen, share) in contestants(raw).items():
        for epsilon in EPSILONS:
            fits = [fitted(kind(epsilon, solver=chosen, random_state=seed, **given), table) for seed in range(repeats)]
            excess = [risk(table, model) - best for model, _ in fits]
            about = {"table": name, "epsilon": epsilon, "solver": solver, "passes": share * passes(fits[0][0])}
            scores = [test_score(table, model) for model, _ in fits]
            times = [seconds for _, seconds in fits]
            yield about | {"excess_risk": mean(excess), "excess_risks": excess, "score": mean(scores), "seconds": mean(times)}
        print(f"{name}: {solver}", flush=True)


def fitted(model: Any, table: Table) -> tuple[Any, float]:
    """A fitted model, and the seconds that it took."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.asfortranarray(table.X_train), table.y_train)
    return model, time.perf_counter() - start


def least_risk(raw: RawTable) -> float:
    """Smallest training loss, of columns over their bounds, which have the same minimum."""
    table, model = raw.table, LinearRegression()
    if table.task == "classification":
        model = LogisticRegression(C=1e6, tol=1e-8, max_iter=10_000)
    scaled = Table(table.X_train / raw.feature_bounds, table.y_train, table.X_test, table.y_test, table.task)
    return risk(scaled, model.fit(scaled.X_train, scaled.y_train))


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


def mean(values: list[float]) -> float:
    """Mean as a Python number."""
    return float(np.mean(values))


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    heads = ["table", "epsilon", "solver", "excess risk", "AUC or R2", "passes", "seconds"]
    lines = [row(heads), row(["---"] * len(heads))]
    for record in records:
        cells = [record["table"], f"{record['epsilon']:g}", record["solver"], f"{record['excess_risk']:.3g}"]
        lines.append(row([*cells, f"{record['score']:.3f}", f"{record['passes']:.0f}", f"{record['seconds']:.2f}"]))
    return "\n".join(["# Coordinate methods", "", ABOUT.format(**settings), *lines]) + "\n"


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Plot excess risks by solver; nothing where matplotlib is missing."""
    tables = list(dict.fromkeys(record["table"] for record in records))
    picture = figure(figsize=(4.2 * len(tables), 3.8))
    if picture is None:
        return
    for place, table in enumerate(tables):
        axes = picture.add_subplot(1, len(tables), place + 1)
        names = list(dict.fromkeys(record["solver"] for record in records if record["table"] == table))
        for epsilon in EPSILONS:
            chosen = {r["solver"]: r["excess_risk"] for r in records if (r["table"], r["epsilon"]) == (table, epsilon)}
            axes.plot([chosen[name] for name in names], range(len(names)), "o", label=f"epsilon {epsilon:g}")
        axes.set(title=table, xlabel="excess risk", xscale="log", yticks=range(len(names)), yticklabels=names)
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.grid(axis="x", which="both", alpha=0.3)
        axes.invert_yaxis()
        if place == 0:
            picture.legend(loc="outside lower center", ncols=len(EPSILONS))
    picture.savefig(path)
