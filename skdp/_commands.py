"""The commands of ``python -m skdp``: fit, predict, plan, schema."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp._files import (
    MODELS,
    REPORTS,
    check_output,
    column_kinds,
    load_model,
    read_frame,
    save_model,
    write_report,
)
from skdp.estimators import DPLogisticRegression
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._pipeline import columns_read
from skdp.preprocessing._schema import template

__all__ = ["Labelled", "fit", "plan", "predict", "read_labelled", "schema"]


@dataclass(frozen=True)
class Labelled:
    """Training and test part of a table.

    Parameters
    ----------
    X, X_test : pandas.DataFrame
        Records; no test records where none were asked for.
    y, y_test : ndarray
        Classes.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def fit(
    table: Path, schema: Path, model: Path | None, report: Path | None, test: str | None, verbose: int, **parameters: Any
) -> None:
    """Fit a private model to a table and save it with its report.

    Parameters
    ----------
    table, schema : Path
        Records, and what is public about them.
    model, report : Path or None
        Where to write.
    test : str or None
        Share of the records that is kept for a test, or ``column=value`` of those that are.
    verbose : int
        Progress.
    **parameters : dict
        Of the estimator.
    """
    facts = Schema.read(schema)
    check_output(model, MODELS)
    check_output(report, REPORTS)
    estimator = DPLogisticRegression(data_norm=1.0, classes=facts.classes, verbose=verbose, **parameters)
    estimator.plan(n_samples=1000, n_features=facts.n_features)  # complains about parameters before the table is read
    data = read_labelled(table, facts, test)
    prepare = from_schema(facts).set_output(transform="pandas")  # keeps the names of the prepared columns
    fitted = make_pipeline(prepare, estimator).fit(data.X, data.y)
    statement = fitted[-1].privacy_report_
    print(statement)
    for path, write in ((model, lambda path: save_model(fitted, path)), (report, lambda path: write_report(statement, path))):
        if path is not None:
            write(path)
            print(f"Written: {path}")
    if test is not None:
        print(_test_scores(fitted, data))


def predict(model: Path, table: Path, out: Path | None) -> None:
    """Write predicted labels and class probabilities of a table as CSV.

    Parameters
    ----------
    model, table : Path
        A saved model, and records.
    out : Path or None
        Where to write; None prints.
    """
    check_output(out, (".csv", ".csv.gz"))
    fitted = load_model(model)
    frame = read_frame(table, *columns_read(fitted[0]))
    probabilities = fitted.predict_proba(frame)
    classes = fitted.classes_
    result = {"prediction": classes[probabilities.argmax(axis=1)]}
    result |= {f"probability of {label}": column for label, column in zip(classes.tolist(), probabilities.T, strict=True)}
    type(frame)(result).to_csv(sys.stdout if out is None else out, index=False)


def plan(schema: Path, n_samples: int, report: Path | None, **parameters: Any) -> None:
    """Print what a fit would guarantee, before any data is touched.

    Parameters
    ----------
    schema : Path
        What is public about the table.
    n_samples : int
        Number of records.
    report : Path or None
        Where to write it.
    **parameters : dict
        Of the estimator.
    """
    facts = Schema.read(schema)
    check_output(report, REPORTS)
    estimator = DPLogisticRegression(data_norm=1.0, classes=facts.classes, **parameters)
    statement = estimator.plan(n_samples=n_samples, n_features=facts.n_features)
    print(statement)
    if report is not None:
        write_report(statement, report)


def schema(table: Path, out: Path | None) -> None:
    """Write a schema to be filled in: names and kinds of the columns, and nothing else of the table.

    Parameters
    ----------
    table : Path
        Records.
    out : Path or None
        Where to write; None prints.
    """
    check_output(out, (".json",))
    columns = template(column_kinds(table))
    lines = [f"    {json.dumps(name)}: {json.dumps(facts)}" for name, facts in columns.pop("columns").items()]
    rest = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in columns.items()]
    text = "{\n" + ",\n".join(['  "columns": {\n' + ",\n".join(lines) + "\n  }", *rest]) + "\n}\n"
    if out is None:
        print(text, end="")
        return
    out.write_text(text, encoding="utf-8")
    print(
        f"Written: {out}\nFill in every bound, category and class from public knowledge, never from the records, name the target "
        'and take it out of the columns. Columns that should not predict: "kind": "ignore".'
    )


def read_labelled(table: Path, facts: Schema, test: str | None) -> Labelled:
    """Read the columns of a schema and its target, and split off test records.

    Parameters
    ----------
    table : Path
        Records.
    facts : Schema
        What is public about them.
    test : str or None
        Share of the records, or ``column=value``.

    Returns
    -------
    Labelled
        Both parts.

    Raises
    ------
    ValueError
        If something does not fit; the message quotes no data.
    """
    if facts.target is None or facts.classes is None:
        raise ValueError("The schema has no target or no classes; expected the column to predict and its labels.")
    numbers, texts = columns_read(from_schema(facts))
    column, _, value = ("", "", "") if test is None or _is_share(test) else test.partition("=")
    frame = read_frame(table, numbers, list(dict.fromkeys([*texts, facts.target, *([column] if column else [])])))
    needed = [name for name in numbers if facts.columns[name].missing is None]  # type: ignore[union-attr]
    if missing := [name for name in needed if frame[name].isna().any()]:
        raise ValueError(f'Numbers are missing in the columns {missing}; expected none, or a number as "missing" in the schema.')
    y = facts.labels(frame[facts.target])
    held_out = np.zeros(len(frame), dtype=bool)
    if column:
        held_out = (frame[column].astype(str) == value).to_numpy()
    elif test is not None:
        held_out[np.random.default_rng(0).permutation(len(frame))[: round(float(test) * len(frame))]] = True
    return Labelled(frame[~held_out], y[~held_out], frame[held_out], y[held_out])


def _test_scores(fitted: Any, data: Labelled) -> str:
    accuracy = fitted.score(data.X_test, data.y_test)
    text = f"On {len(data.y_test)} test records: accuracy {accuracy:.4f}"
    if fitted.classes_.size == 2 and len(np.unique(data.y_test)) == 2:
        text += f", AUC {roc_auc_score(data.y_test, fitted.decision_function(data.X_test)):.4f}"
    return text + " (computed from these records without noise: not private, for your eyes only)"


def _is_share(test: str) -> bool:
    try:
        share = float(test)
    except ValueError:
        if "=" in test:
            return False
        share = -1.0
    if not 0 < share < 1:
        raise ValueError(f"test={test!r}; expected a share of the records in (0, 1), or column=value.")
    return True
