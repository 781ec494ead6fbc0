"""DPGroupDROClassifier: the worst group's loss, public groups of every kind, what is read in the clear, what is refused."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from skdp import DPGroupDROClassifier, DPMinimax, PrivacyLedger, load_model, save_model
from skdp.minimax import GroupDROSaddle
from skdp.preprocessing import BoundedScaler
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import JointGradient, PrimalGradient
from skdp.privacy.rows import Rows
from skdp.scorers import LinearScorer
from skdp.solvers import SGDA, PrivateDiff

SOLVERS = pytest.mark.parametrize("solver", ("sgda", "privatediff"))
without_noise = pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")


def table(n=600, seed=0):
    """Three groups, the smaller the more unlike the largest one."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 3)) * [1.0, 0.5, 2.0] + [0.5, 0.0, -1.0], np.arange(n) % 10
    groups = np.select([groups < 6, groups < 9], [0, 1], 2)
    slopes = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.3], [-0.5, 1.0, 0.5]])[groups]
    return X, ((X * slopes).sum(axis=1) + rng.logistic(size=n) > 0.5 * groups).astype(int), groups


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


def brief(**more):
    """Of few steps."""
    return DPGroupDROClassifier(5.0, **{"solver": SGDA(10), "random_state": 0} | more)


LONG = {"primal_clip_norm": 1e3, "dual_clip_norm": 1e3}  # clip nothing


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


@without_noise
def test_one_group_is_logistic_regression():
    """None, and a label that all records share; without noise to the optimum of the mean loss."""
    X, y, _ = table(200)
    fits = [DPGroupDROClassifier(math.inf, data_norm=20.0).fit(X, y, groups=groups) for groups in (None, ["all"] * len(y))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].groups_.tolist() == [0] and fits[1].groups_.tolist() == ["all"]
    assert fits[0].group_weights_ == pytest.approx(1.0)
    np.testing.assert_allclose(fits[0].coef_, LogisticRegression(C=1e6).fit(X, y).coef_, atol=0.03)


@without_noise
def test_the_penalty_shrinks_coefficients_and_spares_the_intercept():
    X, y, groups = table(200)
    y = np.where(np.arange(len(y)) % 20 < 17, 1, y)
    weak, strong = (DPGroupDROClassifier(math.inf, alpha=alpha, data_norm=20.0).fit(X, y, groups=groups) for alpha in (None, 5.0))
    assert np.abs(strong.coef_).max() < 0.1 * np.abs(weak.coef_).max() and strong.intercept_[0] > 0.15


KINDS = {
    "integers": lambda groups: groups,
    "a list": lambda groups: groups.tolist(),
    "unsigned": lambda groups: groups.astype(np.uint8),
    "floats": lambda groups: groups / 4,
    "text": lambda groups: np.array(["a", "b", "c"])[groups],
    "a list of text": lambda groups: ["abc"[group] for group in groups],
    "objects": lambda groups: np.array(["a", "b", "c"], dtype=object)[groups],
    "whole objects": lambda groups: groups.astype(object),
    "a tuple of numbers": lambda groups: tuple(float(group) if group else 0 for group in groups),
    "a series": lambda groups: pd.Series(groups, index=np.arange(len(groups))[::-1]),
    "a series of text": lambda groups: pd.Series(["abc"[group] for group in groups], dtype="string"),
    "categories": lambda groups: pd.Categorical.from_codes(groups, ["x", "y", "z", "never"]),
    "a series of categories": lambda groups: pd.Series(pd.Categorical.from_codes(groups, ["x", "y", "z"])),
    "of polars": lambda groups: pl.Series(["abc"[group] for group in groups]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_every_kind_give_the_same_fit(kind):
    X, y, groups = table(100)
    fits = [brief().fit(X, y, groups=given) for given in (groups, KINDS[kind](groups))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].group_weights_, fits[1].group_weights_)
    assert fits[1].groups_.tolist() == sorted(fits[1].groups_.tolist()) == sorted(set(np.asarray(KINDS[kind](groups)).tolist()))
    assert fits[1].groups_.dtype.kind != "O"
    assert json.loads(fits[1].privacy_report_.to_json())["public"]["groups"] == fits[1].groups_.tolist()
    assert fits[1].privacy_report_.public["resolved"]["group_sizes"] == "[60, 30, 10]"


def test_two_labels_of_truth_are_groups_too():
    X, y, groups = table(100)
    model = brief().fit(X, y, groups=groups > 0)
    assert model.groups_.tolist() == [False, True] and model.group_weights_.shape == (2,)


def test_many_groups():
    """More than an int8 holds, of two records each."""
    X, y, _ = table(600)
    model = brief().fit(X, y, groups=np.arange(600) // 2)
    np.testing.assert_array_equal(model.group_sizes_, np.full(300, 2))
    assert model.group_weights_.shape == (300,) and model.group_weights_.sum() == pytest.approx(1)
    assert len(str(model.privacy_report_)) < 6000


GROUPS = np.array([0] * 60 + [1] * 38 + [2, 3])
REFUSED = {
    "too few": (GROUPS[:-1], ValueError, "groups has 99 labels for 100 records"),
    "too many": (np.append(GROUPS, 0), ValueError, "groups has 101 labels for 100 records"),
    "alone": (GROUPS, ValueError, r"groups has 2 label\(s\) of one record each; expected at least 2"),
    "each alone": (np.arange(100), ValueError, r"groups has 100 label\(s\) of one record each"),
    "a number": (3, TypeError, "groups is no list or column"),
    "a word": ("abc", TypeError, "groups is no list or column"),
    "a table": (np.zeros((100, 2)), TypeError, "groups is no list or column"),
    "a column": (np.zeros((100, 1)), TypeError, "groups is no list or column"),
    "ragged": ([[1], [1, 2]] * 50, TypeError, "several types, or missing ones"),
    "a frame": (pd.DataFrame({"group": GROUPS}), TypeError, "groups is no list or column"),
    "sparse": (sparse.csr_array(np.ones((1, 100))), TypeError, "groups is no list or column"),
    "masked": (np.ma.array(GROUPS % 2, mask=np.arange(100) < 3), TypeError, "or some are missing"),
    "NaN": (np.where(np.arange(100) < 5, np.nan, 1.0), ValueError, "missing or infinite labels"),
    "infinite": (np.where(np.arange(100) < 5, np.inf, 1.0), ValueError, "missing or infinite labels"),
    "None": ([None] * 5 + ["a"] * 95, TypeError, "several types, or missing ones"),
    "NaN in text": (np.array([np.nan] * 5 + ["a"] * 95, dtype=object), TypeError, "several types, or missing ones"),
    "missing": (pd.Series([pd.NA] * 5 + ["a"] * 95, dtype="string"), TypeError, "several types, or missing ones"),
    "a category missing": (pd.Categorical.from_codes([-1] * 5 + [0] * 95, [7]), ValueError, "missing or infinite labels"),
    "mixed": ([1] * 50 + ["1"] * 50, TypeError, "several types, or missing ones"),
    "dates": (np.array(["2020-01-01"] * 100, dtype="M8[D]"), TypeError, r"labels of the type datetime64"),
    "complex": (np.full(100, 1j), TypeError, "labels of the type complex128"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_groups_that_do_not_go_with_the_records_are_refused_before_anything_is_paid_for(case, monkeypatch):
    groups, error, message = REFUSED[case]
    monkeypatch.setattr(Oracle, "ask", None)
    X, y, _ = table(100)
    ledger, model = PrivacyLedger(epsilon=5.0, delta=1e-2), DPGroupDROClassifier()
    with ledger, pytest.raises(error, match=message):
        model.fit(X, y, groups=groups)
    assert not ledger.entries and not hasattr(model, "coef_")


def test_labels_are_no_groups_and_groups_have_a_name():
    """Where other classifiers have weights of records, a list would become public groups."""
    X, y, groups = table(100)
    with pytest.raises(ValueError, match="groups is y"):
        DPGroupDROClassifier().fit(X, y, groups=y)
    with pytest.raises(TypeError, match="positional"):
        DPGroupDROClassifier().fit(X, y, groups)


@pytest.mark.parametrize("labels", ([0] * 30, np.arange(30) % 3))
def test_other_numbers_of_classes_cost_nothing(labels):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-2)
    with ledger, pytest.raises(ValueError, match="class"):
        DPGroupDROClassifier().fit(np.eye(30, 3), labels, groups=np.arange(30) % 2)
    with ledger, pytest.raises(ValueError, match=r"Only binary classification is supported.* 3 classes; expected two"):
        DPGroupDROClassifier(classes=[0, 1, 2]).plan(100, 3)
    assert not ledger.entries
    with pytest.raises(ValueError, match="n_classes=3"):
        DPGroupDROClassifier().plan(100, 3, 3)


@pytest.mark.parametrize(
    "sizes, error, message",
    (
        ([50, 40], ValueError, "expected numbers that add up to n_samples=100"),
        ([99, 1], ValueError, r"group_sizes\[1\]=1; expected an integer >= 2"),
        ([50.0, 50.0], TypeError, r"group_sizes\[0\]=50.0; expected an integer"),
        ([], TypeError, "expected a list of the numbers of records"),
        ("50", TypeError, "expected a list of the numbers of records"),
        (100, TypeError, "expected a list of the numbers of records"),
    ),
)
def test_sizes_of_a_plan_must_add_up(sizes, error, message):
    with pytest.raises(error, match=message):
        DPGroupDROClassifier().plan(100, 3, group_sizes=sizes)


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
    rows_of = Rows(X, np.arange(100) % 2, data_norm=2.0, intercept_scaling=1.0, by_row=True)
    ask = Oracle.ask

    def blind(self, query):
        self._rows = rows_of
        return ask(self, query)

    monkeypatch.setattr(Oracle, "ask", blind)
    model = brief(solver={"sgda": SGDA, "privatediff": PrivateDiff}[solver](10))
    fits = [
        clone(model).fit(X, labels, groups=members)
        for labels, members in ((y, groups), (1 - y, groups), (y, groups[::-1]), (np.arange(100) == 7, np.roll(groups, 3)))
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
        np.testing.assert_array_equal(fit.group_weights_, fits[0].group_weights_)
    other = clone(model).fit(X, y, groups=groups > 1)
    assert np.abs(other.coef_ - fits[0].coef_).max() > 1e-6


def test_what_is_behind_the_gate_is_label_and_group_together(monkeypatch):
    X, y, groups = table(100)
    seen, begin = [], Oracle.__init__
    monkeypatch.setattr(Oracle, "__init__", lambda self, rows, *rest: (seen.append(rows._y), begin(self, rows, *rest))[1])
    brief().fit(X, np.array(["no", "yes"])[y], groups=np.array(["z", "y", "x"])[groups])
    np.testing.assert_array_equal(seen[0], y + 2 * (2 - groups))
    assert seen[0].dtype == np.int8


def test_the_clip_norm_follows_the_weights_of_the_groups_unless_it_is_given(monkeypatch):
    """The noise with it: a record weighs n_min / n_g times its group's weight at most."""
    X, y, groups = table(600)
    asked, ask = [], Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda self, query: (asked.append(query), ask(self, query))[1])
    for given in (None, 0.7):
        asked.clear()
        DPGroupDROClassifier(5.0, solver=SGDA(30, primal_clip_norm=given), random_state=0).fit(X, y, groups=groups)
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
    DPGroupDROClassifier(5.0, solver=PrivateDiff(12, restart_every=3), random_state=0).fit(X, y, groups=groups)
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
    brief(solver=SGDA(1, primal_clip_norm=given)).fit(X, y, groups=groups)
    assert told == [pytest.approx(told[0] * factor) for factor in ((1, 10) if given is None else (1,))]


@SOLVERS
def test_the_saddle_problem_is_also_for_a_fit_of_ones_own(solver):
    X, y, groups = table(200)
    saddle = GroupDROSaddle(LinearScorer(3), (120, 60, 20), usual=10.0)
    model = DPMinimax(saddle, epsilon=5.0, solver=solver, data_norm=3.0, random_state=0).fit(X, y + 2 * groups)
    assert model.dual_.sum() == pytest.approx(1) and model.primal_.shape == (4,)
    assert not any("unreviewed" in line for line in model.privacy_report_.assumptions)


@pytest.mark.parametrize("store", (sparse.csr_array, sparse.csc_matrix, np.asfortranarray, pd.DataFrame, list))
def test_every_storage_gives_the_same_model(store):
    X, y, groups = table(200)
    X = np.round(8 * X) / 8
    fits = [brief().fit(stored, y, groups=groups) for stored in (X, store(X))]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-5)
    np.testing.assert_allclose(fits[0].group_weights_, fits[1].group_weights_, atol=1e-5)


def test_names_clone_pickle_and_file(tmp_path):
    X, y, groups = table(200)
    frame, labels = pd.DataFrame(X, columns=list("abc")), np.array(["no", "yes"])[y]
    model = brief().fit(frame, labels, groups=pd.Series(groups).map(str))
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
        pipeline = make_pipeline(BoundedScaler((-10, 10)), asking).fit(X, y, groups=groups)
        scaled = BoundedScaler((-10, 10)).fit_transform(X)
        np.testing.assert_array_equal(pipeline[-1].coef_, clone(model).fit(scaled, y, groups=groups).coef_)
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
