"""objective and output: what they plan, what they return, and what their reports say; pure epsilon."""

import math
import warnings

import numpy as np
import pytest
from products import fitting
from scipy import sparse
from scipy.optimize import minimize
from seeded import fitted
from sklearn.base import clone

from skdp import DPLogisticRegression, PrivacyLedger
from skdp.losses import Logistic
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.errors import BudgetExceededError, NotPrivateWarning
from skdp.privacy.oracle import Oracle
from skdp.privacy.schedule import Curve, Gaussian
from skdp.solvers import SOLVERS, GradientDescent, ObjectivePerturbation, OutputPerturbation, Problem
from skdp.solvers.perturbation._defaults import minimization

KINDS = {"objective": ObjectivePerturbation, "output": OutputPerturbation}
both = pytest.mark.parametrize("solver", KINDS)
RNG = np.random.default_rng(7)
X = RNG.normal(size=(400, 4)) / 3
y = (RNG.random(400) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)


def model(solver, epsilon=1.0, **parameters):
    return DPLogisticRegression(epsilon, **{"solver": solver, "data_norm": 1.0, **parameters})


def problem(epsilon=1.0, delta=1e-6, adjacency="zero_out", n=1000, d=5, **facts):
    return Problem(n, d, Logistic(), Budget(epsilon, delta, adjacency), data_norm=1.0, intercept_scaling=1.0, **facts)


@both
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("weights", (None, {0: 0.5, 1: 3.0}))
@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_matrix, sparse.csc_matrix))
def test_without_privacy_the_result_is_the_exact_minimum(solver, intercept, weights, storage):
    """The intercept is penalised like any other coefficient."""
    estimator = model(solver, math.inf, alpha=0.01, fit_intercept=intercept, intercept_scaling=0.7, class_weight=weights)
    with pytest.warns(NotPrivateWarning):
        fitted(estimator, storage(X), y)
    x = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    x = np.column_stack([x, np.full(400, 0.7)]) if intercept else x
    factor = np.ones(400) if weights is None else np.array([0.5, 3.0])[y]

    def objective(w):
        signs = 2 * y - 1
        value = factor @ np.logaddexp(0, -signs * (x @ w)) / 400 + 0.005 * w @ w
        return value, -x.T @ (factor * signs / (1 + np.exp(signs * (x @ w)))) / 400 + 0.01 * w

    expected = minimize(objective, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(estimator.coef_[0], expected[:4], atol=1e-6)
    np.testing.assert_allclose(estimator.intercept_, 0.7 * expected[4:] if intercept else [0.0], atol=1e-6)


@both
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (0.05, 1.0, 20.0))
@pytest.mark.filterwarnings("ignore::skdp.privacy.WeakPrivacyWarning")
def test_pure_transcript_is_the_schedule_and_spends_epsilon(solver, adjacency, epsilon, monkeypatch):
    oracles, finish = [], Oracle.finish
    monkeypatch.setattr(Oracle, "finish", lambda self: (oracles.append(self), finish(self))[1])
    done = fitted(model(solver, epsilon, delta=0, adjacency=adjacency), X, y)
    (release,) = oracles[0].transcript
    assert isinstance(release.mechanism, Curve) and len(oracles[0].transcript) == 1
    assert done.privacy_spent_.delta == 0
    assert 0.999 * epsilon <= done.privacy_spent_.epsilon <= epsilon


@both
@pytest.mark.parametrize("delta", (None, 0))
def test_what_depends_on_the_data_or_means_nothing_is_no_attribute(solver, delta):
    done = fitted(model(solver, delta=delta), X, y)
    assert not hasattr(done, "n_iter_")
    gaussian = solver == "output" and delta is None
    assert hasattr(done, "noise_multiplier_") == gaussian
    if gaussian:
        (line,) = done.privacy_report_.releases
        assert line.mechanism == "Gaussian" and line.noise_multiplier == done.noise_multiplier_


@both
@pytest.mark.parametrize("delta", (None, 0))
def test_the_report_states_guarantee_noise_and_penalty(solver, delta):
    report = model(solver, delta=delta).fit(X, y).privacy_report_
    text = " ".join(str(report).split())
    assert "which includes the intercept" in text and "log-odds" in text
    assert ("pure 1-differential privacy" in text) == ("delta = 0 holds for noise that is a real number" in text) == (delta == 0)
    assert ("(1, 6.25e-06)-differential privacy" in text) == (delta is None)
    assert ("by the proof of its mechanism" in text) == (delta == 0 or solver == "objective")
    assert report.to_json()
    spares = model("gd").fit(X, y).privacy_report_
    assert "which spares the intercept" in " ".join(str(spares).split())


@both
@pytest.mark.parametrize("delta", (1e-6, 0.0))
def test_every_storage_gives_the_same_model(solver, delta):
    models = [fitted(model(solver, delta=delta), kind(X), y) for kind in (np.asarray, sparse.csr_matrix, sparse.csc_matrix)]
    for other in models[1:]:
        np.testing.assert_allclose(other.coef_, models[0].coef_, atol=1e-3)


@both
def test_three_classes_are_refused(solver):
    with pytest.raises(ValueError, match=r"needs exactly two classes[\s\S]*Solvers that fit: [\w+, ]*\bgd, [\w+, ]*\.$"):
        fitted(model(solver), X, np.arange(400) % 3)


def test_delta_0_names_the_solvers_that_support_it():
    for solver in ("gd", "sgd", GradientDescent(5), "standardized_gd"):
        with pytest.raises(ValueError, match=r"delta=0\.0: [\s\S]*Solvers that support it here: objective, output\."):
            fitted(model(solver, delta=0), X, y)
    with pytest.raises(
        ValueError,
        match=r"none; frank_wolfe needs .*'l1' or .*; objective needs exactly two classes[^;]*; output needs exactly two classes",
    ):
        fitted(model("auto", delta=0), X, np.arange(400) % 3)
    assert {name for name, kind in SOLVERS.items() if kind.pure} == {*KINDS, "frank_wolfe"}


@pytest.mark.parametrize("delta", (0, 0.0, np.float32(0), -0.0))
def test_auto_takes_objective_for_pure_epsilon(delta):
    done = fitted(model("auto", delta=delta), X, y)
    assert done.privacy_report_.solver == "objective"
    assert "chosen by solver='auto'" in done.privacy_report_.solver_reason


@pytest.mark.parametrize("delta", (1e-6, 0.0))
@pytest.mark.parametrize("epsilon", (0.01, 1.0, 8.0))
@pytest.mark.parametrize("weights", (None, (0.5, 4.0)))
def test_a_penalty_that_is_too_weak_is_refused_with_the_least_that_is_not(epsilon, delta, weights):
    class_weight = None if weights is None else dict(enumerate(weights))
    estimator = model("objective", epsilon, delta=delta, class_weight=class_weight)
    weak = clone(estimator).set_params(alpha=1e-20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="expected at least") as caught:
            weak.plan(1000, 5)
        with pytest.raises(ValueError, match="expected at least"):
            weak.fit(X, y)
        least = float(str(caught.value).split("at least ")[1].rstrip("."))
        smoothness = 0.25 * 2 * (4.0 if weights else 1.0)
        assert math.log1p(smoothness / (1000 * least)) == pytest.approx(0.99**2 * epsilon, rel=1e-6)
        clone(estimator).set_params(alpha=least).plan(1000, 5)
        with pytest.raises(ValueError, match="expected at least"):
            clone(estimator).set_params(alpha=0.999 * least).plan(1000, 5)


@both
def test_no_penalty_is_refused(solver):
    for epsilon in (1.0, math.inf):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError, match=r"alpha=0\.0"):
                fitted(model(solver, epsilon, alpha=0), X, y)


@both
@pytest.mark.parametrize("delta", (1e-6, 0.0))
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_penalty_gives_the_noise_that_was_asked_for(solver, delta, adjacency):
    facts = problem(delta=delta, adjacency=adjacency)
    for noise in (0.3, 1.0, 5.0):
        kind = KINDS[solver](noise)
        report = model(kind, delta=delta, adjacency=adjacency).plan(1000, 5)
        stated = float(report.noise_size.split("noise of at most ")[1].split(" ")[0])
        assert stated == pytest.approx(noise, rel=0.02)
        assert kind.default_alpha(facts) > 0
    assert KINDS[solver]().default_alpha(problem(math.inf)) == 1 / 1000


def test_objective_allows_more_noise_where_the_signal_is_clear():
    sizes = []
    for n in (100, 10**4, 10**6):
        report = model("objective").plan(n, 5)
        sizes.append(float(report.noise_size.split("noise of at most ")[1].split(" ")[0]))
    assert sizes[0] == pytest.approx(1.5, rel=1e-2) and sizes[2] == pytest.approx(6, rel=1e-2)
    assert sizes == sorted(sizes)


@both
def test_clip_opens_with_the_signal(solver):
    kind = KINDS[solver]()
    for delta in (1e-6, 0.0):
        clips = [kind.default_clip_norm(problem(delta=delta, n=n)) / math.sqrt(2) for n in (100, 10**8)]
        assert clips == pytest.approx([0.5, 1.0])
    assert kind.default_clip_norm(problem(math.inf)) == math.sqrt(2)


@both
@pytest.mark.parametrize("n", (10**3, 10**5))
def test_the_result_tends_to_the_minimum_without_noise(solver, n):
    """At epsilon 500 the model is the one of the same penalty without noise: within 0.05 of it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3)) / 4
    labels = (rng.random(n) < 1 / (1 + np.exp(-3 * rows[:, 0]))).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noisy, exact = (fitted(model(solver, epsilon, alpha=0.01, clip_norm=2.0), rows, labels) for epsilon in (500.0, math.inf))
    np.testing.assert_allclose(noisy.coef_, exact.coef_, atol=0.05 if n == 10**3 else 1e-3)


@pytest.mark.parametrize("delta", (1e-7, 0.0))
def test_a_ledger_charges_objective_by_its_guarantee(delta):
    """Epsilons and deltas add up before all other charges; a fit beyond the ceiling is refused."""
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    with ledger:
        for _ in range(2):
            fitted(model("objective", 0.4, delta=delta), X, y)
        with pytest.raises(BudgetExceededError, match="only a known guarantee"):
            fitted(model("objective", 0.4, delta=delta), X, y)
    assert [entry.charge.by_itself for entry in ledger.entries] == [True, True]
    assert all(entry.spending.composition is None and entry.spending.delta == delta for entry in ledger.entries)
    summary = ledger.summary()
    assert summary.spent_epsilon == pytest.approx(0.8, rel=1e-3)
    assert summary.tight_epsilon <= 0.81 and ledger.to_json()


def test_a_ledger_charges_gaussian_output_as_one_release():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    with ledger:
        done = fitted(model("output", 0.4, delta=1e-7), X, y)
    (entry,) = ledger.entries
    assert entry.spending.adjacency == "replace_one"
    assert entry.charge.mu == pytest.approx(2.0 / done.noise_multiplier_, rel=1e-9)


@both
@pytest.mark.parametrize("value", ("1", None, -1.0, 0.0, math.nan, True, 1e7))
def test_parameters_are_checked(solver, value):
    if solver == "objective" and value is None:
        return
    with pytest.raises((TypeError, ValueError), match="noise="):
        fitted(model(KINDS[solver](value), alpha=0.1), X, y)


def test_class_weights_are_in_every_bound():
    plain, weighted = (minimization(problem(alpha=0.1, clip_norm=100.0, class_weight=given)) for given in (None, (0.5, 4.0)))
    for name in ("clip_norm", "smoothness", "value"):
        assert getattr(weighted, name) == pytest.approx(4 * getattr(plain, name))
    assert plain.value == pytest.approx(math.log(2))


def test_losses_keep_the_sign_that_they_claim():
    raw = np.linspace(-50, 50, 1001)[:, None]
    assert fitting("binary", ObjectivePerturbation())
    for label, sign in ((0, 1), (1, -1)):
        assert (sign * Logistic().derivative(raw, np.full(1001, label)) >= 0).all()
    assert Logistic.one_sided


def test_the_mechanisms_are_those_of_the_papers():
    for delta, kind in ((1e-6, Gaussian), (0.0, Curve)):
        facts = problem(delta=delta, alpha=0.1, clip_norm=1.0)
        assert isinstance(OutputPerturbation().schedule(facts).entries[0][1].mechanism, kind)
        assert isinstance(ObjectivePerturbation().schedule(facts).entries[0][1].mechanism, Curve)
