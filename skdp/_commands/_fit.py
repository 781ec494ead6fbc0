"""Fit a private model to a table, and save it with its report."""

import sys
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import mean_pinball_loss, median_absolute_error, r2_score, roc_auc_score
from sklearn.pipeline import Pipeline

from skdp._commands._estimator_names import check, unfitted
from skdp._commands._estimator_names import settings as read_settings
from skdp._commands._messages import of_error
from skdp._commands._raw import RawTable, content_of, raw_in_partitions, schema_without, warn_of_alike
from skdp._commands._records import (
    Labelled,
    charged,
    check_options_of_folder,
    check_persons,
    column_for_test,
    in_partitions,
    ledger_of,
    n_units,
    numbers_in_folder,
    public_facts,
    read_labelled,
    unit_in_words,
)
from skdp._files._outputs import ROOM, Output, check_outputs
from skdp._files._suffixes import REPORTS, Forgiving, report_content
from skdp._files._tables import TextFormat, column_names, no_column
from skdp._model_files import MODELS, model_content, rescue
from skdp.estimators import DPAUCMaximizer, DPGroupDROClassifier, DPQuantileRegressor
from skdp.preprocessing import Schema


def fit(
    table: Path,
    schema: Path | None,
    model: Path,
    report: Path | None,
    test: str | None,
    ledger: str | None,
    *,
    form: TextFormat,
    target: str | None,
    classes: str | None,
    task: str | None,
    estimator: str | None,
    settings: list[str],
    groups: str | None,
    exposure: str | None,
    drop_missing_target: bool | None,
    persons: str | None,
    show_report: bool,
    **parameters: Any,
) -> None:
    """Fit a private model to a table and save it with its report.

    Parameters
    ----------
    table : Path
        Records, in a file or in a folder of Parquet files.
    schema : Path or None
        What is public about them; columns that it does not describe are learned.
    model : Path
        Where to write the model.
    report : Path or None
        Where to write its privacy report.
    test : str or None
        Share of the records that are kept for a test, or ``column=value``, which selects them.
    ledger : str or None
        Existing ledger that the fit is charged to.
    form : TextFormat
        How a text is written.
    target, classes, task : str or None
        Column to predict, its labels, and "classification" or "regression", if no schema of all columns states them.
    estimator : str or None
        Name of the estimator; None uses the default for the kind of target.
    settings : list of str
        Further parameters of the estimator, as ``name=value``.
    groups : str or None
        Column of public groups, for "group_dro".
    exposure : str or None
        Column that tells how long each record counted.
    drop_missing_target : bool or None
        Whether records without target are left out.
    persons : str or None
        Column of the ids of persons, who are protected then.
    show_report : bool
        Whether the report is printed.
    **parameters : dict
        Parameters that all estimators have.
    """
    content = content_of(schema)
    apart = [name for name in (column_for_test(test), groups, exposure, persons) if name]
    raw = RawTable.of(table, form, content, target=target, classes=classes, task=task, estimator=estimator, apart=apart)
    facts: Any = raw
    if raw is None:
        facts, content = schema_without(persons, Schema.read(schema, partial(column_names, table, form)), content)
    check_persons(persons, test, groups=groups, target=facts.target)
    account = ledger_of(ledger)
    check_outputs([(model, MODELS)], overwrite=False)
    check_outputs([(model, MODELS), (report, REPORTS)], [schema, table, getattr(account, "path", None)])
    unit = {} if persons is None else {"privacy_unit": "person"}
    pipeline = unfitted(facts, estimator, read_settings(settings), **parameters, **unit)
    if table.is_dir():
        check_options_of_folder(table, drop_missing_target, test=test, groups=groups, exposure=exposure)
    files = None if raw is None or not table.is_dir() else raw_in_partitions(table, raw, raw.reader.names)
    check(pipeline, facts if raw is None else files if files is not None and persons is None else raw.shape(table, 1000))
    model_content(pipeline, model)  # which refuses what the file could not hold, before the charge
    data = None
    if not table.is_dir():
        data = read_labelled(table, facts, test, form, drop_missing=bool(drop_missing_target), persons=persons)
    X, y = (files or in_partitions(table, facts), None) if data is None else (data.X, data.y)
    content = content if raw is None else raw.stated
    grouped = {} if data is None else _groups(pipeline, data.X, groups) | _exposure(pipeline, data.X, exposure)
    n_samples = X.n_samples if data is None else 0
    if persons is not None:
        numbers = numbers_in_folder(table, persons) if data is None else data.X[persons].to_numpy()
        grouped[f"{pipeline.steps[-1][0]}__persons"], n_samples = numbers, int(numbers.max()) + 1
    read = f"Read {table}: number of {unit_in_words(persons)} {n_samples}." if data is None else data.read
    print(read, file=Forgiving(sys.stdout))
    if raw is not None:
        labels = _labels(raw, data)
        print(raw.said(labels), file=Forgiving(sys.stderr))
        warn_of_alike(str(raw.target), labels or [])
    with Output(model, ROOM) as kept, nullcontext() if report is None else Output(report, ROOM) as shown:  # before the charge
        with account or nullcontext(), redirect_stdout(Forgiving(sys.stderr)):  # progress
            if files is not None:
                pipeline[-1].fit(
                    X, **{name.rpartition("__")[2]: given for name, given in grouped.items()}
                )  # it has the columns that the step before would select, with the types of the files
            else:
                pipeline.fit(X, y, **grouped)
        _state_schema(pipeline, content, groups, public_facts(test, drop_missing_target, persons))
        statement = pipeline[-1].privacy_report_
        _keep(pipeline, model, kept)
        if report is not None and shown is not None:
            _state(statement, report, shown, model)
    print("\n".join(f"Written: {path}" for path in (model, report) if path is not None))
    if account is not None:
        print(charged(account, ledger))
    print(statement if show_report else _guarantee(statement, report))
    if test is not None and data is not None:
        print(scores(pipeline, data.X_test, data.y_test, persons, None if exposure is None else data.X_test[exposure]))


def _labels(raw: RawTable, data: Labelled | None) -> list[str] | None:
    """Return the labels that were read from the records, which are public; None if there are none."""
    if data is None or not raw.labelled or raw.classes is not None:
        return None
    labels: list[str] = np.unique([*data.y, *data.y_test]).tolist()
    return labels


def _keep(fitted: Any, path: Path, output: Output) -> None:
    """Write the model, to another place if necessary: its budget cannot be refunded."""
    try:
        output.write(model_content(fitted, path))
        return
    except Exception as error:
        reason = of_error(error)
    output.discard()
    place = rescue(fitted, path.suffix)
    saved = "No other place was found, and the model is lost" if place is None else f"The model is saved as {place}: move it"
    raise OSError(f"{path} could not be written ({reason}). The budget of the fit is spent. {saved}.")


def _state(statement: Any, path: Path, output: Output, model: Path) -> None:
    """Write the report; if this fails, the fit is still complete."""
    try:
        output.write(report_content(statement, path))
    except Exception as error:
        raise OSError(
            f"{path} could not be written ({of_error(error)}). The budget of the fit is spent; {model} is written and holds "
            "the report."
        ) from None


def _state_schema(fitted: Any, content: dict[str, Any], groups: str | None, others: dict[str, str]) -> None:
    """Add to the report what else is public besides the parameters of the estimator."""
    facts: dict[str, Any] = {"schema": {key: value for key, value in content.items() if key != "description"}, **others}
    if groups is not None:
        facts["groups"] = f"column {groups}: every record's group is taken to be public"
    statement = fitted[-1].privacy_report_
    fitted[-1].privacy_report_ = replace(statement, public={**statement.public, **facts})


def _guarantee(statement: Any, report: Path | None) -> str:
    """Return the line of the report that states the guarantee, and how to get the rest."""
    line = next(line for line in str(statement).splitlines() if line.startswith("Guarantee"))
    return line if report is not None else f"{line} (-v prints the privacy report, --report FILE writes it)"


def _groups(model: Pipeline, X: Any, column: str | None) -> dict[str, Any]:
    """Return the argument ``groups`` of the fit, for an estimator that supports it."""
    name, estimator = model.steps[-1]
    if column is None and not isinstance(estimator, DPGroupDROClassifier):
        return {}
    if column is None or not isinstance(estimator, DPGroupDROClassifier):
        raise ValueError(
            f"--groups {column}; expected a column of public groups with --estimator group_dro, and none with others. --persons "
            "protects persons who have several records."
        )
    if column not in X.columns:
        raise no_column(Path("the table"), column, list(X.columns), "--groups")
    return {f"{name}__groups": X[column].to_numpy()}


def _exposure(model: Pipeline, X: Any, column: str | None) -> dict[str, Any]:
    """Return the argument ``exposure`` of the fit."""
    if column is None:
        return {}
    if column not in X.columns:
        raise no_column(Path("the table"), column, list(X.columns), "--exposure")
    given = X[column].to_numpy()
    with suppress(ValueError):  # texts that are no numbers, which the fit refuses
        given = given.astype(float)
    return {f"{model.steps[-1][0]}__exposure": given}


def scores(fitted: Any, X: Any, y: np.ndarray, persons: str | None = None, exposure: Any = None) -> str:
    """Return a line with the scores on test records, computed without noise, and those of a constant prediction.

    Parameters
    ----------
    fitted : Pipeline
        Its last step is a fitted estimator.
    X : DataFrame
        Test records.
    y : ndarray of shape (n_samples,)
        Their targets.
    persons : str or None, default=None
        Column of the numbers of persons.
    exposure : array-like of shape (n_samples,) or None, default=None
        How long each record counted, if predictions are per unit of exposure.

    Returns
    -------
    str
        The line.
    """
    text = _of_numbers(fitted, X, y, exposure) if is_regressor(fitted) else _of_labels(fitted, X, y)
    tested = f"{len(y)} test records" if persons is None else f"the test records of {n_units(X, persons)} persons"
    return f"On {tested}: {text} (computed without noise: not private, for your eyes only)"


def _of_labels(fitted: Any, X: Any, y: np.ndarray) -> str:
    counts = np.unique(y, return_counts=True)[1]
    both = fitted.classes_.size == 2 and len(counts) == 2
    auc = f"AUC {roc_auc_score(y == fitted.classes_[1], fitted.decision_function(X)):.4f}" if both else ""
    if isinstance(fitted[-1], DPAUCMaximizer):
        return f"{auc}; chance alone 0.5000" if auc else "no AUC, because all are of one class"
    parts = [f"accuracy {np.mean(fitted.predict(X) == y):.4f}", auc]
    return f"{', '.join(filter(None, parts))}; the larger class alone {counts.max() / counts.sum():.4f}"


def _of_numbers(fitted: Any, X: Any, y: np.ndarray, exposure: Any) -> str:
    predicted, model = fitted.predict(X), fitted[-1]
    if exposure is not None:
        predicted = predicted * np.minimum(np.asarray(exposure, dtype=float), model.max_exposure)
    if isinstance(model, DPQuantileRegressor):
        constant = np.full(len(y), np.quantile(y, model.quantile))
        loss, alone = (mean_pinball_loss(y, values, alpha=model.quantile) for values in (predicted, constant))
        covered = f"{np.mean(y <= predicted):.4f} of the targets are at or below the prediction"
        return f"{covered} ({model.quantile:g} is asked for), pinball loss {loss:.4g}; a constant alone {alone:.4g}"
    error, alone = (median_absolute_error(y, values) for values in (predicted, np.full(len(y), np.median(y))))
    score = r2_score(y, predicted) if len(y) > 1 else float("nan")
    return f"R2 {score:.4f}, median absolute error {error:.4g}; a constant alone: R2 0, median absolute error {alone:.4g}"
