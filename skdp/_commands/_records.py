"""Read a table with its target, and split it into records for the fit and records for a test."""

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skdp._files._tables import (
    CSV,
    TextFormat,
    column_names,
    count_records,
    empty_gaps,
    is_parquet,
    missing_cells,
    no_column,
    read_frame,
)
from skdp._persons import persons_of, unique_ids
from skdp.data import Table, parquet
from skdp.preprocessing import Schema, SchemaColumns
from skdp.preprocessing._categories import KnownCategories, category_names, spelling
from skdp.preprocessing._columns import read_target
from skdp.privacy import PrivacyLedger
from skdp.privacy.ledger._book import store_at


@dataclass(frozen=True)
class Labelled:
    """Hold the training part and the test part of a table.

    Parameters
    ----------
    X, X_test : pandas.DataFrame
        Records; X_test is empty if no test was requested.
    y, y_test : ndarray
        Classes, or numbers.
    read : str, default=""
        How many records, or persons, were read.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    read: str = ""


def read_labelled(
    table: Path,
    facts: Any,
    test: str | None,
    form: TextFormat = CSV,
    *,
    drop_missing: bool = False,
    persons: str | None = None,
) -> Labelled:
    """Read the columns and the target of a table, and split off test records.

    Parameters
    ----------
    table : Path
        Records.
    facts : Schema or RawTable
        What is public about them.
    test : str or None
        Share of the records, or ``column=value``.
    form : TextFormat
        How a text is written.
    drop_missing : bool, default=False
        Whether records without target are left out.
    persons : str or None, default=None
        Column of the ids of persons, which becomes one of their numbers.

    Returns
    -------
    Labelled
        Both parts; without target, y is zeros.

    Raises
    ------
    ValueError
        If table, schema and test do not fit together; the message quotes no data.
    """
    column_for_test(test)  # which checks it
    if complete := isinstance(facts, Schema):
        _check_target(facts)
    frame = (SchemaColumns.of(facts) if complete else facts.reader).read(table, form)
    frame = numbered(table, frame, persons)
    n_read = n_units(frame, persons)
    if facts.target is not None:
        if facts.target not in frame.columns:
            raise _without_target(table, facts, list(frame.columns))
        frame = with_targets(table, frame, facts.target, facts.classes) if drop_missing else frame
    if complete:
        read_target(table, frame, facts)
    held_out = held_out_records(table, frame, test, persons)
    y = frame[facts.target].to_numpy() if complete else facts.targets(table, frame)
    read = read_in_words(table, n_read, n_units(frame, persons), n_units(frame[~held_out], persons), "fit", persons)
    return Labelled(frame[~held_out], y[~held_out], frame[held_out], y[held_out], read)


def numbered(table: Path, frame: Any, persons: str | None) -> Any:
    """Return a table with the numbers of persons in place of their ids; unchanged without a column of ids.

    Numbers are in the order of a hash of the ids: it seems random, and another id of one person moves no others past each other.
    """
    if persons is None:
        return frame
    if persons not in frame.columns:
        raise no_column(table, persons, list(frame.columns), "--persons")
    ids = frame[[persons]].copy()
    empty_gaps(table, ids, [persons])
    group, (known, _) = persons_of(ids[persons]), unique_ids(ids[persons])
    hashes = [hashlib.sha256(repr(label).encode()).digest() for label in known.tolist()]
    places = np.empty(len(hashes), dtype=np.int32)
    places[sorted(range(len(hashes)), key=hashes.__getitem__)] = np.arange(len(hashes))
    return frame.assign(**{persons: places[group.numbers]})


def numbers_in_folder(table: Path, persons: str) -> np.ndarray:
    """Return the number of the person of each record of a folder, of which the column of ids alone is read."""
    if persons not in (names := column_names(table)):
        raise no_column(table, persons, names, "--persons")
    return persons_of(*parquet(table).source.column(persons)).numbers  # type: ignore[attr-defined]


def n_units(frame: Any, persons: str | None) -> int:
    """Return the number of records, or of persons, which is public."""
    return len(frame) if persons is None else int(frame[persons].nunique())


def unit_in_words(persons: str | None) -> str:
    """Return what is counted."""
    return "records" if persons is None else "persons"


def check_persons(persons: str | None, test: str | None, **others: str | None) -> None:
    """Raise ValueError if the column of ids of persons has another part, too."""
    for option, name in {"test": column_for_test(test), **others}.items():
        if persons is not None and name == persons:
            raise ValueError(f"--persons {persons} names the column of --{option}; expected one of ids and of nothing else.")


def with_targets(table: Path, frame: Any, target: str, classes: Any = None) -> Any:
    """Return the records whose target is not missing; how many they are is public. A stated class is not missing."""
    names = [] if classes is None else category_names(classes)
    found = frame[~missing_cells(frame[target]) | frame[target].map(spelling).isin(names)]
    if found.empty:
        raise ValueError(f"{table}: the target {target!r} is missing in every record; expected records that have one.")
    return found.reset_index(drop=True)


def number_of_records(table: Path, form: TextFormat, persons: str | None = None) -> int:
    """Return the number of records of a table, or of persons, which is public."""
    if persons is not None and table.is_dir():
        return int(numbers_in_folder(table, persons).max()) + 1
    if persons is not None:
        return n_units(numbered(table, read_frame(table, [], [persons], form), persons), persons)
    known = parquet(table).n_samples if table.is_dir() or is_parquet(table) else None
    return count_records(table, form) if known is None else known


def ledger_of(address: str | None) -> PrivacyLedger | None:
    """Return an existing ledger; None without an address."""
    if address is None:
        return None
    store = store_at(address)
    if not store.exists():
        create = f"python -m skdp ledger {shlex.quote(store.name)} --epsilon 3 --delta 1e-6"
        raise ValueError(f"There is no ledger {store.name}; {create} creates one.")
    return PrivacyLedger(address)


def charged(account: PrivacyLedger, address: str | None) -> str:
    """Return the line that says what a ledger has left after a charge."""
    left = f"a full-data fit with epsilon up to {account.epsilon_left()!r} at delta {account.delta!r}"
    return f"Charged: {store_at(address).name}, number of charges {len(account.entries)}; left: {left}"


def read_in_words(table: Path, n_read: int, n_labelled: int, n_kept: int, purpose: str, persons: str | None = None) -> str:
    """Return how many records, or persons, were read, have a target and are kept for a purpose, which is public."""
    left_out = f"; {n_labelled} of them have a target" if n_labelled < n_read else ""
    return f"Read {table}: number of {unit_in_words(persons)} {n_read}{left_out}; {n_kept} for the {purpose}."


def public_facts(test: str | None, drop_missing: bool | None, persons: str | None = None) -> dict[str, str]:
    """Return what the choice of the records of a fit or of an evaluation makes public, for the report."""
    facts = {}
    if column_for_test(test):
        public = "this column, and so the number of records," if persons is None else "the number of persons on each side"
        facts["test"] = f"records with {test} were kept for a test: {public} is taken to be public"
    elif test is not None:
        chosen = "by a public permutation of their places" if persons is None else "the first ones by a public hash of their ids"
        facts["test"] = f"{float(test)!r} of the {unit_in_words(persons)} were kept for a test: {chosen}"
    if drop_missing:
        number = "the number" if persons is None else "the number of persons"
        facts["missing targets"] = f"records without target were left out: {number} that remains is taken to be public"
    if persons is not None:
        facts["persons"] = f"column {persons}: whose each record is; it is no feature"
    return facts


def column_for_test(test: str | None) -> str:
    """Return the column that selects the records for a test; "" if a share of them is selected, or none."""
    return "" if test is None or _is_share(test) else test.partition("=")[0]


def held_out_records(table: Path, frame: Any, test: str | None, persons: str | None = None) -> np.ndarray:
    """Return which records are for a test; raise ValueError if all are, or none of those that were requested.

    A share is one of persons, each with all her records, if a column has their numbers.
    """
    column, value = column_for_test(test), (test or "").partition("=")[2]
    if column and column not in frame.columns:
        raise no_column(table, column, list(frame.columns), "--test")
    held_out = np.zeros(len(frame), dtype=bool)
    if column:
        held_out = KnownCategories([value], other="").transform(frame[[column]])[:, 0] != ""
    elif test is not None:
        if persons is None:
            order = np.random.default_rng(0).permutation(len(frame))
        else:  # the first ones by their hashes, so that another person in the place of one moves at most one other
            order = np.unique(frame[persons])
        units = np.arange(len(frame)) if persons is None else frame[persons]
        held_out = np.isin(units, order[: round(float(test) * len(order))])
    if test is not None and (held_out.all() or not held_out.any()):
        number = f"{n_units(frame[held_out], persons)} of {n_units(frame, persons)} {unit_in_words(persons)}"
        raise ValueError(f"test={test!r} selects {number}; expected some, but not all.")
    return held_out


def in_partitions(table: Path, facts: Schema) -> Table:
    """Describe a folder of Parquet files, which is read in partitions.

    Parameters
    ----------
    table : Path
        The folder.
    facts : Schema
        What is public about its files.

    Returns
    -------
    Table
        Nothing but the ends of the files is read.

    Raises
    ------
    ValueError
        If files and schema do not fit together.
    """
    _check_target(facts)
    found = parquet(table, schema=facts)
    if facts.target not in (names := column_names(table)):
        raise _without_target(table, facts, names)
    return found


def check_options_of_folder(table: Path, drop_missing: bool | None = None, **options: str | None) -> None:
    """Raise ValueError for options that need a table in memory."""
    given = [f"--{name}" for name, value in options.items() if value is not None]
    for option in [*given, *(["--drop-missing-target"] if drop_missing else [])]:
        raise ValueError(
            f"{option} needs a table in memory, and {table} is a folder, which is read in partitions; expected one file, or no "
            "such option. Records for a test are better kept in a folder of their own."
        )


def _check_target(facts: Schema) -> None:
    if facts.target is None:
        raise ValueError("The schema has no target; expected the name of the column to predict.")


def _without_target(table: Path, facts: Schema, names: list[str]) -> ValueError:
    return no_column(table, str(facts.target), names, "The target of the schema")


def _is_share(test: str) -> bool:
    try:
        share = float(test)
    except ValueError:
        if "=" in test:
            return False
        share = -1.0
    if not 0 < share < 1:
        raise ValueError(f"test={test!r}; expected a share of the records in (0, 1), or column=value.")
    return True
