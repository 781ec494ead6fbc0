"""Walk over the steps of pipelines; warn about those that learn from the training records without noise."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from skdp._scikit_learn.callers import OF_TARGETS, callers, is_one, is_private, join, nested, warn_outside

__all__ = [
    "fitted_steps",
    "learns_without_noise",
    "refuse_selection",
    "reports_of",
    "spent_together",
    "warn_of_learning_steps",
]

LEARN = frozenset(
    "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler QuantileTransformer PowerTransformer KBinsDiscretizer "
    "TargetEncoder KernelCenterer MultiLabelBinarizer KNNImputer IterativeImputer VarianceThreshold "
    "SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe GenericUnivariateSelect RFECV SequentialFeatureSelector "
    "PCA IncrementalPCA KernelPCA SparsePCA MiniBatchSparsePCA TruncatedSVD FastICA FactorAnalysis NMF MiniBatchNMF "
    "DictionaryLearning MiniBatchDictionaryLearning LatentDirichletAllocation BernoulliRBM Isomap LocallyLinearEmbedding "
    "PLSRegression PLSCanonical PLSSVD CCA LinearDiscriminantAnalysis NeighborhoodComponentsAnalysis Nystroem "
    "KNeighborsTransformer RadiusNeighborsTransformer "
    "KMeans MiniBatchKMeans BisectingKMeans Birch FeatureAgglomeration RandomTreesEmbedding "
    "DictVectorizer TfidfVectorizer TfidfTransformer".split()
)


def _counts(step: Any) -> bool:
    """Return whether an encoder joins rare categories, which it counts."""
    return step.min_frequency is not None or step.max_categories is not None


LEARN_IF = {  # classes that learn from the records only with these parameters
    "OneHotEncoder": lambda step: isinstance(step.categories, str) or _counts(step),
    "OrdinalEncoder": lambda step: isinstance(step.categories, str) or _counts(step),
    # without keep_empty_features, a column in which no record has a value is left out
    "SimpleImputer": lambda step: step.strategy != "constant" or step.add_indicator or not step.keep_empty_features,
    "MissingIndicator": lambda step: step.features != "all",
    "SplineTransformer": lambda step: isinstance(step.knots, str),
    "CountVectorizer": lambda step: step.vocabulary is None,
    "RBFSampler": lambda step: step.gamma == "scale",
    "RFE": lambda step: not is_private(step.estimator),
    "SelectFromModel": lambda step: not (step.prefit or is_private(step.estimator)),
}


def warn_of_learning_steps() -> None:
    """Warn if the pipeline being fitted would publish what another step learns; only parameters are inspected."""
    owners = [owner for _, _, owner in callers()]
    of_targets = {name for owner in owners if is_one(owner, *OF_TARGETS) for name in _learners(owner.transformer)}
    if of_targets:
        warn_outside(
            f"{', '.join(sorted(of_targets))} of TransformedTargetRegressor learns from the training records without privacy. "
            "Use func, inverse_func and check_inverse=False; neither epsilon nor a ledger covers that."
        )
    learners = {name for owner in owners if hasattr(owner, "steps") for name in _learners(owner)} - of_targets
    if learners:
        warn_outside(
            f"{', '.join(sorted(learners))} in the pipeline learns from the training records without privacy. Use public "
            "knowledge instead: from_schema or BoundedScaler of skdp.preprocessing, categories=[...], a constant for what is "
            "missing with keep_empty_features=True, or FrozenEstimator of one that public records fitted; neither epsilon nor a "
            "ledger covers that."
        )


def refuse_selection() -> None:
    """Raise ValueError if a selection of columns would take the coefficients of a fit, which has several for a column."""
    for _, name, owner in callers():
        if getattr(owner, "importance_getter", None) in ("auto", "coef_"):
            raise ValueError(
                f"{name} takes one coefficient for each column of X, and this fit may have several for one; feature_names_out_ "
                f"has their names. Use {name} after from_schema(schema) in a pipeline, which makes each of them a "
                "column; importance_getter='feature_importances_' with a boosted model; or a function as importance_getter. "
                "Nothing was charged."
            )


def _learners(whole: Any) -> Iterator[str]:
    """Yield the names of the scikit-learn classes in a preparation that learn from records."""
    yield from (type(part).__name__ for _, part in nested("", whole) if learns_without_noise(part))


def learns_without_noise(step: Any) -> bool:
    """Return whether a preparation of scikit-learn, with its parameters, learns from records."""
    kinds = {kind.__name__ for kind in type(step).__mro__ if kind.__module__.startswith("sklearn.")}
    return bool(kinds & LEARN) or any(LEARN_IF[name](step) for name in kinds & set(LEARN_IF))


def fitted_steps(model: Any, chosen: bool = True) -> list[Any]:
    """Return the fitted steps of a model without pipelines among them, the last of which predicts.

    Of a search of this package it is the best estimator. Of an estimator that chooses another one it is that one, if ``chosen``.
    """
    if type(model).__module__.startswith("skdp."):
        for name in ("best_estimator_", "estimator_")[: 1 + chosen]:
            if hasattr(model, name):
                return fitted_steps(getattr(model, name), chosen)
    steps = getattr(model, "steps_", model.steps) if isinstance(model, Pipeline) else []
    found = [part for _, step in steps if step not in (None, "passthrough") for part in fitted_steps(step, chosen)]
    return found or [model]


def reports_of(model: Any, name: str = "") -> dict[str, Any]:
    """Return the privacy report of a fitted model, or those of the steps of a pipeline that spent budgets of their own."""
    if hasattr(model, "privacy_report_"):
        return {name: model.privacy_report_}
    steps = model.steps if isinstance(model, Pipeline) else []
    return {place: found for inner, step in steps for place, found in reports_of(step, join(name, inner)).items()}


def spent_together(reports: Sequence[Any]) -> tuple[float, float]:
    """Return the sums of epsilon and delta; raise ValueError if neighbours or units of privacy differ."""
    if len({(report.budget.adjacency, report.budget.unit) for report in reports}) > 1:
        raise ValueError("The steps have different neighbours or units of privacy; expected the same for all steps.")
    return math.fsum(report.spent.epsilon for report in reports), math.fsum(report.spent.delta for report in reports)
