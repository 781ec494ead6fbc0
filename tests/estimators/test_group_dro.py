"""Test DPGroupDROClassifier: the loss of the worst group, what is read without noise, clip norms, steps and errors."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from grouped import brief, table
from scipy import sparse
from scipy.optimize import minimize
from seeded import fitted
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from skdp import DPGroupDROClassifier, DPMinimax, load_model, save_model
from skdp.minimax import GroupDROSaddle
from skdp.preprocessing import BoundedScaler
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import JointGradient, PrimalGradient
from skdp.scorers import LinearScorer
from skdp.solvers import SGDA, PrivateDiff

SOLVERS = pytest.mark.parametrize("solver", ("sgda", "privatediff"))
without_noise = pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")


def losses(X, y, groups, coef, intercept):
    margins = np.where(y == 1, 1, -1) * (X @ coef + intercept)
    each = np.logaddexp(0, -margins)
    return np.array([each[groups == group].mean() for group in np.unique(groups)])


def largest_loss(X, y, groups):
    """The least possible one, by a solver for constrained problems: min t with every group's loss at most t."""

    def slack(point):
        return point[-1] - losses(X, y, groups, point[:-2], point[-2])

    start = np.append(np.zeros(X.shape[1] + 1), 1.0)
    found = minimize(lambda point: point[-1], start, constraints={"type": "ineq", "fun": slack}, tol=1e-12)
    assert found.success
    return found.fun


LONG = {"primal_clip_norm": 1e3, "dual_clip_norm": 1e3}  # clip nothing


@pytest.mark.exhaustive
@without_noise
@pytest.mark.parametrize("solver", (SGDA(1500, **LONG), PrivateDiff(1500, **LONG)), ids=("sgda", "privatediff"))
@pytest.mark.parametrize("given, store", (({}, np.asarray), ({"standardize": False, "primal_step_size": 0.3}, sparse.csr_array)))
def test_without_noise_the_largest_loss_of_a_group_is_the_least_possible(solver, given, store):
    """Far below that of a fit to the mean of all records; the dual variables say which groups are at the largest loss."""
    X, y, groups = table(200)
    model = DPGroupDROClassifier(math.inf, solver=clone(solver).set_params(**given), data_norm=20.0)
    model.fit(store(X), y, groups=groups)
    found, least = losses(X, y, groups, model.coef_[0], model.intercept_[0]), largest_loss(X, y, groups)
    assert found.max() <= least + 1e-3
    plain = LogisticRegression(C=1e6).fit(X, y)
    assert losses(X, y, groups, plain.coef_[0], plain.intercept_[0]).max() > least + 0.03
    assert model.group_weights_.sum() == pytest.approx(1) and model.group_weights_.min() >= 0
    assert (found[model.group_weights_ > 0.05] > least - 0.01).all()


@pytest.mark.slow
@without_noise
def test_one_group_is_logistic_regression():
    """None, and a label that all records share; without noise to the optimum of the mean loss."""
    X, y, _ = table(200)
    fits = [DPGroupDROClassifier(math.inf, data_norm=20.0).fit(X, y, groups=groups) for groups in (None, ["all"] * len(y))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].groups_.tolist() == [0] and fits[1].groups_.tolist() == ["all"]
    assert fits[0].group_weights_ == pytest.approx(1.0)
    np.testing.assert_allclose(fits[0].coef_, LogisticRegression(C=1e6).fit(X, y).coef_, atol=0.03)


@pytest.mark.slow
@without_noise
def test_the_penalty_shrinks_coefficients_and_spares_the_intercept():
    X, y, groups = table(200)
    y = np.where(np.arange(len(y)) % 20 < 17, 1, y)
    weak, strong = (DPGroupDROClassifier(math.inf, alpha=alpha, data_norm=20.0).fit(X, y, groups=groups) for alpha in (None, 5.0))
    assert np.abs(strong.coef_).max() < 0.1 * np.abs(weak.coef_).max() and strong.intercept_[0] > 0.15


@SOLVERS
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("standardize", (None, False))
def test_a_plan_is_what_a_fit_releases(solver, adjacency, standardize):
    X, y, groups = table(100)
    kind = {"sgda": SGDA, "privatediff": PrivateDiff}[solver]
    model = DPGroupDROClassifier(adjacency=adjacency, solver=kind(6, standardize=standardize))
    done = model.fit(X, y, groups=groups).privacy_report_
    for sizes in ([60, 30, 10], {"a": 60, "b": 30, "c": 10}, np.array([60, 30, 10])):
        planned = model.plan(100, 3, group_sizes=sizes)
        assert planned.releases == done.releases and planned.spent == done.spent and planned.noise_size == done.noise_size
    names = [line.query for line in done.releases]
    assert ("Moments" in names) == (standardize is None) and "LabelSum" not in names


def test_noise_is_compared_with_the_smallest_group():
    """A tenth of the records, ten times the noise: by how much of a mean gradient is stated."""

    def stated(sizes):
        return float(DPGroupDROClassifier().plan(1000, 3, group_sizes=sizes).noise_size.split("coordinate, ")[1].split()[0])

    assert stated([900, 100]) == pytest.approx(10 * stated(None), rel=0.01)
    assert stated([500, 500]) == pytest.approx(2 * stated(None), rel=0.01)
    drowned = DPGroupDROClassifier(0.01).plan(1000, 3, group_sizes=[990, 10]).noise_size
    assert "take more records of the smallest group" in drowned


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_report_says_that_groups_are_public_and_kept_by_neighbours(adjacency):
    X, y, groups = table(100)
    model = brief(adjacency=adjacency)
    for report in (model.fit(X, y, groups=groups).privacy_report_, model.plan(100, 3, group_sizes=[60, 40])):
        (line,) = (line for line in report.assumptions if "group of every record" in line)
        assert "public and not protected: neighbours keep them" in line and "made from the labels" in line
        assert report.to_dict()["adjacency_in_words"].endswith(", of the same group")
        assert "of the same group" in " ".join(str(report).split())
        assert not any("unreviewed" in line for line in report.assumptions)
    alone = model.fit(X, y).privacy_report_
    assert not any("group" in line for line in (*alone.assumptions, alone.adjacency_in_words))


@SOLVERS
def test_labels_are_never_read_in_the_clear_and_of_groups_only_their_sizes(solver, monkeypatch):
    """Every answer is replaced by one that has neither in it: labels and members can be anything then."""
    X, y, groups = table(100)
    rows_of = TrainingData(X, np.arange(100) % 2, data_norm=2.0, intercept_scaling=1.0, by_row=True)
    ask = Oracle.ask

    def blind(self, query):
        self._rows = rows_of
        return ask(self, query)

    monkeypatch.setattr(Oracle, "ask", blind)
    model = brief(solver={"sgda": SGDA, "privatediff": PrivateDiff}[solver](10))
    fits = [
        fitted(clone(model), X, labels, groups=members)
        for labels, members in ((y, groups), (1 - y, groups), (y, groups[::-1]), (np.arange(100) == 7, np.roll(groups, 3)))
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
        np.testing.assert_array_equal(fit.group_weights_, fits[0].group_weights_)
    other = fitted(clone(model), X, y, groups=groups > 1)
    assert np.abs(other.coef_ - fits[0].coef_).max() > 1e-6


def test_labels_and_groups_are_side_by_side_behind_the_oracle(monkeypatch):
    X, y, groups = table(100)
    seen, begin = [], Oracle.__init__
    monkeypatch.setattr(
        Oracle, "__init__", lambda self, rows, *rest: (seen.extend((rows._y, rows._groups)), begin(self, rows, *rest))[1]
    )
    fitted(brief(), X, np.array(["no", "yes"])[y], groups=np.array(["z", "y", "x"])[groups])
    np.testing.assert_array_equal(seen, [y, 2 - groups])
    assert [array.dtype for array in seen] == [np.int8, np.int8]


def test_the_clip_norm_follows_the_weights_of_the_groups_unless_it_is_given(monkeypatch):
    """The noise with it: a record weighs n_min / n_g times its group's weight at most."""
    X, y, groups = table(600)
    asked, ask = [], Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda self, query: (asked.append(query), ask(self, query))[1])
    for given in (None, 0.7):
        asked.clear()
        fitted(DPGroupDROClassifier(5.0, solver=SGDA(30, primal_clip_norm=given)), X, y, groups=groups)
        steps = [query for query in asked if isinstance(query, JointGradient)]
        norms, usual = np.array([query.primal_clip_norm for query in steps]), steps[0].saddle.primal_clip_norm
        weights = np.array([1 / 6, 1 / 3, 1.0])
        expected = [usual * (weights * query.dual).max() if given is None else given for query in steps]
        np.testing.assert_allclose(norms, expected)
        assert given or norms[0] == pytest.approx(usual / 10)


def test_the_clip_norm_of_a_restart_follows_them_too(monkeypatch):
    X, y, groups = table(600)
    asked, ask = [], Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda self, query: (asked.append(query), ask(self, query))[1])
    fitted(DPGroupDROClassifier(5.0, solver=PrivateDiff(12, restart_every=3)), X, y, groups=groups)
    restarts = [query for query in asked if isinstance(query, PrimalGradient)]
    reaches = [(np.array([1 / 6, 1 / 3, 1.0]) * query.dual).max() for query in restarts]
    assert len(restarts) == 4 and max(reaches) > min(reaches)
    np.testing.assert_allclose([query.clip_norm for query in restarts], np.multiply(reaches, restarts[0].saddle.primal_clip_norm))


@pytest.mark.parametrize("given", (None, 0.7))
def test_the_step_follows_the_noise_of_the_clip_norm(given, monkeypatch):
    """At the start, where the weights are the groups' shares, noise is a tenth, and the signal that sets the step ten times."""
    X, y, groups = table(600)
    told, sizes = [], GroupDROSaddle.step_sizes
    monkeypatch.setattr(GroupDROSaddle, "step_sizes", lambda self, *facts: (told.append(facts[0]), sizes(self, *facts))[1])
    fitted(brief(solver=SGDA(1, primal_clip_norm=given)), X, y, groups=groups)
    assert told == [pytest.approx(told[0] * factor) for factor in ((1, 10) if given is None else (1,))]


@SOLVERS
def test_the_saddle_problem_is_also_for_a_fit_of_ones_own(solver):
    X, y, groups = table(200)
    saddle = GroupDROSaddle(LinearScorer(3), (120, 60, 20), usual=10.0)
    model = fitted(DPMinimax(saddle, epsilon=5.0, solver=solver, data_norm=3.0), X, y + 2 * groups)
    assert model.dual_.sum() == pytest.approx(1) and model.primal_.shape == (4,)
    assert not any("unreviewed" in line for line in model.privacy_report_.assumptions)


def test_names_clone_pickle_and_file(tmp_path):
    X, y, groups = table(200)
    frame, labels = pd.DataFrame(X, columns=list("abc")), np.array(["no", "yes"])[y]
    model = fitted(brief(), frame, labels, groups=pd.Series(groups).map(str))
    assert model.feature_names_in_.tolist() == list("abc") and model.groups_.tolist() == ["0", "1", "2"]
    save_model(model, tmp_path / "model.skops")
    for restored in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model.skops")):
        np.testing.assert_array_equal(restored.predict_proba(frame), model.predict_proba(frame))
        np.testing.assert_array_equal(restored.groups_, model.groups_)
    assert repr(clone(model)) == repr(model) and not hasattr(clone(model), "groups_")
    refit = model.fit(frame, labels)
    assert refit.groups_.tolist() == [0] and refit.group_weights_ == pytest.approx(1.0)
    np.testing.assert_array_equal(model.predict(frame), model.classes_[(model.decision_function(frame) > 0).astype(int)])
    np.testing.assert_allclose(np.log(model.predict_proba(frame)), model.predict_log_proba(frame))
    assert model.score(frame, labels) == (model.predict(frame) == labels).mean()


def test_groups_are_routed():
    """Through a pipeline and through cross-validation, where scikit-learn routes metadata."""
    X, y, groups = table(200)
    model = brief()
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(model).set_fit_request(groups=True)
        pipeline = fitted(make_pipeline(BoundedScaler((-10, 10)), asking), X, y, groups=groups)
        scaled = BoundedScaler((-10, 10)).fit_transform(X)
        np.testing.assert_array_equal(pipeline[-1].coef_, fitted(clone(model), scaled, y, groups=groups).coef_)
        found = cross_validate(asking, X, y, params={"groups": groups}, cv=2, return_estimator=True)
    assert all(fit.groups_.tolist() == [0, 1, 2] for fit in found["estimator"])


@pytest.mark.parametrize(
    "name", ("class_weight", "clip_norm", "fit_intercept", "groups", "intercept_scaling", "l1_ratio", "loss", "C", "penalty")
)
def test_parameters_of_other_classifiers_are_refused_with_the_reason(name):
    for call in (lambda: DPGroupDROClassifier(**{name: 1}), lambda: DPGroupDROClassifier().set_params(**{name: 1})):
        with pytest.raises(TypeError, match=f"DPGroupDROClassifier does not take {name}: .{{20}}"):
            call()


def test_sample_weight_and_solvers_of_losses_are_refused():
    X, y, groups = table(100)
    with pytest.raises(TypeError, match="does not take sample_weight"):
        DPGroupDROClassifier().fit(X, y, groups=groups, sample_weight=np.ones(100))
    with pytest.raises(ValueError, match=r"solver='gd' needs .* Solvers that fit: privatediff, sgda\."):
        DPGroupDROClassifier(solver="gd").plan(100, 3)
    with pytest.raises(ValueError, match="solver='sgda' does not support pure epsilon-DP"):
        DPGroupDROClassifier(delta=0).plan(100, 3)


def test_tags_are_honest():
    tags = DPGroupDROClassifier().__sklearn_tags__()
    assert not tags.classifier_tags.multi_class and tags.classifier_tags.poor_score
    assert not DPGroupDROClassifier(math.inf).__sklearn_tags__().classifier_tags.poor_score
