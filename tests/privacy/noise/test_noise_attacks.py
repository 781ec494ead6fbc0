"""Attacks on the noise: its law in real releases and far tails, the outputs it can reach, and sums at their worst."""

import math
from fractions import Fraction

import numpy as np
import pytest
import seeded
from scipy import sparse
from scipy.special import log_ndtr
from scipy.stats import kstest, norm, poisson

from skdp.losses import Multinomial
from skdp.privacy.budget import Budget
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule

FALSE_ALARM = 1e-6
SIZE = 20_000
STORAGES = {
    "dense": np.ascontiguousarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "int8": lambda X: X.astype(np.int8),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rate", (1.0, 0.1))
@pytest.mark.parametrize("adjacency, k", (("replace_one", 2), ("zero_out", 1)))
def test_a_real_release_has_the_stated_noise_and_no_other(storage, rate, adjacency, k):
    """Kolmogorov-Smirnov on 20000 coordinates of one release, whose exact part is 0; false alarm 1e-6."""
    X = STORAGES[storage](np.zeros((10, SIZE - 1)))
    rows = TrainingData(X, np.zeros(10, dtype=np.int8), data_norm=1.0, by_row=rate < 1)
    mechanism = Gaussian(0.5) if rate == 1 else PoissonGaussian(rate, 0.5)
    schedule = Schedule(((1, Release(Gradient, mechanism, 1.5)),))
    oracle = Oracle(rows, schedule, Budget(1.0, 1e-6, adjacency), 3.0, seeded.source(20261121))
    released = oracle.ask(Gradient(Multinomial(2), np.zeros((SIZE - 1, 2)), 1.5)) / (k * 1.5 * 3.0 * 0.5)
    assert kstest(released, "norm").pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(released / wrong, "norm").pvalue < FALSE_ALARM


class Scripted(NoiseSource):
    """Normals of given mantissas, behind a given number of leading zeros."""

    def __init__(self, mantissas, zeros, sign=0):
        super().__init__()
        self.words = np.asarray(mantissas, dtype=np.uint64) | np.uint64(sign << 63)
        self.zeros = zeros

    def _words(self, size):
        return np.append(self.words, np.zeros_like(self.words))

    def _leading_zeros(self, words):
        return np.full(words.size, self.zeros)


MANTISSAS = np.unique(
    np.concatenate([np.arange(40), 2**51 - 1 - np.arange(40), np.linspace(0, 2**51 - 1, 500)]).astype(np.uint64)
)


@pytest.mark.parametrize("zeros", (*range(12), 30, 49, 50, 51, 52, 53, 60, 64, 100, 200))
def test_every_tail_region_follows_the_normal_law(zeros):
    """Given e leading zeros, u is uniform on its binary interval: its normal has a tail probability of exactly u."""
    z = Scripted(MANTISSAS, zeros).normal(MANTISSAS.size)
    log_u = np.log1p((2.0 * MANTISSAS + 1) * 2.0**-52) - (zeros + 2) * math.log(2)
    assert (np.abs(log_ndtr(-np.abs(z)) - log_u) <= 1e-14 * (1 + z * z)).all()
    assert np.array_equal(-z, Scripted(MANTISSAS, zeros, sign=1).normal(MANTISSAS.size))  # symmetric
    assert (np.diff(z) * np.sign(z[0]) <= 4e-16 * np.abs(z[1:])).all()  # monotone up to rounding
    assert zeros < 52 or abs(z).max() > 8


@pytest.mark.parametrize("zeros", (0, 1, 10, 30, 50, 60, 100))
def test_no_grid_point_is_a_hole(zeros):
    """Neighbouring mantissas are closer than the finest grid that one normal has to fill, out to 10 standard deviations."""
    for start in (0, 2**50, 2**51 - 200):
        z = Scripted(start + np.arange(200, dtype=np.uint64), zeros).normal(200)
        assert np.abs(np.diff(z)).max() * 2.0**22 < 1


def test_leading_zeros_are_counted_through_every_word():
    """Zeros in the first 53 bits and in later words have the right weight; otherwise the tail would be cut or too heavy."""

    class Bits(NoiseSource):
        def __init__(self, words):
            self.given = words

        def _words(self, size):
            return np.array([self.given.pop(0)], dtype=np.uint64)

    for zeros in range(3 * 53):
        words = [0] * (zeros // 53) + [2 ** (63 - zeros % 53)]
        source = Bits(words)
        assert source._leading_zeros(source._words(1)) == zeros


@pytest.mark.slow
def test_far_draws_are_as_frequent_as_they_should_be():
    """10 million normals beyond 3, 4, 4.5 and 5 on either side; eight Poisson counts, false alarm 1e-6 in all."""
    counts, source = np.zeros((4, 2), dtype=int), seeded.source(5)
    for _ in range(10):
        z = source.normal(1_000_000)
        counts += [[(z > t).sum(), (z < -t).sum()] for t in (3, 4, 4.5, 5)]
    for threshold, pair in zip((3, 4, 4.5, 5), counts, strict=True):
        expected = 1e7 * norm.sf(threshold)
        low, high = poisson.ppf(FALSE_ALARM / 16, expected), poisson.isf(FALSE_ALARM / 16, expected)
        assert all(low <= count <= high for count in pair)


class EverySteps(GridGaussian):
    """A grid whose noise takes every integer of a range, one per coordinate; its zero is a negative one."""

    def _steps(self, size, source, releases):
        return -(np.arange(size, dtype=float) - size // 2)


@pytest.mark.parametrize("spacing", (1.0, 2.0**-30, 2.0**70, 2.0**-960))
def test_neighbours_reach_the_same_outputs_bit_by_bit(spacing):
    """All outputs of all values between grid points, enumerated: equal sets up to the ends of the range."""
    reach = 2001
    values = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.0,
        -3.0,
        0.3,
        -0.3,
        1.5,
        2.5,
        math.pi,
        -1 / 3,
        1e-300 / spacing,
        1 - 2**-53,
        1 + 2**-52,
        7.9,
    ]
    outputs = []
    for value in values:
        released = EverySteps(1.0, spacing).add_to(np.full(reach, value * spacing), seeded.source())
        outputs.append({bits.tobytes() for bits in released if abs(bits) <= (reach // 2 - 10) * spacing})
    assert len(outputs[0]) == 2 * (reach // 2 - 10) + 1
    assert all(reached == outputs[0] for reached in outputs)


@pytest.mark.parametrize("scale", (1e-5, 1.0, 300.0, 1e6))
@pytest.mark.parametrize("clip_norm", (1e-50, 1e-5, 1.0, 1e50))
@pytest.mark.parametrize("n_samples", (2, 10**5, 10**9))
def test_low_bits_of_an_output_do_not_betray_the_data(scale, clip_norm, n_samples, rng):
    """An output is an integer below 2**52 times the spacing: exact, and in the same format for all data."""
    sizes = dict(clip_norm=clip_norm, relative_sensitivity=2.0, scale=scale, n_samples=n_samples, size=64)
    noise = GridGaussian.calibrated(summation_error=1e-13 * n_samples, **sizes)
    for value in (0.0, n_samples * clip_norm, -n_samples * clip_norm):
        exact = value * rng.random(64)
        exact[0] = value
        released = noise.add_to(exact, seeded.source(1))
        steps = released / noise.spacing
        assert np.array_equal(steps, np.rint(steps))
        assert np.abs(steps).max() < 2**52
        assert not np.signbit(released[released == 0]).any()


def adversarial(kind, n, rng):
    """Tables of two columns whose sums have the largest rounding errors."""
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    tables = {
        "alternating": signs * [1.0, -1.0],
        "cancelling": signs * (1 + rng.random((n, 2)) * 1e-9),
        "half and half": np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None] * (1 - 2.0**-30 * rng.random((n, 2))),
        "one sign": 0.1 + np.zeros((n, 2)),
        "denormal": signs * 5e-324 * rng.integers(1, 100, (n, 2)),
        "mixed scales": signs * 10.0 ** rng.uniform(-300, 150, (n, 2)),
        "random": rng.normal(size=(n, 2)),
    }
    return tables[kind]


KINDS = ("alternating", "cancelling", "half and half", "one sign", "denormal", "mixed scales", "random")
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "view": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "big-endian": lambda X: X.astype(">f8"),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", (1, BLOCK + 1, 100_003))
def test_sums_are_within_their_allowance(kind, layout, n, rng):
    """Compares with the exact sum of the same terms, each of norm at most the clip norm."""
    X, slopes = adversarial(kind, n, rng), 1 - 2.0**-20 * rng.random((n, 1))
    terms, clip_norm = {}, 3.0

    def kernel(raw, records):
        residuals = slopes[records.targets] * np.minimum(clip_norm * records.inverse_norms, 1.0)[:, None]
        terms.update(zip(records.targets.tolist(), residuals[:, 0].tolist(), strict=True))
        return residuals

    with np.errstate(all="ignore"):
        rows = TrainingData(LAYOUTS[layout](X), np.arange(n), data_norm=2.0)
        value = rows.sum(np.full((2, 1), 1e300), kernel)[:, 0]  # raw predictions of 1e300 and beyond
    factors = [terms[i] * scale for i, scale in enumerate(rows._scales.tolist())]
    for column, got in zip(X.T.tolist(), value.tolist(), strict=True):
        exact = math.fsum(x * r for x, r in zip(column, factors, strict=True))  # each product is rounded once
        assert abs(Fraction(got) - Fraction(exact)) <= Fraction(rows.summation_error * clip_norm / math.sqrt(2))
    lengths = np.hypot(*(np.abs(X) * np.array(factors)[:, None]).T)
    assert lengths.max() <= clip_norm * (1 + 2**-30)


def neighbours(kind, n, rng):
    """A table and one that differs in the record in the middle, which is the longest there is, or null."""
    X = adversarial(kind, n, rng)
    for other in (-X[n // 2], np.array([-1e150, 1e150]), np.array([1e300, -1e300]), np.array([5e-324, 0.0]), np.zeros(2)):
        changed = X.copy()
        changed[n // 2] = other
        yield X, changed


class Slope:
    """A loss of slope -1 or 1e300 by label, whatever the prediction."""

    name, lipschitz, smoothness, n_outputs = "slope", 1.0, 1.0, 1

    def derivative(self, raw, labels):
        return np.where(labels == 1, 1e300, -1.0)[:, None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("clip_norm", (1e-3, 1.0))
def test_neighbouring_sums_differ_by_no_more_than_is_covered(kind, layout, clip_norm, rng):
    """Rounding included: ``k C (1 + 2**-30) + 2 gamma C``, of which the noise covers k times as much."""
    n = 3 * BLOCK + 5
    y = (np.arange(n) % 3 == 0).astype(np.int8)
    other_y = y.copy()
    other_y[n // 2] = 1 - y[n // 2]
    query = Gradient(Slope(), np.full((3, 1), -1e300), clip_norm)
    with np.errstate(all="ignore"):
        for X, changed in neighbours(kind, n, rng):
            tables = ((X, y), (changed, other_y))
            all_rows = [TrainingData(LAYOUTS[layout](t), labels, data_norm=1.0, intercept_scaling=0.5) for t, labels in tables]
            first, second = (query.evaluate(rows) for rows in all_rows)
            covered = query.sensitivity("replace_one") * (1 + 2**-30) + 2 * all_rows[0].summation_error * clip_norm
            assert np.linalg.norm(first - second) <= covered


DTYPES = (np.bool_, np.int8, np.uint8, np.int64, np.float16, np.float32, np.float64, ">i4", ">f8")


@pytest.mark.parametrize("largest", (1, 100, 4097))  # whose squares no int8, no float32 has
def test_layout_and_dtype_do_not_change_the_sum_beyond_its_error(largest, rng):
    """Tables of the same integers in every dtype that has them, every order and sparse form: all of one sum."""
    n = 2 * BLOCK + 7
    X, y = largest * rng.integers(0, 2, (n, 5)), rng.integers(0, 3, n).astype(np.int8)
    query = Gradient(Multinomial(3), rng.normal(size=(6, 3)), 0.7)
    with np.errstate(all="ignore"):
        casts = [cast for cast in (X.astype(dtype) for dtype in DTYPES) if np.array_equal(cast, X)]
    tables = [layout(cast) for cast in casts for layout in (np.asarray, np.asfortranarray, LAYOUTS["reversed"])]
    forms = (sparse.csr_array, sparse.csc_array, with_long_indices, with_explicit_zeros, shuffled)
    tables += [form(cast) for cast in casts if cast.dtype.isnative and cast.dtype != np.float16 for form in forms]
    assert len(tables) >= 5 * 3 + 3 * 5
    sums = [query.evaluate(TrainingData(table, y, data_norm=1.5, intercept_scaling=0.3)) for table in tables]
    allowance = TrainingData(sparse.csc_array(X), y, data_norm=1.5).summation_error * 0.7
    assert max(np.linalg.norm(value - sums[0]) for value in sums) <= 2 * allowance


def with_long_indices(X):
    table = sparse.csr_array(X)
    table.indices, table.indptr = table.indices.astype(np.int64), table.indptr.astype(np.int64)
    return table


def with_explicit_zeros(X):
    n, d = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


def shuffled(X):
    """Entries of a row in descending order of columns."""
    n, d = X.shape
    return sparse.csr_array((X[:, ::-1].ravel(), np.tile(np.arange(d)[::-1], n), np.arange(0, n * d + 1, d)), shape=X.shape)
