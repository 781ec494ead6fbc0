"""Made-up people for tests of additive models: a mixed table with its schema, and one of numbers with its bounds."""

import math
import warnings

import numpy as np
import pandas as pd
import seeded

from skdp import DPAdditiveClassifier, DPAdditiveRegressor

__all__ = ["BOUNDS", "COLUMNS", "GIVEN", "SCHEMA", "fitted", "numbers", "people", "silent"]

COLUMNS = {
    "age": {"kind": "number", "bounds": [0, 100]},
    "income": {"kind": "number", "bounds": [0, 1e5], "scale": "log", "fill": 0},
    "town": {"kind": "category", "categories": ["a", "b", "c"]},
}
SCHEMA = {"columns": COLUMNS, "target": "ill", "classes": ["no", "yes"]}
BOUNDS = [(0.0, 100.0), (-2.0, 2.0)]
GIVEN = {DPAdditiveClassifier: {}, DPAdditiveRegressor: {"target_bounds": (-4, 4)}}


def people(rng, n=400):
    frame = pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "town": rng.choice(["a", "b", "c", "elsewhere"], n),
            "age": rng.uniform(0, 100, n),
            "income": rng.exponential(3e4, n),
        }
    )
    frame["ill"] = np.where((frame["age"] > 60) ^ (frame["town"] == "b"), "yes", "no")
    return frame


def numbers(rng, n=400):
    X = np.column_stack([rng.uniform(0, 100, n), rng.uniform(-2, 2, n)])
    return X, ((X[:, 0] > 50) ^ (X[:, 1] > 1)).astype(int)


def fitted(kind, X, y, **parameters):
    return seeded.fitted(kind(**{**GIVEN[kind], **parameters}), X, y)


def silent(kind, X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(kind, X, y, epsilon=math.inf, **parameters)
