"""Tables in partitions beside what surrounds an estimator: scores, pipelines, meta-estimators, callbacks, names of columns."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skdp import DPAUCMaximizer, DPGroupDROClassifier, DPLinearRegression, DPLogisticRegression, DPMinimax
from skdp.data import chunks, npy
from skdp.preprocessing import BoundedScaler
from skdp.privacy.data import summation
from skdp.solvers import SGDA, GradientDescent
from skdp.testing import reproducible_noise

N, NAMES = 9000, ["age", "height", "weight"]
X = np.random.default_rng(0).uniform(-1, 1, size=(N, 3))
Y = (X[:, 0] + X[:, 1] > 0.3).astype(int)
MODEL = DPLogisticRegression(feature_bounds=1.0, classes=[0, 1])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that the table has three."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture
def table(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return npy(tmp_path / "X.npy", tmp_path / "y.npy")


MODELS = (MODEL, DPAUCMaximizer(feature_bounds=1.0), DPLinearRegression(feature_bounds=1.0, target_bounds=(0, 1)))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scores_compare_with_the_targets_of_the_table(model, table):
    fitted = model.fit(table)
    assert fitted.score(table) == fitted.score(table, Y) == fitted.score(X, Y) > 0.5
    with pytest.raises(TypeError, match="y is missing; expected"):
        fitted.score(X)
    with pytest.raises(TypeError, match="y is missing; expected"):
        fitted.score(chunks(lambda: [X]))


@pytest.mark.slow
def test_pipelines_take_tables(table, tmp_path):
    plain, kept = (make_pipeline(BoundedScaler(1.0), MODEL, memory=memory) for memory in (None, str(tmp_path / "memory")))
    with reproducible_noise(0):
        expected = plain.fit(X, Y).predict_proba(X)
    for pipeline in (plain, kept):
        with reproducible_noise(0):
            assert np.array_equal(pipeline.fit(table).predict_proba(table), expected)
        assert pipeline.score(table) == pipeline.score(X, Y)


WHOLE = {
    "cross_val_score": lambda table: cross_val_score(MODEL, table),
    "cross_val_score with y": lambda table: cross_val_score(MODEL, table, Y),
    "grid": lambda table: GridSearchCV(MODEL, {"alpha": [0.0, 0.1]}).fit(table),
    "split": train_test_split,
    "bagging": lambda table: BaggingClassifier(MODEL).fit(table, Y),
    "calibration": lambda table: CalibratedClassifierCV(MODEL).fit(table, Y),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_selects_rows_is_told_that_it_needs_memory(name, table):
    with pytest.raises(TypeError, match=r"is not an array\..*select rows, for which they need a table in memory"):
        WHOLE[name](table)


@pytest.mark.filterwarnings("ignore:VotingClassifier numbers the labels")
@pytest.mark.parametrize("fit", (MODEL.fit, VotingClassifier([("model", MODEL)]).fit, make_pipeline(BoundedScaler(1), MODEL).fit))
def test_y_beside_a_table_is_refused(fit, table):
    with pytest.raises(TypeError, match=r"y is given beside a table in partitions.*VotingClassifier, need a table in memory"):
        fit(table, Y)


def test_a_table_without_target_is_refused(tmp_path, table):
    for model in MODELS:
        with pytest.raises(ValueError, match="y is missing; expected"):
            model.fit(npy(tmp_path / "X.npy"))
    model = DPGroupDROClassifier(feature_bounds=1.0)
    with pytest.raises(ValueError, match=r"The table has no groups; expected .*skdp\.data\.npy\(X, y, groups=\.\.\.\)"):
        model.fit(table)
    with pytest.raises(TypeError, match=r"groups is given beside a table in partitions"):
        model.fit(table, groups=Y)
    with pytest.raises(TypeError, match="groups is given without y"):
        npy(tmp_path / "X.npy", groups=tmp_path / "y.npy")


def test_saddle_problems_need_no_target(tmp_path, table):
    from saddles import Regression

    model = DPMinimax(Regression, solver=SGDA(20))
    with reproducible_noise(0):
        memory = model.fit(X).primal_
    with reproducible_noise(0):
        assert np.array_equal(model.fit(npy(tmp_path / "X.npy")).primal_, memory)


def test_transformers_that_learn_are_refused(table):
    with pytest.raises(TypeError, match="such as StandardScaler, would learn from the records without privacy"):
        make_pipeline(StandardScaler(), MODEL).fit(table)


@pytest.mark.slow
def test_tables_pickle_where_their_source_does(table):
    with reproducible_noise(0):
        coef = MODEL.fit(table).coef_
    with reproducible_noise(0):
        assert np.array_equal(MODEL.fit(pickle.loads(pickle.dumps(table))).coef_, coef)


def test_bounds_by_name_follow_the_names_of_the_table():
    frame = pd.DataFrame(X * [1, 10, 100], columns=NAMES)
    bounds = {"weight": 100, "age": 1, "height": (-10, 10)}
    model = DPLogisticRegression(feature_bounds=bounds, classes=[0, 1], solver=GradientDescent(5))
    with reproducible_noise(0):
        memory = model.fit(frame, Y).coef_
    parts = [(frame[:5000], Y[:5000]), (frame[5000:], Y[5000:])]
    with reproducible_noise(0):
        fitted = model.fit(chunks(lambda: parts))
    assert np.array_equal(fitted.coef_, memory)
    assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="age"):
        model.fit(chunks(lambda: [(part.rename(columns={"age": "years"}), y) for part, y in parts]))


class Reader:
    """A callback that asks for the records."""

    def setup(self, estimator, context):
        """Nothing to do."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, X, y):
        """Nothing to do."""


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.9"), reason="scikit-learn has callbacks from 1.9 on")
def test_callbacks_that_ask_for_records_are_refused():
    def unread():
        raise AssertionError("the table was read")

    with pytest.raises(TypeError, match="A callback asks for X and y"):
        DPLogisticRegression().set_callbacks(Reader()).fit(chunks(unread))
