"""Noise of exponential norm: exponentials, directions, their law, and the grid."""

import math

import numpy as np
import pytest
import seeded
from mpmath import mp, mpf
from scipy.stats import chi, gamma, kstest

from skdp.privacy.noise.gamma import GammaNorm, GridGammaNorm, Normal
from skdp.privacy.noise.gaussian import CELL_ERROR
from skdp.privacy.noise.source import NoiseSource

FALSE_ALARM = 1e-6
DRAWS, FEWER = 20_000, 4000  # fewer of those that are drawn one by one; a scale that is 20 % off has a p-value below 1e-20
SIZES = (1, 7)


class ScriptedBits(NoiseSource):
    """Returns given 64-bit words, for cases that random words do not reach."""

    def __init__(self, words):
        self.words = list(words)

    def _words(self, size):
        taken, self.words = self.words[:size], self.words[size:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("noise", (NoiseSource(), seeded.source(7)), ids=("secure", "seeded"))
def test_exponentials_are_exponential(noise):
    draws = noise.exponential(2 * DRAWS)
    assert kstest(draws, "expon").pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(draws / wrong, "expon").pvalue < FALSE_ALARM


def test_exponentials_reach_both_ends():
    """60 leading zeros of the second word: u in (2**-62, 2**-61), beyond what a 53-bit uniform can tell apart."""
    words = [[sign, 0, 2**63 >> 7] for sign in (0, 2**63)]
    large, small = (ScriptedBits(script).exponential(1)[0] for script in words)
    assert large == pytest.approx(62 * math.log(2), rel=1e-12)
    assert small == pytest.approx(2.0**-62, rel=1e-12)
    middle = [ScriptedBits([sign | (2**51 - 1), 2**63]).exponential(1)[0] for sign in (0, 2**63)]  # u just below 1/2
    assert middle[0] == pytest.approx(math.log(2), rel=1e-14) and middle[1] == pytest.approx(math.log(2), rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_directions_are_uniform_on_the_sphere(size):
    """The square of a coordinate has a Beta distribution, its sign is fair, and the norm is 1; signs: false alarm below 1e-6."""
    source = seeded.source(5)
    vectors = np.array([source.direction(size) for _ in range(5000)])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-14)
    for column in vectors.T:
        assert abs(np.sign(column).sum()) < 4.9 * math.sqrt(5000)
        if size > 1:
            assert kstest(column**2, "beta", (0.5, (size - 1) / 2)).pvalue > FALSE_ALARM


def test_short_vectors_are_drawn_again(monkeypatch):
    scripted = [np.array([1e-9, 1e-9]), np.array([0.5, 0.4]), np.array([3.0, -4.0])]
    monkeypatch.setattr(NoiseSource, "normal", lambda self, size: scripted.pop(0))
    assert seeded.source().direction(2).tolist() == [0.6, -0.8]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_norm_has_the_stated_scale_and_no_other(size):
    noise, source = GammaNorm(2.5, size), seeded.source(11)
    draws = np.array([noise.draw(source) for _ in range(FEWER)])
    norms = np.linalg.norm(draws, axis=1) / 2.5
    assert kstest(norms, gamma(size).cdf).pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(norms / wrong, gamma(size).cdf).pvalue < FALSE_ALARM
    assert np.sqrt(np.mean(draws**2)) == pytest.approx(noise.root_mean_square, rel=0.05)


@pytest.mark.parametrize("size", (1, 10, 1000))
def test_bounds_on_the_norm_have_the_stated_probability(size):
    assert gamma(size).logsf(GammaNorm(3.0, size).largest / 3.0) <= -200 * math.log(2)
    assert chi(size).logsf(Normal(2.0, size, 40.0).largest / 2.0) <= -40.0


@pytest.mark.parametrize("noise", (GammaNorm(1.0, 5), Normal(1.0, 5, 40.0)), ids=("exponential norm", "normal"))
def test_rounding_of_a_draw_is_below_its_bound(noise, monkeypatch):
    """A computation with 50 digits from the same 51 bits differs by less than the bound."""

    class Recorder(NoiseSource):
        def __init__(self):
            super().__init__()
            self.drawn = []

        def _halves(self, size, count=1):
            coins, u = super()._halves(size, count)
            self.drawn.append((coins, u))
            return coins, u

    with mp.workdps(50):
        for _ in range(20):
            with seeded.reproducible_noise(3):
                source = Recorder()
            draw = noise.draw(source)
            if isinstance(noise, GammaNorm):
                coins, u = source.drawn[0]
                length = sum(-mp.log(1 - mpf(v)) if coin else -mp.log(mpf(v)) for coin, v in zip(coins, u, strict=True))
            coins, u = source.drawn[-1]
            normals = [(1 if coin else -1) * -mp.sqrt(2) * mp.erfinv(1 - 2 * mpf(v)) for coin, v in zip(coins, u, strict=True)]
            exact = normals
            if isinstance(noise, GammaNorm):
                norm = mp.sqrt(sum(z * z for z in normals))
                exact = [length * z / norm for z in normals]
            error = float(mp.sqrt(sum((mpf(float(a)) - b) ** 2 for a, b in zip(draw, exact, strict=True))))
            assert error + 2.0**-50 * np.linalg.norm(draw) <= noise.rounding


GRID = [(size, scale, largest) for size in (1, 100) for scale in (0.5, 100.0, 1e4) for largest in (1.0, 1e12)]


@pytest.mark.parametrize("size, scale, largest", GRID)
def test_the_grid_is_exact_and_its_scale_covers_the_slack(size, scale, largest):
    sensitivity = 1e-3
    noise = GridGammaNorm.calibrated(sensitivity=sensitivity, scale=scale, size=size, largest=largest)
    assert math.frexp(noise.spacing)[0] == 0.5
    covered = sensitivity * (1 + 2**-30) + noise.spacing * math.sqrt(size)
    share = 8 * CELL_ERROR * covered * scale * math.sqrt(size + 1) / noise.spacing * math.sqrt(size) * scale
    assert share <= 0.5
    assert noise.noise.scale >= covered * scale / (1 - share) * (1 - 1e-12)
    assert (largest + covered * scale * 1000) / noise.spacing < 2**52
    if largest == 1.0:
        assert noise.noise.scale == pytest.approx(sensitivity * scale, rel=0.15)


@pytest.mark.parametrize("size, scale", ((1, 1e8), (10**6, 1e3), (1, math.inf), (4 * 10**6, 1e5)))
def test_noise_that_bits_cannot_resolve_is_refused(size, scale):
    with pytest.raises(ValueError, match="larger epsilon or fewer features"):
        GridGammaNorm.calibrated(sensitivity=1.0, scale=scale, size=size, largest=1.0)


def test_outputs_lie_on_the_grid_without_negative_zeros(rng):
    noise = GridGammaNorm.calibrated(sensitivity=1.0, scale=2.0, size=3, largest=10.0)
    for value in (np.zeros(3), rng.normal(size=3)):
        steps = noise.add_to(value, seeded.source()) / noise.spacing
        assert np.array_equal(steps, np.rint(steps))
    silent = GridGammaNorm(GammaNorm(0.0, 3), 0.25).add_to(np.array([-1e-9, 0.3, -0.0]), seeded.source())
    assert silent.tolist() == [0.0, 0.25, 0.0] and not np.signbit(silent).any()


@pytest.mark.slow
def test_released_noise_has_the_stated_law():
    noise, source = GridGammaNorm.calibrated(sensitivity=1.0, scale=2.0, size=3, largest=10.0), seeded.source(2)
    norms = np.array([np.linalg.norm(noise.add_to(np.zeros(3), source)) for _ in range(FEWER)]) / 2.0
    assert kstest(norms, gamma(3).cdf).pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(norms / wrong, gamma(3).cdf).pvalue < FALSE_ALARM
