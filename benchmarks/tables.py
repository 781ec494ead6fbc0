"""Benchmark tables, prepared with public constants only, so that the preparation costs no privacy.

Every row has Euclidean norm at most 1, so that ``data_norm=1`` clips nothing. Labels are 0 and 1, targets of regression lie in
[-1, 1]. Where no split is published, a fifth of the rows is for testing, drawn with a fixed seed.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from benchmarks import bounds
from skdp.preprocessing import from_schema

__all__ = ["TABLES", "Table", "covertype_rows", "data_directory", "load"]

SCHEMAS = Path(__file__).resolve().parents[1] / "examples" / "schemas"


@dataclass(frozen=True)
class Table:
    """Training and test part of a table.

    Parameters
    ----------
    X_train, X_test : ndarray of shape (n, n_features)
        Records.
    y_train, y_test : ndarray of shape (n,)
        Labels 0 and 1, or targets in [-1, 1].
    task : {"classification", "regression"}, default="classification"
        What is to be predicted.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    task: str = "classification"


def data_directory() -> Path:
    """Return where the data sets lie: ``SKDP_DATA``, by default ``../shared/data`` beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("SKDP_DATA", beside))


def load(name: str) -> Table:
    """Return a prepared table.

    Parameters
    ----------
    name : str
        One of ``TABLES``.

    Returns
    -------
    Table
        Rows of norm at most 1.

    Raises
    ------
    ValueError
        If there is no table of this name.
    FileNotFoundError
        If the data set is not on this machine.
    """
    if name not in TABLES:
        raise ValueError(f"There is no table {name!r}; expected one of {', '.join(TABLES)}.")
    return TABLES[name](data_directory())


def adult(directory: Path) -> Table:
    """Income above 50 000 dollars (UCI Adult): 8 one-hot columns, 5 numeric ones; the published split."""
    frame = pd.read_csv(existing(directory / "adult.csv.gz"), keep_default_na=False)
    categories = one_hot(frame.replace("", "?"), bounds.ADULT_CATEGORIES)
    numbers = ranges(frame, bounds.ADULT_RANGES), logarithms(frame, bounds.ADULT_LOGARITHMS)
    X, y = bounded_rows(np.hstack([categories, *numbers])), (frame["income"] == ">50K").to_numpy().astype(int)
    return published_split(X, y, frame["split"].to_numpy())


def bank(directory: Path) -> Table:
    """Deposit after a telephone call (UCI Bank Marketing): 9 categorical columns, 7 numeric ones, one the length of the call."""
    frame = pd.read_csv(existing(directory / "bank_full.csv.gz"), keep_default_na=False)
    frame["pdays"] = frame["pdays"].clip(lower=0)  # -1 stands for nobody called before
    numbers = ranges(frame, bounds.BANK_RANGES), logarithms(frame, bounds.BANK_LOGARITHMS)
    X = bounded_rows(np.hstack([one_hot(frame, bounds.BANK_CATEGORIES), *numbers]))
    return random_split(X, (frame["y"] == "yes").to_numpy().astype(int))


def adult_schema(directory: Path) -> Table:
    """The same as adult, prepared by ``skdp.preprocessing.from_schema`` with ``examples/schemas/adult.json``."""
    frame = pd.read_csv(existing(directory / "adult.csv.gz"), keep_default_na=False)
    X = from_schema(SCHEMAS / "adult.json").fit_transform(frame)
    return published_split(X, (frame["income"] == ">50K").to_numpy().astype(int), frame["split"].to_numpy())


def bank_schema(directory: Path) -> Table:
    """The same as bank, prepared by ``skdp.preprocessing.from_schema`` with ``examples/schemas/bank.json``."""
    frame = pd.read_csv(existing(directory / "bank_full.csv.gz"), keep_default_na=False)
    X = from_schema(SCHEMAS / "bank.json").fit_transform(frame)
    return random_split(X, (frame["y"] == "yes").to_numpy().astype(int))


def mammography(directory: Path) -> Table:
    """Calcification in an image (Woods et al. 1993): 6 standardised measurements, of which 4 deviations become 1."""
    X, y, _ = read_npz(directory / "mammography.npz")
    return random_split(bounded_rows(X.clip(-4, 4) / 4), y)


def mnist10k(directory: Path) -> Table:
    """Odd against even digit (MNIST): the first 10 000 training images, the published 10 000 test images; 784 pixels."""
    X_train, y_train, _ = read_npz(directory / "mnist_train.npz", 10_000)
    X_test, y_test, _ = read_npz(directory / "mnist_test.npz")
    return Table(bounded_rows(X_train / 255), y_train % 2, bounded_rows(X_test / 255), y_test % 2)


def covertype(directory: Path) -> Table:
    """Lodgepole pine against other trees (UCI Covertype, a sixth of it): 10 numeric columns, 44 binary ones."""
    X, y, _ = read_npz(directory / "covertype_subset.npz")
    return random_split(covertype_rows(X), y)


def covertype_rows(X: np.ndarray) -> np.ndarray:
    """Return rows of covertype in UCI's units brought to norms of at most 1.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 54)
        Numeric columns first.

    Returns
    -------
    ndarray of shape (n_samples, 54)
        A copy.
    """
    low, high = np.array(list(bounds.COVERTYPE_RANGES.values())).T
    numbers, binary = np.split(X, [low.size], axis=1)
    return bounded_rows(np.hstack([(numbers.clip(low, high) - low) / (high - low), binary]))


def ijcnn1(directory: Path) -> Table:
    """Misfiring of an engine (IJCNN 2001 challenge, as LIBSVM has it): 22 columns in [-1, 1]; the published split."""
    X, y, part = read_npz(directory / "ijcnn1.npz")
    return published_split(bounded_rows(X), y, part)


def spambase(directory: Path) -> Table:
    """Unwanted mail (UCI Spambase): 54 frequencies in percent, 3 lengths of runs of capital letters."""
    X, y, _ = read_npz(directory / "spambase.npz")
    frequencies, runs = np.split(X, [54], axis=1)
    runs = logarithms(pd.DataFrame(runs, columns=list(bounds.SPAMBASE_LOGARITHMS)), bounds.SPAMBASE_LOGARITHMS)
    return random_split(bounded_rows(np.hstack([frequencies.clip(0, 100) / 100, runs])), y)


def california(directory: Path) -> Table:
    """Median house value of a district (California Housing, 1990 census): 8 numeric columns, 1 categorical; rows over 3."""
    frame = pd.read_csv(existing(directory / "california_housing.csv.gz")).fillna({"total_bedrooms": 0})
    numbers = ranges(frame, bounds.CALIFORNIA_RANGES), logarithms(frame, bounds.CALIFORNIA_LOGARITHMS)
    X = np.hstack([one_hot(frame, bounds.CALIFORNIA_CATEGORIES), *numbers]) / 3
    return random_split(X, 2 * ranges(frame, bounds.CALIFORNIA_TARGET)[:, 0] - 1, "regression")


def bike(directory: Path) -> Table:
    """Bicycles hired in an hour (UCI Bike Sharing): 5 categorical columns, 7 numeric ones; rows over sqrt(12)."""
    frame = pd.read_csv(existing(directory / "bike_sharing_hour.csv.gz"))
    X = np.hstack([one_hot(frame, bounds.BIKE_CATEGORIES), ranges(frame, bounds.BIKE_RANGES)]) / np.sqrt(12)
    return random_split(X, 2 * ranges(frame, bounds.BIKE_TARGET)[:, 0] - 1, "regression")


def scale(directory: Path) -> Table:
    """Two classes of clusters (scikit-learn's make_classification): 200 000 training rows, 50 columns; reads no file."""
    X, y = make_classification(250_000, 50, n_informative=20, n_redundant=10, class_sep=0.7, flip_y=0.05, random_state=0)
    X = bounded_rows(X.clip(-6, 6) / 6)
    return Table(X[:200_000], y[:200_000], X[200_000:], y[200_000:])


def existing(path: Path) -> Path:
    """Return the path of a file that is there."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; set SKDP_DATA to the directory that holds the data sets.")
    return path


def read_npz(path: Path, n_rows: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """First rows of X in float64, their labels, and which part each belongs to where a split is published."""
    with np.load(existing(path)) as stored:
        part = stored["split"][:n_rows] if "split" in stored else None
        return stored["X"][:n_rows].astype(np.float64), stored["y"][:n_rows].astype(int), part


def one_hot(frame: pd.DataFrame, categories: Mapping[str, Iterable]) -> np.ndarray:
    """One column of zeros and ones per named category."""
    blocks = [frame[column].to_numpy()[:, None] == np.array(list(known)) for column, known in categories.items()]
    return np.hstack(blocks).astype(np.float64)


def ranges(frame: pd.DataFrame, bounds: Mapping[str, tuple[float, float]]) -> np.ndarray:
    """Columns clipped to their bounds and brought to [0, 1]."""
    low, high = np.array(list(bounds.values()), dtype=np.float64).T
    return (frame[list(bounds)].to_numpy(np.float64).clip(low, high) - low) / (high - low)


def logarithms(frame: pd.DataFrame, largest: Mapping[str, float]) -> np.ndarray:
    """Logarithm of 1 plus the size, with the sign, brought to [-1, 1]."""
    X, top = frame[list(largest)].to_numpy(np.float64), np.array(list(largest.values()))
    return np.sign(X) * np.log1p(np.abs(X).clip(max=top)) / np.log1p(top)


def bounded_rows(X: np.ndarray) -> np.ndarray:
    """Scale down rows longer than 1."""
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


def published_split(X: np.ndarray, y: np.ndarray, part: np.ndarray) -> Table:
    """Classification table whose training rows are marked "train"."""
    train = part == "train"
    return Table(X[train], y[train], X[~train], y[~train])


def random_split(X: np.ndarray, y: np.ndarray, task: str = "classification") -> Table:
    """Four fifths for training."""
    train, test = np.split(np.random.default_rng(0).permutation(len(y)), [round(0.8 * len(y))])
    return Table(X[train], y[train], X[test], y[test], task)


PREPARATIONS = (
    adult,
    bank,
    adult_schema,
    bank_schema,
    mammography,
    mnist10k,
    covertype,
    ijcnn1,
    spambase,
    california,
    bike,
    scale,
)
TABLES: dict[str, Callable[[Path], Table]] = {prepare.__name__: prepare for prepare in PREPARATIONS}
