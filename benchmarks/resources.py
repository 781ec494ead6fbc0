"""Time and memory of parts of a fit, most as ratios in one run to NumPy or to other parts; ``speed`` measures whole fits.

Run ``python -m benchmarks resources``; writes ``benchmarks/results/resources.json``. Nothing is asserted.
"""

import functools
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from scipy import sparse

import skdp
from benchmarks.speed import table
from skdp import DPGradientBoostingClassifier, DPLogisticRegression, PrivacyLedger
from skdp.losses import Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.data.summation import BLOCK, summation_error
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BlockGradient, Gradient
from skdp.privacy.schedule import Gaussian, Release, Schedule

RESULTS = Path(__file__).parent / "results" / "resources.json"
N, D = 200_000, 50
TURNS = 9  # fits of each of two models that are compared
IN_TURN = f"Seconds of processor time of one fit, on one thread: medians of {TURNS} fits of each, which took turns."
COORDINATES = 235_000  # of a small network
CALIBRATION = """
import time
import skdp
from skdp.privacy.budget import Budget
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BlockGradient, Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule

sampled, full = Release(Gradient, PoissonGaussian(0.01), 1.0), Release(Gradient, Gaussian(), 1.0)
for epsilon in (1.0, 1.0, 1.01, 1.02, 1.03):
    start = time.perf_counter()
    calibrate(Schedule(((1000, sampled), (10, full))), Budget(epsilon, 1e-6, {adjacency!r}))
    print(1e3 * (time.perf_counter() - start))
"""


def in_turn(models: tuple[Any, Any], X: np.ndarray) -> list[float]:
    """Return the median processor time of fits of each of two models, which take turns."""

    def seconds(model: Any) -> float:
        begin = time.process_time()
        model.fit(X)
        return time.process_time() - begin

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [float(value) for value in np.median([[seconds(model) for model in models] for _ in range(TURNS)], axis=0)]


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def gradient_pass() -> dict[str, float]:
    """One full-data gradient against ``X @ w`` plus ``X.T @ r``."""
    X, y = table(N, D)
    rows = TrainingData(X, y.astype(np.int8), data_norm=1.0, intercept_scaling=1.0)
    query = Gradient(Logistic(), np.ones((D + 1, 1)), 1.0)
    w, r = np.ones(D), np.ones(N)
    theirs = milliseconds(lambda: (X @ w, X.T @ r), 31)
    ours = milliseconds(lambda: query.evaluate(rows), 31)
    return {"ours_ms": ours, "numpy_ms": theirs, "ratio": ours / theirs}


def calibration() -> dict[str, float]:
    """Noise of a schedule of 100 releases for a given budget."""
    schedule = Schedule(((100, Release(Gradient, Gaussian(), 1.0)),))
    return {
        "calibrate_ms": milliseconds(lambda: calibrate(schedule, Budget(1.0, 1e-6, "replace_one")), 201),
        "gaussian_mu_ms": milliseconds(lambda: gaussian_mu(0.1, 1e-9), 201),
    }


def subsampled_calibration() -> dict[str, float]:
    """Noise of 1000 Poisson-subsampled and 10 full-data releases: first call of a process, same budget again, other budgets."""
    times = {}
    for adjacency in ADJACENCIES:
        code = CALIBRATION.format(adjacency=adjacency)
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
        cold, warm, *others = map(float, printed.split())
        others_ms = statistics.median(others)
        times |= {f"{adjacency}_cold_ms": cold, f"{adjacency}_warm_ms": warm, f"{adjacency}_other_budget_ms": others_ms}
    return times


def memory() -> dict[str, float]:
    """Peak memory that a fit adds, in vectors of n float64; a block of 4096 rows is one such vector here."""
    X, y = table(N, D)
    dense = {
        "dense C": X,
        "dense Fortran": np.asfortranarray(X),
        "dense float32": X.astype(np.float32),
        "csr": sparse.csr_matrix(X),
        "csc": sparse.csc_matrix(X),
    }
    block = {"a block of rows": BLOCK * D / N}
    return block | {name: peak(stored, y) / (8 * N) for name, stored in dense.items()}


def memory_of_trees() -> dict[str, float]:
    """Peak memory that a fit of trees adds, in bytes per cell: 54 columns, with and without a schema, and seconds of the fit."""
    rng, n, d = np.random.default_rng(0), 300_000, 54
    measured = {}
    for name, n_numbers in {"10 numbers, 44 categories": 10, "54 numbers": d}.items():
        X = rng.random((n, d))
        X[:, n_numbers:] = X[:, n_numbers:] > 0.7
        y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n) > 0.75).astype(int)
        number, truth = {"kind": "number", "bounds": [0, 1]}, {"kind": "category", "categories": [0, 1]}
        frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(d)])
        facts = {column: number if place < n_numbers else truth for place, column in enumerate(frame)}
        frame = frame.astype(dict.fromkeys(list(frame)[n_numbers:], "int8"))
        del X
        for kind, schema in {"schema": {"columns": facts}, "learned": "learn"}.items():
            model = DPGradientBoostingClassifier(1.0, delta=1e-9, classes=[0, 1], schema=schema)
            measured[f"{name}, {kind}"] = peak(frame, y, model) / (n * d)
            measured[f"{name}, {kind}, seconds"] = milliseconds(functools.partial(model.fit, frame, y), 1) / 1e3
    return measured


def peak(X: object, y: np.ndarray, model: Any = None) -> int:
    """Peak memory that a fit allocates, in bytes."""
    tracemalloc.start()
    (DPLogisticRegression(1.0, data_norm=1.0) if model is None else model).fit(X, y)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


def secure_normals() -> dict[str, float]:
    """Throughput of the secure generator on one core, and the noise of one release of many coordinates.

    Against NumPy's plain generator, and against as many secure normals alone.
    """
    source, plain = NoiseSource(), np.random.default_rng(0)
    ours = milliseconds(lambda: source.normal(1_000_000), 9)
    theirs = milliseconds(lambda: plain.standard_normal(1_000_000), 9)
    sizes = {"relative_sensitivity": 2.0, "scale": 10.0, "n_samples": BLOCK, "summation_error": summation_error(BLOCK, False)}
    noise = GridGaussian.calibrated(clip_norm=1.0, size=COORDINATES, **sizes)
    value = plain.standard_normal(COORDINATES)
    release = milliseconds(lambda: noise.add_to(value, source), 9)
    return {
        "million_per_second": 1e3 / ours,
        "ratio_to_numpy": ours / theirs,
        f"release_of_{COORDINATES}_ms": release,
        f"release_of_{COORDINATES}_ratio_to_normals": release / (ours * COORDINATES / 1e6),
    }


def ledger() -> dict[str, float]:
    """A default fit with a ledger in memory against one without, and what a charge to a file with 100 entries takes."""
    X, y = table(N, D)
    model = DPLogisticRegression(0.01, data_norm=1.0)
    without, within = [], []
    account = PrivacyLedger(epsilon=100.0, delta=1e-5)
    for _ in range(9):  # alternating, so that a change of the machine's speed meets both
        without.append(milliseconds(lambda: model.fit(X, y), 1))
        with account:
            within.append(milliseconds(lambda: model.fit(X, y), 1))
    small = DPLogisticRegression(0.01, delta=1e-6).fit(X[:200], y[:200])
    with tempfile.TemporaryDirectory() as directory, PrivacyLedger(Path(directory) / "file.sqlite", epsilon=10, delta=1e-5):
        for _ in range(100):
            small.fit(X[:200], y[:200])
        charged = milliseconds(lambda: small.fit(X[:200], y[:200]), 31)
    return {
        "in_memory_ratio": statistics.median(within) / statistics.median(without),
        "file_ms_per_fit": charged - milliseconds(lambda: small.fit(X[:200], y[:200]), 31),
    }


def coordinate_passes() -> dict[str, float]:
    """Steps on all 100 columns of 50000 rows, one or ten at a time, in full gradients; noise included in both."""
    X, y = table(50_000, 100)
    ratios = {}
    for name, stored in {"dense Fortran": np.asfortranarray(X), "dense C": X, "csc": sparse.csc_matrix(X)}.items():
        full = answers(stored, y, [None] * 10) / 10
        for width in (1, 10):
            blocks: list[np.ndarray | None] = [np.arange(start, start + width) for start in range(0, 100, width)]
            ratios[f"{name}, blocks of {width}"] = answers(stored, y, blocks) / full
    return ratios


def answers(X: object, y: np.ndarray, blocks: list[np.ndarray | None]) -> float:
    """Return milliseconds per query to the oracle, each after a step on its block; None is all coordinates."""
    kind: Any = Gradient if blocks[0] is None else BlockGradient
    schedule, budget = Schedule(((len(blocks), Release(kind, Gaussian(), 0.1)),)), Budget(1.0, 1e-6, "replace_one")
    scale = calibrate(schedule, budget)

    def ask_all() -> float:
        rows = TrainingData(X, y.astype(np.int8), data_norm=1.0, intercept_scaling=1.0, by_column=kind is BlockGradient)
        oracle = Oracle(rows, schedule, budget, scale, NoiseSource())
        coef, start = np.zeros((101, 1)), time.perf_counter()
        for block in blocks:
            terms = (coef, 0.1) if block is None else (coef, block, 0.1)
            moved = np.zeros_like(coef)
            moved[slice(None) if block is None else block, 0] = 1e-6 * oracle.ask(kind(Logistic(), *terms))
            coef = coef - moved
        return 1e3 * (time.perf_counter() - start)

    return statistics.median(ask_all() for _ in range(7))


MEASUREMENTS = (
    gradient_pass,
    coordinate_passes,
    calibration,
    subsampled_calibration,
    memory,
    memory_of_trees,
    secure_normals,
    ledger,
)


def main() -> None:
    """Measure, print and write."""
    warnings.simplefilter("ignore")
    versions = {"skdp": skdp.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__}
    results: dict[str, object] = {"versions": versions, "python": platform.python_version(), "table": f"{N} x {D} float64"}
    for measure in MEASUREMENTS:
        results[measure.__name__] = {name: round(value, 3) for name, value in measure().items()}
        print(f"{measure.__name__}: {results[measure.__name__]}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
