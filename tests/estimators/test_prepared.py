"""Test that warnings name the pipeline steps that learn from records without privacy, and no steps with public facts."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.utils import all_estimators

from skdp import (
    DPAdditiveClassifier,
    DPAUCMaximizer,
    DPGradientBoostingClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivacyLedger,
)
from skdp._scikit_learn.pipelines import LEARN, LEARN_IF
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    (
        lambda: cross_val_score(make_pipeline(StandardScaler(), MODEL), X, Y, cv=KFold(3)),
        lambda: cross_val_predict(make_pipeline(StandardScaler(), MODEL), X, Y, cv=KFold(3)),
        lambda: GridSearchCV(make_pipeline(StandardScaler(), MODEL), {"dplogisticregression__alpha": [0.1, 0.2]}).fit(X, Y),
        lambda: BaggingClassifier(make_pipeline(StandardScaler(), clone(MODEL).set_params(classes=None)), 3, bootstrap=False).fit(
            X, Y
        ),
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


STATED = DPLogisticRegression(schema=SCHEMA, classes=[0, 1])


@pytest.mark.parametrize(
    "select",
    (
        SelectFromModel(MODEL),
        SelectFromModel(STATED, importance_getter="coef_"),
        SelectFromModel(DPAdditiveClassifier(feature_bounds=3.0, classes=[0, 1])),
        SelectFromModel(DPGradientBoostingClassifier(feature_bounds=3.0, classes=[0, 1])),
        RFE(DPAdditiveClassifier(feature_bounds=3.0, classes=[0, 1])),
    ),
)
def test_a_selection_by_coefficients_that_are_several_for_a_column_is_refused(select):
    with (
        PrivacyLedger(epsilon=10, delta=1e-4) as ledger,
        pytest.raises(ValueError, match="takes one coefficient for each"),
    ):
        select.fit(X, Y)
    assert not ledger.entries


def test_other_selections_choose_columns():
    signal = (X["a"] > 0).astype(int)
    boosted = DPGradientBoostingClassifier(5.0, feature_bounds=3.0, classes=[0, 1])
    for select in (
        SelectFromModel(boosted, importance_getter="feature_importances_"),
        SelectFromModel(clone(MODEL).set_params(epsilon=5.0, feature_bounds=3.0)),
        SelectFromModel(STATED, importance_getter=lambda model: np.abs([model.coef_[0, 0], model.coef_[0, 1:].max()])),
    ):
        assert select.fit(X, signal).transform(X).shape == (N, select.get_support().sum())


@pytest.mark.parametrize(
    ("model", "names"),
    (
        (STATED, ["a", "b_0", "b_1"]),
        (clone(MODEL).set_params(feature_bounds=3.0), ["a", "b"]),
        (DPAdditiveClassifier(schema=SCHEMA, classes=[0, 1]), ["a[0]", "b[0]", "b[1]"]),
    ),
)
def test_each_coefficient_has_a_name(model, names):
    with pytest.raises(NotFittedError):
        clone(model).feature_names_out_  # noqa: B018
    fitted = clone(model).fit(X, Y)
    found = fitted.feature_names_out_.tolist()
    assert len(found) == fitted.coef_.shape[-1] and set(names) <= set(found)
    assert clone(model).set_params(schema=None, feature_bounds=3.0).fit(X.to_numpy(), Y).feature_names_out_[0] in ("x0", "x0[0]")


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
