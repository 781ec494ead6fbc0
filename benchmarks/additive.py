"""Compare additive models with linear ones, private boosting and non-private models: scores, small tables, time."""

import functools
import math
import statistics
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import diags_array
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks import additive_page
from benchmarks.additive_reference import EPSILONS
from benchmarks.frames import Frame, load_frame
from benchmarks.noise import noise_of
from benchmarks.resources import milliseconds
from benchmarks.tables import Table, load
from benchmarks.writing import made_with, write_json
from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLinearRegression, DPLogisticRegression
from skdp.estimators.additive._knots import intervals_for_classes
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.solvers import StandardizedGradientDescent

__all__ = ["BOOSTED", "SUBSET_TABLES", "Case", "compare"]

ADJACENCY = "zero_out"
BOOSTED = ("adult", "bank", "mammography")  # tables on which boosting with privacy is fitted
BOOSTED_REPEATS, VARIANT_REPEATS = 3, 6
SUBSET_TABLES = ("adult", "bank", "covertype", "spambase", "ijcnn1")
SUBSET_SIZES, SUBSET_EPSILONS = (1000, 3000), (0.5, 1.0, 3.0)
SUBSET_TEST_ROWS = 10_000
LIGHT, LIGHTER = 0.5, "hats of half the weight"
CEILING_INTERVALS = 8  # between knots, without privacy
Scores = dict[str, float]
Cell = tuple[str, Callable[..., Scores], float, int]  # a model, its fit, epsilon, number of fits


@dataclass(frozen=True)
class Case:
    """Hold one table in both forms.

    Parameters
    ----------
    name : str
        Out of `benchmarks.frames.FRAMES`.
    frame : Frame
        In its own units, with its public facts.
    prepared : Table
        The same records as rows of norm at most 1.
    """

    name: str
    frame: Frame
    prepared: Table

    @classmethod
    def of(cls, name: str) -> "Case":
        """Read a table."""
        return cls(name, load_frame(name), load(name))

    @property
    def delta(self) -> float:
        """The second parameter of the budget."""
        return 1 / len(self.prepared.y_train) ** 2

    def subset(self, n_rows: int, seed: int) -> "Case":
        """Draw training records; keep the first 10 000 test records."""
        chosen = np.random.default_rng(seed).permutation(len(self.prepared.y_train))[:n_rows]
        parts = [rows_of(table, chosen, SUBSET_TEST_ROWS) for table in (self.frame.table, self.prepared)]
        return Case(self.name, replace(self.frame, table=parts[0]), parts[1])

    def signal_per_number(self, epsilon: float) -> float:
        """The signal-to-noise ratio divided by the number of numeric columns: s of the rule."""
        n_numbers = len(AdditiveBasis(Schema.read(self.frame.schema), 0).numbers)
        return gaussian_mu(epsilon, self.delta) * len(self.prepared.y_train) / n_numbers


def rows_of(table: Table, chosen: np.ndarray, n_test: int) -> Table:
    """Return a random part of the training records, and the first test records."""
    at = getattr(table.X_train, "iloc", table.X_train)
    return Table(at[chosen], table.y_train[chosen], table.X_test[:n_test], table.y_test[:n_test], table.task)


def additive(case: Case, epsilon: float, seed: int, **given: Any) -> Scores:
    """Fit our additive model with its defaults."""
    table = case.frame.table
    budget = {"delta": case.delta, "adjacency": ADJACENCY}
    given = {"schema": case.frame.schema, "data_norm": case.frame.data_norm} | budget | given
    if table.task == "regression":
        model = DPAdditiveRegressor(epsilon, target_bounds=(-1, 1), **given)
    else:
        given["schema"] = {"columns": case.frame.schema["columns"]}  # labels are 0 and 1 here
        model = DPAdditiveClassifier(epsilon, classes=[0, 1], **given)
    return fit_and_score(model, table, seed)


def linear(case: Case, epsilon: float, seed: int, **given: Any) -> Scores:
    """Fit our linear model with its defaults, on rows of norm at most 1."""
    given = {"delta": case.delta, "adjacency": ADJACENCY, "data_norm": 1.0} | given
    if case.prepared.task == "regression":
        return fit_and_score(DPLinearRegression(epsilon, target_bounds=(-1, 1), **given), case.prepared, seed)
    return fit_and_score(DPLogisticRegression(epsilon, classes=[0, 1], **given), case.prepared, seed)


def boosted(case: Case, epsilon: float, seed: int) -> Scores:
    """Fit interpret's private boosting; it gets the bounds, missing numbers become their middle, and it learns bins privately."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    facts, table = columns(case), case.frame.table
    types = ["continuous" if column["kind"] == "number" else "nominal" for column in facts.values()]
    bounds = np.array([column.get("bounds", [np.nan, np.nan]) for column in facts.values()], dtype=np.float64)
    given = {"epsilon": epsilon, "delta": case.delta, "random_state": seed, "n_jobs": 1, "privacy_bounds": bounds}
    kind = DPExplainableBoostingClassifier
    if table.task == "regression":
        kind, given = DPExplainableBoostingRegressor, given | {"privacy_target_min": -1.0, "privacy_target_max": 1.0}
    model = kind(list(facts), types, **given)
    middles = {name: sum(column["bounds"]) / 2 for name, column in facts.items() if column["kind"] == "number"}
    X_train, X_test = (part[list(facts)].fillna(middles).astype(object) for part in (table.X_train, table.X_test))
    return fit_and_score(model, Table(X_train, table.y_train, X_test, table.y_test, table.task))


def light_hats(case: Case, epsilon: float, seed: int) -> Scores:
    """Our additive model of classes with hats of half the weight."""
    table, facts = case.frame.table, Schema.read({"columns": case.frame.schema["columns"]})
    basis = AdditiveBasis(facts, 0, length=case.frame.data_norm)
    signal = case.signal_per_number(epsilon) * len(basis.numbers)
    basis = replace(basis, n_intervals=intervals_for_classes(signal, basis))
    weights = np.ones(basis.n_features)
    for term in (term for term in basis.terms if term.names[0] in basis.numbers):
        weights[term.columns.start + 1 : term.columns.stop] = LIGHT
    X_train, X_test = (basis.transform(X) @ diags_array(weights, format="csr") for X in (table.X_train, table.X_test))
    budget = {"delta": case.delta, "adjacency": ADJACENCY, "classes": [0, 1]}
    model = DPLogisticRegression(epsilon, data_norm=math.hypot(1, LIGHT if basis.n_intervals else 0), **budget)
    return fit_and_score(model, Table(X_train, table.y_train, X_test, table.y_test), seed)


MODELS: dict[str, Callable[..., Scores]] = {"linear": linear, "additive": additive}
VARIANTS: dict[str, Callable[..., Scores]] = {
    "100 steps": functools.partial(additive, solver=StandardizedGradientDescent(100)),
    "clip .5": functools.partial(additive, solver=StandardizedGradientDescent(clip=0.5)),
    LIGHTER: light_hats,
}


def columns(case: Case) -> dict[str, Any]:
    """Return the public facts of the feature columns."""
    return {name: column for name, column in case.frame.schema["columns"].items() if column["kind"] != "ignore"}


def fit_and_score(model: Any, table: Table, seed: int | None = None) -> Scores:
    """Return the test scores of a fit; the seed is that of our noise."""
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")  # expected here: large epsilons, too few steps
        model.fit(table.X_train, table.y_train)
        raw = raw_predictions(model, table.X_test, table.task)
    return scored(table.y_test, raw, table.task)


def raw_predictions(model: Any, X: Any, task: str) -> np.ndarray:
    """Return log-odds, or predictions that are not clipped to the bounds of the target."""
    if task == "regression":
        if not hasattr(model, "target_bounds_"):
            return model.predict(X)
        rows = model.basis_.transform(X) if hasattr(model, "basis_") else X
        return rows @ model.coef_ + model.intercept_
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    probability = np.clip(model.predict_proba(X)[:, 1], 1e-15, 1 - 1e-15)
    return np.log(probability) - np.log1p(-probability)


def scored(y: np.ndarray, raw: np.ndarray, task: str) -> Scores:
    """All scores of a task."""
    if task == "regression":
        return {"r2": float(r2_score(y, raw)), "clipped_r2": float(r2_score(y, np.clip(raw, -1, 1)))}
    probability = np.clip(expit(raw), 1e-15, 1 - 1e-15)
    accuracy = float(np.mean((raw > 0) == (y == 1)))
    return {"auc": float(roc_auc_score(y, raw)), "accuracy": accuracy, "log_loss": float(log_loss(y, probability))}


def compare(
    tables: list[str], repeats: int, subset_repeats: int, jobs: int | None, out: Path, timings: int = 5
) -> dict[str, Any]:
    """Measure; write JSON, Markdown and a plot.

    Parameters
    ----------
    tables : list of str
        Out of `benchmarks.frames.FRAMES`.
    repeats, subset_repeats : int
        Fits per cell, of whole tables and of subsets, each of which is another.
    jobs : int or None
        Processes.
    out : Path
        Directory of ``additive.json``, ``additive.md`` and ``additive.png``.
    timings : int, default=5
        Fits of each model whose time is taken, if adult is among the tables.

    Returns
    -------
    dict
        What the JSON holds.
    """
    settings = {"adjacency": ADJACENCY, "delta": "1 / n_train**2", "repeats": repeats, "subset_repeats": subset_repeats}
    results: dict[str, Any] = {
        **made_with(),
        "settings": settings,
        "records": [],
        "tried": [],
        "subsets": [],
        "ceilings": [],
        "speed": {},
    }
    for name in tables:
        case = Case.of(name)
        results["records"] += whole(case, repeats, jobs)
        results["ceilings"] += ceilings(case)
        results["tried"] += tried(case, min(repeats, VARIANT_REPEATS), jobs)
        results["subsets"] += subsets(case, subset_repeats, jobs)
        print(f"{name}: done", flush=True)
        write_json(results, out / "additive.json")
    if "adult" in tables:
        results["speed"] = speed(timings)
    write_json(results, out / "additive.json")
    (out / "additive.md").write_text(additive_page.markdown(results), encoding="utf-8")
    additive_page.draw(results, out / "additive.png")
    return results


def whole(case: Case, repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Records of a whole table."""
    cells: list[Cell] = [(model, run, epsilon, repeats) for model, run in MODELS.items() for epsilon in EPSILONS]
    if case.name in BOOSTED and installed("interpret"):
        cells += [("DP-EBM", boosted, epsilon, min(repeats, BOOSTED_REPEATS)) for epsilon in EPSILONS]
    return measured(case, cells, jobs)


def tried(case: Case, repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Records of other constants."""
    if case.prepared.task == "regression":
        return []
    return measured(case, [(model, run, epsilon, repeats) for model, run in VARIANTS.items() for epsilon in EPSILONS], jobs)


def measured(case: Case, cells: list[Cell], jobs: int | None) -> list[dict[str, Any]]:
    """Return records of cells, which are fitted with the seeds 0, 1, and so on."""
    found = Parallel(jobs)(delayed(run)(case, epsilon, seed) for _, run, epsilon, times in cells for seed in range(times))
    left = iter(found)
    return [
        {"table": case.name, "model": model, "epsilon": epsilon, "signal_per_number": round(case.signal_per_number(epsilon), 2)}
        | gathered([next(left) for _ in range(times)])
        for model, _, epsilon, times in cells
    ]


def subsets(case: Case, repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Return records of small parts of a table, each with its own seed; both models see the same parts."""
    if case.name not in SUBSET_TABLES:
        return []
    records = []
    for size in SUBSET_SIZES:
        parts = [case.subset(size, seed) for seed in range(repeats)]
        for epsilon in SUBSET_EPSILONS:
            about = {"table": case.name, "n_train": size, "epsilon": epsilon}
            about["signal_per_number"] = parts[0].signal_per_number(epsilon)
            for model, run in (MODELS | {LIGHTER: light_hats}).items():
                found = Parallel(jobs)(delayed(run)(part, epsilon, seed) for seed, part in enumerate(parts))
                records.append(about | {"model": model} | gathered(found))
    return records


def gathered(found: list[Scores]) -> dict[str, Any]:
    """Scores of all fits of a cell."""
    return {"scores": {name: [round(fit[name], 5) for fit in found] for name in found[0]}}


def installed(library: str) -> bool:
    """Return whether a library is installed."""
    try:
        __import__(library)
    except ImportError:
        print(f"{library} is not installed: its rows are left out", flush=True)
        return False
    return True


def ceilings(case: Case) -> list[dict[str, Any]]:
    """Records of models without privacy."""
    prepared, table = case.prepared, case.frame.table
    basis = AdditiveBasis(Schema.read(case.frame.schema), CEILING_INTERVALS, length=case.frame.data_norm)
    expanded = Table(*expansion(basis, table), table.task)
    if table.task == "regression":
        plain = {"linear": (LinearRegression(), prepared), "additive": (LinearRegression(), expanded)}
    else:
        model = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))
        plain = {"linear": (model, prepared), "additive": (model, expanded)}
    fits = {name: fit_and_score(model, rows) for name, (model, rows) in plain.items()}
    fits["boosted trees"] = fit_and_score(trees(case), table)
    return [{"table": case.name, "model": f"{name}, not private"} | gathered([found]) for name, found in fits.items()]


def expansion(basis: AdditiveBasis, table: Table) -> Iterator[Any]:
    """Return both parts of a table, transformed by a basis."""
    yield from (basis.transform(table.X_train), table.y_train, basis.transform(table.X_test), table.y_test)


def trees(case: Case) -> Any:
    """Fit non-private boosted trees with their defaults; they get the list of categorical columns."""
    kind = HistGradientBoostingRegressor if case.prepared.task == "regression" else HistGradientBoostingClassifier
    facts = columns(case)
    categories = [name for name, column in facts.items() if column["kind"] == "category"]
    if not categories:
        return kind(random_state=0)
    numbers = [name for name in facts if name not in categories]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    prepare = make_column_transformer((encoder, categories), ("passthrough", numbers))
    return make_pipeline(prepare, kind(categorical_features=list(range(len(categories))), random_state=0))


def speed(repeats: int) -> dict[str, float]:
    """Time a default fit on all records of adult against scikit-learn and against the same functions as a dense table."""
    case = Case.of("adult")
    table, facts = case.frame.table, columns(case)
    X = type(table.X_train)({name: [*table.X_train[name], *table.X_test[name]] for name in facts})
    y = np.concatenate([table.y_train, table.y_test])
    model = DPAdditiveClassifier(1.0, schema={"columns": facts}, classes=[0, 1])
    basis = model.fit(X, y).basis_
    rows = basis.transform(X)
    dense = rows.toarray()
    private = DPLogisticRegression(1.0, data_norm=basis.data_norm, classes=[0, 1])
    calls = {
        "ours": lambda: model.fit(X, y),
        "scikit_learn": lambda: one_hot_pipeline(facts).fit(X, y),
        "basis": lambda: basis.transform(X),
        "sparse": lambda: private.fit(rows, y),
        "dense": lambda: private.fit(dense, y),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeats):  # alternating, so that a change of the machine's speed affects all
            for name, call in calls.items():
                times[name].append(milliseconds(call, 1))
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    ratios = {
        "ratio_to_scikit_learn": middle["ours"] / middle["scikit_learn"],
        "sparse_to_dense": middle["sparse"] / middle["dense"],
    }
    shape = {"n_records": len(y), "n_functions": basis.n_features}
    return shape | {f"{name}_ms": round(taken, 1) for name, taken in middle.items()} | {k: round(v, 3) for k, v in ratios.items()}


def one_hot_pipeline(facts: dict[str, Any]) -> Any:
    """Logistic regression of scikit-learn on the same columns."""
    categories = [name for name, column in facts.items() if column["kind"] == "category"]
    numbers = [name for name in facts if name not in categories]
    prepare = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), categories), (StandardScaler(), numbers))
    return make_pipeline(prepare, LogisticRegression(max_iter=1000))
