"""Keep records in a private file, which has no name and ends with the process, and read them by the memory map."""

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable

import numpy as np
from scipy import sparse

from skdp.privacy.data.partition import Chunk
from skdp.privacy.errors import SourceError

DIRECTORY = "SKDP_SPILL_DIR"  # environment variable that names the directory of the file; by default the system's temporary one
# what `TrainingData` computes once, one number per record
SIDE = {"scales": np.float64, "norms": np.float64, "view": np.float64, "lengths": np.float64, "largest": np.float64}


# Bytes of the file that one memory map covers: as many as there are in the file, between these. A choice: each map holds a file
# descriptor, of which a process may have 256, and the space is taken chunk by chunk.
SHORTEST_MAP, LONGEST_MAP = 2**26, 2**33
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ZEROS = 2**20  # bytes that are written at a time where the system cannot reserve space


class Spill:
    """A file of mode 0600 that has no name, so that nobody else can change it and a crash leaves nothing behind.

    Raises
    ------
    SourceError
        If the directory cannot be written to, or has not enough space; before anything is charged.
    """

    def __init__(self) -> None:
        self._directory = os.environ.get(DIRECTORY) or tempfile.gettempdir()
        try:
            self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)
        except OSError:
            raise SourceError(f"No file can be made in {self._directory!r}; {DIRECTORY} names another directory.") from None
        self._map: mmap.mmap | None = None  # the last part of the file
        self._start = self._used = 0  # where it begins in the file, and how much of it is taken

    def check_space(self, n_samples: int, row_bytes: int) -> None:
        """Raise SourceError if there is no space for so many records, of so many bytes each, and what is kept beside them."""
        n_bytes = n_samples * (row_bytes + sum(np.dtype(kind).itemsize for kind in SIDE.values()))
        free = shutil.disk_usage(self._directory).free
        if n_bytes > free:
            raise SourceError(
                f"The kept copy of the table needs {n_bytes / 2**30:.1f} GiB in {self._directory!r}, where "
                f"{free / 2**30:.1f} GiB are free. {DIRECTORY} names another directory; cache=None keeps no copy and reads the "
                "source once per pass over the data."
            )

    def keep(self, chunk: Chunk) -> tuple[Chunk, Callable[[str, np.ndarray], np.ndarray]]:
        """Write a chunk to the file.

        Parameters
        ----------
        chunk : Chunk
            The records.

        Returns
        -------
        chunk : Chunk
            The same records, in the file.
        keep : callable
            Writes an array that `TrainingData` computes once, by name.
        """
        arrays, n_rows = list(chunk.arrays), len(chunk.y)
        codes = {"y": chunk.y, "groups": chunk.groups}  # their numbers have places of their own: work may be done again
        side = SIDE | {name: array.dtype for name, array in codes.items() if array is not None and array.dtype.kind == "i"}
        names = [*range(len(arrays)), *side]
        kinds = [(array.dtype, array.shape) for array in arrays] + [(np.dtype(kind), (n_rows,)) for kind in side.values()]
        starts = np.cumsum([0] + [_aligned(dtype.itemsize * int(np.prod(shape))) for dtype, shape in kinds])
        region, first = self._region(int(starts[-1]))
        views = {
            name: np.frombuffer(region, dtype, int(np.prod(shape)), first + int(start)).reshape(shape)
            for name, (dtype, shape), start in zip(names, kinds, starts, strict=False)
        }
        for place, array in enumerate(arrays):
            np.copyto(views[place], array)
        n_of_table = len(arrays) - 1 - (chunk.groups is not None)
        table = views[0] if n_of_table == 1 else _csr([views[place] for place in range(3)], chunk.X.shape)
        groups = None if chunk.groups is None else views[n_of_table + 1]

        def keep(name: str, array: np.ndarray) -> np.ndarray:
            np.copyto(views[name], array)
            return views[name]

        return Chunk(table, views[n_of_table], groups), keep

    def close(self) -> None:
        """Free the file; its space is free once no chunk is in use."""
        self._map = None
        self._file.close()

    def _region(self, size: int) -> tuple[mmap.mmap, int]:
        """Return new space: a memory map, and where the space begins in it."""
        size = _whole(max(size, 1))
        try:
            if self._map is None or self._used + size > len(self._map):
                self._start += 0 if self._map is None else len(self._map)
                length = _whole(max(size, SHORTEST_MAP, min(self._start, LONGEST_MAP)))
                self._file.truncate(self._start + length)
                self._map, self._used = mmap.mmap(self._file.fileno(), length, offset=self._start), 0
            self._take(self._start + self._used, size)
        except OSError:
            raise SourceError(
                f"No space is left in {self._directory!r} for the kept copy of the table. {DIRECTORY} names another directory; "
                "cache=None keeps no copy and reads the source once per pass over the data."
            ) from None
        self._used += size
        return self._map, self._used - size

    def _take(self, start: int, size: int) -> None:
        """Reserve space on the disk: a write through a map to a full disk would end the process."""
        if hasattr(os, "posix_fallocate"):
            try:
                return os.posix_fallocate(self._file.fileno(), start, size)
            except OSError as error:
                if error.errno in FULL:
                    raise
        self._file.seek(start)
        for place in range(0, size, ZEROS):
            part = bytes(min(ZEROS, size - place))
            if self._file.write(part) != len(part):
                raise OSError(errno.ENOSPC, "")
        return None


def _whole(size: int) -> int:
    return -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _csr(arrays: list[np.ndarray], shape: tuple[int, int]) -> sparse.csr_array:
    table = sparse.csr_array(shape)
    table.data, table.indices, table.indptr = arrays
    return table
