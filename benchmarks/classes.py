"""Measure the probabilities of classifiers of several classes, beside those of a constant and of models without privacy."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.counts import BANK, BIKE, MOST, TEST, categories
from benchmarks.noise import noise_of
from benchmarks.tables import data_directory, existing
from benchmarks.writing import made_with, row, write_json
from skdp import DPAdditiveClassifier, DPGradientBoostingClassifier, DPLogisticRegression
from skdp.privacy.budget import Budget
from skdp.solvers import signal_to_noise

__all__ = ["MODELS", "TABLES", "compare"]

RARE = 100  # records of a class that are so few that parts of 3000 may have none
CELLS = (("zero_out", 0.1), ("zero_out", 0.5), ("zero_out", 1.0), ("zero_out", 3.0), ("replace_one", 1.0))
MODELS = {"linear": DPLogisticRegression, "additive": DPAdditiveClassifier, "boosted": DPGradientBoostingClassifier}
ABOUT = """\
Held-out log loss of classifiers of three to twelve classes, in brackets the best factor of the logarithms of their probabilities:
below 1 they are too sure, above 1 not sure enough. Medians over {repeats} fits with the same seeds; delta = {delta}; columns are
learned inside the budget; at most {most} training records; no classes of less than 100 records. "constant" is the log loss of the
frequencies of the training part; "GLM" is LogisticRegression on one-hot and numeric columns, "HGB" is
HistGradientBoostingClassifier with early stopping, both without privacy. "r1" is epsilon 1 with `replace_one`; all others are
`zero_out`. A star marks what is not below the constant. `python -m benchmarks classes` writes this page.
"""


@dataclass(frozen=True)
class ClassTable:
    """Hold a table of records of several classes.

    Parameters
    ----------
    X : DataFrame
        Columns in their own units and types.
    y : ndarray
        Labels.
    n_train : int
        Records of the training part, which come first; at most `TEST` of the others are tested.
    """

    X: pd.DataFrame
    y: np.ndarray
    n_train: int

    @property
    def train(self) -> tuple[pd.DataFrame, np.ndarray]:
        """The training part."""
        return self.X[: self.n_train], self.y[: self.n_train]

    def scores(self, model: Any, prepared: Callable[[pd.DataFrame], pd.DataFrame] = lambda X: X) -> dict[str, float]:
        """Return log loss, accuracy, and the factor of the logarithms of probabilities at which the log loss is least."""
        part = slice(self.n_train, self.n_train + TEST)
        y, found = self.y[part], model.predict_proba(prepared(self.X[part]))
        logs = np.log(np.maximum(found, 1e-15))

        def loss(factor: float) -> float:
            return float(log_loss(y, np.exp(log_softmax(factor * logs, axis=1)), labels=model.classes_))

        factor = minimize_scalar(loss, bounds=(0.05, 5.0), method="bounded").x
        accuracy = accuracy_score(y, model.classes_[found.argmax(axis=1)])
        return {"log_loss": round(loss(1.0), 5), "accuracy": round(float(accuracy), 5), "factor": round(float(factor), 4)}

    @property
    def constant(self) -> float:
        """Log loss of the frequencies of the training part."""
        labels, counts = np.unique(self.train[1], return_counts=True)
        y = self.y[self.n_train : self.n_train + TEST]
        return round(float(log_loss(y, np.tile(counts / counts.sum(), (len(y), 1)), labels=labels)), 5)


def shuffled(frame: pd.DataFrame, target: str, most: int = MOST, without: tuple[str, ...] = ()) -> ClassTable:
    """Return a table in an order of a seed; three quarters of it are for training, and at most ``most`` records."""
    frame = frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
    return ClassTable(frame.drop(columns=[target, *without]), frame[target].to_numpy(), min(most, 3 * len(frame) // 4))


def read(file: str, target: str, most: int = MOST, without: tuple[str, ...] = ()) -> ClassTable:
    """Return a public table without classes of which it has less than `RARE` records."""
    frame = pd.read_csv(existing(data_directory() / file))
    return shuffled(frame.groupby(target).filter(lambda part: len(part) >= RARE), target, most, without)


def covertype() -> ClassTable:
    """Return the records of seven types of forest."""
    with np.load(existing(data_directory() / "covertype_subset.npz")) as archive:
        frame = pd.DataFrame(archive["X"], columns=archive["feature_names"].astype(str))
        return shuffled(frame.assign(cover=archive["cover_type"]), "cover")


# `relationship` tells marital status, and `temp` repeats `atemp`.
ADULT = "adult.csv.gz", "marital-status"
TABLES: dict[str, Callable[[], ClassTable]] = {
    "bike, weather (3)": lambda: read(BIKE, "weathersit", without=("dteday", "instant")),
    "adult, marital status (6)": lambda: read(*ADULT, without=("split", "relationship")),
    "adult, marital status, 3000": lambda: read(*ADULT, 3000, without=("split", "relationship")),
    "bank, job (12)": lambda: read(BANK, "job"),
    "bank, job, 3000": lambda: read(BANK, "job", 3000),
    "covertype (7)": covertype,
}


def private(table: ClassTable, model: str, adjacency: str, epsilon: float, seed: int) -> dict[str, float]:
    """Return the test scores of a fit; the seed is that of our noise."""
    X, y = table.train
    facts: dict[str, Any] = {"delta": 1 / len(y) ** 2, "adjacency": adjacency, "classes": np.unique(y), "schema": "learn"}
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        return table.scores(MODELS[model](epsilon, **facts, random_state=seed).fit(X, y))


def exact(table: ClassTable) -> dict[str, dict[str, float]]:
    """Return the test scores of both models without privacy."""
    X, y = table.train
    texts = [name for name in X if X[name].dtype.kind not in "biuf"]
    one_hot = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), remainder=StandardScaler(), sparse_threshold=0.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear = make_pipeline(one_hot, LogisticRegression(max_iter=500)).fit(X, y)
        trees = HistGradientBoostingClassifier(early_stopping=True, random_state=0).fit(categories(X), y)
        return {"GLM": table.scores(linear), "HGB": table.scores(trees, categories)}


def compare(tables: list[str], models: list[str], repeats: int, jobs: int | None, out: Path) -> None:
    """Measure; write ``classes.json`` and ``classes.md`` after each table.

    Parameters
    ----------
    tables : list of str
        Out of ``TABLES``.
    models : list of str
        Out of ``MODELS``.
    repeats : int
        Fits per cell, with the seeds 0, 1, and so on.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    """
    settings = {"delta": "1 / n_train**2", "repeats": repeats, "most": MOST}
    results: dict[str, Any] = {**made_with(), "settings": settings, "records": []}
    for name in tables:
        table = TABLES[name]()
        about = {"table": name, "n_train": table.n_train, "constant": table.constant, **exact(table)}
        for model in models:
            cells = []
            for adjacency, epsilon in CELLS:
                fits = Parallel(jobs)(delayed(private)(table, model, adjacency, epsilon, seed) for seed in range(repeats))
                signal = signal_to_noise(Budget(epsilon, 1 / table.n_train**2, adjacency), table.n_train)
                cells.append({"adjacency": adjacency, "epsilon": epsilon, "signal": round(signal, 1), "fits": fits})
            results["records"].append({**about, "model": model, "cells": cells})
            write_json(results, out / "classes.json")
            (out / "classes.md").write_text(markdown(results), encoding="utf-8")
            print(f"{model}, {name}: done", flush=True)


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
    cells = [(record, cell) for record in results["records"] for cell in record["cells"]]
    above = [(record, cell) for record, cell in cells if median_of(cell, "log_loss") >= record["constant"]]
    faint = max((cell["signal"] for _, cell in above), default=0.0)
    lines = ["# Several classes", "", ABOUT.format(**results["settings"])]
    lines += [
        f"Of {len(cells)} cells, {len(cells) - len(above)} are below the constant"
        + (f"; the largest signal s = mu n / k of the others is {faint:.0f}." if above else "."),
        "",
    ]
    for title, shown in ("Log loss", _log_loss), ("Accuracy", lambda cell, record: f"{median_of(cell, 'accuracy'):.3f}"):
        heads = ["table", "n", "model", *(f"{'r1 ' * (a == 'replace_one')}{epsilon:g}" for a, epsilon in CELLS), "GLM", "HGB"]
        heads += ["constant"] * (shown is _log_loss)
        lines += [f"## {title}", "", row(heads), row(["---"] * len(heads))]
        for record in results["records"]:
            free = [shown({"fits": [record[name]]}, record) for name in ("GLM", "HGB")]
            constant = [f"{record['constant']:.3f}"] * (shown is _log_loss)
            private_cells = [shown(cell, record) for cell in record["cells"]]
            lines.append(row([record["table"], str(record["n_train"]), record["model"], *private_cells, *free, *constant]))
        lines.append("")
    return "\n".join(lines)


def median_of(cell: dict[str, Any], score: str) -> float:
    """Return the median score of the fits of a cell."""
    return median(one[score] for one in cell["fits"])


def _log_loss(cell: dict[str, Any], record: dict[str, Any]) -> str:
    loss = median_of(cell, "log_loss")
    return f"{loss:.3f} ({median_of(cell, 'factor'):.2f}){'*' * (loss >= record['constant'])}"
