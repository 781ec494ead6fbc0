"""Write the results of the benchmark of raw tables as a page in Markdown."""

import math
from statistics import median
from typing import Any

import numpy as np

from benchmarks.writing import row

__all__ = ["markdown"]

ABOUT = """\
No fact about any column is known beforehand: columns, and the range of the target of a regression, are learned from noisy
histograms with 2 to 10 % of the squared budget, and the model gets the rest. "schema" is the same model with the public schema of
the table, which names bounds, scales and categories, and the whole budget. Medians over {repeats} fits, both with the same seeds;
delta = {delta}. Scores are AUC, and R2 for bike and california, of the test records. "gain" is the median of learned less schema
over pairs of fits, with its standard error (1.25 standard deviations over the root of their number). s is mu n / (k sqrt(d)),
with k = 1 for zero_out and sqrt 2 for replace_one, and 4 more columns for the range of a target. The constants of the rule
were chosen on adult, bike, ijcnn1 and spambase alone.
"""
TITLES = {
    "whole": "Whole tables",
    "changes": "Changed tables, linear, zero_out",
    "types": "The same cells in other types, 8000 records, linear, zero_out",
    "sizes": "Small parts, linear, zero_out",
    "made up": "Made-up tables in units from 1e-6 to 1e6, linear, zero_out; the schema is an oracle",
}
WAYS = ("learned", "schema")
# How far the median of learned columns may be below that of the schema, by model, and the signal from which on that is a goal
GOALS, ENOUGH = {"linear": 0.005, "additive": 0.01}, 120


def markdown(results: dict[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    results : dict
        What the JSON holds.

    Returns
    -------
    str
        Markdown.
    """
    lines = ["# Raw tables", "", ABOUT.format(**results["settings"])]
    for part, title in TITLES.items():
        if results.get(part):
            lines += [f"## {title}", "", *table(results[part]), ""]
            lines += goals(results[part]) if part == "whole" else []
    return "\n".join([*lines, *results.get("notes", [])])


def table(records: list[dict[str, Any]]) -> list[str]:
    """Return a line for each record."""
    ways = [way for way in WAYS if way in records[0]]
    facts = [name for name in records[0] if name.split()[0] not in WAYS]
    heads = [*facts, *ways, *(["gain"] if len(ways) == 2 else [])]
    lines = [row(heads), row(["---"] * len(heads))]
    for record in records:
        scores = [f"{median(record[way]):.3f} ± {error(record[way]):.3f}" for way in ways]
        if len(ways) == 2:
            gains = np.subtract(record["learned"], record["schema"])
            scores.append(f"{median(gains.tolist()):+.3f} ± {error(gains):.3f}")
        lines.append(row([*(str(record[name]) for name in facts), *scores]))
    return lines


def goals(records: list[dict[str, Any]]) -> list[str]:
    """Return for each model in how many cells with enough signal it keeps to the goal, and the others."""
    lines = []
    for model, least in GOALS.items():
        cells = [record for record in records if record.get("model") == model and record["s"] >= ENOUGH]
        short = {(r["table"], r["adjacency"], r["epsilon"]): median(r["learned"]) - median(r["schema"]) for r in cells}
        missed = [f"{' '.join(map(str, cell))} ({less:+.3f})" for cell, less in short.items() if less < -least]
        if cells:
            reached = (
                f"At s >= {ENOUGH}, {len(cells) - len(missed)} of {len(cells)} cells of {model} models are within {least:g} of"
            )
            others = f"The others: {', '.join(missed) or 'none'}."
            lines += [f"{reached} the schema or above it, by the difference of the medians. {others}", ""]
    return lines


def error(scores: Any) -> float:
    """Return the standard error of a median, as of a normal distribution."""
    return 1.25 * float(np.std(scores, ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan
