"""Benchmark tables, prepared with public constants only, so that the preparation costs no privacy.

Bounds and categories are fixed constants, taken as public: those that comparisons on these tables commonly use, so that figures
can be laid side by side. Every row has Euclidean norm at most 1, so that ``data_norm=1`` clips nothing.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["TABLES", "Table", "data_directory", "load"]

ADULT_CATEGORIES = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked ?",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces ?",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
    "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic "
    "Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago "
    "Peru Hong Holand-Netherlands ?",
}
ADULT_RANGES = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
ADULT_LOGARITHMS = {"capital-gain": 99999, "capital-loss": 4356}


@dataclass(frozen=True)
class Table:
    """Training and test part of a table.

    Parameters
    ----------
    X_train, X_test : ndarray of shape (n, n_features)
        Records.
    y_train, y_test : ndarray of shape (n,)
        Labels.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


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
    FileNotFoundError
        If there are no data sets on this machine.
    """
    return TABLES[name](data_directory())


def adult(directory: Path) -> Table:
    """Income above 50 000 dollars (UCI Adult): 8 one-hot columns, 5 numeric ones; the published split; 107 features."""
    import pandas as pd

    frame = pd.read_csv(directory / "adult.csv.gz", keep_default_na=False)
    one_hot = [
        frame[column].replace("", "?").to_numpy()[:, None] == np.array(categories.split())
        for column, categories in ADULT_CATEGORIES.items()
    ]
    ranges = [((frame[column].clip(low, high) - low) / (high - low)).to_numpy() for column, (low, high) in ADULT_RANGES.items()]
    logarithms = [(np.log1p(frame[column].clip(0, top)) / np.log1p(top)).to_numpy() for column, top in ADULT_LOGARITHMS.items()]
    X = bounded_rows(np.hstack([*one_hot, *(column[:, None] for column in (*ranges, *logarithms))]).astype(np.float64))
    y = (frame["income"] == ">50K").to_numpy().astype(int)
    train = (frame["split"] == "train").to_numpy()
    return Table(X[train], y[train], X[~train], y[~train])


def bounded_rows(X: np.ndarray) -> np.ndarray:
    """Scale down rows longer than 1."""
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


TABLES: dict[str, Callable[[Path], Table]] = {"adult": adult}
