"""Benchmark tables as a user has them: a data frame in its own units, and what is public about its columns.

Rows are not scaled and categories are not encoded; the parts for training and testing are those of `benchmarks.tables`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import bounds
from benchmarks.tables import SCHEMAS, Table, data_directory, existing, published_split, random_split, ranges, read_npz

__all__ = ["FRAMES", "Frame", "load_frame"]

COVERTYPE_GROUPS = {"wilderness area": 4, "soil type": 40}  # numbers of binary columns, one of which is 1


@dataclass(frozen=True)
class Frame:
    """Hold a table in its own units, and its public facts.

    Parameters
    ----------
    table : Table
        Training and test part; records are rows of a data frame. Targets are as in `benchmarks.tables`.
    schema : dict
        Bounds, scales and categories of the columns.
    data_norm : float or None, default=None
        Length to which rows of scaled numbers are cut; None where usual rows of the schema set it.
    """

    table: Table
    schema: dict[str, Any]
    data_norm: float | None = None


def load_frame(name: str) -> Frame:
    """Return a table in its own units.

    Parameters
    ----------
    name : str
        One of ``FRAMES``.

    Returns
    -------
    Frame
        The parts for training and testing, and the public facts.

    Raises
    ------
    ValueError
        If there is no table of this name.
    FileNotFoundError
        If the data set is not on this machine.
    """
    if name not in FRAMES:
        raise ValueError(f"There is no table {name!r}; expected one of {', '.join(FRAMES)}.")
    return FRAMES[name](data_directory())


def adult(directory: Path) -> Frame:
    """Income above 50 000 dollars (UCI Adult) with ``examples/schemas/adult.json``."""
    frame = pd.read_csv(existing(directory / "adult.csv.gz"), keep_default_na=False)
    places = published_split(row_numbers(frame), (frame["income"] == ">50K").to_numpy().astype(int), frame["split"].to_numpy())
    return Frame(taken(frame.drop(columns=["income", "split"]), places), read_schema("adult"))


def bank(directory: Path) -> Frame:
    """Deposit after a telephone call (UCI Bank Marketing) with ``examples/schemas/bank.json``."""
    frame = pd.read_csv(existing(directory / "bank_full.csv.gz"), keep_default_na=False)
    places = random_split(row_numbers(frame), (frame["y"] == "yes").to_numpy().astype(int))
    return Frame(taken(frame.drop(columns="y"), places), read_schema("bank"))


def mammography(directory: Path) -> Frame:
    """Calcification in an image (Woods et al. 1993): 6 standardised measurements, of which 4 deviations count."""
    X, y, _ = read_npz(directory / "mammography.npz")
    columns = {f"x{place}": number((-4, 4)) for place in range(X.shape[1])}
    frame = pd.DataFrame(X, columns=list(columns))
    return Frame(taken(frame, random_split(row_numbers(frame), y)), {"columns": columns}, 1.0)


def covertype(directory: Path) -> Frame:
    """Lodgepole pine against other trees (UCI Covertype, a sixth of it): 10 numeric columns, 2 categorical ones."""
    X, y, _ = read_npz(directory / "covertype_subset.npz")
    start, columns = len(bounds.COVERTYPE_RANGES), numbers(bounds.COVERTYPE_RANGES)
    frame = pd.DataFrame(X[:, :start], columns=list(columns))
    for name, size in COVERTYPE_GROUPS.items():
        frame[name] = 1 + X[:, start : start + size].argmax(axis=1)
        columns[name] = category(range(1, size + 1))
        start += size
    return Frame(taken(frame, random_split(row_numbers(frame), y)), {"columns": columns})


def ijcnn1(directory: Path) -> Frame:
    """Misfiring of an engine (IJCNN 2001 challenge, as LIBSVM has it): 22 columns in [-1, 1]."""
    X, y, part = read_npz(directory / "ijcnn1.npz")
    columns = {f"x{place}": number((-1, 1)) for place in range(X.shape[1])}
    frame = pd.DataFrame(X, columns=list(columns))
    return Frame(taken(frame, published_split(row_numbers(frame), y, part)), {"columns": columns}, 1.0)


def spambase(directory: Path) -> Frame:
    """Unwanted mail (UCI Spambase): 54 frequencies in percent and 3 lengths of runs of capital letters."""
    X, y, _ = read_npz(directory / "spambase.npz")
    columns = {f"frequency {place}": number((0, 100)) for place in range(54)} | logarithms(bounds.SPAMBASE_LOGARITHMS)
    frame = pd.DataFrame(X, columns=list(columns))
    return Frame(taken(frame, random_split(row_numbers(frame), y)), {"columns": columns}, 1.0)


def california(directory: Path) -> Frame:
    """Median house value of a district (California Housing, 1990 census): 8 numeric columns, 1 categorical."""
    frame = pd.read_csv(existing(directory / "california_housing.csv.gz"))
    columns = numbers(bounds.CALIFORNIA_RANGES) | logarithms(bounds.CALIFORNIA_LOGARITHMS)
    columns["total_bedrooms"]["fill"] = 0
    columns |= {name: category(known) for name, known in bounds.CALIFORNIA_CATEGORIES.items()}
    y = 2 * ranges(frame, bounds.CALIFORNIA_TARGET)[:, 0] - 1
    return Frame(taken(frame[list(columns)], random_split(row_numbers(frame), y, "regression")), {"columns": columns})


def bike(directory: Path) -> Frame:
    """Bicycles hired in an hour (UCI Bike Sharing): 5 categorical columns, 7 numeric ones."""
    frame = pd.read_csv(existing(directory / "bike_sharing_hour.csv.gz"))
    columns = {name: category(known) for name, known in bounds.BIKE_CATEGORIES.items()} | numbers(bounds.BIKE_RANGES)
    y = 2 * ranges(frame, bounds.BIKE_TARGET)[:, 0] - 1
    return Frame(taken(frame[list(columns)], random_split(row_numbers(frame), y, "regression")), {"columns": columns})


def row_numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return row numbers, which are split in place of the rows."""
    return np.arange(len(frame))


def taken(frame: pd.DataFrame, places: Table) -> Table:
    """Return the rows of a data frame at the positions of a split."""
    X_train, X_test = frame.iloc[places.X_train], frame.iloc[places.X_test]
    return Table(X_train, places.y_train, X_test, places.y_test, places.task)


def read_schema(name: str) -> dict[str, Any]:
    """One of the schemas of the examples."""
    facts: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return facts


def number(low_high: tuple[float, float], scale: str = "linear") -> dict[str, Any]:
    """Facts of a column of numbers."""
    return {"kind": "number", "bounds": list(low_high), "scale": scale}


def numbers(low_high: Mapping[str, tuple[float, float]]) -> dict[str, dict[str, Any]]:
    """Facts of columns that are not rescaled."""
    return {name: number(pair) for name, pair in low_high.items()}


def logarithms(largest: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Facts of columns of counts and amounts."""
    return {name: number((0, top), "log") for name, top in largest.items()}


def category(known: Iterable) -> dict[str, Any]:
    """Facts of a column of categories."""
    return {"kind": "category", "categories": list(known)}


PREPARATIONS = (adult, bank, mammography, covertype, ijcnn1, spambase, california, bike)
FRAMES: dict[str, Callable[[Path], Frame]] = {prepare.__name__: prepare for prepare in PREPARATIONS}
