"""Name the steps of a pipeline that learn from training records without noise, from its parameters alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._scikit_learn.callers import FROZEN, OF_TARGETS, SEARCHES, STACKS, is_one, is_stratified, join, learned_around, nested
from skdp._scikit_learn.pipelines import learns_without_noise
from skdp.privacy.errors import shown

PRIVATE, PUBLIC, LEARNS, UNKNOWN = "private", "public", "learns", "unknown"
MARKS = {PRIVATE: "private", PUBLIC: "reads no records", LEARNS: "LEARNS WITHOUT NOISE", UNKNOWN: "unknown"}
# Parameters by which a private step takes facts for public.
FACTS = ("schema", "feature_bounds", "bounds", "data_norm", "target_bounds", "classes", "positive_rate", "categories")
# Reviewed classes of scikit-learn without fitted state that depends on records: what they keep follows from the shape of the
# table, from parameters, or from random numbers. Some learn with other parameters, which `learns_without_noise` tells.
STATELESS = frozenset(
    "Normalizer Binarizer PolynomialFeatures AdditiveChi2Sampler SkewedChi2Sampler PolynomialCountSketch "
    "GaussianRandomProjection SparseRandomProjection HashingVectorizer FeatureHasher LabelBinarizer OneHotEncoder "
    "OrdinalEncoder SimpleImputer MissingIndicator SplineTransformer CountVectorizer RBFSampler".split()
)
# Reviewed classes that fit the estimators that they hold, and learn nothing beside these from values of records.
AROUND = frozenset(
    "VotingClassifier VotingRegressor BaggingClassifier BaggingRegressor StackingClassifier StackingRegressor "
    "OneVsRestClassifier OutputCodeClassifier ClassifierChain RegressorChain MultiOutputClassifier MultiOutputRegressor "
    "TransformedTargetRegressor "
    "FixedThresholdClassifier RFE SelectFromModel".split()
)
METHODS = ("fit", "fit_transform", "fit_resample", "transform", "predict", "get_params")


@dataclass(frozen=True)
class CheckedStep:
    """Hold what a check says about one step.

    Parameters
    ----------
    name : str
        Place of the step, with two underscores between the names of nested steps.
    kind : str
        Its class.
    verdict : {"private", "public", "learns", "unknown"}
        Whether it adds noise, reads no records, learns from records without noise, or cannot be judged.
    reason : str
        What it does, or what to take instead.
    """

    name: str
    kind: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class PipelineCheck:
    """Hold the verdicts on all steps of a pipeline.

    Parameters
    ----------
    steps : tuple of CheckedStep
        In the order of the pipeline.
    """

    steps: tuple[CheckedStep, ...]

    @property
    def ok(self) -> bool:
        """Whether there is a private step, and every other step is known to read no records."""
        verdicts = {step.verdict for step in self.steps}
        return PRIVATE in verdicts and verdicts <= {PRIVATE, PUBLIC}

    @property
    def leaks(self) -> tuple[str, ...]:
        """Names of the steps that learn from records without noise."""
        return tuple(step.name for step in self.steps if step.verdict == LEARNS)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the steps that cannot be judged."""
        return tuple(step.name for step in self.steps if step.verdict == UNKNOWN)

    def __str__(self) -> str:
        """Return a line per step, and a last one with the result."""
        width = max((len(f"{step.name} ({step.kind})") for step in self.steps), default=0)
        lines = [f"{f'{step.name} ({step.kind})':{width}}  {MARKS[step.verdict]}: {step.reason}" for step in self.steps]
        if self.leaks:
            end = f"Not private: {', '.join(self.leaks)}. No epsilon covers what these steps learn."
        elif self.unknown:
            end = f"Not known: {', '.join(self.unknown)}. Ask whether what they keep after fit depends on the records."
        elif self.ok:
            end = "Private: all that depends on the records has noise."
        else:
            end = "No step is private."
        spending = sum(step.verdict == PRIVATE for step in self.steps)
        adding = f"{spending} budgets, which add up; skdp.pipeline.DPPipeline spends one for the steps of a pipeline."
        return "\n".join([*lines, *([adding] if spending > 1 else []), end])


def check_pipeline(pipeline: Any) -> PipelineCheck:
    """Name the steps of a pipeline that learn from the training records without noise.

    Only types and parameters are inspected. No data is needed, and none is touched.

    Parameters
    ----------
    pipeline : estimator
        A pipeline, a column transformer, a search or any other estimator, fitted or not.

    Returns
    -------
    PipelineCheck
        A verdict per step: `PipelineCheck.leaks` are the names of steps that learn without noise, and printing it shows all.

    Raises
    ------
    TypeError
        If there is no estimator.

    Notes
    -----
    Known classes are those of skdp, and of scikit-learn by type and parameters. Other classes and functions are "unknown": ask
    whether what they keep after ``fit`` depends on the records. A subclass counts as its class of scikit-learn only if it has no
    methods of its own that read records.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPLogisticRegression
    >>> from skdp.inspection import check_pipeline
    >>> check = check_pipeline(make_pipeline(StandardScaler(), DPLogisticRegression(epsilon=1.0, data_norm=3.0)))
    >>> check.leaks
    ('standardscaler',)
    """
    if isinstance(pipeline, type) or not (hasattr(pipeline, "fit") or hasattr(pipeline, "transform")):
        raise TypeError(f"pipeline={shown(pipeline)}; expected an estimator with parameters, such as make_pipeline(...).")
    return PipelineCheck(tuple(check for place, step in nested("", pipeline) for check in _checked(place, step)))


def _checked(place: str, step: Any) -> Iterator[CheckedStep]:
    """Yield the verdicts on a step alone; a pipeline, a union and a column transformer only pass records on."""
    kind = type(step).__name__
    name = place or kind.lower()
    if step is None or isinstance(step, str):
        yield CheckedStep(name, shown(step), PUBLIC, "passes columns on, or drops them")
    elif is_one(step, *FROZEN):
        yield CheckedStep(name, kind, UNKNOWN, "it was fitted before: expected public records, or private ones within a budget")
    elif type(step).__module__.startswith("skdp."):
        yield _private(name, step)
        yield from _held(place, step) if hasattr(step, "epsilon") else ()
    elif isinstance(step, (Pipeline, FeatureUnion, ColumnTransformer)):
        if not _known(step):
            yield CheckedStep(name, kind, UNKNOWN, "this subclass may do more than its steps")
        for inner, _, columns in getattr(step, "transformers", ()):
            if _chooses(columns):
                yield CheckedStep(join(place, inner), kind, UNKNOWN, "the function that chooses its columns may read records")
    else:
        yield CheckedStep(name, kind, *_verdict(step))


def _held(place: str, step: Any) -> Iterator[CheckedStep]:
    """Yield the verdicts on parts of a search or a pipeline of skdp that may keep records; its budget is that of the others."""
    model = [(name, getattr(step, name)) for name in ("best_estimator_", "estimator") if hasattr(step, name)][:1]
    for inner, part in (*model, *getattr(step, "steps", ())):
        checks = (check for found in nested(join(place, inner), part) for check in _checked(*found))
        yield from (check for check in checks if check.verdict in (LEARNS, UNKNOWN))


def _verdict(step: Any) -> tuple[str, str]:
    """Return the verdict on a step that is neither of skdp nor a container, and the reason."""
    for what, instead in learned_around(step):
        return LEARNS, f"it {what}; use {instead}"
    if is_one(step, *SEARCHES):
        return LEARNS, "it chooses by scores without noise, and every fit of the search spends the budget"
    if is_one(step, *STACKS) and is_stratified(step, step.cv):
        return LEARNS, f"cv={shown(step.cv)} makes folds by labels, so that one label moves other records; expected cv=KFold(...)"
    if is_one(step, "OneHotEncoder") and (
        step.handle_unknown == "warn" or (step.handle_unknown != "error" and step.drop is not None)
    ):
        return LEARNS, "it warns if one record has an unknown category; expected handle_unknown='ignore' and drop=None"
    if is_one(step, *OF_TARGETS) and step.check_inverse and not (step.func is None and step.transformer is None):
        return LEARNS, "it warns if the inverse does not give back the targets; expected check_inverse=False"
    if learns_without_noise(step):
        return LEARNS, "expected public facts: from_schema or BoundedScaler, categories=[...], a constant, or LearnedSchema"
    if hasattr(step, "fit_resample"):
        return LEARNS, "it copies or drops records by looking at them, so that one record counts more than once"
    if not _known(step) or type(step).__name__ == "FunctionTransformer":
        return UNKNOWN, "what it keeps may depend on the records"
    names = {kind.__name__ for kind in type(step).__mro__}
    if names & AROUND:
        return PUBLIC, "it fits the estimators that it holds; each fit spends its budget"
    if names & STATELESS:
        return PUBLIC, "what it keeps follows from its parameters"
    if hasattr(step, "predict"):
        return LEARNS, "what it predicts depends on the records; expected an estimator of skdp"
    return UNKNOWN, "this class of scikit-learn was not reviewed"


def _chooses(columns: Any) -> bool:
    """Return whether columns are chosen by a function that is not known to read names and types alone."""
    return callable(columns) and type(columns) is not make_column_selector


def _known(step: Any) -> bool:
    """Return whether all that a step does with records is code of scikit-learn."""
    own = [kind for kind in type(step).__mro__ if not kind.__module__.startswith("sklearn.") and kind is not object]
    return own == [] or (
        own == list(type(step).__mro__[: len(own)]) and not any(m in vars(kind) for kind in own for m in METHODS)
    )


def _private(place: str, step: Any) -> CheckedStep:
    """Return what a step of skdp spends, and what it takes for public."""
    kind, given = type(step).__name__, step.get_params(deep=False)
    stated = {name: given[name] for name in FACTS if given.get(name) is not None}
    facts = [
        f"{name} of the columns {shown(list(value.columns))}" if hasattr(value, "columns") else f"{name}={shown(value)}"
        for name, value in stated.items()
    ]
    takes = f"; takes for public: {', '.join(facts)}" if facts else ""
    if "epsilon" not in given:
        return CheckedStep(place, kind, PUBLIC, f"what it keeps follows from its parameters{takes}")
    if given["epsilon"] == math.inf:
        return CheckedStep(place, kind, LEARNS, "epsilon=inf adds no noise")
    delta = "a default delta" if given.get("delta") is None else f"delta={given['delta']:g}"
    return CheckedStep(place, kind, PRIVATE, f"spends epsilon={given['epsilon']:g}, {delta}{takes}")
