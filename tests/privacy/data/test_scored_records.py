"""Scored records: counts and sums are those of their definitions, in the order of other sums, without null records."""

import numpy as np
import pytest

from skdp.privacy.data.scored_records import ScoredRecords, places_on_grid
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import ClassCounts, ErrorSums, ScoreCounts, TargetHistogram

NULL = np.array([2, 7, 4500])


@pytest.mark.parametrize("null", (False, True))
def test_sums_have_the_bits_of_sums_over_a_table(null, rng):
    errors, scores = rng.exponential(size=10_000), rng.uniform(-1, 1, (10_000, 2))
    records, table = ScoredRecords(scores, errors), TrainingData(scores, errors, data_norm=2.0)
    records, table = (rows.without(NULL) if null else rows for rows in (records, table))
    query = ErrorSums(0.7, True)
    expected = table.batch_sum(lambda batch: _sum(query, batch), query.size)
    np.testing.assert_array_equal(query.evaluate(records), expected)
    assert records.summation_error == table.summation_error


def _sum(query, batch):
    terms = query._terms(ScoredRecords(batch.rows, batch.targets))
    return terms.sum(axis=1) if batch.present is None else terms @ batch.present


@pytest.mark.parametrize("null", (False, True))
def test_counts_are_those_of_each_cell(null, rng):
    log_odds, classes, groups = rng.uniform(-7, 7, 6000), rng.integers(0, 2, 6000), rng.integers(0, 3, 6000)
    records, kept = ScoredRecords(log_odds, classes, groups), np.ones(6000, dtype=bool)
    if null:
        records, kept[NULL] = records.without(NULL), False
    edges = [-np.inf, -2.0, 0.0, 1.0, np.inf]
    cells = [
        np.histogram(log_odds[kept & (groups == group) & (classes == label)], edges)[0] for group in range(3) for label in (0, 1)
    ]
    counts = ScoreCounts(None, tuple(int(50 * edge) + 1 for edge in edges[1:-1]), n_groups=3).evaluate(records)
    np.testing.assert_array_equal(counts, np.concatenate(cells))
    np.testing.assert_array_equal(TargetHistogram(np.array([0.5])).evaluate(records), np.bincount(classes[kept]))
    predicted = rng.integers(0, 2, 6000)
    matrix = ClassCounts(4).evaluate(ScoredRecords(predicted, classes, presence=records.presence)).reshape(2, 2)
    assert matrix[0, 1] == (kept & (classes == 0) & (predicted == 1)).sum() and matrix.sum() == kept.sum()


def test_every_number_has_a_place_on_the_grid():
    numbers = np.array([-np.inf, -1e300, -3.0, -0.004, np.nan, 0.0, 0.004, 0.006, 3.0, np.inf])
    assert places_on_grid(numbers, 3.0, 601).tolist() == [0, 0, 0, 300, 300, 300, 300, 301, 600, 600]
