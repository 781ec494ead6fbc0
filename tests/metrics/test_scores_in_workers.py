"""Private scores in worker processes: charged to the ledgers of the process that started them, or refused."""

import pickle

import numpy as np
import pytest
from joblib import Parallel, delayed
from made_scores import Scores, records
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPLogisticRegression, LedgerError, PrivacyLedger
from skdp.metrics import dp_accuracy_score, dp_scorer, evaluate
from skdp.privacy.errors import BudgetExceededError, PrivacyAccountingError

X, Y = records(600)
TABLE = X, (Y == "yes").astype(int)
PRIVATE = DPLogisticRegression(0.1, delta=1e-6, data_norm=6.0, classes=[0, 1])
PUBLIC = LogisticRegression()
FOLDS = KFold(2)
pytestmark = pytest.mark.filterwarnings("ignore::skdp.LowSignalWarning")


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "study.sqlite", epsilon=5.0, delta=1e-4)


SEARCHES = {
    "folds": lambda model, scorer: cross_val_score(model, *TABLE, cv=FOLDS, n_jobs=2, scoring=scorer, error_score="raise"),
    "two scores": lambda model, scorer: cross_validate(
        model, *TABLE, cv=FOLDS, n_jobs=2, scoring={"a": scorer, "b": dp_scorer("roc_auc", epsilon=0.1)}, error_score="raise"
    ),
    "grid": lambda model, scorer: GridSearchCV(
        model, {"random_state": [1, 2]}, cv=FOLDS, n_jobs=2, scoring=scorer, error_score="raise"
    ).fit(*TABLE),
}


@pytest.mark.parametrize("way, n_scores", (("folds", 2), ("two scores", 4), ("grid", 4)))
@pytest.mark.parametrize("model", (PRIVATE, PUBLIC), ids=("private", "public"))
def test_scores_in_workers_are_charged(way, n_scores, model, ledger):
    with ledger:
        SEARCHES[way](model, dp_scorer("accuracy", epsilon=0.1))
    charges = [entry.spending for entry in ledger.entries]
    scores = [charge for charge in charges if charge.estimator == "evaluate"]
    assert len(scores) == n_scores
    assert all(score.composition for score in scores)  # Gaussian, as without workers: it costs less in a ledger


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", (PRIVATE, PUBLIC), ids=("private", "public"))
def test_the_ceiling_holds_in_workers(model, ledger):
    with ledger, pytest.raises(BudgetExceededError):
        SEARCHES["folds"](model, dp_scorer("accuracy", epsilon=9.0))
    assert all(entry.spending.estimator != "evaluate" for entry in ledger.entries)


@pytest.mark.exhaustive
def test_without_a_ledger_scores_in_workers_are_free():
    assert np.isfinite(SEARCHES["folds"](PUBLIC, dp_scorer("accuracy", epsilon=1.0))).all()


def test_a_scorer_keeps_no_ledger_that_is_active_where_it_is_restored(ledger):
    scorer = dp_scorer("accuracy", epsilon=0.1)
    with ledger:
        pickled = pickle.dumps(scorer)
        here = pickle.loads(pickled)
        here(Scores(), X, Y)  # once
        assert len(ledger.entries) == 1
    here(Scores(), X, Y)
    assert len(ledger.entries) == 1 and scorer == here and "_ledgers" not in vars(scorer)
    elsewhere = pickle.loads(pickle.dumps(pickle.loads(pickled)))
    elsewhere(Scores(), X, Y)
    assert len(ledger.entries) == 2
    with ledger:
        elsewhere(Scores(), X, Y)  # once
    assert len(ledger.entries) == 3
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="is gone"):
        elsewhere(Scores(), X, Y)


def test_a_scorer_of_an_older_version_tells_no_ledgers():
    scorer, older = dp_scorer("accuracy", epsilon=0.1), dp_scorer("accuracy", epsilon=0.1)
    older.__setstate__({name: value for name, value in scorer.__getstate__().items() if name != "_ledgers"})
    assert older == scorer and "_ledgers" not in vars(older) and older.__getstate__()["_ledgers"] == ()


def test_a_scorer_without_a_key_for_workers_is_not_pickled(tmp_path):
    with PrivacyLedger(tmp_path / "keyed.sqlite", epsilon=1.0, delta=1e-6, key="k" * 20):
        with pytest.raises(PrivacyAccountingError, match="or scorer cannot be pickled or deep-copied"):
            pickle.dumps(dp_scorer("accuracy"))


@pytest.mark.parametrize(
    "wrap", (lambda model: make_pipeline(FunctionTransformer(), model), pytest.param(lambda model: model, marks=pytest.mark.slow))
)
def test_an_evaluation_in_a_worker_is_charged_to_the_ledgers_of_its_model(wrap, ledger):
    model = wrap(PRIVATE).fit(*TABLE)
    with ledger:
        Parallel(2)(delayed(evaluate)(model, *TABLE, metrics="accuracy", epsilon=0.1) for _ in range(2))
    assert [entry.spending.estimator for entry in ledger.entries] == ["evaluate"] * 2
    with pytest.raises(PrivacyAccountingError, match="Nothing was released"):  # it may be from a file, and tells nothing
        Parallel(2)(delayed(evaluate)(model, *TABLE, metrics="accuracy", epsilon=0.1) for _ in range(2))
    evaluate(pickle.loads(pickle.dumps(model)), *TABLE, metrics="accuracy", epsilon=0.1)
    assert len(ledger.entries) == 2


def in_block(path):
    with PrivacyLedger(path):
        return dp_accuracy_score(TABLE[1], np.full(len(X), 0.6), epsilon=0.1)


@pytest.mark.parametrize(
    "job",
    (
        pytest.param(delayed(evaluate)(PUBLIC.fit(*TABLE), *TABLE, metrics="accuracy", epsilon=0.1), marks=pytest.mark.slow),
        delayed(dp_accuracy_score)(TABLE[1], np.full(len(X), 0.6), epsilon=0.1),
    ),
    ids=("evaluate", "function"),
)
def test_what_cannot_be_charged_in_a_worker_is_refused(job, ledger):
    with ledger:
        with pytest.raises(PrivacyAccountingError, match="cannot see the ledgers"):
            Parallel(2)(job for _ in range(2))
        Parallel(2, prefer="threads")(job for _ in range(2))
    assert len(ledger.entries) == 2
    Parallel(2)(delayed(in_block)(ledger.path) for _ in range(1))
    assert len(ledger.entries) == 3
