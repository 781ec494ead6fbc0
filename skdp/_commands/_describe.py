"""Describe a table with a privacy budget, on the terminal and as a page that can be handed on."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from skdp._commands._raw import content_of
from skdp._commands._records import charged, ledger_of, numbered, numbers_in_folder, unit_in_words
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import REPORTS, report_content
from skdp._files._tables import TextFormat, column_names, is_parquet, no_column
from skdp.data import parquet
from skdp.data._parquet import names_of
from skdp.preprocessing import Schema, SchemaColumns
from skdp.preprocessing._frame_facts import columns_and_target, leaves_to_learn
from skdp.stats import describe as described


def describe(
    table: Path,
    *,
    form: TextFormat,
    schema: Path | None,
    persons: str | None,
    ledger: str | None,
    out: Path | None,
    report: Path | None,
    **parameters: Any,
) -> None:
    """Print the description of a table, which may be published, and write it as a page.

    Parameters
    ----------
    table : Path
        Records, in a file or in a folder of Parquet files.
    form : TextFormat
        How a text is written.
    schema : Path or None
        What is known of the columns; those that it does not describe are learned.
    persons : str or None
        Column of the ids of persons, who are protected then.
    ledger : str or None
        Existing ledger that is charged.
    out, report : Path or None
        Where to write the page and the privacy report.
    **parameters : dict
        Parameters of `skdp.stats.describe`.
    """
    account = ledger_of(ledger)
    check_outputs([(out, (".html",)), (report, REPORTS)], [table, schema, getattr(account, "path", None)])
    names = [name for name in (names_of(table) if table.is_dir() else column_names(table, form)) if name != persons]
    words = _words(table, names, content_of(schema))
    if table.is_dir():
        frame: Any = parquet(table, columns=names)
        numbers = None if persons is None else numbers_in_folder(table, persons)
    else:
        everything = SchemaColumns.of(Schema({}, None, None)).set_params(learned=names).read(table, form)
        everything = numbered(table, everything, persons)
        frame, numbers = everything[names], None if persons is None else everything[persons].to_numpy()
    with account or nullcontext():
        found = described(frame, schema=words, persons=numbers, **parameters)
    print(f"Read {table}: number of {unit_in_words(persons)} {found.privacy_report.public[found.privacy_report.budget.number]}.")
    print(found)
    if out is not None:
        write_whole(out, found.to_html().encode())
    if report is not None:
        write_whole(report, report_content(found.privacy_report, report))
    for path in (out, report):
        if path is not None:
            print(f"Written: {path}")
    if account is not None:
        print(charged(account, ledger))


def _words(table: Path, names: list[str], content: Any) -> Any:
    """Return a complete schema as it is; else what is said of each column, of which those of a text have no types."""
    if content and not leaves_to_learn(content):
        return content
    columns, _ = columns_and_target(content)
    if unknown := [name for name in columns if name not in names]:
        raise no_column(table, unknown[0], names, "The schema")
    word = "learn" if table.is_dir() or is_parquet(table) else "either"
    said = {name: columns.get(name, word) for name in names}
    return {name: word if facts in ("learn", {"kind": "learn"}) else facts for name, facts in said.items()}
