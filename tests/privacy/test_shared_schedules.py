"""Schedules that share a budget: what the releases of each spend, worked out again by another accountant."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant

from skdp._extra_facts import ExtraFacts
from skdp.estimators._plan import with_others
from skdp.losses import Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import BinCounts, Gradient, HatSums, LeafSums, TreeWeight
from skdp.privacy.schedule import Curve, Gaussian, PoissonGaussian, Release, Schedule, Selection
from skdp.solvers import GradientDescent, Problem

FIRST = Schedule(((1, Release(HatSums, Gaussian(3.3), 1.0)), (40, Release(Gradient, Gaussian(7.0), 1.0))))
LATER = Schedule(
    (
        (1, Release(BinCounts, Gaussian(0.2), 2.0, 9)),
        (500, Release(LeafSums, Gaussian(30.0), 0.5, 8)),
        (1, Release(TreeWeight, Gaussian(5.0), 4.0, 2)),
    )
)


def squares(schedule, scale, adjacency):
    """Squared Gaussian-DP parameters of the releases."""
    return np.array([(r.query.relative_sensitivity[adjacency] / noise_multiplier(r, scale, adjacency)) ** 2 for r in schedule])


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("share", (0.01, 0.5, 0.8, 0.999))
def test_later_releases_take_their_share_of_the_squared_parameter(adjacency, share):
    budget = Budget(0.7, 1e-6, adjacency)
    together = FIRST.followed_by(LATER, share)
    scale = calibrate(together, budget)
    assert together.entries[:2] == FIRST.entries and len(together) == 41 + 502
    mu = squares(together, scale, adjacency)
    assert mu.sum() == pytest.approx(gaussian_mu(0.7, 1e-6) ** 2, rel=1e-9)
    assert mu[41:].sum() / mu.sum() == pytest.approx(share)
    alone = squares(LATER, calibrate(LATER, budget), adjacency)
    np.testing.assert_allclose(mu[41:] / mu[41:].sum(), alone / alone.sum())  # as they would divide all of it
    assert [(r.query, r.clip_norm, r.size) for r in together][41:] == [(r.query, r.clip_norm, r.size) for r in LATER]
    assert spent_epsilon(together, scale, budget) == pytest.approx(0.7, rel=1e-9)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_another_accountant_has_the_same_epsilon(adjacency):
    budget, together = Budget(1.5, 1e-6, adjacency), FIRST.followed_by(LATER, 0.7)
    scale, accountant = calibrate(together, budget), PLDAccountant(value_discretization_interval=1e-4)
    for count, release in together.entries:
        multiplier = noise_multiplier(release, scale, adjacency) / release.query.relative_sensitivity[adjacency]
        accountant.compose(GaussianDpEvent(multiplier), count)
    assert accountant.get_epsilon(1e-6) == pytest.approx(1.5, rel=2e-3)


def test_releases_before_and_after_share_what_is_left():
    """A release in front takes its share of all, and the later ones theirs of the rest."""
    budget = Budget(0.7, 1e-6, "zero_out")
    together = FIRST.followed_by(LATER, 0.5).preceded_by(Release(HatSums, Gaussian(), 1.0, 10), 0.1)
    mu = squares(together, calibrate(together, budget), "zero_out")
    assert mu[0] / mu.sum() == pytest.approx(0.1)
    assert mu[42:].sum() / mu.sum() == pytest.approx(0.45)


@pytest.mark.parametrize("mechanism", (PoissonGaussian(0.1), Selection(), Curve("some")))
def test_only_gaussian_releases_of_all_records_have_a_share(mechanism):
    other = Schedule(((1, Release(Gradient, mechanism, 1.0)),))
    for schedules in ((other, LATER), (FIRST, other)):
        with pytest.raises(PrivacyAccountingError, match="Gaussian releases"):
            schedules[0].followed_by(schedules[1], 0.1)


def test_noise_that_is_not_scaled_is_found():
    """The comparison can fail: later releases with the weights that they had would spend another share."""
    budget, kept = Budget(0.7, 1e-6, "zero_out"), Schedule((*FIRST.entries, *LATER.entries))
    mu = squares(kept, calibrate(kept, budget), "zero_out")
    assert not math.isclose(mu[41:].sum() / mu.sum(), 0.5, rel_tol=0.1)


def test_one_share_is_not_divided_twice():
    front = Release(HatSums, Gaussian(), 1.0, 2)
    problem = Problem(100, 3, Logistic(), Budget(1.0, 1e-6, "zero_out"), 1.0, 1.0)
    both = replace(problem, extra=ExtraFacts(front=front, back=LATER, share=0.5))
    with pytest.raises(PrivacyAccountingError, match="expected either, not both"):
        with_others(both, FIRST, GradientDescent())
    for given in ({"front": front}, {"back": LATER}):
        scheduled = with_others(replace(problem, extra=ExtraFacts(**given, share=0.5)), FIRST, GradientDescent())
        mu = squares(scheduled, calibrate(scheduled, problem.budget), "zero_out")
        own = mu[1:] if "front" in given else mu[: len(FIRST)]
        assert own.sum() == pytest.approx(0.5 * gaussian_mu(1.0, 1e-6) ** 2, rel=1e-9)
