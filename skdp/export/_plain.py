"""Export fitted models to plain objects of scikit-learn, with public names alone."""

import math
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import skdp.estimators as models
from skdp._files._suffixes import imported
from skdp._scikit_learn.pipelines import fitted_steps
from skdp.estimators._classifier import DPClassifier, DPProbabilisticClassifier
from skdp.estimators._link import BentLine, LogCalibration
from skdp.export._models import PREDICTORS, additive, boosted, linear
from skdp.export._onnx import check_fitted
from skdp.preprocessing._categories import spellings
from skdp.preprocessing._column_kinds import OTHER, Category, Number
from skdp.preprocessing._schema import TreatmentSchema

NEAR = 1e-12  # relative error of the length of a row


class NotPlain(TypeError):
    """Scikit-learn has no public object with these predictions."""


def plain_model(model: Any) -> Any:
    """Return a plain object of scikit-learn; see `skdp.to_sklearn`."""
    check_fitted(model)
    (last, *others) = reversed(fitted_steps(model))
    try:
        if others:
            raise NotPlain("a pipeline may shorten rows")
        return plain(last)
    except NotPlain as error:
        reason = str(error)
    raise TypeError(f"{type(model).__name__} has no plain object of scikit-learn: {reason}. to_onnx exports it.")


def plain(model: Any) -> Any:
    """Return plain objects of a fitted estimator; raise `NotPlain` where there are none."""
    kind = PREDICTORS.get(type(model))
    if type(model) is models.DPPCA:
        return after(columns_of(model), scaler(model), components(model))
    if type(model) is models.DPKMeans:
        centres = model.cluster_centers_ / model.scale_
        return after(columns_of(model), scaler(model), KMeans(len(centres), init=centres, n_init=1, max_iter=1).fit(centres))
    if (kind is linear and not hasattr(model, "coefs_")) or (type(model) is models.DPAUCMaximizer and hasattr(model, "coef_")):
        return after(columns_of(model), predictor(model, model.coef_))
    if kind is additive or (kind is boosted and model.trees_ is None):
        return of_functions(model)
    raise NotPlain("it has no public class with such predictions")


def after(*steps: Any) -> Any:
    """Return a pipeline of the steps that there are, or the only one."""
    found = [step for step in steps if step is not None]
    return found[0] if len(found) == 1 else make_pipeline(*found)


def scaler(model: Any) -> Any:
    """Return what divides features by ``scale_``; None if they are 1."""
    if (model.scale_ == 1).all():
        return None
    return with_facts(StandardScaler(with_mean=False), model, scale_=model.scale_, var_=model.scale_**2)


def components(model: Any) -> PCA:
    """Return the components, with the variances that scores are divided by."""
    least = max(model.noise_edge_ / 2, np.finfo(float).tiny) if model.whiten else 0.0
    facts = {"components_": model.components_, "mean_": model.mean_ / model.scale_, "n_components_": len(model.components_)}
    variances = np.maximum(model.explained_variance_, least)
    return with_facts(PCA(len(model.components_), whiten=model.whiten), model, explained_variance_=variances, **facts)


def with_facts(found: Any, model: Any, **facts: Any) -> Any:
    """Return a plain object with its fitted attributes; a linear model also has names, if columns go into it as they are."""
    if "coef_" in facts:
        facts["n_features_in_"] = np.shape(facts["coef_"])[-1]
        if hasattr(model, "feature_names_in_") and not (hasattr(model, "schema_") or hasattr(model, "basis_")):
            facts["feature_names_in_"] = model.feature_names_in_
    for name, value in facts.items():
        setattr(found, name, value.copy() if isinstance(value, np.ndarray) else value)
    return found


def predictor(model: Any, coef: np.ndarray, intercept: Any = None) -> Any:
    """Return the plain linear model with these coefficients."""
    facts = {"coef_": coef, "intercept_": model.intercept_ if intercept is None else intercept}
    if isinstance(model, DPClassifier):
        kind = LogisticRegression() if isinstance(model, DPProbabilisticClassifier) else LinearSVC()
        facts = {name: np.atleast_2d(value) if name == "coef_" else np.atleast_1d(value) for name, value in facts.items()}
        return with_facts(kind, model, classes_=model.classes_, **facts)
    found = with_facts(LinearRegression(), model, **facts)
    calibration, bounds = getattr(model, "calibration_", None), model.target_bounds_
    if isinstance(calibration, BentLine):
        raise NotPlain("predictions of an identity link in place of a log link are bent")
    if bounds is None:
        return found
    # The inverse of a pipeline begins with its last step.
    steps = [clipped(*np.transpose(bounds))]
    if isinstance(calibration, LogCalibration):
        ends = calibration.level - calibration.reach, calibration.level + calibration.reach
        steps += [FunctionTransformer(inverse_func=np.exp), clipped(*ends)]
    shape = (2, *np.shape(coef)[:-1])
    whole = TransformedTargetRegressor(FrozenEstimator(found), transformer=make_pipeline(*steps), check_inverse=False)
    return whole.fit(np.zeros((2, np.shape(coef)[-1])), np.zeros(shape))


def clipped(low: Any, high: Any) -> FunctionTransformer:
    """Return what clips predictions in its inverse."""
    return FunctionTransformer(inverse_func=np.clip, inv_kw_args={"a_min": low, "a_max": high}, check_inverse=False)


def columns_of(model: Any) -> Any:
    """Return the plain preparation of the columns of a linear model; None for numbers as they are."""
    schema = getattr(model, "schema_", None)
    if schema is None:
        return None
    treated = isinstance(schema, TreatmentSchema)
    if not treated and schema.numbers:
        raise NotPlain("rows of the schema that are longer than 1 are shortened")
    parts, weight = [], 1.0 if treated else 1 / schema.data_norm
    for columns in schema.alike():
        for name, facts in columns.items():
            parts.append((name, in_units(facts) if isinstance(facts, Number) else levels(facts, treated), [name]))
    return fitted(ColumnTransformer(parts, transformer_weights={name: weight for name, *_ in parts}, sparse_threshold=0), schema)


def fitted(columns: ColumnTransformer, schema: Any) -> ColumnTransformer:
    """Fit a preparation to two rows of public facts: the lower and the upper bounds of numbers, and first categories."""
    rows = {
        name: list(facts.ends) if isinstance(facts, Number) else [facts.categories[0]] * 2
        for name, facts in schema.columns.items()
    }
    return columns.fit(imported("pandas").DataFrame(rows))


def in_units(facts: Number) -> Any:
    """Return what fills and clips a number with public bounds, and takes its logarithm if it has this scale."""
    if facts.learned is not None:
        raise NotPlain("columns of numbers were learned")
    low, high = facts.bounds
    if facts.scale == "log" and low < 0:
        raise NotPlain("there are logarithms of negative numbers")
    clip = FunctionTransformer(np.clip, kw_args={"a_min": low, "a_max": high}, validate=facts.fill is None)
    missing = (
        FunctionTransformer(np.asarray, kw_args={"dtype": np.float64}),
        SimpleImputer(strategy="constant", fill_value=facts.fill, keep_empty_features=True),
    )
    return after(*(() if facts.fill is None else missing), clip, FunctionTransformer(np.log1p) if facts.scale == "log" else None)


def levels(facts: Any, treated: bool = False) -> Any:
    """Return the plain encoder of a category with names: an indicator per category and one of all other text."""
    if not isinstance(facts, Category) or facts.buckets is not None:
        raise NotPlain("columns of categories were learned, by a hash")
    names = facts.levels if treated else list(facts.categories)
    if OTHER in names or any(len(spellings(name)) > 1 or name in ("True", "False") for name in names):
        raise NotPlain(f"categories that are numbers or truths have several spellings, and so has {OTHER!r}")
    unknown = -1 if treated else len(names)
    numbers = OrdinalEncoder(categories=[names], handle_unknown="use_encoded_value", unknown_value=unknown)
    places = [float(place) for place in range(len(names) + (not treated))]
    further: dict[str, Any] = {"drop": [0.0], "handle_unknown": "ignore"} if treated else {}
    return make_pipeline(numbers, OneHotEncoder(categories=[places], sparse_output=False, **further))


def of_functions(model: Any) -> Any:
    """Return the plain objects of an additive model without pairs: splines of degree 1 and encoders, then a linear model."""
    basis, coef, parts, found = model.basis_, np.atleast_2d(model.coef_), [], []
    if basis.interactions:
        raise NotPlain("it has functions of pairs of columns")
    for place, (term, (name, facts)) in enumerate(zip(basis.terms, basis.facts.columns.items(), strict=True)):
        own = coef[:, term.columns]
        if isinstance(facts, Number):
            step, heights = of_number(basis, term, facts, own)
        else:
            step, heights = levels(facts), own / basis.length_in_force
        parts.append((f"column {place}", step, [name if hasattr(model, "feature_names_in_") else place]))
        found.append(heights)
    columns = ColumnTransformer(parts, sparse_threshold=0)
    rows = (
        fitted(columns, basis.facts)
        if hasattr(model, "feature_names_in_")
        else columns.fit(np.transpose([facts.ends for facts in basis.facts.columns.values()]))
    )
    heights = np.concatenate(found, axis=1)
    return make_pipeline(rows, predictor(model, heights if model.coef_.ndim == 2 else heights[0]))


def of_number(basis: Any, term: Any, facts: Number, coef: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the hats of a number, and the heights of its function at their knots."""
    prepare = in_units(facts)
    (name,) = term.names
    places = basis.knots_of(name) if basis.n_intervals else np.array([0.0, 1.0])
    zero = basis._zero(name)
    heights = coef[:, :1] * (2 * places - 1 - zero) / (1 + abs(zero)) / basis.length_in_force
    if basis.n_intervals:
        heights = heights + coef[:, 1 : 1 + places.size] / math.sqrt(len(basis.numbers))
    knots = np.interp(places, [0, 1], facts.own_range)[:, None]
    return make_pipeline(prepare, SplineTransformer(degree=1, knots=knots, extrapolation="constant")), heights
