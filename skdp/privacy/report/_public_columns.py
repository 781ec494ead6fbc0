"""Describe the columns of a schema in words, for the report."""

from collections.abc import Mapping
from typing import Any


def in_words(public: Mapping[str, Any]) -> dict[str, Any]:
    """Return public facts with a schema in words, which then does not count among the parameters, where it may be cut.

    Parameters
    ----------
    public : mapping
        The public facts of a report.

    Returns
    -------
    dict
        The same facts; those of the schema have a line per column.
    """
    if not isinstance(schema := public.get("schema"), Mapping):
        return dict(public)
    parameters = {name: value for name, value in public.get("parameters", {}).items() if name != "schema"}
    shown = {"parameters": parameters} if "parameters" in public else {}
    return {**public, **shown, "schema": _of_schema(schema)}


def _of_schema(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return all facts of each column, by its name, and then those of the target."""
    columns = schema.get("columns", {})
    of_target = {f"the {name}": _value(value) for name, value in schema.items() if name not in ("columns", "description")}
    return {str(name): _facts(facts) for name, facts in columns.items()} | of_target


def _facts(facts: Any) -> str:
    """Return a word as it is, and facts as kind and values."""
    if not isinstance(facts, Mapping):
        return str(facts)
    rest = ", ".join(f"{name} {_value(value)}" for name, value in facts.items() if name not in ("kind", "description"))
    return f"{facts.get('kind')}: {rest}" if rest else str(facts.get("kind"))


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
