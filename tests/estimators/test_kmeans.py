"""Clusters: what they are in units of X, what is refused, which releases there are, and what they alone decide."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom
from seeded import fitted
from sklearn.cluster import KMeans

from skdp import DPKMeans, LowSignalWarning, PrivacyLedger
from skdp.privacy.oracle import Oracle
from skdp.solvers.statistics import clusters
from skdp.solvers.statistics.clusters import Stages

CENTRES = np.array([[0.5, 0.5, 0.0], [-0.5, 0.5, 0.2], [0.0, -0.5, -0.3]])


def mixture(n=6000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    points = np.zeros((3, d))
    points[:, : min(d, 3)] = CENTRES[:, :d]
    return np.clip(points[np.arange(n) % 3] + 0.1 * rng.normal(size=(n, d)), -1, 1)


def paired(found):
    """The centres of a model in the order of those of the mixture."""
    return found[[int(np.argmin(np.linalg.norm(found - centre, axis=1))) for centre in CENTRES]]


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_centres_and_counts_are_those_of_the_clusters(adjacency):
    """Their errors are below 6 standard deviations of what is stated, as in all but 1 of 10**8 fits."""
    X = mixture()
    model = fitted(DPKMeans(3, epsilon=2.0, adjacency=adjacency, feature_bounds=1.0, random_state=0), X)
    order = [int(np.argmin(np.linalg.norm(model.cluster_centers_ - centre, axis=1))) for centre in CENTRES]
    assert sorted(order) == [0, 1, 2]
    sampling = 0.1 / math.sqrt(2000)
    errors = np.abs(model.cluster_centers_[order] - CENTRES) / np.hypot(model.cluster_centers_std_[order], sampling)
    assert errors.max() < 6 and np.abs(model.cluster_counts_ - 2000).max() < 6 * model.cluster_counts_std_
    steps = [line.count for line in model.privacy_report_.releases if "Steps" in line.query]
    assert model.signal_ > 10 and model.n_iter_ == sum(steps)


@pytest.mark.slow
@pytest.mark.parametrize("n, epsilon", [(500, 1.0), (5000, 0.1), (5000, 3.0)])
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_counts_cover_the_records_that_are_nearest_to_the_published_centres(n, epsilon, adjacency):
    """Clusters touch, so that many records change theirs in the last step. A false alarm has a probability of 1e-6."""
    X = np.clip(np.random.default_rng(0).standard_t(2, size=(n, 2)) / 10, -1, 1)
    within = 0
    for seed in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(DPKMeans(4, epsilon=epsilon, adjacency=adjacency, feature_bounds=1.0), X, seed=seed)
        errors = model.cluster_counts_ - np.bincount(model.predict(X), minlength=4)
        within += int((np.abs(errors) < 1.96 * model.cluster_counts_std_).sum())
    assert binom.cdf(within, 160, 0.95) > 1e-6


def test_without_noise_it_is_as_good_as_that_of_scikit_learn():
    X = mixture()
    with pytest.warns(UserWarning, match="not private"):
        model = DPKMeans(3, epsilon=math.inf, feature_bounds=1.0, random_state=0).fit(X)
    assert -model.score(X) < 1.001 * KMeans(3, n_init=3, random_state=0).fit(X).inertia_


def test_centres_are_in_units_of_x_and_distances_in_those_of_the_bounds():
    """Columns of other units, and bounds of other widths, give the same clusters; sparse rows, the same to rounding."""
    X, units, shifts = mixture(), np.array([1e3, 1.0, 1e-2]), np.array([5e3, 0.0, 1.0])
    plain = fitted(DPKMeans(3, feature_bounds=1.0, random_state=0), X)
    bounds = np.stack([shifts - units, shifts + units], axis=1)
    moved = fitted(DPKMeans(3, feature_bounds=bounds, random_state=0), X * units + shifts)
    np.testing.assert_allclose((moved.cluster_centers_ - shifts) / units, plain.cluster_centers_, atol=1e-6)
    np.testing.assert_allclose(moved.cluster_centers_std_ / units, plain.cluster_centers_std_, rtol=1e-6)
    np.testing.assert_allclose(moved.transform(X * units + shifts), plain.transform(X), atol=1e-6)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_array_equal(plain.transform(rows).argmin(axis=1), plain.predict(rows))
    expected = np.linalg.norm(X[:, None] - plain.cluster_centers_, axis=2)
    np.testing.assert_allclose(plain.transform(X), expected, atol=1e-7)
    assert plain.score(X) == pytest.approx(-np.square(expected.min(axis=1)).sum())
    assert plain.get_feature_names_out().tolist() == ["dpkmeans0", "dpkmeans1", "dpkmeans2"]
    assert list(plain.set_output(transform="pandas").transform(X)) == plain.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", ("labels_", "inertia_", "fit_predict"))
def test_what_tells_of_each_record_is_refused_with_the_reason(name):
    model = fitted(DPKMeans(2, feature_bounds=1.0), mixture(900))
    with pytest.raises(AttributeError, match=f"^DPKMeans has no {name}: it would be a function of each training record"):
        getattr(model, name)
    assert not hasattr(model, name)


@pytest.mark.parametrize("wrong", (0, -1, 2.5, "8", None))
def test_a_number_of_clusters_that_is_none_is_refused_before_the_charge(wrong, tmp_path):
    with (
        PrivacyLedger(tmp_path / "ledger", epsilon=5.0, delta=1e-3) as ledger,
        pytest.raises((TypeError, ValueError), match="n_clu"),
    ):
        DPKMeans(wrong, feature_bounds=1.0).fit(mixture(30))
    assert not ledger.entries


def test_more_clusters_than_records_are_refused():
    with pytest.raises(ValueError, match="n_clusters=31"):
        DPKMeans(31, feature_bounds=1.0).fit(mixture(30))


def test_a_table_with_little_signal_warns_before_the_charge():
    with pytest.warns(LowSignalWarning, match="may do no better than one centre"):
        DPKMeans(8, epsilon=0.1, feature_bounds=1.0).fit(mixture(300))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPKMeans(3, epsilon=1.0, feature_bounds=1.0).fit(mixture(6000))


FACTS = [  # records, features, clusters, epsilon: hidden or not, with and without components, distances and two stages
    (20, 1, 1, 0.01),
    (50, 2, 20, 0.05),
    (300, 3, 2, 0.1),
    (60, 1100, 2, 5.0),
    (900, 6, 3, 0.5),
    (6000, 2, 8, 1.0),
    (6000, 12, 3, 3.0),
]


@pytest.mark.parametrize("n, d, k, epsilon", FACTS)
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_releases_follow_from_public_facts_whatever_the_records_are(n, d, k, epsilon, adjacency):
    """Records at one point, in two corners, or outside the bounds: all releases that are planned are made, and all is finite."""
    model = DPKMeans(k, epsilon=epsilon, adjacency=adjacency, feature_bounds=1.0, random_state=0)
    corners = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * np.ones(d)
    for X in (np.zeros((n, d)), corners, 1e200 * corners, mixture(n, d)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted(model, X)
            lines = [(line.query, line.count) for line in model.plan((n, d)).releases]
        assert [(line.query, line.count) for line in model.privacy_report_.releases] == lines
        assert np.abs(model.cluster_centers_).max() <= 1 and np.isfinite(model.cluster_counts_).all()
        assert model.cluster_centers_.shape == model.cluster_centers_std_.shape == (k, d) and (model.cluster_counts_ >= 0).all()


KINDS = {  # parameters, and what comes with the first and the second table
    "records": ({}, {}, {}),
    "weights": ({"max_sample_weight": 2.0}, {"sample_weight": np.full(2000, 2.0)}, {"sample_weight": np.arange(2000) % 2}),
    "persons": ({"privacy_unit": "person"}, {"persons": np.arange(2000) % 900}, {"persons": np.arange(2500) % 900}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_a_model_is_a_function_of_its_answers(adjacency, kind, monkeypatch):
    """Another table with the same public facts, which hears the answers of the first, asks the same and leaves the same model."""
    own, with_first, with_second = KINDS[kind]
    given = {"feature_bounds": 1.0, "random_state": 0, "epsilon": 1.0, "adjacency": adjacency, **own}
    answers, asked, n = [], [], 2500 if kind == "persons" else 2000  # the number of rows of persons is private

    def kept(oracle, query, honest=Oracle.ask):
        answers.append(honest(oracle, query))
        asked.append(query.parameters())
        return answers[-1]

    def replayed(oracle, query, honest=Oracle.ask):
        honest(oracle, query)
        np.testing.assert_equal(query.parameters(), asked.pop(0))
        return answers.pop(0)

    monkeypatch.setattr(Oracle, "ask", kept)
    first = DPKMeans(3, **given).fit(mixture(2000, 4), **with_first)
    monkeypatch.setattr(Oracle, "ask", replayed)
    second = DPKMeans(3, **given).fit(np.full((n, 4), 1e300), **with_second)
    assert not answers and not asked
    for name in ("cluster_centers_", "cluster_centers_std_", "cluster_counts_", "cluster_counts_std_", "signal_", "n_iter_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_weights_count_records_by_the_public_bound(monkeypatch):
    X = mixture()
    model = fitted(DPKMeans(3, feature_bounds=1.0, max_sample_weight=4.0, random_state=0), X, sample_weight=np.full(len(X), 2.0))
    assert model.cluster_counts_.sum() == pytest.approx(2 * len(X), abs=6 * 3 * model.cluster_counts_std_)
    assert np.abs(paired(model.cluster_centers_) - CENTRES).max() < 0.05


@pytest.mark.slow
def test_mixed_columns_go_through_given_and_learned_schemas():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=20_000)
    frame = pd.DataFrame({"age": 20 + 40 * group + 3 * rng.normal(size=20_000), "city": np.array(["a", "b"])[group]})
    schema = {"age": {"kind": "number", "bounds": [0, 120]}, "city": {"kind": "category", "categories": ["a", "b"]}}
    for given in ({"schema": {"columns": schema}}, {"schema": "learn"}, {}):
        model = fitted(DPKMeans(2, epsilon=2.0, random_state=0, **given), frame)
        assert np.mean(model.predict(frame) == group) in (0.0, 1.0)
        assert model.cluster_centers_.shape[1] == len(model.prepared_features_)


def test_shares_add_up_and_stages_follow_from_the_signal():
    task = DPKMeans(3, feature_bounds=1.0)._task()
    for n, d in ((10, 1), (1000, 3), (10**6, 30)):
        problem = task.plan_of(task.planned_facts(n, d, None)[0]).problem
        stages = Stages(problem)
        assert sum(stages.shares.values()) == pytest.approx(1) and 4 <= stages.n_levels <= clusters.MOST_LEVELS
        assert len(stages.steps) == 1 + (stages.signal > clusters.TWO_STAGES)


def test_equal_centres_neither_warn_nor_make_a_number_that_is_not_finite():
    """Steps may move several centres to the same corner."""
    for points, counts in ((np.ones((6, 2)), np.zeros(6)), (np.repeat(np.eye(3), 2, axis=0), np.arange(6.0))):
        assert np.isfinite(clusters._k_means(points, 3, np.random.default_rng(0), 2, counts)).all()
