"""Sufficient statistics: their definitions, and their sensitivities searched for over neighbours."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import JointMoments, SmallestEigenvalue

STORAGES = {
    "C": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
}
R = 1.3
NULL = np.array([0, 3])


def rows_of(X, y=None, scaling=0.0):
    y = np.zeros(X.shape[0]) if y is None else np.asarray(y, dtype=float)
    return TrainingData(X, y, data_norm=R, intercept_scaling=scaling, by_row=True)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("scaling", (0.0, 0.7))
@pytest.mark.parametrize("null", (False, True))
def test_both_are_what_they_say(storage, scaling, null, rng):
    X, y = STORAGES[storage](rng.normal(size=(50, 4))), rng.uniform(-1.5, 1.5, 50)
    x = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    x = x * (R / np.maximum(np.linalg.norm(x, axis=1), R))[:, None]
    x, u = np.column_stack([x, np.full(50, scaling)]) if scaling else x, np.clip(y, -1, 1)
    rows = rows_of(X, y, scaling)
    if null:
        rows, x[NULL] = rows.without(NULL), 0.0
    norm, order = math.hypot(R, scaling), x.shape[1]
    query = JointMoments(norm, order)
    answer = query.evaluate(rows)
    assert answer.shape == (query.size,)
    second, cross = query.parts(answer)
    np.testing.assert_allclose(second, x.T @ x, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(cross, x.T @ u, rtol=1e-6, atol=1e-6)
    assert np.linalg.norm(answer) ** 2 == pytest.approx(np.sum((x.T @ x) ** 2) + 2 * norm**2 * np.sum((x.T @ u) ** 2), rel=1e-5)
    (smallest,) = SmallestEigenvalue(norm, order).evaluate(rows)
    assert smallest == pytest.approx(np.linalg.eigvalsh(x.T @ x)[0], rel=1e-6)


def contribution(row, target):
    return JointMoments(R, 2).evaluate(rows_of(np.array([row]), [target]))


def test_moments_never_move_further_than_the_sensitivity_and_come_near(rng):
    query = JointMoments(R, 2)

    def moved(flat):
        return -np.linalg.norm(contribution(flat[:2], flat[2]) - contribution(flat[3:5], flat[5]))

    starts = rng.normal(size=(12, 6)) * rng.choice([0.3, 1.0, 3.0], size=(12, 1))
    found = max(-minimize(moved, start, method="Nelder-Mead", options={"maxiter": 2000}).fun for start in starts)
    assert 0.99 < found / query.sensitivity("replace_one") <= 1 + 1e-9
    alone = max(np.linalg.norm(contribution(rng.normal(size=2) * 3, rng.normal() * 3)) for _ in range(400))
    assert 0.99 < alone / query.sensitivity("zero_out") <= 1 + 1e-9
    assert query.sensitivity("zero_out") == pytest.approx(math.sqrt(3) * R**2) == query.clip_norm
    assert query.sensitivity("replace_one") == pytest.approx(2 * math.sqrt(2) * R**2)


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
