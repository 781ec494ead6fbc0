"""Tables, losses and rows for tests of questions about some coordinates."""

import numpy as np
from scipy import sparse
from seeded import source

from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle

__all__ = ["NULL", "STORAGES", "WEIGHTS", "D", "R", "Steep", "clipped", "make", "nasty", "oracle_of", "table"]

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "int8": lambda X: np.asfortranarray(X.round().astype(np.int8)),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "converted": sparse.csr_array,
}
R, D = 2.0, 7
NULL = np.array([0, 3])
WEIGHTS = np.array([0.5, 2.0, 1.0])


class Steep:
    """A loss of anybody's: slopes of any size, infinite and NaN among them, by label."""

    name, lipschitz, smoothness, targets, convex, bounded = "steep", 1.0, 1.0, "classes", True, True
    slopes = np.array([1.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 5e-324, 0.0])

    def __init__(self, n_outputs=1):
        self.n_outputs = n_outputs

    def derivative(self, raw, labels):
        return self.slopes[labels][:, None] * np.ones(raw.shape)


def make(storage, X, y, **bounds):
    return TrainingData(STORAGES[storage](X), y, data_norm=R, by_column=storage == "converted", **bounds)


def clipped(X, constant=0.0):
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    X = X * (R / np.maximum(np.linalg.norm(X, axis=1), R))[:, None]
    return np.column_stack([X, np.full(len(X), constant)]) if constant else X


def table(rng, n=50, n_classes=2):
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7) * rng.choice([1, 5], size=(n, 1))
    return X, rng.integers(n_classes, size=n).astype(np.int8)


def nasty(rng, n_features=3):
    """Rows of every size up to the largest of float64, with entries that differ by as much."""
    sizes = 10.0 ** rng.uniform(-320, 308, size=(40, n_features))
    near = rng.normal(size=(40, n_features)) * 10.0 ** rng.integers(-3, 4, size=(40, 1))
    signs = rng.choice([-1.0, 0.0, 1.0], size=(40, n_features))
    corner = [[1.7e308] * n_features, [5e-324] * n_features, [1e-162] * n_features, [1e154] + [1e-300] * (n_features - 1)]
    return np.concatenate([signs * sizes, near, corner])


def oracle_of(schedule, rows, epsilon=1.0):
    budget = Budget(epsilon, 1e-6, "replace_one")
    return Oracle(rows, schedule, budget, calibrate(schedule, budget), source(1))
