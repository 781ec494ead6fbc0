"""Fits that protect persons, each with all her rows: what they compute, state, refuse and leave behind."""

import json
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from seeded import fitted
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - of HalvingGridSearchCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    KFold,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPConstrainedRegression,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPGroupDROClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMinimax,
    DPMultinomialNB,
    DPQuantileRegressor,
    DPRobustRegressor,
    DPTabularClassifier,
    DPTabularRegressor,
    PrivacyLedger,
)
from skdp._persons import persons_of
from skdp.metrics import dp_scorer, evaluate, plan_evaluation
from skdp.minimax import GroupDROSaddle
from skdp.preprocessing import LearnedSchema
from skdp.privacy import oracle
from skdp.privacy.budget import Budget
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import OutsideGuaranteeWarning, PrivacyAccountingError
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.objective_perturbation import TiltedObjective, smallest_strength
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.scorers import LinearScorer
from skdp.solvers import SGD, SGDA, SVRG, InferenceDescent, PrivateDiff

RNG = np.random.default_rng(7)
N = 1500
SIZES = RNG.geometric(0.4, N)
WHO = np.repeat(np.arange(N), SIZES)
X = RNG.uniform(-1, 1, (len(WHO), 3))
SCORE = X @ [1.0, -2.0, 0.5] + np.repeat(RNG.normal(size=N), SIZES)
LABELS, NUMBERS = (SCORE > 0).astype(int), np.clip(SCORE / 4, -1, 1)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(ward=np.where(X[:, 2] > 0.3, "north", "south"))
BOUNDS, RANGE = {"feature_bounds": 1.0}, {"target_bounds": (-1, 1)}
KINDS = {
    "logistic": (DPLogisticRegression(**BOUNDS), X, LABELS),
    "svm": (DPLinearSVC(**BOUNDS), X, LABELS),
    "linear": (DPLinearRegression(**BOUNDS, **RANGE), X, NUMBERS),
    "log link": (
        DPLinearRegression(**BOUNDS, target_bounds=(0, 8), link="log_count", epsilon=8.0),
        X,
        np.floor(8 * np.abs(NUMBERS)),
    ),
    "robust": (DPRobustRegressor(**BOUNDS, **RANGE), X, NUMBERS),
    "quantile": (DPQuantileRegressor(**BOUNDS, **RANGE), X, NUMBERS),
    "constrained": (DPConstrainedClassifier(**BOUNDS, constraint="l1", solver="gd"), X, LABELS),
    "constrained number": (DPConstrainedRegression(**BOUNDS, **RANGE, constraint="l1", solver="gd"), X, NUMBERS),
    "auc": (DPAUCMaximizer(**BOUNDS), X, LABELS),
    "additive": (DPAdditiveClassifier(**BOUNDS), X, LABELS),
    "private knots": (DPAdditiveClassifier(**BOUNDS, knots="private", epsilon=8.0), X, LABELS),
    "additive number": (DPAdditiveRegressor(**BOUNDS, **RANGE), X, NUMBERS),
    "boosted": (DPGradientBoostingClassifier(**BOUNDS, epsilon=8.0), X, LABELS),
    "boosted number": (DPGradientBoostingRegressor(**BOUNDS, **RANGE, epsilon=8.0), X, NUMBERS),
    "tabular": (DPTabularClassifier(), FRAME, LABELS),
    "tabular number": (DPTabularRegressor(), FRAME, NUMBERS),
    "inference": (DPLogisticRegression(**BOUNDS, inference=True), X, LABELS),
    "block coordinates": (DPLogisticRegression(**BOUNDS, solver="skgd"), X, LABELS),
    "Newton": (DPLogisticRegression(**BOUNDS, solver="newton"), X, LABELS),
    "sufficient statistics": (DPLinearRegression(**BOUNDS, **RANGE, solver="ssp"), X, NUMBERS),
    "clusters": (DPKMeans(3, **BOUNDS, epsilon=3.0), X, LABELS),
    "components": (DPPCA(2, **BOUNDS), X, LABELS),
    "naive Bayes": (DPMultinomialNB(), np.abs(X), LABELS),
    "output": (DPLogisticRegression(**BOUNDS, solver="output"), X, LABELS),
    "objective": (DPLogisticRegression(**BOUNDS, solver="objective", delta=0), X, LABELS),
    "sgd": (DPLogisticRegression(**BOUNDS, solver=SGD(9, batch_size=300, standardize=0.2)), X, LABELS),
    "svrg": (DPLogisticRegression(**BOUNDS, solver=SVRG(2, n_inner=4, batch_size=100)), X, LABELS),
    "sgda": (DPAUCMaximizer(**BOUNDS, solver=SGDA(5, batch_size=400)), X, LABELS),
    "privatediff": (DPAUCMaximizer(**BOUNDS, solver=PrivateDiff(4, batch_size=400)), X, LABELS),
    "single pass": (DPLogisticRegression(**BOUNDS, solver=SGD(9, batch_size=300, sampling="single_pass")), X, LABELS),
}
SAMPLED = ("sgd", "svrg", "sgda", "privatediff", "single pass")
every_kind = pytest.mark.parametrize("name", KINDS)


def of_persons(name, ids=WHO, **changed):
    model, table, y = KINDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(clone(model).set_params(privacy_unit="person", **changed), table, y, seed=3, persons=ids)


def predictions(model, table):
    """Return what a model predicts, as fine as it tells."""
    method = next(name for name in ("decision_function", "transform", "predict") if hasattr(model, name))
    return np.asarray(getattr(model, method)(table), dtype=float)


def test_all_estimators_protect_persons_or_say_that_they_do_not():
    listed = {type(model) for model, _, _ in KINDS.values()}
    kinds = {kind for name in skdp.estimators.__all__ if hasattr(kind := getattr(skdp, name), "_get_param_names")}
    without = {kind.__name__ for kind in kinds - listed}
    assert without == {"DPGroupDROClassifier", "DPMinimax"}
    assert "privacy_unit" not in DPGroupDROClassifier._get_param_names()
    with pytest.raises(TypeError, match="protects single rows"):
        DPGroupDROClassifier(data_norm=2.0).plan(1000, 3, persons=WHO)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"objective"}))  # whose noise for persons is larger
def test_persons_of_one_row_are_records(name, monkeypatch):
    model, table, y = KINDS[name]
    every = np.random.default_rng(0).permutation(len(y))
    if name in SAMPLED:  # coins follow numbers
        every = np.arange(len(y))
        monkeypatch.setattr(oracle, "order_of", lambda key, n_persons: np.arange(n_persons))
    if name == "single pass":  # which draws a key for the order alone
        monkeypatch.setattr(NoiseSource, "key", lambda source: b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_records = fitted(clone(model), table, y, seed=3)
        persons = fitted(clone(model).set_params(privacy_unit="person"), table, y, seed=3, persons=every)
    np.testing.assert_allclose(predictions(persons, table), predictions(of_records, table), rtol=1e-9, atol=1e-9)
    assert persons.privacy_report_.public["n_persons"] == len(y) and "n_samples" not in persons.privacy_report_.public


@pytest.mark.slow
@every_kind
def test_a_copy_of_each_row_under_the_same_id_changes_nothing(name):
    """The weights halve; what is released is the same but for rounding."""
    model, table, y = KINDS[name]
    twice = np.repeat(np.arange(len(y)), 2)
    seed = 0 if name == "boosted number" else 3  # with 3, and with 1, the rounding decides a draw of trees
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once = fitted(clone(model).set_params(privacy_unit="person"), table, y, seed=seed, persons=WHO)
    table = table.iloc[twice].reset_index(drop=True) if hasattr(table, "iloc") else table[twice]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copied = fitted(clone(model).set_params(privacy_unit="person"), table, y[twice], seed=seed, persons=WHO[twice])
    # weights of thirds are rounded to 2**-22, which moves sums by up to that share
    np.testing.assert_allclose(predictions(copied, KINDS[name][1]), predictions(once, KINDS[name][1]), rtol=2e-3, atol=2e-3)
    assert copied.privacy_report_.to_json() == once.privacy_report_.to_json() or hasattr(once, "learnt_")


@every_kind
def test_nothing_tells_the_number_of_rows_of_a_person(name):
    """The report, what is printed and what is warned of are the same if one person has 300 more rows."""
    model, table, y = KINDS[name]
    more = np.r_[np.arange(len(y)), np.full(300, 5)]
    larger = table.iloc[more].reset_index(drop=True) if hasattr(table, "iloc") else table[more]
    seen = []
    for rows, targets, ids in ((table, y, WHO), (larger, y[more], WHO[more])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = fitted(clone(model).set_params(privacy_unit="person"), rows, targets, seed=3, persons=ids)
        report = fit.privacy_report_.to_dict()
        report.pop("learned")
        for key in ("n_features", "feature_names") if hasattr(fit, "learnt_") else ():
            report["public"].pop(key, None)
        texts = [str(warning.message) for warning in caught if "assum" not in str(warning.message)]
        seen.append((json.dumps(report), fit.privacy_spent_, texts if not hasattr(fit, "learnt_") else None))
    assert seen[0] == seen[1]
    assert str(len(y)) not in seen[0][0]


@pytest.mark.parametrize("name", SAMPLED)
def test_a_person_with_more_rows_moves_the_releases_that_draw_her_and_no_coin(name, monkeypatch):
    """Record and replay: 300 rows more of her come first. All others have the same coins, and the queries are the same."""
    model, table, y = KINDS[name]
    more, her = np.r_[np.full(300, 20), np.arange(len(y))], WHO[20]
    ask, evaluate, of_rows = oracle.Oracle.ask, oracle.Oracle._evaluate, TrainingData._of_rows
    answers, seen = [], []

    def asking(one, query):
        noisy = ask(one, query)
        answers.append(noisy if len(seen) == 1 else answers.pop(0))  # of the first fit, in both
        return answers[-1]

    def evaluating(one, query, rows):
        seen[-1].append((query, evaluate(one, query, rows)))
        return seen[-1][-1][1]

    def drawing(rows, places):
        seen[-1].append(np.unique(rows._persons.numbers[places]))
        return of_rows(rows, places)

    monkeypatch.setattr(oracle.Oracle, "ask", asking)
    monkeypatch.setattr(oracle.Oracle, "_evaluate", evaluating)
    monkeypatch.setattr(TrainingData, "_of_rows", drawing)
    for rows, targets, ids in ((table, y, WHO), (np.vstack([np.ones((300, 3)), table]), y[more], WHO[more])):
        seen.append([])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted(clone(model).set_params(privacy_unit="person"), rows, targets, seed=5, persons=ids)
    present, moved = True, []
    for one, two in zip(*seen, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two)
            present = her in one
            continue
        for first, second in zip(one[0].parameters(), two[0].parameters(), strict=True):
            np.testing.assert_array_equal(first, second)
        far = np.linalg.norm(one[1] - two[1])
        assert far <= (one[0].sensitivity("replace_one") if present else 1e-12)
        moved.append(present)
        present = True
    assert sum(moved) == 1 if name == "single pass" else any(moved) and not all(moved)


@pytest.mark.parametrize("name", ("logistic", "additive", "tabular", "boosted", "inference"))
def test_no_id_is_left_behind(name):
    ids = np.array([f"secret{who:05d}" for who in WHO])
    model = of_persons(name, ids)
    assert b"secret" not in pickle.dumps(model)
    assert "secret" not in str(vars(model)) + model.privacy_report_.to_html()


@pytest.mark.slow
def test_ids_may_be_a_column_of_a_frame():
    frame = FRAME.assign(patient=WHO)
    expected = of_persons("tabular")
    for given in (frame, pl.from_pandas(frame)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(DPTabularClassifier(privacy_unit="person"), given, LABELS, seed=3, persons="patient")
        assert [*model.feature_names_in_] == [*FRAME.columns]
        np.testing.assert_array_equal(model.decision_function(FRAME), expected.decision_function(FRAME))


@pytest.mark.parametrize("change", (np.asarray, list, pd.Series, lambda ids: ids.astype(float), lambda ids: ids.astype(object)))
def test_ids_of_any_form_are_the_same_persons(change):
    expected = persons_of(WHO)
    np.testing.assert_array_equal(persons_of(change(WHO)).numbers, expected.numbers)
    texts = np.array([f"p{who}" for who in WHO])
    for form in (np.asarray, list, lambda ids: pd.Series(ids, dtype="category"), pl.Series):
        assert persons_of(form(texts)).n_persons == N


WRONG = {
    "missing": ([None, "a", "b"], ValueError, "missing ids"),
    "nan": (np.array([1.0, np.nan, 2.0]), ValueError, "missing ids"),
    "NaT": (np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"), ValueError, "missing ids"),
    "NA": (pd.Series([1, None, 2], dtype="Int64"), ValueError, "missing ids"),
    "dates": (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), TypeError, "neither all integers nor all texts"),
    "fractions": ([1.5, 2.0, 3.0], TypeError, "neither all integers nor all texts"),
    "mixed": ([1, "1", 2], TypeError, "neither all integers nor all texts"),
    "booleans": ([True, False, True], TypeError, "neither all integers nor all texts"),
    "large floats": (np.array([2.0**60, 1.0, 2.0]), TypeError, "neither all integers nor all texts"),
    "matrix": (np.ones((3, 1)), TypeError, "no vector"),
    "masked": (np.ma.array([1, 2, 3], mask=[0, 0, 1]), TypeError, "no vector"),
    "one": (["a", "a", "a"], ValueError, "one person only"),
}


@pytest.mark.parametrize("case", WRONG)
def test_ids_that_do_not_tell_persons_are_refused_before_the_charge(case):
    ids, error, message = WRONG[case]
    with PrivacyLedger(epsilon=1, delta=1e-3) as ledger, pytest.raises(error, match=message):
        DPLogisticRegression(privacy_unit="person", **BOUNDS).fit(X[:3], LABELS[:3], persons=ids)
    assert not ledger.entries


REFUSED = {
    "no ids": ({}, {}, ValueError, "set_fit_request"),
    "records": ({"privacy_unit": "record"}, {"persons": WHO}, TypeError, "protects single rows"),
    "unit": ({"privacy_unit": "patient"}, {"persons": WHO}, ValueError, r"expected one of \['person', 'record'\]"),
    "length": ({}, {"persons": WHO[1:]}, ValueError, "different lengths"),
    "column": ({}, {"persons": "patient"}, ValueError, "no column of X"),
    "objective": ({"solver": "objective"}, {"persons": WHO}, ValueError, "delta=0 alone"),
    "weights": ({"max_sample_weight": 2}, {"persons": WHO, "sample_weight": np.ones(len(WHO))}, ValueError, "weighs rows itself"),
    "model of errors": (
        {"inference": True, "solver": InferenceDescent(robust=False)},
        {"persons": WHO},
        ValueError,
        "not independent",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_protect_persons_is_refused_before_the_charge(case):
    changed, given, error, message = REFUSED[case]
    model = DPLogisticRegression(**{"privacy_unit": "person", **BOUNDS, **changed})
    with PrivacyLedger(epsilon=1, delta=1e-3) as ledger, pytest.raises(error, match=message) as raised:
        model.fit(X, LABELS, **given)
    assert not ledger.entries
    assert str(len(WHO)) not in str(raised.value)


@pytest.mark.parametrize("y", (np.c_[LABELS, LABELS], LABELS[:, None, None]), ids=("two", "three"))
def test_errors_of_tables_do_not_quote_the_number_of_rows(y):
    with pytest.raises(ValueError) as raised:
        DPLogisticRegression(privacy_unit="person", **BOUNDS).fit(X, y, persons=WHO)
    assert str(len(WHO)) not in str(raised.value)
    for call in (
        lambda: evaluate(of_persons("logistic"), X, np.c_[LABELS, LABELS], persons=WHO),
        lambda: LearnedSchema(privacy_unit="person", learn_target=True).fit(FRAME, np.c_[NUMBERS, NUMBERS], persons=WHO),
    ):
        with pytest.raises(ValueError, match="n_rows") as raised:
            call()
        assert str(len(WHO)) not in str(raised.value)
    weighted = DPLogisticRegression(privacy_unit="person", max_sample_weight=2, **BOUNDS)
    with pytest.raises(ValueError) as raised:
        weighted.fit(X, LABELS, persons=WHO, sample_weight=np.ones(3))
    assert str(len(WHO)) not in str(raised.value)


def test_a_parameter_that_happens_to_be_the_number_of_rows_stays_in_its_error():
    with pytest.raises(ValueError, match=f"alpha=-{len(WHO)};"):
        DPLogisticRegression(privacy_unit="person", alpha=-len(WHO), **BOUNDS).fit(X, LABELS, persons=WHO)
    with pytest.raises(ValueError, match=f"level={len(WHO)};"):
        evaluate(of_persons("logistic"), X, LABELS, level=len(WHO), persons=WHO)


def test_the_summary_of_an_inference_counts_persons():
    model = DPLogisticRegression(inference=True, privacy_unit="person", epsilon=8.0, **BOUNDS).fit(X, LABELS, persons=WHO)
    assert f"n = {N}" in str(model.summary())


def test_public_sizes_of_groups_are_refused():
    saddle = GroupDROSaddle(LinearScorer(3), (len(X),))
    with pytest.raises(ValueError, match="sizes of groups are numbers of rows"):
        DPMinimax(saddle, privacy_unit="person").fit(X, LABELS.astype(float), persons=WHO)


def test_what_a_foreign_query_adds_is_not_known():
    from skdp.privacy.queries import Gradient
    from skdp.privacy.schedule import Gaussian, Release, Schedule
    from skdp.solvers import GradientDescent

    class Own(Gradient):
        pass

    class Descent(GradientDescent):
        def schedule(self, problem):
            (count, release), *rest = super().schedule(problem).entries
            own = Release(Own, Gaussian(), release.clip_norm, release.size)
            return Schedule(((count, own), *rest))

    with pytest.raises(ValueError, match="does not state takes_persons"):
        DPLogisticRegression(privacy_unit="person", solver=Descent(), **BOUNDS).plan(1000, 3)
    Own.takes_persons = True
    assert DPLogisticRegression(privacy_unit="person", solver=Descent(), **BOUNDS).plan(1000, 3).unit


def test_counts_of_persons_get_no_noise_of_integers():
    """A person with rows in many places adds a fraction to each count, and may move each of them once they are rounded."""
    from skdp.privacy.queries import ClassCounts
    from skdp.privacy.schedule import Laplace, Release, Schedule
    from skdp.solvers import GradientDescent

    class Counting(GradientDescent):
        def schedule(self, problem):
            return Schedule(((1, Release(ClassCounts, Laplace(), 1.0, 2)),))

    with pytest.raises(ValueError, match="may be rounded to another integer"):
        DPLogisticRegression(privacy_unit="person", solver=Counting(), **BOUNDS).plan(1000, 3)


def test_the_log_determinant_of_a_person_is_bounded_by_its_trace():
    """16 orthogonal rows of one person move it further than a record can."""
    d, ratio = 16, 1.0
    before, after = np.linalg.slogdet(np.eye(d) / ratio)[1], np.linalg.slogdet(np.eye(d) / ratio + np.eye(d) / d)[1]
    facts = Minimization(100, d, 1.0, 1.0, 1 / ratio, 1.0, True)
    assert facts.log_determinant_of("record") < 0.96 < after - before < facts.log_determinant_of("person") < 1 + 1e-6


def test_objective_perturbation_pays_for_the_trace_of_a_person():
    facts = Minimization(100, 16, 1.0, 1.0, 1.0, 1.0, True)
    mechanism = TiltedObjective("one", facts)
    record, person = (Budget(3.0, 0.0, "zero_out", unit) for unit in ("record", "person"))
    assert mechanism.epsilon(1.0, person) - mechanism.epsilon(1.0, record) == pytest.approx(1 - np.log(2), rel=1e-6)
    assert mechanism.scale(person) == pytest.approx(1 / (0.99 * 3 - 1), rel=1e-6)
    assert mechanism.deltas(1.0, np.array([1.5]), person) > mechanism.deltas(1.0, np.array([1.5]), record)
    assert smallest_strength(1.0, 3.0, "person") > smallest_strength(1.0, 3.0)


def test_a_ledger_of_persons_refuses_fits_of_records():
    person, record = (DPLogisticRegression(privacy_unit=unit, epsilon=0.3, **BOUNDS) for unit in ("person", "record"))
    with PrivacyLedger(epsilon=2, delta=1e-3, unit="person") as ledger:
        person.fit(X, LABELS, persons=WHO)
        for refused in (lambda: record.fit(X, LABELS), lambda: ledger.add(0.1, note="a table")):
            with pytest.raises(PrivacyAccountingError, match="protects records"):
                refused()
        ledger.add(0.1, note="a table of persons", unit="person")
    assert ledger.unit == "person" and "of persons" in str(ledger.entries[0])
    with PrivacyLedger(epsilon=2, delta=1e-3) as ledger:
        assert ledger.unit is None
        record.fit(X, LABELS)
        person.fit(X, LABELS, persons=WHO)
    assert ledger.unit == "record" and [entry.spending.unit for entry in ledger.entries] == ["record", "person"]


def test_older_ledgers_count_records(tmp_path):
    from skdp.privacy.ledger.entries import LedgerEntry, Spending
    from skdp.privacy.ledger.privacy_filter import Charge

    entry = LedgerEntry(1, "now", Spending("a", {}, (), "zero_out", 1.0, 1e-6), Charge(1.0, 1e-6, 0.1, 0.0))
    content = json.loads(entry.to_json())
    del content["spending"]["unit"]
    assert LedgerEntry.from_json(json.dumps(content)) == entry


def test_plans_count_persons():
    model = DPLogisticRegression(privacy_unit="person", **BOUNDS)
    by_number, by_table = model.plan(N, 3), model.plan(X, persons=WHO)
    assert by_number.spent == by_table.spent and by_table.public["n_persons"] == N
    assert "of persons" in by_table.guarantee and f"{N:,} persons" in by_table.unit
    with pytest.raises(ValueError, match="without persons"):
        model.plan(X)
    tabular = DPTabularClassifier(privacy_unit="person").plan(FRAME.assign(p=WHO), persons="p")
    assert tabular.public["n_persons"] == N and tabular.spent.delta == N**-2.0


def test_learned_schemas_count_persons():
    schema = fitted(LearnedSchema(privacy_unit="person"), FRAME.assign(p=WHO), persons="p")
    assert [*schema.schema_.columns] == [*FRAME.columns]
    assert schema.privacy_report_.public["n_persons"] == N and "number of rows" in str(schema.privacy_report_)


class Powers:
    """A model of positive means."""

    def predict(self, X):
        return 4 * np.exp(np.asarray(X) @ [0.2, -0.5, 0.1])


def test_an_evaluation_of_persons_is_of_a_random_row_of_a_random_person():
    model = of_persons("logistic")
    shares = 1 / SIZES[WHO]
    with pytest.warns(skdp.NotPrivateWarning):
        found = evaluate(model, X, LABELS, metrics=["accuracy", "log_loss"], epsilon=np.inf, persons=WHO)
    accuracy = np.average(model.predict(X) == LABELS, weights=shares)
    assert found["accuracy"].value == pytest.approx(accuracy, abs=2e-3)
    assert found.privacy_report.public["n_persons"] == N
    numbers = of_persons("linear")
    with pytest.warns(skdp.NotPrivateWarning):
        errors = evaluate(numbers, X, NUMBERS, metrics=["mae"], epsilon=np.inf, persons=WHO, error_bound=4.0)
    assert errors["mae"].value == pytest.approx(np.average(abs(numbers.predict(X) - NUMBERS), weights=shares), abs=2e-3)
    counts = np.round(4 * (NUMBERS + 1))
    with pytest.warns(skdp.NotPrivateWarning):
        deviances = evaluate(Powers(), X, counts, metrics=["d2_poisson"], epsilon=np.inf, persons=WHO, error_bound=1e4)
    expected = d2_tweedie_score(counts, Powers().predict(X), power=1, sample_weight=shares)
    assert deviances["d2_poisson"].value == pytest.approx(expected, rel=1e-5)
    planned = plan_evaluation(N, privacy_unit="person")
    assert planned.public["n_persons"] == N and "of persons" in planned.guarantee


def test_evaluations_of_persons_refuse_what_they_cannot_do():
    model = of_persons("logistic")
    with pytest.raises(ValueError, match="weighted counts are no integers"):
        evaluate(model, X, LABELS, noise="laplace", persons=WHO)
    with pytest.raises(ValueError, match="fewer than 50 persons"):
        evaluate(model, X, LABELS, persons=WHO % 40)
    for one in (model, make_pipeline(FunctionTransformer(), model).fit(X, LABELS, dplogisticregression__persons=WHO)):
        with pytest.warns(UserWarning, match="this evaluation protects single rows"):
            evaluate(one, X, LABELS)


@pytest.mark.parametrize("foreign", (False, True))
def test_predictions_for_others_do_not_depend_on_the_number_of_rows_of_a_person(foreign, monkeypatch):
    """Her rows come first, and move all others; BLAS gives rows other bits at other places."""
    rng = np.random.default_rng(0)
    shared, labels = rng.normal(size=(700, 50)), rng.integers(2, size=700)
    kind = LogisticRegression() if foreign else DPLogisticRegression(epsilon=9.0, data_norm=9.0)
    model, seen = kind.fit(shared, labels), []
    model.coef_ = rng.normal(size=model.coef_.shape) / 9  # the same in each run, with log-odds that are not clipped
    model.intercept_ = 0.1 * np.ones_like(model.intercept_)
    monkeypatch.setattr(ScoredRecords, "of_persons", lambda records, persons: seen.append(records.scores) or records)
    monkeypatch.setattr(NoiseSource, "key", lambda noise: bytes(32))  # of the order of persons
    for k in (1, 2, 3, 5, 40):
        rows, ids = np.vstack([np.ones((k, 50)), shared]), np.r_[np.zeros(k, dtype=int), np.arange(1, 701)]
        evaluate(model, rows, np.r_[np.ones(k, dtype=int), labels], metrics=["accuracy"], persons=ids, epsilon=9.0)
        np.testing.assert_array_equal(seen[-1][k:], seen[0][1:])


def test_ids_do_not_decide_at_which_place_a_model_predicts_for_a_person():
    """Another id of one person would move all others."""

    class Seeing(LogisticRegression):
        def predict_proba(self, rows):
            seen.append(np.asarray(rows)[:, -1].tolist())
            return super().predict_proba(rows)

    seen, rows = [], np.column_stack([X, WHO])
    model = Seeing().fit(rows, LABELS)
    evaluate(model, rows, LABELS, metrics=["accuracy"], persons=WHO)
    tables = [table for table in seen if len(table) == N]
    assert tables[0] == tables[1] != sorted(tables[0]) == list(range(N))  # sorted with a probability below 1e-80


def test_what_a_model_prints_does_not_tell_the_number_of_rows_of_a_person(capsys):
    model = RandomForestClassifier(2, verbose=1, random_state=0).fit(X, LABELS)
    capsys.readouterr()
    evaluate(model, X, LABELS, metrics=["accuracy"], persons=WHO)
    assert "".join(capsys.readouterr()) == ""


def test_a_model_that_fails_for_a_person_has_no_prediction_for_her():
    class Failing(LogisticRegression):
        def predict_proba(self, rows):
            if (np.asarray(rows) > 5).any():
                raise ValueError(f"cannot predict for {rows}")
            return super().predict_proba(rows)

    rows = X.copy()
    rows[WHO == 7] = 9.0
    model = Failing().fit(X, LABELS)
    found = evaluate(model, rows, LABELS, metrics=["accuracy"], epsilon=9.0, persons=WHO)
    assert 0.5 < found["accuracy"].value < 1


@pytest.mark.slow
def test_cross_validation_passes_ids_on_and_splits_persons():
    model = DPLogisticRegression(privacy_unit="person", **BOUNDS)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = model.set_fit_request(persons="groups")
        with warnings.catch_warnings():
            warnings.simplefilter("error", OutsideGuaranteeWarning)
            for cv in (GroupShuffleSplit(2, random_state=0), *folds()):
                found = cross_validate(routed, X, LABELS, params={"groups": WHO}, cv=cv, error_score="raise")
                assert found["test_score"].min() > 0.5
    with pytest.raises(ValueError, match="set_fit_request"):
        cross_validate(model, X, LABELS, groups=WHO, cv=GroupShuffleSplit(2), error_score="raise")


def folds():
    """Return folds of persons, where scikit-learn shuffles them."""
    return (GroupKFold(3, shuffle=True, random_state=0),) if "shuffle" in GroupKFold.__init__.__code__.co_varnames else ()


@pytest.mark.slow
def test_searches_and_curves_that_cut_rows_are_outside_the_guarantee():
    cv = GroupShuffleSplit(2, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPLogisticRegression(privacy_unit="person", **BOUNDS).set_fit_request(persons="groups")
        given = {"groups": WHO}
        with pytest.warns(OutsideGuaranteeWarning, match="learning_curve splits or draws rows"):
            learning_curve(model, X, LABELS, params=given, cv=cv, train_sizes=[0.5, 1.0], error_score="raise")
        with pytest.warns(OutsideGuaranteeWarning, match="HalvingGridSearchCV splits or draws rows"):
            HalvingGridSearchCV(model, {"alpha": [0.01, 0.1]}, cv=cv, min_resources=900).fit(X, LABELS, **given)
        late = DPLogisticRegression(**BOUNDS).set_fit_request(persons=True)
        with pytest.warns(OutsideGuaranteeWarning, match="cv=2 of GridSearchCV splits or draws rows"):
            GridSearchCV(late, {"privacy_unit": ["person"]}, cv=2, error_score="raise").fit(X, LABELS, persons=WHO)
        with PrivacyLedger(epsilon=0.5, delta=1e-3), warnings.catch_warnings():
            warnings.simplefilter("error", OutsideGuaranteeWarning)
            search = GridSearchCV(model, {"alpha": [0.01, 0.1]}, cv=cv, error_score="raise")
            with pytest.raises(skdp.BudgetExceededError, match="DPLogisticRegression would spend"):  # a fit, not the search
                search.fit(X, LABELS, **given)


@pytest.mark.slow
def test_groups_that_are_another_array_than_persons_are_outside_the_guarantee():
    """Only whether it is the same array is looked at: equal ids in another one warn, too."""
    model, cv = DPLogisticRegression(privacy_unit="person", **BOUNDS), GroupShuffleSplit(2, random_state=0)
    table = pd.DataFrame({"who": WHO})
    for persons, warned in ((table["who"], False), (WHO.copy(), True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            params = {"persons": persons}
            cross_validate(model, X, LABELS, groups=table["who"], params=params, cv=cv, error_score="raise")
            search = GridSearchCV(model, {"alpha": [0.1]}, cv=cv, error_score="raise")
            search.fit(X, LABELS, groups=table["who"], **params)
        texts = [str(warning.message) for warning in caught]
        assert [name for name in ("cross_validate", "GridSearchCV") if any(name in text for text in texts)] == (
            ["cross_validate", "GridSearchCV"] if warned else []
        )


@pytest.mark.slow
def test_scorers_take_persons_as_scikit_learn_routes_them():
    model = DPLogisticRegression(privacy_unit="person", **BOUNDS)
    cv = GroupShuffleSplit(2, test_size=100, random_state=0)
    scorer = dp_scorer("accuracy", epsilon=9.0, privacy_unit="person")
    with PrivacyLedger(epsilon=30.0, delta=1e-2) as ledger, sklearn.config_context(enable_metadata_routing=True):
        routed = model.set_fit_request(persons="groups")
        with pytest.raises(UnsetMetadataPassedError, match="persons"):
            cross_validate(routed, X, LABELS, params={"persons": WHO, "groups": WHO}, cv=cv, scoring=scorer)
        assert not ledger.entries
        scorer.set_score_request(persons="groups")
        with warnings.catch_warnings():
            warnings.simplefilter("error", OutsideGuaranteeWarning)
            given = {"params": {"groups": WHO}, "cv": cv, "error_score": "raise"}
            found = cross_validate(routed, X, LABELS, scoring={"a": scorer, "b": "accuracy"}, **given)
            search = GridSearchCV(routed, {"alpha": [0.1]}, cv=cv, scoring=pickle.loads(pickle.dumps(scorer)), refit=False)
            search.fit(X, LABELS, groups=WHO)
    assert np.abs(found["test_a"] - found["test_b"]).max() < 0.3 and search.best_score_ > 0.5
    scores = [entry.spending for entry in ledger.entries if entry.spending.estimator == "evaluate"]
    assert len(scores) == 4 and {spending.unit for spending in scores} == {"person"}
    assert all(spending.delta == 1e-4 for spending in scores)  # of 100 persons


def test_scorers_without_routing_say_what_is_missing():
    model = fitted(DPLogisticRegression(privacy_unit="person", **BOUNDS), X, LABELS, persons=WHO)
    with pytest.raises(ValueError, match=r"expected scorer\(model, X, y, persons=ids\).*set_score_request\(persons='groups'\)"):
        dp_scorer("accuracy", privacy_unit="person")(model, X, LABELS)
    with pytest.raises(TypeError, match="expected privacy_unit='person'"):
        dp_scorer("accuracy")(model, X, LABELS, persons=WHO)
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        dp_scorer("accuracy").set_score_request(persons="groups")
    with pytest.raises(ValueError, match="privacy_unit='household'"):
        dp_scorer("accuracy", privacy_unit="household")
    sums = LogisticRegression().fit(X, LABELS)
    with sklearn.config_context(enable_metadata_routing=True), pytest.warns(OutsideGuaranteeWarning, match="not persons"):
        scorer = dp_scorer("accuracy", epsilon=9.0, privacy_unit="person").set_score_request(persons=True)
        cross_validate(sums, X, LABELS, params={"persons": WHO}, cv=KFold(2), scoring=scorer, error_score="raise")


@pytest.mark.parametrize("cv", (KFold(2), 2, GroupKFold(2)), ids=str)
def test_folds_of_rows_are_outside_the_guarantee(cv):
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPLogisticRegression(privacy_unit="person", **BOUNDS).set_fit_request(persons=True)
        given = {"groups": WHO} if isinstance(cv, GroupKFold) else {}
        with pytest.warns(OutsideGuaranteeWarning, match="not persons"):
            cross_validate(model, X, LABELS, params={"persons": WHO, **given}, cv=cv, error_score="raise")


def test_bags_of_rows_are_outside_the_guarantee():
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPLogisticRegression(privacy_unit="person", **BOUNDS).set_fit_request(persons=True)
        with pytest.warns(OutsideGuaranteeWarning, match="not persons"):
            BaggingClassifier(model, 2, max_samples=0.5, bootstrap=False).fit(X, LABELS, persons=WHO)


@pytest.mark.slow
@pytest.mark.filterwarnings("default::skdp.TableWarning")
def test_names_of_ids_of_persons_warn_of_fits_that_protect_rows():
    frame = FRAME.set_index(pd.Index(WHO, name="patient_id"))
    with pytest.warns(skdp.TableWarning, match="index of X has the name of ids of persons, 'patient_id'.*privacy_unit='person'"):
        DPTabularClassifier().plan(frame)
    with pytest.warns(skdp.TableWarning, match=r"\['patient'\] have names of ids.*privacy_unit='person'"):
        DPTabularClassifier().plan(FRAME.assign(patient=WHO))
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.TableWarning)
        DPTabularClassifier(privacy_unit="person").plan(frame, persons=WHO)
        DPTabularClassifier(privacy_unit="person").plan(FRAME.assign(patient=WHO), persons="patient")


def test_the_report_says_whom_it_protects():
    text = re.sub(r"\s+", " ", str(DPLogisticRegression(privacy_unit="person", **BOUNDS).plan(X, persons=WHO)))
    for line in (
        "differential privacy of persons, each with all her rows",
        f"{N:,} persons. A row weighs one over the number of rows of its person",
        "all rows of one person replaced by any other rows",
        f"n_persons = {N}",
        "rows are of one person if and only if their ids are equal",
        "the model describes a random row of a random person",
    ):
        assert line in text
    assert "a person with k records" not in text
