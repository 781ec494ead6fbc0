"""A public model whose scores are a column, and records with known scores, for evaluations."""

import math

import numpy as np
from scipy.special import expit


class Scores:
    """A model whose log-odds are a multiple of the first column."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, factor=1.0):
        self.factor = factor

    def predict_proba(self, X):
        p = expit(self.factor * np.asarray(X)[:, 0])
        return np.column_stack([1 - p, p])


def records(n, rate=0.4, distance=2.0, seed=0):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < rate
    log_odds = rng.normal((ill - 0.5) * distance**2, distance) + math.log(rate / (1 - rate))
    return log_odds[:, None], np.where(ill, "yes", "no")
