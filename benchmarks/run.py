"""Fit every method on every table, several times, and collect the test scores."""

import contextlib
import itertools
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score, roc_auc_score

import skdp
from benchmarks import report
from benchmarks.methods import METHODS, Method, reasons_to_skip
from benchmarks.tables import Table, load

__all__ = ["Settings", "run"]

LIBRARIES = ("scikit-learn", "numpy", "scipy", "dp_accounting", "diffprivlib")


@dataclass(frozen=True)
class Settings:
    """What to measure.

    Parameters
    ----------
    tables, methods : list of str
        Names out of ``TABLES`` and ``METHODS``.
    adjacencies : list of str
        Neighbours for which private methods are fitted.
    epsilons : list of float
        Privacy parameters.
    repeats : int
        Fits per cell; methods without privacy are fitted once.
    """

    tables: list[str]
    methods: list[str]
    adjacencies: list[str]
    epsilons: list[float]
    repeats: int


def run(settings: Settings, out: Path) -> dict[str, Any]:
    """Measure, print progress, and write JSON, Markdown and plots after each table.

    Parameters
    ----------
    settings : Settings
        What to measure.
    out : Path
        Directory, created where needed.

    Returns
    -------
    dict
        What the JSON holds.
    """
    out.mkdir(parents=True, exist_ok=True)
    skipped = reasons_to_skip(settings.methods, settings.adjacencies)
    for name, reason in skipped.items():
        print(f"{name} is skipped: {reason}", flush=True)
    available = [name for name in settings.methods if name not in skipped]
    results = header(settings) | {"skipped": skipped, "records": []}
    for name in settings.tables:
        table = load(name)
        records = table_records(name, table, available, settings)
        results["records"] += records
        if not records:
            skipped[name] = f"none of the methods that can run is for {table.task}"
            print(f"{name} is skipped: {skipped[name]}", flush=True)
        report.write(results, out)
        report.plot(records, out / f"accuracy_{name}.png")
    return results


def header(settings: Settings) -> dict[str, Any]:
    """Versions, and settings that do not depend on the machine."""
    public = {"delta": "max(1 / n_train**2, 1e-11)", "data_norm": 1.0, "noise": "secure", "quartiles": [0.25, 0.5, 0.75]}
    return {"versions": versions(), "python": platform.python_version(), "settings": asdict(settings) | public}


def versions() -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found = {"skdp": skdp.__version__}
    for library in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def table_records(name: str, table: Table, methods: list[str], settings: Settings) -> list[dict[str, Any]]:
    """One record per method, adjacency and epsilon."""
    records = []
    for method in (method for method in methods if METHODS[method].task == table.task):
        for adjacency, epsilon in cells(METHODS[method], settings):
            key = {"table": name, "method": method, "adjacency": adjacency, "epsilon": epsilon}
            records.append(key | measure(table, METHODS[method], adjacency, epsilon, settings.repeats))
            print(progress(records[-1]), flush=True)
    return records


def cells(method: Method, settings: Settings) -> Iterator[tuple[str | None, float | None]]:
    """Adjacencies and epsilons that make sense for a method."""
    if not method.private:
        return iter([(None, None)])
    covered = [adjacency for adjacency in settings.adjacencies if adjacency in method.adjacencies]
    return itertools.product(covered, settings.epsilons)


def measure(table: Table, method: Method, adjacency: str | None, epsilon: float | None, repeats: int) -> dict[str, Any]:
    """Quartiles of the scores of fresh fits, and the median time of a fit."""
    n_train, n_features = table.X_train.shape
    delta = max(1 / n_train**2, 1e-11) if method.private else None
    repeats = repeats if method.private else 1
    fits = [fit_and_score(method.build(epsilon, delta, adjacency), table) for _ in range(repeats)]
    values = {name: np.quantile([fit[name] for fit in fits], (0.25, 0.5, 0.75)).round(4).tolist() for name in fits[0]}
    values["fit_seconds"] = values["fit_seconds"][1]
    facts = {"task": table.task, "private": method.private, "n_train": n_train, "n_features": n_features, "repeats": repeats}
    return facts | {"delta": 0.0 if method.pure else delta} | values


def fit_and_score(model: BaseEstimator, table: Table) -> dict[str, float]:
    """Test scores and time of one fit."""
    start = time.perf_counter()
    model.fit(table.X_train, table.y_train)
    seconds = {"fit_seconds": time.perf_counter() - start}
    if table.task == "regression":
        return {"r2": r2_score(table.y_test, model.predict(table.X_test))} | seconds
    rank = model.decision_function if hasattr(model, "decision_function") else lambda X: model.predict_proba(X)[:, 1]
    auc = roc_auc_score(table.y_test, rank(table.X_test))
    return {"accuracy": model.score(table.X_test, table.y_test), "auc": auc} | seconds


def progress(record: dict[str, Any]) -> str:
    """One line about a cell."""
    budget = f"{record['adjacency']} epsilon={record['epsilon']:g}" if record["private"] else "not private"
    reached = f"{report.cell(record)} in {record['fit_seconds']:.2f} s"
    return f"{record['table']} {record['method']} {budget}: {reached}"
