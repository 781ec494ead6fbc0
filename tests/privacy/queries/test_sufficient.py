"""Sufficient statistics: their definitions, and their sensitivities searched for over neighbours."""

import math

import numpy as np
import pytest

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import JointMoments, SmallestEigenvalue

R = 1.3


def rows_of(X, y=None, scaling=0.0):
    y = np.zeros(X.shape[0]) if y is None else np.asarray(y, dtype=float)
    return TrainingData(X, y, data_norm=R, intercept_scaling=scaling, by_row=True)


@pytest.mark.parametrize("ratio", (0.0, 0.2, 0.5, 0.9, 1.0))
def test_the_bound_of_the_proof_holds_for_every_factor_up_to_the_norm(ratio, rng):
    """For the products with c in place of R: sqrt(2) (R^2 + c^2) between two records, attained where their angle is right."""
    c, largest = ratio * R, 0.0
    for trial in range(4000):
        rows, targets = rng.normal(size=(2, 2)), rng.uniform(-1, 1, 2)
        rows *= R / np.linalg.norm(rows, axis=1, keepdims=True) * rng.choice([0.9, 1.0], size=(2, 1))
        if trial % 2:
            targets = np.ones(2)
            angle = math.acos(-(ratio**2))
            rows = R * np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
        u = c * targets
        products = [np.outer(row, row) for row in rows]
        change = np.sum((products[0] - products[1]) ** 2) + 2 * np.sum((u[0] * rows[0] - u[1] * rows[1]) ** 2)
        largest = max(largest, math.sqrt(change))
    assert 0.99 < largest / (math.sqrt(2) * (R**2 + c**2)) <= 1 + 1e-9


def test_the_eigenvalue_never_moves_further_than_the_sensitivity_and_comes_near(rng):
    query, largest = SmallestEigenvalue(R, 3), {"replace_one": 0.0, "zero_out": 0.0}
    for _ in range(400):
        shared = rng.normal(size=(10, 3)) * rng.choice([0.0, 0.1, 10.0], size=3)
        pair = np.diag(np.full(3, 2.0))[:2] if rng.random() < 0.5 else rng.normal(size=(2, 3)) * rng.choice([0.1, R, 9.0])
        first, second = (rows_of(np.vstack([shared, record])) for record in pair)
        here, there, without = (float(query.evaluate(rows)[0]) for rows in (first, second, first.without(np.array([10]))))
        largest["replace_one"] = max(largest["replace_one"], abs(here - there))
        largest["zero_out"] = max(largest["zero_out"], abs(here - without))
    for adjacency, found in largest.items():
        assert 0.99 < found / query.sensitivity(adjacency) <= 1 + 1e-9


@pytest.mark.parametrize("target", (math.nan, math.inf, -math.inf, 1e300))
@pytest.mark.parametrize("size", (0.0, 1e-170, 1.0, 1e150))
@pytest.mark.parametrize("scaling", (0.0, 0.7))
def test_no_record_can_exceed_the_bound(target, size, scaling, rng):
    norm = math.hypot(R, scaling)
    for stated in (norm, norm / 3):  # also where the question has a smaller bound than the table was clipped to
        query = JointMoments(stated, 2 + bool(scaling))
        answer = query.evaluate(rows_of(rng.normal(size=(1, 2)) * size, [target], scaling))
        assert np.linalg.norm(answer) <= query.clip_norm * (1 + 1e-9)
        assert 0 <= SmallestEigenvalue(stated, 1).sensitivity("zero_out") <= norm**2
