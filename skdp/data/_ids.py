"""Read tables in partitions whose rows are of persons: count the rows of each first, and leave the column of ids out.

The process of the fit numbers the ids, all of them, and knows so which rows of a person come first: a row has the weight that it
has in memory. Each later reading compares a fingerprint of the ids, which is keyed with a secret of the fit.
"""

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skdp._data_validation import len_of
from skdp._files._suffixes import imported
from skdp._persons import LENGTHS, check_column, checked_ids, persons_of, persons_of_unique, unique_ids
from skdp._table_types import as_frame, is_dask
from skdp.data._dask import FAILED, OF_DASK, as_cut, checked_parts
from skdp.data._table import quoting_nothing
from skdp.privacy.data.partition import DIGEST_BYTES, Failure, guarded
from skdp.privacy.data.persons import SomeRows
from skdp.privacy.errors import SourceError

STATED = ("description", "names", "made", "dtype", "target_dtype", "types")  # attributes of sources
OTHER_IDS = "The source has other ids of persons than when their rows were counted: it has changed."


class Fingerprint:
    """A fingerprint of ids, keyed with a secret, which does not depend on how they are cut into batches."""

    def __init__(self, secret: bytes) -> None:
        self._hash = hashlib.blake2b(key=secret, digest_size=DIGEST_BYTES)

    def of(self, ids: Any) -> np.ndarray:
        """Check ids, add them to the fingerprint, and return them."""
        known = checked_ids(ids)
        same = (
            known.astype(np.int64).tobytes() if known.dtype.kind == "i" else "".join(map("{!r},".format, known.tolist())).encode()
        )
        self._hash.update(same)
        return known

    def digest(self) -> bytes:
        """Return the fingerprint of all ids so far."""
        return self._hash.digest()


class OfPersons:
    """A source whose rows are of persons: without the column of their ids, which must be the same in each reading.

    Parameters
    ----------
    source : Source
        The records.
    name : str or None
        The column of the ids; None if these are beside the table.

    Attributes
    ----------
    n_samples : int
        Number of persons, which is public; the number of rows is not.
    first_reads : int
        Readings before the passes of a fit: 2 if one counts the ids of a column.
    """

    def __init__(self, source: Any, name: str | None) -> None:
        of_files = name is not None and hasattr(source, "without")
        self._source, self._name = source.without(name) if of_files else source, name
        self.description: str = ""
        vars(self).update({fact: getattr(self._source, fact) for fact in STATED if hasattr(self._source, fact)})
        self.description = self.description.partition(",")[0]  # without the number of files, which may follow that of rows
        self.n_features: int | None = self._source.n_features
        if name is not None and not of_files and self.n_features is not None:
            self.n_features -= 1
        self._secret, self._digest = secrets.token_bytes(32), b""
        self.n_samples: int | None = None
        self.first_reads = 1 if name is None else 2

    def count(self, ids: Any) -> SomeRows:
        """Return the weights of the rows, from ids beside the table, or from one reading of the column."""
        persons = persons_of(*([ids] if self._name is None else self._known()))
        self.n_samples = persons.n_persons
        return SomeRows(persons.weights, persons.n_persons)

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield X, y and public groups if there are any, batch by batch; raise SourceError for other ids than were counted."""
        fingerprint = Fingerprint(self._secret)
        for X, ids, *others in self._apart():
            if any(part is not None and len_of(part) != len_of(X) for part in (ids, *others)):
                raise ValueError(LENGTHS)
            if ids is not None:
                fingerprint.of(ids)
            yield X, *others
        if self._name is not None and fingerprint.digest() != self._digest:
            raise SourceError(OTHER_IDS)

    def _apart(self) -> Iterator[tuple[Any, ...]]:
        """Yield X, ids (None if they are beside the table) and what else there is, batch by batch."""
        if self._name is None:
            yield from ((X, None, *others) for X, *others in self._source.batches())
        elif hasattr(self._source, "batches_with"):
            for X, y, ids in self._source.batches_with([self._name]):
                yield X, ids[self._name].to_pandas(), y
        else:
            for X, *others in self._source.batches():
                frame = as_frame(X)
                check_column(self._name, getattr(frame, "columns", ()))
                yield frame[[name for name in frame.columns if name != self._name]], frame[self._name], *others

    def _known(self) -> Iterator[np.ndarray]:
        """Yield the ids, batch by batch, and keep their fingerprint."""
        fingerprint = Fingerprint(self._secret)
        yield from map(fingerprint.of, self._column())
        self._digest = fingerprint.digest()

    def _column(self) -> Iterator[Any]:
        if hasattr(self._source, "column"):
            yield from self._source.column(self._name)
        else:
            yield from (ids for _, ids, *_ in self._apart())


@dataclass(frozen=True, repr=False)
class UniqueIds:
    """Find the different ids of a partition; its ``repr`` has no key, for Dask logs it.

    Parameters
    ----------
    secret : bytes
        Key of the fingerprint.
    """

    secret: bytes

    def __call__(self, ids: Any) -> tuple[np.ndarray, np.ndarray, bytes] | Failure:
        """Return the different ids, which of them each row has, and a fingerprint; or a failure, which quotes none."""
        return guarded(self._found, ids)  # type: ignore[no-any-return]

    def _found(self, ids: Any) -> Any:
        fingerprint = Fingerprint(self.secret)
        try:
            return *unique_ids(fingerprint.of(ids)), fingerprint.digest()
        except (TypeError, ValueError) as error:
            return Failure(type(error), str(error))


@dataclass(frozen=True, repr=False)
class SameIds:
    """Pass a partition on if the ids of its rows are those that were counted.

    Parameters
    ----------
    read : UniqueIds
        Reads the ids as when they were counted.
    """

    read: UniqueIds

    def __call__(self, X: Any, ids: Any, digest: bytes) -> Any:
        """Return X, or raise SourceError."""
        found = self.read(ids)
        if len(X) != len(ids) or isinstance(found, Failure) or found[-1] != digest:
            raise SourceError(OTHER_IDS)
        return X


def taken_ids(X: Any, ids: Any) -> tuple[Any, SomeRows]:
    """Return a table in partitions without a column of ids, and the weights of its rows, whose ids are read once.

    Parameters
    ----------
    X : Table or Dask collection
        The table.
    ids : array-like of shape (n_rows,), str or dask Series
        An id per row, in the order of the table, or the name of a column of it.

    Returns
    -------
    X : Table or Dask collection
        The table.
    rows : SomeRows
        The weights: 8 bytes per row.
    """
    if is_dask(X):
        return _of_dask(X, ids)
    if is_dask(ids):
        raise TypeError(
            "persons is a Dask collection beside a table of skdp.data; expected ids in memory, or the name of a column."
        )
    name = ids if isinstance(ids, str) else None
    if name is not None and X.steps:  # they may have mapped the column
        check_column(name, ())
    source = OfPersons(X.source, name)
    rows = source.count(ids)
    return replace(X, source=source), rows


def _of_dask(X: Any, ids: Any) -> tuple[Any, SomeRows]:
    """Return a Dask collection whose partitions check the ids of their rows, and the weights of the rows."""
    if isinstance(ids, str):
        check_column(ids, getattr(X, "columns", ()))
        ids, X = X[ids], X[[name for name in X.columns if name != ids]]
    if not is_dask(ids):
        persons = persons_of(ids)
        return X, SomeRows(persons.weights, persons.n_persons)
    if (
        not hasattr(X, "map_partitions")
        or not hasattr(ids, "map_partitions")
        or ids.ndim != 1
        or X.npartitions != ids.npartitions
    ):
        raise TypeError(
            "persons is a Dask collection that does not fit X; expected a Dask series beside a Dask frame with the same "
            "partitions, such as ddf['patient'] beside ddf[columns], the name of a column of X, or ids in memory."
        )
    dask, read = imported("dask", OF_DASK), UniqueIds(secrets.token_bytes(32))
    count = dask.delayed(read, pure=False)
    tasks = [count(part) for part in as_cut(ids)]
    found = quoting_nothing(partial(dask.compute, *tasks), FAILED)
    if failures := [part for part in found if isinstance(part, Failure)]:
        del found  # no frame of the error holds ids
        failures[0].raised()
    persons, digests = persons_of_unique([part[:2] for part in found]), [part[-1] for part in found]
    return checked_parts(X, ids, SameIds(read), digests), SomeRows(persons.weights, persons.n_persons)
