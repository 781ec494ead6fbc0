"""Post-processing of noisy releases, against what it estimates."""

import numpy as np
import pytest

from skdp.solvers.adaptive._shrinkage import deconvolved, half_edge, noisy_quantile, posterior_factors, tail_gains

EDGES = 2.0 ** (-np.arange(12)[::-1] / 2)


@pytest.mark.parametrize("level", (0.05, 0.4, 0.6, 0.9))
def test_a_quantile_of_exact_counts_is_the_quantile(level, rng):
    values = rng.uniform(0.02, 1.0, 100_000)
    counts = np.bincount(np.searchsorted(EDGES, values), minlength=12)
    assert noisy_quantile(counts, EDGES, level, values.size) == pytest.approx(np.quantile(values, level), rel=0.1)


def test_a_quantile_of_noise_alone_is_in_the_range(rng):
    for _ in range(200):
        found = noisy_quantile(1e6 * rng.normal(size=12), EDGES, 0.6, 100)
        assert EDGES[0] / np.sqrt(2) * (1 - 1e-12) <= found <= EDGES[-1]
    assert EDGES[0] / np.sqrt(2) * (1 - 1e-12) <= noisy_quantile(np.zeros(12), EDGES, 0.6, 100) <= EDGES[-1]


def noisy_matrix(rng, values, noise):
    half = noise * rng.normal(size=(values.size, values.size))
    noisy = np.triu(half, 1) / np.sqrt(2)
    return np.diag(values) + noisy + noisy.T + np.diag(np.diag(half))


def test_eigenvalues_are_recovered_from_their_noisy_matrix(rng):
    """Large ones to 5 %, where they are a fifth too large in the noisy matrix, and the sum of the others."""
    values = np.concatenate([[0.4, 0.2, 0.1], np.full(97, 0.3 / 97)])
    edge = half_edge(0.006, 100)
    noisy = np.linalg.eigvalsh(noisy_matrix(rng, values, 0.006))[::-1]
    found = deconvolved(noisy, edge, 0.7)
    assert noisy[2] > 1.1 * values[2]
    np.testing.assert_allclose(found[:3], values[:3], rtol=0.05)
    assert found.sum() == pytest.approx(1.0, rel=0.1)
    assert (found >= 0).all()


def test_noise_alone_has_its_eigenvalues_within_twice_the_half_edge(rng):
    largest = np.abs(np.linalg.eigvalsh(noisy_matrix(rng, np.zeros(300), 1.0))).max()
    assert largest == pytest.approx(2 * half_edge(1.0, 300), rel=0.05)


def test_eigenvalues_without_noise_stay():
    np.testing.assert_allclose(deconvolved(np.array([0.1, 0.2, 0.5]), 0.0, 0.7), [0.1, 0.2, 0.5])
    np.testing.assert_allclose(deconvolved(np.array([-1e-18, 0.5]), 0.0, 0.5), [0.0, 0.5])


@pytest.mark.parametrize("warm_up", (0, 3))
def test_gains_are_those_of_the_linear_iteration(warm_up, rng):
    """Each noise alone, sent through the recursion."""
    curvature, step, n_steps = np.array([0.0, 0.3, 1.0]), 0.4, 8
    finish = 1 / (curvature + 0.3)
    expected = np.empty((3, n_steps))
    for number in range(n_steps):
        theta, iterates, gradients = np.zeros((3, 3))
        for t in range(n_steps):
            gradient = -curvature * theta + (t == number)
            if t >= warm_up:
                iterates, gradients = iterates + theta, gradients + gradient
            theta = theta + step * gradient
        expected[:, number] = (iterates + finish * gradients) / (n_steps - warm_up)
    np.testing.assert_allclose(tail_gains(step, curvature, finish, warm_up, n_steps), expected, atol=1e-12)


def test_shrinkage_follows_the_signal(rng):
    """Of 400 coordinates of equal noise the factor is v / (v + s2); without signal it is near 0, and noisy ones shrink more."""
    s2 = np.full(400, 0.01)
    signal = 0.2 * rng.normal(size=400)
    factors = posterior_factors(signal + 0.1 * rng.normal(size=400), s2, 1.0)
    np.testing.assert_allclose(factors, 0.04 / 0.05, rtol=0.15)
    assert posterior_factors(0.1 * rng.normal(size=400), s2, 1.0).max() < 0.2
    few, many = posterior_factors(np.array([0.3, 0.3]), np.array([0.01, 0.1]), 1.0)
    assert many < few < 1
    assert (posterior_factors(np.zeros(3), np.zeros(3), 1.0) == 0).all()
