"""Read tables from NumPy files by the memory map."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from skdp.data._table import Table, check_cache, check_dtype
from skdp.privacy.data.summation import chunk_rows

__all__ = ["npy"]


class NumpyFiles:
    """A source of two files; see `npy`."""

    description = "NumPy file"

    def __init__(self, X: Path, y: Path | None) -> None:
        self.names: list[str] | None = None
        self._paths = X, y
        table, targets = self._opened()
        self.n_samples: int | None = table.shape[0]
        self.n_features: int | None = table.shape[1]
        self.dtype = table.dtype
        if targets is not None and targets.shape != (self.n_samples,):
            raise ValueError(
                f"{y}: the array has the shape {targets.shape}; expected ({self.n_samples},), as {X} has as many rows."
            )

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield copies of runs of rows: somebody could change a view of the files after its records were checked."""
        table, targets = self._opened()
        length = chunk_rows(table.shape[1])
        for start in range(0, len(table), length):
            part = slice(start, start + length)
            yield np.array(table[part], order="C"), None if targets is None else np.array(targets[part])

    def _opened(self) -> tuple[np.ndarray, np.ndarray | None]:
        X, y = self._paths
        return opened(X, 2), None if y is None else opened(y, 1)


def npy(
    X: str | os.PathLike[str], y: str | os.PathLike[str] | None = None, *, cache: str | None = "disk", dtype: str | None = None
) -> Table:
    """Return a table whose records are in files that ``numpy.save`` wrote.

    Parameters
    ----------
    X : path
        File of an array of shape (n_samples, n_features).
    y : path or None, default=None
        File of an array of shape (n_samples,), the targets; None for a table to predict for.
    cache : {"disk", None}, default="disk"
        Whether ``fit`` keeps a copy of the records in a private file, or reads the files once per pass over the data.
    dtype : {"float32", "float64", None}, default=None
        What X is converted to, number by number, before it reaches the estimator. "float32" halves the kept copy and the time to
        read it; the numbers are rounded to 7 digits, so the model has other bits. None leaves X as it is.

    Returns
    -------
    Table
        Only the headers of the files are read now.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file holds no array of the right shape, or one of Python objects.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from skdp.data import npy
    >>> from skdp.estimators import DPLogisticRegression
    >>> folder = Path(tempfile.mkdtemp())
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> np.save(folder / "X.npy", X)
    >>> np.save(folder / "y.npy", X[:, 0] > 0)
    >>> table = npy(folder / "X.npy", folder / "y.npy")
    >>> model = DPLogisticRegression(feature_bounds=1.0, classes=[False, True]).fit(table)
    >>> model.predict(npy(folder / "X.npy")).shape
    (20000,)
    """
    return Table(NumpyFiles(Path(X), None if y is None else Path(y)), cache=check_cache(cache), dtype=check_dtype(dtype))


def opened(path: Path, n_dimensions: int) -> np.ndarray:
    """Return the array of a file as a memory map."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file.") from None
    except Exception:
        array = None
    if not isinstance(array, np.ndarray) or array.ndim != n_dimensions:
        raise ValueError(f"{path}: expected a file of numpy.save with an array of {n_dimensions} dimension(s), not of objects.")
    return array
