"""What boosting asks of binned records: its definition, and its sensitivities searched for over hostile neighbours."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from seeded import source

from skdp.losses import Logistic, Multinomial, Squared
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.binned_records import BinnedRecords, leaves
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BinCounts, LeafSums, ResidualSum, TreeWeight, leaf_sums
from skdp.privacy.schedule import Gaussian, Release, Schedule

SIZES, DEPTH, H, C = (4, 3, 5), 3, 3.0, 0.5
COLUMNS = np.array([0, 2, 2])
SPLITS = np.array([[False, True, True, True, True], [True, False, True, False, False], [False, False, False, True, True]])
HOSTILE = np.array(
    [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, 1e-300, -1e-45, 3e38, -3e38, 100.0, -100.0, 0.3, -2.0]
)
LOSSES = {"two": Logistic(), "three": Multinomial(3), "numbers": Squared()}
QUERIES = {f"leaf sums, {name}": LeafSums(loss, COLUMNS, SPLITS, C) for name, loss in LOSSES.items()}
QUERIES |= {f"weight, {name}": TreeWeight(loss, H) for name, loss in LOSSES.items()} | {"counts": BinCounts(SIZES)}
QUERIES |= {f"residuals, {name}": ResidualSum(loss, 0.7, C) for name, loss in LOSSES.items()}
every_adjacency = pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))


def loss_of(query):
    return getattr(query, "loss", LOSSES["two"])


def records(query, bins, targets, base, trees):
    """Records whose scores have been added to; arrays have a row per record."""
    k = loss_of(query).n_outputs
    targets = np.asarray(targets, dtype=np.float64 if loss_of(query).targets == "numbers" else np.intp)
    with np.errstate(all="ignore"):
        base, trees = (np.asarray(scores, dtype=np.float64).reshape(-1, k).T.astype(np.float32) for scores in (base, trees))
        table = BinnedRecords(np.asarray(bins, dtype=np.uint8).T, targets, base, None, BLOCK)
        table._trees, table._scores = trees, base + trees
    return table


def some(query, n, rng, hostile=True):
    """Records of any bins, with targets and scores that are often hostile."""
    loss = loss_of(query)
    bins = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1)
    scores = [rng.choice(HOSTILE, (n, loss.n_outputs)) if hostile else rng.normal(size=(n, loss.n_outputs)) for _ in range(2)]
    if loss.targets == "classes":
        return bins, rng.integers(0, max(2, loss.n_outputs), n), *scores
    return bins, rng.choice(HOSTILE, n) if hostile else rng.normal(size=n), *scores


def worst(query):
    """Records in one leaf, and one in another, with residuals beyond the clip norm in opposite directions."""
    loss = loss_of(query)
    if loss.targets == "numbers":
        pairs = [(1e9, [0.0], [10.0]), (-1e9, [0.0], [10.0])]
    elif loss.n_outputs == 1:
        pairs = [(1, [-100.0], [10.0]), (0, [100.0], [10.0])]
    else:
        pairs = [(0, [0.0, 200.0, 0.0], [10.0, -10.0, 0.0]), (1, [200.0, 0.0, 0.0], [10.0, -10.0, 0.0])]
    for (target, base, trees), bins in product(pairs, ([0, 0, 0], [1, 2, 4])):
        yield np.array([bins]), np.array([target]), np.array([base]), np.array([trees])


def furthest(query, adjacency, rng):
    """The furthest that a record of many moves the answer, by the table with all records shared but the last one."""
    shared = some(query, 4, rng)
    candidates = [*(some(query, 1, rng) for _ in range(250)), *worst(query)]
    answers = []
    with np.errstate(all="ignore"):
        for record in candidates:
            table = records(query, *map(np.concatenate, zip(shared, record, strict=True)))
            answers.append((query.evaluate(table), query.evaluate(table.without(np.array([4])))))
    here, without = (np.array(list(side)) for side in zip(*answers, strict=True))
    assert np.isfinite(here).all() and (without == without[0]).all()
    there = here if adjacency == "replace_one" else without[:1]
    return max(float(np.linalg.norm(here - one, axis=1).max()) for one in there)


def unclipped(residuals, inverse_norms, clip_norm):
    return np.nan_to_num(residuals, posinf=1e9, neginf=-1e9) * inverse_norms[:, None]


def slopes(self, base, trees, records):
    residuals = -self.loss.derivative(base, records.targets)
    found = np.nan_to_num(np.einsum("ij,ij->i", trees, residuals), posinf=1e9, neginf=-1e9) * records.inverse_norms
    return np.stack([found, found], axis=1)


def in_two_leaves(self, columns, splits, kernel):
    once = honest_sums(self, columns, splits, kernel)
    return once + once.reshape(-1, 1 << len(columns))[:, np.arange(1 << len(columns)) ^ 1].ravel()


def in_two_bins(self, sizes):
    return honest_counts(self, sizes) + honest_counts(self, sizes)[::-1]


honest_sums, honest_counts = BinnedRecords.leaf_sums, BinnedRecords.counts
TWINS = {
    "not clipped": (leaf_sums, "clip_residuals", unclipped),
    "slopes": (TreeWeight, "_slopes", slopes),
    "in two leaves": (BinnedRecords, "leaf_sums", in_two_leaves),
    "in two bins": (BinnedRecords, "counts", in_two_bins),
}


@every_adjacency
@pytest.mark.parametrize(
    "name, twin",
    [
        *((f"leaf sums, {loss}", twin) for loss in LOSSES for twin in ("not clipped", "in two leaves")),
        *((f"weight, {loss}", "slopes") for loss in LOSSES),
        *((f"residuals, {loss}", "not clipped") for loss in LOSSES),
        ("counts", "in two bins"),
    ],
)
def test_the_search_finds_broken_twins(name, twin, adjacency, rng, monkeypatch):
    monkeypatch.setattr(*TWINS[twin])
    with np.errstate(all="ignore"):
        assert not furthest(QUERIES[name], adjacency, rng) <= QUERIES[name].sensitivity(adjacency) * 1.1


def test_the_weight_is_where_the_slope_is_zero(rng):
    """For squares the line through both slopes is exact, so that it finds the best weight."""
    query = TreeWeight(Squared(), H)
    bins, _, base, trees = some(query, 500, rng, hostile=False)
    trees = 0.3 * np.clip(trees, -1, 1)
    targets = np.clip((base + 0.6 * trees)[:, 0], -1, 1)
    at_none, at_all = query.evaluate(records(query, bins, targets, np.clip(base, -0.5, 0.5), trees))
    base = np.clip(base, -0.5, 0.5).astype(np.float32)[:, 0]
    h = trees.astype(np.float32)[:, 0]
    best = np.sum(h * (targets - base)) / np.sum(h * h)
    assert at_none / (at_none - at_all) == pytest.approx(best, rel=1e-5)


def oracle(query, budget, clip_norm):
    release = Release(type(query), Gaussian(), clip_norm, query.size)
    schedule = Schedule(((1, release),))
    bins = np.zeros((len(SIZES), 9), dtype=np.uint8)
    scores = np.zeros((loss_of(query).n_outputs, 9), dtype=np.float32)
    table = BinnedRecords(bins, np.zeros(9, dtype=int), scores, None, BLOCK).without(np.arange(9))
    scale = calibrate(schedule, budget)
    return Oracle(table, schedule, budget, scale, source()), scale


@every_adjacency
@pytest.mark.parametrize("loss", ("two", "three"))
def test_the_noise_is_that_of_the_sensitivity(loss, adjacency, rng):
    """1024 leaves without records: the standard deviation is within a sixth with a false-alarm rate below 1e-10."""
    budget = Budget(1.0, 1e-6, adjacency)
    query = LeafSums(LOSSES[loss], rng.integers(0, 3, 10), np.ones((10, 5), dtype=bool), C)
    gate, scale = oracle(query, budget, C)
    assert np.std(gate.ask(query)) == pytest.approx(scale * query.sensitivity(adjacency), rel=1 / 6)


def test_the_gate_refuses_another_clip_norm_than_the_schedule_states():
    query, budget = QUERIES["leaf sums, two"], Budget(1.0, 1e-6, "zero_out")
    for wrong in (replace(query, clip_norm=1.0), replace(query, clip_norm=math.nan), replace(query, clip_norm=math.inf)):
        with pytest.raises(PrivacyAccountingError, match="clip norm"):
            oracle(query, budget, C)[0].ask(wrong)


def test_leaves_of_the_search_are_those_of_the_tree():
    """The two places of the worst records are in different leaves, so that the search has seen both cases of the proof."""
    assert leaves(np.array([[0, 1], [0, 2], [0, 4]], dtype=np.uint8), COLUMNS, SPLITS).tolist() == [2, 5]
