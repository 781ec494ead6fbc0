"""Write a schema of a table: a template, or what is learned with a privacy budget."""

from pathlib import Path
from typing import Any

from skdp._commands._learn_schema import as_text, learn_schema
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._tables import TextFormat, column_kinds, no_column
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
