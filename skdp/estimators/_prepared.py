"""Steps of a scikit-learn pipeline before a private estimator that learn from the training records without noise."""

from collections.abc import Iterator
from typing import Any

from skdp.estimators._surroundings import callers
from skdp.privacy.errors import OutsideGuaranteeWarning, warn

__all__ = ["look_at_preparation"]

LEARN = frozenset(
    "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler QuantileTransformer PowerTransformer KBinsDiscretizer TargetEncoder "
    "KNNImputer IterativeImputer VarianceThreshold SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe RFE RFECV "
    "PCA IncrementalPCA KernelPCA TruncatedSVD NMF CountVectorizer TfidfVectorizer TfidfTransformer".split()
)
LEARN_IF = {  # with these parameters
    "OneHotEncoder": lambda step: isinstance(step.categories, str),
    "OrdinalEncoder": lambda step: isinstance(step.categories, str),
    "SimpleImputer": lambda step: step.strategy != "constant",
}
PARTS = ("steps", "transformers", "transformer_list")  # of pipelines, column transformers and unions


def look_at_preparation() -> None:
    """Warn where a pipeline that is being fitted publishes what another step learnt; only parameters are looked at."""
    learners = {name for _, _, owner in callers() if hasattr(owner, "steps") for name in _learners(owner)}
    if learners:
        warn(
            f"{', '.join(sorted(learners))} in the pipeline learns from the training records without privacy. Expected public "
            "knowledge instead: from_schema or BoundedScaler of skdp.preprocessing, categories=[...], a constant for what is "
            "missing, or FrozenEstimator of one that public records fitted; neither epsilon nor a ledger covers that.",
            OutsideGuaranteeWarning,
        )


def _learners(step: Any) -> Iterator[str]:
    """Names of the classes of scikit-learn in a preparation that learn."""
    for part in PARTS:
        for entry in getattr(step, part, ()):
            yield from _learners(entry[1])
    for kind in type(step).__mro__:
        name = kind.__name__
        if kind.__module__.startswith("sklearn.") and (name in LEARN or (name in LEARN_IF and LEARN_IF[name](step))):
            yield type(step).__name__
            return
