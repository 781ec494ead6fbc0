"""The private file of a kept copy: who can read it, when it is gone, and disks that are full or old."""

import errno
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from skdp import SourceError
from skdp.data import npy
from skdp.estimators import DPLogisticRegression
from skdp.privacy.data import spill
from skdp.privacy.data.partition import Chunk
from skdp.privacy.data.spill import Spill

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
X = np.random.default_rng(0).normal(size=(5000, 3))
CHUNKS = {
    "dense": Chunk(X, np.arange(5000)),
    "float32 and groups": Chunk(X.astype(np.float32), np.arange(5000, dtype=np.int16), np.arange(5000, dtype=np.int16)),
    "csr": Chunk(sparse.csr_array(np.where(X > 1, X, 0)), X[:, 0]),
    "empty csr": Chunk(sparse.csr_array((5000, 3)), X[:, 0]),
}
KILLED = """
import os, signal
import numpy as np
from skdp.privacy.data.partition import Chunk
from skdp.privacy.data.spill import Spill
kept = Spill()
kept.keep(Chunk(np.full((5000, 3), 7.0), np.zeros(5000)))
print(kept._file.fileno(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def same(kept, chunk):
    return all(map(np.array_equal, kept.arrays, chunk.arrays)) and [a.dtype for a in kept.arrays] == [
        a.dtype for a in chunk.arrays
    ]


@pytest.mark.parametrize("maps", ("one map", "a map per chunk"))
def test_chunks_come_back_as_they_were(maps, monkeypatch):
    if maps == "a map per chunk":
        monkeypatch.setattr(spill, "SHORTEST_MAP", 1)
        monkeypatch.setattr(spill, "LONGEST_MAP", 1)
    file = Spill()
    kept = {name: file.keep(chunk) for name, chunk in CHUNKS.items()}
    for name, (chunk, keep) in kept.items():
        side = keep("norms", np.full(5000, len(name), dtype=float))
        assert not side.flags.owndata
        assert np.all(side == len(name))
        assert type(chunk.X) is type(CHUNKS[name].X)
        assert same(chunk, CHUNKS[name])
    file.close()
    assert same(kept["csr"][0], CHUNKS["csr"])


@linux
def test_chunks_share_file_descriptors(monkeypatch):
    """A memory map holds one, and a process may have few."""
    monkeypatch.setattr(spill, "SHORTEST_MAP", 2**20)
    before, file = len(os.listdir("/proc/self/fd")), Spill()
    kept = [file.keep(CHUNKS["dense"]) for _ in range(300)]
    assert len(os.listdir("/proc/self/fd")) <= before + 10
    file.close()
    del kept
    assert len(os.listdir("/proc/self/fd")) <= before  # another file of the process may have been closed


@linux
def test_nobody_else_can_open_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv(spill.DIRECTORY, str(tmp_path))
    file = Spill()
    file.keep(CHUNKS["dense"])
    status = os.fstat(file._file.fileno())
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0
    assert not list(tmp_path.iterdir())
    file.close()


@pytest.mark.slow
@linux
def test_nothing_is_left_of_a_killed_process(tmp_path):
    environment = os.environ | {spill.DIRECTORY: str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode < 0
    assert int(done.stdout) > 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("system", ("no call", "no such call on this file system"))
def test_systems_that_reserve_no_space_write_zeros(system, monkeypatch):
    def refused(*_):
        raise OSError(errno.EOPNOTSUPP, "")

    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    if system != "no call":
        monkeypatch.setattr(os, "posix_fallocate", refused, raising=False)
    file = Spill()
    chunks = [file.keep(CHUNKS["dense"])[0] for _ in range(20)]
    assert os.fstat(file._file.fileno()).st_blocks * 512 >= 20 * X.nbytes
    assert all(same(chunk, CHUNKS["dense"]) for chunk in chunks)
    file.close()


def test_a_full_disk_stops_the_fit_by_a_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "")

    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0] > 0)
    table, model = npy(tmp_path / "X.npy", tmp_path / "y.npy"), DPLogisticRegression()
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(SourceError, match=r"No space is left in .* cache=None keeps no copy"):
        model.fit(table)
    monkeypatch.setattr(spill.shutil, "disk_usage", lambda _: SimpleNamespace(free=5000 * (3 + 4) * 8 - 1))
    monkeypatch.setattr(Spill, "keep", lambda *_: pytest.fail("a chunk was written"))
    with pytest.raises(SourceError, match=r"needs 0\.0 GiB .* 0\.0 GiB are free"):
        model.fit(table)
    assert not hasattr(model, "coef_")


def test_a_directory_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv(spill.DIRECTORY, str(tmp_path / "nowhere"))
    with pytest.raises(SourceError, match="No file can be made in"):
        Spill()
