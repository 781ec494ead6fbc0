"""Fits and predictions of tables in partitions need memory for a few chunks, however long the table is."""

import subprocess
import sys

import pytest

from skdp.privacy.data.summation import chunk_rows

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
D = 20
CHUNK = chunk_rows(D) * D * 8 / 2**20  # MiB
ALLOWED = 6 * CHUNK + 64
CODE = """
import numpy as np
from benchmarks.scale import AnonymousMemory, generated
from skdp.data import chunks, npy
from skdp.estimators import DPLogisticRegression

n, source, folder = {n}, {source!r}, {folder!r}
def factory():
    return ((X.astype(np.float64), y) for X, y in generated(n, {d}))
if source == "chunks":
    table = chunks(factory)
else:
    files = [np.lib.format.open_memmap(folder + name, "w+", kind, shape)
             for name, kind, shape in (("/X.npy", float, (n, {d})), ("/y.npy", np.int8, (n,)))]
    start = 0
    for parts in factory():
        for file, part in zip(files, parts):
            file[start : start + len(part)] = part
        start += len(part)
    table = npy(folder + "/X.npy", folder + "/y.npy")
def model():
    return DPLogisticRegression(classes=[0, 1], feature_bounds=4.0, solver="newton")
fitted = model().fit(chunks(lambda: generated(20_000, {d})))
fitted.predict(np.zeros((5, {d})))
with AnonymousMemory() as fit:
    model().fit(table)
with AnonymousMemory() as predict:
    labels = fitted.predict(table)
print(fit.added, predict.added - labels.nbytes / 2**20)
"""


def added(n, source, folder):
    """MiB that a fit, and a prediction beside its result, add to the memory of a process."""
    code = CODE.format(n=n, d=D, source=source, folder=str(folder))
    printed = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True).stdout
    return [float(word) for word in printed.split()]


@pytest.mark.exhaustive
def test_memory_of_a_table_of_320_mib(tmp_path):
    """A copy of the table would be above the limit."""
    n_samples = 2**21
    assert n_samples * D * 8 / 2**20 > 1.5 * ALLOWED
    assert max(added(n_samples, "chunks", tmp_path)) <= ALLOWED


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("source, n_samples", (("chunks", 10**7), ("npy", 5 * 10**6)))
def test_memory_of_many_million_records(source, n_samples, tmp_path):
    assert max(added(n_samples, source, tmp_path)) <= ALLOWED
