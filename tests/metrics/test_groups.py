"""Private evaluation by group: one release for all groups, metrics of each, and what is refused."""

import math

import numpy as np
import pytest
from made_scores import Scores, records
from sklearn.metrics import confusion_matrix

from skdp import PrivacyLedger
from skdp.metrics import ConfusionMatrixDisplay, RocCurveDisplay, evaluate, plan_evaluation
from skdp.metrics._metrics import CLASSIFICATION
from skdp.metrics._noisy_table import NoisyTable
from skdp.metrics._windows import even_cuts
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.queries import ScoreTree, tree
from skdp.testing import reproducible_noise

EVERY, NAMES = tuple(CLASSIFICATION), ("a", "b", "c")


def grouped(n=6000, seed=0):
    X, y = records(n, seed=seed)
    return X, y, np.random.default_rng(10**7 + seed).choice(NAMES, size=n, p=[0.2, 0.3, 0.5])


def found(n=6000, seed=0, **given):
    X, y, groups = grouped(n, seed)
    with reproducible_noise(seed):
        return evaluate(Scores(), X, y, groups=groups, group_labels=NAMES, metrics=EVERY, **given)


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_a_group_has_the_metrics_of_its_records():
    X, y, groups = grouped()
    evaluation = found(epsilon=math.inf)
    assert tuple(evaluation.groups) == NAMES
    for name in NAMES:
        of_group, alone = (
            evaluation.groups[name],
            evaluate(Scores(), X[groups == name], y[groups == name], metrics=EVERY, epsilon=math.inf),
        )
        for metric in EVERY:  # windows differ
            assert of_group[metric].value == pytest.approx(alone[metric].value, abs=2e-3), metric
            assert of_group[metric].low == pytest.approx(alone[metric].low, abs=6e-3), metric
        display = ConfusionMatrixDisplay.from_evaluation(of_group)
        expected = confusion_matrix(y[groups == name], np.where(X[groups == name, 0] >= 0, "yes", "no"))
        np.testing.assert_allclose(display.confusion_matrix, expected, rtol=1e-9)
    assert evaluation["accuracy"].value == pytest.approx(np.mean((X[:, 0] >= 0) == (y == "yes")), abs=1e-9)


@pytest.mark.parametrize("n_groups", (1, 3))
def test_no_record_moves_the_tree_of_groups_further_than_the_sensitivity(n_groups):
    query = ScoreTree(None, even_cuts(8), n_groups=n_groups)
    answers = []
    for group, label in np.ndindex(3, 2):
        for z in np.linspace(-6, 6, 25):
            answers.append(query.evaluate(ScoredRecords(np.array([z]), np.array([label]), np.array([group]))))
    answers = np.array(answers)
    assert answers.shape[1] == query.size == 16 * n_groups
    assert np.linalg.norm(answers, axis=1).max() == pytest.approx(query.sensitivity("zero_out"))
    apart = np.linalg.norm(answers[:, None] - answers[None], axis=2).max()
    assert apart == pytest.approx(query.sensitivity("replace_one"), rel=1e-12)


@pytest.mark.slow
def test_tables_of_groups_have_the_stated_covariance(rng):
    counts, matrix, seen = rng.integers(50, 200, (3, 2, 4)).astype(float), tree(4), []
    for _ in range(6000):
        answer = (counts @ matrix.T + 5.0 * rng.normal(size=counts.shape)).ravel()
        table = NoisyTable.from_coefficients(answer, matrix, 5.0, np.linspace(-6, 6, 5), int(counts.sum()), 3)
        assert table.counts.sum() == pytest.approx(counts.sum())
        seen.append([table.counts.ravel(), *(part.counts.ravel() for part in table.parts)])
    for k, stated in enumerate((table, *table.parts)):
        values = np.array([row[k] for row in seen])
        np.testing.assert_allclose(values.mean(axis=0), (counts.sum(axis=0) if k == 0 else counts[k - 1]).ravel(), atol=0.4)
        np.testing.assert_allclose(np.cov(values.T), stated.covariance, atol=0.08 * stated.covariance.max())


@pytest.mark.slow
def test_intervals_of_groups_cover_noise_and_sampling():
    truth = evaluate_exactly()
    covered, repeats = dict.fromkeys(EVERY, 0), 40
    for seed in range(repeats):
        group = found(seed=seed, epsilon=1.0, adjacency="zero_out").groups["b"]
        for name in EVERY:
            covered[name] += group[name].low <= truth[name] <= group[name].high
    assert min(covered.values()) >= 32  # 38 on average; 31 or fewer in one of a thousand


def evaluate_exactly():
    from skdp.privacy import NotPrivateWarning

    with pytest.warns(NotPrivateWarning):
        exact = evaluate(Scores(), *records(400_000, seed=10**6), metrics=EVERY, epsilon=math.inf)
    return {name: metric.value for name, metric in exact.items()}


def test_groups_cost_nothing_more():
    with PrivacyLedger(epsilon=1.0, delta=1e-4) as ledger:
        report = found(epsilon=0.8).privacy_report
        assert len(ledger.entries) == 1
    planned = plan_evaluation(6000, metrics=EVERY, epsilon=0.8, n_groups=3, noise="gaussian")
    assert [str(line) for line in planned.releases] == [str(line) for line in report.releases]
    alone = plan_evaluation(6000, epsilon=0.8, noise="gaussian")
    assert planned.spent == alone.spent
    assert [line.noise_multiplier for line in planned.releases] == [line.noise_multiplier for line in alone.releases]
    assert any("one of the 3 groups that were named" in line for line in report.assumptions)


def test_an_empty_group_is_not_determined_and_a_display_takes_a_group():
    X, y, _ = grouped()
    with reproducible_noise(0):
        evaluation = evaluate(Scores(), X, y, groups=np.full(6000, "a"), group_labels=NAMES, metrics=EVERY, epsilon=1.0)
    assert all(math.isnan(metric.value) for metric in evaluation.groups["b"].values())
    assert "group b: accuracy     not determined" in str(evaluation)
    display = RocCurveDisplay.from_evaluation(evaluation.groups["a"])
    assert display.roc_auc[0] == evaluation.groups["a"]["roc_auc"].value


@pytest.mark.parametrize(
    "changes, message",
    (
        ({"group_labels": None}, "expected both groups="),
        ({"groups": None}, "expected both groups="),
        ({"group_labels": ("a", "b")}, "expected those only"),
        ({"group_labels": ("a", "b", "c", "a")}, "different ones"),
        ({"group_labels": ()}, "expected from 1"),
        ({"groups": np.full(99, "a")}, "differ in length"),
        ({"groups": np.array(["secret"] * 200)}, "expected those only"),
    ),
)
def test_wrong_groups_are_refused_before_anything_is_paid(changes, message):
    X, y, groups = grouped(200)
    with PrivacyLedger(epsilon=10.0, delta=1e-3) as ledger:
        with pytest.raises(ValueError, match=message) as caught:
            evaluate(Scores(), X, y, **{"groups": groups, "group_labels": NAMES, **changes})
        assert not ledger.entries and "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="expected an integer from 0"):
        plan_evaluation(200, n_groups=-1)
