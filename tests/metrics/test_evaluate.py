"""Private evaluation of classifiers: releases, metrics from noisy counts, intervals, and what is refused."""

import math
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from made_scores import Scores, records
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skdp import DPLogisticRegression, PrivacyLedger
from skdp._label_types import classes_of
from skdp.metrics import Evaluation, _score_kinds, dp_scorer, evaluate, plan_evaluation
from skdp.metrics._metrics import CLASSIFICATION
from skdp.metrics._noisy_table import NoisyTable
from skdp.metrics._reading import scores_of
from skdp.metrics._windows import FIRST, OUTSIDE, SECOND, even_cuts, window
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.errors import BudgetExceededError
from skdp.privacy.queries import ScoreTree, tree
from skdp.testing import reproducible_noise

EVERY = tuple(CLASSIFICATION)


@pytest.mark.parametrize("persons", (None, np.arange(2000) // 2), ids=("records", "persons"))
def test_the_report_states_the_noise_of_the_mean_loss_in_its_unit(persons):
    found = evaluate(Scores(), *records(2000), metrics=["log_loss"], noise="gaussian", persons=persons)
    assert float(found.privacy_report.noise_size.split()[0]) == pytest.approx(found.table.noise, rel=0.01)
    assert ("(replace_one, persons)" in str(found)) == (persons is not None)


def exact(X, y, factor=1.0):
    """Metrics of scikit-learn."""
    p, labels = expit(np.clip(factor * X[:, 0], -6, 6)), y == "yes"
    return {
        "accuracy": accuracy_score(labels, p > 0.5),
        "roc_auc": roc_auc_score(labels, X[:, 0]),
        "log_loss": log_loss(labels, p),
        "brier_score": brier_score_loss(labels, p),
        "recall": recall_score(labels, p > 0.5),
        "specificity": recall_score(~labels, p <= 0.5),
        "precision": precision_score(labels, p > 0.5),
        "average_precision": average_precision_score(labels, X[:, 0]),
    }


def fitted(n=2000, seed=0, **given):
    with reproducible_noise(seed):
        return evaluate(Scores(), *records(n), **given)


@pytest.mark.parametrize("factor", (1.0, 0.2))
@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_the_metrics_are_those_of_scikit_learn(factor):
    X, y = records(20_000)
    found = evaluate(Scores(factor), X, y, metrics=EVERY, epsilon=math.inf)
    for name, value in exact(X, y, factor).items():
        tolerance = 1e-9 if name in ("accuracy", "recall", "specificity", "precision") else 2e-3
        assert found[name].value == pytest.approx(value, abs=tolerance), name
        assert found[name].low < value < found[name].high


@pytest.mark.parametrize("size", (2, 8, 64))
def test_the_tree_is_made_of_differences_of_halves(size, rng):
    matrix, counts = tree(size), rng.integers(0, 9, size)
    answer = matrix @ counts
    assert answer[0] == counts.sum() and answer[1] == counts[: size // 2].sum() - counts[size // 2 :].sum()
    np.testing.assert_allclose(np.linalg.inv(matrix) @ answer, counts)
    np.testing.assert_allclose((matrix**2).sum(axis=0), 1 + math.log2(size))


@pytest.mark.parametrize("size", (4, FIRST, SECOND))
def test_no_record_moves_a_release_further_than_the_sensitivity(size):
    query = ScoreTree(None, even_cuts(size))
    cells = np.concatenate([np.linspace(-6, 6, 97), [1e-9, -1e-9]])
    found = []
    for label in (0, 1):
        for z in cells:
            found.append(query.evaluate(ScoredRecords(np.array([z]), np.array([label]))))
    found = np.array(found)
    norms = np.linalg.norm(found, axis=1)
    assert norms.max() == pytest.approx(query.sensitivity("zero_out")) and norms.min() == pytest.approx(norms.max())
    apart = np.linalg.norm(found[:, None] - found[None], axis=2).max()
    assert apart == pytest.approx(query.sensitivity("replace_one"), rel=1e-12)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_plan_is_the_report_and_the_noise_is_as_stated(adjacency):
    given = {"epsilon": 0.5, "adjacency": adjacency, "noise": "gaussian"}
    planned, report = plan_evaluation(2000, **given), fitted(**given).privacy_report
    assert [str(line) for line in planned.releases] == [str(line) for line in report.releases]
    assert 0.4999 < report.spent.epsilon == planned.spent.epsilon <= 0.5
    X, y = records(2000)
    exactly = ScoreTree(None, even_cuts(FIRST), 1).evaluate(ScoredRecords(np.clip(X[:, 0], -6, 6), (y == "yes").astype(int)))
    line = report.releases[0]
    seen = []
    for seed in range(30):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(_score_kinds, "window", lambda answer, *facts: (seen.append(answer), window(answer, *facts))[1])
            fitted(seed=seed, **given)
    first = np.array(seen) - exactly
    assert first.std() == pytest.approx(line.noise_multiplier * math.sqrt(7), rel=0.05)


@pytest.mark.slow
def test_the_unbiased_table_has_the_stated_covariance(rng):
    counts, n = rng.integers(0, 200, (2, 8)).astype(float), 0
    n, matrix = int(counts.sum()), tree(8)
    found = []
    for _ in range(4000):
        answer = (counts @ matrix.T + 5.0 * rng.normal(size=(2, 8))).ravel()
        table = NoisyTable.from_coefficients(answer, matrix, 5.0, np.linspace(-6, 6, 9), n)
        assert table.counts.sum() == pytest.approx(n)
        found.append(table.counts.ravel())
    assert abs(table.covariance.sum()) < 1e-9 * np.trace(table.covariance)  # the number of records is known
    np.testing.assert_allclose(np.mean(found, axis=0), counts.ravel(), atol=0.3)
    np.testing.assert_allclose(np.cov(np.transpose(found)), table.covariance, atol=0.08 * table.covariance.max())


@pytest.mark.exhaustive
@pytest.mark.parametrize("rate, factor", ((0.5, 1.0), (0.5, 0.2), (0.1, 1.0)))
def test_intervals_cover_noise_and_sampling(rate, factor):
    truth = exact(*records(400_000, rate, seed=10**6), factor)
    covered = {name: 0 for name in EVERY}
    repeats = 60
    for seed in range(repeats):
        X, y = records(2000, rate, seed=seed)
        with reproducible_noise(seed):
            found = evaluate(Scores(factor), X, y, metrics=EVERY, epsilon=1.0, adjacency="zero_out")
        for name in EVERY:
            covered[name] += found[name].low <= truth[name] <= found[name].high
    assert min(covered.values()) >= 51  # 57 on average; 50 or fewer in one of a thousand


def test_windows_hold_the_scores_and_have_an_edge_at_0(rng):
    for centre, spread in ((0.0, 1.0), (-4.0, 0.1), (5.9, 0.05), (2.0, 3.0)):
        z = np.clip(rng.normal(centre, spread, 10_000), -6, 6)
        query = ScoreTree(None, even_cuts(FIRST), 1)
        cuts = np.array(window(query.evaluate(ScoredRecords(z, np.zeros(10_000, dtype=int))), tree(FIRST), 1.0, 10_000))
        assert len(cuts) == SECOND - 1 and (np.diff(cuts) > 0).all() and 1 in cuts
        inside = (cuts - 1) / 50
        assert np.mean((z > inside[OUTSIDE - 1]) & (z < inside[-OUTSIDE])) > 0.5 or abs(centre) > 5
    assert -300 < cuts[0] and cuts[-1] < 301


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_recall_and_precision_are_those_of_the_event():
    """Which is the second of two stated classes, and is searched for in pipelines and searches."""
    X, y = records(20_000)
    expected = exact(X, y)
    model = Scores()
    assert classes_of(model) == tuple(model.classes_) == ("no", "yes")
    model.event_ = "no"
    search = SimpleNamespace(best_estimator_=make_pipeline("passthrough", model), classes_=model.classes_)
    search.predict_proba = model.predict_proba
    for given in (model, search):
        found = evaluate(given, X, y, metrics=EVERY, epsilon=math.inf)
        assert found.classes == ("yes", "no")
        for name, other in (("recall", "specificity"), ("specificity", "recall"), ("accuracy", "accuracy")):
            assert found[name].value == pytest.approx(expected[other], abs=1e-9)
        assert found["roc_auc"].value == pytest.approx(expected["roc_auc"], abs=2e-3)
        assert found["precision"].value == pytest.approx(precision_score(y == "no", X[:, 0] < 0), abs=1e-9)


def test_few_records_have_no_value():
    found = fitted(n=60, epsilon=0.1, metrics=EVERY)
    assert math.isnan(found["roc_auc"].value) and (found["roc_auc"].low, found["roc_auc"].high) == (0.0, 1.0)
    assert "roc_auc      not determined, [0.000, 1.000]: more test records" in str(found)


def test_a_ledger_pays_once_and_a_report_says_what_was_stated(tmp_path):
    with PrivacyLedger(epsilon=1.0, delta=1e-4) as ledger:
        found = fitted(epsilon=0.4, metrics=EVERY, disjoint=True)
        assert len(ledger.entries) == 1
        with pytest.raises(BudgetExceededError):
            fitted(epsilon=5.0)
        assert len(ledger.entries) == 1
    assert "other people than the training records, as the caller stated" in str(found.privacy_report)
    assert "the budget adds to that of the fit" in str(fitted().privacy_report)
    assert "privacy of the test records, for one call of evaluate" in evaluate(Scores(), *records(200)).privacy_report.guarantee


def test_a_result_is_a_mapping_that_can_be_pickled():
    found = pickle.loads(pickle.dumps(fitted(metrics="accuracy")))
    assert isinstance(found, Evaluation) and list(found) == ["accuracy"] and len(found) == 1
    assert found.to_dict()["accuracy"]["low"] == found["accuracy"].low
    assert "accuracy" in found._repr_html_()


@pytest.mark.parametrize(
    "changes, message",
    (
        ({"metrics": ["f1"]}, "expected some of accuracy"),
        ({"metrics": []}, "expected some of accuracy"),
        ({"level": 1.0}, "expected a number from 0.5"),
        ({"level": 1 - 2**-53}, "expected a number from 0.5"),  # which failed after the charge: a quantile is infinite
        ({"disjoint": "yes"}, "expected True or False"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0, "noise": "gaussian"}, "delta=0"),
        ({"noise": "none"}, "expected one of auto, laplace, gaussian"),
        ({"adjacency": "add"}, "adjacency"),
    ),
)
def test_wrong_parameters_are_refused_before_anything_is_paid(changes, message):
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises((TypeError, ValueError), match=message):
            evaluate(Scores(), *records(200), **changes)
        assert not ledger.entries


def test_wrong_records_are_refused_without_quoting_them():
    X, y = records(200)
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises(ValueError, match=r"does not know; expected \['no', 'yes'\] only") as caught:
            evaluate(Scores(), X, np.where(np.arange(200) == 7, "secret", y))
        assert "secret" not in str(caught.value)
        with pytest.raises(ValueError, match="differ in length"):
            evaluate(Scores(), X[:-1], y)
        with pytest.raises(ValueError, match="fewer than 50"):
            evaluate(Scores(), X[:20], y[:20])
        for model in (LogisticRegression(), object()):
            with pytest.raises(TypeError, match="predict_proba for two classes"):
                evaluate(model, X, y)
        assert not ledger.entries


def test_errors_of_the_model_quote_no_record():
    X, y = records(200)

    class Quoting(Scores):
        def predict_proba(self, X):
            raise ValueError(f"could not convert {X[3, 0]!r}")

    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises(ValueError) as caught:
            evaluate(Quoting(), X, y)
        assert repr(X[3, 0]) not in str(caught.value) and caught.value.__cause__ is None
        assert not ledger.entries


HOSTILE = 77.0  # marks a record for which a model fails


def failing(kind):
    """A model that fails for one record."""

    class Failing(Scores):
        calls = 0

        def predict_proba(self, X):
            Failing.calls += 1
            X = X.toarray() if sparse.issparse(X) else np.asarray(X)
            values = X[:, 0]
            hostile = values == HOSTILE
            if hostile.any() and isinstance(kind, type):
                raise kind(f"secret {values}")
            warnings.warn(f"secret {values}", RuntimeWarning, stacklevel=2)
            found = super().predict_proba(X)
            found[hostile] = kind if hostile.any() and kind is not None else 0.0
            return found if kind is not None else found[~hostile]

    return Failing()


FAILURES = ((np.nan, 0.5), (np.inf, 1.0), (-np.inf, 0.0), (1e308, 1.0), (ValueError, 0.5), (SystemExit, 0.5), (None, 0.5))


@pytest.mark.each_value
@pytest.mark.parametrize("table", (np.asarray, pd.DataFrame, pl.DataFrame, sparse.csr_array, sparse.coo_array, list))
@pytest.mark.parametrize("kind, stands_for", FAILURES, ids=str)
def test_a_record_without_prediction_counts_as_undecided(kind, stands_for, table):
    """It decides about its own log-odds alone, and nothing is printed or warned: neighbours have the same outcome."""
    X, y = records(300)
    other = np.array(X)
    other[123] = HOSTILE
    log_odds, labels = scores_of(Scores(), X, y)
    model = failing(kind)
    with np.errstate(all="raise"):
        found, numbers = scores_of(model, table(other) if table is not list else other.tolist(), y)
    others = np.arange(300) != 123
    np.testing.assert_array_equal(found[others], log_odds[others])
    np.testing.assert_array_equal(numbers, labels)
    assert found[123] == {0.5: 0.0, 1.0: 6.0, 0.0: -6.0}[stands_for] and model.calls <= 25
    with reproducible_noise(0), PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        assert math.isfinite(evaluate(model, other, y, metrics="accuracy")["accuracy"].value)
        assert len(ledger.entries) == 1


def test_a_valid_record_whose_margin_overflows_is_no_error_of_an_evaluation():
    """It would be an error before the charge, by which anybody could look for the record for nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, 4)), np.arange(200) % 2
    model = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X, y)
    X[7] = [1.7e308, -1.7e308, 1.7e308, -1.7e308]
    model.coef_ = np.ones((1, 4))  # products of the record overflow on both sides
    assert 0 <= evaluate(model, X, y, metrics=["accuracy"])["accuracy"].value <= 1
    assert 0 <= dp_scorer("roc_auc", epsilon=1.0)(model, X, y) <= 1


def test_all_records_without_prediction_are_undecided():
    X, y = records(100)
    model = failing(ZeroDivisionError)
    np.testing.assert_array_equal(scores_of(model, np.full_like(X, HOSTILE), y)[0], np.zeros(100))


class Product(Scores):
    """A model of many columns that raises for one record; sums of columns round as their storage tells."""

    error: "type[BaseException]" = ValueError

    def predict_proba(self, X):
        if (X == HOSTILE).any():
            raise self.error("secret")
        p = expit(X @ np.linspace(-0.3, 0.7, X.shape[1]))
        return np.column_stack([1 - p, p])


def test_a_record_without_prediction_moves_no_last_bit_of_others(rng):
    X = rng.normal(size=(1001, 37))
    y, other = np.where(X[:, 0] > 0, "yes", "no"), X.copy()
    other[123, 5] = HOSTILE
    for stored in (np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]):
        found, expected = (scores_of(Product(), stored(table), y)[0] for table in (other, X))
        np.testing.assert_array_equal(np.delete(found, 123), np.delete(expected, 123))


def test_a_record_for_which_a_model_lacks_memory_is_undecided_alone():
    X, y = records(300)
    other, model = X.copy(), Product()
    model.error, other[123] = MemoryError, HOSTILE
    found, expected = (scores_of(model, table, y)[0] for table in (other, X))
    np.testing.assert_array_equal(np.delete(found, 123), np.delete(expected, 123))
    assert found[123] == 0


def test_a_record_with_another_number_of_probabilities_is_undecided_alone():
    X, y = records(300)
    other = X.copy()
    other[123] = HOSTILE

    class Ragged(Scores):
        def predict_proba(self, X):
            return [row if x != HOSTILE else [*row, 0.0] for x, row in zip(X[:, 0], super().predict_proba(X), strict=True)]

    found, expected = (scores_of(Ragged(), table, y)[0] for table in (other, X))
    np.testing.assert_array_equal(np.delete(found, 123), np.delete(expected, 123))


def test_no_record_decides_whether_lengths_differ():
    X, y = records(300)
    for table in (X, np.where(np.arange(300)[:, None] == 123, HOSTILE, X)):
        with pytest.raises(ValueError, match="differ in length"):
            scores_of(Product(), table, y[:-1])


def test_missing_values_that_a_model_takes_are_no_reason_to_refuse_another_record():
    """The model takes gaps in the first column, and none elsewhere; whether it is refused does not hang on its failures."""
    X, y = np.column_stack([records(300)[0], np.ones(300)]), records(300)[1]
    X[7, 0] = np.nan

    class Filling(Scores):
        def predict_proba(self, X):
            if (X == HOSTILE).any() or np.isnan(X[:, 1]).any():
                raise ValueError("secret")
            return super().predict_proba(np.nan_to_num(X[:, :1]))

    other = X.copy()
    other[123, 1] = HOSTILE
    found, expected = (scores_of(Filling(), table, y)[0] for table in (other, X))
    np.testing.assert_array_equal(np.delete(found, 123), np.delete(expected, 123))
    other[8, 1] = np.nan
    with pytest.raises(ValueError, match="missing or infinite values: 0, 1"):
        scores_of(Filling(), other, y)


def test_a_model_that_no_record_fits_is_refused_by_public_facts():
    """Neither what the records are nor whether any of them could be predicted for decides."""
    X, y = records(200)
    frame = pd.DataFrame(X, columns=["a"])
    fitted = LogisticRegression().fit(X, y)
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises(ValueError, match="2 columns; the model expects 1"):
            evaluate(fitted, np.column_stack([X, X]), y)
        with pytest.raises(ValueError, match=r"lacks the columns \['a'\]"):
            evaluate(LogisticRegression().fit(frame, y), frame.rename(columns={"a": "b"}), y)
        gap = X.copy()
        gap[5] = np.nan
        with pytest.raises(ValueError, match="Columns with missing or infinite values: 0"):  # the model takes none
            evaluate(fitted, gap, y)
        assert not ledger.entries
    positive = make_pipeline(FunctionTransformer(np.log, validate=True), LogisticRegression()).fit(np.exp(X), y)
    gap = np.exp(X)
    gap[5] = 0.0  # its logarithm is not finite
    log_odds, expected = (scores_of(positive, table, y)[0] for table in (gap, np.exp(X)))
    np.testing.assert_array_equal(np.delete(log_odds, 5), np.delete(expected, 5))
    assert log_odds[5] == 0.0


def test_a_model_of_codes_takes_no_made_up_number_and_is_evaluated(rng):
    X = np.column_stack([rng.choice([2001.0, 2002.0], 300), rng.choice([10.0, 20.0], 300)])
    y = X[:, 0] > 2001
    encoder = OneHotEncoder(categories=[[2001.0, 2002.0], [10.0, 20.0]])
    model = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    expected = scores_of(model, X, y)[0]
    X[123] = 3.0  # no category: an error of the encoder
    found = scores_of(model, X, y)[0]
    np.testing.assert_array_equal(np.delete(found, 123), np.delete(expected, 123))
    assert found[123] == 0


@pytest.mark.parametrize("names", (EVERY, ("log_loss",), ("accuracy",), ("recall", "precision")))
def test_other_records_with_the_same_answers_leave_the_same_result(names, monkeypatch):
    answers = []
    from skdp.privacy.oracle import Oracle

    ask = Oracle.ask

    def kept(oracle, query):
        answers.append(ask(oracle, query))
        return answers[-1]

    monkeypatch.setattr(Oracle, "ask", kept)
    with reproducible_noise(0):
        first = evaluate(Scores(), *records(500), metrics=names)
    replay = iter(list(answers))
    monkeypatch.setattr(Oracle, "ask", lambda oracle, query: (ask(oracle, query), next(replay))[1])
    with reproducible_noise(1):
        second = evaluate(Scores(), *records(500, 0.1, seed=9), metrics=names)
    for one, other in zip(vars(first.table).values(), vars(second.table).values(), strict=True):
        assert np.array_equal(one, other)
    assert {name: str(one) for name, one in first.items()} == {name: str(one) for name, one in second.items()}
