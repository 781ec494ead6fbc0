"""Time and memory of tables in partitions: one pass by source as a ratio to memory, and a whole fit of generated records.

Run ``python -m benchmarks scale``; writes scale.json and scale.md. Nothing is asserted.
"""

import math
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.writing import made_with, row, write_json
from skdp.data import chunks, parquet
from skdp.estimators import DPLogisticRegression
from skdp.losses import Logistic
from skdp.privacy.data.partition import Chunk, chunks_of
from skdp.privacy.data.partitioned_rows import PartitionedRows
from skdp.privacy.data.summation import LONGEST, chunk_rows
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.engines import threads
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.queries import Gradient

__all__ = ["generated_fit", "measure", "passes"]

FRESH = 10**6  # records of a test table
INTERVAL = 0.02  # seconds between two looks at the memory
SHAPES = {"wide": (2 * 10**6, 50), "narrow": (10**7, 6)}
QUICK = 10  # a quick run has so many times fewer records
GENERATED, GENERATED_QUICK = 10**7, 10**6
REPEATS = 7
BOUNDS = {"data_norm": 1.0, "intercept_scaling": 1.0}


def generated(n_samples: int, n_features: int, first_seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield standard normal records in float32 and labels of a logistic model, chunk by chunk, the same ones each time."""
    coef = np.random.default_rng(0).standard_normal(n_features, dtype=np.float32) * np.float32(2 / np.sqrt(n_features))
    for number, start in enumerate(range(0, n_samples, LONGEST)):
        rng = np.random.default_rng([first_seed, number])
        X = rng.standard_normal((min(LONGEST, n_samples - start), n_features), dtype=np.float32)
        yield X, (X @ coef + rng.logistic(size=len(X)).astype(np.float32) > 0).astype(np.int8)


class AnonymousMemory:
    """Watches the memory of the process that is not that of a file, in MiB, while it is entered."""

    def __enter__(self) -> "AnonymousMemory":
        self._base = self.peak = anonymous()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._left.set()
        self._thread.join()

    @property
    def added(self) -> float:
        """The peak over what there was at the start."""
        return self.peak - self._base

    def _watch(self) -> None:
        while not self._left.wait(INTERVAL):
            self.peak = max(self.peak, anonymous())


def anonymous() -> float:
    """Return the anonymous memory of this process in MiB, as Linux states it."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


@contextmanager
def timed_engine() -> Iterator[dict[str, list[float]]]:
    """Collect the seconds of each load, change and pass of the thread engine."""
    taken: dict[str, list[float]] = {"load": [], "change": [], "reduce": []}

    def timed(name: str, method: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        result = method(*arguments)
        taken[name].append(time.perf_counter() - start)
        return result

    originals = {name: getattr(ThreadEngine, name) for name in taken}
    with patch.multiple(ThreadEngine, **{n: lambda *a, n=n: timed(n, originals[n], *a) for n in taken}):
        yield taken


def generated_fit(n_samples: int, n_features: int = 20) -> dict[str, float]:
    """Fit generated records out of core, beside one epoch of scikit-learn's SGDClassifier on the same chunks.

    Parameters
    ----------
    n_samples : int
        Number of records.
    n_features : int, default=20
        Number of columns.

    Returns
    -------
    dict
        Seconds, peak of anonymous memory in MiB, and areas under the ROC curve.
    """
    table = chunks(partial(generated, n_samples, n_features), n_features=n_features)
    model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], feature_bounds=4.0)
    fresh = [np.concatenate(parts) for parts in zip(*generated(FRESH, n_features, 1), strict=True)]
    start = time.perf_counter()
    for _ in generated(n_samples, n_features):
        pass
    measured = {"n_samples": n_samples, "n_features": n_features, "generation_s": time.perf_counter() - start}
    with timed_engine() as taken, AnonymousMemory() as memory:
        start = time.perf_counter()
        model.fit(table)
        measured["fit_s"] = time.perf_counter() - start
    measured |= {
        "load_s": sum(taken["load"]),
        "norms_s": sum(taken["change"]),
        "n_passes": len(taken["reduce"]),
        "pass_median_s": statistics.median(taken["reduce"]),
        "pass_longest_s": max(taken["reduce"]),
        "anonymous_added_mib": memory.added,
        "anonymous_peak_mib": memory.peak,
        "auc": roc_auc_score(fresh[1], model.decision_function(fresh[0])),
    }
    theirs = SGDClassifier(loss="log_loss", random_state=0)
    start = time.perf_counter()
    for X, y in generated(n_samples, n_features):
        theirs.partial_fit(X, y, classes=[0, 1])
    measured["sgd_s"] = time.perf_counter() - start
    return measured | {"sgd_auc": roc_auc_score(fresh[1], theirs.decision_function(fresh[0]))}


class Passes:
    """One pass over the data, a full gradient, by where the records are; ``seconds`` has the time of each."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.X, self.y = X, y
        self.calls: dict[str, Callable[[], np.ndarray]] = {}
        self._open: list[PartitionedRows] = []

    def add_partitions(self, name: str, dtype: Any = np.float64, kept: bool = True, n_threads: int = 1) -> float:
        """Load the table into partitions, and return the seconds that it took."""

        def read() -> Iterator[Chunk]:
            length = chunk_rows(self.X.shape[1])
            parts = (slice(start, start + length) for start in range(0, len(self.y), length))
            return chunks_of((Chunk(self.X[part].astype(dtype), self.y[part]) for part in parts), length)

        start = time.perf_counter()
        with patch.object(threads, "cpu_count", lambda: n_threads):
            engine = ThreadEngine(read, kept)
        loaded = engine.load()
        rows = PartitionedRows(engine, loaded, [None] * len(loaded), BOUNDS)
        self._open.append(rows)
        self.calls[name] = lambda: rows.reduced(self._query())
        return time.perf_counter() - start

    def add_memory(self) -> None:
        """Put the table behind the oracle as it is."""
        rows = TrainingData(self.X, self.y, **BOUNDS)
        self.calls["memory"] = lambda: rows.reduced(self._query())

    def measured(self) -> dict[str, float]:
        """Return the median seconds of a pass, taken in turns, so that a change of the machine's speed meets all of them."""
        taken: dict[str, list[float]] = {name: [] for name in self.calls}
        for call in self.calls.values():
            call()  # not counted
        for _ in range(REPEATS):
            for name, call in self.calls.items():
                start = time.perf_counter()
                call()
                taken[name].append(time.perf_counter() - start)
        return {name: statistics.median(times) for name, times in taken.items()}

    def close(self) -> None:
        """Free the kept copies."""
        for rows in self._open:
            rows.close()

    def _query(self) -> Gradient:
        return Gradient(Logistic(), np.ones((self.X.shape[1] + 1, 1)), 1.0)


def passes(n_samples: int, n_features: int) -> dict[str, float]:
    """Return seconds of a pass over the same records by where they are, and of loads, with one BLAS thread.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the table.

    Returns
    -------
    dict
        Seconds by source.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) / math.sqrt(n_features)
    y = (X[:, 0] + rng.standard_normal(n_samples) > 0).astype(np.int8)
    table = Passes(X, y)
    with threadpool_limits(1, user_api="blas"):
        table.add_memory()
        loads = {"load of chunks": table.add_partitions("kept copy")}
        table.add_partitions("kept copy, 2 threads", n_threads=2)
        table.add_partitions("kept copy, float32", np.float32)
        table.add_partitions("read anew", kept=False)
        measured = table.measured()
        table.close()
        return measured | loads | {"read of Parquet": parquet_seconds(X, y)}


def parquet_seconds(X: np.ndarray, y: np.ndarray) -> float:
    """Return the seconds in which `skdp.data.parquet` reads a table."""
    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        columns = {f"x{number}": X[:, number] for number in range(X.shape[1])} | {"y": y}
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2**17)
        start = time.perf_counter()
        for _ in parquet(path, target="y").batches():
            pass
        return time.perf_counter() - start


def measure(quick: bool, n_samples: int | None, out: Path) -> None:
    """Measure passes and a fit of generated records, and write scale.json and scale.md.

    Parameters
    ----------
    quick : bool
        Small tables only, in a minute.
    n_samples : int or None
        Number of records of the generated table; None for ten million, or one million if quick.
    out : Path
        Directory.
    """
    divisor = QUICK if quick else 1
    ratios = {name: passes(n // divisor, d) for name, (n, d) in SHAPES.items()}
    fit = generated_fit(n_samples or (GENERATED_QUICK if quick else GENERATED))
    write({"quick": quick, "seconds": ratios, "generated": [fit]}, out)


def write(results: dict[str, Any], out: Path) -> None:
    """Write scale.json and scale.md.

    Parameters
    ----------
    results : dict
        What was measured.
    out : Path
        Directory.
    """
    write_json(made_with() | results, out / "scale.json")
    divisor = QUICK if results["quick"] else 1
    shapes = [f"{n // divisor:,} x {d}" for n, d in SHAPES.values()]
    lines = ["# Tables in partitions", "", "Seconds over those of a pass in memory, float64, one BLAS thread.", ""]
    lines += [row(["", *shapes]), row(["---"] * (1 + len(shapes)))]
    tables = list(results["seconds"].values())
    for name in tables[0] if tables else ():
        lines.append(row([name, *(f"{table[name] / table['memory']:.2f}" for table in tables)]))
    lines += ["", "Fits of generated float32 records out of core, and one epoch of SGDClassifier on the same chunks.", ""]
    fits = results["generated"]
    lines += [row(["", *(f"{fit['n_samples']:,} x {fit['n_features']}" for fit in fits)]), row(["---"] * (1 + len(fits)))]
    for name in list(fits[0])[2:]:
        lines.append(row([name, *(f"{fit[name]:.4g}" for fit in fits)]))
    lines += ["", *results.get("notes", [])]
    out.mkdir(parents=True, exist_ok=True)
    (out / "scale.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
