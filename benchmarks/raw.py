"""Compare models on raw tables, whose columns are learned inside the budget, with the same models and public schemas."""

import functools
import math
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from joblib import Parallel, delayed
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks import additive
from benchmarks.additive import Case
from benchmarks.noise import noise_of
from benchmarks.raw_frames import CHANGES, TYPES, Change, RawFrame, load_raw, made_up
from benchmarks.raw_page import markdown
from benchmarks.tables import Table
from benchmarks.writing import made_with, write_json
from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLinearRegression, DPLogisticRegression
from skdp.privacy.accounting.gaussian_dp import gaussian_mu

__all__ = ["DEVELOPMENT", "VALIDATION", "compare"]

DEVELOPMENT, VALIDATION = ("adult", "bike", "ijcnn1", "spambase"), ("bank", "california", "mammography", "covertype")
EPSILONS = (0.1, 0.5, 1.0, 3.0)
K = {"zero_out": 1.0, "replace_one": math.sqrt(2.0)}
TARGET = 4  # columns that the range of the target counts as
KINDS = {
    ("linear", "classification"): DPLogisticRegression,
    ("linear", "regression"): DPLinearRegression,
    ("additive", "classification"): DPAdditiveClassifier,
    ("additive", "regression"): DPAdditiveRegressor,
}
CHANGED_EPSILONS, TYPED_ROWS = (0.1, 1.0), 8000
SIZES, SIZES_EPSILONS, SIZES_TEST = (500, 1000, 2000, 5000), (0.5, 1.0, 3.0), 6000
SHAPES = ((2000, 10), (20_000, 10), (20_000, 200))  # of made-up tables
Fit = Callable[[Any, float, str, int], float]


def learned(table: RawFrame, epsilon: float, adjacency: str, seed: int, model: str = "linear") -> float:
    """Return the test score of a model that learns the columns of a raw table."""
    made = KINDS[model, table.task](epsilon, delta=table.delta, adjacency=adjacency, schema="learn")
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        made.fit(table.X_train, table.y_train)
        if table.task == "regression":
            return float(r2_score(table.y_test, made.predict(table.X_test)))
        return float(roc_auc_score(table.y_test, made.decision_function(table.X_test)))


def with_schema(case: Case, epsilon: float, adjacency: str, seed: int, model: str = "linear") -> float:
    """Return the test score of the same model with the public schema of the table."""
    scores = additive.MODELS[model](case, epsilon, seed, adjacency=adjacency)
    return scores.get("auc", scores.get("clipped_r2"))


def with_scales(table: Table, epsilon: float, adjacency: str, seed: int) -> float:
    """Return the test score of a linear model on prepared rows."""
    model = DPLogisticRegression(epsilon, delta=1 / len(table.y_train) ** 2, adjacency=adjacency, data_norm=1, classes=[0, 1])
    return additive.fit_and_score(model, table, seed)["auc"]


MODELS: dict[str, Fit] = {name: functools.partial(learned, model=name) for name in ("linear", "additive")}


def compare(tables: list[str], models: list[str], repeats: int, jobs: int | None, out: Path, parts: Iterable[str] = ()) -> None:
    """Measure; write ``raw.json`` and ``raw.md``.

    Parameters
    ----------
    tables : list of str
        Out of `benchmarks.frames.FRAMES`.
    models : list of str
        Out of ``MODELS``.
    repeats : int
        Fits per cell. Both ways of a cell have the seeds 0, 1, and so on.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    parts : iterable of str, default=()
        What is measured besides the whole tables: "changes", "types", "sizes", "made up".
    """
    settings = {"delta": "1 / n_train**2", "repeats": repeats}
    results: dict[str, Any] = {**made_with(), "settings": settings, "whole": [], **{part: [] for part in parts}}
    for name in tables:
        raw, case = load_raw(name), Case.of(name)
        for part, run in PARTS.items():
            if part == "whole" or part in parts:
                results[part] += [{"table": name, **record} for record in run(raw, case, models, repeats, jobs)]
        save(results, out)
        print(f"{name}: done", flush=True)
    if "made up" in parts:
        results["made up"] = list(measured_made_up(repeats, jobs))
    save(results, out)


def save(results: dict[str, Any], out: Path) -> None:
    """Write both files."""
    write_json(results, out / "raw.json")
    (out / "raw.md").write_text(markdown(results), encoding="utf-8")


def whole(raw: RawFrame, case: Case, models: list[str], repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Return records of whole tables, by adjacency, epsilon and model."""
    records = []
    for model in models:
        for adjacency in K:
            for epsilon in EPSILONS:
                about = {"model": model, "adjacency": adjacency, "epsilon": epsilon, "s": signal(raw, epsilon, adjacency)}
                schema = functools.partial(with_schema, model=model)
                pair = {"learned": (MODELS[model], raw), "schema": (schema, case)}
                records.append(about | fitted(pair, epsilon, adjacency, repeats, jobs))
    return records


def changes(raw: RawFrame, case: Case, models: list[str], repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Return records of tables whose numbers are changed."""
    return changed(raw, CHANGES, repeats, jobs)


def types(raw: RawFrame, case: Case, models: list[str], repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Return records of the same cells in other types."""
    return changed(raw.subset(TYPED_ROWS, TYPED_ROWS, 0), {"none": CHANGES["none"], **TYPES}, repeats, jobs)


def changed(raw: RawFrame, by: dict[str, Change], repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Return records of linear models on changed tables."""
    records = []
    for name, change in by.items():
        table = raw.changed(change)
        for epsilon in CHANGED_EPSILONS:
            about = {"change": name, "adjacency": "zero_out", "epsilon": epsilon}
            records.append(about | fitted({"learned": (learned, table)}, epsilon, "zero_out", repeats, jobs))
    return records


def sizes(raw: RawFrame, case: Case, models: list[str], repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Return records of small parts of a table, another one for each seed."""
    records = []
    for n_train in SIZES:
        if n_train > len(raw.y_train):
            continue
        pairs = [(raw.subset(n_train, SIZES_TEST, seed), case.subset(n_train, seed)) for seed in range(repeats)]
        for epsilon in SIZES_EPSILONS:
            about = {"n_train": n_train, "adjacency": "zero_out", "epsilon": epsilon}
            pair = {"learned": (learned, [raw for raw, _ in pairs]), "schema": (with_schema, [case for _, case in pairs])}
            records.append(about | fitted(pair, epsilon, "zero_out", repeats, jobs))
    return records


def measured_made_up(repeats: int, jobs: int | None) -> Iterable[dict[str, Any]]:
    """Yield records of made-up tables, beside an oracle that knows their scales."""
    for heavy in (False, True):
        for n_train, n_columns in SHAPES:
            pairs = [made_up(n_train, n_columns, heavy, seed) for seed in range(repeats)]
            for epsilon in SIZES_EPSILONS:
                kind = "exp(3 z)" if heavy else "z"
                about = {"columns": kind, "n_train": n_train, "d": n_columns, "adjacency": "zero_out", "epsilon": epsilon}
                pair = {"learned": (learned, [raw for raw, _ in pairs]), "schema": (with_scales, [known for _, known in pairs])}
                yield about | fitted(pair, epsilon, "zero_out", repeats, jobs)


def fitted(pair: dict[str, tuple[Any, Any]], epsilon: float, adjacency: str, repeats: int, jobs: int | None) -> dict[str, Any]:
    """Return the scores of both ways with the same seeds, and the seconds of the slower fits of a cell."""
    record: dict[str, Any] = {}
    for way, (run, table) in pair.items():
        tables = table if isinstance(table, list) else [table] * repeats
        found = Parallel(jobs)(delayed(timed)(run, one, epsilon, adjacency, seed) for seed, one in enumerate(tables))
        record |= {way: [round(score, 5) for score, _ in found], f"{way} seconds": round(median(taken for _, taken in found), 3)}
    return record


def timed(run: Fit, table: Any, epsilon: float, adjacency: str, seed: int) -> tuple[float, float]:
    """Return the score of a fit, and the seconds of fit and prediction."""
    start = time.perf_counter()
    return run(table, epsilon, adjacency, seed), time.perf_counter() - start


def signal(raw: RawFrame, epsilon: float, adjacency: str) -> float:
    """Return s, the signal over the noise of a bin, to three digits."""
    n, d = raw.X_train.shape
    d += TARGET * (raw.task == "regression")
    return float(f"{gaussian_mu(epsilon, raw.delta) * n / (K[adjacency] * math.sqrt(d)):.3g}")


PARTS = {"whole": whole, "changes": changes, "types": types, "sizes": sizes}
OTHERS = (*(part for part in PARTS if part != "whole"), "made up")
