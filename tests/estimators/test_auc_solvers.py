"""Test DPAUCMaximizer on the saddle problem: the first releases, networks and their scores, and the penalty."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from seeded import fitted

import skdp.estimators._auc
from skdp import DPAUCMaximizer
from skdp._data_validation import Facts
from skdp.privacy.oracle import Oracle
from skdp.scorers import MLPScorer
from skdp.solvers import SGDA, PrivateDiff

LAYERS = (5, 3)
BOTH = pytest.mark.parametrize(
    "solver", (SGDA(4), PrivateDiff(4), SGDA(4, batch_size=50), PrivateDiff(4, batch_size=50)), ids=str
)
KINDS = pytest.mark.parametrize("scorer", ("linear", "mlp"))


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 4))
    return X, (X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=300) > 0.6).astype(int)


def model(**more):
    return DPAUCMaximizer(**{"hidden_layer_sizes": LAYERS, "solver": SGDA(4)} | more)


@pytest.mark.each_value
@KINDS
@BOTH
@pytest.mark.parametrize("rate", (None, 0.2))
@pytest.mark.parametrize("standardize", (None, False, True))
def test_what_is_released_before_the_steps(scorer, solver, rate, standardize, table, monkeypatch):
    """The class frequencies unless they are public, moments where features are standardised; answers have the stated sizes."""
    sizes, ask = [], Oracle.ask

    def watching(self, query):
        answer = ask(self, query)
        sizes.append((self.transcript[-1].size, answer.size))
        return answer

    monkeypatch.setattr(Oracle, "ask", watching)
    kind, given = type(solver), solver.get_params() | {"standardize": standardize}
    done = fitted(model(scorer=scorer, solver=kind(**given), positive_rate=rate), *table)
    names = [line.query for line in done.privacy_report_.releases]
    moved = (scorer == "linear") if standardize is None else standardize
    expected = ["LabelSum"] * (rate is None) + ["Moments"] * moved
    assert names[: len(expected)] == expected and not {"LabelSum", "Moments"} & set(names[len(expected) :])
    assert all(stated in (None, answered) for stated, answered in sizes)
    assert all(stated is not None for stated, _ in sizes[len(expected) :])


@pytest.mark.parametrize("rate", (None, 0.2))
def test_the_preparation_has_its_share_where_there_is_one(rate):
    """Full batches: inverse squares of the multipliers over sensitivities add up to 1, a fifth of the share for the rate."""
    for scorer, share in (("linear", 0.2 if rate else 0.25), ("mlp", 0.0 if rate else 0.05)):
        kinds = {"LabelSum", "Moments"}
        model_ = model(scorer=scorer, positive_rate=rate, adjacency="zero_out", solver=SGDA(10, preparation_share=0.25))
        plan = model_._task().plan_of(Facts(1000, 4, classes=np.arange(2)))
        parts = {name: 0.0 for name in ("before", "steps")}
        for count, release in plan.schedule.entries:
            parts["before" if release.query.__name__ in kinds else "steps"] += count / release.mechanism.weight**2
        assert parts == {"before": pytest.approx(share), "steps": pytest.approx(1 - share)}


def test_auto_depends_on_the_score(table):
    for scorer, name in (("linear", "standardized_gd"), ("mlp", "sgda")):
        report = model(scorer=scorer, solver="auto").plan(1000, 3)
        assert report.solver == name


@pytest.mark.slow
@pytest.mark.each_value
@BOTH
@pytest.mark.parametrize("store", (np.asarray, lambda X: X.astype(np.float32), sparse.csr_array, sparse.csc_matrix))
def test_a_network_scores_as_its_layers_say(solver, store, table, monkeypatch):
    """Blocks that do not divide the rows; the same layers as scikit-learn's networks have."""
    X, y = store(table[0]), table[1]
    done = fitted(model(scorer="mlp", solver=solver), X, y)
    assert [part.shape for part in done.coefs_] == [(4, 5), (5, 3), (3, 1)]
    assert [part.shape for part in done.intercepts_] == [(5,), (3,), (1,)]
    assert not hasattr(done, "coef_")
    monkeypatch.setattr(skdp.estimators._auc, "BLOCK", 13)
    scores = done.decision_function(X)
    flat = np.concatenate([np.append(w.T.ravel(), b) for w, b in zip(done.coefs_, done.intercepts_, strict=True)])
    expected = MLPScorer(4, LAYERS).at(np.asarray(sparse.csr_array(X).toarray(), dtype=float), flat).scores
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(done.predict(X), done.classes_[(scores > 0).astype(int)])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(done)).decision_function(X), scores)
    assert 0.0 <= done.score(X, y) <= 1.0


def test_a_refit_with_another_score_leaves_no_attribute_behind(table):
    """The scores are those of the last fit."""
    done = fitted(model(scorer="mlp"), *table)
    done.set_params(scorer="linear").fit(*table)
    assert not hasattr(done, "coefs_") and done.decision_function(table[0]).shape == (300,)
    np.testing.assert_allclose(done.decision_function(table[0]), table[0] @ done.coef_[0] + done.intercept_[0])


@pytest.mark.slow
def test_without_noise_a_network_ranks_what_no_linear_score_does():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(1500, 2))
    y = (np.abs(X[:, 0]) > 0.6).astype(int)
    scores = []
    for scorer in ("linear", "mlp"):
        solver = SGDA(600, batch_size=300, primal_step_size=0.2, dual_step_size=0.2, output="last")
        with pytest.warns(UserWarning, match="not private"):
            scores.append(
                fitted(model(epsilon=math.inf, scorer=scorer, hidden_layer_sizes=(16,), solver=solver), X, y).score(X, y)
            )
    assert scores[0] < 0.6 and scores[1] > 0.95


@pytest.mark.slow
def test_a_penalty_spares_the_mean_scores(table):
    """A huge one makes all coefficients vanish; it is not on a and b."""
    X, y = table
    weak, strong = [
        model(epsilon=math.inf, alpha=alpha, solver=SGDA(500, primal_step_size=0.01, output="last")) for alpha in (1e-9, 50.0)
    ]
    with pytest.warns(UserWarning, match="not private"):
        assert np.abs(fitted(strong, X, y).coef_).max() < 0.05 * np.abs(fitted(weak, X, y).coef_).max()
    problem = model()._task().plan_of(Facts(300, 4, classes=np.arange(2))).problem
    saddle = problem.prepared(lambda query: np.zeros(query.size), 0.1, False)
    np.testing.assert_array_equal(saddle.penalized(np.arange(1.0, 7.0)), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0])


@KINDS
@pytest.mark.parametrize("standardize", (None, False, True))
@pytest.mark.parametrize("rate", (None, 0.2))
def test_the_report_states_clip_norms_that_no_release_sets(scorer, standardize, rate, table, monkeypatch):
    asked, ask = {}, Oracle.ask

    def watching(self, query):
        asked.setdefault(type(query).__name__, query.clip_norm)
        return ask(self, query)

    monkeypatch.setattr(Oracle, "ask", watching)
    report = fitted(
        model(scorer=scorer, solver=PrivateDiff(4, standardize=standardize), positive_rate=rate), *table
    ).privacy_report_
    stated = {line.query: line.clip_norm for line in report.releases}
    moved = scorer == "linear" and standardize is not False
    assert stated["PrimalGradient"] == (None if moved else asked["PrimalGradient"]) and stated["DualGradient"] == 1.0
    resolved = report.public["resolved"]["clip_norm"]
    assert resolved == ("set by earlier releases" if moved else asked["PrimalGradient"])
    assert model(scorer=scorer, solver=SGDA(4, primal_clip_norm=0.7)).plan(300, 4).public["resolved"]["clip_norm"] == 0.7


@KINDS
def test_the_report_says_what_the_penalty_is_on(scorer):
    """Biases of a network are penalised, as its weights are; a linear score's intercept is none of the variables."""
    penalty = model(scorer=scorer, alpha=0.5).plan(300, 4).public["resolved"]["penalty"]
    assert penalty.endswith({"linear": ", which spares the intercept", "mlp": ", which includes the biases"}[scorer])
