"""Read a table with its target, and split it into records for the fit and records for a test."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skdp._files._tables import column_names
from skdp.data import Table, parquet
from skdp.preprocessing import Schema, read_table
from skdp.preprocessing._categories import KnownCategories

__all__ = ["Labelled", "check_options_of_folder", "column_for_test", "held_out_records", "in_partitions", "read_labelled"]


@dataclass(frozen=True)
class Labelled:
    """Hold the training part and the test part of a table.

    Parameters
    ----------
    X, X_test : pandas.DataFrame
        Records; X_test is empty if no test was requested.
    y, y_test : ndarray
        Classes, or numbers.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def read_labelled(table: Path, facts: Schema, test: str | None, sep: str = ",") -> Labelled:
    """Read the columns and the target of a schema, and split off test records.

    Parameters
    ----------
    table : Path
        Records.
    facts : Schema
        What is public about them.
    test : str or None
        Share of the records, or ``column=value``.
    sep : str, default=","
        What separates the fields of a CSV.

    Returns
    -------
    Labelled
        Both parts.

    Raises
    ------
    ValueError
        If table, schema and test do not fit together; the message quotes no data.
    """
    _check_target(facts)
    column_for_test(test)
    frame = read_table(table, facts, sep=sep)
    if facts.target not in frame.columns:
        raise _without_target(table, facts)
    held_out = held_out_records(table, frame, test)
    y = frame[facts.target].to_numpy()
    return Labelled(frame[~held_out], y[~held_out], frame[held_out], y[held_out])


def column_for_test(test: str | None) -> str:
    """Return the column that selects the records for a test; "" if a share of them is selected, or none."""
    return "" if test is None or _is_share(test) else test.partition("=")[0]


def held_out_records(table: Path, frame: Any, test: str | None) -> np.ndarray:
    """Return which records are for a test; raise ValueError if all are, or none of those that were requested."""
    column, value = column_for_test(test), (test or "").partition("=")[2]
    if column and column not in frame.columns:
        raise ValueError(f"{table} has no column {column!r}; expected the column that --test {test} names.")
    held_out = np.zeros(len(frame), dtype=bool)
    if column:
        held_out = KnownCategories([value], other="").transform(frame[[column]])[:, 0] != ""
    elif test is not None:
        held_out[np.random.default_rng(0).permutation(len(frame))[: round(float(test) * len(frame))]] = True
    if test is not None and held_out.sum() in (0, len(frame)):
        raise ValueError(f"test={test!r} selects {held_out.sum()} of {len(frame)} records; expected some, but not all.")
    return held_out


def in_partitions(table: Path, facts: Schema, test: str | None, groups: str | None) -> Table:
    """Describe a folder of Parquet files, which is read in partitions.

    Parameters
    ----------
    table : Path
        The folder.
    facts : Schema
        What is public about its files.
    test, groups : str or None
        Options that need a table in memory.

    Returns
    -------
    Table
        Nothing but the ends of the files is read.

    Raises
    ------
    ValueError
        If files and schema do not fit together, or if an option is given.
    """
    _check_target(facts)
    check_options_of_folder(table, test, groups)
    found = parquet(table, schema=facts)
    if facts.target not in column_names(table):
        raise _without_target(table, facts)
    return found


def check_options_of_folder(table: Path, test: str | None, groups: str | None) -> None:
    """Raise ValueError for options that need a table in memory."""
    if test is not None or groups is not None:
        option = "--test" if test is not None else "--groups"
        raise ValueError(
            f"{option} needs a table in memory, and {table} is a folder, which is read in partitions; expected one file, or no "
            "such option. Records for a test are better kept in a folder of their own."
        )


def _check_target(facts: Schema) -> None:
    if facts.target is None:
        raise ValueError("The schema has no target; expected the name of the column to predict.")


def _without_target(table: Path, facts: Schema) -> ValueError:
    return ValueError(f"{table} has no column {facts.target!r}; expected it, because the schema names it as the target.")


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
