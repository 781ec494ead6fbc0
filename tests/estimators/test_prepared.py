"""Test that warnings name the pipeline steps that learn from records without privacy, and no steps with public facts."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.utils import all_estimators

from skdp import DPAUCMaximizer, DPLinearRegression, DPLogisticRegression
from skdp._prepared import LEARN, LEARN_IF
from skdp.preprocessing import BoundedScaler, RowNormClipper, from_schema
from skdp.privacy.errors import OutsideGuaranteeWarning

N = 400
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.integers(0, 2, N)})
Y = np.arange(N) % 2
MODEL = DPLogisticRegression(classes=[0, 1])
SCHEMA = {"columns": {"a": {"kind": "number", "bounds": [-3, 3]}, "b": {"kind": "category", "categories": [0, 1]}}}


class Scaler(StandardScaler):
    """One of a user's own."""


def said(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught if warning.category is OutsideGuaranteeWarning]


@pytest.mark.parametrize(
    ("prepare", "names"),
    [
        (StandardScaler(), "StandardScaler in"),
        (Scaler(), "Scaler in"),
        (SimpleImputer(), "SimpleImputer in"),
        (make_column_transformer((OneHotEncoder(), ["b"]), ("passthrough", ["a"])), "OneHotEncoder in"),
        (make_union(PCA(1), make_pipeline(MinMaxScaler(), "passthrough")), "MinMaxScaler, PCA in"),
        (SelectKBest(k=1), "SelectKBest in"),
        (SplineTransformer(), "SplineTransformer in"),
        (Nystroem(n_components=2), "Nystroem in"),
        (SelectFromModel(LogisticRegression()), "SelectFromModel in"),
        (make_column_transformer(("passthrough", ["a"]), remainder=StandardScaler()), "StandardScaler in"),
    ],
)
def test_preparations_that_learn_are_named_once(prepare, names):
    (message,) = said(lambda: make_pipeline(prepare, MODEL).fit(X, Y))
    assert message.startswith(names) and "without privacy" in message and "from_schema" in message


@pytest.mark.parametrize("model", [DPLinearRegression(target_bounds=(0, 1)), DPAUCMaximizer(classes=[0, 1])])
def test_other_estimators_look_too(model):
    assert len(said(lambda: make_pipeline(StandardScaler(), model).fit(X, Y))) == 1


@pytest.mark.parametrize(
    "work",
    (
        lambda: cross_val_score(make_pipeline(StandardScaler(), MODEL), X, Y, cv=KFold(3)),
        lambda: cross_val_predict(make_pipeline(StandardScaler(), MODEL), X, Y, cv=KFold(3)),
        lambda: GridSearchCV(make_pipeline(StandardScaler(), MODEL), {"dplogisticregression__alpha": [0.1, 0.2]}).fit(X, Y),
        lambda: BaggingClassifier(make_pipeline(StandardScaler(), MODEL), 3, bootstrap=False).fit(X, Y),
    ),
)
def test_several_fits_warn_once(work):
    for _ in range(2):  # and another run of them again
        assert len(said(work)) == 1


def test_each_fit_of_a_pipeline_warns():
    pipeline = make_pipeline(StandardScaler(), MODEL)
    assert len(said(lambda: pipeline.fit(X, Y).fit(X, Y))) == 2


@pytest.mark.parametrize(
    "prepare",
    [
        from_schema(SCHEMA),
        make_pipeline(BoundedScaler(bounds=(-3, 3)), RowNormClipper(1.0)),
        SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
        make_column_transformer((OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore"), ["b"])),
        FunctionTransformer(np.arctan),
        FrozenEstimator(StandardScaler().fit(X)),
        FrozenEstimator(make_pipeline(StandardScaler()).fit(X)),
        FrozenEstimator(make_column_transformer((StandardScaler(), ["a"])).fit(X)),
        RFE(clone(MODEL).set_params(data_norm=1.0), n_features_to_select=1),  # one that learns has other features than columns
        SelectFromModel(clone(MODEL).set_params(data_norm=1.0)),
    ],
)
def test_public_preparations_say_nothing(prepare):
    assert not said(lambda: make_pipeline(prepare, MODEL).fit(X, Y))


def test_targets_are_scaled_by_public_functions_only():
    numbers = DPLinearRegression(target_bounds=(-1, 1))
    (message,) = said(lambda: TransformedTargetRegressor(numbers, transformer=StandardScaler()).fit(X, X["a"]))
    assert message.startswith("StandardScaler of TransformedTargetRegressor learns") and "inverse_func" in message
    assert not said(lambda: TransformedTargetRegressor(numbers, func=np.arctan, inverse_func=np.tan).fit(X, X["a"]))


PUBLIC = frozenset(  # transformers of scikit-learn that take nothing from the values of the records, or hold others
    "AdditiveChi2Sampler Binarizer ColumnTransformer FeatureHasher FeatureUnion FunctionTransformer GaussianRandomProjection "
    "HashingVectorizer Normalizer PatchExtractor PolynomialCountSketch PolynomialFeatures "
    "SkewedChi2Sampler SparseCoder SparseRandomProjection "
    "StackingClassifier StackingRegressor VotingClassifier VotingRegressor "
    "IsotonicRegression LabelBinarizer LabelEncoder TSNE".split()  # these are no steps
)


def test_every_transformer_of_scikit_learn_is_known():
    """One that a new version brings is looked at before it passes in silence."""
    known = {name for name, _ in all_estimators(type_filter="transformer")}
    assert known - LEARN - set(LEARN_IF) - PUBLIC == set()
    assert not PUBLIC & (LEARN | set(LEARN_IF))
    assert (LEARN | set(LEARN_IF)) - known <= {"IterativeImputer", "CountVectorizer", "TfidfVectorizer"}
