"""Processor time of fits beside scikit-learn's on the same arrays, and beside an older checkout of skdp, as ratios in one run.

Each case has a child process per checkout, and the fits take turns, so that a change of the machine's speed meets all of them.
"""

import contextlib
import functools
import math
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

import skdp
from benchmarks.writing import made_with, row, write_json
from skdp import DPGradientBoostingClassifier, DPLinearRegression, DPLogisticRegression

__all__ = ["CASES", "compare", "table"]

SECONDS = 3.0  # a case goes on for at least so long
OURS, OLDER = "skdp", "older skdp"
Measures = dict[str, Callable[[], float]]
WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
import skdp
sys.path[0] = sys.argv[2]
from benchmarks.speed import answer
answer(*sys.argv[3:])
"""


def table(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a synthetic table of rows of norm about 1, and its labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) / math.sqrt(n_features)
    return X, (X[:, 0] + 0.1 * rng.standard_normal(n_samples) > 0).astype(int)


def fits(models: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Measures:
    """Return what measures the processor time of a fit of each model, in milliseconds."""

    def measure(model: Any) -> float:
        start = time.process_time()
        model.fit(X, y)
        return 1e3 * (time.process_time() - start)

    return {name: functools.partial(measure, model) for name, model in models.items()}


def logistic(n_samples: int, n_features: int) -> Measures:
    """Return the fits of logistic regression."""
    newton = LogisticRegression(solver="newton-cholesky")
    models = {OURS: DPLogisticRegression(data_norm=1.0), "lbfgs": LogisticRegression(), "newton-cholesky": newton}
    return fits(models, *table(n_samples, n_features))


def linear(n_samples: int, n_features: int) -> Measures:
    """Return the fits of linear regression."""
    X, _ = table(n_samples, n_features)
    y = np.clip(X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(n_samples), -1, 1)
    return fits({OURS: DPLinearRegression(data_norm=1.0, target_bounds=(-1, 1)), "Ridge": Ridge()}, X, y)


def boosting(n_samples: int, n_features: int) -> Measures:
    """Return the fits of boosted trees."""
    ours = DPGradientBoostingClassifier(feature_bounds=(-1, 1), classes=[0, 1])
    return fits({OURS: ours, "HistGradientBoosting": HistGradientBoostingClassifier()}, *table(n_samples, n_features))


def imports() -> Measures:
    """Return the processor time of importing a linear model, in milliseconds, each in a process of its own."""

    def measure(statement: str) -> float:
        code = f"import time; start = time.process_time(); {statement}; print(1e3 * (time.process_time() - start))"
        environment = os.environ | {"PYTHONPATH": str(Path(skdp.__file__).parents[1])}
        return float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)

    statements = {
        OURS: "from skdp import DPLogisticRegression",
        "scikit-learn": "from sklearn.linear_model import LogisticRegression",
    }
    return {name: functools.partial(measure, statement) for name, statement in statements.items()}


def memory(n_samples: int, n_features: int) -> Measures:
    """Return the peak memory that a fit adds, in vectors of n float64."""
    X, y = table(n_samples, n_features)

    def measure(model: Any) -> float:
        tracemalloc.start()
        model.fit(X, y)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest / (8 * n_samples)

    models = {OURS: DPLogisticRegression(data_norm=1.0), "lbfgs": LogisticRegression()}
    return {name: functools.partial(measure, model) for name, model in models.items()}


LOGISTIC = ((1000, 10), (10_000, 10), (20_000, 50), (200_000, 50), (1_000_000, 20), (10_000, 784))
LINEAR = ((1000, 10), (10_000, 10), (20_000, 50), (200_000, 50), (1_000_000, 20))
CASES: dict[str, Callable[[], Measures]] = {
    **{f"logistic {n} x {d}": functools.partial(logistic, n, d) for n, d in LOGISTIC},
    **{f"linear {n} x {d}": functools.partial(linear, n, d) for n, d in LINEAR},
    "boosting 200000 x 14": functools.partial(boosting, 200_000, 14),
    "import": imports,
    "memory 200000 x 50": functools.partial(memory, 200_000, 50),
}


def answer(checkout: str, case: str) -> None:
    """Print the names of what a case measures, and the number of each that the input names: the work of a child process."""
    if Path(skdp.__file__).parents[1] != Path(checkout):
        raise SystemExit(f"skdp is {skdp.__file__}; expected that of {checkout}.")
    warnings.simplefilter("ignore")
    measures = CASES[case]()
    print(*measures, sep=",", flush=True)
    for line in sys.stdin:
        print(measures[line.strip()](), flush=True)


def ask(worker: Any, model: str) -> float:
    """Return what a child process measures."""
    print(model, file=worker.stdin, flush=True)
    return float(worker.stdout.readline())


def turns(case: str, checkouts: dict[str, Path], repeats: int) -> dict[str, list[float]]:
    """Return what each turn measured of each model; ours of every checkout, and the others once, have their turns."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with contextlib.ExitStack() as stack:
        questions: dict[str, tuple[Any, str]] = {}
        for name, checkout in checkouts.items():
            words = [sys.executable, "-c", WORKER, str(checkout), str(Path(__file__).parents[1]), str(checkout), case]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            worker = stack.enter_context(subprocess.Popen(words, env=environment, **pipes))
            models = worker.stdout.readline().strip().split(",")
            questions |= {name: (worker, OURS)} | {model: (worker, model) for model in models[1:] if name == OURS}
        for question in questions.values():  # what comes first is slower, and does not count
            ask(*question)
        found: dict[str, list[float]] = {name: [] for name in questions}
        start = time.perf_counter()
        while len(found[OURS]) < repeats or time.perf_counter() - start < SECONDS:
            for name, question in questions.items():
                found[name].append(ask(*question))
        return found


def compare(cases: list[str], repeats: int, beside: Path | None, out: Path) -> None:
    """Measure, print a table of medians and ratios; write ``speed.json``.

    Parameters
    ----------
    cases : list of str
        Out of ``CASES``.
    repeats : int
        Fewest fits of each model; those of small tables are repeated for a few seconds.
    beside : Path or None
        Directory of an older checkout, whose fits take turns with ours.
    out : Path
        Directory.
    """
    checkouts = {OURS: Path(__file__).parents[1]} | ({} if beside is None else {OLDER: beside.resolve()})
    print(row(["case", "medians", "of the fastest other", "of the older"]), row(["---"] * 4), sep="\n", flush=True)
    results = {}
    for case in cases:
        measured = turns(case, checkouts, repeats)
        medians = {name: round(median(numbers), 3) for name, numbers in measured.items()}
        ours, older = medians[OURS], medians.get(OLDER)
        best = min(value for name, value in medians.items() if name not in checkouts)
        ratios = {"of the fastest other": ours / best} | ({} if older is None else {"of the older": ours / older})
        results[case] = {"medians": medians, "turns": len(measured[OURS]), "ratios": ratios}
        texts = [
            ", ".join(f"{name} {value:.4g}" for name, value in medians.items()),
            *(f"{value:.2f}" for value in ratios.values()),
        ]
        print(row([case, *texts, *[""] * (3 - len(texts))]), flush=True)
        write_json(made_with() | {"cases": results}, out / "speed.json")
