"""Compare exported models with the models themselves: predictions, time to load and predictions per second."""

import io
import pickle
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import skdp
from benchmarks import counts
from benchmarks.noise import noise_of
from benchmarks.raw_frames import load_raw
from benchmarks.tables import load
from benchmarks.writing import made_with, row, write_json
from skdp import estimators as kinds

__all__ = ["TABLES", "compare"]

ROWS, MOST = 10_000, 20_000  # records to predict for, and those of a fit at most
FAR = (1e300, -1e300, 0.0, 1.0, -1.0)  # cells that replace one in a hundred each
OF_CLASSES = (
    "DPLogisticRegression",
    "DPLinearSVC",
    "DPAdditiveClassifier",
    "DPGradientBoostingClassifier",
    "DPTabularClassifier",
)
OF_NUMBERS = ("DPLinearRegression", "DPAdditiveRegressor", "DPGradientBoostingRegressor", "DPTabularRegressor")
OF_ARRAYS = ("DPAUCMaximizer", "network", "DPGroupDROClassifier", "DPMultinomialNB")
OF_ALL = ("DPPCA", "DPKMeans")
METHODS = {
    **dict.fromkeys(("label", "prediction", "cluster"), "predict"),
    "scores": "transform",
    "probabilities": "predict_proba",
    "decision": "decision_function",
}
ABOUT = """\
Predictions of exported models beside those of the models, for {rows} records of each table. One cell in a hundred each is 1e300,
-1e300, 0, 1 or -1; in frames one in twenty is missing, and one text in twenty is unlisted. "ONNX" is the largest difference of
probabilities, raw predictions, means and scores, over the larger of 1 and the prediction, in onnxruntime {newest}; "older" is the
same in onnxruntime {older}; labels that differ are counted. "plain" is that of `to_sklearn()`, for finite products, where there
are plain objects. Columns of frames are learned inside the budget, epsilon = 3; `categories` lists all text of the records to
predict for. Times are on a shared machine, in one thread: milliseconds to load a model (ours: `load_model` of a `.skops` file),
and thousands of records per second. Nothing was tuned. `python -m benchmarks exports` writes this page.
"""
SCRIPT = """\
import pickle, sys, onnxruntime
cases = pickle.load(open(sys.argv[1], "rb"))
found = [onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feed) for content, feed in cases]
pickle.dump((onnxruntime.__version__, found), open(sys.argv[2], "wb"))
"""


def made_up() -> tuple[pd.DataFrame, np.ndarray]:
    """Return records with dates, gaps, text, codes and a skewed amount, and their classes."""
    rng = np.random.default_rng(0)
    n = MOST + ROWS
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
            "amount": np.where(rng.random(n) < 0.1, np.nan, np.exp(rng.normal(5, 2, n))),
            "work": rng.choice(["clerk", "nurse", "teacher", "smith"], n),
            "code": pd.Series(rng.integers(1, 6, n)).astype(str).astype("category"),
            "age": rng.integers(18, 90, n),
        }
    )
    return frame, ((frame["age"] > 50) ^ (frame["work"] == "nurse")).map({True: "old", False: "young"}).to_numpy()


def of_array(name: str) -> tuple[Any, np.ndarray]:
    """Return the records of a prepared table."""
    table = load(name)
    return np.vstack([table.X_train, table.X_test]), np.concatenate([table.y_train, table.y_test])


def of_frame(name: str) -> tuple[Any, np.ndarray]:
    """Return the records of a raw table."""
    table = load_raw(name)
    return pd.concat([table.X_train, table.X_test], ignore_index=True), np.concatenate([table.y_train, table.y_test])


def of_counts(name: str) -> tuple[Any, np.ndarray]:
    """Return the records of a table of counts or amounts."""
    table = counts.TABLES[name]()
    return table.X, table.y


TABLES: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    **{name: (lambda name=name: of_frame(name)) for name in ("adult", "bank", "california", "bike", "mammography")},
    **{name: (lambda name=name: of_counts(name)) for name in ("bank, duration", "Poisson 2", "gamma")},
    "dates and gaps": made_up,
    **{f"{name}, array": (lambda name=name: of_array(name)) for name in ("ijcnn1", "spambase", "covertype")},
}


def models_for(X: Any, y: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield the families that take a table, with their names."""
    array, classes = not hasattr(X, "columns"), y.dtype.kind != "f" or len(np.unique(y)) <= 10
    names = [*(OF_CLASSES if classes else OF_NUMBERS), *OF_ALL]
    names += [name for name in OF_ARRAYS if classes and array and (len(np.unique(y)) == 2 or name == "DPMultinomialNB")]
    names += [] if classes or not array else ["DPQuantileRegressor"]
    for name in names:
        options: dict[str, Any] = {"epsilon": 3.0}
        if name == "network":
            yield name, kinds.DPAUCMaximizer(**options, scorer="mlp", hidden_layer_sizes=(16,), feature_bounds=1.0)
            continue
        kind = getattr(kinds, name)
        options |= {"n_clusters": 5} if name == "DPKMeans" else {"n_components": 3} if name == "DPPCA" else {}
        parameters = kind(**options).get_params()
        if array and "feature_bounds" in parameters:
            options["feature_bounds"] = 1.0
        if "target_bounds" in parameters:
            options["target_bounds"] = (float(np.floor(y.min())), float(np.ceil(y.max())))
        if "link" in parameters and y.min() >= 0:
            options["link"] = "log"
        yield name, kind(**options)


def hostile(X: Any, rng: np.random.Generator) -> Any:
    """Return records with cells that are far, missing or unlisted."""
    if not hasattr(X, "columns"):
        X = X.astype(float)
        for cell in FAR:
            X[rng.random(X.shape) < 0.01] = cell
        return X
    X = X.reset_index(drop=True).copy()
    for name in X.columns:
        if X[name].dtype.kind in "iuf":
            X[name] = X[name].astype(float)
            for cell in (*FAR, *[np.nan] * 5):
                X.loc[rng.random(len(X)) < 0.01, name] = cell
        elif X[name].dtype.kind == "M":
            X.loc[rng.random(len(X)) < 0.05, name] = pd.NaT
        elif X[name].dtype.kind != "b":
            X[name] = X[name].astype(object)
            for cell in ("of no list", None):
                X.loc[rng.random(len(X)) < 0.05, name] = cell
    return X


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


def difference(model: Any, X: Any, outputs: dict[str, np.ndarray]) -> tuple[float, int]:
    """Return the largest difference of numbers, over the larger of 1 and the number, and how many labels differ."""
    most, labels = 0.0, 0
    for name, values in outputs.items():
        own = np.asarray(getattr(model, METHODS[name])(X))
        if values.dtype.kind == "f" and name != "label":
            most = max(most, float((np.abs(values - own) / np.maximum(np.abs(own), 1)).max()))
        else:
            labels += int((values != own).sum())
    return most, labels


def plain_difference(model: Any, X: Any) -> float | None:
    """Return the largest difference of the plain objects of scikit-learn; None if there are none."""
    try:
        plain = model.to_sklearn()
    except TypeError:
        return None
    rows = np.abs(X).max(axis=1) < 1e100 if not hasattr(X, "columns") else np.ones(len(X), dtype=bool)
    names = [name for name in ("predict_proba", "decision_function", "predict", "transform") if hasattr(model, name)]
    if isinstance(model, kinds.DPKMeans):
        return float((plain.predict(X[rows]) != model.predict(X[rows])).mean())
    name = names[0]
    own = getattr(model, name)(X[rows])
    return float((np.abs(getattr(plain, name)(X[rows]) - own) / np.maximum(np.abs(own), 1)).max())


def seconds_of(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least time of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measured(table: str, runtime: Any) -> Iterator[dict[str, Any]]:
    """Yield what is measured of each family on a table, with the case for an older runtime."""
    X, y = TABLES[table]()
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(y))[:MOST]
    later = hostile(X.iloc[rng.integers(len(y), size=ROWS)] if hasattr(X, "columns") else X[rng.integers(len(y), size=ROWS)], rng)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    for name, model in models_for(X, y):
        rows = np.abs(X) if name == "DPMultinomialNB" else X
        new = np.abs(later) if name == "DPMultinomialNB" else later
        given = {"groups": np.arange(len(chosen)) % 2} if name == "DPGroupDROClassifier" else {}
        with noise_of(0):
            model.fit(rows.iloc[chosen] if hasattr(X, "columns") else rows[chosen], y[chosen], **given)
        learned = getattr(model, "schema_", None)
        texts = (
            {}
            if learned is None
            else {column: sorted({str(cell) for cell in new[column].dropna()}) for column in learned.columns}
        )
        content = model.to_onnx(categories=texts).SerializeToString(deterministic=True)
        started = partial(runtime.InferenceSession, content, options, providers=["CPUExecutionProvider"])
        session = started()
        feed = fed(session, new)
        outputs = dict(zip([entry.name for entry in session.get_outputs()], session.run(None, feed), strict=True))
        most, labels = difference(model, new, outputs)
        method = METHODS[next(iter(outputs))]
        with tempfile.TemporaryDirectory() as folder:
            skdp.save_model(model, path := Path(folder) / "model.skops")
            of_ours = seconds_of(partial(skdp.load_model, path))
        yield {
            "table": table,
            "model": name,
            "onnx": most,
            "labels": labels,
            "plain": plain_difference(model, new),
            "bytes": len(content),
            "load": [1e3 * of_ours, 1e3 * seconds_of(started)],
            "per_second": [
                ROWS / seconds_of(partial(*work)) for work in ((getattr(model, method), new), (session.run, None, feed))
            ],
            "case": (content, feed),
            "check": lambda outputs, model=model, new=new: difference(model, new, outputs),
            "names": list(outputs),
        }


def in_older(python: str, found: list[dict[str, Any]]) -> str:
    """Run all cases in the onnxruntime of another Python; return its version."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("cases", "outputs")]
        Path(paths[0]).write_bytes(pickle.dumps([entry["case"] for entry in found]))
        subprocess.run([python, "-c", SCRIPT, *paths], check=True)
        version, outputs = pickle.load(io.BytesIO(Path(paths[1]).read_bytes()))
    for entry, values in zip(found, outputs, strict=True):
        entry["older"], labels = entry["check"](dict(zip(entry["names"], values, strict=True)))
        entry["labels"] += labels
    return str(version)


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
    runtime, found, older = import_module("onnxruntime"), list[dict[str, Any]](), "(not run)"
    for table in tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entries = list(measured(table, runtime))
            older = older if python is None else in_older(python, entries)
        found += [{name: entry.get(name) for name in entry if name not in ("case", "check", "names")} for entry in entries]
        write_json({**made_with(), "onnxruntime": [runtime.__version__, older], "cases": found}, out / "exports.json")
        page = [ABOUT.format(rows=ROWS, newest=runtime.__version__, older=older), *lines(found), ""]
        (out / "exports.md").write_text("# Exported models\n\n" + "\n".join(page), encoding="utf-8")


def lines(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table of results."""
    titles = ["table", "model", "ONNX", "older", "other labels", "plain", "kB", "load, ours > ONNX", "thousand/s, ours > ONNX"]
    return [
        row(titles),
        row(["---"] * len(titles)),
        *(
            row(
                [
                    entry["table"],
                    f"`{entry['model']}`",
                    *(_size(entry.get(name)) for name in ("onnx", "older")),
                    str(entry["labels"]),
                    _size(entry["plain"]),
                    f"{entry['bytes'] / 1e3:.0f}",
                    " > ".join(f"{value:.3g}" for value in entry["load"]),
                    " > ".join(f"{value / 1e3:.3g}" for value in entry["per_second"]),
                ]
            )
            for entry in found
        ),
    ]


def _size(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"
