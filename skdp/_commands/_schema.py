"""Write a template of a schema."""

import json
from pathlib import Path
from typing import Any

from skdp._files._outputs import check_outputs, write_whole
from skdp._files._tables import column_kinds
from skdp.preprocessing._schema import template

__all__ = ["schema"]


def schema(table: Path, out: Path | None, sep: str, target: str | None) -> None:
    """Write a template of a schema, with the names and kinds of the columns and nothing else from the table.

    Parameters
    ----------
    table : Path
        Records.
    out : Path or None
        Where to write; None prints.
    sep : str
        Separator of the fields of a CSV.
    target : str or None
        Column to predict.
    """
    check_outputs([(out, (".json",))], [table], overwrite=False)
    kinds = column_kinds(table, sep)
    if target is not None and target not in kinds:
        raise ValueError(f"{table} has no column {target!r}; expected the column to predict.")
    columns = template(kinds, target or "")
    lines = [f"    {_json(name)}: {_json(facts)}" for name, facts in columns["columns"].items()]
    parts = {key: _json(value) for key, value in columns.items()} | {"columns": "{\n" + ",\n".join(lines) + "\n  }"}
    text = "{\n" + ",\n".join(f"  {_json(key)}: {value}" for key, value in parts.items()) + "\n}\n"
    if out is None:
        print(text, end="")
        return
    write_whole(out, text.encode())
    name_it = "" if target else ", name the target and take it out of the columns"
    print(
        f"Written: {out}\n"
        "Check that the column names are names and not data: they are the first line of the table. The kinds are guesses by the\n"
        "reader of the file; correct them. Fill in every bound, category and class from public knowledge, never from the\n"
        f'records{name_it}. Columns that should not predict: "kind": "ignore". Codes are better described as categories.'
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
