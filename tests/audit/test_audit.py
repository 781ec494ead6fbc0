"""The audit as users meet it: refusals, reproducibility, what it prints, and what it leaves alone."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from marks import slow
from saddles import Regression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skdp import DPAdditiveClassifier, DPAUCMaximizer, DPLogisticRegression, DPMinimax, PrivacyLedger, WeakPrivacyWarning
from skdp.audit import audit, audit_one_run
from skdp.privacy.errors import TableWarning
from skdp.solvers import SGD, SGDA, GradientDescent

X, Y = np.zeros((20, 2)), np.arange(20) % 2


def estimator(epsilon=4.0, **params):
    return DPLogisticRegression(epsilon, **{"delta": 1e-5, "solver": GradientDescent(2), **params})


@pytest.mark.parametrize("auditor", (audit, audit_one_run), ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "model, error, message",
    (
        (make_pipeline(MaxAbsScaler(), estimator()), TypeError, "got Pipeline; for a pipeline, pass its last step"),
        (LogisticRegression(), TypeError, "one private estimator, got LogisticRegression"),
        (estimator(float("inf")), ValueError, "epsilon=inf claims nothing"),
        (estimator(-1.0), ValueError, "epsilon=-1.0; expected a positive number"),
    ),
    ids=("pipeline", "scikit-learn", "infinite", "negative"),
)
def test_what_cannot_be_audited_is_refused(auditor, model, error, message):
    with pytest.raises(error, match=message):
        auditor(model, X, Y)


@pytest.mark.parametrize(
    "auditor, final", ((audit, {"views": "final"}), (audit_one_run, {"view": "final"})), ids=("audit", "run")
)
def test_models_that_are_not_linear_are_audited_by_their_transcript(auditor, final):
    network = DPAUCMaximizer(4.0, delta=1e-5, scorer="mlp", hidden_layer_sizes=(2,), solver=SGDA(1), data_norm=1.0)
    few = {"n_runs": 20} if auditor is audit else {"n_canaries": 4}
    with pytest.raises(ValueError, match="expected the view 'transcript' for a network"):
        auditor(network, X, Y, **few, **final)
    assert auditor(network, X, Y, random_state=0, **few, **dict.fromkeys(final, "transcript")).consistent
    with pytest.raises(TypeError, match="need a loss of labels or targets"):
        auditor(DPMinimax(Regression, epsilon=4.0, solver=SGDA(1)), X, Y, **few)
    with pytest.raises(TypeError, match="columns of a data frame"):
        auditor(DPAdditiveClassifier(epsilon=4.0, feature_bounds=1.0, knots=0), X, Y, **few)


@pytest.mark.slow
@pytest.mark.parametrize("auditor", (audit, audit_one_run), ids=lambda f: f.__name__)
def test_columns_are_not_learned_in_an_audit(auditor):
    """Its canaries would be records of a frame, and it would attack the second stage alone."""
    few = {"n_runs": 20} if auditor is audit else {"n_canaries": 4}
    table, named = np.asarray(X), pd.DataFrame(np.asarray(X), columns=[f"x{i}" for i in range(np.shape(X)[1])])
    for schema in ("learn", {"x0": "number"}):
        with pytest.raises(ValueError, match=r"canaries are rows as the oracle sees them.*LearnedSchema"):
            auditor(estimator().set_params(schema=schema), named, Y, **few)
    results = [auditor(estimator(), given, Y, random_state=0, **few) for given in (table, named)]
    assert str(results[0]) == str(results[1])


@pytest.mark.parametrize(
    "params, message",
    (
        ({"n_runs": 19}, "n_runs=19; expected an integer >= 20"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"views": "model"}, "views='model'; expected some of"),
        ({"views": ()}, r"views=\(\); expected some of"),
        ({"method": "best"}, "method='best'; expected 'auto' or 'clopper-pearson'"),
        ({"random_state": -1}, "random_state=-1; expected an integer >= 0"),
    ),
)
def test_parameters_out_of_range_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        audit(estimator(), X, Y, **params)


@pytest.mark.parametrize("auditor", (audit, audit_one_run), ids=lambda f: f.__name__)
def test_an_audit_in_the_block_of_a_ledger_is_refused(auditor):
    """Its thousands of fits would be charged, and it reads the records without noise anyway."""
    ledger = PrivacyLedger(epsilon=4, delta=1e-5)
    with ledger, pytest.raises(ValueError, match="outside of a ledger"):
        auditor(estimator(), X, Y)
    assert ledger.entries == ()


@pytest.mark.parametrize("auditor", (audit, audit_one_run), ids=lambda f: f.__name__)
def test_bad_records_raise_the_estimator_s_own_errors(auditor):
    with pytest.raises(ValueError, match="y has only one class"):
        auditor(estimator(), X, np.zeros(20))
    with pytest.raises(ValueError, match="contains NaN"):
        auditor(estimator(), X * np.nan, Y)


@pytest.fixture(scope="module")
def result():
    return audit(estimator(), X, Y, n_runs=200, random_state=3)


@pytest.mark.exhaustive
def test_a_seed_fixes_the_result_whatever_the_processes(result):
    again = audit(estimator(), X, Y, n_runs=200, random_state=3, n_jobs=2)
    other = audit(estimator(), X, Y, n_runs=200, random_state=4)
    assert again.to_dict() == result.to_dict()
    for view in result.scores:
        np.testing.assert_array_equal(again.scores[view], result.scores[view])
        assert np.unique(result.scores[view]).size == 400  # every run has noise of its own
        assert not np.isin(other.scores[view], result.scores[view]).any()


@pytest.mark.slow
@pytest.mark.parametrize("random_state", (None, 0))
def test_without_a_seed_of_its_own_the_noise_is_secure(random_state):
    """Whatever the estimator has."""
    first, second = (audit(estimator(random_state=random_state), X, Y, n_runs=20).scores["transcript"] for _ in range(2))
    assert np.unique([first, second]).size == 80


@pytest.mark.slow
def test_runs_with_the_canary_have_larger_scores(result):
    for without, canary in result.scores.values():
        assert canary.mean() > without.mean()


def test_the_result_is_pickled_and_written(result):
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == str(result)
    facts = json.loads(json.dumps(result.to_dict()))
    assert facts["epsilon"] == 4.0
    assert [bound["view"] for bound in facts["bounds"]] == ["transcript", "final"]
    assert (result.epsilon, result.delta, result.adjacency, result.solver) == (4.0, 1e-5, "replace_one", "gd")


@pytest.mark.slow
def test_the_verdict_follows_from_the_bounds(result):
    assert result.consistent
    assert str(result).startswith("No violation found")
    broken = audit(Broken(4.0, delta=1e-5, solver=GradientDescent(2)), X, Y, n_runs=60, random_state=0, views="transcript")
    assert not broken.consistent
    assert str(broken).startswith("VIOLATION")
    assert broken.bound("transcript").epsilon > 4
    with pytest.raises(ValueError, match="view='final' was not audited"):
        broken.bound("final")


class Broken(DPLogisticRegression):
    """Hardly any noise."""

    class _task_class(DPLogisticRegression._task_class):
        def run(self, plan, rows, *rest):
            return super().run(replace(plan, scale=plan.scale / 20), rows, *rest)


def test_the_estimator_is_left_alone(capsys):
    model = estimator(verbose=1)
    before = dict(vars(model))
    audit(model, X, Y, n_runs=20, random_state=0)
    assert vars(model) == before
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_progress_is_about_ten_lines(capsys):
    audit(estimator(), X, Y, n_runs=40, random_state=0, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "[audit] 40 of 40 runs of each table"


@pytest.mark.parametrize("n_jobs", (1, *slow(2)))
def test_a_warning_is_given_once(n_jobs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        audit(estimator(delta=0.2), X, Y, n_runs=20, n_jobs=n_jobs)
    assert {warning.category for warning in caught} == {TableWarning, WeakPrivacyWarning} and len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.slow
def test_the_definition_alone_proves_less(result):
    plain = audit(estimator(), X, Y, n_runs=200, random_state=3, method="clopper-pearson")
    assert {bound.method for bound in plain.bounds} == {"clopper-pearson"}
    assert {bound.method for bound in result.bounds} == {"gaussian"}
    assert max(bound.epsilon for bound in plain.bounds) < max(bound.epsilon for bound in result.bounds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels", (np.array(["no", "yes"])[Y], np.arange(20) % 3, Y[:, None] > 0), ids=("str", "three", "column")
)
def test_labels_may_be_anything_that_fit_takes(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn asks for a vector
        found = audit(estimator(solver=SGD(2, batch_size=10)), X, labels, n_runs=20, random_state=0)
    assert found.bounds[0].method == "subsampled"
    assert np.isfinite(found.scores["final"]).all()


@pytest.mark.slow
def test_an_audit_that_could_prove_nothing_says_so(result):
    assert all(bound.provable > bound.epsilon for bound in result.bounds)
    few = audit(estimator(), X, Y, n_runs=20, method="clopper-pearson", random_state=0)
    assert str(few).startswith("INCONCLUSIVE: 20 runs can prove no more than epsilon")
    one = audit_one_run(estimator(), np.zeros((400, 100)), np.arange(400) % 2, random_state=0)
    assert one.provable < 4 and str(one).startswith("INCONCLUSIVE: 24 guesses can prove no more than epsilon 2.01, below")
    assert repr(result) == str(result) and repr(one) == str(one)
