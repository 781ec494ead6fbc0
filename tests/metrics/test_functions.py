"""Private scores as functions of labels and predictions, and as scorers: same release as `evaluate`, one charge for each call."""

import math
import pickle
import re

import numpy as np
import pytest
from made_scores import Scores, records
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdp import PrivacyLedger, metrics
from skdp.metrics import (
    dp_accuracy_score,
    dp_average_precision_score,
    dp_brier_score_loss,
    dp_log_loss,
    dp_precision_score,
    dp_recall_score,
    dp_roc_auc_score,
    dp_scorer,
    evaluate,
)
from skdp.metrics._metrics import METRICS
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdp.privacy.errors import BudgetExceededError
from skdp.testing import reproducible_noise

FUNCTIONS = {
    "accuracy": dp_accuracy_score,
    "average_precision": dp_average_precision_score,
    "roc_auc": dp_roc_auc_score,
    "log_loss": dp_log_loss,
    "brier_score": dp_brier_score_loss,
    "recall": dp_recall_score,
    "precision": dp_precision_score,
}
CLASSES = ("no", "yes")


def test_all_that_offers_metrics_follows_from_their_entries():
    exported = {name for name in metrics.__all__ if name.startswith("dp_")} - {"dp_scorer"}
    assert exported == {f"dp_{entry.function}" for entry in METRICS.values() if entry.function}
    for entry in METRICS.values():
        assert f'"{entry.name}"' in evaluate.__doc__
        assert not entry.function or pickle.loads(pickle.dumps(getattr(metrics, f"dp_{entry.function}"))).__doc__
        assert not entry.scorer or (f'"{entry.scorer}"' in dp_scorer.__doc__ and entry.scorer in get_scorer_names())
    for documented in (evaluate, dp_scorer, DPGridSearchCV, DPRandomizedSearchCV):
        assert not re.search(r"\{[a-z_]+\}", documented.__doc__) and max(map(len, documented.__doc__.splitlines())) <= 130


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("columns", (1, 2))
def test_a_function_returns_what_evaluate_does_and_is_charged_once(name, columns):
    X, y = records(3000)
    scores = Scores().predict_proba(X)
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger, reproducible_noise(3):
        found = FUNCTIONS[name](y, scores if columns == 2 else scores[:, 1], classes=CLASSES, epsilon=0.7)
        assert len(ledger.entries) == 1
    with reproducible_noise(3):  # a ledger makes the noise Gaussian
        assert found == evaluate(Scores(), X, y, metrics=name, epsilon=0.7, noise="gaussian")[name]
    assert float(found) == found.value and FUNCTIONS[name].__doc__.count(FUNCTIONS[name].__name__) == 2


@pytest.mark.parametrize(
    "changes, message",
    (
        ({"classes": (0, 1)}, "labels that classes= does not know"),
        ({"classes": ("no", "no")}, "expected two different labels"),
        ({"y_score": np.full(99, 0.5)}, "differ in length"),
        ({"y_score": np.full((100, 3), 0.3)}, "differ in length"),
        ({"level": 0.1}, "from 0.5 to"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"noise": "cauchy"}, "noise='cauchy'"),
        ({"noise": "gaussian", "delta": 0.0}, "delta=0"),
    ),
)
def test_functions_refuse_before_anything_is_paid(changes, message):
    X, y = records(100)
    given = {"y_true": y, "y_score": Scores().predict_proba(X), "classes": CLASSES, **changes}
    with PrivacyLedger(epsilon=1.0, delta=1e-3) as ledger:
        with pytest.raises(ValueError, match=message):
            dp_roc_auc_score(**given)
        with pytest.raises(BudgetExceededError):
            dp_roc_auc_score(y, Scores().predict_proba(X), classes=CLASSES, epsilon=2.0)
        assert not ledger.entries


@pytest.mark.parametrize("scoring, name, sign", (("roc_auc", "roc_auc", 1), ("neg_log_loss", "log_loss", -1)))
def test_a_scorer_is_an_evaluation(scoring, name, sign):
    X, y = records(3000)
    scorer = pickle.loads(pickle.dumps(dp_scorer(scoring, epsilon=0.7)))
    with reproducible_noise(3):
        score = scorer(Scores(), X, y)
    with reproducible_noise(3):
        assert score == sign * evaluate(Scores(), X, y, metrics=name, epsilon=0.7)[name].value
    with reproducible_noise(0):
        assert math.isnan(dp_scorer("roc_auc", epsilon=0.01)(Scores(), *records(60)))


@pytest.mark.slow
def test_every_fold_and_candidate_is_charged():
    X, y = records(600)
    scorer = dp_scorer("accuracy", epsilon=1.0, delta=1e-5)
    with PrivacyLedger(epsilon=100.0, delta=1e-2) as ledger, reproducible_noise(0):
        scores = cross_val_score(LogisticRegression(), X, y, cv=3, scoring=scorer, error_score="raise")
        assert len(ledger.entries) == 3 and np.isfinite(scores).all()
        search = clone(GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, scoring=scorer, error_score="raise"))
        search.fit(X, y)
        assert len(ledger.entries) == 3 + 4
    with PrivacyLedger(epsilon=1.2, delta=1e-5) as ledger:
        with pytest.raises(BudgetExceededError):
            cross_val_score(LogisticRegression(), X, y, cv=3, scoring=scorer, error_score="raise")
        assert len(ledger.entries) == 1


def test_unknown_scores_and_budgets_are_refused():
    with pytest.raises(ValueError, match="expected one of accuracy"):
        dp_scorer("log_loss")
    with pytest.raises(ValueError, match="epsilon"):
        dp_scorer("accuracy", epsilon=-1)


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
@pytest.mark.parametrize("value, stands_for", ((np.nan, 0.5), (np.inf, 1.0), (-np.inf, 0.0), (1.5, 1.0), (-1e308, 0.0)))
def test_a_score_that_is_no_probability_counts_as_one(value, stands_for):
    """For this record alone; an error would tell of one record."""
    X, y = records(200)
    scores = Scores().predict_proba(X)[:, 1]
    one, other = scores.copy(), scores.copy()
    one[7], other[7] = value, stands_for
    for function in FUNCTIONS.values():
        with np.errstate(all="raise"):
            assert function(y, one, classes=CLASSES, epsilon=np.inf) == function(y, other, classes=CLASSES, epsilon=np.inf)
