"""Canaries, neighbouring tables, and scores: the worst record, the exact likelihood ratio, nothing else changed."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from scipy.stats import norm
from seeded import fitted

from skdp import DPLinearRegression, DPLogisticRegression, DPRobustRegressor
from skdp.audit._attack import VIEWS, Attack, Recorder, planned
from skdp.audit._canary import least_direction, make_canaries, random_directions
from skdp.privacy.data.training_data import TrainingData
from skdp.solvers import SGD, GradientDescent, Solver

ADJACENCIES = ("replace_one", "zero_out")
ABSENT, PRESENT = np.array([0]), np.array([], dtype=int)
X, Y = np.random.default_rng(0).normal(size=(30, 3)), np.repeat(["a", "b", "c"], (16, 10, 4))


def estimator(adjacency="replace_one", solver=None, **params):
    return DPLogisticRegression(4.0, delta=1e-5, adjacency=adjacency, solver=solver or GradientDescent(3), **params)


def canaries_of(model, X, y):
    return make_canaries(model, planned(model, X, y).problem, X, y, least_direction)


def in_table(canaries, absent):
    """First record of the table, as the oracle sees it."""
    return canaries.X[0], canaries.labels(absent)[0]


@pytest.mark.parametrize(
    "storage", (np.asarray, sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array), ids=lambda s: s.__name__
)
def test_the_canary_is_as_long_as_allowed_where_the_others_are_short(storage):
    table = X * [1.0, 0.01, 1.0]
    canaries = canaries_of(estimator(data_norm=2.5), storage(table), Y)
    np.testing.assert_allclose(np.abs(canaries.rows), [[0, 2.5, 0]], atol=0.05)
    assert np.linalg.norm(canaries.rows) == pytest.approx(2.5)
    dense = canaries.X.toarray() if sparse.issparse(canaries.X) else canaries.X
    np.testing.assert_allclose(dense, np.vstack([canaries.rows, table[1:]]))
    assert getattr(canaries.X, "format", None) == getattr(storage(table), "format", None)


def test_the_canary_has_the_rarest_label_and_its_neighbour_the_most_frequent():
    canaries = canaries_of(estimator("replace_one"), X, Y)
    assert in_table(canaries, PRESENT)[1] == "c"
    assert in_table(canaries, ABSENT)[1] == "a"
    assert canaries.codes == (2, 0)
    np.testing.assert_array_equal(canaries.labels(ABSENT)[1:], Y[1:])


@pytest.mark.parametrize("bounds", (None, (-8.0, 8.0), (0.0, 1.0), (-1.0, 2.0)))
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("loss", ("squared", "huber", "welsch", "tukey", "cauchy"))
def test_the_canary_of_a_regression_has_the_steepest_loss(loss, bounds, fit_intercept, rng):
    """A target far beyond the threshold has none where the loss is not convex."""
    if loss == "squared":
        bounds = bounds or (-4.0, 4.0)
        model = DPLinearRegression(4.0, target_bounds=bounds, fit_intercept=fit_intercept, solver="gd")
    else:
        model = DPRobustRegressor(4.0, loss=loss, threshold=2.0, target_bounds=bounds, fit_intercept=fit_intercept)
    canaries, problem = canaries_of(model, X, np.zeros(30)), planned(model, X, np.zeros(30)).problem
    centre, unit = model._task().units()
    low, high = bounds or (-8.0, 8.0)
    others = (np.append(rng.uniform(low, high, 5000), [low, high]) - centre) / unit
    slopes = problem.loss.derivative(np.zeros((5002, 1)), others)[:, 0]
    found = problem.loss.derivative(np.zeros((2, 1)), np.array(canaries.codes))[:, 0]
    np.testing.assert_allclose(found, [slopes.min(), slopes.max()], rtol=1e-4, atol=1e-12)
    given = np.array([in_table(canaries, which)[1] for which in (PRESENT, ABSENT)])
    np.testing.assert_allclose((given - centre) / unit, canaries.codes, atol=1e-12)
    assert low <= given[1] <= given[0] <= high


def test_a_null_record_replaces_the_canary_under_zero_out():
    canaries = canaries_of(estimator("zero_out"), X, Y)
    assert canaries.null
    np.testing.assert_array_equal(canaries.labels(ABSENT), canaries.labels(PRESENT))


def test_the_user_s_table_stays_as_it_is():
    table, labels = X.copy(), Y.copy()
    canaries_of(estimator(), table, labels)
    np.testing.assert_array_equal(table, X)
    np.testing.assert_array_equal(labels, Y)


def test_neighbours_have_the_same_label_set():
    labels = np.array(["only", *Y[1:]])
    with pytest.raises(ValueError, match="are all records of a class"):
        canaries_of(estimator(), X, labels)
    known = estimator(classes=["a", "b", "c", "only"])
    assert in_table(canaries_of(known, X, labels), PRESENT)[1] == "only"


def test_directions_are_unit_vectors_and_orthogonal_where_they_can_be(rng):
    np.testing.assert_allclose(random_directions(4, 6, rng) @ random_directions(4, 6, rng).T, 0, atol=1)
    few, many = random_directions(4, 6, rng), random_directions(9, 6, rng)
    np.testing.assert_allclose(few @ few.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(many, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(least_direction(np.zeros((5, 6)))), 1)


class Watch(Solver):
    """Keeps what a solver asks and hears."""

    name = title = "watch"

    def __init__(self, solver, heard):
        self.solver, self.heard = solver, heard

    def schedule(self, problem):
        return self.solver.schedule(problem)

    def solve(self, problem, ask, rng):
        def keep(query):
            self.heard.append((query, ask(query)))
            return self.heard[-1][1]

        result = self.solver.solve(problem, keep, rng)
        self.heard.append(result.coef)
        return result


def watched_fit(model, canaries, absent, monkeypatch):
    """Scores of one attacked fit, with its releases and its model."""
    heard = []
    solve = Recorder.solve

    def spy(self, problem, ask, rng):
        self.solver = Watch(self.solver, heard)
        return solve(self, problem, ask, rng)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "solve", spy)
        scores = Attack(model, canaries, VIEWS).scores(absent, 5)[:, 0]
    return scores, heard[:-1], heard[-1]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("absent", (ABSENT, PRESENT), ids=("absent", "present"))
@pytest.mark.parametrize("labels", (Y, Y == "a"), ids=("multinomial", "binary"))
def test_the_transcript_s_score_is_the_log_likelihood_ratio(adjacency, absent, labels, monkeypatch):
    """By normal densities around the answers that either table gives; with intercept, other records and earlier releases."""
    model = estimator(adjacency)
    plan, canaries = planned(model, X, labels), canaries_of(model, X, labels)
    (score, _), releases, _ = watched_fit(model, canaries, absent, monkeypatch)
    codes = np.unique(labels, return_inverse=True)[1]
    tables = []
    for code in canaries.codes:
        codes[0] = code
        tables.append(TrainingData(canaries.X, codes.copy(), **plan.row_bounds))
    tables[1] = tables[1].without(ABSENT) if canaries.null else tables[1]
    expected = 0.0
    for query, answer in releases:
        noise = plan.scale * query.sensitivity(adjacency)
        densities = [norm.logpdf(answer, query.evaluate(table), noise).sum() for table in tables]
        expected += densities[0] - densities[1]
    assert len(releases) == 3
    assert score == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_sample_s_score_is_that_of_the_mixture(adjacency, monkeypatch):
    """Exact where the other records are zeros."""
    table, labels = np.zeros((30, 2)), np.arange(30) % 2
    model = estimator(adjacency, SGD(3, batch_size=12), fit_intercept=False)
    plan, canaries = planned(model, table, labels), canaries_of(model, table, labels)
    (score, _), releases, _ = watched_fit(model, canaries, PRESENT, monkeypatch)
    expected = 0.0
    for query, answer in releases:
        noise = plan.scale * query.sensitivity(adjacency)
        mixtures = []
        for code in canaries.codes:
            contribution = query.evaluate(TrainingData(canaries.rows, np.array([code]), **plan.row_bounds))
            contribution *= not (canaries.null and code == canaries.codes[1])
            mixtures.append(0.6 * norm.pdf(answer, 0, noise).prod() + 0.4 * norm.pdf(answer, contribution, noise).prod())
        expected += np.log(mixtures[0] / mixtures[1])
    assert score == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_final_score_is_a_difference_of_losses(adjacency, monkeypatch):
    labels = Y == "a"
    model = estimator(adjacency, intercept_scaling=0.5)
    canaries = canaries_of(model, X, labels)
    (_, score), _, coef = watched_fit(model, canaries, PRESENT, monkeypatch)
    raw = np.append(canaries.rows[0], 0.5) @ coef[:, 0]
    loss = {1: -np.log(expit(raw)), 0: -np.log(expit(-raw))}
    other = 0.0 if canaries.null else loss[canaries.codes[1]]
    assert score == pytest.approx(other - loss[canaries.codes[0]], rel=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("absent", (ABSENT, PRESENT), ids=("absent", "present"))
def test_an_attacked_fit_is_the_fit_of_that_table(adjacency, absent, monkeypatch):
    """Same seed, same model: the seam changes nothing, and the canary is out or in as it should be."""
    model = estimator(adjacency)
    canaries = canaries_of(model, X, Y)
    coef = watched_fit(model, canaries, absent, monkeypatch)[2]
    labels = canaries.labels(absent)
    direct = fitted(estimator(adjacency), canaries.X, labels, seed=5)
    same = np.array_equal(coef[:-1].T, direct.coef_)
    assert same == (adjacency == "replace_one" or absent.size == 0)
    assert not np.array_equal(coef, watched_fit(model, canaries, PRESENT if absent.size else ABSENT, monkeypatch)[2])
