"""Losses of support vector machines against the logistic loss, privately and not."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from benchmarks.noise import noise_of
from benchmarks.tables import Table, load
from benchmarks.writing import figure, made_with, row, write_json
from skdp import DPLinearSVC, DPLogisticRegression

__all__ = ["TABLES", "compare"]

TABLES = ("adult", "spambase")
EPSILONS = (0.1, 0.5, 1.0, 3.0)
ADJACENCY = "replace_one"
LOSSES = ("huber_hinge", "hinge", "squared_hinge")
MODELS: dict[str, Callable[..., Any]] = {
    **{f"DPLinearSVC, {loss}": lambda loss=loss, **given: DPLinearSVC(loss=loss, **given) for loss in LOSSES},
    "DPLogisticRegression": DPLogisticRegression,
}
ABOUT = """\
Accuracy and AUC on test records, means and standard deviations over {repeats} fits; {adjacency}, `data_norm=1`, all else by
default. Without privacy, scikit-learn's LinearSVC has {ceilings}.
"""


def compare(tables: list[str], repeats: int, out: Path) -> list[dict[str, Any]]:
    """Measure accuracy and AUC; write JSON, Markdown and a plot.

    Parameters
    ----------
    tables : list of str
        Out of ``TABLES``.
    repeats : int
        Fits per cell.
    out : Path
        Directory of ``margins.json``, ``margins.md`` and ``margins.png``.

    Returns
    -------
    list of dict
        A record per table, epsilon and model.
    """
    loaded = {name: load(name) for name in tables}
    records = [record for name, table in loaded.items() for record in measured(name, table, repeats)]
    ceilings = {name: scores(LinearSVC(max_iter=20_000), table) for name, table in loaded.items()}
    settings = {"adjacency": ADJACENCY, "repeats": repeats, "LinearSVC": ceilings}
    write_json({**made_with(), "settings": settings, "records": records}, out / "margins.json")
    (out / "margins.md").write_text(markdown(records, settings), encoding="utf-8")
    draw(records, ceilings, out / "margins.png")
    return records


def measured(name: str, table: Table, repeats: int) -> Iterator[dict[str, Any]]:
    """Records of one table."""
    for model, build in MODELS.items():
        for epsilon in EPSILONS:
            given = {"epsilon": epsilon, "adjacency": ADJACENCY, "data_norm": 1.0}
            found = np.array([scores(build(**given), table, seed) for seed in range(repeats)])
            about = {"table": name, "epsilon": epsilon, "model": model}
            yield (
                about
                | dict(zip(("accuracy", "auc"), found.mean(axis=0).tolist(), strict=True))
                | {"deviation": float(found[:, 0].std(ddof=1)) if repeats > 1 else 0.0}
            )
        print(f"{name}: {model}", flush=True)


def scores(model: Any, table: Table, seed: int | None = None) -> tuple[float, float]:
    """Accuracy and AUC on test records; the seed is that of our noise."""
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        model.fit(table.X_train, table.y_train)
        accuracy = float(model.score(table.X_test, table.y_test))
        return accuracy, float(roc_auc_score(table.y_test, model.decision_function(table.X_test)))


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    ceilings = ", ".join(f"{accuracy:.3f} and {auc:.4f} on {name}" for name, (accuracy, auc) in settings["LinearSVC"].items())
    heads = ["table", "epsilon", "model", "accuracy", "AUC"]
    lines = [row(heads), row(["---"] * len(heads))]
    for record in records:
        accuracy = f"{record['accuracy']:.3f} ± {record['deviation']:.3f}"
        lines.append(row([record["table"], f"{record['epsilon']:g}", record["model"], accuracy, f"{record['auc']:.4f}"]))
    about = ABOUT.format(repeats=settings["repeats"], adjacency=settings["adjacency"], ceilings=ceilings)
    return "\n".join(["# Hinges against the logistic loss", "", about, *lines]) + "\n"


def draw(records: list[dict[str, Any]], ceilings: dict[str, tuple[float, float]], path: Path) -> None:
    """Plot accuracy against epsilon; nothing where matplotlib is missing."""
    picture = figure(figsize=(4.2 * len(ceilings), 3.6))
    if picture is None:
        return
    for place, (table, (ceiling, _)) in enumerate(ceilings.items()):
        axes = picture.add_subplot(1, len(ceilings), place + 1)
        for model in MODELS:
            chosen = [record for record in records if (record["table"], record["model"]) == (table, model)]
            heights, errors = ([record[key] for record in chosen] for key in ("accuracy", "deviation"))
            axes.errorbar([record["epsilon"] for record in chosen], heights, errors, marker="o", label=model)
        axes.axhline(ceiling, color="grey", linestyle=":", label="LinearSVC, not private")
        axes.set(title=table, xlabel="epsilon", xscale="log")
        if place == 0:
            axes.set_ylabel("test accuracy")
            picture.legend(loc="outside lower center", ncols=3)
    picture.savefig(path)
