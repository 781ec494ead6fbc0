"""Steps of the calibration: how far they go where noise is small and where it is large, and what they leave alone."""

import numpy as np
import pytest
from scipy.special import expit

from skdp.solvers.adaptive._calibration import PRIOR, step_matrix

FREE = np.ones(2)
NODES = np.random.default_rng(0).normal(size=200_000)


def mean_gradient(point, truth):
    """Of the log loss, for standard normal scores."""
    excess = expit(point[0] * NODES + point[1]) - expit(truth[0] * NODES + truth[1])
    return np.array([excess @ NODES, excess.sum()]) / NODES.size


@pytest.mark.parametrize("truth", [(0.3, 0.0), (2.0, -1.5), (4.0, 2.0), (1.0, -4.0)])
def test_without_noise_thirty_steps_find_slope_and_offset(truth):
    point = np.array([2.5, 0.0])
    for _ in range(30):
        point = point - np.clip(step_matrix(point, FREE, 0.0, None, 1e-3, 30) @ mean_gradient(point, truth), -1, 1)
    np.testing.assert_allclose(point, truth, atol=0.15)


def test_where_noise_is_all_there_is_nothing_moves():
    assert np.abs(step_matrix(np.array([1.0, -4.0]), FREE, 0.0, None, 10.0, 30)).max() < 1e-3


def test_what_is_learned_in_a_faint_direction_is_what_a_posterior_mean_learns():
    point, noise = np.zeros(2), 5.0
    matrix = 30 * step_matrix(point, FREE, 0.0, None, noise, 30)
    np.testing.assert_allclose(matrix, 0.25 * PRIOR**2 / noise**2 * np.eye(2), rtol=0.01)  # h tau^2 / g^2


def test_an_offset_that_is_fixed_stays_and_weights_of_classes_count():
    matrix = step_matrix(np.array([2.0, -1.0]), np.array([1.0, 0.0]), 0.0, None, 0.01, 30)
    assert matrix[0, 0] > 0 and not matrix[1].any() and not matrix[:, 1].any()
    heavy, light = (step_matrix(np.zeros(2), FREE, 0.0, (w, w), 0.01, 30)[0, 0] for w in (2.0, 1.0))
    assert heavy < light
    assert step_matrix(np.zeros(2), FREE, 100.0, None, 0.01, 30)[0, 0] < 0.01 * light
