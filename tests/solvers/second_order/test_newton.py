"""newton: the non-private optimum, shares of the budget, ridges that bound the noise, and what it is good for."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression
from skdp.losses import Logistic, Multinomial
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.queries import Curvature, Gradient, NewtonDirection, half_vector
from skdp.solvers import Newton, Problem, choose_solver

HESSIANS = ("released", "direction")


def problem(n=10_000, d=8, loss=None, adjacency="zero_out", epsilon=1.0, **more):
    budget = Budget(epsilon, 1e-6, adjacency)
    return Problem(n, d, loss or Logistic(), budget, data_norm=1.0, intercept_scaling=1.0, clip_norm=0.7, **more)


@pytest.mark.each_value
@pytest.mark.parametrize("hessian", HESSIANS)
@pytest.mark.parametrize("upper_bound", (True, False))
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("alpha", (None, 0.3))
@pytest.mark.parametrize("storage", (np.asarray, sparse.csc_matrix))
def test_without_noise_it_is_the_minimiser(hessian, upper_bound, fit_intercept, alpha, storage, rng):
    X = rng.normal(size=(300, 4)) * [1, 2, 0.3, 0.1]
    y = (X @ [1.0, 1.0, -1.0, 1.0] + rng.logistic(size=300) > 0.5).astype(int)
    solver = Newton(hessian=hessian, upper_bound=upper_bound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPLogisticRegression(math.inf, solver=solver, alpha=alpha, data_norm=100.0, fit_intercept=fit_intercept)
        model.fit(storage(X), y)
    C = 1.0 if alpha is None else 1 / (300 * alpha)
    exact = LogisticRegression(C=C, tol=1e-12, solver="newton-cholesky", fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=1e-6)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("solver, kind, count, share", (
    (Newton(), Curvature, 1, 0.2),
    (Newton(7, n_hessians=3, curvature_share=0.4), Curvature, 3, 0.4),
    (Newton(2, n_hessians=5), Curvature, 2, 0.2),
    (Newton(hessian="direction"), NewtonDirection, 30, 0.5),
    (Newton(4, hessian="direction", curvature_share=Fraction(1, 3)), NewtonDirection, 4, 1 / 3),
))  # fmt: skip
def test_the_budget_is_shared_as_stated(adjacency, solver, kind, count, share):
    task = problem(adjacency=adjacency)
    schedule = solver.schedule(task)
    scale = calibrate(schedule, task.budget)
    spent = {Gradient: 0.0, kind: 0.0}
    for release in schedule:
        spent[release.query] += (release.mechanism.weight * scale) ** -2
    mu = gaussian_mu(1.0, 1e-6)
    assert spent[kind] == pytest.approx(share * mu**2) and spent[Gradient] == pytest.approx((1 - share) * mu**2)
    kinds = [release.query for release in schedule]
    n_steps = solver.n_steps or 30
    if kind is Curvature:
        assert kinds == [Curvature, Gradient] * count + [Gradient] * (n_steps - count)
    else:
        assert kinds == [Gradient, NewtonDirection] * n_steps


class Spy:
    """Answers with noise alone and keeps the questions."""

    def __init__(self, rng, scale):
        self.rng, self.scale, self.asked = rng, scale, []

    def __call__(self, query):
        self.asked.append(query)
        return self.rng.normal(size=query.size) * self.scale * query.clip_norm


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("size", (1.0, 1e3, 1e6))
def test_ridges_keep_the_noise_of_directions_at_half_a_raw_prediction(adjacency, size, rng):
    """Over all steps, whatever the gradients; and attained where these are large."""
    task, spy = problem(adjacency=adjacency, alpha=0.01), Spy(rng, size)
    solver = Newton(hessian="direction")
    solver.solve(task, spy, rng)
    weight = solver.schedule(task).entries[1][1].mechanism.weight
    scale = calibrate(solver.schedule(task), task.budget)
    directions = [query for query in spy.asked if type(query) is NewtonDirection]
    stds = [weight * scale * query.sensitivity(adjacency) for query in directions]
    noise = math.sqrt(sum(std**2 for std in stds)) * task.row_norm
    assert noise <= 0.5 * (1 + 1e-9)
    assert size < 1e6 or noise == pytest.approx(0.5)
    for query in directions:  # the penalty spares the intercept
        np.testing.assert_allclose(query.ridge[:-1] - query.ridge[-1], 0.01 * 10_000)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("values", (0.0, -1e9, 1e9))
def test_eigenvalues_are_raised_to_what_the_noise_allows(adjacency, values, rng):
    """A step is the gradient over the eigenvalue, or over the floor, plus the ridge at which noise adds up to 10."""
    task, solver = problem(adjacency=adjacency), Newton(1, tail_average=0.0)
    gradient = rng.normal(size=9)

    def ask(query):
        return gradient if type(query) is Gradient else half_vector(values * np.eye(9))

    coef = solver.solve(task, ask, rng).coef[:, 0]
    k = {"replace_one": 2, "zero_out": 1}[adjacency]
    mu = gaussian_mu(1.0, 1e-6)
    edge = math.sqrt(k) * task.smoothness / (math.sqrt(0.2) * mu) * math.sqrt(2 * 9)
    ridge = k * 0.7 * task.row_norm / (math.sqrt(0.8) * mu) / 10
    np.testing.assert_allclose(coef, -gradient / (max(values, 0.5 * edge) + ridge))


@pytest.mark.parametrize("hessian", HESSIANS)
def test_the_model_is_the_average_of_the_last_iterates(hessian):
    last, half = (
        Newton(4, hessian=hessian, tail_average=tail).solve(
            problem(alpha=0.01), spy := Spy(np.random.default_rng(0), 1.0), np.random.default_rng(0)
        )
        for tail in (0.0, 0.5)
    )
    before = [query.coef for query in spy.asked if type(query) is Gradient][-1]
    np.testing.assert_allclose(half.coef, (last.coef + before) / 2)


def test_one_hessian_is_taken_at_zero_and_bounds_all_others(rng):
    """With class weights the start is not zero, and the curvature there is less."""
    task, spy = problem(class_weight=(1.0, 9.0)), Spy(rng, 1.0)
    Newton(3).solve(task, spy, rng)
    first = spy.asked[0]
    assert type(first) is Curvature and not first.coef.any() and first.clip_norm == pytest.approx(9 * 0.25 * 2)
    assert task.start[-1, 0] == pytest.approx(math.log(9)) and (spy.asked[1].coef == task.start).all()
    Newton(3, n_hessians=2).solve(task, again := Spy(rng, 1.0), rng)
    assert (again.asked[0].coef == task.start).all()


@pytest.mark.slow
def test_curvature_helps_where_features_are_far_from_round(rng):
    """AUC above that of gradient descent by more than 0.01, medians of 5 fits: 0.02 was measured."""
    z = rng.normal(size=(20_000, 3))
    y = (z @ [1.0, 1.0, -1.0] + rng.logistic(size=20_000) > 0.5).astype(int)
    X = 0.12 * (z * [1.0, 0.1, 0.3] + [2.0, -3.0, 1.0])
    auc = {}
    for solver in ("newton", "gd"):
        models = [fitted(DPLogisticRegression(8.0, data_norm=1.0, solver=solver), X, y, seed=seed) for seed in range(5)]
        auc[solver] = np.median([roc_auc_score(y, model.decision_function(X)) for model in models])
    assert auc["newton"] > auc["gd"] + 0.01


@pytest.mark.parametrize("bad", (
    {"n_steps": 0}, {"n_steps": 10**5}, {"n_hessians": 0}, {"curvature_share": 0.0}, {"curvature_share": 1.0},
    {"hessian": "exact"}, {"hessian": None}, {"noise": 0.0}, {"noise": math.nan}, {"tail_average": 1.1}, {"upper_bound": 1},
))  # fmt: skip
def test_parameters_out_of_range_are_refused_by_name(bad):
    (name,) = bad
    with pytest.raises((ValueError, TypeError), match=f"{name}="):
        Newton(**bad).schedule(problem())


def test_tables_that_are_too_wide_are_refused_before_data_are_read():
    with pytest.raises(
        ValueError, match=r"4097 x 4097 matrix in memory; expected at most 4096 coefficients\. solver='gd' has no such limit"
    ):
        DPLogisticRegression(solver="newton").plan(10**6, 4096)
    assert DPLogisticRegression(solver="newton").plan(10**6, 4095).releases


def test_losses_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="exactly two classes"):
        choose_solver("newton", problem(loss=Multinomial(3)))

    class Flat:
        name, lipschitz, smoothness, n_outputs, targets = "flat", 1.0, 1.0, 1, "classes"

    with pytest.raises(TypeError, match="The flat loss has no method curvature"):
        Newton().schedule(problem(loss=Flat()))


def test_the_report_gathers_what_is_asked_in_turns():
    report = DPLogisticRegression(solver=Newton(hessian="direction")).plan(1000, 3)
    assert len(report.releases) == 60
    text = str(report)
    assert "30 x Gradient" in text and "30 x NewtonDirection" in text and "1 x " not in text
