"""The area under the ROC curve by saddle problems: does variance reduction beat plain steps, for linear scorers and networks?"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from benchmarks.tables import Table, data_directory, load, read_npz
from benchmarks.writing import figure, made_with, row, write_json
from skdp import DPAUCMaximizer, DPLogisticRegression
from skdp.preprocessing import RowNormClipper
from skdp.solvers import PrivateDiff

__all__ = ["NETWORK_TABLE", "TABLES", "compare", "digit_groups"]

TABLES = ("mammography", "spambase", "bank", "ijcnn1", "adult")
NETWORK_TABLE = "mnist groups"
EPSILONS = {"linear": (0.1, 0.5, 1.0, 3.0), "network": (0.5, 1.0, 5.0, 10.0)}
ADJACENCY = "zero_out"
RATE = 0.1  # of positive training records among the digits
GROUP_SEED = 8  # of the classes of digits in each group, and of the records that are left out
Build = Callable[..., Any]


def short_rows(**given: Any) -> Any:
    """Linear scores of rows that are scaled down to length 1."""
    return make_pipeline(RowNormClipper(1.0), DPAUCMaximizer(data_norm=1.0, **given))


LINEAR: dict[str, Build] = {
    "auto": partial(DPAUCMaximizer, data_norm=1.0),
    **{f"auto, balance {balance:g}": partial(DPAUCMaximizer, data_norm=1.0, class_balance=balance) for balance in (0.5, 1.0)},
    **{solver: partial(DPAUCMaximizer, data_norm=1.0, solver=solver) for solver in ("sgda", "privatediff", "moments")},
    "DPLogisticRegression": partial(DPLogisticRegression, data_norm=1.0),
}
# What as long a search found for privatediff as for sgda, on other groups of digits and other records; sgda's are its defaults
SEARCHED = PrivateDiff(restart_share=0.8, primal_clip_norm=4.0, output="last")
NETWORK: dict[str, Build] = {
    "mlp, sgda": partial(DPAUCMaximizer, scorer="mlp", solver="sgda"),
    "mlp, privatediff": partial(DPAUCMaximizer, scorer="mlp", solver=SEARCHED),
    "linear, auto": short_rows,
}
ABOUT = """\
Median AUC on test records over {repeats} fits with different seeds ({network_repeats} of networks), and quartiles; {adjacency},
delta = 1/n², rows of length 1 at most (for networks pixels in [0, 1]), all else by default, nothing chosen on the test records.
"sgda" and "privatediff" solve the least-squares saddle problem, by plain steps and with differences of gradients; "auto" is the
logistic loss on standardised features. For networks "privatediff" has the constants of a search as long as that of "sgda".
"""


def compare(tables: list[str], repeats: int, network_repeats: int, jobs: int | None, out: Path) -> list[dict[str, Any]]:
    """Measure; write JSON, Markdown and a plot.

    Parameters
    ----------
    tables : list of str
        Out of ``TABLES`` and ``NETWORK_TABLE``.
    repeats, network_repeats : int
        Fits per cell, of linear scorers and of networks.
    jobs : int or None
        Processes.
    out : Path
        Directory of ``minimax.json``, ``minimax.md`` and ``minimax.png``.

    Returns
    -------
    list of dict
        A record per table, epsilon and model.
    """
    records = []
    for name in tables:
        kind = "network" if name == NETWORK_TABLE else "linear"
        table = digit_groups(data_directory()) if kind == "network" else load(name)
        times = network_repeats if kind == "network" else repeats
        records += measured(name, table, NETWORK if kind == "network" else LINEAR, EPSILONS[kind], times, jobs)
    ceilings = [record for record in records if record["epsilon"] is None]
    settings = {"adjacency": ADJACENCY, "repeats": repeats, "network_repeats": network_repeats}
    write_json({**made_with(), "settings": settings, "records": records}, out / "minimax.json")
    (out / "minimax.md").write_text(markdown(records, settings), encoding="utf-8")
    draw([record for record in records if record not in ceilings], ceilings, out / "minimax.png")
    return records


def digit_groups(directory: Path) -> Table:
    """Handwritten digits (MNIST) in two random groups of five classes; a tenth of the training records are of the second.

    Parameters
    ----------
    directory : Path
        Where the data sets are.

    Returns
    -------
    Table
        Pixels in [0, 1]; test records of both groups as published.
    """
    rng = np.random.default_rng(GROUP_SEED)
    positive = rng.permutation(10)[:5]
    parts = [read_npz(directory / f"mnist_{part}.npz")[:2] for part in ("train", "test")]
    (X, y), (X_test, y_test) = ((X / 255, np.isin(y, positive).astype(int)) for X, y in parts)
    others = np.flatnonzero(y == 0)
    chosen = rng.choice(np.flatnonzero(y), round(others.size * RATE / (1 - RATE)), replace=False)
    kept = np.sort(np.concatenate([others, chosen]))
    return Table(X[kept], y[kept], X_test, y_test)


def measured(
    name: str, table: Table, models: dict[str, Build], epsilons: tuple[float, ...], repeats: int, jobs: int | None
) -> list[dict[str, Any]]:
    """Records of one table; those without privacy have an epsilon of None."""
    cells = [(model, epsilon) for model in models for epsilon in epsilons]
    tasks = [(models[model], epsilon, seed) for model, epsilon in cells for seed in range(repeats)]
    free = [(model, build) for model, build in models.items() if model.startswith("mlp")]
    found = Parallel(jobs)(delayed(fit)(build, epsilon, seed, table) for build, epsilon, seed in tasks)
    records = [
        summary(name, model, epsilon, found[place * repeats : (place + 1) * repeats])
        for place, (model, epsilon) in enumerate(cells)
    ]
    records += [summary(name, f"{model}, not private", None, [fit(build, np.inf, 0, table)]) for model, build in free]
    records.append(summary(name, "LogisticRegression, not private", None, [scored(LogisticRegression(max_iter=2000), table)]))
    print(f"{name}: done", flush=True)
    return records


def fit(build: Build, epsilon: float, seed: int, table: Table) -> tuple[float, float]:
    """AUC of one fit, and its seconds."""
    given = {"epsilon": epsilon, "adjacency": ADJACENCY, "delta": 1 / len(table.y_train) ** 2}
    return scored(build(random_state=seed, **given), table)


def scored(model: Any, table: Table) -> tuple[float, float]:
    """AUC on test records, and the seconds of the fit."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table.X_train, table.y_train)
    seconds = time.perf_counter() - start
    return float(roc_auc_score(table.y_test, model.decision_function(table.X_test))), seconds


def summary(table: str, model: str, epsilon: float | None, found: list[tuple[float, float]]) -> dict[str, Any]:
    """One record."""
    scores, seconds = np.array(found).T
    low, median, high = np.quantile(scores, [0.25, 0.5, 0.75]).tolist()
    about = {"table": table, "model": model, "epsilon": epsilon, "median": median, "quartiles": [low, high]}
    return about | {"scores": scores.tolist(), "seconds": float(np.median(seconds))}


def paired(records: list[dict[str, Any]], table: str, epsilon: float) -> tuple[float, float] | None:
    """Mean of privatediff less sgda in a cell, and its standard error; None where one is missing."""
    cell = {record["model"].split(", ")[-1]: np.array(record["scores"]) for record in records if in_cell(record, table, epsilon)}
    if not {"sgda", "privatediff"} <= set(cell) or cell["sgda"].size < 2:
        return None
    mean = float(cell["privatediff"].mean() - cell["sgda"].mean())
    return mean, float(np.sqrt(sum(cell[name].var(ddof=1) / cell[name].size for name in ("sgda", "privatediff"))))


def in_cell(record: dict[str, Any], table: str, epsilon: float | None) -> bool:
    """Whether a record is of a table and an epsilon."""
    return record["table"] == table and record["epsilon"] == epsilon


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the tables as Markdown."""
    lines = ["# Saddle problems for the area under the ROC curve", "", ABOUT.format(**settings)]
    for table in dict.fromkeys(record["table"] for record in records):
        own = [record for record in records if record["table"] == table]
        epsilons = [epsilon for epsilon in dict.fromkeys(record["epsilon"] for record in own) if epsilon is not None]
        lines += [f"## {table}", "", row(["model", *(f"epsilon {epsilon:g}" for epsilon in epsilons), "seconds"])]
        lines.append(row(["---"] * (len(epsilons) + 2)))
        for model in dict.fromkeys(record["model"] for record in own if record["epsilon"] is not None):
            cells = [record for record in own if record["model"] == model]
            lines.append(row([model, *map(shown, cells), f"{np.median([cell['seconds'] for cell in cells]):.2g}"]))
        found = [paired(own, table, epsilon) for epsilon in epsilons]
        if all(found):
            lines.append(row(["privatediff - sgda", *(f"{mean:+.4f} ± {error:.4f}" for mean, error in filter(None, found)), ""]))
        free = ", ".join(f"{record['model']} {record['median']:.4f}" for record in own if record["epsilon"] is None)
        lines += ["", f"Without privacy: {free}.", ""]
    return "\n".join(lines)


def shown(record: dict[str, Any]) -> str:
    """A cell in words."""
    low, high = record["quartiles"]
    return f"{record['median']:.4f} ({low:.4f} to {high:.4f})"


def draw(records: list[dict[str, Any]], ceilings: list[dict[str, Any]], path: Path) -> None:
    """Plot AUC against epsilon; nothing where matplotlib is missing."""
    tables = list(dict.fromkeys(record["table"] for record in records))
    width = min(len(tables), 3)
    picture = figure(figsize=(4.0 * width, 3.4 * -(-len(tables) // width) + 0.6))
    if picture is None:
        return
    styles = {model: f"C{number}" for number, model in enumerate(dict.fromkeys(record["model"] for record in records))}
    handles = {}
    for place, table in enumerate(tables):
        axes = picture.add_subplot(-(-len(tables) // width), width, place + 1)
        for model, colour in styles.items():
            own = [record for record in records if record["table"] == table and record["model"] == model]
            if own:
                epsilons, medians = ([record[key] for record in own] for key in ("epsilon", "median"))
                low, high = np.array([record["quartiles"] for record in own]).T
                handles[model] = axes.plot(epsilons, medians, marker="o", markersize=3, color=colour, label=model)[0]
                axes.fill_between(epsilons, low, high, color=colour, alpha=0.15, linewidth=0)
        for record in ceilings:
            if record["table"] == table:
                handles["not private"] = axes.axhline(record["median"], color="grey", linestyle=":", label="not private")
        axes.set(title=table, xlabel="epsilon", ylabel="test AUC", xscale="log")
    picture.legend(handles.values(), handles, loc="outside lower center", ncols=4)
    picture.savefig(path)
