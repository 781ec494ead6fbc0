"""DPLinearRegression of several targets at once: the model, its releases, and what is refused before a charge."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from skdp import DPLinearRegression, DPRobustRegressor, PrivacyLedger, load_model, save_model
from skdp.data import chunks
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.solvers import WhitenedGradientDescent

BOUNDS = [(-4, 6), (-1, 1), (0, 50)]


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, size=(3000, 4))
    Y = X @ rng.normal(size=(4, 3)) + 0.2 * rng.normal(size=(3000, 3))
    return X, (Y / np.abs(Y).max(axis=0)) * [4.0, 1.0, 20.0] + [1.0, 0.0, 25.0]


def estimator(epsilon=1.0, **params):
    return DPLinearRegression(epsilon, **{"target_bounds": BOUNDS, "feature_bounds": 1.0, **params})


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csc_array))
def test_without_noise_it_is_least_squares(fit_intercept, storage, table):
    X, Y = table[0], table[1] - (0 if fit_intercept else table[1].mean(axis=0))
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, Y)
    ours = estimator(math.inf, target_bounds=(-30, 60), fit_intercept=fit_intercept).fit(storage(X), Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-8)


def test_shapes_and_scores(table, tmp_path):
    X, Y = table
    model = fitted(estimator(), X, Y)
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,) and model.predict(X).shape == (3000, 3)
    assert model.target_bounds_.tolist() == [list(pair) for pair in BOUNDS]
    assert model.score(X, Y) == pytest.approx(np.mean([r2_score(Y[:, k], model.predict(X)[:, k]) for k in range(3)]))
    assert model.score(X, Y) > LinearRegression().fit(X, Y).score(X, Y) - 0.02
    assert model.privacy_report_.public["resolved"]["n_targets"] == 3
    save_model(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore:X has rows that are more than")
def test_each_target_has_its_own_range(table):
    X, Y = table
    outliers = Y + np.where(np.arange(3000)[:, None] % 5 == 0, [0, 1e9, 0], 0)
    model = fitted(estimator(), X, outliers)
    np.testing.assert_array_equal(model.coef_, fitted(estimator(), X, np.clip(outliers, *np.transpose(BOUNDS))).coef_)
    far = model.predict(1e6 * X)
    assert (far.min(axis=0) == [-4, -1, 0]).all() and (far.max(axis=0) == [6, 1, 50]).all()
    one = fitted(estimator(target_bounds=(-60, 60)), X, Y)
    np.testing.assert_array_equal(one.coef_, fitted(estimator(target_bounds=[(-60, 60)] * 3), X, Y).coef_)
    assert one.target_bounds_.tolist() == [[-60, 60]] * 3


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_releases_are_those_of_one_target(adjacency, table):
    """With the same bounds and steps, and the noise nearly so: the means get a little more, as each target has less signal."""
    (X, Y), given = table, {"adjacency": adjacency, "solver": WhitenedGradientDescent(n_steps=40)}
    several = fitted(estimator(**given), X, Y).privacy_report_
    alone = fitted(estimator(target_bounds=(-4, 6), **given), X, Y[:, 0]).privacy_report_
    facts = [[(line.query, line.count, line.clip_norm) for line in report.releases] for report in (several, alone)]
    assert facts[0] == facts[1] and several.spent.epsilon == pytest.approx(alone.spent.epsilon, rel=1e-9)
    noise = [[line.noise_multiplier for line in report.releases] for report in (several, alone)]
    assert noise[0] == pytest.approx(noise[1], rel=0.05)
    assert estimator(**given).plan(3000, 4).releases == several.releases


def test_a_single_column_is_the_vector_with_another_shape(table):
    X, y = table[0], table[1][:, 0]
    vector, column = (fitted(estimator(target_bounds=(-4, 6)), X, target) for target in (y, y[:, None]))
    np.testing.assert_allclose(column.coef_, vector.coef_[None], rtol=1e-12)
    assert column.predict(X).shape == (3000, 1)


@pytest.mark.slow
def test_one_joint_fit_is_better_than_fits_that_divide_the_budget(table):
    """They pay for the geometry of the features three times; medians of five fits."""
    X, Y = table[0][:1000], table[1][:1000]
    part = gaussian_epsilon(gaussian_mu(0.5, 1e-6) / math.sqrt(3), 1e-6)
    joint = [fitted(estimator(0.5, delta=1e-6), X, Y, seed=seed).score(X, Y) for seed in range(5)]
    apart = [
        np.mean(
            [fitted(estimator(part, delta=1e-6, target_bounds=BOUNDS[k]), X, Y[:, k], seed=s).score(X, Y[:, k]) for k in range(3)]
        )
        for s in range(9)
    ]
    assert np.median(joint) > np.median(apart)


def test_little_data_give_the_means_alone(table):
    model = fitted(estimator(0.1), table[0][:60], table[1][:60])
    assert [line.query for line in model.privacy_report_.releases] == ["TargetSum"] and not model.coef_.any()
    Y = np.tile([3.5, 0.5, 10.0], (100, 1))
    fits = [fitted(estimator(), table[0][:100], Y, seed=seed) for seed in range(25)]
    assert {len(model.privacy_report_.releases) for model in fits} == {1}
    deviations = (np.median([model.intercept_ for model in fits], axis=0) - Y[0]) / [5, 1, 25]
    assert np.abs(deviations).max() < 0.1  # the noise of each is about that


@pytest.mark.slow
def test_frames_of_features_and_of_targets(table):
    """Names of targets are not kept, as in scikit-learn; learned columns and stated ones take several targets."""
    X, Y = pd.DataFrame(table[0], columns=list("abcd")), pd.DataFrame(table[1], columns=["u", "v", "w"])
    model = fitted(estimator(), X, Y)
    np.testing.assert_array_equal(model.coef_, fitted(estimator(), *table).coef_)
    assert model.feature_names_in_.tolist() == list("abcd")
    schema = {"columns": {name: {"kind": "number", "bounds": [-1, 1]} for name in "abcd"}}
    for given in (schema, "learn", None):
        learned = fitted(estimator(3.0, feature_bounds=None, schema=given), X, Y)
        assert learned.coef_.shape == (3, len(learned.prepared_features_)) and learned.score(X, Y) > 0.6


@pytest.mark.parametrize("solver", ("gd", "sgd", "svrg", "skgd"))
def test_iterative_solvers_take_several_targets(solver, table):
    model = fitted(estimator(10.0, solver=solver), table[0][:500], table[1][:500])
    assert model.coef_.shape == (3, 4) and model.score(*table) > 0.3


LEARNED = {"feature_bounds": None, "target_bounds": (-50, 50)}
REFUSED = {
    "inference": ({"inference": True}, lambda X, Y: (X, Y), "inference=True takes one target"),
    "pairs": ({"target_bounds": BOUNDS[:2]}, lambda X, Y: (X, Y), "target_bounds has 2 pairs"),
    "a vector": ({}, lambda X, Y: (X, Y[:, 0]), "target_bounds has 3 pairs"),
    "a pair": ({"target_bounds": [(0, 1), (3, 2), (0, 1)]}, lambda X, Y: (X, Y), r"target_bounds\[1\]: expected \(low, high\)"),
    "gaps": ({}, lambda X, Y: (X, np.where(Y > 1, np.nan, Y)), "Input y contains NaN"),
    "sparse": ({}, lambda X, Y: (X, sparse.csr_array(Y)), "y is a sparse table"),
    "no column": ({"target_bounds": (0, 1)}, lambda X, Y: (X, Y[:, :0]), "0 feature"),
    "three dimensions": ({"target_bounds": (0, 1)}, lambda X, Y: (X, Y[:, :, None]), "y"),
    "text": ({}, lambda X, Y: (X, Y.astype(str)), "y has values that cannot be read"),
    "learned": (LEARNED, lambda X, Y: (pd.DataFrame(X, columns=list("abcd")), Y), "a pair for each column of y"),
    "partitions": ({}, lambda X, Y: (chunks(lambda: iter([(X, Y)])), None), "a table in memory"),
    "partitions, a pair": ({"target_bounds": (0, 1)}, lambda X, Y: (chunks(lambda: iter([(X, Y)])), None), "1d array"),
    "solver": ({"solver": "ssp"}, lambda X, Y: (X, Y), "needs a single number to predict"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_go_together_is_refused_before_a_charge(what, table):
    params, given, message = REFUSED[what]
    with PrivacyLedger(epsilon=10, delta=1e-3) as ledger, pytest.raises((TypeError, ValueError), match=message):
        estimator(**params).fit(*given(*table))
    assert not ledger.entries


def test_other_regressors_take_one_target(table):
    assert not DPRobustRegressor().__sklearn_tags__().target_tags.multi_output
    assert not estimator(inference=True).__sklearn_tags__().target_tags.multi_output
    assert estimator().__sklearn_tags__().target_tags.multi_output
    with pytest.raises(ValueError, match="1d array"):
        DPRobustRegressor(feature_bounds=1.0).fit(*table)


def test_intervals_are_of_one_target(table):
    model = fitted(estimator(), *table)
    for ask in (model.coef_interval, lambda: model.predict(table[0], return_interval=0.9)):
        with pytest.raises(AttributeError, match="y of two dimensions has no intervals"):
            ask()


def test_a_fitted_model_holds_no_target(table):
    content = pickle.dumps(fitted(estimator(), *table))
    assert not any(
        value.tobytes() in content for target in (table[1], table[1].astype(np.float32)) for value in target[:300].ravel()
    )
