"""Evaluate a saved model on sensitive test records, with scores that may be published."""

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from skdp import metrics as private_metrics
from skdp._commands._fitted import columns_of, read_model, records_of
from skdp._commands._raw import RawTable
from skdp._commands._records import (
    charged,
    check_persons,
    held_out_records,
    ledger_of,
    n_units,
    numbered,
    public_facts,
    read_in_words,
    with_targets,
)
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import REPORTS, report_content
from skdp._files._tables import TextFormat, no_column
from skdp._model_card import guarantee_of_scores
from skdp._scikit_learn.callers import protects_persons
from skdp._scikit_learn.pipelines import fitted_steps

NEW_RECORDS = (
    "Scores are for records that the model was not fitted to: those of its fit give scores that are too good, and spend a second "
    "budget. --test selects the records that a fit with this option kept out."
)


def evaluate(
    model: Path,
    table: Path,
    *,
    form: TextFormat,
    target: str | None,
    metrics: str | None,
    target_bounds: str | None,
    test: str | None,
    drop_missing_target: bool | None,
    persons: str | None,
    ledger: str | None,
    out: Path | None,
    report: Path | None,
    trust: bool,
    **parameters: Any,
) -> None:
    """Print scores of a model that may be published, with intervals, and save them.

    Parameters
    ----------
    model, table : Path
        A saved model, and test records in a file.
    form : TextFormat
        How a text is written.
    target : str or None
        Column of the true labels or numbers; None takes that of the fit.
    metrics : str or None
        Names with commas between them.
    target_bounds : str or None
        ``low,high`` of a number to predict; None takes those of the model.
    test : str or None
        The records that a fit with this option kept out; None takes all.
    drop_missing_target : bool or None
        Whether records without target are left out.
    persons : str or None
        Column of the ids of persons, who are protected then.
    ledger : str or None
        Existing ledger that is charged.
    out, report : Path or None
        Where to write the scores and the privacy report.
    trust : bool
        Whether to read a model file that can run code.
    **parameters : dict
        Parameters of `skdp.metrics.evaluate`.
    """
    if table.is_dir():
        raise ValueError(f"{table} is a folder; expected the test records in one file.")
    account = ledger_of(ledger)
    check_outputs([(out, (".csv", ".json")), (report, REPORTS)], [model, table, getattr(account, "path", None)])
    fitted = read_model(model, trust)
    if persons is None and protects_persons(fitted):
        raise ValueError(
            f"{model} protects persons, each with all her records; expected --persons COLUMN with the ids of the persons in "
            "TABLE, so that scores protect them, too."
        )
    facts = _facts(fitted, target, model)
    check_persons(persons, test, target=facts.target)
    kept_out, chosen = _stated(fitted).get("test"), public_facts(test, None, persons).get("test")
    if test is not None and kept_out not in (None, chosen):
        raise ValueError(
            f"--test {test} would select records of the fit: {kept_out}; expected the same --test, or none for a table of other "
            "records."
        )
    if not facts.labelled:
        bounds = parameters["target_bounds"] = facts.target_bounds if target_bounds is None else _bounds(target_bounds)
        if bounds is not None and target_bounds is None:
            print(f"Targets are clipped to {list(bounds)}, the range that the model knows; --target-bounds states another.")
    elif target_bounds is not None:
        raise ValueError("--target-bounds is for numbers to predict, and the model predicts labels; expected no such option.")
    X, y, numbers = _test_records(fitted, model, table, form, facts, test, drop_missing_target, persons)
    if test is None or kept_out is None:
        print(NEW_RECORDS)
    names = None if metrics is None else metrics.split(",")
    with account or nullcontext():
        found = private_metrics.evaluate(fitted, X, y, metrics=names, persons=numbers, **parameters)
    statement = found.privacy_report
    public = {**statement.public, **public_facts(test, drop_missing_target, persons)}
    found = replace(found, privacy_report=replace(statement, public=public))
    print(found)
    if out is not None:
        write_whole(out, _content(found, out))
    if report is not None:
        write_whole(report, report_content(found.privacy_report, report))
    for path in (out, report):
        if path is not None:
            print(f"Written: {path}")
    if account is not None:
        print(charged(account, ledger))


def _stated(fitted: Any) -> Any:
    """Return the public facts in the report of a model; none without a report."""
    return getattr(getattr(fitted_steps(fitted, chosen=False)[-1], "privacy_report_", None), "public", {})


def _facts(fitted: Any, target: str | None, path: Path) -> RawTable:
    """Return what the model states of the target."""
    last, stated = fitted_steps(fitted, chosen=False)[-1], _stated(fitted).get("schema", {})
    target = target or (stated.get("target") if isinstance(stated, dict) else None)
    if target is None:
        raise ValueError(f"{path} does not state the column that it predicts; expected --target NAME.")
    classes = getattr(last, "classes_", None)
    if classes is not None:
        return RawTable({}, target, tuple(classes.tolist()), None, True)
    bounds = getattr(getattr(last, "schema_", None), "target_bounds", None) or last.get_params().get("target_bounds")
    return RawTable({}, target, None, None if bounds is None else tuple(bounds), False)


def _test_records(
    fitted: Any,
    model: Path,
    table: Path,
    form: TextFormat,
    facts: RawTable,
    test: str | None,
    drop_missing: bool | None,
    persons: str | None,
) -> tuple[Any, Any, Any]:
    """Return X, y, and whose each record is; None without a column of persons."""
    columns, names = columns_of(fitted, model)
    frame, target = columns.read(table, form), str(facts.target)
    if target not in frame.columns:
        raise no_column(table, target, list(frame.columns), "--target")
    frame = numbered(table, frame, persons)
    n_read = n_units(frame, persons)
    if drop_missing:
        frame = with_targets(table, frame, target, facts.classes)
    n_labelled = n_units(frame, persons)
    if test is not None:
        frame = frame[held_out_records(table, frame, test, persons)]
    print(read_in_words(table, n_read, n_labelled, n_units(frame, persons), "scores", persons))
    numbers = None if persons is None else frame[persons].to_numpy()
    return records_of(fitted, table, frame, names), facts.targets(table, frame.copy()), numbers


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"--target-bounds {text}; expected two numbers with a comma between them.") from None
    return low, high


def _content(found: Any, path: Path) -> bytes:
    """Return the scores, with nothing where one is not determined."""
    rows = {
        name: {key: number if math.isfinite(number) else None for key, number in row.items()}
        for name, row in found.to_dict().items()
    }
    if path.suffix == ".json":
        report = found.privacy_report
        content = {"metrics": rows, "level": found.level, "guarantee": guarantee_of_scores(report), "privacy": report.to_dict()}
        return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
    lines = [",".join(["" if number is None else repr(number) for number in row.values()]) for row in rows.values()]
    return "\n".join(["metric,value,low,high", *(f"{name},{line}" for name, line in zip(rows, lines, strict=True)), ""]).encode()
