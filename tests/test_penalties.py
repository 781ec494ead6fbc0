"""Penalties: gradient against finite differences, prox against its definition."""

import itertools

import numpy as np
import pytest

from skdp.penalties import ElasticNet

KINDS = list(itertools.product((0.0, 0.3, 2.0), (0.0, 0.4, 1.0)))


@pytest.mark.parametrize("alpha, l1_ratio", KINDS)
def test_gradient_of_the_smooth_part(alpha, l1_ratio, rng):
    penalty, w = ElasticNet(alpha, l1_ratio), rng.normal(size=4)

    def smooth(v):
        return penalty.value(v) - alpha * l1_ratio * np.abs(v).sum()

    numerical = [(smooth(w + e) - smooth(w - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(penalty.gradient(w), numerical, atol=1e-8)
    assert penalty.strong_convexity == penalty.smoothness == pytest.approx(alpha * (1 - l1_ratio))


@pytest.mark.parametrize("alpha, l1_ratio", KINDS)
def test_prox_is_the_minimum_of_its_definition(alpha, l1_ratio, rng):
    """No point near it, or on the way to the start, is better."""
    penalty, w = ElasticNet(alpha, l1_ratio), np.append(rng.normal(size=4), 1e-3)
    for prox, value in ((penalty.prox, penalty.value), (penalty.l1_prox, lambda v: alpha * l1_ratio * np.abs(v).sum())):
        found = prox(w, 0.7)
        others = np.concatenate(
            [found + 1e-3 * rng.normal(size=(200, 5)), found + np.linspace(0.01, 1, 20)[:, None] * (w - found)]
        )
        best = ((found - w) ** 2).sum() / 2 + 0.7 * value(found)
        assert all(((v - w) ** 2).sum() / 2 + 0.7 * value(v) >= best - 1e-12 for v in others)
