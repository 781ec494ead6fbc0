"""What an adversary makes of a chosen vertex: the log-likelihood ratio, exactly."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax
from seeded import source

from skdp import DPConstrainedClassifier
from skdp.audit._attack import Adversary, Knowledge, planned
from skdp.audit._canary import least_direction, make_canaries
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Vertex, Vertices
from skdp.solvers import FrankWolfe

X, Y = np.random.default_rng(0).normal(size=(12, 3)) / 10, np.arange(12) % 2


def setting(adjacency, alpha=0.5):
    model = DPConstrainedClassifier(4.0, delta=1e-5, adjacency=adjacency, solver=FrankWolfe(2), alpha=alpha, data_norm=2.0)
    plan = planned(model, X, Y)
    canaries = make_canaries(model, plan.problem, X, Y, least_direction)
    codes = np.searchsorted([0, 1], canaries.y)
    present = TrainingData(canaries.X, codes, **plan.row_bounds)
    other = codes.copy()
    other[0] = canaries.codes[1]
    absent = present.without(np.array([0])) if canaries.null else TrainingData(canaries.X, other, **plan.row_bounds)
    return plan, canaries, present, absent


def query_of(plan, rng):
    coef, offset = rng.normal(size=(2, 3, 1))
    return Vertex(plan.problem.loss, coef, plan.problem.clip_norm, Vertices(plan.problem.constraint.vertices(3)), 12 * offset)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_score_of_a_choice_is_its_log_likelihood_ratio(adjacency, rng):
    plan, canaries, present, absent = setting(adjacency)
    noise = plan.scale * query_of(plan, rng).sensitivity(adjacency)
    total, expected = Adversary(plan, canaries, Knowledge.of(canaries, present, plan.row_bounds)), 0.0
    for chosen in (1, 4, 5):  # one more than was stated
        query = query_of(plan, rng)
        total.see(query, np.array([chosen]))
        ratio = softmax(query.evaluate(present) / noise) / softmax(query.evaluate(absent) / noise)
        expected += math.log(ratio[chosen])
        assert 0.05 < np.abs(np.log(ratio)).max() <= 2 / plan.scale
        assert total.scores("transcript", np.zeros((3, 1))) == pytest.approx([expected], rel=1e-9)


def test_a_clip_norm_of_zero_says_nothing():
    plan, canaries, present, _ = setting("zero_out")
    query = SimpleNamespace(sensitivity=lambda adjacency: 0.0)
    adversary = Adversary(plan, canaries, Knowledge.of(canaries, present, plan.row_bounds))
    assert adversary._by_choice(query, 0, plan.schedule.entries[0][1].mechanism, adversary._knowledge).tolist() == [0.0]


@pytest.mark.slow  # the ratio itself is above; audits of solvers that choose attack with it
def test_the_mean_score_of_the_right_table_is_larger(rng):
    """The mean of a log-likelihood ratio is positive with the canary, negative without: 400 runs of 2 choices."""
    plan, canaries, present, absent = setting("replace_one", alpha=0.0)
    known, means = Knowledge.of(canaries, present, plan.row_bounds), []
    for table in (absent, present):
        scores = []
        for seed in range(400):
            adversary = Adversary(plan, canaries, known)
            oracle = Oracle(table, plan.schedule, plan.problem.budget, plan.scale, source(seed))
            query = query_of(plan, np.random.default_rng(7))
            for _ in range(2):
                adversary.see(query, oracle.ask(query))
            scores.append(float(adversary.scores("transcript", np.zeros((3, 1)))[0]))
        means.append(np.mean(scores) / (np.std(scores) / 20))
    assert means[0] < -5 and means[1] > 5
