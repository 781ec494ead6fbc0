"""Compare naive Bayes with logistic regression on sparse tables, beside diffprivlib's GaussianNB and MultinomialNB."""

import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import normalize

from benchmarks.noise import noise_of
from benchmarks.tables import data_directory, existing
from benchmarks.wide_tables import reuters
from benchmarks.writing import made_with, row, write_json
from skdp import DPLogisticRegression, DPMultinomialNB
from skdp.privacy.budget import ADJACENCIES

__all__ = ["TABLES", "compare"]

EPSILONS = (0.1, 0.5, 1.0, 3.0)
MOST_DENSE = 1000  # features for which diffprivlib is run: each of them is a loop of its own, for each class
ABOUT = """\
# Naive Bayes and sparse rows

Area under the ROC curve on held-out records. Rows have length 1. Medians of {repeats} fits; delta = 1 / n**2, diffprivlib has
pure epsilon. reuters set the constant of `DPMultinomialNB`; the others were in view. GaussianNB of diffprivlib gets
the bounds 0 and 1 of each feature; on reuters it was not run. `python -m benchmarks text` writes this page.
"""

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def _reuters() -> Split:
    table = reuters(1.0)
    X, test = (part.tocsr()[:, :-1] for part in (table.X, table.X_test))  # without the column of ones
    return normalize(X), table.y, normalize(test), table.y_test


def _of_file(name: str, label: Callable[[np.ndarray], np.ndarray], words: Callable[[np.ndarray], np.ndarray]) -> Split:
    with np.load(existing(data_directory() / f"{name}.npz")) as stored:
        X, y = sparse.csr_array(normalize(words(stored["X"].astype(np.float64)))), label(stored["y"].astype(int))
        train = stored["split"] == "train" if "split" in stored else np.random.default_rng(0).random(len(y)) < 0.7
    return X[train], y[train], X[~train], y[~train]


#: Training and test part of each table.
TABLES: dict[str, Callable[[], Split]] = {
    "reuters, money-fx": _reuters,
    "spambase, words": lambda: _of_file("spambase", lambda y: y, lambda X: np.log1p(X[:, :54])),
    "a9a": lambda: _of_file("a9a", lambda y: y, lambda X: X),
    "mnist, 3 or not": lambda: _of_file("mnist_test", lambda y: (y == 3).astype(int), lambda X: X / 255),
}


def _theirs(epsilon: float) -> Any:
    from diffprivlib.models import GaussianNB

    return GaussianNB(epsilon=epsilon, bounds=(0.0, 1.0))


def _cell(model: Callable[[], Any], split: Split, repeats: int, is_dense: bool = False) -> float:
    X, y, X_test, y_test = split
    scores = []
    for seed in range(repeats):
        with noise_of(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model().fit(X.toarray() if is_dense else X, y)
            scores.append(roc_auc_score(y_test, fitted.predict_proba(X_test.toarray() if is_dense else X_test)[:, 1]))
    return median(scores)


def compare(tables: list[str], repeats: int, out: Path) -> None:
    """Measure all cells; write text.json and text.md.

    Parameters
    ----------
    tables : list of str
        Names in `TABLES`.
    repeats : int
        Fits per cell.
    out : Path
        Directory.
    """
    lines = [row(["table", "n x d", "adjacency", "model", *map(str, EPSILONS), "without noise"]), row(["---"] * 9)]
    results = []
    for name in tables:
        split = TABLES[name]()
        exact = _cell(MultinomialNB, split, 1)
        for adjacency in ADJACENCIES:
            models: dict[str, Callable[[float], Any]] = {
                "DPMultinomialNB": partial(DPMultinomialNB, adjacency=adjacency),
                "DPLogisticRegression": partial(DPLogisticRegression, adjacency=adjacency, data_norm=1.0),
            }
            if split[0].shape[1] <= MOST_DENSE and adjacency == "replace_one" and importlib.util.find_spec("diffprivlib"):
                models["GaussianNB of diffprivlib"] = _theirs
            for model, made in models.items():
                is_theirs = made is _theirs
                scores = [_cell(partial(made, epsilon), split, repeats, is_theirs) for epsilon in EPSILONS]
                shape = "{} x {}".format(*split[0].shape)
                lines.append(row([name, shape, adjacency, model, *(f"{score:.3f}" for score in scores), f"{exact:.3f}"]))
                print(lines[-1], flush=True)
                results.append(
                    {
                        "table": name,
                        "adjacency": adjacency,
                        "model": model,
                        "auc": dict(zip(map(str, EPSILONS), scores, strict=True)),
                    }
                )
    out.mkdir(parents=True, exist_ok=True)
    write_json({**made_with(), "repeats": repeats, "results": results}, out / "text.json")
    (out / "text.md").write_text(ABOUT.format(repeats=repeats) + "\n" + "\n".join(lines) + "\n")
