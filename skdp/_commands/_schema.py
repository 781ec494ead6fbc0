"""Write a schema of a table: a template, or what is learned with a privacy budget."""

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from skdp._commands._raw import RawTable, content_of, raw_in_partitions
from skdp._commands._records import charged, check_options_of_folder, check_persons, ledger_of, numbers_in_folder, read_labelled
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import REPORTS, report_content
from skdp._files._tables import TextFormat, column_kinds, no_column
from skdp.preprocessing import LearnedSchema
from skdp.preprocessing._schema import template


def schema(table: Path, out: Path | None, form: TextFormat, target: str | None, *, learn: bool, **options: Any) -> None:
    """Write a template of a schema, with the names and kinds of the columns and nothing else from the table, or learn one.

    Parameters
    ----------
    table : Path
        Records.
    out : Path or None
        Where to write; None prints.
    form : TextFormat
        How a text is written.
    target : str or None
        Column to predict.
    learn : bool
        Whether bounds and categories are learned from the records.
    **options : dict
        What `learn_schema` takes; None without ``learn``.
    """
    if learn:
        learn_schema(table, out, form, target, **options)
        return
    if given := [f"--{'schema' if name == 'known' else name}" for name, value in options.items() if value is not None]:
        raise ValueError(f"{' and '.join(given)} without --learn; expected it with --learn only.")
    check_outputs([(out, (".json",))], [table], overwrite=False)
    kinds = column_kinds(table, form, [str(target)])
    if target is not None and target not in kinds:
        raise no_column(table, target, list(kinds), "--target")
    columns = template(kinds, target or "")
    text = as_text(columns)
    if out is None:
        print(text, end="")
        return
    write_whole(out, text.encode())
    name_it = "" if target else ", name the target and take it out of the columns"
    print(
        f"Written: {out}\n"
        "This template is for the owner of the records: its kinds are guesses, which one record can change.\n"
        "Correct them, and check that the column names, which are the first line of the table, are no data. Fill in every\n"
        f"bound, category and class from public knowledge, never from the records{name_it}.\n"
        'Columns that should not predict: "kind": "ignore". Codes are better described as categories.'
    )


HEADINGS = ("kind", "low", "high", "scale", "missing", "integers", "categories")


def learn_schema(
    table: Path,
    out: Path | None,
    form: TextFormat,
    target: str | None,
    *,
    classes: str | None,
    task: str | None,
    epsilon: float | None,
    delta: float | None,
    adjacency: str | None,
    known: Path | None,
    ledger: str | None,
    report: Path | None,
    drop_missing_target: bool | None,
    persons: str | None,
) -> None:
    """Learn a schema, write it, and print what was learned and the privacy report.

    Parameters
    ----------
    table : Path
        Records, in a file or in a folder of Parquet files.
    out : Path or None
        Where to write the schema; None prints it alone.
    form : TextFormat
        How a text is written.
    target, classes, task : str or None
        Column to predict, its labels, and "classification" or "regression".
    epsilon, delta, adjacency : float, str or None
        Privacy parameters.
    known : Path or None
        What is known of some columns.
    ledger : str or None
        Existing ledger that is charged.
    report : Path or None
        Where to write the privacy report.
    drop_missing_target : bool or None
        Whether records without target are left out.
    persons : str or None
        Column of the ids of persons, who are protected then.
    """
    if epsilon is None:
        raise ValueError("--learn needs --epsilon: the privacy budget that the schema spends; 0.1 to 0.3 of a usual 1 is enough.")
    apart = [persons] if persons else []
    raw = RawTable.of(table, form, content_of(known), target=target, classes=classes, task=task, apart=apart, needs_target=False)
    if raw is None:
        raise ValueError(f"{known} describes every column; expected one that leaves columns to learn.")
    account = ledger_of(ledger)
    check_outputs([(out, (".json",))], [table, known, getattr(account, "path", None)], overwrite=False)
    check_outputs([(report, REPORTS)], [table, known, getattr(account, "path", None), out])
    learns_target = raw.target is not None and not raw.labelled and raw.target_bounds is None
    words = raw.content["columns"]
    check_persons(persons, None, target=raw.target)
    X, y, numbers, labels_of = _records(table, form, raw, list(words), bool(drop_missing_target), persons)
    privacy = {"delta": delta, "adjacency": adjacency or "replace_one", "privacy_unit": "person" if persons else "record"}
    learner = LearnedSchema(epsilon, **privacy, schema=words, learn_target=learns_target)  # type: ignore[arg-type]
    with account or nullcontext():
        learner.fit(X, y if learns_target else None, persons=numbers)
    text = as_text({**learner.to_schema(), **_of_target(raw, labels_of)})
    if report is not None:
        write_whole(report, report_content(learner.privacy_report_, report))
    if out is None:
        print(text, end="")
        return
    write_whole(out, text.encode())
    print(f"{_table(learner.learnt_)}\n\n{learner.privacy_report_}\n\nWritten: {out}")
    if account is not None:
        print(charged(account, ledger))


def as_text(content: Mapping[str, Any]) -> str:
    """Return a schema as JSON with a line per column."""
    lines = [f"    {_json(name)}: {_json(facts)}" for name, facts in content["columns"].items()]
    parts = {key: _json(value) for key, value in content.items()} | {"columns": "{\n" + ",\n".join(lines) + "\n  }"}
    return "{\n" + ",\n".join(f"  {_json(key)}: {value}" for key, value in parts.items()) + "\n}\n"


def _records(
    table: Path, form: TextFormat, raw: RawTable, names: list[str], drop_missing: bool, persons: str | None
) -> tuple[Any, Any, Any, Callable[[], list[Any]]]:
    """Return X, y (None for a folder, which has its own), whose each record is, and what returns the labels of a read table."""
    if table.is_dir():
        check_options_of_folder(table, drop_missing)
        files = raw_in_partitions(table, raw, names)
        numbers = None if persons is None else numbers_in_folder(table, persons)
        return files, None, numbers, lambda: files.source.labels  # type: ignore[attr-defined]
    data = read_labelled(table, raw, None, form, drop_missing=drop_missing, persons=persons)
    numbers = None if persons is None else data.X[persons].to_numpy()
    return data.X[names], data.y, numbers, lambda: np.unique(data.y).tolist()


def _of_target(raw: RawTable, labels_of: Callable[[], list[Any]]) -> dict[str, Any]:
    """Return what the schema says of the target; labels that are not stated are those of the table, and public."""
    if raw.target is None:
        return {}
    if not raw.labelled:
        return {"target": raw.target, **({} if raw.target_bounds is None else {"target_bounds": list(raw.target_bounds)})}
    return {"target": raw.target, "classes": list(raw.classes) if raw.classes is not None else labels_of()}


def _table(learned: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what was learned as a table with a line per column."""
    used = [heading for heading in HEADINGS if any(heading in row for row in learned.values())]
    cells = [["column", *used], *([name, *(_cell(row.get(heading, "")) for heading in used)] for name, row in learned.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
