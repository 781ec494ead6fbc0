"""Read tables from a function of the user's that yields them in chunks."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from skdp._validation import check_integer, shown
from skdp.data._table import Table, check_cache, check_dtype, copied, quoting_nothing

END = object()
FAILED = (
    "The function that yields the chunks failed; its error may quote a record and is left out. "
    "A loop over what the function returns shows it."
)
SAME = (
    "The function returned the same iterator as before, which is empty now; expected a new one at each call, as a function with "
    "yield returns."
)


class Factory:
    """A source of what a function yields; see `chunks`."""

    description = "chunks of a function"
    made = True
    n_samples: int | None = None
    names: list[str] | None = None

    def __init__(self, factory: Callable[[], Iterable[Any]], n_features: int | None) -> None:
        self._factory, self.n_features = factory, n_features
        self._last: Iterator[Any] | None = None

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield copies of the chunks of a new iterator: a function that fills one array again and again would repeat records."""
        given = quoting_nothing(lambda: iter(self._factory()), FAILED)
        same, self._last, empty = given is self._last, given, True
        while (chunk := quoting_nothing(lambda: next(given, END), FAILED)) is not END:
            empty = False
            parts: tuple[Any, ...] = chunk if isinstance(chunk, tuple) and len(chunk) in (2, 3) else (chunk, None)
            shape: tuple[Any, ...] = getattr(parts[0], "shape", ())
            if self.n_features is not None and len(shape) == 2 and shape[1] != self.n_features:
                raise ValueError(f"A chunk has another number of columns than n_features={self.n_features}; expected this one.")
            yield tuple(map(copied, parts))
        if same and empty:
            raise ValueError(SAME)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}  # an iterator may not be pickled


def chunks(
    factory: Callable[[], Iterable[Any]], *, n_features: int | None = None, cache: str | None = "disk", dtype: str | None = None
) -> Table:
    """Return a table whose records come from a function that yields them in chunks.

    Parameters
    ----------
    factory : callable
        Returns a new iterator over pairs (X, y), each of some records, or over X alone for a table to predict for, or over
        triples (X, y, groups) with the label of each record's public group, for `skdp.DPGroupDROClassifier`. Each call must
        yield the same records in the same order, since a fit reads the table more than once without a kept copy.
    n_features : int or None, default=None
        Number of columns, for ``plan``; None if it is not known before the table is read.
    cache : {"disk", None}, default="disk"
        Whether ``fit`` keeps a copy of the records in a private file, or calls the function once per pass over the data.
    dtype : {"float32", "float64", None}, default=None
        What X is converted to, number by number, before it reaches the estimator. "float32" halves the kept copy and the time to
        read it; the numbers are rounded to 7 digits, so the model has other bits. None leaves X as it is.

    Returns
    -------
    Table
        Nothing is read yet.

    Raises
    ------
    TypeError
        If ``factory`` is not callable, such as an iterator, which is empty after one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.data import chunks
    >>> from skdp.estimators import DPLinearRegression
    >>> def year_by_year():
    ...     for year in range(5):
    ...         rng = np.random.default_rng(year)
    ...         X = rng.uniform(-1, 1, size=(10_000, 3))
    ...         yield X, X[:, 0] - X[:, 1] / 2
    >>> model = DPLinearRegression(feature_bounds=1.0, target_bounds=(-1.5, 1.5)).fit(chunks(year_by_year))
    >>> model.n_features_in_
    3
    """
    if not callable(factory):
        raise TypeError(
            f"factory={shown(factory)}; expected a function that returns a new iterator at each call. An iterator or a generator "
            "is empty after one pass: lambda: (... for ... in ...) makes a function of it."
        )
    check_integer("n_features", n_features, minimum=1, optional=True)
    return Table(Factory(factory, n_features), cache=check_cache(cache), dtype=check_dtype(dtype))
