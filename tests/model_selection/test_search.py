"""Searches under one budget: what is spent, what leaves, what is refused, and that they choose."""

import math
import pickle
import threading
import warnings
from dataclasses import replace
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
import sklearn
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_selection import RFE
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import FixedThresholdClassifier, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    LowSignalWarning,
    OutsideGuaranteeWarning,
    PrivacyAccountingError,
    PrivacyLedger,
    WeakPrivacyWarning,
)
from skdp._persons import persons_of
from skdp.data import chunks
from skdp.metrics._kind import run_evaluation
from skdp.metrics._score_kinds import kind_of_scores
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV, _search
from skdp.preprocessing import LearnedSchema, RowNormClipper
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.ledger import charging
from skdp.privacy.ledger.charging import pay, prepaid
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.solvers import SGD
from skdp.testing import reproducible_noise

pytestmark = pytest.mark.filterwarnings("ignore::skdp.LowSignalWarning")
MODEL = DPLogisticRegression(data_norm=2.0, classes=[0, 1])
GRID = {"alpha": [1e-3, 1e-2, 1e-1]}
BOTH = ("composition", "random_stopping")


def records(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, (2 * X[:, 0] - X[:, 1] + rng.logistic(size=n) / 2 > 0).astype(int)


def fitted(search=None, seed=0, **given):
    with reproducible_noise(seed):
        return (DPGridSearchCV(MODEL, GRID, **given) if search is None else search).fit(*records())


@pytest.fixture
def asked(monkeypatch):
    """Squared Gaussian-DP parameters of what oracles are built for, with the number of their records."""
    found, init = [], Oracle.__init__

    def kept(oracle, rows, schedule, budget, scale, *given):
        found.append(
            (rows.n_samples, sum(count / (release.mechanism.weight * scale) ** 2 for count, release in schedule.entries))
        )
        init(oracle, rows, schedule, budget, scale, *given)

    monkeypatch.setattr(Oracle, "__init__", kept)
    return found


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("refit", (True, False))
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_composition_spends_what_an_independent_program_says(asked, refit, adjacency):
    search = fitted(mechanism="composition", refit=refit, adjacency=adjacency, epsilon=0.7, delta=1e-6)
    sizes = [n for n, _ in asked]
    assert sizes == [2400, 600] * 3 + [3000] * refit
    fits, scores, last = (sum(mu2 for n, mu2 in asked if n == size) for size in (2400, 600, 3000))
    accountant = PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(1 / math.sqrt(max(fits, scores) + last)))
    assert 0.699 < accountant.get_epsilon(1e-6) < 0.7001
    assert 0.699 < search.privacy_spent_.epsilon <= 0.7 and search.privacy_spent_.delta == 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("refit", (True, False))
def test_random_stopping_spends_what_an_independent_program_says(asked, refit):
    search = fitted(mechanism="random_stopping", refit=refit, epsilon=0.7, delta=1e-6)
    mu2 = max(mu2 for n, mu2 in asked if n != 3000)
    last = sum(mu2 for n, mu2 in asked if n == 3000)
    order, mean = np.geomspace(1.01, 1e4, 20_000), search.plan_.mean_trials
    e, mu = np.log(order / (order - 1)), math.sqrt(mu2)
    of_trial = ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu)
    curve = order * (mu2 + last) / 2 + mean * of_trial + math.log(mean) / (order - 1)
    spent = (curve + np.log1p(-1 / order) - np.log(1e-6 * order) / (order - 1)).min()
    assert 0.698 < spent < 0.7005 and (last > 0) == refit
    assert search.privacy_spent_.epsilon <= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", BOTH)
def test_one_charge_comes_before_the_first_fit(mechanism, monkeypatch):
    with PrivacyLedger(epsilon=1.0, delta=1e-5) as ledger:
        seen, init = [], Oracle.__init__
        monkeypatch.setattr(Oracle, "__init__", lambda *given: (seen.append(len(ledger.entries)), init(*given))[1])
        fitted(mechanism=mechanism, refit=True, epsilon=0.5, delta=1e-6)
        assert set(seen) == {1} and len(ledger.entries) == 1
        assert ledger.entries[0].spending.epsilon <= 0.5
        assert ledger.entries[0].spending.estimator == "DPGridSearchCV"
        del seen[:]
        with pytest.raises(BudgetExceededError):
            fitted(mechanism=mechanism, epsilon=1.2, delta=1e-6)
        assert not seen and len(ledger.entries) == 1
        with pytest.raises(BudgetExceededError):
            clone(MODEL).set_params(epsilon=1.2).fit(*records())  # the search leaves nothing paid in advance


@pytest.mark.slow
def test_a_part_that_spends_more_than_its_share_is_refused(monkeypatch):
    """The twin: a refit with the whole budget, and scores with it."""
    plan = fitted(mechanism="composition").plan_
    real = _search._DPSearch._candidate

    def greedy(search, candidate, epsilon=None, budget=None):
        model = real(search, candidate, epsilon, budget)
        return model.set_params(epsilon=1.0) if budget is not None and epsilon == plan.epsilon_refit else model

    with monkeypatch.context() as patched:
        patched.setattr(_search._DPSearch, "_candidate", greedy)
        with pytest.raises(PrivacyAccountingError, match="more than was charged"):
            fitted(mechanism="composition")
    evaluate = _search.evaluate
    monkeypatch.setattr(_search, "evaluate", lambda *given, **named: evaluate(*given, **{**named, "epsilon": 1.0}))
    with pytest.raises(PrivacyAccountingError, match="more than was charged"):
        fitted(mechanism="composition")


def test_what_is_paid_in_advance_is_one_part_of_this_thread():
    model = DPLogisticRegression(epsilon=0.1, delta=1e-6, data_norm=2.0)
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger, prepaid(1.0, "replace_one"):
        thread = threading.Thread(target=lambda: clone(model).fit(*records()))
        thread.start()
        thread.join()
        assert len(ledger.entries) == 1  # another thread pays
        spending, _ = charging.scheduled(lambda: model.fit(*records()))
        pay(spending)
        with pytest.raises(PrivacyAccountingError):
            pay(spending)
        assert len(ledger.entries) == 1
    for other in (("zero_out",), ("replace_one", "person")):
        with prepaid(1.0, *other), pytest.raises(PrivacyAccountingError):
            pay(spending)
    with pytest.raises(PrivacyAccountingError, match="without a charge"):
        charging.scheduled(lambda: None)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", BOTH)
def test_only_released_results_leave(mechanism):
    search = fitted(mechanism=mechanism)
    results = pd.DataFrame(search.cv_results_)
    assert len(results) == (3 if mechanism == "composition" else 1)
    assert set(results) == {"params", "param_alpha", "mean_test_score", "rank_test_score"}
    best = results.loc[results["rank_test_score"] == 1].iloc[0]
    assert best["params"] == search.best_params_ == list(search._candidates(0))[search.best_index_]
    assert best["mean_test_score"] == search.best_score_
    assert search.best_estimator_.alpha == search.best_params_["alpha"]
    assert search.plan_.refit == (mechanism == "composition")
    X, _ = records()
    patterns = {value.tobytes() for value in X.ravel()}
    content = pickle.dumps(search)
    assert not any(pattern in content for pattern in patterns)


def test_the_score_of_a_search_is_that_of_its_scoring():
    X, y = records(seed=1)
    search = fitted(epsilon=10.0, scoring="neg_log_loss")
    assert search.score(X, y) == pytest.approx(-log_loss(y, search.predict_proba(X)))
    assert search.privacy_report_.noise_size.endswith("in the score of one trial")


@pytest.mark.slow
def test_scores_are_noisy():
    scores = set()
    for seed in range(5):
        search = fitted(mechanism="composition", refit=False, random_state=0, seed=seed, epsilon=3.0)
        scores.add(search.best_score_)
    assert len(scores) == 5


@pytest.mark.slow
def test_other_records_with_the_same_answers_leave_the_same_result(monkeypatch):
    """Nothing that leaves depends on the records beside the answers of the oracle and the labels."""
    answers, ask = [], Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda oracle, query: (answers.append(ask(oracle, query)), answers[-1])[1])
    first = fitted(mechanism="composition", random_state=0)
    replies = iter(list(answers))

    def again(oracle, query):
        ask(oracle, query)
        return next(replies)

    monkeypatch.setattr(Oracle, "ask", again)
    X, y = records(seed=5)
    with reproducible_noise(0):
        second = DPGridSearchCV(MODEL, GRID, mechanism="composition", random_state=0).fit(X, y)
    np.testing.assert_array_equal(first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(first.best_estimator_.coef_, second.best_estimator_.coef_)


@pytest.mark.slow
def test_the_division_depends_on_the_number_of_records_alone(monkeypatch):
    parts = []
    fit = DPLogisticRegression.fit

    def kept(model, X, y, **given):
        parts.append(X[:, -1].astype(int).tolist())
        return fit(model, X, y, **given)

    monkeypatch.setattr(DPLogisticRegression, "fit", kept)
    for seed in (0, 1):
        X, y = records(600, seed=seed)
        search = DPGridSearchCV(DPLogisticRegression(data_norm=2.0), {"alpha": [0.1]}, mechanism="composition", random_state=3)
        with reproducible_noise(0):
            search.fit(np.column_stack([X, np.arange(600)]), y)
    half = len(parts) // 2
    assert parts[:half] == parts[half:] and {len(part) for part in parts} == {480, 600}


@pytest.mark.slow
def test_the_secret_draws_do_not_follow_from_random_state(monkeypatch):
    numbers = []
    trial = _search._DPSearch._trial
    monkeypatch.setattr(
        _search._DPSearch, "_trial", lambda search, *given: (numbers.append(given[0]["alpha"]), trial(search, *given))[1]
    )
    runs = []
    for _ in range(4):
        DPGridSearchCV(MODEL, GRID, mechanism="random_stopping", random_state=0).fit(*records(500))
        runs.append(tuple(numbers))
        del numbers[:]
    assert len(set(runs)) > 1  # equal in less than one of a million


@pytest.mark.slow
def test_the_generator_of_numpy_does_not_count_secret_trials(monkeypatch):
    """A part with random_state=None draws in each trial."""
    numbers, after, drawn, generator = [], set(), set(), check_random_state(None)
    trial = _search._DPSearch._trial
    monkeypatch.setattr(_search._DPSearch, "_trial", lambda search, *given: (numbers.append(1), trial(search, *given))[1])
    search = DPGridSearchCV(
        make_pipeline(RBFSampler(n_components=5), DPLogisticRegression(data_norm=1.0)),
        {"dplogisticregression__alpha": [1e-2]},
        mechanism="random_stopping",
        mean_trials=8,
    )
    for seed in range(4):
        generator.seed(0)
        fitted(search, seed)
        after.add(generator.rand())
        drawn.add(search.best_estimator_[0].random_weights_[0, 0])
        numbers.append(0)
    assert len(set("".join(map(str, numbers)).split("0"))) > 2  # the numbers of trials differ
    assert len(after) == 1 and len(drawn) == 4


def warns_of_records(X):
    warnings.warn("of a record", RuntimeWarning, stacklevel=2)
    return X


@pytest.mark.slow
def test_warnings_follow_the_filters_of_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        DPGridSearchCV(DPLogisticRegression(), {}, epsilon=20.0, mechanism="composition").fit(*records(500))
    assert not caught


@pytest.mark.slow
def test_warnings_of_other_steps_stay_inside():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPGridSearchCV(make_pipeline(FunctionTransformer(warns_of_records), MODEL), {}).fit(*records(500))
    kinds = {warning.category for warning in caught}
    assert OutsideGuaranteeWarning in kinds and RuntimeWarning not in kinds


@pytest.mark.slow
def test_what_it_does_not_judge_is_said_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPGridSearchCV(make_pipeline(FunctionTransformer(np.tanh), MODEL), {"dplogisticregression__alpha": [0.1, 0.2]}).fit(
            *records(500)
        )
    assert [warning.category for warning in caught].count(OutsideGuaranteeWarning) == 1


def test_the_number_of_trials_is_poisson(monkeypatch):
    numbers = []
    monkeypatch.setattr(_search._DPSearch, "_trial", lambda *given: (numbers.append(1), (1.0, MODEL))[1])
    search, totals = DPGridSearchCV(MODEL, GRID, mechanism="random_stopping", mean_trials=6), []
    X, y = records(300)
    parts = [X[:200], X[200:], y[:200], y[200:]]
    candidates = search._candidates(0)
    plan = search.plan(300)
    for _ in range(2000):
        try:
            search._searched(plan, candidates, [], parts, _search.NoiseSource())
        except RuntimeError as error:
            assert "no trial" in str(error)
        totals.append(len(numbers))
        del numbers[:]
    assert 5.7 < np.mean(totals) < 6.3 and 5.0 < np.var(totals) < 7.1  # five standard deviations
    assert 0 in totals  # e^-6 of 2000 is 5: missed in less than one of a hundred


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrap",
    (
        lambda model, folder: model,
        lambda model, folder: Pipeline([("c", RowNormClipper(2.0)), ("a", model)], verbose=True, memory=str(folder)),
        lambda model, folder: VotingClassifier([("a", model.set_params(classes=None))], voting="soft", verbose=True),
    ),
    ids=("alone", "pipeline", "voting"),
)
def test_no_output_tells_of_a_trial_that_is_secret(wrap, tmp_path, capsys):
    model = clone(MODEL).set_params(verbose=2)
    loud, grid = wrap(model, tmp_path), {} if wrap(model, tmp_path) is model else {"a__alpha": GRID["alpha"]}
    with warnings.catch_warnings(record=True) as seen, reproducible_noise(0):
        warnings.simplefilter("always")
        search = DPGridSearchCV(loud, grid or GRID, mechanism="random_stopping").fit(*records())
    assert capsys.readouterr().out == "" and list(tmp_path.iterdir()) == []
    assert len(seen) <= 3  # one per candidate at most, before the charge
    assert not search.best_estimator_.get_params().get("verbose") and loud.verbose


class Heard:
    """A callback; one that reaches all parts of an estimator, if it has a depth."""

    requires_fit_attributes = False

    def __init__(self, depth=()):
        vars(self).update({"max_propagation_depth": None} if depth is None else {})
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append("begin")

    def on_fit_task_end(self, estimator, context):
        self.calls.append("end")

    def teardown(self, estimator, context):
        self.calls.append("teardown")


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.9"), reason="scikit-learn has callbacks from 1.9 on")
@pytest.mark.parametrize("depth", ((), None), ids=("own", "propagated"))
@pytest.mark.parametrize("where", ("pipeline", "inner pipeline", "model", "candidate"))
def test_callbacks_that_would_get_secret_trials_are_refused(where, depth):
    heard = Heard(depth)
    inner = make_pipeline(RowNormClipper(2.0), clone(MODEL))
    outer, grid = Pipeline([("a", inner)]), {"a__dplogisticregression__alpha": [0.1, 0.2]}
    parts = {"pipeline": outer, "inner pipeline": inner, "model": inner[-1], "candidate": clone(inner)}
    parts[where].set_callbacks(heard)
    if where == "candidate":
        grid = {"a": [clone(inner), parts[where]]}
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises(TypeError, match="has callbacks, which would get models that are secret"):
            DPGridSearchCV(outer, grid, mechanism="random_stopping").fit(*records())
    assert heard.calls == [] and not ledger.entries


@pytest.mark.exhaustive
def test_it_chooses_the_estimator_that_suits():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 2))
    y = (np.abs(X[:, 0]) + rng.normal(size=20_000) / 4 > 0.5).astype(int)
    models = [DPLogisticRegression(data_norm=2.0), DPAdditiveClassifier(feature_bounds=(-1, 1))]
    for scoring, mechanism in zip(_search.SCORES, cycle(BOTH), strict=False):
        search = DPGridSearchCV(
            Pipeline([("model", models[0])]), {"model": models}, epsilon=2.0, mechanism=mechanism, scoring=scoring
        )
        with reproducible_noise(1):
            search.fit(X, y)
        assert search.best_index_ == 1
    assert search.predict(X).shape == (20_000,) and search.best_estimator_.score(X, y) > 0.8
    assert search.predict_proba(X).shape == (20_000, 2) and list(search.classes_) == [0, 1] and search.n_features_in_ == 2


@pytest.mark.slow
def test_clones_pickles_and_frames():
    X, y = records()
    frame = pd.DataFrame(X, columns=["a", "b"])
    drawn = DPRandomizedSearchCV(MODEL, {"alpha": [0.01, 0.1, 1.0]}, n_iter=2, random_state=0)
    search = clone(drawn)
    with reproducible_noise(0):
        assert search.fit(frame, y) is search
    assert not hasattr(drawn, "best_estimator_") and not hasattr(clone(search), "best_estimator_")
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(frame), search.predict(frame))
    assert list(search.best_estimator_.feature_names_in_) == ["a", "b"]
    assert len(search.cv_results_["params"]) == 2
    with reproducible_noise(0):
        learned = DPGridSearchCV(DPLogisticRegression(), {"alpha": [0.01, 0.1]}).fit(frame, pd.Series(y))
    assert learned.privacy_spent_.epsilon <= 1.0


def test_a_candidate_that_fails_is_the_worst(monkeypatch):
    fit, calls = DPLogisticRegression._task_class.released, []

    def failing(model, *given):
        calls.append(model.alpha)
        if model.alpha == 1e-3:
            raise ValueError("diverged")
        return fit(model, *given)

    monkeypatch.setattr(DPLogisticRegression._task_class, "released", failing)
    search = fitted(mechanism="composition")
    assert search.cv_results_["mean_test_score"][0] == -math.inf and search.best_index_ > 0
    monkeypatch.setattr(
        DPLogisticRegression._task_class, "released", lambda *given: (_ for _ in ()).throw(ValueError("diverged"))
    )
    with pytest.raises(ValueError, match="No candidate could be fitted"):
        fitted(mechanism="random_stopping")


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::skdp.OutsideGuaranteeWarning", "ignore::skdp.WeakPrivacyWarning")
@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("scoring", _search.SCORES)
@pytest.mark.parametrize("piped", (False, True))
def test_one_record_does_not_decide_whether_a_search_ends(piped, scoring, mechanism):
    """Neighbours: a validated record for which infinite terms cancel. A trial that failed for it was counted as the worst."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 4))
    y = (X.sum(axis=1) > 0).astype(int)
    other = X.copy()
    other[train_test_split(np.arange(400), test_size=80, random_state=5)[1][0]] = 1.7e308, -1.7e308, 1.7e308, -1.7e308
    model = DPLogisticRegression(data_norm=2.0, classes=[0, 1])
    model = make_pipeline(FunctionTransformer(), model) if piped else model
    search = DPGridSearchCV(
        model, {}, epsilon=50.0, mechanism=mechanism, mean_trials=5, scoring=scoring, random_state=5, refit=False
    )
    for table in (X, other):
        with reproducible_noise(0):
            assert np.isfinite(search.fit(table, y).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("error", (TypeError, AttributeError, PrivacyAccountingError))
def test_what_no_release_decides_is_raised(error, monkeypatch):
    def failing(model, *given):
        raise error("public")

    monkeypatch.setattr(DPLogisticRegression._task_class, "released", failing)
    with pytest.raises(error, match="public"):
        fitted(mechanism="composition")


@pytest.mark.slow
@pytest.mark.parametrize("scoring", _search.SCORES)
def test_the_noise_that_is_stated_is_that_of_the_score(scoring):
    """As measured, within a quarter: 60 repetitions have an error of 9 %, and the stated one has 7 % (roc_auc)."""
    rng, n = np.random.default_rng(0), 2000
    y = np.arange(n) % 2
    log_odds = np.clip(rng.normal((y - 0.5) * 1.19**2, 1.19), -6, 6)  # calibrated, with an area of .8
    plan = DPGridSearchCV(MODEL, GRID, scoring=scoring).plan(5 * n)
    words = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve", "neg_log_loss": "log loss"}.get(
        scoring, "Brier score"
    )
    line = next(line for line in str(plan).splitlines() if line.startswith("Scores"))
    assert f"sampling error in the {words}" in line and f"noise of {plan.score_noise:.2g}" in line
    metric, scores = _search.SCORES[scoring], []
    for seed in range(60):
        with reproducible_noise(seed):
            found = run_evaluation(
                *(kind_of_scores((metric,), 0, "record"), ScoredRecords(log_odds, y), (metric,)),
                replace(plan.budget, epsilon=plan.epsilon_trial),
                noise="gaussian",
                level=0.95,
                model="made",
            )
        scores.append(metric.interval(found.table, 0.95)[0])
    assert plan.score_noise == pytest.approx(np.std(scores), rel=0.25)
    assert ("in one class" in line) == (scoring == "roc_auc")
    report = plan.report("DPGridSearchCV", {}, planned=True, reproducible=False)
    assert report.noise_size.startswith(f"{plan.score_noise:.2g} ({words}")


PLAIN = clone(MODEL).set_params(classes=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    (
        OneVsRestClassifier(MODEL),
        VotingClassifier([("a", PLAIN)], voting="soft", n_jobs=2),  # a worker would not know that it is paid
        BaggingClassifier(PLAIN, 1, bootstrap=False),
    ),
    ids=lambda model: type(model).__name__,
)
def test_meta_estimators_that_fit_once_are_searched(model, asked):
    prefix = "a" if isinstance(model, VotingClassifier) else "estimator"
    search = DPGridSearchCV(model, {f"{prefix}__alpha": [0.01, 0.1]}, mechanism="composition", refit=False)
    with reproducible_noise(0):
        search.fit(*records())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all() and len(asked) == 4


@pytest.mark.parametrize("schema", ("learn", {"0": "ignore"}), ids=str)
def test_candidates_that_learn_their_columns_are_searched(schema, asked):
    X, y = records()
    frame = pd.DataFrame(X, columns=[str(j) for j in range(X.shape[1])])
    model = DPLogisticRegression(schema=schema)
    with reproducible_noise(0):
        search = DPGridSearchCV(model, {"alpha": [0.01, 0.1]}, refit=False).fit(frame, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_plan_takes_a_table_a_shape_or_a_number():
    X, _ = records(500)
    search = DPGridSearchCV(MODEL, GRID)
    for given in (X, pd.DataFrame(X), X.shape):
        assert search.plan(given) == search.plan(500)
    for given, message in (([[0.0]], "list of length 1"), (1, "n_samples=1"), (None, "n_samples=None")):
        with pytest.raises((TypeError, ValueError), match=message):
            search.plan(given)


@pytest.mark.parametrize(
    "search, message",
    (
        (DPGridSearchCV(make_pipeline(StandardScaler(), MODEL), {}), "standardscaler of a candidate learn"),
        (DPGridSearchCV(LogisticRegression(), {"C": [1.0]}), "0 steps of LogisticRegression spend"),
        (DPGridSearchCV(make_pipeline(LearnedSchema(), MODEL), {}), "2 steps of Pipeline spend"),
        (DPGridSearchCV(BaggingClassifier(MODEL, 3, bootstrap=False), {}), "BaggingClassifier of a candidate fits what it holds"),
        (DPGridSearchCV(make_pipeline(RFE(MODEL), MODEL), {}), "RFE of a candidate fits what it holds several times"),
        (DPGridSearchCV(MODEL, {"epsilon": [1.0, 2.0]}), "has its own epsilon"),
        (DPGridSearchCV(clone(MODEL).set_params(solver=SGD()), GRID), "other than Gaussian ones"),
        (DPGridSearchCV(MODEL, {"alpha": [0.1, -1.0]}), "alpha=-1"),
        (DPGridSearchCV(clone(MODEL).set_params(classes=[0, 1, 2]), GRID), "has 3 classes; expected two"),
        (DPGridSearchCV(MODEL, GRID, scoring="f1"), "scoring='f1'; expected one of"),
        (DPGridSearchCV(MODEL, GRID, mechanism="best"), "mechanism='best'"),
        (DPGridSearchCV(MODEL, GRID, refit="yes"), "refit='yes'"),
        (DPGridSearchCV(MODEL, GRID, mean_trials=2), "mean_trials=2"),
        (DPGridSearchCV(MODEL, GRID, validation_size=0.001), "at least 50"),
        (DPGridSearchCV(MODEL, GRID, validation_size=1.0), "validation_size=1"),
        (DPGridSearchCV(MODEL, GRID, epsilon=0), "epsilon=0"),
        (DPGridSearchCV(MODEL, GRID, epsilon=1e-4), "too small"),
        (DPGridSearchCV(MODEL, GRID, delta=0), "delta=0"),
        (DPGridSearchCV(MODEL, GRID, random_state="a"), "random_state='a'"),
        (DPGridSearchCV(DPLogisticRegression, GRID), "expected a private classifier"),
        (DPRandomizedSearchCV(MODEL, GRID, n_iter=0), "n_iter=0"),
        (DPGridSearchCV(DPLinearRegression(), {}), "DPLinearRegression predicts numbers; expected a classifier"),
        (DPRandomizedSearchCV(make_pipeline(DPLinearRegression()), {}), "Pipeline predicts numbers; expected a classifier"),
    ),
)
@pytest.mark.filterwarnings("ignore:BaggingClassifier numbers the labels")
def test_what_is_not_valid_is_refused_before_anything_is_charged(search, message):
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises((TypeError, ValueError, PrivacyAccountingError), match=message):
            search.fit(*records())
        assert not ledger.entries


@pytest.mark.parametrize("row", range(0, 400, 40))
def test_wrong_records_are_refused_before_the_charge_wherever_they_are(row):
    X, y = records(400)
    X[row, 0] = np.nan
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        with pytest.raises(ValueError, match=r"NaN|finite"):
            DPGridSearchCV(MODEL, GRID).fit(X, y)
        with pytest.raises(ValueError, match="more than two labels"):
            DPGridSearchCV(MODEL, GRID).fit(np.nan_to_num(X), np.where(np.arange(400) == row, 7, y))
        assert not ledger.entries


@pytest.mark.slow
def test_unknown_steps_and_searches_that_cannot_pay_warn():
    with pytest.warns(OutsideGuaranteeWarning, match="functiontransformer"):
        fitted(DPGridSearchCV(make_pipeline(FunctionTransformer(), MODEL), {}))
    with pytest.warns(LowSignalWarning, match="one candidate"):
        fitted(DPGridSearchCV(MODEL, {"alpha": [0.1]}))
    with pytest.warns(LowSignalWarning, match=r"a score, area under the ROC curve of .*chooses nearly at random"):
        fitted(epsilon=0.05)
    with pytest.warns(LowSignalWarning, match=r"a score, log loss, has .*chooses nearly at random"):
        fitted(epsilon=0.05, scoring="neg_log_loss")


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", BOTH)
def test_the_plan_is_what_is_spent_and_says_when_it_pays(mechanism):
    search = DPGridSearchCV(MODEL, GRID, mechanism=mechanism, epsilon=0.5)
    plan = search.plan(3000)
    assert plan == fitted(search).plan_
    text = str(plan)
    assert "3 candidates" in text and "epsilon 0.5" in text and "candidates are of one class" in text
    assert "signal-to-noise" in text and "all 3000 records" in text
    models = Pipeline([("model", MODEL)])
    two = DPGridSearchCV(models, {"model": [MODEL, DPAdditiveClassifier(feature_bounds=(-1, 1))]})
    assert "candidates are of one class" not in str(two.plan(3000))
    report = " ".join(str(search.privacy_report_).split())
    assert "(0.5, 1.11111e-07)" in report and "Trial" in report and "random permutation" in report
    assert "NONE" in report  # of reproducible noise
    assert search.privacy_report_.to_dict()["spent"]["epsilon"] <= 0.5 and search.privacy_report_.to_html()


@pytest.mark.slow
def test_warnings_of_a_search_are_at_the_line_that_called_it():
    with pytest.warns(WeakPrivacyWarning) as caught:
        DPGridSearchCV(MODEL, GRID, epsilon=50.0, random_state=0).fit(*records())
    assert {warning.filename for warning in caught} == {__file__}


OF_PERSONS = clone(MODEL).set_params(privacy_unit="person")
WHO = np.repeat(np.arange(400), np.tile([1, 2, 3, 4], 100))


def rows_of_persons(extra=0, cell=0.5):
    """Return X, y and persons; ``extra`` rows, and another value in all, of person 7. Cells of others name their rows."""
    X, y = records(len(WHO))
    X = np.column_stack([X, np.arange(len(WHO)) / len(WHO)])
    X[WHO == 7] = cell
    at = np.full(extra, 20)
    return np.insert(X, at, cell, axis=0), np.insert(y, at, 1), np.insert(WHO, at, 7)


def of_persons(extra=0, cell=0.5, **given):
    X, y, who = rows_of_persons(extra, cell)
    search = DPGridSearchCV(OF_PERSONS, {"alpha": [1e-2, 1e-1]}, random_state=0, validation_size=0.3, **given)
    with reproducible_noise(0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y, persons=[f"id-{person:03d}" for person in who])
    return search, [str(warning.message) for warning in caught]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", BOTH)
def test_a_person_with_other_rows_and_the_same_answers_leaves_the_same_search(mechanism, monkeypatch):
    """Also the same parts of the others: she is in one part, whatever rows she has. No id, and no number of rows, is left."""
    answers, parts, ask, fit = [], [], Oracle.ask, _search._fitted
    monkeypatch.setattr(Oracle, "ask", lambda oracle, query: (answers.append(ask(oracle, query)), answers[-1])[1])

    def kept(model, X, y, persons):
        parts.append((set(persons), sorted(X[persons != 7, -1])))
        return fit(model, X, y, persons)

    def scored(model, X, y, persons, **given):
        parts.append((set(persons), sorted(X[persons != 7, -1])))
        return evaluate(model, X, y, persons=persons, **given)

    evaluate = _search.evaluate
    monkeypatch.setattr(_search, "_fitted", kept)
    monkeypatch.setattr(_search, "evaluate", scored)
    first, warned = of_persons(mechanism=mechanism)
    replies, seen = iter(list(answers)), list(parts)
    monkeypatch.setattr(Oracle, "ask", lambda oracle, query: (ask(oracle, query), next(replies))[1])
    del parts[:]
    second, again = of_persons(300, cell=-0.9, mechanism=mechanism)
    assert pickle.dumps(first) == pickle.dumps(second) and warned == again and seen == parts
    assert {len(persons) for persons, _ in seen} == {280, 120, 400}
    fits, scores = ({frozenset(persons) for persons, _ in seen if len(persons) == size} for size in (280, 120))
    assert len(fits) == len(scores) == 1 and not fits.pop() & scores.pop()
    texts = f"{first.privacy_report_} {first.plan_} {warned}"
    assert b"id-" not in pickle.dumps(first) and "id-" not in texts and "1000" not in texts
    assert first.privacy_report_.public["n_persons"] == 400 and "person: 400 persons" in texts


def test_the_division_of_persons_is_secret_whatever_random_state_is():
    """A public seed would move persons whose numbers follow from the id of another one."""
    X, y, who = rows_of_persons()
    plan, group = DPGridSearchCV(OF_PERSONS, {}).plan(400), persons_of(who)
    first, second = (_search._divided(plan, X, y, group, 0, NoiseSource(0)) for _ in range(2))
    assert len(first[1][2]) != len(second[1][2]) or (first[1][2] != second[1][2]).any()  # equal once in 10**80
    for parts in (first, second):
        assert [len(set(part[2])) for part in parts] == [320, 80] and not set(parts[0][2]) & set(parts[1][2])


@pytest.mark.slow
def test_a_search_of_persons_of_one_row_is_one_of_records(monkeypatch):
    """If it divides them alike: the order of persons is secret."""
    parts = train_test_split(np.arange(600), test_size=120, random_state=0)
    monkeypatch.setattr(_search, "order_of", lambda key, n: np.concatenate(parts))
    monkeypatch.setattr("skdp.privacy.data.persons.order_of", lambda key, n: np.arange(n))
    monkeypatch.setattr(NoiseSource, "key", lambda noise: None)  # so that noise is the same
    X, y = records(600)
    found = []
    for model, given in ((MODEL, {}), (OF_PERSONS, {"persons": np.arange(600)[::-1] - 300})):
        order = slice(None, None, -1) if given else slice(None)  # ids number the persons
        with reproducible_noise(0), PrivacyLedger(epsilon=2, delta=1e-4) as ledger:
            search = DPGridSearchCV(model, {"alpha": [1e-2, 1e-1]}, random_state=0, epsilon=2.0)
            found.append(search.fit(X[order], y[order], **given))
        assert [entry.spending.unit for entry in ledger.entries] == [model.privacy_unit]
    np.testing.assert_allclose(found[0].best_estimator_.coef_, found[1].best_estimator_.coef_, rtol=1e-9)
    np.testing.assert_allclose(*(search.cv_results_["mean_test_score"] for search in found), rtol=1e-9)


@pytest.mark.slow
def test_persons_reach_the_step_that_spends(asked):
    X, y, who = rows_of_persons()
    table = pd.DataFrame(X, columns=list("abc")).assign(patient=who)
    model = make_pipeline(FunctionTransformer(), make_pipeline(OF_PERSONS))
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = DPGridSearchCV(model, {}, refit=False).fit(table, y, persons="patient")
    assert {n for n, _ in asked} == {320, 80} and list(search.best_estimator_[-1][-1].feature_names_in_) == list("abc")
    plans = search.plan(400), search.plan((400, 3)), search.plan(table, persons="patient"), search.plan(X, persons=who)
    assert len({str(plan) for plan in plans}) == 1 and "on 80 persons" in str(plans[0])


@pytest.mark.parametrize(
    "model, grid, change, message",
    (
        (OF_PERSONS, {}, {"persons": None}, "without persons"),
        (MODEL, {}, {}, "privacy_unit='record', which protects single rows"),
        (OF_PERSONS, {"privacy_unit": ["record", "person"]}, {}, "Some candidates protect records, and others persons"),
        (FixedThresholdClassifier(OF_PERSONS), {}, {}, "FixedThresholdClassifier, which does not pass persons on"),
        (OF_PERSONS, {}, {"y": np.zeros(999)}, "different lengths"),
        (OF_PERSONS, {}, {"X": chunks(lambda: iter(()), n_features=3)}, "A search needs a table in memory"),
        (OF_PERSONS, {}, {"y": np.zeros((1000, 2))}, "shape \\(n_rows, 2\\)"),
        (OF_PERSONS, {}, {"persons": [None] * 1000}, "missing ids"),
        (OF_PERSONS, {}, {"persons": np.arange(1000) // 100}, "leaves 2 persons for scores"),
    ),
)
def test_searches_of_persons_refuse_what_they_cannot_do(model, grid, change, message):
    X, y, who = rows_of_persons()
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger, pytest.raises((TypeError, ValueError), match=message) as caught:
        DPGridSearchCV(model, grid).fit(**{"X": X, "y": y, "persons": who} | change)
    assert not ledger.entries and "1000" not in str(caught.value)


def test_a_plan_of_a_table_of_persons_needs_them():
    with pytest.raises(ValueError, match=r"expected plan\(X, persons=ids\)"):
        DPGridSearchCV(OF_PERSONS, GRID).plan(rows_of_persons()[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("mechanism", BOTH)
def test_without_noise_it_is_a_search_that_says_so(mechanism):
    search = DPGridSearchCV(MODEL, GRID, epsilon=math.inf, mechanism=mechanism).fit(*records())
    assert search.best_params_ == {"alpha": 1e-3} or search.best_score_ > 0.8
    assert not search.privacy_report_.private


def test_clusters_have_no_private_score():
    with pytest.raises(TypeError, match="Clusters and components have no private score: fit each"):
        DPGridSearchCV(DPKMeans(), {"n_clusters": [2, 3]}).fit(np.zeros((50, 2)))
    with pytest.raises(ValueError, match="y is None; expected the labels of two classes"):
        DPGridSearchCV(DPLogisticRegression(feature_bounds=1.0), {"alpha": [0.1]}).fit(np.zeros((50, 2)))
