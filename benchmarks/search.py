"""Compare a private search with the untuned default and with the best candidate, all under one budget."""

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline

from benchmarks.tables import Table, load
from benchmarks.writing import made_with, row, write_json
from skdp import DPAdditiveClassifier, DPGradientBoostingClassifier, DPLogisticRegression
from skdp.model_selection import DPGridSearchCV

__all__ = ["CANDIDATES", "SEARCHED", "measure"]

SEARCHED = ("adult", "bank", "mammography", "california")
DEFAULT = DPLogisticRegression(data_norm=1.0)
# Public threshold above which a district of california is of class 1, in units of the target: 180 000 dollars.
EXPENSIVE = -0.28
CANDIDATES: dict[str, list[Any]] = {
    "3-estimators": [DEFAULT, DPAdditiveClassifier(feature_bounds=(-1, 1)), DPGradientBoostingClassifier(feature_bounds=(-1, 1))],
    "8-constants": [
        DEFAULT,
        *(clone(DEFAULT).set_params(alpha=alpha) for alpha in (1e-4, 1e-3, 1e-2, 1e-1)),
        *(clone(DEFAULT).set_params(clip_norm=clip_norm) for clip_norm in (0.25, 0.5, 2.0)),
    ],
    "30-constants": [
        clone(DEFAULT).set_params(alpha=alpha, clip_norm=clip_norm)
        for alpha, clip_norm in product((None, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), (None, 0.25, 0.5, 1.0, 2.0))
    ],
}
ABOUT = """\
Medians of the exact test AUC, with fresh noise and a fresh division of the training records in each repetition{records}.
`{adjacency}`, delta = 1 / n², `DPGridSearchCV` with its defaults: composition with a refit for three candidates, random stopping
with eight trials in the mean for more. California has two classes here, above and below 180 000 dollars.

- **default**: `DPLogisticRegression` with the whole budget.
- **search**: the model that the search returns, with the same budget for all.
- **oracle**: the candidate with the largest median, each with the whole budget. It is not private, and it is a little too good,
  because it is chosen on the test records.
- **better**: share of the repetitions in which the search is better than the default.
"""


def measure(tables: list[str], kinds: list[str], given: dict[str, Any], repeats: int, out: Path) -> None:
    """Measure; write ``search.json`` and ``search.md`` after each search.

    Parameters
    ----------
    tables, kinds : list of str
        Out of ``SEARCHED`` and ``CANDIDATES``.
    given : dict
        The keys epsilons, adjacency, n_records (None for all) and seed.
    repeats : int
        Searches per cell.
    out : Path
        Directory.
    """
    found: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    found |= {cell: [] for cell in product(tables, kinds, given["epsilons"])}
    read = {name: two_classes(load(name), given["n_records"]) for name in tables}
    for repeat, cell in product(range(repeats), found):
        name, kind, epsilon = cell
        found[cell].append(repetition(read[name], CANDIDATES[kind], epsilon, given["adjacency"], given["seed"] + repeat))
        done = ((of, summary(runs)) for of, runs in found.items() if runs)
        records = [{"table": t, "candidates": k, "epsilon": e, **medians} for (t, k, e), medians in done]
        write_json({**made_with(), "settings": given, "records": records}, out / "search.json")
        (out / "search.md").write_text(markdown(records, given), encoding="utf-8")
        print(f"{name}, {kind}, epsilon {epsilon:g}: {len(found[cell])} of {repeats}", flush=True)


def two_classes(table: Table, n_records: int | None) -> Table:
    """Return the table with two classes and with at most so many training records; parts of tables are in random order."""
    X, y, y_test = table.X_train, table.y_train, table.y_test
    if table.task == "regression":
        y, y_test = (y > EXPENSIVE).astype(int), (y_test > EXPENSIVE).astype(int)
    chosen = np.random.default_rng(0).permutation(len(y))[:n_records]
    return Table(X[chosen], y[chosen], table.X_test, y_test)


def repetition(table: Table, models: list[Any], epsilon: float, adjacency: str, seed: int) -> dict[str, Any]:
    """Return the test AUC of each candidate with the whole budget, and of the search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [auc(clone(model).set_params(epsilon=epsilon, adjacency=adjacency), table) for model in models]
        search = DPGridSearchCV(
            Pipeline([("model", DEFAULT)]), {"model": models}, epsilon=epsilon, adjacency=adjacency, random_state=seed
        )
        return {"alone": alone, "search": auc(search, table), "chosen": int(getattr(search, "best_index_", -1))}


def auc(model: Any, table: Table) -> float:
    """Return the test AUC of a fit, and that of a constant for a search that draws no trial."""
    try:
        model.fit(table.X_train, table.y_train)
    except RuntimeError:
        return 0.5
    return float(roc_auc_score(table.y_test, model.predict_proba(table.X_test)[:, 1]))


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of the repetitions."""
    alone, searched = np.array([run["alone"] for run in runs]), np.array([run["search"] for run in runs])
    medians = np.median(alone, axis=0)
    return {
        "repeats": len(runs),
        "default": float(medians[0]),
        "search": float(np.median(searched)),
        "oracle": float(medians.max()),
        "best": int(medians.argmax()),
        "better": float((searched > alone[:, 0]).mean()),
        "chosen": [run["chosen"] for run in runs],
    }


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the page."""
    n_records = settings["n_records"]
    some = "" if n_records is None else f"; at most {n_records} training records, drawn once"
    measures = ("default", "search", "oracle")
    lines = [row(heads := ["table", "candidates", "epsilon", *measures, "better", "repeats"]), row(["---"] * len(heads))]
    for record in records:
        about = [record["table"], record["candidates"], f"{record['epsilon']:g}"]
        scores = [f"{record[name]:.4f}" for name in measures]
        lines.append(row([*about, *scores, f"{record['better']:.2f}", str(record["repeats"])]))
    return "\n".join(["# Private searches", "", ABOUT.format(**settings, records=some), *lines]) + "\n"
