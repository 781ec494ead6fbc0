"""The defaults on a real table, where it is at hand: test accuracy and AUC, medians of five seeds."""

import math

import numpy as np
import pytest
from seeded import fitted
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.tables import data_directory, load
from skdp import DPLogisticRegression

FLOORS = {0.1: (0.82, 0.84), 0.5: (0.838, 0.88), 1.0: (0.842, 0.885)}  # accuracy and AUC per epsilon


@pytest.fixture(scope="module")
def adult():
    if not (data_directory() / "adult.csv.gz").exists():
        pytest.skip("no data sets: SKDP_DATA names no directory that holds adult.csv.gz")
    return load("adult")


def scores(model, table, seed=0):
    fitted(model, table.X_train, table.y_train, seed=seed)
    return model.score(table.X_test, table.y_test), roc_auc_score(table.y_test, model.decision_function(table.X_test))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", FLOORS)
def test_defaults_are_accurate(epsilon, adult):
    given = {"adjacency": "zero_out", "data_norm": 1.0}
    reached = [scores(DPLogisticRegression(epsilon, **given), adult, seed) for seed in range(5)]
    accuracy, auc = np.median(reached, axis=0)
    assert accuracy >= FLOORS[epsilon][0]
    assert auc >= FLOORS[epsilon][1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
def test_without_noise_the_defaults_are_as_good_as_scikit_learn(adult):
    ours = scores(DPLogisticRegression(math.inf, adjacency="zero_out", data_norm=1.0), adult)
    theirs = scores(LogisticRegression(max_iter=1000), adult)
    np.testing.assert_allclose(ours, theirs, atol=0.002)
