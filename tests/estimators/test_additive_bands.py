"""Bands of whole curves and tests of columns, of additive and boosted models."""

import warnings

import numpy as np
import pytest
from marks import slow
from scipy import stats
from seeded import fitted

from benchmarks.bands import table
from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPGradientBoostingRegressor
from skdp.estimators.additive._terms import Shapes
from skdp.inspection import AdditiveDisplay
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.privacy.queries import Standardization, Whitening
from skdp.solvers import CoefficientNoise

FACTS = {"x": {"kind": "number", "bounds": [0, 1]}, "c": {"kind": "category", "categories": list("abcde")}}


def model_of(kind, n=3000, epsilon=2.0, seed=0, **params):
    X, y = table(n, kind is DPAdditiveClassifier, 0.9, 0)
    params |= {"classes": [0, 1]} if kind is DPAdditiveClassifier else {"target_bounds": (-1, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(kind(epsilon, feature_bounds=1.0, **params), X, y, seed=seed)


def drawn(white, n_draws, rng):
    """Shapes of models whose coefficients are noise alone, of known covariance, with the covariance."""
    basis = AdditiveBasis(Schema.read({"columns": FACTS}), 4)
    d = basis.n_features
    scale = rng.normal(size=(d, d)) if white else rng.uniform(0.5, 2.0, d)
    geometry = (Whitening if white else Standardization)(np.zeros(d), scale, True, 1.0)
    variances = rng.uniform(0.1, 1.0, (d + 1, 1))
    matrix = scale if white else np.diag(scale)
    covariance = (matrix * variances[:d, 0]) @ matrix.T
    blocks = ()
    if not white:
        root = rng.normal(size=(3, 3))
        covariance[1:4, 1:4], blocks = root @ root.T, ((1, root @ root.T),)
    noise = CoefficientNoise(geometry, np.zeros((d + 1, 1)), variances, blocks=blocks)
    coefs = rng.multivariate_normal(np.zeros(d), covariance, n_draws)
    return [Shapes(basis, coef[None], noise, {}) for coef in coefs]


@pytest.mark.exhaustive
@pytest.mark.parametrize("white", (False, True))
def test_whole_curves_are_held_and_pvalues_are_even_for_known_noise(white, rng):
    """120 draws: of a share of .95 the standard error is .02, and four of them have a probability of 1e-3.

    A test of the uniform law rejects a true law at 1e-4 with that probability.
    """
    shapes = drawn(white, 120, rng)
    for place in (0, 1):
        term = shapes[0].basis.terms[place]
        curves = [one.function(term, True, 0.95, True) for one in shapes]
        held = np.mean([((f.lower <= 0) & (f.upper >= 0)).all() for f in curves])
        assert held == pytest.approx(0.95, abs=0.08)
        pointwise = np.mean([((f.lower <= 0) & (f.upper >= 0)).all() for f in (one.function(term, True) for one in shapes)])
        assert pointwise < held
        assert stats.kstest([one.test(term).pvalue for one in shapes], "uniform").pvalue > 1e-4


def test_factors_have_the_variances_of_the_standard_errors(rng):
    for white in (False, True):
        (one,) = drawn(white, 1, rng)
        for term in one.basis.terms:
            rows = one._rows(term).toarray()
            wide = np.zeros((len(rows), one.basis.n_features))
            wide[:, term.columns] = rows
            lengths = np.linalg.norm(one.noise.factors(rows, term.columns), axis=1)
            assert lengths == pytest.approx(one.noise.standard_errors(wide)[:, 0])


@pytest.mark.parametrize("kind", (DPAdditiveClassifier, DPAdditiveRegressor))
def test_columns_that_matter_are_told_from_one_that_does_not(kind):
    model = model_of(kind, n=5000, epsilon=5.0)
    found = model.column_tests()
    assert list(found) == list(model.shape_functions_)
    pvalues = [test.pvalue for test in found.values()]
    assert pvalues[2] < 0.01 < pvalues[3]
    curves = [
        model.basis_.of_term(term, {term.names[0]: model.basis_.grid(term.names[0], fine=False)}) for term in model.basis_.terms
    ]
    bends = [np.diff(rows @ model.coef_.ravel()[term.columns]) for rows, term in zip(curves, model.basis_.terms, strict=True)]
    assert [test.df[0] for test in found.values()] == [np.sum(np.abs(steps) > 1e-12) for steps in bends]  # none where nobody is


@pytest.mark.parametrize("kind", (DPAdditiveClassifier, *slow(DPAdditiveRegressor, DPGradientBoostingRegressor)))
def test_bands_of_curves_are_wider_than_those_of_points_and_have_the_same_values(kind):
    model = model_of(kind)
    points, curves, low = model.shape_functions_, model.bands(simultaneous=True), model.bands(0.5)
    for name, point in points.items():
        np.testing.assert_array_equal(point.values, curves[name].values)
        assert (curves[name].upper - curves[name].lower > point.upper - point.lower).all()
        assert (low[name].upper - low[name].lower < 0.4 * (point.upper - point.lower)).all()  # .674 over 1.96


@pytest.mark.slow
def test_what_is_not_offered_is_refused():
    model = model_of(DPAdditiveRegressor, n=500)
    for wrong in ({"level": 1.0}, {"level": 0.0}):
        with pytest.raises(ValueError, match="level"):
            model.bands(**wrong)
    with pytest.raises(TypeError, match="simultaneous"):
        model.bands(simultaneous="yes")
    boosted = model_of(DPGradientBoostingRegressor, n=20_000)
    assert boosted.trees_ is not None
    with pytest.raises(AttributeError, match="no tests of columns"):
        boosted.column_tests()


def test_without_noise_nothing_is_tested():
    tests = model_of(DPAdditiveRegressor, epsilon=float("inf")).column_tests()
    assert not any(test.estimable for test in tests.values())


def test_displays_draw_bands_of_curves():
    pytest.importorskip("matplotlib")
    model = model_of(DPAdditiveRegressor)
    display = AdditiveDisplay.from_estimator(model, simultaneous=True)
    first = display.functions[0]
    np.testing.assert_array_equal(first.upper, model.bands(simultaneous=True)[first.names[0]].upper)
