"""Test DPLinearSVC: LinearSVC's model without noise, one release for all classes, and scikit-learn's conventions."""

import math
import re

import numpy as np
import pytest
from seeded import fitted
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from benchmarks.tables import data_directory, load
from skdp import DPLinearSVC, DPLogisticRegression
from skdp.estimators._svm import LOSSES
from skdp.losses import Hinge
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import CurvedLoss, Gradient
from skdp.solvers import Newton, StandardizedGradientDescent

every_loss = pytest.mark.parametrize("loss", LOSSES)


def classes_of(rng, n_classes, n=1500):
    """Features in [-1, 1] and labels that a linear model can tell in about four cases of five."""
    X = rng.uniform(-1, 1, size=(n, 3))
    signal = X @ np.array([[2.0, -2.0, 0.5, 1.0], [-1.0, 2.0, 2.0, -2.0], [0.5, 0.0, -2.0, 2.0]])[:, :n_classes]
    return X, (2 * signal + rng.gumbel(size=(n, n_classes))).argmax(axis=1)


def of_scikit_learn(loss, X, y):
    """Coefficients and intercepts of one class against the rest, with a free intercept."""
    binary = SVC(kernel="linear") if loss == "hinge" else LinearSVC(loss=loss, dual=False, intercept_scaling=1000.0, tol=1e-9)
    parts = OneVsRestClassifier(binary).fit(X, y).estimators_
    return np.concatenate([part.coef_ for part in parts]), np.concatenate([part.intercept_ for part in parts])


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("loss", ("hinge", "squared_hinge"))
@pytest.mark.parametrize("n_classes", (2, 4))
def test_without_noise_it_is_the_model_of_scikit_learn(loss, n_classes):
    """Its objective exceeds the least by 0.3 percent at most, and hardly a label differs."""
    X, y = classes_of(np.random.default_rng(2), n_classes, 500)
    model = DPLinearSVC(math.inf, loss=loss, solver=StandardizedGradientDescent(ridge=0.0), alpha=1 / 500).fit(X, y)
    kind = LOSSES[loss](1 if n_classes == 2 else n_classes)
    theirs = of_scikit_learn(loss, X, y)
    reached, least = (
        kind.value(X @ coef.T + intercept, y).mean() + np.sum(coef**2) / 1000
        for coef, intercept in ((model.coef_, model.intercept_), theirs)
    )
    raw = X @ theirs[0].T + theirs[1]
    assert least * (1 - 1e-3) < reached < least * 1.003
    assert (model.predict(X) == (raw[:, 0] > 0 if n_classes == 2 else raw.argmax(axis=1))).mean() > 0.98


@pytest.mark.each_value
@every_loss
@pytest.mark.parametrize("solver", ("auto", "objective", "newton", "svrg"))
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_labels_are_found_in_spite_of_the_noise(loss, solver, adjacency, rng):
    """Where the non-private model has an accuracy of .8 to .9; the noise of a fit moves it by less than .02."""
    X, y = classes_of(rng, 2, 4000)
    model = DPLinearSVC(3.0, loss=loss, solver=solver, adjacency=adjacency)
    smooth, tilted = LOSSES[loss]().smoothness < math.inf, isinstance(LOSSES[loss](), CurvedLoss) and LOSSES[loss].bounded
    if not {"objective": tilted, "auto": True}.get(solver, smooth):
        with pytest.raises(ValueError, match="needs"):
            model.fit(X, y)
        return
    assert fitted(model, X, y).score(X, y) > LinearSVC().fit(X, y).score(X, y) - 0.05


@pytest.mark.parametrize("loss", ("huber_hinge", "squared_hinge"))
@pytest.mark.parametrize("upper_bound", (True, False))
def test_one_hessian_serves_all_steps_of_newton(loss, upper_bound, rng):
    """Also for a loss that is straight at zero, where its second derivative says nothing."""
    X, y = classes_of(rng, 2, 4000)
    model = fitted(DPLinearSVC(3.0, loss=loss, solver=Newton(upper_bound=upper_bound)), X, y)
    exact = fitted(DPLogisticRegression(3.0), X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.02
    assert np.abs(model.coef_).max() < 10


@every_loss
def test_all_classes_share_one_release_per_step(loss):
    """So the noise over the clip norm does not depend on the number of classes, and nothing is composed but the steps."""
    plans = [DPLinearSVC(loss=loss).plan(10_000, 5, k) for k in (3, 7)]
    assert [line.query for line in plans[0].releases] == ["ClassCounts", "Moments", "StandardizedGradient"]
    assert [line.noise_multiplier for line in plans[0].releases] == [line.noise_multiplier for line in plans[1].releases]
    assert [line.count for line in plans[0].releases] == [line.count for line in plans[1].releases]


@every_loss
def test_the_gradients_of_all_classes_are_clipped_as_one_vector(loss, rng):
    """Found by search: a record moves the sum by 2 C under replace_one, the matrix of all classes together, and never further."""
    kind, largest = LOSSES[loss](4), 0.0
    for clip_norm in (0.3, 1.0):
        for trial in range(200):
            coef = rng.normal(size=(3, 4)) * rng.choice([0.1, 1.0, 100.0])
            pair = rng.normal(size=(2, 3)) * rng.choice([0.1, 1.0, 10.0])
            pair = np.stack([pair[0], -pair[0]]) if trial % 2 else pair
            labels = rng.integers(0, 4, 2).astype(np.int8)
            sums = [
                Gradient(kind, coef, clip_norm).evaluate(TrainingData(pair[[i]], labels[[i * (1 - trial % 2)]], data_norm=2.0))
                for i in (0, 1)
            ]
            change = np.linalg.norm(sums[0] - sums[1]) / (2 * clip_norm)
            assert change <= 1 + 1e-9
            largest = max(largest, change)
    assert largest > 0.99


@pytest.mark.slow
def test_one_constant_model_where_nothing_can_be_told(rng):
    """At 300 records and epsilon 0.1 nothing but the larger class: three of four fits, or more, predict it nearly always."""
    X, y = rng.normal(size=(300, 5)), (rng.random(300) < 0.9).astype(int)
    for loss in LOSSES:
        fits = [fitted(DPLinearSVC(0.1, loss=loss, adjacency="zero_out"), X, y, seed=seed) for seed in range(12)]
        assert np.mean([fit.predict(X).mean() > 0.8 for fit in fits]) >= 0.75


@pytest.mark.each_value
@every_loss
@pytest.mark.parametrize("n_classes", (2, 3))
def test_class_weights_favour_a_class(loss, n_classes, rng):
    X, y = classes_of(rng, n_classes)
    heavy = {0: 5.0, 1: 0.5}
    shares = [
        (fitted(DPLinearSVC(3.0, loss=loss, class_weight=weights), X, y).predict(X) == 0).mean() for weights in (None, heavy)
    ]
    assert shares[1] > shares[0] + 0.05


@pytest.mark.parametrize("method", ("predict_proba", "predict_log_proba"))
def test_there_are_no_probabilities(method, rng):
    X, y = classes_of(rng, 2, 100)
    assert not hasattr(DPLinearSVC().fit(X, y), method)
    assert hasattr(DPLogisticRegression(), method)


@pytest.mark.parametrize("n_classes", (2, 3))
def test_decisions_and_labels_belong_together(n_classes, rng):
    X, y = classes_of(rng, n_classes)
    names = np.array(["no", "perhaps", "yes"])[y]
    model = fitted(DPLinearSVC(), X, names)
    raw = model.decision_function(X)
    assert raw.shape == ((1500,) if n_classes == 2 else (1500, 3))
    places = (raw > 0).astype(int) if n_classes == 2 else raw.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[places])
    assert model.coef_.shape == ((1, 3) if n_classes == 2 else (3, 3)) and model.intercept_.shape == model.coef_.shape[:1]
    assert model.score(X, names) == (model.predict(X) == names).mean() > 0.6


@pytest.mark.parametrize(
    "given, n_classes, message",
    (
        ({"loss": "logistic"}, 2, "loss='logistic'; expected one of " + re.escape(str(sorted(LOSSES)))),
        ({"loss": Hinge}, 2, "loss=.*expected one of"),
        ({"loss": "hinge", "solver": "svrg"}, 2, "solver='svrg' needs a smooth loss"),
        ({"loss": "hinge", "solver": "newton"}, 2, "needs a loss whose second derivative is known and a smooth loss"),
        ({"loss": "hinge", "solver": "output"}, 2, "needs a loss whose second derivative is known and a smooth loss"),
        ({"loss": "squared_hinge", "solver": "objective"}, 2, "solver='objective' needs a loss whose slope is bounded"),
        ({"loss": "squared_hinge", "solver": "output"}, 2, "solver='output' needs a loss whose slope is bounded"),
        ({"solver": "objective"}, 3, "needs exactly two classes and a loss whose second derivative is known"),
        ({"solver": "newton"}, 3, "needs exactly two classes and a loss whose second derivative is known"),
        ({"delta": 0}, 3, "delta=0"),
        ({"delta": 0, "loss": "hinge"}, 2, "delta=0"),
        ({"solver": "whitened_gd"}, 2, "needs a number to predict"),
    ),
)
def test_what_does_not_fit_is_refused(given, n_classes, message):
    with pytest.raises(ValueError, match=message):
        DPLinearSVC(**given).plan(1000, 3, n_classes)


def test_solvers_that_are_chosen():
    """Full-data steps on privately standardised features; for delta = 0 the minimum of a tilted objective."""
    assert {DPLinearSVC(loss=loss).plan(1000, 3, k).solver for loss in LOSSES for k in (2, 3)} == {"standardized_gd"}
    assert DPLinearSVC(delta=0).plan(1000, 3).solver == "objective"
    assert DPLinearSVC(l1_ratio=1.0).plan(1000, 3).solver == "gd"
    assert "margins, one unit" in str(DPLinearSVC(delta=0).plan(1000, 3))
    assert "log-odds" in str(DPLogisticRegression(delta=0).plan(1000, 3))


@pytest.mark.exhaustive
def test_it_is_close_to_scikit_learn_on_a_real_table():
    """Adult at epsilon 1: the median accuracy of three fits is within 0.01 of LinearSVC's, which is .847; nothing is tuned."""
    if not (data_directory() / "adult.csv.gz").exists():
        pytest.skip("no data sets: SKDP_DATA names no directory that holds adult.csv.gz")
    table = load("adult")
    theirs = LinearSVC(dual=False, C=10.0).fit(table.X_train, table.y_train).score(table.X_test, table.y_test)
    for loss in LOSSES:
        model = DPLinearSVC(1.0, loss=loss, adjacency="zero_out", data_norm=1.0)
        models = (fitted(model, table.X_train, table.y_train, seed=seed) for seed in range(3))
        accuracies = [model.score(table.X_test, table.y_test) for model in models]
        assert 0 < theirs - 0.01 < np.median(accuracies)
