"""Compare boosted models with additive ones and with trees without privacy, and what chooses a family with all of them."""

import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks import additive, network, raw
from benchmarks.additive import Case, fit_and_score, installed, trees
from benchmarks.noise import noise_of
from benchmarks.raw_frames import load_raw
from benchmarks.raw_page import error
from benchmarks.writing import made_with, row, write_json
from skdp import DPGradientBoostingClassifier, DPGradientBoostingRegressor, DPTabularClassifier, DPTabularRegressor
from skdp.estimators.boosting._rule import rule_of
from skdp.solvers import signal_to_noise

__all__ = ["DEVELOPMENT", "VALIDATION", "compare"]

DEVELOPMENT, VALIDATION = ("adult", "bike", "ijcnn1", "covertype"), ("bank", "california", "mammography", "spambase")
EPSILONS = (0.5, 1.0, 3.0)  # of models with a public schema
RAW_EPSILONS = (0.1, 0.5, 1.0, 3.0)
ADJACENCIES = ("zero_out", "replace_one")
BOOSTED = {"classification": DPGradientBoostingClassifier, "regression": DPGradientBoostingRegressor}
TABULAR = {"classification": DPTabularClassifier, "regression": DPTabularRegressor}
ABOUT = """\
Medians over {repeats} fits with the same seeds; delta = {delta}. Scores are AUC, and R2 for bike and california, of the test
records. The first table has models with the public schema of each data set: "way" is the share of the way from the additive
model to HistGradientBoosting with its defaults, which has no privacy. In the second table nothing about the columns is known
beforehand, and they are learned inside the budget: "short" is the best family's median less that of DPTabularClassifier or
DPTabularRegressor. The constants of trees were chosen on adult, bike, ijcnn1 and covertype, and where trees begin for classes
on mammography, too; the choice between linear and additive models was made on adult, bike, ijcnn1 and spambase. bank and
california have set no constant. "±" is the standard error of a median, as of a normal distribution.
"""
NETWORK = """\
"network" has a hidden layer of {hidden} units and is trained by DP-SGD on the rows that the schema makes. Its sampling rate,
number and length of steps and clip norm are the best of {settings} for the test records of each cell, which costs it nothing.
"DP-EBM" is interpret's private boosting with its defaults, for tables that differ by a whole record. In {below} of {cells} cells
both are below the boosted model, or below the additive one where there are no trees.
"""


COMPARISON = """\
A private comparison of linear and additive models would need fits of both, each with at most half of the squared budget, which is
about .7 of epsilon. In 10 fits at .7 of epsilon, medians fell from .925 to .914 (linear) and from .931 to .897 (additive) on
spambase at .1, zero_out, and from .654 to .654 and from .668 to .637 on california at .5, replace_one, where the wrong choice
costs most. The comparison would cost more than the choice by public facts.
"""


def with_schema(case: Case, epsilon: float, adjacency: str, seed: int) -> dict[str, float]:
    """Return the test scores of both models with the public schema of a table."""
    table, budget = case.frame.table, {"delta": case.delta, "adjacency": adjacency, "random_state": seed}
    scores = additive.MODELS["additive"](case, epsilon, seed, adjacency=adjacency)
    if table.task == "regression":
        model: Any = DPGradientBoostingRegressor(epsilon, target_bounds=(-1, 1), schema=case.frame.schema, **budget)
    else:
        facts = {"columns": case.frame.schema["columns"]}
        model = DPGradientBoostingClassifier(epsilon, classes=[0, 1], schema=facts, **budget)
    return {"additive": scores.get("auc", scores.get("clipped_r2")), "boosted": fitted(model, table, seed)}


def of_peers(case: Case, epsilon: float, adjacency: str, seeds: range, ebm: bool) -> dict[str, list[float]]:
    """Return the test scores of others: a network with the best settings for this table, and DP-EBM, of ``zero_out`` alone."""
    settings = network.tuned(case, epsilon, adjacency)
    found = {"network": [network.score(case, epsilon, adjacency, settings, seed) for seed in seeds]}
    if ebm and adjacency == "zero_out":
        scores = [additive.boosted(case, epsilon, seed) for seed in seeds]
        found["DP-EBM"] = [one.get("auc", one.get("clipped_r2", 0.0)) for one in scores]
    return {name: [round(one, 5) for one in scores] for name, scores in found.items()}


def from_raw(table: Any, epsilon: float, adjacency: str, seed: int) -> dict[str, float]:
    """Return the test scores of all families, and of the estimator that chooses, on a raw table."""
    kinds = {name: raw.KINDS[name, table.task] for name in ("linear", "additive")}
    kinds |= {"boosted": BOOSTED[table.task], "tabular": TABULAR[table.task]}
    budget = {"delta": table.delta, "adjacency": adjacency, "random_state": seed}
    return {name: fitted(kind(epsilon, **budget), table, seed) for name, kind in kinds.items()}


def fitted(model: Any, table: Any, seed: int) -> float:
    """Return the test score of a fit; the seed is that of our noise."""
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        model.fit(table.X_train, table.y_train)
        if table.task == "regression":
            return float(r2_score(table.y_test, model.predict(table.X_test)))
        return float(roc_auc_score(table.y_test, model.decision_function(table.X_test)))


def compare(tables: list[str], repeats: int, jobs: int | None, out: Path) -> None:
    """Measure; write ``boosting.json`` and ``boosting.md``.

    Parameters
    ----------
    tables : list of str
        Out of `benchmarks.frames.FRAMES`.
    repeats : int
        Fits per cell, with the seeds 0, 1, and so on.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    """
    settings = {"delta": "1 / n_train**2", "repeats": repeats}
    results: dict[str, Any] = {**made_with(), "settings": settings, "schema": [], "raw": []}
    cells, ebm = [(epsilon, adjacency) for epsilon in EPSILONS for adjacency in ADJACENCIES], installed("interpret")
    for name in tables:
        case, table = Case.of(name), load_raw(name)
        ceiling = fit_and_score(trees(case), case.frame.table)
        best = round(ceiling.get("auc", ceiling.get("clipped_r2", 0.0)), 5)
        peers = Parallel(jobs)(delayed(of_peers)(case, *cell, range(repeats), ebm) for cell in cells)
        others = dict(zip(cells, peers, strict=True))
        for part, run, given, epsilons in (("schema", with_schema, case, EPSILONS), ("raw", from_raw, table, RAW_EPSILONS)):
            for epsilon in epsilons:
                for adjacency in ADJACENCIES:
                    found = Parallel(jobs)(delayed(run)(given, epsilon, adjacency, seed) for seed in range(repeats))
                    scores = {model: [round(one[model], 5) for one in found] for model in found[0]}
                    about = {"table": name, "epsilon": epsilon, "adjacency": adjacency}
                    if part == "schema":
                        about |= {"not private": best, "trees": has_trees(case, epsilon, adjacency), **others[epsilon, adjacency]}
                    results[part].append({**about, **scores})
        print(f"{name}: done", flush=True)
        write_json(results, out / "boosting.json")
        (out / "boosting.md").write_text(markdown(results), encoding="utf-8")


def has_trees(case: Case, epsilon: float, adjacency: str) -> bool:
    """Return whether public facts allow trees."""
    budget = (
        DPGradientBoostingClassifier(epsilon, delta=case.delta, adjacency=adjacency)._task().budget(len(case.prepared.y_train))
    )
    signal = signal_to_noise(budget, len(case.prepared.y_train))
    return rule_of(signal, len(additive.columns(case)), case.prepared.task != "regression") is not None


def markdown(results: dict[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    results : dict
        What the JSON holds.

    Returns
    -------
    str
        Markdown.
    """
    heads = ["table", "epsilon", "adjacency", "DP-EBM", "network", "additive", "boosted", "gain", "not private", "way"]
    lines = [
        "# Boosted models",
        "",
        ABOUT.format(**results["settings"]),
        "## With public schemas",
        "",
        of_others(results["schema"]),
    ]
    lines += [row(heads), row(["---"] * len(heads)), *map(of_schema, results["schema"]), "", "## Raw tables", "", COMPARISON]
    lines += [text for note in results.get("notes", []) for text in (note, "")]
    heads = ["table", "epsilon", "adjacency", "linear", "additive", "boosted", "tabular", "short"]
    return "\n".join([*lines, row(heads), row(["---"] * len(heads)), *map(of_raw, results["raw"]), ""])


def of_others(records: list[dict[str, Any]]) -> str:
    """Return what the columns of others are, and in how many cells these are below ours."""
    best = [max(median(record[other]) for other in ("network", "DP-EBM") if other in record) for record in records]
    ours = [median(record["boosted" if record["trees"] else "additive"]) for record in records]
    below = sum(one < other for one, other in zip(best, ours, strict=True))
    return NETWORK.format(hidden=network.HIDDEN, settings=len(network.GRID), below=below, cells=len(records))


def of_schema(record: dict[str, Any]) -> str:
    """Return a line of the first table."""
    lower, upper, best = median(record["additive"]), median(record["boosted"]), record["not private"]
    gains = np.subtract(record["boosted"], record["additive"])
    texts = [record["table"], str(record["epsilon"]), record["adjacency"]]
    texts += [shown(record[model]) if model in record else "" for model in ("DP-EBM", "network", "additive")]
    if not record["trees"]:
        return row([*texts, "no trees", "", f"{best:.3f}", ""])
    way = f"{(upper - lower) / (best - lower):.0%}"
    return row([*texts, shown(record["boosted"]), f"{median(gains.tolist()):+.4f} ± {error(gains):.4f}", f"{best:.3f}", way])


def of_raw(record: dict[str, Any]) -> str:
    """Return a line of the second table."""
    models = ("linear", "additive", "boosted", "tabular")
    short = max(median(record[model]) for model in models) - median(record["tabular"])
    facts = [record["table"], str(record["epsilon"]), record["adjacency"]]
    return row([*facts, *(shown(record[model]) for model in models), f"{short:.4f}"])


def shown(scores: list[float]) -> str:
    """Return a median with its error."""
    return f"{median(scores):.4f} ± {error(scores):.4f}"
