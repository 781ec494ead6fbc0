"""Penalties: gradient against finite differences, prox against its definition."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp.penalties import L2


@pytest.mark.parametrize("alpha", (0.0, 0.3, 2.0))
def test_l2(alpha, rng):
    penalty, w = L2(alpha), rng.normal(size=4)
    numerical = [(penalty.value(w + e) - penalty.value(w - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(penalty.gradient(w), numerical, atol=1e-8)
    objective = minimize(lambda v: ((v - w) ** 2).sum() / 2 + 0.7 * penalty.value(v), np.zeros(4), tol=1e-12)
    np.testing.assert_allclose(penalty.prox(w, 0.7), objective.x, atol=1e-6)
    assert penalty.strong_convexity == penalty.smoothness == alpha
