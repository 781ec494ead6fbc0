"""Gradients as factors: norms, clipped sums and differences against explicit matrices, one per record."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy.data.gradient_factors import CANCELLED, Factors, clipped_sum, differences, lengths, n_entries
from skdp.privacy.data.kernels import SHORTEST

SHAPES = ((1, 1, 1, 0.0), (1, 1, 1, 1.0), (9, 1, 4, 0.0), (9, 3, 1, 2.0), (9, 5, 7, 1.0), (1, 6, 2, 0.5), (8, 2, 0, 1.0))
every_shape = pytest.mark.parametrize("m, k, p, constant", SHAPES)


def explicit(parts):
    """Gradients as rows of a matrix, from the definition."""
    rows = []
    for part in parts:
        right = part.right.toarray() if sparse.issparse(part.right) else part.right
        matrices = (part.left[:, :, None] * right[:, None, :]).reshape(len(right), -1)
        rows.append(np.hstack([matrices, part.constant * part.left]) if part.constant else matrices)
    return np.hstack(rows)


def made(rng, m, k, p, constant, spread=0.0):
    scale = 10 ** rng.uniform(-spread, spread, size=(m, 1))
    return Factors(scale * rng.normal(size=(m, k)), rng.normal(size=(m, p)), constant)


@every_shape
@pytest.mark.parametrize("stored", (np.asarray, sparse.csr_matrix, sparse.csr_array), ids=("dense", "csr", "csr_array"))
def test_norms_and_clipped_sums_are_those_of_the_matrices(m, k, p, constant, stored, rng):
    first, second = made(rng, m, k, p, constant, 3.0), made(rng, m, 2, 3, 0.0)
    parts = [Factors(first.left, stored(first.right), constant), second]
    rows = explicit(parts)
    norms = np.linalg.norm(rows, axis=1)
    assert n_entries(parts) == rows.shape[1]
    np.testing.assert_allclose(lengths(parts), norms, rtol=1e-13)
    present = (rng.random(m) < 0.7).astype(float)
    for clip_norm in (1e-3, 1.0, 1e6):
        for kept in (None, present):
            total = clipped_sum([[part] for part in parts], lengths(parts), kept, clip_norm)
            weights = (1.0 if kept is None else kept) / np.maximum(norms, clip_norm)
            np.testing.assert_allclose(total, weights @ rows, rtol=1e-12, atol=1e-13)


@every_shape
@pytest.mark.parametrize("distance", (0.0, 1e-15, 1e-9, 1e-3, 1.0, 1e3))
@pytest.mark.parametrize("shared", (False, True))
def test_differences_are_those_of_the_matrices_and_their_norms_never_below(m, k, p, constant, distance, shared, rng):
    """Exact to the last digits of the factors, however close the points are; the bound exceeds the terms' lengths by little."""
    here = made(rng, m, k, p, constant)
    right = here.right if shared else here.right + distance * rng.normal(size=(m, p))
    there = Factors(here.left + distance * rng.normal(size=(m, k)), right, constant)
    parts, norms = differences([here], [there])
    assert len(parts[0]) == (1 if shared else 2)
    change = differences_by_hand(here, there)
    true = np.linalg.norm(change, axis=1)
    assert (norms >= true * (1 - 1e-14)).all()
    terms = sum(np.linalg.norm(explicit([part]), axis=1) for part in parts[0])
    assert (norms <= np.sqrt(true**2 + (CANCELLED * terms) ** 2) * (1 + 1e-12) + 1e-140).all()
    total = clipped_sum(parts, norms, None, 1e9)
    np.testing.assert_allclose(total, change.sum(axis=0) / 1e9, rtol=1e-12, atol=1e-14 * true.sum() / 1e9)


def differences_by_hand(here, there):
    """In exact arithmetic."""
    exact = np.vectorize(Fraction, otypes=[object])
    one, other = (explicit([Factors(exact(p.left), exact(p.right), Fraction(p.constant))]) for p in (here, there))
    return (one - other).astype(float)


def test_terms_that_cancel_keep_the_bound_above_the_norm(rng):
    """Left up and right down by the same factor: the product hardly changes, and its terms are a million times longer."""
    here = made(rng, 200, 4, 6, 0.0)
    factors = 1 + 10 ** rng.uniform(-12, 1, size=(200, 1))
    there = Factors(here.left * factors, here.right / factors)
    parts, norms = differences([here], [there])
    true = np.linalg.norm(differences_by_hand(here, there), axis=1)
    terms = [np.linalg.norm(explicit([part]), axis=1) for part in parts[0]]
    assert (norms >= true).all()
    assert (norms >= CANCELLED * np.maximum(*terms)).all()
    for record in range(200):
        alone = [[Factors(part.left[[record]], part.right[[record]], part.constant) for part in parts[0]]]
        clipped = clipped_sum(alone, norms[[record]], None, 1e-9)
        assert np.linalg.norm(clipped) <= 1 + 1e-9


EXTREMES = [0.0, 5e-324, 1e-310, 1e-170, 1e-160, 1e-30, 1.0, 1e30, 1e150, 1e160, 1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("clip_norm", (1e-50, 1e-3, 1.0, 1e50))
def test_no_record_contributes_more_than_one_whatever_its_factors(clip_norm):
    """All combinations of extreme factors at two points, for a gradient and for a difference; what is not finite is left out."""
    one, other = np.meshgrid(EXTREMES, EXTREMES)
    here = [
        Factors(one.reshape(-1, 1), other.reshape(-1, 1).repeat(2, axis=1), 1.0),
        Factors(other.reshape(-1, 1), one.reshape(-1, 1)),
    ]
    order = np.random.default_rng(0).permutation(one.size)
    there = [Factors(part.left[order], part.right[order], part.constant) for part in here]
    with np.errstate(all="ignore"):
        for parts, norms in (([[part] for part in here], lengths(here)), differences(here, there)):
            for record in range(one.size):
                alone = [[Factors(p.left[[record]], p.right[[record]], p.constant) for p in added] for added in parts]
                value = clipped_sum(alone, norms[[record]], None, clip_norm)
                assert np.isfinite(value).all() and np.linalg.norm(value) <= 1 + 2**-30
                assert np.isfinite(norms[record]) or not value.any()


def test_a_norm_whose_terms_overflow_on_the_way_is_unknown():
    """Where twice an inner product is minus infinity, and the squares that it is added to are finite."""
    length, angle = 1.2e154, math.acos(-0.9)
    last, step = np.array([[length, 0.0]]), length * np.array([[math.cos(angle), math.sin(angle)]])
    right, change = np.array([[1e-100, 0.0]]), np.array([[1e-102, 1e-100]])
    with np.errstate(all="ignore"):
        parts, norms = differences([Factors(last + step, right)], [Factors(last, right - change)])
        assert np.linalg.norm(clipped_sum(parts, norms, None, 1.0)) <= 1 + 2**-30


@pytest.mark.parametrize("clip_norm", (5e-324, 1e-310, 1e-200, 0.0))
def test_clip_norms_near_zero_leave_sums_finite_and_within_one(clip_norm):
    """Records whose squared norms underflow included, of which one over the clip norm would make NaN."""
    for left, right in itertools.product((0.0, 5e-324, 1e-160, 1.0, 1e150), repeat=2):
        part = Factors(np.full((3, 2), left), np.full((3, 1), right))
        with np.errstate(all="ignore"):
            for parts, norms in (([[part]], lengths([part])), differences([part], [Factors(0 * part.left, part.right)])):
                assert np.linalg.norm(clipped_sum(parts, norms, None, clip_norm)) <= 3 * (1 + 2**-30)


def test_short_factors_count_as_longer_than_they_are():
    tiny = Factors(np.full((2, 3), 1e-170), np.ones((2, 1)))
    assert lengths([tiny]).tolist() == [SHORTEST] * 2


@pytest.mark.parametrize("width", (3, 8192, 8193, 20_000))
def test_norms_do_not_depend_on_who_else_is_in_the_sample(width, rng):
    """Bit by bit: NumPy sums a wide row that is alone in another order."""
    here, there = (made(rng, 30, width, width, 1.0) for _ in range(2))
    ways = (
        lambda chosen: lengths([Factors(here.left[chosen], here.right[chosen], 1.0)]),
        lambda chosen: differences(
            [Factors(here.left[chosen], here.right[chosen], 1.0)], [Factors(there.left[chosen], there.right[chosen], 1.0)]
        )[1],
    )
    for way in ways:
        whole = way(np.arange(30))
        for size in (1, 1, 1, 2, 3, 5, 29):
            chosen = np.sort(rng.choice(30, size, replace=False))
            np.testing.assert_array_equal(way(chosen), whole[chosen])


@pytest.mark.slow
def test_norms_of_many_parts_do_not_depend_on_it_either(rng):
    """NumPy adds more than seven numbers of one record in another order than those of two."""
    here, there = ([made(rng, 200, 2, 3, 1.0, 1.0) for _ in range(20)] for _ in range(2))

    def chosen(parts, records):
        return [Factors(part.left[records], part.right[records], part.constant) for part in parts]

    for way in (lambda records: lengths(chosen(here, records)), lambda r: differences(chosen(here, r), chosen(there, r))[1]):
        alone = np.concatenate([way(slice(place, place + 1)) for place in range(200)])
        np.testing.assert_array_equal(alone, way(slice(None)))


@pytest.mark.parametrize("stored", (np.asarray, sparse.csr_matrix), ids=("dense", "csr"))
def test_a_record_that_is_not_finite_leaves_the_others_as_they_are(stored, rng):
    """Null records included."""
    part = made(rng, 8, 3, 2, 1.0)
    present, kept = np.array([1.0, 0, 1, 1, 0, 1, 0, 1]), np.array([0, 1, 3, 4, 5, 7])
    left = part.left.copy()
    left[2], left[6, 1] = np.nan, np.inf
    broken, rest = Factors(left, stored(part.right), 1.0), Factors(part.left[kept], part.right[kept], 1.0)
    total = clipped_sum([[broken]], lengths([broken]), present, 0.5)
    np.testing.assert_allclose(total, clipped_sum([[rest]], lengths([rest]), present[kept], 0.5), rtol=1e-13, atol=1e-15)
