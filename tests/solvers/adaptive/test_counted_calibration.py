"""Calibration of small tables, by counts of the records by class and score."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import log_loss

from skdp import DPLogisticRegression
from skdp.losses import Hinge, Logistic
from skdp.privacy.budget import Budget
from skdp.privacy.queries import LabelSum, Moments, ScoreCounts, ScoreGradient, StandardizedGradient
from skdp.solvers import StandardizedGradientDescent, signal_to_noise
from skdp.solvers._base import Problem
from skdp.solvers.adaptive import _counted_calibration as counted
from skdp.solvers.adaptive._counted_calibration import COUNTED, CUTS, EDGES, calibrated_line, share_of_counts
from skdp.testing import reproducible_noise

N = 10**6


def shares(rate, means, within):
    """Return exact frequencies of normal scores, by class and range."""
    return np.array([p * np.diff(norm.cdf(EDGES, mean, within)) for p, mean in zip((1 - rate, rate), means, strict=True)])


def problem(epsilon, n=1000, loss=None):
    return Problem(n, 10, loss or Logistic(), Budget(epsilon, 1 / n**2, "zero_out"), data_norm=1.0, intercept_scaling=1.0)


@pytest.mark.parametrize("rate", (0.2, 0.5))
@pytest.mark.parametrize("within", (0.1, 0.5))
def test_without_noise_it_is_the_line_of_two_normal_classes(rate, within):
    means = -0.2 * within, 1.0 * within
    slope, offset, variance = calibrated_line(shares(rate, means, within), 1e-4, N, (2 * rate - 1, 1e-4))
    exact = (means[1] - means[0]) / within**2
    assert slope == pytest.approx(exact, rel=0.15)  # the posterior is on a grid
    assert offset == pytest.approx(logit(rate) - exact * sum(means) / 2, abs=0.2)
    assert variance < (0.15 * exact) ** 2


def test_counts_of_pure_noise_give_the_released_frequencies(rng):
    lines = [calibrated_line(rng.normal(size=(2, 8)), 1.0, 1000, (-0.6, 0.01)) for _ in range(20)]
    assert np.median([expit(offset) for _, offset, _ in lines]) == pytest.approx(0.2, abs=0.03)
    spread = np.array([abs(slope) * counted.UNIT / 4 for slope, _, _ in lines])
    assert np.median(spread) < 0.5
    assert all(variance > slope**2 / 3 for slope, _, variance in lines)


def test_a_score_that_is_upside_down_is_not_turned(rng):
    exact = shares(0.5, (0.5, -0.5), 0.5)
    for _ in range(10):
        slope, _, _ = calibrated_line(exact + rng.normal(size=(2, 8)) * 0.05, 0.05, 1000, (0.0, 0.05))
        assert abs(slope) < 0.1  # the other line would have -4


def test_weights_of_classes_move_the_offset_and_a_penalty_the_slope():
    exact, about = shares(0.5, (-0.5, 0.5), 0.5), (1e-3, N, (0.0, 1e-3))
    slope, offset, _ = calibrated_line(exact, *about)
    assert calibrated_line(exact, *about, (1.0, 0.2))[1] == pytest.approx(offset + math.log(0.2), abs=0.1)
    assert calibrated_line(exact, *about, penalty=1.0)[0] < slope / 2
    assert calibrated_line(exact, *about, intercept=False)[1] == 0


@pytest.mark.parametrize("epsilon", (0.02, 0.1, 0.3, 0.6, 5.0))
def test_public_facts_choose_the_calibration(epsilon):
    facts = problem(epsilon)
    entries = StandardizedGradientDescent().schedule(facts).entries
    few = facts.signal_to_noise < COUNTED
    last = (1, ScoreCounts) if few else (30, ScoreGradient)
    assert [release.query for _, release in entries[:2]] == [LabelSum, Moments]
    assert (entries[-1][0], entries[-1][1].query) == last
    total = sum(times / release.mechanism.weight**2 for times, release in entries)
    assert total == pytest.approx(1.0, rel=1e-12)
    if few:
        assert entries[-1][1].mechanism.weight == pytest.approx(share_of_counts(facts.signal_to_noise) ** -0.5)
        assert entries[-1][1].size == 2 * (len(CUTS) + 1)
    kept = StandardizedGradientDescent().schedule(problem(epsilon, loss=Hinge())).entries
    assert (kept[-1][0], kept[-1][1].query) == (30, ScoreGradient)  # no log-odds


def test_given_shares_leave_the_steps_a_share():
    facts = problem(0.05)
    assert signal_to_noise(facts.budget, facts.n_samples) < COUNTED
    for given in ({"calibration_share": 0.3}, {"moments_share": 0.5}, {"labels_share": 0.4, "moments_share": 0.55}):
        entries = StandardizedGradientDescent(**given).schedule(facts).entries
        assert sum(times / release.mechanism.weight**2 for times, release in entries) == pytest.approx(1.0)
        steps = next((times, release) for times, release in entries if release.query is StandardizedGradient)
        assert steps[0] / steps[1].mechanism.weight ** 2 > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", (0.3, 0.5))
def test_small_tables_have_probabilities(epsilon):
    rng = np.random.default_rng(0)
    n, losses, gaps = 400, [], []
    for seed in range(15):
        y = (rng.random(3 * n) < 0.6).astype(int)
        z = 1.5 * (2 * y - 1) + rng.normal(size=3 * n)
        X = np.clip(0.5 + 0.07 * z[:, None] + 0.1 * rng.normal(size=(3 * n, 12)), 0, 1) / math.sqrt(12)
        model = DPLogisticRegression(epsilon, delta=1e-5, adjacency="zero_out", data_norm=1, classes=[0, 1])
        with warnings.catch_warnings(), reproducible_noise(seed):
            warnings.simplefilter("ignore")
            model.fit(X[:n], y[:n])
        p, labels = model.predict_proba(X[n:])[:, 1], y[n:]
        losses.append(log_loss(labels, p) - log_loss(labels, np.full(2 * n, labels.mean())))
        order = np.argsort(-p)
        best = (max(np.cumsum(2 * labels[order] - 1).max(), 0) + (labels == 0).sum()) / (2 * n)
        gaps.append(best - np.mean((p > 0.5) == labels))
    assert np.median(losses) < -0.1  # clipped gradients of slope and offset leave -.03 and a gap of .3 at epsilon 0.3
    assert np.median(gaps) < 0.05


@pytest.mark.slow
def test_noise_that_hides_all_variances_leaves_finite_coefficients():
    for seed in range(5):
        model = DPLogisticRegression(1e-3, delta=1e-6, data_norm=1, classes=[0, 1])
        with warnings.catch_warnings(), reproducible_noise(seed):
            warnings.simplefilter("ignore")
            model.fit(np.full((300, 2), 0.5), np.arange(300) % 2)
        assert np.abs(model.coef_).max() < 1e6
