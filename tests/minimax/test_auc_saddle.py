"""The area under the ROC curve as a saddle problem: its algebra, its preparation, and the check of problems of one's own."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from seeded import source

from skdp.losses import Logistic
from skdp.minimax import AUCSaddle, Batch, Factors, SaddleProblem, check_saddle, products
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import LabelSum, Moments
from skdp.privacy.schedule import Schedule
from skdp.scorers import LinearScorer, MLPScorer
from skdp.solvers.minimax._auc_problem import LABELS_PART, AUCProblem

RATES = (0.02, 0.3, 0.5, 0.9)
SCORERS = {
    "linear": LinearScorer(4),
    "network": MLPScorer(4, (6, 3)),
    "standardised": LinearScorer(4, np.ones(4), 2 * np.ones(4)),
}
every_scorer = pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)


def paper(scores, y, a, b, alpha, p):
    """The function of Ying, Wen, Lyu 2016, Theorem 1, record by record."""
    positive, negative = y == 1, y == 0
    return (
        (1 - p) * (scores - a) ** 2 * positive
        + p * (scores - b) ** 2 * negative
        + 2 * (1 + alpha) * (p * scores * negative - (1 - p) * scores * positive)
        - p * (1 - p) * alpha**2
    )


def made(rng, scorer, m=60):
    X, y = rng.normal(size=(m, 4)), rng.integers(0, 2, m).astype(np.int8)
    primal = np.append(scorer.start(rng), [0.0, 0.0]) + 0.5 * rng.normal(size=scorer.n_parameters + 2)
    return X, y, primal, rng.normal(size=1)


@every_scorer
@pytest.mark.parametrize("p", RATES)
def test_value_is_the_papers_over_the_larger_rate(scorer, p, rng):
    X, y, primal, dual = made(rng, scorer)
    saddle = AUCSaddle(scorer, p)
    batch = saddle.read(Batch(X, y))
    scores = scorer.at(scorer.read(X), primal[:-2]).scores
    expected = paper(scores, y, *primal[-2:], dual[0], p) / max(p, 1 - p)
    np.testing.assert_allclose(saddle.value(batch, primal, dual) - min(p, 1 - p) * dual**2, expected, rtol=1e-12, atol=1e-12)


@every_scorer
@pytest.mark.parametrize("p", RATES)
def test_gradients_are_those_of_the_papers_function(scorer, p, rng):
    """In a, b and alpha by differences, in the scorer's parameters by the chain rule; the public part included."""
    X, y, primal, dual = made(rng, scorer)
    saddle, step = AUCSaddle(scorer, p), 1e-5
    point = saddle.at(saddle.read(Batch(X, y)), primal, dual)
    scored = scorer.at(scorer.read(X), primal[:-2])

    def slope(**moved):
        def at(way):
            given = {"scores": scored.scores, "a": primal[-2], "b": primal[-1], "alpha": dual[0]}
            return paper(y=y, p=p, **{name: value + way * step * moved.get(name, 0.0) for name, value in given.items()})

        return (at(1) - at(-1)) / (2 * step * max(p, 1 - p))

    *layers, sides = point.primal()
    np.testing.assert_allclose(sides.left * sides.right, np.stack([slope(a=1.0), slope(b=1.0)], axis=1), rtol=1e-6, atol=1e-8)
    for found, expected in zip(layers, scored.gradients(slope(scores=1.0)), strict=True):
        np.testing.assert_allclose(found.left, expected.left, rtol=1e-6, atol=1e-7)
    (part,) = point.dual()
    public = saddle.public_gradient(primal, dual)
    np.testing.assert_allclose(
        part.left[:, 0] * part.right[:, 0] + saddle.divisor * public[1], slope(alpha=1.0), rtol=1e-6, atol=1e-8
    )
    assert not public[0].any() and public[0].shape == primal.shape


@pytest.mark.parametrize("p", RATES)
def test_without_a_b_and_alpha_the_spread_within_and_between_classes_is_left(p, rng):
    """The class means of the scores are the best a and b, and alpha is their difference: p (1 - p) times what the paper says."""
    n = 1000
    y = (np.arange(n) < round(p * n)).astype(np.int8)
    scores = rng.normal(size=n) + 0.3 * y
    positive, negative = scores[y == 1], scores[y == 0]
    saddle = AUCSaddle(LinearScorer(1), p)
    primal, dual = np.array([1.0, positive.mean(), negative.mean()]), np.array([negative.mean() - positive.mean()])
    batch = saddle.read(Batch(scores[:, None], y))
    point = saddle.at(batch, primal, dual)
    assert np.abs(point.primal()[-1].total(np.ones(n))).max() <= 1e-9
    assert point.dual()[0].total(np.ones(n)) / (n * saddle.divisor) + saddle.public_gradient(primal, dual)[1] == pytest.approx(0)
    value = saddle.value(batch, primal, dual).mean() - min(p, 1 - p) * dual[0] ** 2
    left = positive.var() + negative.var() + (1 - positive.mean() + negative.mean()) ** 2 - 1
    assert value * max(p, 1 - p) == pytest.approx(p * (1 - p) * left)


def test_project_keeps_a_b_and_alpha_in_their_ranges(rng):
    saddle = AUCSaddle(LinearScorer(2), 0.5)
    primal, dual = saddle.project(np.array([9.0, -9.0, 8.0, -2.0]), np.array([-5.0]))
    assert primal.tolist() == [9.0, -9.0, 3.0, -2.0] and dual.tolist() == [-1.0]


def test_clip_norms_and_steps_follow_the_geometry():
    """Numbers of the public defaults."""
    saddle = AUCSaddle(LinearScorer(20), 0.1, usual=8.0)
    assert (saddle.primal_clip_norm, saddle.dual_clip_norm, saddle.divisor) == pytest.approx((3.0, 1.0, 0.2))
    assert saddle.step_sizes(math.inf, 100) == (0.3, 0.3)
    assert saddle.step_sizes(1000.0, 100)[0] == pytest.approx(0.6 * 0.2 * 1000 / (8 * 100))
    assert AUCSaddle(LinearScorer(301), 0.1).noise == 0.3
    network = AUCSaddle(MLPScorer(20, (5,)), 0.1)
    assert network.primal_clip_norm == 3.0
    assert network.step_sizes(100.0, 100)[0] == pytest.approx(math.sqrt(2 / 20) * 0.2 * 100 / (3 * 100))


def problem_of(hidden=(), epsilon=1.0, scaling=1.0, rate=None, adjacency="zero_out"):
    return AUCProblem(
        500,
        4,
        Logistic(),
        Budget(epsilon, 1e-6, adjacency),
        2.0,
        scaling,
        hidden_layer_sizes=hidden,
        positive_rate=rate,
    )


def table(rng, n=500):
    y = (rng.random(n) < 0.25).astype(np.int8)
    return rng.normal(size=(n, 4)) * [0.1, 0.2, 0.3, 0.4] + 0.3 * y[:, None] + 0.2, y


def prepared(problem, X, y, share=0.1, standardize=None, seed=0):
    schedule = Schedule(problem.preparation(share, standardize))
    scale = calibrate(schedule, problem.budget) if problem.budget.private else 0.0
    rows = TrainingData(X, y, data_norm=2.0, intercept_scaling=problem.intercept_scaling)
    oracle = Oracle(rows, schedule, problem.budget, scale, source(seed))
    saddle = problem.prepared(oracle.ask, share, standardize)
    oracle.finish()
    return saddle


@pytest.mark.parametrize("hidden", ((), (3,)))
@pytest.mark.parametrize("standardize", (None, True, False))
@pytest.mark.parametrize("rate", (None, 0.25))
def test_preparation_releases_what_is_not_public_and_no_more(hidden, standardize, rate):
    """The rate has a fifth of the share, the moments have the rest."""
    entries = problem_of(hidden, rate=rate).preparation(0.1, standardize)
    moved = not hidden if standardize is None else standardize
    assert [release.query for _, release in entries] == [LabelSum] * (rate is None) + [Moments] * moved
    shares = {release.query: release.mechanism.weight**-2 for _, release in entries}
    for query, part in ((LabelSum, LABELS_PART), (Moments, 1 - LABELS_PART)):
        assert shares.get(query, part * 0.1) == pytest.approx(part * 0.1)


@pytest.mark.parametrize("epsilon", (math.inf, 1.0))
@pytest.mark.parametrize("hidden", ((), (3,)))
@pytest.mark.parametrize("standardize", (None, True, False))
def test_the_problem_follows_from_the_releases(epsilon, hidden, standardize, rng):
    X, y = table(rng)
    saddle = prepared(problem_of(hidden, epsilon), X, y, standardize=standardize)
    off = abs(saddle.positive_rate - y.mean())
    assert off <= 1e-12 if epsilon == math.inf else 1e-9 < off < 0.2
    moved = not hidden if standardize is None else standardize
    assert (saddle.scorer.centre is not None) == moved
    if moved and epsilon == math.inf:
        np.testing.assert_allclose(saddle.scorer.centre, X.mean(axis=0), rtol=1e-9)
    if moved and not hidden:
        assert 0.1 <= saddle.usual <= 4.0 and saddle.primal_clip_norm == pytest.approx(math.sqrt(1 + saddle.usual))


@pytest.mark.parametrize("label", (0, 1))
@pytest.mark.parametrize("epsilon", (math.inf, 0.05))
def test_a_released_rate_stays_inside_of_zero_and_one(label, epsilon, rng):
    X, y = rng.normal(size=(500, 4)), np.full(500, label, dtype=np.int8)
    for seed in range(5):
        assert 1 / 500 <= prepared(problem_of(epsilon=epsilon), X, y, seed=seed).positive_rate <= 1 - 1 / 500


def test_a_public_rate_is_taken_and_labels_are_not_asked(rng):
    X, y = table(rng)
    assert prepared(problem_of(rate=0.4), X, y).positive_rate == 0.4
    assert problem_of((3,), rate=0.4).preparation(0.1, None) == ()
    assert problem_of((3,), rate=0.4).prepared(None, 0.1, None).positive_rate == 0.4


@pytest.mark.parametrize("hidden", ((), (3,), (5, 2)))
@pytest.mark.parametrize("standardize", (True, False))
@pytest.mark.parametrize("scaling", (1.0, 2.5))
def test_the_model_has_the_scores_above_the_middle_of_a_and_b(hidden, standardize, scaling, rng):
    """On rows as they are, with the intercept in the units of ``unpack``."""
    X, y = table(rng)
    problem = problem_of(hidden, math.inf, scaling)
    saddle = prepared(problem, X, y, standardize=standardize)
    primal = np.append(saddle.scorer.start(rng), [0.8, -0.4]) + 0.1 * rng.normal(size=saddle.n_primal)
    model = problem.model(saddle, primal, np.zeros(1))
    assert model.shape == problem.shape
    if hidden:
        scores = problem.scorer().at(X, model[:, 0]).scores
    else:
        coef, intercept = problem.unpack(model)
        scores = X @ coef[0] + intercept[0]
    wanted = saddle.scorer.at(saddle.scorer.read(X), primal[:-2]).scores - primal[-2:].mean()
    np.testing.assert_allclose(scores, wanted, rtol=1e-6, atol=1e-6)


def test_rows_at_the_data_norm_have_entries_of_size_one_for_a_network(rng):
    """Of the root mean square; public, and sparse tables stay so."""
    X, y = table(rng)
    saddle = prepared(problem_of((3,)), X, y)
    row = np.full((1, 4), 1.0)  # its norm is 2
    np.testing.assert_allclose(saddle.scorer.read(row), 1.0)
    assert sparse.issparse(saddle.scorer.read(sparse.csr_array(row)))
    assert prepared(replace(problem_of((3,)), data_norm=1.0), X, y).scorer.scale.tolist() == [2.0] * 4


def test_what_it_offers():
    assert problem_of((3,)).offers == {"saddle"}
    assert {"saddle", "ranking", "binary", "classes", "convex", "plain"} <= problem_of().offers
    assert "pointwise" not in problem_of().offers


class Logit(SaddleProblem):
    """A problem of one's own, with faults to choose from."""

    n_dual = 2

    def __init__(self, fault=None):
        self.n_primal, self.fault = 6, fault
        if fault == "divisor":
            self.divisor = 0.0

    def start(self, rng):
        return np.zeros(7 if self.fault == "start" else 6), np.zeros(2)

    def project(self, primal, dual):
        return primal, dual + 1 if self.fault == "project" else dual

    def public_gradient(self, primal, dual):
        return np.zeros(6), np.zeros(1 if self.fault == "public" else 2)

    def step_sizes(self, signal, n_steps):
        return 0.1, -0.1 if self.fault == "steps" else 0.1

    def _scores(self, batch, primal):
        weights = primal.reshape(6, 1)
        return (batch.rows @ weights if self.fault == "place" else products(batch.rows, weights))[:, 0]

    def value(self, batch, primal, dual):
        scores = self._scores(batch, primal)
        values = np.maximum(scores, 0) ** 2 * (1 + dual[0]) + dual[1] * scores
        return values.mean() if self.fault == "value" else values

    def at(self, batch, primal, dual):
        self.batch, self.point = batch, (primal, dual)
        return self

    def primal(self):
        scores, dual = self._scores(self.batch, self.point[0]), self.point[1]
        left = 2 * np.maximum(scores, 0) * (1 + dual[0]) + dual[1]
        if self.fault == "mean":
            left = left - 1e-9 * left.mean()
        if self.fault == "slope":
            left = 1.1 * left
        if self.fault == "nan":
            left[3:4] = np.nan
        if self.fault == "float32":
            left = left.astype(np.float32)
        rows = self.batch.rows.tocoo() if self.fault == "coo" else self.batch.rows
        return [Factors(left[:-1, None] if self.fault == "rows" else left[:, None], rows, float(self.fault == "size"))]

    def dual(self):
        scores = self._scores(self.batch, self.point[0])
        left = np.stack([np.maximum(scores, 0) ** 2, scores], axis=1)
        return [Factors(left[:, ::-1].copy() if self.fault == "order" else left, np.ones((len(scores), 1)))]


FAULTS = {
    "start": r"start returned an array of float64 of shape \(7,\); expected a pair of finite arrays",
    "project": "project moves what it has projected",
    "public": r"public_gradient returned an array of float64 of shape \(1,\)",
    "steps": "step of the ascent=-0.1",
    "divisor": r"divisor=0\.0",
    "place": "from that record alone",
    "mean": "from that record alone",
    "slope": "primal gradient differs from finite differences",
    "order": "dual gradient differs from finite differences",
    "float32": "is float32 of shape",
    "nan": "The primal gradient of 1 of 100 records is NaN or infinite",
    "value": r"value gives the shape \(\); expected one number per record, \(100,\)",
    "rows": "one row per record",
    "size": "has 7 entries; expected n_primal=6",
}


@pytest.mark.slow
def test_the_check_passes_what_is_right(rng):
    """Dense and sparse; also the package's own problems."""
    X, y = rng.normal(size=(100, 6)), np.arange(100) % 2
    for table in (X, sparse.csr_array(X)):
        check_saddle(Logit(), table, y)
        for scorer in (LinearScorer(6), LinearScorer(6, np.ones(6)), MLPScorer(6, ()), MLPScorer(6, (9, 4))):
            check_saddle(AUCSaddle(scorer, 0.2), table, y)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds_what_is_wrong(fault, rng):
    with pytest.raises(ValueError, match=FAULTS[fault]):
        check_saddle(Logit(fault), rng.normal(size=(100, 6)), np.arange(100) % 2)


@pytest.mark.slow
def test_the_check_takes_what_a_fit_takes(rng):
    """A data frame, whose columns lie together, whole numbers, lists, no targets."""
    X, y = rng.integers(-2, 3, size=(40, 6)), np.arange(40) % 2
    for table in (pd.DataFrame(X), np.asfortranarray(rng.normal(size=(40, 6))), X.tolist(), sparse.csc_array(X)):
        for targets in (y, y.tolist(), None):
            check_saddle(Logit(), table, targets)


def test_rounding_by_place_shows_with_few_columns():
    """With three, BLAS rounds few rows alone in another way than among others; 20 tables, of which not one may pass."""

    class Narrow(Logit):
        def __init__(self):
            super().__init__("place")
            self.n_primal = 3

        def start(self, rng):
            return np.zeros(3), np.zeros(2)

        def public_gradient(self, primal, dual):
            return np.zeros(3), np.zeros(2)

        def _scores(self, batch, primal):
            return batch.rows @ primal

    for seed in range(20):
        with pytest.raises(ValueError, match="from that record alone"):
            check_saddle(Narrow(), np.random.default_rng(seed).normal(size=(100, 3)), random_state=seed)


def test_the_check_wants_problems_arrays_and_rows(rng):
    for problem, message in ((Logit, r"expected an object that it makes, such as Logit\(...\)"), (3, "expected a SaddleProblem")):
        with pytest.raises(TypeError, match=message):
            check_saddle(problem, rng.normal(size=(9, 6)))
    with pytest.raises(TypeError, match="coo_array; expected an array, or CSR"):
        check_saddle(Logit("coo"), sparse.csr_array(rng.normal(size=(9, 6))), np.arange(9) % 2)
    for X, y in ((np.ones((1, 6)), np.ones(1)), (np.ones(6), np.ones(6)), (np.ones((6, 6)), np.ones(5))):
        with pytest.raises(ValueError, match="at least two rows, and a target for each"):
            check_saddle(Logit(), X, y)
