"""The area under the ROC curve by saddle problems: does variance reduction beat plain steps, for networks and linear scorers?

What Zhang et al. (2025) compare: networks on handwritten digits in two random groups of classes, balanced and with a tenth of the
training records in the second one, at their epsilons, here with the accounting of the library. Along the way of some fits
`benchmarks.minimax_paths` measures the gradient of the primal function and how far the solver's estimates of gradients are off.
"""

import math
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

from benchmarks.minimax_paths import WatchedMaximizer, Witness
from benchmarks.noise import noise_of
from benchmarks.tables import Table, data_directory, load, read_npz
from benchmarks.writing import figure, row
from skdp import DPAUCMaximizer, DPLogisticRegression
from skdp.preprocessing import RowNormClipper
from skdp.solvers import SGDA, PrivateDiff

__all__ = ["draw", "markdown", "measure"]

TABLES = ("mammography", "spambase", "bank", "ijcnn1")
GROUPS = {"digits, balanced": 0.5, "digits, a tenth positive": 0.1}  # share of positive training records
EPSILONS = {"linear": (0.1, 0.5, 1.0, 3.0), "network": (0.5, 1.0, 5.0, 10.0)}
REPEATS, QUICK_REPEATS = {"linear": 10, "network": 2}, {"linear": 2, "network": 1}
ADJACENCY = "zero_out"
GROUP_SEED = 8  # of the classes of digits in each group, and of the records that are left out
SIZE, QUICK_SIZE = None, 4000  # training digits; None takes as many as there are with a tenth positive
HIDDEN, QUICK_HIDDEN = (256, 128), (64, 32)  # units of the network; the former are the paper's
BATCH, PASSES = 2048, 10  # records in a sample, on average, and passes over the table
WATCHED, PLACES = (1.0, 10.0), 8  # epsilons at which the first fit is observed, and number of observations
Build = Callable[..., Any]


def short_rows(**given: Any) -> Any:
    """Linear scores of rows that are scaled down to length 1."""
    return make_pipeline(RowNormClipper(1.0), DPAUCMaximizer(data_norm=1.0, **given))


def network(solver: Any, hidden: tuple[int, ...], kind: type[DPAUCMaximizer] = DPAUCMaximizer, **given: Any) -> Any:
    """Scores of a network."""
    return kind(scorer="mlp", hidden_layer_sizes=hidden, solver=solver, **given)


LINEAR: dict[str, Build] = {
    "auto": partial(DPAUCMaximizer, data_norm=1.0),
    "auto, balance 1": partial(DPAUCMaximizer, data_norm=1.0, class_balance=1.0),
    **{solver: partial(DPAUCMaximizer, data_norm=1.0, solver=solver) for solver in ("sgda", "privatediff", "moments")},
    "DPLogisticRegression": partial(DPLogisticRegression, data_norm=1.0),
}
# What as long a search found for privatediff as for sgda, on other groups of digits and other records; sgda's are its defaults
SEARCHED = {"restart_share": 0.8, "primal_clip_norm": 4.0, "output": "last"}
NETWORK: dict[str, Callable[[int, tuple[int, ...]], Build]] = {  # of the number of steps, and hidden layers
    "mlp, sgda": lambda n_steps, hidden: partial(network, SGDA(n_steps, batch_size=BATCH), hidden),
    "mlp, privatediff": lambda n_steps, hidden: partial(network, PrivateDiff(n_steps, batch_size=BATCH, **SEARCHED), hidden),
    "linear, auto": lambda n_steps, hidden: short_rows,
}
ABOUT = """\
AUC on test records, medians over {linear_repeats} fits with different seeds ({network_repeats} of networks) and quartiles;
{adjacency}, delta = 1/n^2, rows of length 1 at most (for networks pixels in [0, 1]), all else by default, nothing chosen on the
test records. Networks have hidden layers of {hidden} units, samples of {batch} records on average, and {passes} passes.

"sgda" and "privatediff" solve the least-squares saddle problem, by plain steps and with differences of gradients; "auto" is the
logistic loss on standardised features. For networks "privatediff" has the constants of a search as long as that of "sgda", which
were both made at 20 passes, on other groups of digits."""
ALONG = """\
Fits with seed 0. "Primal gradient": norm of the gradient of the primal function (the objective at its best dual variable) over
all training records, first and last of {places} places. "Squared error": squared distance of the estimate that a step uses from
the exact mean of clipped gradients at that point, mean of two steps one after the other, median over the places; "samples" is the
part of it that plain samples of so many records would have. The benchmark works this out, outside of any guarantee."""


def measure(quick: bool, jobs: int | None) -> dict[str, Any]:
    """Measure the AUC of all models on all tables, and observe some networks during the fit.

    Parameters
    ----------
    quick : bool
        Whether two minutes are all there is.
    jobs : int or None
        Processes.

    Returns
    -------
    dict
        A record per table, model and epsilon (None without privacy); a path per network that is watched.
    """
    size, hidden, repeats = (QUICK_SIZE, QUICK_HIDDEN, QUICK_REPEATS) if quick else (SIZE, HIDDEN, REPEATS)
    records, paths = [], []
    for name, rate in GROUPS.items():
        found = digits(name, digit_groups(data_directory(), rate, size), hidden, repeats["network"], jobs)
        records += found[0]
        paths += found[1]
    for name in TABLES[:1] if quick else TABLES:
        records += scorers(name, load(name), repeats["linear"], jobs)
    settings = {
        **{"adjacency": ADJACENCY, "delta": "1 / n**2", "hidden": hidden, "batch": BATCH, "passes": PASSES},
        **{"linear_repeats": repeats["linear"], "network_repeats": repeats["network"], "places": PLACES, "privatediff": SEARCHED},
    }
    return {"settings": settings, "records": records, "paths": paths}


def digit_groups(directory: Path, rate: float, size: int | None = None) -> Table:
    """Handwritten digits (MNIST) in two random groups of five classes.

    Parameters
    ----------
    directory : Path
        Where the data sets are.
    rate : float
        Share of the second group in the training records.
    size : int or None, default=None
        Number of training records; None takes as many as all of the first group make with a tenth of the second.

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
    size = round(others.size / 0.9) if size is None else size
    chosen = rng.choice(np.flatnonzero(y), round(size * rate), replace=False)
    kept = np.sort(np.concatenate([chosen, rng.choice(others, size - chosen.size, replace=False)]))
    return Table(X[kept], y[kept], X_test, y_test)


def scorers(name: str, table: Table, repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Records of linear scorers on one table."""
    cells = [(model, epsilon) for model in LINEAR for epsilon in EPSILONS["linear"]]
    tasks = (delayed(fit)(LINEAR[model], epsilon, seed, table) for model, epsilon in cells for seed in range(repeats))
    found = Parallel(jobs)(tasks)
    records = [
        summary(name, model, epsilon, found[place * repeats : (place + 1) * repeats])
        for place, (model, epsilon) in enumerate(cells)
    ]
    print(f"{name}: done", flush=True)
    return [*records, plain(name, table)]


def digits(
    name: str, table: Table, hidden: tuple[int, ...], repeats: int, jobs: int | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Records of networks on one table, and their paths; without privacy there is one fit of each."""
    cells = [(model, epsilon) for model in NETWORK for epsilon in EPSILONS["network"]]
    cells += [(model, math.inf) for model in NETWORK if model.startswith("mlp")]
    tasks = [(*cell, seed) for cell in cells for seed in range(1 if math.isinf(cell[1]) else repeats)]
    found = Parallel(jobs)(delayed(network_fit)(*task, hidden, table) for task in tasks)
    told = list(zip(tasks, found, strict=True))
    records = [summary(name, *cell, [score for task, (score, _) in told if task[:2] == cell]) for cell in cells]
    paths = [
        {"table": name, "model": model, "epsilon": finite(epsilon), **path} for (model, epsilon, _), (_, path) in told if path
    ]
    print(f"{name}: done", flush=True)
    return [*records, plain(name, table)], paths


def network_fit(
    model: str, epsilon: float, seed: int, hidden: tuple[int, ...], table: Table
) -> tuple[tuple[float, float], dict[str, Any] | None]:
    """Return AUC and seconds of a network, and its path if it is observed."""
    n_samples = len(table.y_train)
    n_steps = math.ceil(PASSES * n_samples / BATCH)
    build = NETWORK[model](n_steps, hidden)
    if seed or model.startswith("linear") or epsilon not in (*WATCHED, math.inf):
        return fit(build, epsilon, seed, table), None
    witness = Witness(table, n_steps, BATCH / n_samples, PLACES)

    def watched(**given: Any) -> Any:
        estimator = build(kind=WatchedMaximizer, **given)
        estimator.witness = witness
        return estimator

    score, seconds = fit(watched, epsilon, seed, table)
    return (score, seconds - witness.seconds), witness.found


def plain(name: str, table: Table) -> dict[str, Any]:
    """Record of scikit-learn's logistic regression."""
    return summary(name, "LogisticRegression", math.inf, [scored(LogisticRegression(max_iter=2000), table)])


def fit(build: Build, epsilon: float, seed: int, table: Table) -> tuple[float, float]:
    """AUC of one fit, and its seconds."""
    given = {"epsilon": epsilon, "adjacency": ADJACENCY, "delta": 1 / len(table.y_train) ** 2}
    return scored(build(**given), table, seed)


def scored(model: Any, table: Table, seed: int | None = None) -> tuple[float, float]:
    """AUC on test records, and the seconds of the fit."""
    start = time.perf_counter()
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        model.fit(table.X_train, table.y_train)
    seconds = time.perf_counter() - start
    return float(roc_auc_score(table.y_test, model.decision_function(table.X_test))), seconds


def finite(epsilon: float) -> float | None:
    """Return it as JSON has it: None without privacy."""
    return None if math.isinf(epsilon) else epsilon


def summary(table: str, model: str, epsilon: float, found: list[tuple[float, float]]) -> dict[str, Any]:
    """One record."""
    scores, seconds = np.array(found).T
    low, median, high = np.quantile(scores, [0.25, 0.5, 0.75]).tolist()
    about = {"table": table, "model": model, "epsilon": finite(epsilon), "median": median, "quartiles": [low, high]}
    return about | {"scores": scores.tolist(), "seconds": float(np.median(seconds))}


def paired(records: list[dict[str, Any]], epsilon: float) -> tuple[float, float] | None:
    """Mean of privatediff less sgda on one table, and its standard error; None where one is missing or was fitted once."""
    cell = {record["model"].split(", ")[-1]: np.array(record["scores"]) for record in records if record["epsilon"] == epsilon}
    if not {"sgda", "privatediff"} <= set(cell) or cell["sgda"].size < 2:
        return None
    mean = float(cell["privatediff"].mean() - cell["sgda"].mean())
    return mean, float(np.sqrt(sum(cell[name].var(ddof=1) / cell[name].size for name in ("sgda", "privatediff"))))


def markdown(contents: dict[str, Any]) -> str:
    """Return a table of AUC per data set, and one of what was measured along the way.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.

    Returns
    -------
    str
        Markdown.
    """
    settings, records = contents["settings"], contents["records"]
    hidden = " and ".join(map(str, settings["hidden"]))
    lines = [ABOUT.format(**{**settings, "hidden": hidden}), ""]
    for table in dict.fromkeys(record["table"] for record in records):
        lines += scores([record for record in records if record["table"] == table])
    heads = ["table", "epsilon", "solver", "primal gradient", "squared error", "of it samples", "AUC of the last iterate"]
    lines += ["## Along the way", "", ALONG.format(**settings), "", row(heads), row(["---"] * len(heads))]
    return "\n".join([*lines, *map(along, contents["paths"])])


def scores(own: list[dict[str, Any]]) -> list[str]:
    """Lines about one table."""
    epsilons = [epsilon for epsilon in dict.fromkeys(record["epsilon"] for record in own) if epsilon is not None]
    lines = [f"## {own[0]['table']}", "", row(["model", *(f"epsilon {epsilon:g}" for epsilon in epsilons), "seconds"])]
    lines.append(row(["---"] * (len(epsilons) + 2)))
    for model in dict.fromkeys(record["model"] for record in own if record["epsilon"] is not None):
        cells = [record for record in own if record["model"] == model and record["epsilon"] is not None]
        lines.append(row([model, *map(shown, cells), f"{np.median([cell['seconds'] for cell in cells]):.2g}"]))
    found = [paired(own, epsilon) for epsilon in epsilons]
    if all(found):
        lines.append(row(["privatediff - sgda", *(f"{mean:+.4f} ± {error:.4f}" for mean, error in filter(None, found)), ""]))
    free = ", ".join(f"{record['model']} {record['median']:.4f}" for record in own if record["epsilon"] is None)
    return [*lines, "", f"Without privacy: {free}.", ""]


def shown(record: dict[str, Any]) -> str:
    """Return the text of a cell."""
    low, high = record["quartiles"]
    return f"{record['median']:.4f} ({low:.4f} to {high:.4f})"


def along(path: dict[str, Any]) -> str:
    """Return a line about a fit that was observed."""
    norms, errors = path["gradient_norm"], np.mean(path["squared_error"], axis=1)
    epsilon = "not private" if path["epsilon"] is None else f"{path['epsilon']:g}"
    cells = [f"{norms[0]:.2g} to {norms[-1]:.2g}", f"{np.median(errors):.2g}", f"{np.median(path['sampling']):.2g}"]
    return row([path["table"], epsilon, path["model"].split(", ")[-1], *cells, f"{path['auc'][-1]:.4f}"])


def draw(contents: dict[str, Any], path: Path) -> None:
    """Plot AUC against epsilon, a panel per table, and below what was measured along the way, a row per table of digits.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.
    path : Path
        PNG file.
    """
    records, paths = contents["records"], contents["paths"]
    tables, watched = (list(dict.fromkeys(record["table"] for record in found)) for found in (records, paths))
    above = -(-len(tables) // 3)
    picture = figure(figsize=(12.0, 3.2 * (above + len(watched)) + 0.6))
    if picture is None:
        return
    grid = picture.subplots(above + len(watched), 3, squeeze=False)
    handles: dict[str, Any] = {}
    for axes, table in zip(grid[:above].flat, tables, strict=False):
        draw_scores(axes, [record for record in records if record["table"] == table], handles)
    for axes in grid[:above].flat[len(tables) :]:
        axes.axis("off")
    for line, table in zip(grid[above:], watched, strict=True):
        draw_paths(line, [found for found in paths if found["table"] == table], handles)
    picture.legend(handles.values(), handles, loc="outside lower center", ncols=5)
    picture.savefig(path, dpi=100)


COLOURS = {
    name: f"C{number}"
    for number, name in enumerate(["sgda", "privatediff", "auto", "auto, balance 1", "moments", "DPLogisticRegression"])
}
STYLES = {1.0: "--", 10.0: "-", None: ":"}


def draw_scores(axes: Any, own: list[dict[str, Any]], handles: dict[str, Any]) -> None:
    """One panel of AUC against epsilon."""
    for model in dict.fromkeys(record["model"] for record in own):
        name = model.removeprefix("mlp, ").removeprefix("linear, ")
        private = [record for record in own if record["model"] == model and record["epsilon"] is not None]
        if private:
            epsilons, medians = ([record[key] for record in private] for key in ("epsilon", "median"))
            low, high = np.array([record["quartiles"] for record in private]).T
            handles[name] = axes.plot(epsilons, medians, marker="o", markersize=3, color=COLOURS[name], label=name)[0]
            axes.fill_between(epsilons, low, high, color=COLOURS[name], alpha=0.15, linewidth=0)
        for record in own:
            if record["model"] == model and record["epsilon"] is None:
                colour = COLOURS.get(name, "grey")
                line = axes.axhline(record["median"], color=colour, linestyle=":", linewidth=1)
                if colour == "grey":
                    handles["logistic regression, not private"] = line
    axes.set(title=own[0]["table"], xlabel="epsilon", ylabel="test AUC", xscale="log")
    epsilons = sorted({record["epsilon"] for record in own} - {None})
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def draw_paths(line: Any, own: list[dict[str, Any]], handles: dict[str, Any]) -> None:
    """One row of panels: gradient norm, squared error of the estimates, AUC of the iterates."""
    for path in own:
        name = path["model"].split(", ")[-1]
        look = {"color": COLOURS[name], "linestyle": STYLES[path["epsilon"]], "marker": "o", "markersize": 3}
        errors = np.mean(path["squared_error"], axis=1)
        label = f"{name}, not private" if path["epsilon"] is None else f"{name}, epsilon {path['epsilon']:g}"
        for axes, values in zip(line, (path["gradient_norm"], errors, path["auc"]), strict=True):
            handles[label] = axes.plot(path["step"], values, label=label, **look)[0]
    heads = ("norm of the primal gradient", "squared error of the estimate", "test AUC of the iterate")
    for axes, head in zip(line, heads, strict=True):
        axes.set(title=own[0]["table"], ylabel=head, xlabel="step", yscale="linear" if head == heads[-1] else "log")
        axes.grid(alpha=0.25)
