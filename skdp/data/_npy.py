"""Read tables from NumPy files by the memory map."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from skdp.data._table import Table, check_cache, check_dtype
from skdp.privacy.data.summation import chunk_rows


class NumpyFiles:
    """A source of two files; see `npy`."""

    description = "NumPy file"

    def __init__(self, X: Path, *others: Path) -> None:
        self.names: list[str] | None = None
        self._X, self._others = X, others
        table, columns = self._opened()
        self.n_samples: int | None = table.shape[0]
        self.n_features: int | None = table.shape[1]
        self.dtype = table.dtype
        for path, column in zip(others, columns, strict=True):
            if column.shape != (self.n_samples,):
                raise ValueError(
                    f"{path}: the array has the shape {column.shape}; expected ({self.n_samples},), as {X} has as many rows."
                )

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield copies of runs of rows: somebody could change a view of the files after its records were checked."""
        table, columns = self._opened()
        length = chunk_rows(table.shape[1])
        for start in range(0, len(table), length):
            part = slice(start, start + length)
            yield np.array(table[part], order="C"), *([np.array(column[part]) for column in columns] if columns else (None,))

    def _opened(self) -> tuple[np.ndarray, list[np.ndarray]]:
        return opened(self._X, 2), [opened(path, 1) for path in self._others]


def npy(
    X: str | os.PathLike[str],
    y: str | os.PathLike[str] | None = None,
    *,
    groups: str | os.PathLike[str] | None = None,
    cache: str | None = "disk",
    dtype: str | None = None,
) -> Table:
    """Return a table whose records are in files that ``numpy.save`` wrote.

    Parameters
    ----------
    X : path
        File of an array of shape (n_samples, n_features).
    y : path or None, default=None
        File of an array of shape (n_samples,), the targets; None for a table to predict for.
    groups : path or None, default=None
        File of an array of shape (n_samples,), the label of each record's public group, for `skdp.DPGroupDROClassifier`.
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
    TypeError
        If there are groups and no targets.
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
    for name, path in (("X", X), ("y", y), ("groups", groups)):
        if not (isinstance(path, (str, os.PathLike)) or (path is None and name != "X")):
            raise TypeError(f"{name} is a {type(path).__name__}; expected a path of a file. Arrays go to fit(X, y) as they are.")
    if y is None and groups is not None:
        raise TypeError("groups is given without y; expected a file of targets beside a file of groups.")
    source = NumpyFiles(Path(X), *(Path(path) for path in (y, groups) if path is not None))
    return Table(source, cache=check_cache(cache), dtype=check_dtype(dtype))


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
