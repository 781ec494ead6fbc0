"""Map the names of the command line to estimators, and build an estimator for the table that a schema describes."""

import json
import warnings
from collections.abc import Iterable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from skdp import estimators
from skdp._commands._raw import RawTable
from skdp._scikit_learn.callers import protects_persons
from skdp.preprocessing import Schema, SchemaColumns, from_schema
from skdp.solvers import SOLVERS

ESTIMATORS: dict[str, dict[bool, Any]] = {  # by name: the class that predicts labels (True), and numbers (False)
    "logistic": {True: estimators.DPLogisticRegression},
    "linear": {False: estimators.DPLinearRegression},
    "tabular": {True: estimators.DPTabularClassifier, False: estimators.DPTabularRegressor},
    "boosting": {True: estimators.DPGradientBoostingClassifier, False: estimators.DPGradientBoostingRegressor},
    "additive": {True: estimators.DPAdditiveClassifier, False: estimators.DPAdditiveRegressor},
    "svm": {True: estimators.DPLinearSVC},
    "auc": {True: estimators.DPAUCMaximizer},
    "group_dro": {True: estimators.DPGroupDROClassifier},
    "quantile": {False: estimators.DPQuantileRegressor},
    "robust": {False: estimators.DPRobustRegressor},
    "constrained": {True: estimators.DPConstrainedClassifier, False: estimators.DPConstrainedRegression},
}
TASKS = {True: "classification", False: "regression"}
# They do not need target_bounds, or a threshold stands for them.
BOUNDLESS = estimators.DPQuantileRegressor, estimators.DPRobustRegressor
NEEDED: dict[Any, tuple[str, str]] = {  # required parameters: in units of the target, so without a good default
    estimators.DPConstrainedRegression: ("radius", "the size of the set of coefficients, in units of the target"),
}
ELSEWHERE = {
    **{name: f"--{name}" for name in ("epsilon", "delta", "adjacency", "solver")},
    **dict.fromkeys(("schema", "classes"), "the file of --schema"),
    "target_bounds": """a file of --schema such as {"columns": {"age": "learn"}, "target": "cost", "target_bounds": [0, 10]}""",
    "verbose": "--quiet",
    "privacy_unit": "--persons",
}


def settings(words: Iterable[str]) -> dict[str, Any]:
    """Read parameters of an estimator.

    Parameters
    ----------
    words : iterable of str
        ``name=value``: the value is JSON, or else text.

    Returns
    -------
    dict
        Values by name.

    Raises
    ------
    ValueError
        If a word is not such a pair, or another option sets the parameter.
    """
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise ValueError(f"--set {word!r}; expected name=value, such as alpha=0.001.")
        if name in ELSEWHERE or name in given:
            raise ValueError(f"--set {word!r}: {name} is set by {ELSEWHERE.get(name, 'another --set')}; expected it only there.")
        try:
            given[name] = json.loads(text)
        except (ValueError, RecursionError):
            given[name] = text
    return given


def unfitted(facts: Schema | RawTable, name: str | None, given: dict[str, Any], **options: Any) -> Pipeline:
    """Return a pipeline of the preparation by public facts and a private estimator.

    Parameters
    ----------
    facts : Schema or RawTable
        What is public about the table.
    name : str or None
        Key of `ESTIMATORS`, or the name of a class; None uses "tabular".
    given : dict
        Further parameters of the estimator by name; those of the solver as ``solver__name``.
    **options : dict
        Parameters that all estimators have.

    Returns
    -------
    Pipeline
        A pipeline for data frames.

    Raises
    ------
    TypeError, ValueError
        If there is no such estimator or parameter, or if the estimator cannot predict the target.
    """
    kind = _estimator_class(facts, name)
    _check_needed(kind, given, facts.target_bounds is not None or not isinstance(facts, Schema))
    values: dict[str, Any] = {"classes": facts.classes} if _labelled(facts) else {"target_bounds": facts.target_bounds}
    prepare: Any = facts.reader if isinstance(facts, RawTable) else SchemaColumns.of(facts)
    if isinstance(facts, RawTable):
        values["schema"] = facts.content
    elif "schema" in signature(kind).parameters:
        values["schema"] = facts
    else:
        values["data_norm"] = 1.0
        prepare = from_schema(facts).set_output(transform="pandas")  # keeps the names of the prepared columns
    solver = _solver(options.pop("solver"), given, kind)
    if "privacy_unit" in options and "privacy_unit" not in signature(kind).parameters:
        raise ValueError(f"--persons: {kind.__name__} protects single records; expected another --estimator, or no such option.")
    estimator = kind(**values, **options, **solver)
    _set(estimator, _spelt(given, facts))
    return make_pipeline(prepare, estimator)


def check(model: Pipeline, facts: Any) -> None:
    """Raise an error for parameters that a fit would refuse, before the table is read.

    Parameters
    ----------
    model : Pipeline
        From `unfitted`.
    facts : Schema or TypedColumns
        What is public about the table; or names and types of its columns, if some are learned.

    Raises
    ------
    TypeError, ValueError
        As the fit would.
    """
    with warnings.catch_warnings():  # the fit repeats the warnings
        warnings.simplefilter("ignore")
        if isinstance(facts, Schema):
            model[-1].plan(n_samples=1000, n_features=facts.n_features)
        else:
            planned(model, facts)


def planned(model: Pipeline, shape: Any) -> Any:
    """Return the report of a fit, planned by the names and types of columns, and the number of records or persons."""
    return model[-1].plan(shape, **({"persons": np.arange(shape.n_samples)} if protects_persons(model[-1]) else {}))


def _labelled(facts: Schema | RawTable) -> bool:
    return facts.labelled if isinstance(facts, RawTable) else facts.classes is not None


def _estimator_class(facts: Schema | RawTable, name: str | None) -> Any:
    labels = _labelled(facts)
    if facts.target is None:
        raise ValueError("The schema has no target; expected the name of the column to predict.")
    name = name or "tabular"
    named = ESTIMATORS.get(name) or {
        is_labels: kind for kinds in ESTIMATORS.values() for is_labels, kind in kinds.items() if kind.__name__ == name
    }
    if not named:
        raise ValueError(f"estimator={name!r}; expected one of {list(ESTIMATORS)}.")
    if labels not in named:
        wanted, has = ("labels", 'no "classes"') if True in named else ("numbers", '"classes"')
        if isinstance(facts, RawTable):
            raise ValueError(
                f"estimator={name!r} predicts {wanted}; expected --task {TASKS[True in named]}, or another estimator."
            )
        others = [other for other, kinds in ESTIMATORS.items() if labels in kinds]
        raise ValueError(
            f"estimator={name!r} predicts {wanted}, and the target has {has} in the schema; expected one of {others}."
        )
    kind = named[labels]
    if not labels and facts.target_bounds is None and kind not in BOUNDLESS and isinstance(facts, Schema):
        raise ValueError(
            f'The schema has neither "classes" nor "target_bounds" for the target {facts.target!r}; expected the classes of a '
            "label, or target_bounds: [low, high] of a number. The estimators quantile and robust do not need them."
        )
    return kind


def _set(estimator: Any, given: dict[str, Any]) -> None:
    known = estimator.get_params()
    try:
        estimator.set_params(**given)
    except ValueError:  # the message of scikit-learn shows the whole estimator
        unknown, expected = [name for name in given if name not in known], sorted(set(known) - set(ELSEWHERE))
        raise ValueError(f"--set: {type(estimator).__name__} has no {unknown}; expected names among {expected}.") from None


def _check_needed(kind: Any, given: dict[str, Any], bounded: bool) -> None:
    needed, meaning = NEEDED.get(kind, ("", ""))
    if kind is estimators.DPRobustRegressor and not bounded and given.get("loss") != "absolute":
        needed, meaning = "threshold", "the error, in units of the target, above which a record has little influence"
    if needed and needed not in given:
        raise ValueError(f"{kind.__name__} needs --set {needed}=NUMBER: {meaning}; expected one from public knowledge.")


def _solver(name: str, given: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Return the name of the solver, or a solver object if parameters of the solver are given; {} if there is no choice."""
    nested = [parameter for parameter in given if parameter.startswith("solver__")]
    if "solver" not in signature(kind).parameters:
        if nested or name != "auto":
            option = f"--set {nested[0]}" if nested else f"--solver {name}"
            raise ValueError(
                f"{option}: {kind.__name__} chooses its solver by itself; expected no such option, or another --estimator, "
                "such as logistic or linear."
            )
        return {}
    if nested and name not in SOLVERS:
        raise ValueError(f"solver={name!r} with --set {nested[0]}; expected one of {sorted(SOLVERS)} as --solver.")
    return {"solver": SOLVERS[name]() if nested else name}


def _spelt(given: dict[str, Any], facts: Schema | RawTable) -> dict[str, Any]:
    """Replace the keys of class weights, which are text in JSON, by the labels of the schema."""
    weights = given.get("class_weight")
    if not isinstance(weights, dict) or facts.classes is None:
        return given
    labels = {str(label): label for label in facts.classes}
    return {**given, "class_weight": {labels.get(label, label): weight for label, weight in weights.items()}}
