"""Tests the selection of a coordinate by its gradient: definition, neighbours, and what the oracle refuses."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from block_tables import NULL, STORAGES, WEIGHTS, D, R, Steep, clipped, make, nasty, oracle_of, table

from skdp.losses import Logistic
from skdp.privacy.accounting.noise_calibration import calibrate, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.data import column_cache as columns
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import BlockGradient, CoordinateScores
from skdp.privacy.schedule import Gaussian, Release, Schedule, Selection


@pytest.mark.parametrize("storage, constant", list(product(STORAGES, (0.0, 0.7))))
@pytest.mark.parametrize("size", (0.05, 100.0))
@pytest.mark.parametrize("null", (False, True))
def test_scores_are_those_of_gradients_clipped_by_coordinate(storage, constant, size, null, rng):
    X, y = table(rng)
    rows = make(storage, X, y, intercept_scaling=constant, class_weight=WEIGHTS)
    rows = rows.without(NULL) if null else rows
    x = clipped(STORAGES[storage](X), constant)
    clip_norms, offset = size * rng.uniform(0.1, 1.0, x.shape[1]), rng.normal(size=x.shape[1])
    clip_norms[1] = 0.0
    for factor in (1.0, 1.0, 0.1):
        coef, clip_norms = rng.normal(size=(x.shape[1], 1)), factor * clip_norms
        terms = np.clip(x * WEIGHTS[y][:, None] * Logistic().derivative(x @ coef, y), -clip_norms, clip_norms)
        terms[NULL] *= not null
        expected = np.abs(terms.sum(axis=0) + offset) / np.where(clip_norms > 0, clip_norms, np.inf)
        value = CoordinateScores(Logistic(), coef, clip_norms, offset).evaluate(rows)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("storage", ("C", "F", "csr", "csc"))
@pytest.mark.parametrize("constant", (0.0, 0.7))
def test_no_score_moves_further_than_the_sensitivity(storage, constant, rng):
    """One record beside another and a public offset: never exceeded, attained within 1 % in every coordinate."""
    n_coordinates = 3 + (constant > 0)
    clip_norms, offset = rng.uniform(0.1, 0.5, n_coordinates), np.full(n_coordinates, 5.0)
    X, points = nasty(rng), [rng.normal(size=(n_coordinates, 1)) * 10.0**power for power in (0, 300, 0)]
    scores, alone = [], []
    for number, x in enumerate(X):
        y = np.array([number % len(Steep.slopes)], dtype=np.int8)
        with np.errstate(all="ignore"):
            rows = TrainingData(STORAGES[storage](x[None]), y, data_norm=R, intercept_scaling=constant)
            queries = [CoordinateScores(Steep(), coef, clip_norms, offset) for coef in points]
            scores += [query.evaluate(rows) for query in queries]
            alone.append(queries[0].evaluate(rows.without(np.array([0]))))
    scores, slack = np.array(scores), 1 + 2.0**-30
    apart = scores.max(axis=0) - scores.min(axis=0)
    assert (apart <= queries[0].sensitivity("replace_one") * slack).all()
    assert (apart > 0.99 * queries[0].sensitivity("replace_one")).all()
    np.testing.assert_allclose(alone, np.tile(offset / clip_norms, (len(X), 1)), rtol=1e-15)
    shift = np.abs(scores - alone[0]).max()
    assert 0.99 < shift / queries[0].sensitivity("zero_out") <= slack


@pytest.mark.parametrize("storage", ("F", "csc"))
def test_scores_are_within_their_rounding_error(storage, rng):
    n = 2 * columns.BLOCK + 5
    X = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * (1 - 2.0**-30 * rng.random((n, 2)))
    rows, clip_norms, offset = (
        TrainingData(STORAGES[storage](X), np.zeros(n, dtype=np.int8), data_norm=R),
        np.full(2, 0.3),
        np.full(2, 1e6),
    )
    query = CoordinateScores(Steep(), np.zeros((2, 1)), clip_norms, offset)
    error = query.rounding_error(n, rows.summation_error)
    assert error > query.score_rounding(n, 2, rows.summation_error)
    for column, got in zip(np.clip(X, -0.3, 0.3).T, query.evaluate(rows), strict=True):
        exact = abs(Fraction(math.fsum(column)) + Fraction(1e6)) / Fraction(0.3)
        assert abs(exact - Fraction(float(got))) <= Fraction(error)


@pytest.mark.parametrize("clip_norms, offset", (([1.0], [0.0, 0.0]), ([1.0, -1.0], [0.0, 0.0]), ([1.0, np.nan], [0.0, 0.0])))
def test_scores_without_bounds_are_refused(clip_norms, offset):
    with pytest.raises(ValueError, match="clip_norms"):
        CoordinateScores(Logistic(), np.zeros((2, 1)), np.array(clip_norms), np.array(offset))


@pytest.mark.parametrize("what", ({"clip_norms": 1e200}, {"clip_norms": 1e-300, "offset": 1e100}, {"offset": np.inf}))
def test_scores_that_overflow_are_refused(what, rng):
    X, y = table(rng)
    schedule = Schedule(((1, Release(CoordinateScores, Selection(), 1.0)),))
    vectors = {name: np.full(D, what.get(name, 1.0)) for name in ("clip_norms", "offset")}
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle_of(schedule, make("F", X, y)).ask(CoordinateScores(Logistic(), np.zeros((D, 1)), **vectors))


def test_scores_leave_by_a_selection_only(rng):
    X, y = table(rng)
    schedule = Schedule(((1, Release(CoordinateScores, Gaussian(), 1.0)),))
    with pytest.raises(PrivacyAccountingError, match="expected a selection"):
        oracle_of(schedule, make("F", X, y)).ask(CoordinateScores(Logistic(), np.zeros((D, 1)), np.ones(D), np.zeros(D)))


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("weight", (0.5, 2.0))
def test_choices_and_gradients_by_turns_spend_the_budget(adjacency, weight):
    chosen, moved = Release(CoordinateScores, Selection(weight), 1.0), Release(BlockGradient, Gaussian(), None, 1)
    schedule, budget = Schedule(((1, chosen), (1, moved)) * 20), Budget(1.0, 1e-6, adjacency)
    assert 0.999 <= spent_epsilon(schedule, calibrate(schedule, budget), budget) / budget.epsilon <= 1
    assert schedule.by_column


def test_the_best_coordinate_is_chosen_and_moved(rng):
    """Greedy steps through the oracle, with hardly any noise."""
    X, y = table(rng, n=2000)
    y = (X[:, 4] > 0).astype(np.int8)
    chosen, moved = Release(CoordinateScores, Selection(), 1.0), Release(BlockGradient, Gaussian(), None, 1)
    oracle = oracle_of(Schedule(((1, chosen), (1, moved)) * 2), make("C", X, y), epsilon=100.0)
    coef = np.zeros((D, 1))
    for _ in range(2):
        best = oracle.ask(CoordinateScores(Logistic(), coef, np.full(D, R), np.zeros(D))).astype(int)
        value = oracle.ask(BlockGradient(Logistic(), coef, best, R))
        coef = coef.copy()
        coef[best] -= value[:, None] / 2000
    assert coef[4] > 0.1
    oracle.finish()


def test_a_sample_of_a_sample_is_clipped_whatever_was_kept(rng):
    """What is known of the largest entries of one sample says nothing of rows outside of it."""
    X, y = 100 * rng.normal(size=(50, D)), np.arange(50) % 2
    whole, slopes = TrainingData(X, y, data_norm=1e3), lambda raw, records: np.ones(raw.shape)
    first, second = whole.subset(np.arange(25)), np.arange(25, 50)
    first.clipped_sum(np.zeros((D, 1)), slopes, 1.0)
    asked = [rows.subset(second).clipped_sum(np.zeros((D, 1)), slopes, 1.0) for rows in (first, whole)]
    np.testing.assert_array_equal(*asked)
    assert np.abs(asked[0]).max() <= 25
