"""Tables of records in groups, and a short fit to them."""

import numpy as np

from skdp import DPGroupDROClassifier
from skdp.solvers import SGDA

__all__ = ["brief", "table"]


def table(n=600, seed=0):
    """Three groups, the smaller the more unlike the largest one."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 3)) * [1.0, 0.5, 2.0] + [0.5, 0.0, -1.0], np.arange(n) % 10
    groups = np.select([groups < 6, groups < 9], [0, 1], 2)
    slopes = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.3], [-0.5, 1.0, 0.5]])[groups]
    return X, ((X * slopes).sum(axis=1) + rng.logistic(size=n) > 0.5 * groups).astype(int), groups


def brief(**more):
    """Of few steps."""
    return DPGroupDROClassifier(5.0, **{"solver": SGDA(10)} | more)
