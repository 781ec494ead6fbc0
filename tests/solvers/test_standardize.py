"""Private standardisation as the first stage of the papers' solvers."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression
from skdp.privacy.oracle import Oracle
from skdp.solvers import SGD, GradientDescent

SOLVERS = (GradientDescent, SGD)


def shifted(rng, n=4000):
    """Features far from zero, of different spread."""
    z = rng.normal(size=(n, 3))
    y = (z @ [1.0, 1.0, -1.0] + rng.logistic(size=n) > 0.5).astype(int)
    return 0.12 * (z * (1.0, 0.05, 0.3) + [2.0, -3.0, 1.0]), y


@pytest.mark.each_value
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("n_classes", (2, 3))
@pytest.mark.parametrize("share", (0.01, 0.5))
def test_the_moments_come_first_and_all_spend_the_budget(solver, adjacency, n_classes, share, rng, monkeypatch):
    kinds, finish = [], Oracle.finish
    monkeypatch.setattr(Oracle, "finish", lambda self: (kinds.extend(r.query.__name__ for r in self.transcript), finish(self))[1])
    X, y = rng.normal(size=(300, 3)), np.arange(300) % n_classes
    model = fitted(DPLogisticRegression(1.0, solver=solver(20, standardize=share), adjacency=adjacency), X, y)
    assert kinds == ["Moments"] + 20 * ["StandardizedGradient"]
    assert 0.999 <= model.privacy_spent_.epsilon <= 1


@pytest.mark.parametrize("share", (0.05, 0.4))
def test_the_share_is_that_of_the_squared_gaussian_parameter(share):
    lines = DPLogisticRegression(1.0, adjacency="zero_out", solver=GradientDescent(30, standardize=share)).plan(1000, 5).releases
    first, steps = (line.count / line.noise_multiplier**2 for line in lines)
    assert first / (first + steps) == pytest.approx(share)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_it_finds_what_is_hidden_by_offsets_and_scales(solver, rng):
    X, y = shifted(rng)
    reference = roc_auc_score(y, LogisticRegression(C=1e4).fit(X, y).decision_function(X))
    auc = {}
    for share in (None, 0.1):
        fits = [
            fitted(DPLogisticRegression(3.0, solver=solver(standardize=share), data_norm=1.0), X, y, seed=s) for s in range(3)
        ]
        auc[share] = np.median([roc_auc_score(y, fit.decision_function(X)) for fit in fits])
    assert auc[0.1] > reference - 0.02
    assert auc[None] < reference - 0.05


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("alpha", (0.0, 1e-2))
@pytest.mark.parametrize("n_classes", (2, 3))
def test_without_noise_it_is_scikit_learns_model(fit_intercept, alpha, n_classes, rng):
    X = rng.normal(size=(500, 3)) / 3
    y = (X @ rng.normal(size=(3, n_classes)) * 2 + rng.gumbel(size=(500, n_classes))).argmax(axis=1)
    solver = GradientDescent(3000, standardize=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = DPLogisticRegression(math.inf, solver=solver, alpha=alpha, data_norm=3.0, fit_intercept=fit_intercept).fit(X, y)
    theirs = LogisticRegression(C=1 / max(500 * alpha, 1e-8), fit_intercept=fit_intercept, tol=1e-8, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.01)


@pytest.mark.each_value
@pytest.mark.parametrize("storage", (sparse.csr_matrix, sparse.csc_matrix))
@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_tables_give_the_same_model(storage, solver, rng):
    X, y = rng.normal(size=(400, 5)) * (rng.random((400, 5)) < 0.4), np.arange(400) % 2
    fits = [fitted(DPLogisticRegression(2.0, solver=solver(30, standardize=0.2)), t, y) for t in (X, storage(X))]
    np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, atol=1e-5)
