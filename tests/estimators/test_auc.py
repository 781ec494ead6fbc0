"""Test DPAUCMaximizer: its releases, that class frequencies are never read without noise, and how well it ranks."""

import math

import numpy as np
import pytest
from seeded import fitted
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from benchmarks.tables import load
from skdp import DPAUCMaximizer, DPLogisticRegression, PrivacyLedger
from skdp.losses import Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import LabelSum, StandardizedGradient
from skdp.solvers import AUCProblem, StandardizedGradientDescent

RATES = pytest.mark.parametrize("rate", (None, 0.1))


def imbalanced(rng, n=4000, intercept=-3.0):
    """About one positive in ten, of an AUC of .9."""
    X = rng.normal(size=(n, 4)) / 4
    return X, (8 * X @ [1.0, -1.0, 0.5, 0.0] + intercept + rng.logistic(size=n) > 0).astype(int)


def problem(adjacency="zero_out", n=10_000, **more):
    budget = Budget(1.0, 1e-6, adjacency)
    return AUCProblem(n, 8, Logistic(), budget, data_norm=1.0, intercept_scaling=1.0, **more)


def queries_of(model, X, y, monkeypatch):
    """What a fit asks, and the model."""
    asked, ask = [], Oracle.ask
    with monkeypatch.context() as during:
        during.setattr(Oracle, "ask", lambda self, query: (asked.append(query), ask(self, query))[1])
        fitted(model, X, y)
    return asked


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize(
    "solver, rate, shares",
    (
        (StandardizedGradientDescent(), None, (0.01, 0.09, 0.90)),
        (StandardizedGradientDescent(labels_share=0.04), None, (0.04, 0.09, 0.87)),
        (StandardizedGradientDescent(), 0.2, (0.09, 0.91)),
    ),
)
def test_nothing_is_spent_on_probabilities_nor_on_frequencies_that_are_public(solver, rate, shares, adjacency):
    facts = problem(adjacency, positive_rate=rate)
    schedule = solver.schedule(facts)
    scale = calibrate(schedule, facts.budget)
    spent = [count / (release.mechanism.weight * scale) ** 2 for count, release in schedule.entries]
    assert spent == pytest.approx([share * gaussian_mu(1.0, 1e-6) ** 2 for share in shares])


@RATES
@pytest.mark.parametrize("balance", (0.0, 1.0))
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_transcript_is_the_schedule(rate, balance, adjacency, rng, monkeypatch):
    model = DPAUCMaximizer(positive_rate=rate, class_balance=balance, adjacency=adjacency)
    asked = [type(query).__name__ for query in queries_of(model, *imbalanced(rng, 500), monkeypatch)]
    assert asked == [line.query for line in model.privacy_report_.releases for _ in range(line.count)]
    assert asked[:2] == (["LabelSum", "Moments"] if rate is None else ["Moments", "StandardizedGradient"])
    assert 0.999 <= model.privacy_spent_.epsilon <= 1


@pytest.mark.slow
@pytest.mark.parametrize("balance", (0.0, 0.5, 1.0))
def test_the_positive_rate_is_never_read_in_the_clear(balance, rng, monkeypatch):
    """Every answer but the released frequencies is replaced by one that has no y in it: labels can be anything then."""
    X, y = imbalanced(rng, 400)
    coefs = {}
    evaluate = StandardizedGradient.evaluate
    blind = {
        LabelSum: lambda self, rows: np.array([-200.0]),
        StandardizedGradient: lambda self, rows: evaluate(
            self, TrainingData(X, np.arange(400) % 2, data_norm=2.0, intercept_scaling=1.0)
        ),
    }
    for query, answer in blind.items():
        monkeypatch.setattr(query, "evaluate", answer)
    for rate in (None, 0.2):
        for labels in (y, 1 - y, np.arange(400) == 7):
            model = fitted(DPAUCMaximizer(positive_rate=rate, class_balance=balance), X, labels.astype(int))
            coefs.setdefault(rate, []).append(np.append(model.coef_, model.intercept_))
        np.testing.assert_array_equal(coefs[rate][0], coefs[rate][1])
        np.testing.assert_array_equal(coefs[rate][0], coefs[rate][2])


@pytest.mark.parametrize("balance", (0.5, 1.0))
@pytest.mark.parametrize("rate", (0.02, 0.8))
def test_the_larger_class_weighs_less_by_the_given_power(balance, rate, rng, monkeypatch):
    """A given rate counts, not that of y: the weights are (p_min / p_maj)**b, and every gradient has them."""
    X, y = imbalanced(rng, 1000)
    asked = queries_of(DPAUCMaximizer(positive_rate=rate, class_balance=balance), X, y, monkeypatch)
    smaller = (min(rate, 1 - rate) / max(rate, 1 - rate)) ** balance
    weights = {query.class_weight for query in asked if isinstance(query, StandardizedGradient)}
    assert len(weights) == 1
    assert weights.pop() == pytest.approx((smaller, 1.0) if rate < 0.5 else (1.0, smaller))
    start = next(query.coef for query in asked if isinstance(query, StandardizedGradient))
    assert start[-1, 0] == pytest.approx((1 - balance) * math.log(rate / (1 - rate)))  # log-odds of the weighted classes
    assert (start[:-1] == 0).all()


def test_released_frequencies_set_the_weights(rng, monkeypatch):
    """Those of y within the noise, which is 0.003 here."""
    X, y = imbalanced(rng)
    for labels in (y, 1 - y):
        model = DPAUCMaximizer(3.0, class_balance=1.0, adjacency="zero_out")
        *_, last = queries_of(model, X, labels, monkeypatch)
        rare, odds = min(y.mean(), 1 - y.mean()), min(last.class_weight) / max(last.class_weight)
        assert odds / (1 + odds) == pytest.approx(rare, abs=0.015)
        assert (last.class_weight[1] == 1) == (labels.mean() < 0.5)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("balance", (0.0, 0.5, 1.0))
@pytest.mark.parametrize("rate", (None, 0.25))
def test_without_noise_it_is_the_weighted_model_of_scikit_learn(balance, rate, rng):
    X, y = imbalanced(rng, 1000, intercept=-1.5)
    solver = StandardizedGradientDescent(ridge=0.0)
    model = DPAUCMaximizer(math.inf, solver=solver, positive_rate=rate, class_balance=balance, data_norm=9.0).fit(X, y)
    share = y.mean() if rate is None else rate
    theirs = LogisticRegression(C=1e8, class_weight={0: (share / (1 - share)) ** balance, 1: 1.0}, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=0.01, atol=0.01)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=0.01, atol=0.02)


@pytest.mark.parametrize("rate", (1e-300, 1e-12, 1 - 1e-12))
@pytest.mark.parametrize("balance", (0.0, 1.0))
def test_a_given_rate_beyond_one_record_counts_as_one(rate, balance, rng):
    X, y = imbalanced(rng, 500)
    models = [
        fitted(DPAUCMaximizer(positive_rate=given, class_balance=balance), X, y)
        for given in (rate, 1 / 500 if rate < 0.5 else 1 - 1 / 500)
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)


def test_scores_labels_and_their_quality(rng):
    X, y = imbalanced(rng)
    names = np.array(["no", "yes"])[y]
    model = fitted(DPAUCMaximizer(2.0), X, names)
    raw = model.decision_function(X)
    assert raw.shape == (4000,) and model.coef_.shape == (1, 4) and model.intercept_.shape == (1,)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(raw > 0).astype(int)])
    weights = rng.random(4000)
    assert model.score(X, names) == roc_auc_score(y, raw) > 0.85
    assert model.score(X, names, weights) == roc_auc_score(y, raw, sample_weight=weights)
    reference = LogisticRegression(C=1e4).fit(X, y).decision_function(X)
    assert model.score(X, names) > roc_auc_score(y, reference) - 0.01
    assert cross_val_score(clone(model), X, names, cv=3).min() > 0.8
    with pytest.raises(ValueError, match="y holds one class only"):
        model.score(X[:3], ["no"] * 3)
    with pytest.raises(ValueError, match="labels that are not in classes_"):
        model.score(X[:3], ["no", "yes", "perhaps"])


def test_there_are_no_probabilities(rng):
    model = fitted(DPAUCMaximizer(), *imbalanced(rng, 100))
    assert not hasattr(model, "predict_log_proba") and not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="its scores are for ranking"):
        model.predict_proba(np.zeros((1, 4)))


@pytest.mark.parametrize(
    "given, error, message",
    (
        ({"positive_rate": 0.0}, ValueError, "positive_rate=0.0; expected a finite number > 0 and < 1, or None"),
        ({"positive_rate": 1}, ValueError, "positive_rate=1; expected a finite number > 0 and < 1, or None"),
        ({"positive_rate": "auto"}, TypeError, "positive_rate='auto'; expected"),
        ({"class_balance": 1.5}, ValueError, "class_balance=1.5; expected a finite number >= 0 and <= 1"),
        ({"class_balance": None}, TypeError, "class_balance=None; expected"),
        ({"scorer": "tree"}, ValueError, r"scorer='tree'; expected one of \['linear', 'mlp'\]"),
        ({"hidden_layer_sizes": 7}, TypeError, "hidden_layer_sizes=7; expected a tuple of 1 to 16 integers"),
        ({"hidden_layer_sizes": ()}, TypeError, r"hidden_layer_sizes=\(\); expected"),
        ({"hidden_layer_sizes": (8, 0)}, ValueError, r"hidden_layer_sizes\[1\]=0; expected an integer >= 1"),
        (
            {"solver": "gd"},
            ValueError,
            "'gd' needs a mean of losses of single records.*Solvers that fit: .*standardized_gd",
        ),
        ({"solver": "newton"}, ValueError, "but the problem has two classes to rank, the logistic loss"),
        (
            {"solver": "moments", "scorer": "mlp"},
            ValueError,
            "linear in the features, but the problem has two classes to rank by a network",
        ),
        ({"hidden_layer_sizes": 32}, TypeError, r"expected a tuple of 1 to 16 integers, such as \(32,\)"),
        ({"solver": "newton"}, ValueError, "'newton' needs a mean of losses of single records"),
        ({"delta": 0}, ValueError, "solver='standardized_gd' does not support pure epsilon-DP"),
        ({"classes": [0, 1, 2]}, ValueError, "Only binary classification is supported.* 3 classes; expected two"),
    ),
)
def test_what_does_not_fit_is_refused_before_anything_is_paid_for(given, error, message, rng):
    X, y = imbalanced(rng, 50)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-2)
    for call in (lambda: DPAUCMaximizer(**given).plan(1000, 3), lambda: DPAUCMaximizer(**given).fit(X, y)):
        with ledger, pytest.raises(error, match=message):
            call()
    assert not ledger.entries


@pytest.mark.parametrize("labels", ([0] * 30, np.arange(30) % 3))
def test_other_numbers_of_classes_cost_nothing(labels):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-2)
    with ledger, pytest.raises(ValueError, match="class"):
        DPAUCMaximizer().fit(np.eye(30, 3), labels)
    assert not ledger.entries
    with pytest.raises(ValueError, match="there are 4 classes; expected two"):
        DPAUCMaximizer().plan(100, 3, 4)


@pytest.mark.parametrize(
    "name", ("class_weight", "clip_norm", "fit_intercept", "l1_ratio", "loss", "C", "activation", "learning_rate")
)
def test_parameters_of_other_classifiers_are_refused_with_the_reason(name):
    for call in (lambda: DPAUCMaximizer(**{name: 1}), lambda: DPAUCMaximizer().set_params(**{name: 1})):
        with pytest.raises(TypeError, match=f"DPAUCMaximizer does not take {name}: .{{20}}"):
            call()
    with pytest.raises(TypeError, match="class_balance"):
        DPAUCMaximizer(class_weight={})


def test_the_report_states_what_is_public(rng):
    report = DPAUCMaximizer(positive_rate=0.03, class_balance=0.5).plan(10_000, 5)
    assert report.solver == "standardized_gd" and "solver='auto'" in report.solver_reason
    assert report.solver_title == "gradient descent on privately standardised features"
    assert "calibration" in DPLogisticRegression().plan(100, 3).solver_title
    assert report.public["parameters"]["positive_rate"] == "0.03" and report.public["parameters"]["class_balance"] == "0.5"
    assert [line.query for line in report.releases] == ["Moments", "StandardizedGradient"]
    assert not DPAUCMaximizer().__sklearn_tags__().classifier_tags.multi_class
    assert DPAUCMaximizer().__sklearn_tags__().classifier_tags.poor_score
    assert not DPAUCMaximizer(math.inf).__sklearn_tags__().classifier_tags.poor_score


FLOORS = {  # least median AUC, how far below logistic regression at epsilon 1, and of how many fits
    ("mammography", 0.5): (0.90, 1.0, 5),
    ("mammography", 1.0): (0.92, 0.01, 5),
    ("bank", 1.0): (0.885, 0.005, 3),
    ("ijcnn1", 1.0): (0.90, 0.005, 3),
}


def median_auc(kind, table, epsilon, n_seeds):
    given = {"delta": 1 / len(table.y_train) ** 2, "adjacency": "zero_out", "data_norm": 1.0}
    fits = [fitted(kind(epsilon, **given), table.X_train, table.y_train, seed=seed) for seed in range(n_seeds)]
    return np.median([roc_auc_score(table.y_test, fit.decision_function(table.X_test)) for fit in fits])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name, epsilon", FLOORS)
def test_it_ranks_real_tables(name, epsilon):
    """With default arguments."""
    try:
        table = load(name)
    except FileNotFoundError:
        pytest.skip(f"no data sets: SKDP_DATA names no directory that holds {name}")
    least, behind, n_seeds = FLOORS[name, epsilon]
    reached = median_auc(DPAUCMaximizer, table, epsilon, n_seeds)
    assert reached >= least
    assert reached >= median_auc(DPLogisticRegression, table, epsilon, n_seeds) - behind
