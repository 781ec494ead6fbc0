"""The saddle problem of the worst group: its objective, its gradients, and what one record moves, whatever its group."""

import math

import numpy as np
import pytest
from hostile import TABLES
from scipy import sparse
from scipy.optimize import minimize

from skdp.minimax import Batch, GroupDROSaddle, check_saddle
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import ClassCounts, DualGradient, JointGradient, PrimalDifference, PrimalGradient
from skdp.scorers import LinearScorer, MLPScorer

SIZES = (30, 6, 4)
CENTRE, SCALE = np.array([0.3, -0.1, 0.0]), np.array([2.0, 0.5, 30.0])
SCORERS = {
    "linear": LinearScorer(3),
    "standardised": LinearScorer(3, CENTRE, SCALE),
    "network": MLPScorer(3, (5,)),
}
every_scorer = pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
QUERIES = {
    "primal": lambda saddle, here, c: PrimalGradient(saddle, *here[:2], c),
    "dual": lambda saddle, here, c: DualGradient(saddle, *here[:2], c),
    "joint": lambda saddle, here, c: JointGradient(saddle, *here[:2], c, 0.7 * c, 0.3),
    "difference": lambda saddle, here, c: PrimalDifference(saddle, *here, 1e30, 0.0, c),
}
every_query = pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)


def table(rng, spread=1.0):
    """Records of all groups, in any order, with both labels in each, as targets."""
    codes = np.repeat(np.arange(3), SIZES)
    return spread * rng.normal(size=(40, 3)), rng.permutation(2 * codes + np.arange(40) % 2).astype(np.int8)


def behind(X, targets, **more):
    """Labels and groups side by side behind the oracle, as the estimator puts them there."""
    return TrainingData(X, targets % 2, targets // 2, **{"data_norm": 1.7, **more})


def point(rng, saddle, spread=1.0):
    primal = spread * (saddle.start(rng)[0] + rng.normal(size=saddle.n_primal))
    return primal, rng.dirichlet(np.ones(saddle.n_dual))


def losses(saddle, X, targets, primal):
    """Mean logistic loss of every group, from the definition."""
    scores = saddle.scorer.at(saddle.scorer.read(X), primal[:-1]).scores + primal[-1]
    each = np.log1p(np.exp(-np.where(targets % 2 == 1, scores, -scores)))
    return np.array([each[targets // 2 == group].mean() for group in range(saddle.n_dual)])


@every_scorer
def test_the_sum_over_the_divisor_is_the_weighted_mean_of_the_groups_losses(scorer, rng):
    """Less log 2, which weights that add up to 1 turn into a constant."""
    saddle, (X, targets) = GroupDROSaddle(scorer, SIZES), table(rng)
    for _ in range(5):
        primal, dual = point(rng, saddle)
        value = saddle.value(saddle.read(Batch(X, targets)), primal, dual).mean() / saddle.divisor
        assert value == pytest.approx(dual @ losses(saddle, X, targets, primal) - math.log(2), rel=1e-9)


@pytest.mark.each_value
@every_scorer
@pytest.mark.parametrize("store", (np.asarray, sparse.csr_array), ids=("dense", "CSR"))
def test_gradients_are_those_of_the_objective(scorer, store, rng):
    X, targets = table(rng)
    check_saddle(GroupDROSaddle(scorer, SIZES), store(X), targets)
    check_saddle(GroupDROSaddle(scorer, (40,)), store(X), targets % 2)


@pytest.mark.parametrize("scorer", [SCORERS["linear"], SCORERS["standardised"]], ids=("linear", "standardised"))
def test_the_gradient_of_the_mean_is_that_of_the_largest_loss_where_one_group_has_all_weight(scorer, rng):
    """By differences of the groups' losses, both sides together."""
    saddle, (X, targets) = GroupDROSaddle(scorer, SIZES), table(rng)
    primal, dual = point(rng, saddle, 0.5)[0], np.array([0.0, 1.0, 0.0])
    at = saddle.at(saddle.read(Batch(X, targets)), primal, dual)
    total = np.concatenate([part.total(np.ones(40)) for part in at.primal()]) / (40 * saddle.divisor)
    for place in range(saddle.n_primal):
        step = 1e-5 * np.eye(saddle.n_primal)[place]
        slope = (losses(saddle, X, targets, primal + step) - losses(saddle, X, targets, primal - step))[1] / 2e-5
        assert total[place] == pytest.approx(slope, rel=1e-4, abs=1e-6)
    (part,) = at.dual()
    excess = losses(saddle, X, targets, primal) - math.log(2)
    np.testing.assert_allclose(saddle.dual_weights * part.total(np.ones(40)) / (40 * saddle.divisor), excess, rtol=1e-9)


@pytest.mark.each_value
@every_query
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@every_scorer
def test_no_record_of_any_group_moves_a_sum_by_more_than_the_sensitivity(query, adjacency, scorer, rng):
    """The other record is of the same group, with any row and label."""
    saddle = GroupDROSaddle(scorer, SIZES)
    for _ in range(12):
        X, targets = table(rng, 10 ** rng.uniform(-2, 3))
        here = (*point(rng, saddle, 10 ** rng.uniform(-2, 2)), *point(rng, saddle))
        asked = query(saddle, here, 10 ** rng.uniform(-4, 2))
        rows = behind(X, targets)
        for record in (0, *(int(np.flatnonzero(targets // 2 == group)[0]) for group in range(3))):
            other, labels = X.copy(), targets.copy()
            other[record], labels[record] = 10 * rng.normal(size=3), targets[record] ^ 1
            neighbour = rows.without([record]) if adjacency == "zero_out" else behind(other, labels)
            moved = np.linalg.norm(asked.evaluate(rows) - asked.evaluate(neighbour))
            assert moved <= asked.sensitivity(adjacency) * (1 + 1e-9)


@every_query
@pytest.mark.parametrize("group", range(3))
def test_a_record_of_the_smallest_group_attains_it_and_others_come_as_near_as_their_weight(query, group):
    """Weights of the groups at which every record counts as much as the clip norm lets it."""
    saddle = GroupDROSaddle(LinearScorer(3), SIZES)
    alone = np.eye(3)[group]
    far = np.array([50.0, 50.0, 50.0, 0.0])
    here = (far, alone, -far, alone)
    asked = query(saddle, here, 1e-3)
    rows = behind(np.full((1, 3), 1.0), np.array([2 * group], dtype=np.int8), data_norm=9.0)
    moved = np.linalg.norm(asked.evaluate(rows) - asked.evaluate(rows.without([0])))
    assert 0.99 <= moved / asked.sensitivity("zero_out") <= 1 + 1e-9


FINITE = [name for name, X in TABLES.items() if type(X) is np.ndarray and X.dtype == float and X.shape == (24, 3)]
FINITE = [name for name in FINITE if np.isfinite(TABLES[name]).all()]


@pytest.mark.each_value
@pytest.mark.parametrize("name", FINITE)
@every_query
def test_hostile_rows_do_not_exceed_it_either(name, query, rng):
    saddle, targets = GroupDROSaddle(LinearScorer(3, CENTRE, SCALE), (12, 8, 4)), np.repeat([0, 1, 2, 3, 4, 5], 4).astype(np.int8)
    with np.errstate(all="ignore"):
        rows = behind(TABLES[name], targets)
        for spread in (1e-300, 1.0, 1e150, 1e300):
            asked = query(saddle, (*point(rng, saddle, spread), *point(rng, saddle, spread)), 1e-3)
            if not asked.clip_norm > 0 or not all(np.isfinite(part).all() for part in asked.parameters()):
                continue  # the oracle refuses it
            for record in (0, 9, 23):
                moved = asked.evaluate(rows) - asked.evaluate(rows.without(np.array([record])))
                assert np.linalg.norm(moved) <= asked.sensitivity("zero_out") * (1 + 1e-9)


def test_a_null_record_is_left_out_and_the_sizes_stay(rng):
    """Both sides; whatever the row and the label of the null record were."""
    saddle, (X, targets) = GroupDROSaddle(LinearScorer(3), SIZES), table(rng)
    asked = JointGradient(saddle, *point(rng, saddle), 0.5, 0.5, 0.3)
    null, others = np.array([3, 8]), np.delete(np.arange(40), [3, 8])
    values = []
    for change in (0, 1):
        changed, labels = X.copy(), targets.copy()
        changed[null], labels[null] = X[null] + 5 * change, targets[null] ^ change
        values.append(asked.evaluate(behind(changed, labels).without(null)))
    np.testing.assert_array_equal(values[0], values[1])
    kept = asked.evaluate(behind(X[others], targets[others]))  # by the same problem, of the same sizes
    np.testing.assert_allclose(values[0], kept, rtol=1e-12)


@pytest.mark.parametrize("target", (-1.0, 6.0, 2.5, 1e300, -1e300))
def test_a_target_that_is_no_label_of_a_group_is_left_out(target, rng):
    """Of a problem of one's own, whose targets may be any number."""
    saddle, (X, targets) = GroupDROSaddle(LinearScorer(3), SIZES), table(rng)
    asked = JointGradient(saddle, *point(rng, saddle), 0.5, 0.5, 0.3)
    other = targets.astype(np.float64)
    other[7] = target
    expected = asked.evaluate(behind(X, targets).without([7]))
    np.testing.assert_allclose(asked.evaluate(TrainingData(X, other, data_norm=1.7)), expected, rtol=1e-12)
    np.testing.assert_allclose(asked.evaluate(behind(X, other)), expected, rtol=1e-12)


@every_query
@every_scorer
@pytest.mark.parametrize("store", (np.asarray, sparse.csr_array), ids=("dense", "CSR"))
def test_label_and_group_in_one_target_are_the_same_to_the_last_bit(query, scorer, store, rng):
    """As they are for a fit of one's own; also of a sample, without null records, and of mapped rows."""
    saddle, (X, targets) = GroupDROSaddle(scorer, SIZES), table(rng)
    asked = query(saddle, (*point(rng, saddle), *point(rng, saddle)), 0.3)
    views = (
        lambda rows: rows,
        lambda rows: rows.subset(np.arange(0, 40, 3)),
        lambda rows: rows.without([2, 30]).subset(np.arange(0, 40, 2)),
        lambda rows: rows.mapped(sparse.csr_array(np.diag([1.0, 2.0, 3.0]))),
    )
    one, two = TrainingData(store(X), targets.astype(float), data_norm=1.7), behind(store(X), targets)
    for view in views:
        np.testing.assert_array_equal(asked.evaluate(view(one)), asked.evaluate(view(two)))


def test_no_other_query_sees_the_groups(rng):
    """A solver of one's own may ask any; the labels are those of the classes."""
    X, targets = table(rng)
    counts = [ClassCounts(2).evaluate(behind(X, groups + targets % 2)) for groups in (targets - targets % 2, 0 * targets)]
    np.testing.assert_array_equal(counts[0], counts[1])
    np.testing.assert_array_equal(counts[0], np.bincount(targets % 2))


def test_the_reach_is_the_largest_weight_of_a_record(rng):
    """No gradient of a record is longer than it times the norm of its row; at the groups' shares it is the divisor."""
    saddle = GroupDROSaddle(LinearScorer(3), SIZES)
    assert saddle.primal_reach(saddle.start(rng)[1]) == pytest.approx(saddle.divisor) == 0.1
    X, targets = table(rng)
    for _ in range(20):
        primal, dual = point(rng, saddle, 30.0)
        parts = saddle.at(saddle.read(Batch(X, targets)), primal, dual).primal()
        lengths = np.abs(parts[1].left[:, 0]) * np.sqrt(1 + (X**2).sum(axis=1))
        reach = saddle.primal_reach(dual) * np.sqrt(1 + (X**2).sum(axis=1))
        assert (lengths <= reach).all() and (lengths / reach).max() > 0.9
        assert saddle.divisor <= saddle.primal_reach(dual) <= 1


def test_weights_are_projected_onto_the_simplex(rng):
    """The nearest point, by comparison with a solver for quadratic programs; from anywhere, overflow included."""
    saddle = GroupDROSaddle(LinearScorer(2), SIZES)
    primal = rng.normal(size=3)
    for _ in range(20):
        dual = 2 * rng.normal(size=3)
        moved, found = saddle.project(primal, dual)
        assert moved is primal and found.min() >= 0 and found.sum() == pytest.approx(1)
        sums = {"type": "eq", "fun": lambda v: v.sum() - 1}
        best = minimize(lambda v, dual=dual: ((v - dual) ** 2).sum(), np.ones(3) / 3, bounds=[(0, 1)] * 3, constraints=sums)
        np.testing.assert_allclose(found, best.x, atol=1e-5)
    for extreme in ([np.inf, -np.inf, 0.0], [np.inf, np.inf, 1.0], [1e308, -1e308, 0.0], [-np.inf] * 3):
        found = saddle.project(primal, np.array(extreme))[1]
        assert found.min() >= 0 and found.sum() == pytest.approx(1)


def test_clip_norms_and_steps_follow_the_geometry():
    """Numbers of the public defaults."""
    saddle = GroupDROSaddle(LinearScorer(20), (900, 100), usual=9.0)
    assert (saddle.primal_clip_norm, saddle.dual_clip_norm, saddle.divisor) == pytest.approx((3.0, 2.0, 0.1))
    assert saddle.step_sizes(math.inf, 100) == (2.0, 0.3)
    assert saddle.step_sizes(1000.0, 100) == pytest.approx(
        (0.6 * 0.1 * 1000 / (9 * 100), 0.2 * 0.1 * 1000 / (2 * 100 * math.hypot(1, 1 / 9)))
    )
