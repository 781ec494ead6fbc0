"""Joint histograms of columns: their definitions, and their sensitivities searched for over hostile cells."""

import math
from itertools import product

import numpy as np
import pytest
from seeded import source

from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.column_cells import ColumnCells, finite_cells
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms, FineHistograms
from skdp.privacy.queries.column_histograms import (
    BUCKETS,
    EVEN_BINS,
    NUMBER_BINS,
    OCTAVES,
    FineBins,
    bucket_bins,
    either_bins,
    integers_between,
    octave_bins,
    octave_ends,
)
from skdp.privacy.schedule import Gaussian, Release, Schedule

HOSTILE = np.array(
    [
        *(
            math.nan,
            math.inf,
            -math.inf,
            0.0,
            -0.0,
            5e-324,
            -5e-324,
            1e300,
            -1e300,
            1.7e308,
            1.0,
            -1.0,
            0.5,
            2.0,
            3.0,
            255.0,
            256.0,
        ),
        *(257.0, -3.5, 1e18, 2.0**60, 2.0**-61, 63.9999, 64.0, np.nextafter(64.0, 65), np.nextafter(0.0, 1), 7.25),
    ]
)
KINDS = (False, True, False)  # a number, a text, a number
LIMITS = np.array([[0.0, 64.0], [-1.0, 1.0], [-1e18, 1e18], [0.5, 0.6]])
FINE = FineHistograms((0, 1, 2, 3), LIMITS)
QUERIES = {
    "octaves": (ColumnHistograms(KINDS), 3),
    "octaves and target": (ColumnHistograms(KINDS, target=True), 3),
    "octaves of a target alone": (ColumnHistograms((), target=True), 0),
    "fine of a target alone": (FineHistograms((), np.array([[0.0, 64.0]]), target=True), 0),
    "octaves of either kind": (ColumnHistograms((None, True, None), target=True), 5),
    "fine": (FINE, 4),
    "few bins": (FineHistograms((0, 2), np.array([[0.0, 4.0], [-1e18, 1e18], [-5.0, 5.0]]), target=True, even_bins=64), 4),
    "fine and target": (FineHistograms((0, 2), np.array([[0.0, 64.0], [-1e18, 1e18], [-5.0, 5.0]]), target=True), 4),
}
every_query = pytest.mark.parametrize("name", QUERIES)


def rows_of(cells, targets):
    return ColumnCells(np.atleast_2d(cells), np.atleast_1d(targets))


def test_every_number_is_in_the_bin_of_its_octave():
    low, high = octave_ends()
    places = octave_bins(HOSTILE)
    for value, place in zip(HOSTILE, places, strict=True):
        if np.isnan(value):
            assert place == NUMBER_BINS - 1
        elif value == 0:
            assert place == OCTAVES and low[place] == high[place] == 0
        elif 2.0**-61 < abs(value) < 2.0**60:
            assert low[place] <= value < high[place] if value > 0 else low[place] < value <= high[place]
        else:  # beyond the outermost bins
            small, large = (OCTAVES + 1, NUMBER_BINS - 2) if value > 0 else (OCTAVES - 1, 0)
            assert place == (large if abs(value) > 1 else small)
    assert low.size == high.size == NUMBER_BINS - 1 and (low[1:] >= low[:-1]).all() and (high[1:] >= high[:-1]).all()


def test_every_number_within_limits_is_in_one_bin():
    for low, high in LIMITS:
        answer = FineHistograms((0,), np.array([[low, high]])).evaluate(rows_of(HOSTILE[:, None], HOSTILE))
        inside = (low <= HOSTILE) & (high >= HOSTILE)
        assert answer.sum() == inside.sum()
        integers = integers_between(low, high)
        assert answer.size == EVEN_BINS + integers.size
        np.testing.assert_array_equal(answer[EVEN_BINS:], [np.count_nonzero(HOSTILE == value) for value in integers])
        even = HOSTILE[inside & ~np.isin(HOSTILE, integers)]
        places, width = FineBins(low, high, integers)(even), (high - low) / EVEN_BINS
        assert np.bincount(places, minlength=EVEN_BINS).tolist() == answer[:EVEN_BINS].tolist()
        assert (np.abs(even - (low + (places + 0.5) * width)) <= width / 2 * (1 + 1e-9)).all()


def test_buckets_outside_the_range_are_cut_to_it():
    assert bucket_bins(np.array([0.0, 255.0, 256.0, 1e300, -4.0, math.nan, math.inf])).tolist() == [0, 255, 256, 256, 0, 256, 256]


def test_a_cell_of_either_kind_has_one_bin(rng):
    """That of its number, or after those that of its bucket, whatever the two columns of the table hold."""
    values, buckets = (finite_cells(rng.choice(HOSTILE, 2000)) for _ in range(2))
    places = either_bins(values, buckets)
    text = np.isnan(values) & ~np.isnan(buckets)
    np.testing.assert_array_equal(places[~text], octave_bins(values)[~text])
    np.testing.assert_array_equal(places[text], NUMBER_BINS + np.clip(buckets[text], 0, BUCKETS - 1).astype(int))
    query = ColumnHistograms((False, None, True))
    cells = np.column_stack([np.zeros(2000), values, buckets, np.full(2000, 7.0)])
    first, counted, last = np.split(query.evaluate(rows_of(cells, np.zeros(2000))), np.cumsum(query.sizes())[:-1])
    assert query.places() == [0, 1, 3] and query.sizes() == [NUMBER_BINS, NUMBER_BINS + BUCKETS, BUCKETS + 1]
    np.testing.assert_array_equal(counted, np.bincount(places, minlength=NUMBER_BINS + BUCKETS))
    assert first[OCTAVES] == counted.sum() == last[7] == 2000


@pytest.mark.slow
@every_query
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
def test_no_neighbour_exceeds_the_bound_and_some_reach_it(name, adjacency, rng):
    query, d = QUERIES[name]
    bound, largest, shared = query.sensitivity(adjacency), 0.0, rng.choice(HOSTILE, (5, d))
    targets = rng.choice(HOSTILE, 5)
    candidates = [rng.choice(HOSTILE, d + 1) for _ in range(300)]
    candidates += [np.full(d + 1, value) for value in (*HOSTILE, 0.55, 0.57)] + [
        np.array([1.5, 0.5, 2.0, 0.55, 0.3, 9.0])[: d + 1]
    ]
    candidates += [np.array([2.5, 0.25, -3e17, 0.57, 0.57, 0.1])[: d + 1], np.array([4.0, 3.0, -4.0, 0.52, -2.0, 1.0])[: d + 1]]
    answers = []
    for record in candidates:
        rows = rows_of(np.vstack([shared, record[:d]]), np.append(targets, record[d]))
        answers.append((query.evaluate(rows), query.evaluate(rows.without(np.array([5])))))
    for (here, without), (there, _) in product(answers, answers if adjacency == "replace_one" else answers[:1]):
        largest = max(largest, float(np.linalg.norm(here - (there if adjacency == "replace_one" else without))))
    assert largest <= bound * (1 + 1e-12)
    assert largest > bound * (1 - 1e-12)
    assert bound == pytest.approx(query.clip_norm * (math.sqrt(2) if adjacency == "replace_one" else 1))


def test_the_bounds_are_those_of_the_columns():
    assert ColumnHistograms(KINDS).clip_norm == pytest.approx(math.sqrt(3))
    assert ColumnHistograms(KINDS, True).clip_norm == pytest.approx(math.sqrt(7))
    assert ColumnHistograms((None, True, None)).clip_norm == pytest.approx(math.sqrt(3))
    assert FINE.clip_norm == 2
    assert FineHistograms((), np.zeros((0, 2))).clip_norm == 0


@every_query
def test_a_record_moves_no_other(name, rng):
    """The counts are the sums of those of the records alone, and of any parts."""
    query, d = QUERIES[name]
    cells, targets = rng.choice(HOSTILE, (40, d)), rng.choice(HOSTILE, 40)
    together = query.evaluate(rows_of(cells, targets))
    assert together.size == query.size
    alone = sum(query.partial(rows_of(cells[i], targets[i])) for i in range(40))
    parts = query.finish(query.partial(rows_of(cells[:17], targets[:17])) + query.partial(rows_of(cells[17:], targets[17:])))
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, parts)
    null = np.array([0, 3])
    rest = np.setdiff1d(np.arange(40), null)
    kept = query.evaluate(rows_of(cells, targets).without(null).without(np.array([7])).without(null))
    rest = rest[rest != 7]
    np.testing.assert_array_equal(kept, query.evaluate(rows_of(cells[rest], targets[rest])))


def test_missing_and_unseen_texts_have_bins():
    counts = ColumnHistograms((True,)).evaluate(rows_of(np.array([[3.0], [math.nan], [3.0], [200.0]]), np.zeros(4)))
    assert counts.size == BUCKETS + 1 and counts[[3, 200, BUCKETS]].tolist() == [2, 1, 1] and counts.sum() == 4


def oracle(cells, budget, releases):
    schedule = Schedule(tuple((1, release) for release in releases))
    return Oracle(ColumnCells(cells), schedule, budget, calibrate(schedule, budget) if budget.private else 0.0, source())


def test_the_gate_refuses_limits_that_are_not_finite_and_answers_no_columns_with_nothing():
    budget, cells = Budget(1.0, 1e-6, "zero_out"), np.zeros((9, 2))
    release = Release(FineHistograms, Gaussian())
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle(cells, budget, [release]).ask(FineHistograms((0,), np.array([[0.0, math.inf]])))
    gate = oracle(cells, budget, [release])
    assert gate.ask(FineHistograms((), np.zeros((0, 2)))).size == 0
    gate.finish()


def test_the_noise_is_that_of_the_sensitivity(rng):
    """20 560 bins, which are empty: the standard deviation is within 5 % with a false-alarm rate below 1e-20."""
    budget, query = Budget(1.0, 1e-6, "replace_one"), ColumnHistograms((True,) * 80)
    release = Release(ColumnHistograms, Gaussian(), query.clip_norm, query.size)
    schedule = Schedule(((1, release),))
    answer = oracle(np.full((9, 80), 3.0), budget, [release]).ask(query)
    expected = calibrate(schedule, budget) * query.sensitivity("replace_one")
    assert np.std(answer) == pytest.approx(expected, rel=0.05)
