"""Tables as files have them, without any schema, and changes that a rule which learns columns must bear."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from benchmarks import bounds
from benchmarks.frames import load_frame, row_numbers, taken
from benchmarks.tables import Table, data_directory, existing, random_split, read_npz

__all__ = ["CHANGES", "TYPES", "RawFrame", "load_raw", "made_up"]

OFFSET, FAR, OUTLIERS, GAPS, NOISE_COLUMNS = 1e5, 1e12, 0.001, 0.05, 50
UNITS = (-6, 7)  # powers of ten


@dataclass(frozen=True)
class RawFrame:
    """Hold a raw table.

    Parameters
    ----------
    X_train, X_test : DataFrame
        Columns in their own units and types.
    y_train, y_test : ndarray
        Labels 0 and 1, or numbers in their own unit.
    task : str
        "classification" or "regression".
    """

    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    task: str

    @property
    def delta(self) -> float:
        """The second parameter of the budget."""
        return 1 / len(self.y_train) ** 2

    def subset(self, n_train: int, n_test: int, seed: int) -> "RawFrame":
        """Draw training records; keep the first test records."""
        chosen = np.random.default_rng(seed).permutation(len(self.y_train))[:n_train]
        X_train, X_test = self.X_train.iloc[chosen], self.X_test.iloc[:n_test]
        return replace(self, X_train=X_train, y_train=self.y_train[chosen], X_test=X_test, y_test=self.y_test[:n_test])

    def changed(self, change: "Change") -> "RawFrame":
        """Change the columns of both parts."""
        rng = np.random.default_rng(0)
        return replace(self, X_train=change(self.X_train, rng), X_test=change(self.X_test, rng))


def load_raw(name: str) -> RawFrame:
    """Return a table with all columns but the target, also those that schemas leave out; parts are those of `benchmarks.frames`.

    Parameters
    ----------
    name : str
        Out of `benchmarks.frames.FRAMES`.

    Returns
    -------
    RawFrame
        Numbers are float64 or integers, text is text.
    """
    table, directory = load_frame(name).table, data_directory()
    if name == "covertype":  # its frame joins binary columns
        X, y, _ = read_npz(directory / "covertype_subset.npz")
        frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
        table = taken(frame, random_split(row_numbers(frame), y))
    if name in TARGETS:
        file, target, parts_of_it = TARGETS[name]
        frame = pd.read_csv(existing(directory / file))
        table = taken(
            frame.drop(columns=[target, *parts_of_it]), random_split(row_numbers(frame), frame[target].to_numpy(), "regression")
        )
    return RawFrame(table.X_train, table.y_train, table.X_test, table.y_test, table.task)


# File, target, and columns that are parts of the target.
TARGETS = {
    "california": ("california_housing.csv.gz", *bounds.CALIFORNIA_TARGET, ()),
    "bike": ("bike_sharing_hour.csv.gz", *bounds.BIKE_TARGET, ("casual", "registered")),
}


def made_up(n_train: int, n_columns: int, heavy: bool, seed: int, n_test: int = 5000) -> tuple[RawFrame, Table]:
    """Return records with logistic classes, in units from 1e-6 to 1e6, and the same for an oracle that knows the scales.

    Parameters
    ----------
    n_train, n_columns : int
        Shape of the training part.
    heavy : bool
        Whether columns are ``exp(3 z)`` for normal z; otherwise they are z.
    seed : int
        Of the records.
    n_test : int, default=5000
        Records of the test part.

    Returns
    -------
    tuple of (RawFrame, Table)
        The raw table, and ``clip(z / 3)`` as rows of norm at most 1.
    """
    rng = np.random.default_rng(seed)
    z, w = rng.normal(size=(n_train + n_test, n_columns)), rng.normal(size=n_columns)
    y = (rng.logistic(size=len(z)) < 3 * z @ w / np.linalg.norm(w)).astype(int)
    units = 10.0 ** rng.integers(*UNITS, n_columns)
    frame = pd.DataFrame(units * (np.exp(3 * z) if heavy else z), columns=[f"x{place}" for place in range(n_columns)])
    rows = np.clip(z / 3, -1, 1) / np.sqrt(n_columns / 3)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    known = Table(rows[:n_train], y[:n_train], rows[n_train:], y[n_train:])
    return RawFrame(frame[:n_train], known.y_train, frame[n_train:], known.y_test, "classification"), known


def numbers_of(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns of numbers."""
    return list(frame.select_dtypes("number").columns)


def in_units(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Multiply columns by powers of ten."""
    names = numbers_of(frame)
    return frame.assign(**(frame[names].astype(float) * 10.0 ** np.random.default_rng(0).integers(*UNITS, len(names))))


def shifted(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Add a large number to all columns."""
    return frame.assign(**(frame[numbers_of(frame)] + OFFSET))


def negated(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Change all signs."""
    return frame.assign(**-frame[numbers_of(frame)].astype(float))


def with_outliers(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Put huge numbers into a few cells."""
    cells = frame[numbers_of(frame)].astype(float)
    return frame.assign(**cells.mask(rng.random(cells.shape) < OUTLIERS, FAR).mask(rng.random(cells.shape) < OUTLIERS, -FAR))


def with_gaps(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Remove some cells."""
    cells = frame[numbers_of(frame)].astype(float)
    return frame.assign(**cells.mask(rng.random(cells.shape) < GAPS))


def with_constants(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Add columns of one number, one text, and nothing."""
    return frame.assign(seven=7.0, word="word", nothing=np.nan)


def with_ids(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Add a number and a text that are different in all records."""
    numbers = rng.permutation(10**7)[: len(frame)]
    return frame.assign(id_number=numbers, id_text=[f"id{number}" for number in numbers])


def with_noise(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Add lognormal columns in many units that say nothing."""
    noise = np.exp(3 * rng.normal(size=(len(frame), NOISE_COLUMNS))) * 10.0 ** np.random.default_rng(0).integers(
        *UNITS, NOISE_COLUMNS
    )
    return frame.assign(**{f"noise{place}": column for place, column in enumerate(noise.T)})


def with_dates(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Add dates and booleans that say nothing."""
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, len(frame)), unit="D")
    return frame.assign(day=days, flag=rng.random(len(frame)) < 0.3)


def with_categories(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Store text as categories of pandas."""
    return frame.astype(dict.fromkeys(frame.select_dtypes(exclude="number").columns, "category"))


def nullable(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Store all columns with types of pandas that have a missing value."""
    return frame.convert_dtypes()


def of_polars(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Store all columns in a frame of polars."""
    import polars

    return polars.DataFrame({name: frame[name].to_numpy() for name in frame})


Change = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
CHANGES: dict[str, Change] = {
    "none": lambda frame, rng: frame,
    "times 1e-6 to 1e6": in_units,
    "plus 1e5": shifted,
    "negated": negated,
    ".2 % of cells 1e12 or -1e12": with_outliers,
    "5 % missing": with_gaps,
    "constants added": with_constants,
    "IDs added": with_ids,
    "50 columns of noise added": with_noise,
    "dates and booleans added": with_dates,
}
# The same cells in other types: the same scores.
TYPES: dict[str, Change] = {"categories of pandas": with_categories, "nullable types": nullable, "polars": of_polars}
