"""Private principal components: those of PCA without noise, their intervals, what is refused, and what a fit leaves behind."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, LowSignalWarning, NotPrivateWarning, PrivacyLedger
from skdp.data import chunks
from skdp.inspection import ScreeDisplay
from skdp.privacy.oracle import Oracle
from skdp.solvers.statistics import principal_components
from skdp.testing import reproducible_noise

N, D = 2000, 5
RNG = np.random.default_rng(0)
MIXED = RNG.normal(size=(D, D)) * [1.0, 0.6, 0.3, 0.1, 0.05]
X = np.clip(RNG.normal(size=(N, D)) @ MIXED.T / 4 + 0.2, -2.9, 2.9)
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(t=RNG.choice(["u", "v"], N))


def exact(k=None, table=X, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return DPPCA(k, epsilon=math.inf, **given).fit(table)


def along(components):
    """The same directions, whatever their signs are."""
    return components * np.where(np.take_along_axis(components, np.abs(components).argmax(1)[:, None], 1) < 0, -1, 1)


@pytest.mark.parametrize("bounds, scale", [(3.0, False), ([(-3, 9)] * D, False), ([(-3, 3 * (j + 1)) for j in range(D)], True)])
def test_without_noise_it_is_pca(bounds, scale):
    """Around the mean of the rows, in the units of X, or in those of the bounds."""
    model = exact(3, feature_bounds=bounds, scale=scale)
    units = np.ones(D) if not scale else np.array([(high - low) / 2 for low, high in bounds])
    expected = PCA(3).fit(X / units)
    np.testing.assert_allclose(model.scale_, units)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(model.components_, along(expected.components_), atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-9)
    whole = exact(feature_bounds=bounds, scale=scale)
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, atol=1e-9)
    assert whole.n_components_ == whole.n_above_noise_ == D and model.clipped_share_ == 0


def test_whitened_scores_have_variance_1_and_come_back():
    model = exact(feature_bounds=3.0, whiten=True)
    np.testing.assert_allclose(model.transform(X).std(axis=0, ddof=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)
    assert model.get_feature_names_out().tolist() == [f"dppca{place}" for place in range(D)]
    frame = model.set_output(transform="pandas").transform(FRAME[list("abcde")].to_numpy())
    assert isinstance(frame, pd.DataFrame) and frame.shape == (N, D)


def test_tables_in_partitions_sparse_tables_and_persons_give_the_same_components():
    expected = exact(2, feature_bounds=3.0)
    parts = chunks(lambda: ((X[start : start + 700], None) for start in range(0, N, 700)))
    for other in (
        exact(2, parts, feature_bounds=3.0),
        exact(2, sparse.csr_array(X), feature_bounds=3.0),
        exact(2, sparse.csc_array(X), feature_bounds=3.0),
    ):
        np.testing.assert_allclose(other.components_, expected.components_, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        twice = DPPCA(2, epsilon=math.inf, feature_bounds=3.0, privacy_unit="person")
        twice.fit(np.repeat(X, 2, axis=0), persons=np.repeat(np.arange(N), 2))
    np.testing.assert_allclose(twice.components_, expected.components_, atol=1e-9)
    assert twice.privacy_report_.public["n_persons"] == N


@pytest.mark.slow
def test_columns_of_a_frame_are_learned_in_memory_and_in_partitions():
    model = fitted(DPPCA(2, epsilon=3.0), FRAME)
    assert model.learnt_["t"]["kind"] == "category" and model.n_features_in_ == 6
    assert model.components_.shape == (2, model.prepared_features_.size) and model.transform(FRAME).shape == (N, 2)
    parts = chunks(lambda: ((FRAME[start : start + 700], None) for start in range(0, N, 700)))
    other = fitted(DPPCA(2, epsilon=3.0, schema="learn"), parts)
    np.testing.assert_allclose(np.abs(other.components_), np.abs(model.components_), atol=1e-9)


@pytest.mark.parametrize("name", ("singular_values_", "noise_variance_", "get_covariance", "score"))
def test_attributes_that_are_not_here_say_what_to_use(name):
    with pytest.raises(AttributeError, match=f"DPPCA has no {name}: .*(explained_variance_|skdp.stats.cov)"):
        getattr(DPPCA(), name)
    with pytest.raises(AttributeError, match="'DPPCA' object has no attribute 'labels_'"):
        DPPCA().labels_  # noqa: B018


def test_y_is_not_read():
    """Not even looked at, in memory and in a table that names a target."""
    without = fitted(DPPCA(2, feature_bounds=3.0), X)
    parts = chunks(lambda: ((X[start : start + 700], ["text"] * len(X[start : start + 700])) for start in range(0, N, 700)))
    for table, y in ((X, [math.nan]), (X, object()), (parts, None)):
        model = fitted(DPPCA(2, feature_bounds=3.0), table, y)
        np.testing.assert_array_equal(model.components_, without.components_)


@pytest.mark.parametrize(
    "given, error, words",
    [
        ({"n_components": 0.9}, TypeError, "expected an integer, or None"),
        ({"n_components": 2.0}, TypeError, "expected an integer, or None"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"n_components": D + 1}, ValueError, "n_components=6 of 5 features; expected at most 5"),
        ({"scale": 2}, (TypeError, ValueError), "scale=2"),
        ({"whiten": "yes"}, (TypeError, ValueError), "whiten='yes'"),
        ({"delta": 0.0}, ValueError, "does not support pure epsilon-DP"),
    ],
)
def test_wrong_parameters_are_named_before_the_charge(given, error, words, tmp_path):
    with PrivacyLedger(tmp_path / "ledger", epsilon=5.0, delta=1e-3) as ledger:
        with pytest.raises(error, match=words):
            DPPCA(**{"feature_bounds": 3.0, **given}).fit(X)
    assert not ledger.entries
    with pytest.raises(error, match=words):
        DPPCA(**{"feature_bounds": 3.0, **given}).plan(N, D)


def test_many_features_and_parameters_of_others_are_refused():
    with pytest.raises(ValueError, match="X has 1025 features, whose products are released; expected at most 1024"):
        DPPCA(feature_bounds=1.0).plan(10_000, 1025)
    for name in ("svd_solver", "data_norm", "solver", "centered"):
        with pytest.raises(TypeError, match=f"DPPCA does not take {name}: "):
            DPPCA(**{name: 1})


def test_a_plan_warns_where_public_facts_leave_no_component():
    early = pytest.warns(LowSignalWarning, match="the model may have no component above the noise")
    with pytest.warns(LowSignalWarning, match="0 of 1 components are above the noise"), early:
        model = DPPCA(epsilon=0.1, feature_bounds=3.0, delta=1e-5).fit(X[:60])
    assert model.n_components_ == 1
    report = " ".join(str(DPPCA(epsilon=0.1, feature_bounds=3.0).plan(500, D)).split())
    assert "To find a component above the noise, a model needs about" in report


def test_components_beyond_those_that_are_found_are_given_with_a_warning():
    noisy = np.random.default_rng(1).normal(size=(N, 8)) * [1, 0.9, 0.8, *[1e-3] * 5] / 4
    with pytest.warns(LowSignalWarning, match="3 of 5 components are above the noise"):
        model = fitted(DPPCA(5, feature_bounds=1.0), noisy)
    assert model.n_components_ == 5 and model.n_above_noise_ == 3
    assert (model.explained_variance_interval_[3:, 0] == 0).all() and (np.diff(model.explained_variance_) <= 0).all()
    drawn = ScreeDisplay.from_estimator(make_pipeline(model))
    assert len(drawn.ax_.collections) == 2 and drawn.ax_.get_xlabel() == "component"
    with pytest.raises(TypeError, match="expected a DPPCA"):
        ScreeDisplay.from_estimator(PCA().fit(X))


def left_by(table, answers, monkeypatch, exact_answers=False):
    """All bits that a fit leaves, and its warnings, with the given answers."""
    rng = np.random.default_rng(answers)

    def answer(self, query, release, records):
        if exact_answers:
            return query.evaluate(self._rows)
        return rng.normal(0, len(table) / 10, query.size) + len(table) / 3 * (np.arange(query.size) % 7 == 0)

    monkeypatch.setattr(Oracle, "_answer", answer)
    with warnings.catch_warnings(record=True) as said, reproducible_noise(0):
        warnings.simplefilter("always")
        model = DPPCA(2, feature_bounds=1.0, random_state=0).fit(table)
    report = model.privacy_report_
    assert np.isfinite(model.components_).all() and np.isfinite(model.explained_variance_interval_).all()
    return pickle.dumps(model), str(report), json.dumps(report.to_dict()), [str(warning.message) for warning in said]


def test_disjoint_tables_with_the_same_answers_leave_the_same_bits(monkeypatch):
    others = np.full((N, D), 1e300) * (-1.0) ** np.arange(N)[:, None]
    for seed in range(3):
        assert left_by(X, seed, monkeypatch) == left_by(others, seed, monkeypatch)
    assert left_by(X, 0, monkeypatch, True) != left_by(others, 0, monkeypatch, True)


@pytest.mark.parametrize("scale", (0.0, 1e-320, 1e-30, 1e30, 1e300))
def test_no_answer_makes_a_number_that_is_not_finite(scale, monkeypatch):
    """Nothing after the charge fails, whatever noise makes of the answers."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(Oracle, "_answer", lambda self, query, *rest: np.clip(scale * rng.normal(size=query.size), -1e9, 1e9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = DPPCA(3, feature_bounds=1.0, whiten=True).fit(X)
    for value in (model.components_, model.explained_variance_interval_, model.explained_variance_ratio_, model.transform(X)):
        assert np.isfinite(value).all()


def coverage(n, epsilon, repeats):
    """Shares of intervals of the first three that are found, if they are, which hold the variance of clipped rows."""
    geometries, ask, held = [], Oracle.ask, []
    population = np.random.default_rng(2).standard_t(4, size=(40_000, 6)) * np.geomspace(1, 0.2, 6) / 6

    def asked(self, query):
        geometries.append(query.geometry)
        return ask(self, query)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oracle, "ask", asked)
        for seed in range(repeats):
            sample = population[np.random.default_rng(seed).integers(len(population), size=n)]
            model = fitted(DPPCA(3, epsilon=epsilon, feature_bounds=1.0), sample, seed=seed)
            g = geometries[-1]
            z = (np.clip(population, -1, 1) - g.centre) * g.scale
            clipped = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0)
            true = np.linalg.eigvalsh(np.cov(clipped.T))[::-1][:3] * model.clip_radius_**2
            low, high = model.explained_variance_interval_.T
            held += ((low <= true) & (true <= high))[: model.n_above_noise_].tolist()
    return np.mean(held)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "n, epsilon, repeats",
    [(2000, 1.0, 8), *(pytest.param(*c, marks=pytest.mark.slow) for c in ((5000, 3.0, 100), (500, 0.5, 100)))],
)
def test_intervals_hold_the_variances_of_clipped_rows(n, epsilon, repeats):
    """At a true coverage of .93, fewer than .75 of 24 have a probability of .3 %, and fewer than .86 of 200 one of .02 %."""
    assert coverage(n, epsilon, repeats) >= (0.75 if repeats == 8 else 0.86)


def test_the_sampling_of_heavy_tails_widens_intervals(monkeypatch):
    """The twin takes all scores for normal ones."""
    rare = np.zeros((4000, 3))
    rare[:400, 0], rare[:, 1:] = 1.0, np.random.default_rng(0).uniform(-0.02, 0.02, size=(4000, 2))
    wide = fitted(DPPCA(1, epsilon=3.0, feature_bounds=1.0), rare).explained_variance_interval_
    monkeypatch.setattr(principal_components.Spectrum, "_spreads", lambda self, *given: 2 * np.square(self.variances))
    narrow = fitted(DPPCA(1, epsilon=3.0, feature_bounds=1.0), rare).explained_variance_interval_
    assert np.diff(wide)[0, 0] > 1.5 * np.diff(narrow)[0, 0]
