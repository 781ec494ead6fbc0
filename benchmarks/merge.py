"""Join what several runs measured: other methods, other tables, or libraries that cannot live in one environment."""

import json
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.methods import METHODS

__all__ = ["Unlike", "merge"]

SAME = ("delta", "data_norm", "noise", "quick")  # settings that must agree, so that scores can be compared
UNITED = ("tables", "methods", "adjacencies")


class Unlike(ValueError):
    """Runs cannot be compared."""


def merge(sources: list[Path], out: Path) -> dict[str, Any]:
    """Join runs, and write JSON, Markdown and plots as ``run`` does.

    Parameters
    ----------
    sources : list of Path
        Directories that hold an ``accuracy.json``. Where two have the same cell, that of the later one is taken.
    out : Path
        Directory, created where needed; it may be one of the sources.

    Returns
    -------
    dict
        What the JSON holds.

    Raises
    ------
    Unlike
        If delta, noise, norm or number of rows are not the same in all runs.
    """
    runs = [json.loads((source / "accuracy.json").read_text(encoding="utf-8")) for source in sources]
    results = joined(runs)
    out.mkdir(parents=True, exist_ok=True)
    report.write(results, out)
    for name in results["settings"]["tables"]:
        if own := [record for record in results["records"] if record["table"] == name]:
            report.plot(own, out / f"accuracy_{name}.png")
    report.overview(results["records"], out / "accuracy.png")
    return results


def joined(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One set of results; records are in the order of tables, methods, neighbours and epsilon."""
    for name in SAME:
        if len(found := list(dict.fromkeys(run["settings"][name] for run in runs))) > 1:
            raise Unlike(f"Runs with different {name} cannot stand side by side: {found}.")
    settings = united(runs)
    by_cell = {cell_of(record): record for run in runs for record in run["records"]}
    places = {name: number for number, name in enumerate(settings["tables"])}
    methods = list(METHODS)
    records = sorted(
        by_cell.values(),
        key=lambda record: (
            places[record["table"]],
            methods.index(record["method"]),
            record["adjacency"] or "",
            record["epsilon"] or 0.0,
        ),
    )
    measured = {record[name] for record in records for name in ("method", "table")}
    skipped = {name: reason for run in runs for name, reason in run["skipped"].items() if name not in measured}
    header = {name: every([run[name] for run in runs]) for name in ("versions", "python")}
    return header | {"settings": settings, "skipped": skipped, "records": records}


def cell_of(record: dict[str, Any]) -> tuple[Any, ...]:
    """What a record was measured for."""
    return tuple(record[name] for name in ("table", "method", "adjacency", "epsilon"))


def united(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Settings of all runs together; the records say how many fits each cell had."""
    settings = [run["settings"] for run in runs]
    lists = {name: list(dict.fromkeys(value for one in settings for value in one[name])) for name in UNITED}
    longest = max(settings, key=lambda one: one["repeats"])
    return longest | lists | {"epsilons": sorted({epsilon for one in settings for epsilon in one["epsilons"]})}


def every(values: list[Any]) -> Any:
    """Return all distinct values in one text, or those of a dictionary by name."""
    if not isinstance(values[0], dict):
        return " and ".join(dict.fromkeys(part for value in values for part in value.split(" and ")))
    names = dict.fromkeys(name for value in values for name in value)
    return {name: every([value[name] for value in values if name in value]) for name in names}
