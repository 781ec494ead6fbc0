"""Tests the normal sampler, the grid, and the rounding errors that the slack of the grid must cover."""

import copy
import math
import os
import pickle

import numpy as np
import pytest
import seeded
from scipy.stats import chisquare, kstest, norm

from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.source import NoiseSource

FALSE_ALARM = 1e-6
DRAWS = 40_000
SIZES = dict(clip_norm=1.5, relative_sensitivity=2.0, scale=3.0, n_samples=1000, summation_error=1e-12)


@pytest.mark.parametrize("noise", (NoiseSource(), seeded.source(7)), ids=("secure", "seeded"))
def test_normals_are_normal(noise):
    assert kstest(noise.normal(DRAWS), "norm").pvalue > FALSE_ALARM


def test_release_noise_has_the_stated_scale_and_no_other():
    noise = GridGaussian.calibrated(size=DRAWS, **SIZES)
    draws = noise.add_to(np.zeros(DRAWS), seeded.source(11)) / (2.0 * 1.5 * 3.0)
    assert kstest(draws * 9.0 / noise.std, "norm").pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(draws / wrong, "norm").pvalue < FALSE_ALARM


class ScriptedBits(NoiseSource):
    """Returns given 64-bit words, for cases that random words do not reach."""

    def __init__(self, words):
        super().__init__()
        self.words = list(words)

    def _words(self, size):
        taken, self.words = self.words[:size], self.words[size:]
        return np.array(taken, dtype=np.uint64)


def test_tail_is_reached_and_follows_the_normal_law():
    # 60 leading zeros of the second word: u in (2**-62, 2**-61), beyond what a 53-bit uniform can tell apart
    low, high = (ScriptedBits([mantissa, 0, 2**63 >> 7]).normal(1)[0] for mantissa in (0, 2**51 - 1))
    assert math.erfc(-low / math.sqrt(2)) / 2 > 0
    upper_tail = [0.5 * math.erfc(abs(z) / math.sqrt(2)) for z in (low, high)]
    assert upper_tail[0] == pytest.approx(2.0**-62 * (1 + 2.0**-52), rel=1e-9)
    assert upper_tail[1] == pytest.approx(2.0**-61, rel=1e-9)
    assert abs(low) > 8.5


def test_sign_bit_and_neighbouring_scales_fit_together():
    top, half = 2**51 - 1, 2**63
    positive, negative = ScriptedBits([half, half]).normal(1)[0], ScriptedBits([0, half]).normal(1)[0]
    assert positive == -negative
    # the largest u of one binary scale and the smallest of the next are neighbours
    below, above = ScriptedBits([top, 2**62]).normal(1)[0], ScriptedBits([0, half]).normal(1)[0]
    assert below == pytest.approx(above, abs=1e-15)


def test_seeded_noise_repeats_and_secure_noise_does_not():
    assert np.array_equal(seeded.source(3).normal(5), seeded.source(3).normal(5))
    assert not np.array_equal(NoiseSource().normal(5), NoiseSource().normal(5))
    assert NoiseSource().secure
    assert not seeded.source(3).secure


@pytest.mark.parametrize("std", (2.0, 2.0**30), ids=("one normal", "two normals"))
@pytest.mark.parametrize("size", (1, 7, 6000, 20_000))
def test_noise_that_is_drawn_ahead_is_that_which_is_drawn_alone(std, size):
    grid, together, alone = GridGaussian(std, 1.0), seeded.source(3), seeded.source(3)
    values = [grid.add_to(np.zeros(size), together, left) for left in (4, 3, 2, 1)]
    assert np.array_equal(values, [grid.add_to(np.zeros(size), alone) for _ in range(4)])
    assert np.array_equal(together.normal(3), alone.normal(3))  # nothing was drawn beyond them


def test_noise_of_another_size_is_not_used():
    source = seeded.source(3)
    drawn = {*source.normal(4, 10), *source.normal(2, 10), *source.normal(4), *source.normal(4)}
    assert len(drawn) == 14 and source.normal(3).size == 3


@pytest.mark.parametrize("copied", (copy.copy, copy.deepcopy, lambda source: pickle.loads(pickle.dumps(source))))
def test_copies_do_not_repeat_noise_that_was_drawn_ahead(copied):
    source = NoiseSource()
    source.normal(3, 4)
    other = copied(source)
    assert len({*source.normal(3), *other.normal(3), *source.normal(3), *other.normal(3)}) == 12


def test_a_forked_process_does_not_repeat_noise_that_was_drawn_ahead(monkeypatch):
    """It has what its parent had drawn ahead, and another number."""
    source, alone = NoiseSource(), seeded.source(3)
    source.read = seeded.source(3).read
    expected = [alone.normal(3, 4).tolist() for _ in range(4)]
    assert [source.normal(3, 4).tolist(), source.normal(3).tolist()] == expected[:2]
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert source.normal(3).tolist() not in expected


@pytest.mark.parametrize("size", (1, 1000))
@pytest.mark.parametrize("clip_norm", (1e-50, 1e-3, 1.0, 1e50, 1e-250))
@pytest.mark.parametrize("scale", (1e-6, 1.0, 1e6))
@pytest.mark.parametrize("n_samples", (2, 10**9))
def test_grid_is_exact_and_its_scale_covers_the_slack(size, clip_norm, scale, n_samples):
    error = 1e-13 * n_samples
    sizes = dict(relative_sensitivity=2.0, scale=scale, n_samples=n_samples, size=size, summation_error=error)
    noise = GridGaussian.calibrated(clip_norm=clip_norm, **sizes)
    assert math.frexp(noise.spacing)[0] == 0.5
    covered = clip_norm * (1 + 2**-30) + 2 * error * clip_norm + noise.spacing * math.sqrt(size)
    assert noise.std >= 2.0 * covered * scale * (1 - 1e-15)
    assert (n_samples * clip_norm + 40 * noise.std) / noise.spacing < 2**52


RATIO = 2.0**31  # more grid points in a standard deviation than one normal resolves
JUST_TWO = 1.0011 * 2.0**22  # where the coarse normal is narrowest


@pytest.mark.parametrize("ratio", (JUST_TWO, RATIO))
def test_fine_grids_get_the_stated_law_too(ratio):
    draws = GridGaussian(ratio, 1.0).add_to(np.zeros(DRAWS), seeded.source(4))
    assert kstest(draws / ratio, "norm").pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(draws / (wrong * ratio), "norm").pvalue < FALSE_ALARM


@pytest.mark.parametrize("ratio", (JUST_TWO, 1.5 * 2.0**22, RATIO))
def test_the_coarse_normal_is_wider_than_its_steps(ratio):
    """Otherwise its rounding would reduce the variance; computed exactly from the probabilities of its steps."""
    coarse = abs(GridGaussian(ratio, 1.0).add_to(np.zeros(1), ScriptedNormals(1e6, 0.0))[0]) / 1e6 / 2**20
    fine = GridGaussian(ratio, 1.0).add_to(np.zeros(1), ScriptedNormals(0.0, 1.0))[0]
    steps = np.arange(-60, 61) if coarse < 6 else None
    if steps is not None:
        weights = norm.cdf((steps + 0.5) / coarse) - norm.cdf((steps - 0.5) / coarse)
        assert (weights * steps**2).sum() * 2.0**40 + fine**2 >= ratio**2
    assert coarse >= 2.6


class ScriptedNormals(NoiseSource):
    """Yields the given normals, one vector per call."""

    def __init__(self, *normals):
        self.normals = list(normals)

    def normal(self, size, calls=1):
        return np.array([self.normals.pop(0)])


def test_fine_grids_add_a_coarse_and_a_fine_normal():
    """The two variances add up to the stated one, and the fine steps cover the gaps between the coarse ones."""
    coarse, fine = (
        GridGaussian(RATIO, 1.0).add_to(np.zeros(1), ScriptedNormals(*normals))[0] for normals in ((1.0, 0.0), (0.0, 1.0))
    )
    assert math.hypot(coarse, fine) == pytest.approx(RATIO, rel=1e-3)  # the coarse step
    gap = GridGaussian(RATIO, 1.0).add_to(np.zeros(1), ScriptedNormals(2.0**-11, 0.0))[0]
    assert 0 < 3 * gap <= fine
    assert GridGaussian(2.0**22, 1.0).add_to(np.zeros(1), ScriptedNormals(1.0))[0] == 2.0**22


def test_fine_grids_are_resolved_to_the_last_point():
    """Residues modulo 64 of the noise are uniform."""
    for ratio in (2.0**22, RATIO, 2.0**45):
        residues = np.mod(GridGaussian(ratio, 1.0).add_to(np.full(64_000, 3.0), seeded.source(8)), 64).astype(int)
        counts = np.bincount(residues, minlength=64)
        assert chisquare(counts).pvalue > FALSE_ALARM


def test_resolution_is_paid_for_and_refused_where_it_cannot_be():
    sizes = dict(clip_norm=1.0, relative_sensitivity=1.0, n_samples=1000, summation_error=0.0)
    plain = GridGaussian.calibrated(size=100, scale=50.0, **sizes)
    assert plain.std == pytest.approx(50.0 * (1 + 2**-10), rel=1e-3)
    wide = GridGaussian.calibrated(size=10**6, scale=2e4, **sizes)
    share = 2.0**-49 * 2.0**22 * 1e3 * 2e4
    assert 0.1 < share < 0.5
    assert wide.std >= 2e4 / (1 - share)
    for scale in (1e7, 1e11, 1e300):
        with pytest.raises(ValueError, match="larger epsilon, fewer features"):
            GridGaussian.calibrated(size=4 * 10**6, scale=scale, **sizes)


def test_no_negative_zero():
    """The sign of an un-noised zero must not show: minus zero would be reached from negative values only."""
    for value in (0.0, -1e-30, -0.0):
        silent = GridGaussian(1e-3, 1.0).add_to(np.full(1000, value), seeded.source())
        assert not np.signbit(silent[silent == 0]).any()
        assert (silent == 0).all()


def test_outputs_lie_on_the_grid_and_rounding_moves_no_further_than_the_slack(rng):
    noise = GridGaussian.calibrated(size=50, **SIZES)
    value = rng.normal(size=50)
    steps = noise.add_to(value, seeded.source()) / noise.spacing
    assert np.array_equal(steps, np.rint(steps))
    silent = GridGaussian(0.0, noise.spacing).add_to(value, seeded.source())
    assert np.linalg.norm(silent - value) <= noise.spacing * math.sqrt(50) / 2


def test_neighbouring_values_reach_the_same_outputs():
    """Exhaustive on a coarse grid: the noise does not reveal where the value was between grid points."""
    noise = GridGaussian(2.0, 1.0)
    reached = [set(noise.add_to(np.full(200_000, value), seeded.source(5))) for value in (0.3, 1.0)]
    common = range(-6, 8)  # each has probability above 1e-3: missed by chance with probability below 1e-80
    assert all(set(map(float, common)) <= outputs for outputs in reached)
