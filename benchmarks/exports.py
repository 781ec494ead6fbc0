"""Compare exported models with the models themselves: predictions, time to load and predictions per second."""

import json
import pickle
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, SplineTransformer, StandardScaler
from sklearn.svm import LinearSVC

import skdp
from benchmarks import bounds
from benchmarks.noise import noise_of
from benchmarks.raw_frames import load_raw
from benchmarks.tables import SCHEMAS, data_directory, existing, load
from benchmarks.writing import made_with, row, write_json
from skdp import estimators as kinds
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler, LearnedSchema, Number, RowNormClipper, Schema, from_schema
from skdp.privacy.data.bins import EDGES

__all__ = ["TABLES", "compare"]

# Records to predict for, of each kind, and those of a fit at most: what a model has learned does not matter here.
ROWS, MOST = 10_000, 4000
EPSILON = 20.0  # at which all models have functions and trees
KINDS = ("numbers", "text", "missing", "unlisted", "edges", "1e300", "dates")
FAR = (1e300, -1e300, 1e308, 5e-324, -0.0)
ALL = 0.1  # share of the records all of whose cells are hostile; each other one has one such cell
SPELT = ("{} ", " {}", " {} ", "{}x", "{}.0", "0{}")
OF_CURVES = (kinds.DPAdditiveClassifier, kinds.DPAdditiveRegressor)
METHODS = {
    **dict.fromkeys(("label", "prediction", "cluster"), "predict"),
    **dict.fromkeys(("scores", "features"), "transform"),
    "probabilities": "predict_proba",
    "decision": "decision_function",
}
ABOUT = """\
Predictions of exported models beside those of the models, for {rows} records of each table and of each kind: numbers of all
sizes; text with blanks and other characters; missing cells; unlisted text; values at knots and at edges of bins, at bounds,
and the floats beside them; 1e300, -1e300, 1e308, 5e-324 and, in learned columns, infinity; dates of five centuries. A kind is
left out where no column has it, or the model raises an error for it. "ONNX" is the largest difference of probabilities, raw
predictions, means and scores, over the larger of 1 and the prediction, in onnxruntime {newest}; "older" is the same in
onnxruntime {older}; "labels" counts those that differ in either. "plain" is the difference of `to_sklearn()`, for finite
products and text that is spelt as in the schema, where there are plain objects. Columns of frames are learned inside the
budget unless a schema is named; `categories` lists all text of the records to predict for.

Times are on a shared machine, in one thread, each for our model > ONNX > `to_sklearn()` > a model of scikit-learn of the same
family, fitted without privacy to the same records ("-" where there is none): milliseconds to load it (`load_model` of a `.skops`
file, onnxruntime, and joblib), thousands of predictions per second for {rows} records at once, and microseconds for a single one.
`python -m benchmarks exports` writes this page.
"""
SCRIPT = """\
import pickle, sys, onnxruntime
answer = lambda found: (pickle.dump(found, sys.stdout.buffer), sys.stdout.buffer.flush())
answer(onnxruntime.__version__)
while sys.stdin.buffer.peek(1):
    content, feeds = pickle.load(sys.stdin.buffer)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    answer([[part.tolist() if part.dtype == object else part for part in session.run(None, feed)] for feed in feeds])
"""


@dataclass(frozen=True)
class Table:
    """Hold a table, with a target of each kind.

    Parameters
    ----------
    X : ndarray or DataFrame
        Records; entries of an array lie in [-1, 1].
    labels : ndarray
        Two classes or more.
    numbers : ndarray
        Numbers from 0 on.
    columns : dict or None, default=None
        Public facts of the columns of a frame.
    """

    X: Any
    labels: np.ndarray
    numbers: np.ndarray
    columns: dict[str, Any] | None = None

    @property
    def two(self) -> np.ndarray:
        """Two classes, as text."""
        return np.where(self.numbers > np.median(self.numbers) if len(np.unique(self.labels)) > 2 else self.labels, "yes", "no")

    @property
    def prepared(self) -> Any:
        """Transformer of the rows by public facts alone."""
        return from_schema({"columns": self.columns}) if self.columns else make_pipeline(BoundedScaler(1.0), RowNormClipper())

    def taken(self, places: np.ndarray) -> "Table":
        """Return some records."""
        X = self.X[places] if self.columns is None else self.X.iloc[places].reset_index(drop=True)
        return Table(X, self.labels[places], self.numbers[places], self.columns)


def of_file(name: str, labels: str = "y", prepare: Callable[[np.ndarray], np.ndarray] = lambda X: X) -> Table:
    """Return an array of a file."""
    with np.load(existing(data_directory() / f"{name}.npz")) as stored:
        X, y = prepare(stored["X"].astype(np.float64)), stored[labels].astype(int)
    return Table(X, y, y.astype(float))


def of_array(name: str) -> Table:
    """Return a prepared table."""
    table = load(name)
    y = np.concatenate([table.y_train, table.y_test])
    return Table(np.vstack([table.X_train, table.X_test]), y, y.astype(float))


def reuters() -> Table:
    """Return the first 500 words of a table of texts."""
    from scipy.sparse import csr_array

    with np.load(existing(data_directory() / "reuters_money_fx_csr.npz")) as stored:
        X = csr_array((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        return Table(X[:, :500].toarray().astype(np.float64), y := (stored["y"] > 0).astype(int), y.astype(float))


def of_frame(name: str, columns: dict[str, Any]) -> Table:
    """Return a raw table, with what is public of its columns; all numbers are filled."""
    table = load_raw(name)
    X = pd.concat([table.X_train, table.X_test], ignore_index=True)
    y = np.concatenate([table.y_train, table.y_test])
    if "dteday" in X:
        X["dteday"] = pd.to_datetime(X["dteday"])
    facts = {column: {**given, "fill": given["bounds"][0]} if "bounds" in given else given for column, given in columns.items()}
    return Table(X, (y > np.median(y)).astype(int) if table.task == "regression" else y, y.astype(float), facts)


def stated(ranges: Mapping[str, Any], logarithms: Mapping[str, float], categories: Mapping[str, Any]) -> dict[str, Any]:
    """Return public facts of columns."""
    return {
        **{name: {"kind": "number", "bounds": list(ends)} for name, ends in ranges.items()},
        **{name: {"kind": "number", "bounds": [0, end], "scale": "log"} for name, end in logarithms.items()},
        **{name: {"kind": "category", "categories": list(those)} for name, those in categories.items()},
    }


def of_schema(name: str) -> dict[str, Any]:
    """Return public facts of the columns of an example."""
    return dict(json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))["columns"])


def pooled(X: np.ndarray) -> np.ndarray:
    """Return images of a quarter of the size."""
    return X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196) / 255


TABLES: dict[str, Callable[[], Table]] = {
    "adult": lambda: of_frame("adult", of_schema("adult")),
    "bank": lambda: of_frame("bank", of_schema("bank")),
    "california": lambda: of_frame(
        "california", stated(bounds.CALIFORNIA_RANGES, bounds.CALIFORNIA_LOGARITHMS, bounds.CALIFORNIA_CATEGORIES)
    ),
    "bike": lambda: of_frame("bike", stated(bounds.BIKE_RANGES, {}, bounds.BIKE_CATEGORIES)),
    "mammography": lambda: of_frame("mammography", stated({f"x{place}": (-1, 32) for place in range(6)}, {}, {})),
    "a9a": lambda: of_file("a9a"),
    "covertype": lambda: of_file("covertype_subset", "cover_type", lambda X: X / np.maximum(np.abs(X).max(axis=0), 1)),
    "ijcnn1": lambda: of_array("ijcnn1"),
    "spambase": lambda: of_array("spambase"),
    "mnist": lambda: of_file("mnist_test", prepare=pooled),
    "madelon": lambda: of_file("madelon", prepare=lambda X: X / 1000),
    "reuters": reuters,
}


@dataclass(frozen=True)
class Case:
    """Hold a model with what it is fitted to.

    Parameters
    ----------
    model : estimator
        The model.
    y : ndarray or None, default=None
        Targets.
    given : dict, default={}
        Further arguments of ``fit``.
    plain : object, default=None
        A model of scikit-learn of the same family.
    """

    model: Any
    y: np.ndarray | None = None
    given: dict[str, Any] | None = None
    plain: Any = None


def cases(table: Table) -> Iterator[tuple[str, Case]]:
    """Yield models of all families, by their names in the page."""
    budget: dict[str, Any] = {"epsilon": EPSILON, "delta": 1e-5}
    given = budget if table.columns else {**budget, "feature_bounds": 1.0}
    known = {**budget, "schema": {"columns": table.columns}} if table.columns else given
    two, many, numbers = table.two, table.labels, table.numbers / table.numbers.max()
    many = many if len(np.unique(many)) > 2 else many + np.arange(len(many)) % 2
    names = [name for name, facts in table.columns.items() if facts["kind"] != "ignore"] if table.columns else [0, 1, 2]
    pairs = [tuple(names[:2]), tuple(names[1:3])]
    unit, counts, exposure = (0.0, 1.0), np.rint(20 * numbers), np.random.default_rng(0).uniform(0.2, 1, len(two))
    logistic, linear = LogisticRegression(max_iter=50), LinearRegression()
    classes, regression = HistGradientBoostingClassifier(random_state=0), HistGradientBoostingRegressor(random_state=0)
    yield "DPLogisticRegression", Case(kinds.DPLogisticRegression(**given), two, plain=logistic)
    yield "its classes", Case(kinds.DPLogisticRegression(**given), many, plain=logistic)
    yield "its inference", Case(kinds.DPLogisticRegression(**known, inference=True), two, plain=logistic)
    yield "its calibration, epsilon 0.1", Case(kinds.DPLogisticRegression(**{**known, "epsilon": 0.1}), two, plain=logistic)
    yield "DPLinearSVC", Case(kinds.DPLinearSVC(**given), two, plain=LinearSVC())
    yield "its classes", Case(kinds.DPLinearSVC(**given), many.astype(float), plain=LinearSVC())
    yield "DPConstrainedClassifier", Case(kinds.DPConstrainedClassifier(**known), two, plain=logistic)
    yield "DPGroupDROClassifier", Case(kinds.DPGroupDROClassifier(**known), two, {"groups": np.arange(len(two)) % 2}, logistic)
    yield "DPAUCMaximizer", Case(kinds.DPAUCMaximizer(**known), two, plain=logistic)
    network = kinds.DPAUCMaximizer(**known, scorer="mlp", hidden_layer_sizes=(16,))
    yield "its network", Case(network, two, plain=MLPClassifier((16,), max_iter=20, random_state=0))
    yield "DPAdditiveClassifier", Case(kinds.DPAdditiveClassifier(**given), two, plain=logistic)
    yield "its schema", Case(kinds.DPAdditiveClassifier(**known), many, plain=logistic)
    yield "its pairs and knots", Case(kinds.DPAdditiveClassifier(**known, interactions=pairs, knots="private"), two)
    yield "DPGradientBoostingClassifier", Case(kinds.DPGradientBoostingClassifier(**given), two, plain=classes)
    yield "its classes", Case(kinds.DPGradientBoostingClassifier(**known), np.minimum(many, 2), plain=classes)
    yield "DPTabularClassifier", Case(kinds.DPTabularClassifier(**given), two, plain=classes)
    yield "DPLinearRegression", Case(kinds.DPLinearRegression(**given, target_bounds=unit), numbers, plain=linear)
    yield (
        "its targets",
        Case(kinds.DPLinearRegression(**known, target_bounds=[unit, (0, 20)]), np.stack([numbers, counts], axis=1), plain=linear),
    )
    log = {"target_bounds": (0.0, 20.0), "link": "log_count", "max_exposure": 1.0}
    yield "its counts", Case(kinds.DPLinearRegression(**given, **log), counts, {"exposure": exposure}, linear)
    little = {**known, **log, "epsilon": 0.1}
    yield "its counts, epsilon 0.1", Case(kinds.DPLinearRegression(**little), counts, {"exposure": exposure}, linear)
    yield "DPQuantileRegressor", Case(kinds.DPQuantileRegressor(**known), numbers, plain=linear)
    yield "DPRobustRegressor", Case(kinds.DPRobustRegressor(**known), numbers, plain=linear)
    yield "DPConstrainedRegression", Case(kinds.DPConstrainedRegression(**known, target_bounds=unit), numbers, plain=linear)
    yield "DPAdditiveRegressor", Case(kinds.DPAdditiveRegressor(**given, target_bounds=unit), numbers, plain=linear)
    yield (
        "its amounts",
        Case(kinds.DPAdditiveRegressor(**known, target_bounds=(0.1, 1.1), link="log"), numbers + 0.1, plain=linear),
    )
    yield (
        "DPGradientBoostingRegressor",
        Case(kinds.DPGradientBoostingRegressor(**known, target_bounds=unit), numbers, plain=regression),
    )
    yield "its counts", Case(kinds.DPGradientBoostingRegressor(**given, **log), counts, {"exposure": exposure}, regression)
    yield "DPTabularRegressor", Case(kinds.DPTabularRegressor(**given, target_bounds=unit), numbers, plain=regression)
    yield "DPKMeans", Case(kinds.DPKMeans(5, **given), plain=KMeans(5, n_init=1, random_state=0))
    yield "its schema", Case(kinds.DPKMeans(5, **known), plain=KMeans(5, n_init=1, random_state=0))
    yield "DPPCA", Case(kinds.DPPCA(3, **given), plain=PCA(3))
    yield "its whitening", Case(kinds.DPPCA(3, **known, whiten=True), plain=PCA(3, whiten=True))
    yield "DPMultinomialNB", Case(kinds.DPMultinomialNB(**budget), many, plain=MultinomialNB())
    yield "pipeline of public facts", Case(make_pipeline(table.prepared, kinds.DPLinearSVC(**budget, data_norm=1.0)), two)
    first = [("schema", LearnedSchema())] if table.columns else []
    steps = [*first, ("PCA", kinds.DPPCA(3, **({} if first else {"feature_bounds": 1.0}))), ("SVC", kinds.DPLinearSVC())]
    yield "DPPipeline", Case(DPPipeline(steps, **budget), two, plain=make_pipeline(PCA(3), LinearSVC()))
    searched = kinds.DPLogisticRegression(**{name: value for name, value in given.items() if name not in budget})
    yield "DPGridSearchCV", Case(DPGridSearchCV(searched, {"alpha": [0.0, 0.1]}, **budget), two, plain=logistic)
    if table.columns:
        for output in ("rows", "units"):
            yield f"LearnedSchema, {output}", Case(LearnedSchema(**budget, output=output))
        yield "from_schema", Case(table.prepared)


def facts_of(model: Any, table: Table) -> dict[str, Any]:
    """Return what is known of the columns of a frame: what was learned, or what is public."""
    steps = (
        [step for _, step in model._fitted.steps] if isinstance(model, DPPipeline) else [getattr(model, "best_estimator_", model)]
    )
    schema = getattr(steps[0], "schema_", None)
    return dict((Schema.read({"columns": table.columns}) if schema is None else schema).columns)


def hostile(kind: str, X: Any, model: Any, table: Table, rng: np.random.Generator) -> Any:
    """Return records of a kind; None where no column has it."""
    if table.columns is None:
        return of_cells(kind, X, model, rng)
    X, found, facts = X.copy(), kind == "numbers", facts_of(model, table)
    places, forms = drawn(len(X), len(facts), rng), rng.choice(SPELT, len(X))
    for chosen, (name, column) in zip(places.T, facts.items(), strict=True):
        dates, number = X[name].dtype.kind == "M", isinstance(column, Number)
        cells = X[name].to_numpy(dtype=float if number and not dates else object, na_value=np.nan if number else None, copy=True)
        if kind == "dates" and dates:
            values: Any = np.datetime64("1700-01-01", "s") + rng.integers(0, 17_000_000_000, chosen.sum())  # until 2238
        elif kind == "missing":
            values = pd.NaT if dates else np.nan if number else None
        elif dates:
            continue
        elif kind == "numbers" and number:
            values = cells[chosen] * 10 ** rng.uniform(-9, 9, chosen.sum())
        elif kind == "edges" and number:
            values = rng.choice(beside(column.at(places_of(model, name))), chosen.sum())
        elif kind == "1e300" and number:
            values = rng.choice(FAR if column.learned is None else (*FAR, np.inf, -np.inf), chosen.sum())
        elif kind == "text" and not number:
            values = [form.format(cell) for form, cell in zip(forms[chosen], cells[chosen], strict=True)]
        elif kind == "unlisted" and not number:
            values = rng.choice(["of no list", "", "nan", "None", "-1"], chosen.sum())
        else:
            continue
        found = True
        if dates:
            X.loc[chosen, name] = values
        else:
            cells[chosen] = values
            X[name] = cells
    return X if found else None


def drawn(n_records: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return which cells are hostile: one of most records, all of the others."""
    return np.eye(n_columns, dtype=bool)[rng.integers(n_columns, size=n_records)] | (rng.random((n_records, 1)) < ALL)


def of_cells(kind: str, X: np.ndarray, model: Any, rng: np.random.Generator) -> np.ndarray | None:
    """Return records of a kind for arrays, which have no text, dates or missing cells."""
    chosen = drawn(X.shape[0], X.shape[1], rng)
    X, size = X.copy(), int(chosen.sum())
    if kind == "numbers":
        X[chosen] *= 10 ** rng.uniform(-9, 9, size)
    elif kind == "edges":
        X[chosen] = rng.choice(beside(2 * places_of(model, None) - 1), size)
    elif kind == "1e300":
        X[chosen] = rng.choice(FAR, size)
    else:
        return None
    return X


def places_of(model: Any, name: Any) -> np.ndarray:
    """Return knots and edges of bins, from 0 to 1."""
    basis: Any = getattr(getattr(model, "estimator_", model), "basis_", None)
    names = [] if basis is None else basis.numbers if name is None else [name]
    return np.unique(np.concatenate([EDGES, [0.0, 1.0], *(basis.knots_of(each) for each in names if each in basis.numbers)]))


def beside(values: np.ndarray) -> np.ndarray:
    """Return numbers and the floats beside them."""
    return np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])


def fed(session: Any, X: Any) -> dict[str, np.ndarray]:
    """Return the inputs of an exported model: numbers, seconds since 1970 for dates, and text."""
    feed = {}
    for entry in session.get_inputs():
        if not hasattr(X, "columns"):
            feed[entry.name] = X
        elif entry.type == "tensor(string)":
            feed[entry.name] = np.array(["" if pd.isna(cell) else str(cell) for cell in X[entry.name]], dtype=object)[:, None]
        elif X[entry.name].dtype.kind == "M":
            seconds = (X[entry.name] - pd.Timestamp("1970-01-01")) / pd.Timedelta(seconds=1)
            feed[entry.name] = seconds.to_numpy(dtype=float)[:, None]
        else:
            feed[entry.name] = pd.to_numeric(X[entry.name], errors="coerce").to_numpy(dtype=float)[:, None]
    return feed


def difference(own: dict[str, Any], outputs: dict[str, Any]) -> tuple[float, int]:
    """Return the largest difference of numbers, over the larger of 1 and the number, and how many labels differ."""
    most, labels = 0.0, 0
    for name, values in outputs.items():
        if name in ("label", "cluster"):
            labels += int((np.asarray(values) != own[name]).sum())
        else:
            most = max(most, apart(np.asarray(values), own[name]))
    return most, labels


def apart(values: np.ndarray, own: np.ndarray) -> float:
    """Return the largest difference, over the larger of 1 and the number; what is no number in one alone is infinitely far."""
    if values.shape != own.shape or (np.isfinite(values) != np.isfinite(own)).any():
        return float("inf")
    return float(np.nanmax(np.abs(values - own) / np.maximum(np.abs(own), 1), initial=0.0))


def plain_difference(model: Any, plain: Any, X: Any) -> float:
    """Return the largest difference of plain objects; 1 if labels differ."""
    rows = X[np.abs(X).max(axis=1) < 1e100] if not hasattr(X, "columns") else X
    most = 0.0
    for name in ("predict_proba", "decision_function", "predict", "transform"):
        if hasattr(model, name) and hasattr(plain, name) and not (name == "transform" and isinstance(model, kinds.DPKMeans)):
            own, values = np.asarray(getattr(model, name)(rows)), np.asarray(getattr(plain, name)(rows))
            numbers = own.dtype.kind == "f" and not hasattr(model, "classes_")
            most = max(most, apart(values, own) if numbers or name != "predict" else float((values != own).any()))
    return most


def theirs(case: Case, table: Table, X: Any, y: Any) -> Any:
    """Return a fitted model of scikit-learn; None if there is none."""
    if case.plain is None:
        return None
    trees = isinstance(case.plain, (HistGradientBoostingClassifier, HistGradientBoostingRegressor))
    steps: list[Any] = [SplineTransformer(degree=1)] if isinstance(case.model, OF_CURVES) else []
    if hasattr(X, "columns"):
        text = [name for name in X if X[name].dtype == object or isinstance(X[name].dtype, pd.StringDtype)]
        numbers = [name for name in X if X[name].dtype.kind in "iuf"]
        of_text = (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
            if trees
            else OneHotEncoder(handle_unknown="ignore")
        )
        of_numbers = "passthrough" if trees else make_pipeline(SimpleImputer(), StandardScaler(), *steps)
        steps = [make_column_transformer((of_text, text), (of_numbers, numbers), sparse_threshold=0)]
    return make_pipeline(*steps, case.plain).fit(X, *([] if y is None else [y]))


def seconds_of(work: Callable[[], Any], least: float = 0.05) -> float:
    """Return the least time of some runs, at least one."""
    times: list[float] = []
    while not times or (sum(times) < least and len(times) < 20):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


class Older:
    """Answers of an onnxruntime of another Python, which stays open.

    Parameters
    ----------
    python : str
        The Python.
    """

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen([python, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = str(pickle.load(self._process.stdout))  # type: ignore[arg-type]

    def __call__(self, content: bytes, feeds: list[dict[str, np.ndarray]]) -> list[list[Any]]:
        """Return the outputs of a model."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((content, feeds), self._process.stdin)
        self._process.stdin.flush()
        return list(pickle.load(self._process.stdout))


def measured(table: Table, runtime: Any, older: Older | None) -> Iterator[dict[str, Any]]:
    """Yield what is measured of each family on a table."""
    rng = np.random.default_rng(0)
    records = table.taken(rng.permutation(len(table.labels))[:MOST])
    later = table.taken(rng.integers(len(table.labels), size=ROWS))
    first = ""
    for name, case in cases(records):
        first = first if name.startswith("its ") else name
        X, new, model = records.X, later.X, case.model
        if isinstance(model, kinds.DPMultinomialNB):
            X, new = (np.abs(np.nan_to_num(numeric(rows))) for rows in (X, new))
            table = Table(new, later.labels, later.numbers)
        else:
            table = later
        start = time.perf_counter()
        with noise_of(0):
            model.fit(X, *([] if case.y is None else [case.y]), **(case.given or {}))
        rows = {kind: found for kind in KINDS if (found := hostile(kind, new, model, table, rng)) is not None}
        yield {"model": name if name == first else f"{first}, {name}", **compared(model, rows, table, runtime, older, case, X)}
        print(f"  {first}, {name}: {time.perf_counter() - start:.1f} s", flush=True)


def numeric(X: Any) -> np.ndarray:
    """Return the numbers of a table."""
    return X.select_dtypes("number").to_numpy(dtype=float) if hasattr(X, "columns") else X


def compared(
    model: Any, rows: dict[str, Any], table: Table, runtime: Any, older: Older | None, case: Case, X: Any
) -> dict[str, Any]:
    """Return what is measured of a fitted model."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    facts = {} if table.columns is None else facts_of(model, table)
    texts = {
        name: sorted({str(cell) for part in rows.values() for cell in part[name].dropna()})
        for name, column in facts.items()
        if not isinstance(column, Number)
    }
    content = skdp.to_onnx(model, categories=texts).SerializeToString(deterministic=True)
    started = partial(runtime.InferenceSession, content, options, providers=["CPUExecutionProvider"])
    session = started()
    names, feeds = [entry.name for entry in session.get_outputs()], {kind: fed(session, part) for kind, part in rows.items()}
    own = {kind: {name: np.asarray(getattr(model, METHODS[name])(part)) for name in names} for kind, part in rows.items()}
    before = older(content, list(feeds.values())) if older else [None] * len(rows)
    found: dict[str, Any] = {"onnx": {}, "older": {}, "plain": {}, "labels": 0, "bytes": len(content)}
    try:
        plain = skdp.to_sklearn(model)
    except TypeError:
        plain = None
    for (kind, feed), values in zip(feeds.items(), before, strict=True):
        found["onnx"][kind], labels = difference(own[kind], dict(zip(names, session.run(None, feed), strict=True)))
        found["labels"] += labels
        if values is not None:
            found["older"][kind], labels = difference(own[kind], dict(zip(names, values, strict=True)))
            found["labels"] += labels
        if plain is not None and kind != "text":
            found["plain"][kind] = plain_difference(model, plain, rows[kind])
    trees = getattr(getattr(model, "estimator_", model), "trees_", None)
    return {
        **found,
        "trees": 0 if trees is None else len(trees.columns),
        **times_of(model, started, plain, theirs(case, table, X, case.y), rows["numbers"], names[0]),
    }


def times_of(model: Any, started: Callable[[], Any], plain: Any, others: Any, X: Any, output: str) -> dict[str, Any]:
    """Return the times to load and to predict, each of ours, ONNX, plain objects and a model of scikit-learn."""
    session, method = started(), METHODS[output]
    one = X[:1]
    with tempfile.TemporaryDirectory() as folder:
        skdp.save_model(model, path := Path(folder) / "model.skops")
        loads: list[Any] = [partial(skdp.load_model, path), started]
        for name, those in (("plain", plain), ("others", others)):
            if those is not None:
                joblib.dump(those, file := Path(folder) / name)
            loads.append(None if those is None else partial(joblib.load, file))
        load = [None if work is None else 1e3 * seconds_of(work) for work in loads]
    predict = [
        (lambda rows, those=those: getattr(those, method)(rows)) if those is not None else None
        for those in (model, plain, others)
    ]
    several, single = (
        [None if work is None else seconds_of(partial(work, rows)) for work in predict[:1]]
        + [seconds_of(partial(session.run, None, fed(session, rows)))]
        + [None if work is None else seconds_of(partial(work, rows)) for work in predict[1:]]
        for rows in (X, one)
    )
    return {
        "load": load,
        "per_second": [None if seconds is None else len(X) / seconds for seconds in several],
        "single": [None if seconds is None else 1e6 * seconds for seconds in single],
    }


def compare(tables: list[str], out: Path, python: str | None = None) -> None:
    """Measure all tables and write ``exports.json`` and ``exports.md``.

    Parameters
    ----------
    tables : list of str
        Out of `TABLES`.
    out : Path
        Directory of the results.
    python : str or None, default=None
        A Python with an older onnxruntime.
    """
    runtime, found, older = import_module("onnxruntime"), list[dict[str, Any]](), None if python is None else Older(python)
    versions = [runtime.__version__, *([older.version] if older else [])]
    for table in tables:
        print(table, flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += [{"table": table, **entry} for entry in measured(TABLES[table](), runtime, older)]
        write_json({**made_with(), "onnxruntime": versions, "rows": ROWS, "cases": found}, out / "exports.json")
        (out / "exports.md").write_text(page(found, versions), encoding="utf-8")


def page(found: list[dict[str, Any]], versions: list[str]) -> str:
    """Return the page."""
    about = ABOUT.format(rows=ROWS, newest=versions[0], older=versions[1] if versions[1:] else "(not run)")
    return "\n".join(["# Exported models", "", about, *by_kind(found), "", "## Each model", "", *lines(found), ""])


def by_kind(found: list[dict[str, Any]]) -> list[str]:
    """Return the table of the largest difference of each family and kind of records, and a sentence."""
    names = list(dict.fromkeys(entry["model"] for entry in found))
    heads = ["model", "tables", "with trees", *KINDS, "older", "plain", "other labels"]
    rows = []
    for name in names:
        those = [entry for entry in found if entry["model"] == name]
        kinds_of = [[entry["onnx"][kind] for entry in those if kind in entry["onnx"]] for kind in KINDS]
        further = [[value for entry in those for value in entry[which].values()] for which in ("older", "plain")]
        trees = sum(entry["trees"] > 0 for entry in those)
        cells = [_size(max(values, default=None)) for values in (*kinds_of, *further)]
        rows.append(row([name, str(len(those)), str(trees or ""), *cells, str(sum(entry["labels"] for entry in those))]))
    return [row(heads), row(["---"] * len(heads)), *rows]


def lines(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table of all results."""
    titles = ["table", "model", "ONNX", "older", "labels", "plain", "kB", "load, ms", "thousand/s", "one, us"]
    return [
        row(titles),
        row(["---"] * len(titles)),
        *(
            row(
                [
                    entry["table"],
                    entry["model"],
                    *(_size(max(entry[name].values(), default=None)) for name in ("onnx", "older")),
                    str(entry["labels"]),
                    _size(max(entry["plain"].values(), default=None)),
                    f"{entry['bytes'] / 1e3:.0f}",
                    *(_times(entry[name], unit) for name, unit in (("load", 1), ("per_second", 1000), ("single", 1))),
                ]
            )
            for entry in found
        ),
    ]


def _size(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


def _times(values: list[float | None], unit: float) -> str:
    return " > ".join("-" if value is None else f"{value / unit:.3g}" for value in values)
