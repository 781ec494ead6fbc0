"""Tests rows mapped by earlier releases: the answers of later queries, and what the oracle refuses."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest
from seeded import source

from skdp.losses import Logistic, Multinomial
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.noise.gaussian import MAX_FEATURES
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient, HatSums, Moments, SecondMoment, Standardization
from skdp.privacy.schedule import Curve, Gaussian, PoissonGaussian, Release, Schedule, Selection

STORAGES = {"C": np.ascontiguousarray, "csr": sparse.csr_array, "csc": sparse.csc_matrix}
R, FINE, COARSE = 1.2, 7, 3
NULL = np.array([0, 3])
every_storage = pytest.mark.parametrize("storage", STORAGES)
FREE = Budget(math.inf, 1e-6, "zero_out")


def table(rng, n=50):
    return rng.normal(size=(n, FINE)) * (rng.random((n, FINE)) < 0.7), np.arange(n) % 2


def coarse(rng):
    return sparse.csr_array(rng.normal(size=(FINE, COARSE)) * (rng.random((FINE, COARSE)) < 0.8))


def oracle_of(rows, *queries, budget=FREE, **more):
    schedule = Schedule(tuple((1, Release(type(query), Gaussian())) for query in queries))
    return Oracle(rows, schedule, budget, calibrate(schedule, budget), source(), **more)


def questions(rng):
    return [
        *(Gradient(loss, rng.normal(size=(COARSE + 1, loss.n_outputs)), 0.4) for loss in (Logistic(), Multinomial(3))),
        Moments(R, COARSE),
        SecondMoment(Standardization(np.zeros(COARSE), np.full(COARSE, 0.6), True, R)),
        HatSums(np.array([0, 2])),
    ]


@every_storage
@pytest.mark.parametrize("null", (False, True))
def test_queries_are_about_the_mapped_rows(storage, null, rng):
    """Clipped anew: rows that were longer than the norm are mapped as they were given."""
    (X, y), matrix = table(rng), coarse(rng)
    bounds = {"data_norm": R, "intercept_scaling": 0.7, "class_weight": np.array([1.0, 0.3]), "by_row": True}
    rows, expected = TrainingData(STORAGES[storage](X), y, **bounds), TrainingData(np.asarray(X @ matrix), y, **bounds)
    if null:
        rows, expected = rows.without(NULL), expected.without(NULL)
    assert (np.linalg.norm(X @ matrix, axis=1) > R).any() and (np.linalg.norm(X @ matrix, axis=1) < R).any()
    asked = questions(rng)
    oracle = oracle_of(rows, Moments(R, FINE), *asked)
    np.testing.assert_array_equal(oracle.ask(Moments(R, FINE)), Moments(R, FINE).evaluate(rows))
    oracle.map_rows(matrix)
    for query in asked:
        np.testing.assert_allclose(oracle.ask(query), query.evaluate(expected), rtol=1e-12, atol=1e-14)
    oracle.finish()
    np.testing.assert_array_equal(
        rows.moments(), TrainingData(STORAGES[storage](X), y, **bounds).without(NULL[: 2 * null]).moments()
    )


def test_rows_can_be_mapped_again_and_samples_are_of_mapped_rows(rng):
    (X, y), first, second = table(rng), coarse(rng), sparse.csc_array(rng.normal(size=(COARSE, 2)))
    rows = TrainingData(sparse.csr_array(X), y, data_norm=R, intercept_scaling=1.0)
    twice, drawn = rows.mapped(first).mapped(second), np.array([1, 5, 30])
    np.testing.assert_allclose(twice.moments(), rows.mapped(first @ second).moments(), rtol=1e-12)
    query = Gradient(Logistic(), rng.normal(size=(COARSE + 1, 1)), 0.4)
    one = query.evaluate(rows.mapped(first).subset(drawn))
    np.testing.assert_array_equal(query.evaluate(rows.subset(drawn).mapped(first)), one)
    np.testing.assert_allclose(
        one, query.evaluate(TrainingData((X @ first)[drawn], y[drawn], data_norm=R, intercept_scaling=1.0))
    )


def in_disorder(rows, rng):
    """The same CSR with the entries of every row in a random order."""
    places = np.concatenate([rng.permutation(np.arange(*ends)) for ends in zip(rows.indptr, rows.indptr[1:], strict=False)])
    return sparse.csr_array((rows.data[places], rows.indices[places], rows.indptr), shape=rows.shape)


@pytest.mark.parametrize("shuffled", ("none", "others", "all"))
def test_a_mapped_row_is_the_same_whatever_the_others_are(shuffled, rng):
    """Equal to the last bit for every order of stored entries: flags of the whole table must not set the order of sums."""
    X, matrix = sparse.csr_array(rng.normal(size=(60, 300))), sparse.csr_array(rng.normal(size=(300, 40)))
    whole = in_disorder(X, rng) if shuffled == "all" else X
    if shuffled == "others":
        whole = sparse.csr_array(sparse.vstack([X[:30], in_disorder(X[30:], rng)]))
    mapped = TrainingData(whole, np.zeros(60), data_norm=R).mapped(matrix)._blocks.table
    for place in (0, 29, 59):
        alone = TrainingData(X[[place]], np.zeros(1), data_norm=R).mapped(matrix)._blocks.table
        assert alone.indices.tolist() == mapped[[place]].indices.tolist()
        np.testing.assert_array_equal(alone.data, mapped[[place]].data)
    assert mapped.has_sorted_indices and not np.shares_memory(whole.data, mapped.data)


@pytest.mark.parametrize("size", (1e-300, 1e150, 1e300))
def test_no_mapped_row_moves_a_gradient_further_than_its_clip_norm(size, rng):
    """Rows that overflow, or are undefined, by a finite matrix add finite numbers, and change no other row."""
    X = np.concatenate([size * rng.normal(size=(20, FINE)), 1e300 * np.eye(FINE), rng.normal(size=(1, FINE))])
    matrix = sparse.csr_array(np.array([[1e150, -1e150, 1.0], [1e308, 1e308, -1e308]] * FINE)[:FINE] * min(1.0, 1 / size))
    query = Gradient(Logistic(), np.full((COARSE + 1, 1), 3.0), 0.4)
    for row in X:
        with np.errstate(all="ignore"):
            rows = TrainingData(sparse.csr_array(row[None]), np.array([1]), data_norm=R, intercept_scaling=1.0).mapped(matrix)
            moved = query.evaluate(rows)
        assert np.isfinite(moved).all() and np.linalg.norm(moved) <= 0.4 * (1 + 1e-9)


def test_matrices_that_are_not_finite_or_do_not_fit_are_refused_and_nothing_changes(rng):
    (X, y), query = table(rng), Moments(R, FINE)
    rows = TrainingData(sparse.csr_array(X), y, data_norm=R)
    oracle = oracle_of(rows, query)
    good = coarse(rng).toarray()
    for wrong in (good[1:], good[:, :0], good.T, sparse.csr_array((FINE, MAX_FEATURES + 1)), good + 1j, good > 0):
        with pytest.raises(PrivacyAccountingError, match="Rows are mapped by"):
            oracle.map_rows(sparse.csr_array(wrong))
    for bad in (math.nan, math.inf, -math.inf):
        for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_array, sparse.dok_array, sparse.dia_array):
            with pytest.raises(PrivacyAccountingError, match="finite"):
                oracle.map_rows(form(np.where(np.arange(COARSE) == 1, bad, good)))
    with pytest.raises(PrivacyAccountingError, match="sparse matrix"):
        oracle.map_rows(good)
    np.testing.assert_array_equal(oracle.ask(query), query.evaluate(rows))


def test_rows_are_not_mapped_while_a_query_is_answered(rng):
    """A query is trusted, but must not change the rows while it is answered."""
    seen = []

    class Mapping(Moments):
        def evaluate(self, rows):
            for _ in range(2):
                with pytest.raises(PrivacyAccountingError, match="between two releases") as error:
                    oracle.map_rows(sparse.eye_array(FINE, format="csr"))
                seen.append(error)
            return super().evaluate(rows)

    X, y = table(rng)
    oracle = oracle_of(TrainingData(X, y, data_norm=R), Mapping(R, FINE))
    oracle.ask(Mapping(R, FINE))
    assert len(seen) == 2
    oracle.map_rows(sparse.eye_array(FINE, format="csr"))


@pytest.mark.parametrize("kind, shown", ((MemoryError, MemoryError), (ValueError, PrivacyAccountingError)))
def test_a_failing_map_quotes_nothing(kind, shown, rng, monkeypatch):
    def failing(self, matrix):
        raise kind(f"no room for {X[3, 3]}")

    X, y = table(rng)
    monkeypatch.setattr(TrainingData, "mapped", failing)
    with pytest.raises(shown, match="The map of rows") as caught:
        oracle_of(TrainingData(X, y, data_norm=R)).map_rows(coarse(rng))
    assert str(X[3, 3]) not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("share", (0.02, 0.5))
def test_a_release_in_front_takes_its_share_of_the_squared_parameter(adjacency, share):
    budget = Budget(0.7, 1e-6, adjacency)
    lines = ((1, Release(Moments, Gaussian(3.3), 1.0)), (40, Release(Gradient, Gaussian(7.0), 1.0)))
    front = Release(HatSums, Gaussian(), 1.0, 10)
    alone, together = Schedule(lines), Schedule(lines).preceded_by(front, share)
    scale, before = calibrate(together, budget), calibrate(alone, budget)
    assert together.entries[1:] == alone.entries and len(together) == 42 and together.by_row
    assert spent_epsilon(together, scale, budget) == pytest.approx(0.7, rel=1e-9)
    mu = [release.query.relative_sensitivity[adjacency] / noise_multiplier(release, scale, adjacency) for release in together]
    assert mu[0] ** 2 / sum(np.square(mu)) == pytest.approx(share)
    assert scale == pytest.approx(before / math.sqrt(1 - share))


def test_only_gaussian_releases_of_all_records_have_a_share():
    front = Release(HatSums, Gaussian(), 1.0, 10)
    for mechanism in (PoissonGaussian(0.1), Selection(), Curve("some")):
        schedule = Schedule(((1, Release(Gradient, mechanism, 1.0)),))
        assert not schedule.full_gaussian
        with pytest.raises(PrivacyAccountingError, match="Gaussian releases"):
            schedule.preceded_by(front, 0.1)
    plain = Schedule(((1, front),))
    assert plain.full_gaussian
    with pytest.raises(PrivacyAccountingError, match="Gaussian releases"):
        plain.preceded_by(Release(HatSums, PoissonGaussian(0.1), 1.0), 0.1)


SPENT = Budget(1.0, 1e-5, "zero_out")


def choices(with_record, exact, runs):
    """Of many fits on a table of one record, or none: which of two matrices came first, and the log-likelihood ratio of all.

    The matrix follows from noisy sums, or in the twin from exact ones. Either maps the record to a unit vector, whose gradient
    has the clip norm, so that nothing weakens an attack.
    """
    matrices = [sparse.csr_array(np.eye(2)), sparse.csr_array(np.eye(2)[::-1])]
    rows, present = TrainingData(np.array([[1.0, 0.0]]), np.array([1]), data_norm=1.0), np.array([1.0, 0.0])
    table = rows if with_record else rows.without(np.array([0]))
    first, second = HatSums(np.array([0, 1])), Gradient(Logistic(), np.zeros((2, 1)), 0.5)
    schedule = Schedule(((1, Release(Gradient, Gaussian(), 0.5)),)).preceded_by(Release(HatSums, Gaussian(), 1.0, 2), 0.3)
    scale, noise = calibrate(schedule, SPENT), source(int(with_record))
    deviations = [noise_multiplier(line, scale, "zero_out") * bound for line, bound in zip(schedule, (1.0, 0.5), strict=True)]
    chosen, ratios = np.zeros((2, runs))
    for run in range(runs):
        oracle = Oracle(table, schedule, SPENT, scale, noise)
        sums = oracle.ask(first)
        chosen[run] = (first.evaluate(table) if exact else sums)[0] > 0.5
        oracle.map_rows(matrices[int(chosen[run])])
        shares = [present, second.evaluate(rows.mapped(matrices[int(chosen[run])]))]
        for answer, share, deviation in zip((sums, oracle.ask(second)), shares, deviations, strict=True):
            ratios[run] += (answer @ share - share @ share / 2) / deviation**2
        oracle.finish()
    return chosen, ratios


@pytest.mark.slow  # the test below is the same attack with fewer runs
def test_an_attack_on_sums_and_on_mapped_rows_together_has_what_was_spent_and_no_more():
    """The ratio is normal with mean mu^2 / 2 and variance mu^2 where the whole budget is mu; false alarms below 1e-5."""
    mu = gaussian_mu(SPENT.epsilon, SPENT.delta)
    for with_record, sign in ((True, 1), (False, -1)):
        _, ratios = choices(with_record, exact=False, runs=1500)
        assert kstest((ratios - sign * mu**2 / 2) / mu, "norm").pvalue > 1e-6
        for wrong in (0.7, 1.4):
            assert kstest((ratios - sign * mu**2 / 2) / (wrong * mu), "norm").pvalue < 1e-6


@pytest.mark.slow
def test_a_matrix_from_exact_sums_gives_a_record_away():
    """The broken twin: a matrix from exact sums reveals the record; one from noisy sums reveals little."""
    leaky, honest = ([choices(with_record, exact, 200)[0].mean() for with_record in (True, False)] for exact in (True, False))
    assert leaky == [1, 0]
    assert (
        honest[0] <= math.exp(SPENT.epsilon) * honest[1] + SPENT.delta and 1 - honest[1] <= math.exp(1) * (1 - honest[0]) + 1e-5
    )
