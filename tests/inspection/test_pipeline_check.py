"""Steps of pipelines that learn from training records without noise are named, from types and parameters."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import skdp
from skdp import DPAdditiveClassifier, DPLinearRegression, DPLogisticRegression
from skdp.inspection import check_pipeline
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler, LearnedSchema, RowNormClipper, Schema, from_schema

CLASSIFIER = DPLogisticRegression(epsilon=1.0, data_norm=1.0)
CONSTANT = {"strategy": "constant", "keep_empty_features": True}  # else a column without values is left out
STATED = DPLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[0, 1])


class Resampler(BaseEstimator):
    def fit(self, X, y):
        return self

    def fit_resample(self, X, y):
        return X, y


class Foreign(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Renamed(Pipeline):
    """A subclass with nothing of its own."""


class SimpleImputer2(SimpleImputer):
    def fit(self, X, y=None):
        return super().fit(X, y)


class Around(BaseEstimator):
    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        return self


class Keeper(DPLogisticRegression):
    def fit(self, X, y=None):
        self.kept_ = X
        return super().fit(X, y)


def stated(*steps):
    """What `from_schema` returns, with further steps that a user added."""
    pipeline = from_schema({"a": {"kind": "number", "bounds": [0, 1]}, "b": {"kind": "category", "categories": ["u"]}})
    pipeline.steps += [(type(step).__name__.lower(), step) for step in steps]
    return pipeline


Foreign2 = type("OneHotEncoder", (Foreign,), {})  # a class of another library with a name of scikit-learn's


LEAKS = {  # of the kinds that users write
    "scaler": (make_pipeline(StandardScaler(), CLASSIFIER), ("standardscaler",)),
    "imputer": (make_pipeline(SimpleImputer(), RowNormClipper(1.0), CLASSIFIER), ("simpleimputer",)),
    "indicator": (make_pipeline(SimpleImputer(add_indicator=True, **CONSTANT), CLASSIFIER), ("simpleimputer",)),
    "empty columns": (make_pipeline(SimpleImputer(strategy="constant"), CLASSIFIER), ("simpleimputer",)),
    "warns": (make_pipeline(OneHotEncoder(categories=[["a"]], handle_unknown="warn"), CLASSIFIER), ("onehotencoder",)),
    "warns of dropped": (
        make_pipeline(OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", drop="first"), CLASSIFIER),
        ("onehotencoder",),
    ),
    "encoder in columns": (
        make_pipeline(
            ColumnTransformer([("town", OneHotEncoder(), ["town"]), ("age", BoundedScaler((0, 99)), ["age"])]), CLASSIFIER
        ),
        ("columntransformer__town",),
    ),
    "rare categories": (
        make_pipeline(OneHotEncoder(categories=[["a", "b"]], min_frequency=5), CLASSIFIER),
        ("onehotencoder",),
    ),
    "nested": (
        make_pipeline(make_pipeline(PolynomialFeatures(), StandardScaler()), CLASSIFIER),
        ("pipeline__standardscaler",),
    ),
    "union": (make_pipeline(FeatureUnion([("pca", PCA(2)), ("rest", "passthrough")]), CLASSIFIER), ("featureunion__pca",)),
    "remainder": (
        ColumnTransformer([("one", "passthrough", [0])], remainder=KBinsDiscretizer()),
        ("remainder",),
    ),
    "selection": (make_pipeline(SelectKBest(), CLASSIFIER), ("selectkbest",)),
    "power": (make_pipeline(PowerTransformer(), CLASSIFIER), ("powertransformer",)),
    "columns in columns": (
        make_pipeline(
            ColumnTransformer([("all", ColumnTransformer([("age", make_pipeline(StandardScaler()), ["age"])]), ["age"])]),
            CLASSIFIER,
        ),
        ("columntransformer__all__age__standardscaler",),
    ),
    "target encoder": (make_pipeline(TargetEncoder(), CLASSIFIER), ("targetencoder",)),
    "words": (make_pipeline(TfidfVectorizer(), CLASSIFIER), ("tfidfvectorizer",)),
    "resampler": (make_pipeline(Resampler(), CLASSIFIER), ("resampler",)),
    "search": (GridSearchCV(make_pipeline(StandardScaler(), CLASSIFIER), {}), ("gridsearchcv", "estimator__standardscaler")),
    "calibration": (CalibratedClassifierCV(CLASSIFIER), ("calibratedclassifiercv",)),
    "bag": (BaggingClassifier(CLASSIFIER), ("baggingclassifier",)),
    "stack": (
        StackingClassifier([("one", CLASSIFIER)], final_estimator=LogisticRegression()),
        ("stackingclassifier", "final_estimator"),
    ),
    "targets": (
        TransformedTargetRegressor(DPLinearRegression(1.0), transformer=StandardScaler(), check_inverse=False),
        ("transformer",),
    ),
    "a warning about targets": (
        TransformedTargetRegressor(DPLinearRegression(1.0), func=np.log1p, inverse_func=np.expm1),
        ("transformedtargetregressor",),
    ),
    "numbers of labels in a vote": (VotingClassifier([("a", CLASSIFIER), ("b", STATED)]), ("votingclassifier",)),
    "numbers of labels in a bag": (
        BaggingClassifier(make_pipeline(BoundedScaler((0, 1)), STATED), bootstrap=False),
        ("baggingclassifier",),
    ),
    "numbers of labels in a stack": (StackingClassifier([("a", CLASSIFIER)], STATED, cv=KFold(3)), ("stackingclassifier",)),
    "pairs of classes": (OneVsOneClassifier(CLASSIFIER), ("onevsoneclassifier",)),
    "folds by labels": (StackingClassifier([("a", CLASSIFIER)], CLASSIFIER), ("stackingclassifier",)),
    "folds by labels, counted": (StackingClassifier([("a", CLASSIFIER)], CLASSIFIER, cv=3), ("stackingclassifier",)),
    "folds by labels, stated": (
        StackingRegressor([("a", DPLinearRegression(1.0))], DPLinearRegression(1.0), cv=StratifiedKFold(3)),
        ("stackingregressor",),
    ),
    "plain model": (make_pipeline(BoundedScaler((0, 1)), LogisticRegression()), ("logisticregression",)),
    "no noise": (make_pipeline(BoundedScaler((0, 1)), DPLogisticRegression(epsilon=math.inf)), ("dplogisticregression",)),
    "dummy": (VotingRegressor([("a", DummyRegressor()), ("b", DPLinearRegression(1.0))]), ("a",)),
    "gaussian process": (VotingRegressor([("a", GaussianProcessRegressor()), ("b", DPLinearRegression(1.0))]), ("a",)),
    "kernel": (make_pipeline(RBFSampler(gamma="scale"), CLASSIFIER), ("rbfsampler",)),
    "subclass of a pipeline": (
        make_pipeline(Renamed([("scale", StandardScaler()), ("clip", RowNormClipper(1.0))]), CLASSIFIER),
        ("renamed__scale",),
    ),
    "boosted": (AdaBoostClassifier(CLASSIFIER), ("adaboostclassifier",)),
    "spline": (make_pipeline(SplineTransformer(), CLASSIFIER), ("splinetransformer",)),
    "after a schema": (stated(StandardScaler(), CLASSIFIER), ("standardscaler",)),
    "private search": (DPGridSearchCV(make_pipeline(PCA(2), CLASSIFIER), {}), ("estimator__pca",)),
    "missing": (make_pipeline(make_union(MissingIndicator(), "passthrough"), CLASSIFIER), ("featureunion__missingindicator",)),
}
SAFE = {
    "alone": CLASSIFIER,
    "scaler": make_pipeline(BoundedScaler((0, 1)), RowNormClipper(1.0), CLASSIFIER),
    "learned": make_pipeline(LearnedSchema(epsilon=0.5), CLASSIFIER),
    "schema": stated(CLASSIFIER),
    "private search": DPGridSearchCV(CLASSIFIER, {}),
    "columns": make_pipeline(
        ColumnTransformer(
            [("town", OneHotEncoder(categories=[["a", "b"]]), ["town"]), ("age", BoundedScaler((0, 99)), ["age"])],
            remainder="drop",
        ),
        RowNormClipper(1.0),
        CLASSIFIER,
    ),
    "stateless": make_pipeline(SimpleImputer(fill_value=0, **CONSTANT), PolynomialFeatures(), Normalizer(), CLASSIFIER),
    "chosen by type": make_pipeline(
        make_column_transformer((BoundedScaler((0, 1)), make_column_selector(dtype_include="number"))), CLASSIFIER
    ),
    "knots": make_pipeline(SplineTransformer(knots=np.array([[0.0], [1.0]])), CLASSIFIER),
    "words": make_pipeline(HashingVectorizer(), CLASSIFIER),
    "known words": make_pipeline(CountVectorizer(vocabulary=["ill"]), CLASSIFIER),
    "vote": VotingClassifier([("one", CLASSIFIER), ("two", DPAdditiveClassifier(1.0))]),
    "bag": BaggingClassifier(CLASSIFIER, bootstrap=False),
    "targets": TransformedTargetRegressor(DPLinearRegression(1.0), func=np.log1p, inverse_func=np.expm1, check_inverse=False),
    "targets as they are": TransformedTargetRegressor(DPLinearRegression(1.0)),
    "stack": StackingClassifier([("a", CLASSIFIER)], CLASSIFIER, cv=KFold(3)),
    "stack of numbers": StackingRegressor([("a", DPLinearRegression(1.0))], DPLinearRegression(1.0)),
    "one against the rest": OneVsRestClassifier(STATED),
    "stated classes": make_pipeline(RowNormClipper(1.0), FixedThresholdClassifier(STATED)),
}


@pytest.mark.parametrize("pipeline, names", LEAKS.values(), ids=LEAKS)
def test_steps_that_learn_without_noise_are_named(pipeline, names):
    check = check_pipeline(pipeline)
    assert check.leaks == names and not check.ok
    assert f"Not private: {', '.join(names)}." in str(check)


@pytest.mark.parametrize("pipeline", SAFE.values(), ids=SAFE)
def test_it_is_silent_on_the_others(pipeline):
    check = check_pipeline(pipeline)
    assert check.ok and not check.leaks and not check.unknown
    assert str(check).endswith("Private: all that depends on the records has noise.")


@pytest.mark.parametrize("kind", [kind for name in skdp.__all__ if isinstance(kind := getattr(skdp, name), type)])
def test_estimators_of_skdp_are_private(kind):
    if hasattr(kind, "fit") and kind is not skdp.DPMinimax:
        assert check_pipeline(kind()).ok


def positive(X):
    return X.columns[X.min() >= 0]


UNKNOWN = (
    FunctionTransformer(np.log),
    Foreign(),
    Foreign2(),
    SimpleImputer2(**CONSTANT),
    make_column_transformer((SimpleImputer(**CONSTANT), positive)),
    FrozenEstimator(StandardScaler()),
)


def test_estimators_of_others_around_private_ones_are_unknown():
    assert check_pipeline(Around(CLASSIFIER)).unknown == ("around",)


def test_subclasses_of_private_estimators_are_unknown_wherever_they_are():
    """Also the chosen one of a fitted search: a candidate may have taken the place of the estimator."""
    searched = DPGridSearchCV(CLASSIFIER, {})
    assert check_pipeline(DPGridSearchCV(Keeper(), {})).unknown == ("estimator",)
    searched.best_estimator_ = make_pipeline(BoundedScaler(1.0), Keeper())
    assert check_pipeline(searched).unknown == ("best_estimator___keeper",)
    assert check_pipeline(DPPipeline([("first", LearnedSchema()), ("last", Keeper())])).unknown == ("last",)
    assert check_pipeline(make_pipeline(stated(), Keeper())).unknown == ("keeper",)


@pytest.mark.parametrize("step", UNKNOWN, ids=lambda step: type(step).__name__)
def test_what_cannot_be_judged_is_said_to_be_unknown(step):
    check = check_pipeline(make_pipeline(step, CLASSIFIER))
    assert len(check.unknown) == 1 and not check.ok and not check.leaks
    assert str(check).splitlines()[-1].startswith("Not known: ")


def test_what_is_spent_and_taken_for_public_is_told():
    check = check_pipeline(make_pipeline(LearnedSchema(epsilon=0.25, delta=1e-6), DPLogisticRegression(2.0, classes=[0, 1])))
    first, second = check.steps
    assert "spends epsilon=0.25, delta=1e-06" in first.reason
    assert "spends epsilon=2, a default delta; takes for public: classes=[0, 1]" in second.reason
    schema = Schema.read({"a": {"kind": "number", "bounds": [0, 1]}})
    assert (
        check_pipeline(DPLogisticRegression(schema=schema))
        .steps[0]
        .reason.endswith("takes for public: schema of the columns ['a']")
    )


@pytest.mark.parametrize("thing", (None, "scaler", DPLogisticRegression, np.zeros(3)))
def test_things_that_are_no_estimators_are_refused(thing):
    with pytest.raises(TypeError, match="expected an estimator"):
        check_pipeline(thing)


def test_pipelines_without_a_private_step_say_so():
    assert str(check_pipeline(make_pipeline(BoundedScaler((0, 1))))).endswith("No step is private.")
