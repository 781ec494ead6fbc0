"""Render the statement of guarantees as one self-contained piece of HTML, readable on any background and in print."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skdp.privacy.budget import DELTA_IN_WORDS
from skdp.privacy.report._public_columns import in_words
from skdp.privacy.schedule import Selection

LONG = 500  # number of characters above which a value is folded; a choice, a few lines on a page
MANY = 40  # number of lines above which a table is folded; a choice, about one screen
WHOLE = ("parameters", "schema")  # mappings that are one fact
NONE = "\N{EN DASH}"  # shown in a cell that has no value

STYLE = """
.skdp-report {font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; text-align: left}
.skdp-report h1 {font-size: 1.6em; line-height: 1.2; margin: 0 0 .6em}
.skdp-report h2 {font-size: 1.15em; margin: 1.8em 0 .5em; padding-bottom: .2em; border-bottom: 1px solid rgba(128, 128, 128, .5)}
.skdp-report p {margin: .5em 0}
.skdp-report .skdp-guarantee {border: 1px solid rgba(128, 128, 128, .5); border-left: .4em solid #2e7d32; border-radius: .3em;
  padding: .6em 1em; background: rgba(46, 125, 50, .1)}
.skdp-report .skdp-guarantee.skdp-none {border-left-color: #c62828; background: rgba(198, 40, 40, .12)}
.skdp-report .skdp-guarantee strong {font-size: 1.1em}
.skdp-report table {border-collapse: collapse; width: 100%; margin: .3em 0; font-size: .94em}
.skdp-report th, .skdp-report td {text-align: left; vertical-align: top; padding: .35em .9em .35em 0; white-space: normal;
  border-bottom: 1px solid rgba(128, 128, 128, .25)}
.skdp-report .skdp-facts th {width: 11em; font-weight: 600}
.skdp-report .skdp-facts td {overflow-wrap: anywhere}
.skdp-report ul {margin: .3em 0; padding-left: 1.3em}
.skdp-report li {margin: .3em 0}
.skdp-report summary {cursor: pointer}
@media screen and (max-width: 36rem) {
  .skdp-report .skdp-facts th {width: 7.5em}
  .skdp-report .skdp-lines thead {display: none}
  .skdp-report .skdp-lines tr {display: block; padding: .4em 0; border-bottom: 1px solid rgba(128, 128, 128, .5)}
  .skdp-report .skdp-lines td {display: flex; border: 0; padding: .1em 0; overflow-wrap: anywhere}
  .skdp-report .skdp-lines td::before {content: attr(data-name); flex: 0 0 10em; font-weight: 600}
}
@media print {
  .skdp-report {max-width: none; font-size: 11pt}
  .skdp-report details::details-content {content-visibility: visible; display: block; block-size: auto}
  .skdp-report h2 {break-after: avoid}
  .skdp-report .skdp-lines tr, .skdp-report li, .skdp-report .skdp-guarantee {break-inside: avoid}
}
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title}</title>
<style>body {{margin: 0; padding: 1.5rem; display: flow-root}} .skdp-report {{margin: 0 auto}}</style></head>
<body>
{fragment}
</body></html>
"""


class Picture(str):
    """HTML that a table shows as it is."""


def as_page(report: Any) -> str:
    """Return a report as a complete HTML page."""
    return PAGE.format(title=html.escape(report.title), fragment=as_fragment(report))


def as_fragment(report: Any) -> str:
    """Return a report as HTML that can be part of a page, such as a notebook."""
    sections = (
        ("Budget", as_facts(_budget(report))),
        ("Public, not protected", as_facts({name: _value(value) for name, value in _public(report).items()}, escaped=True)),
        *([("Learned from the records, with noise", as_facts(report.learned))] if report.learned else []),
        ("Assumptions", as_list(report.assumptions)),
        *((f"Releases{html.escape(of)}", _releases(step)) for of, step in _steps(report)),
        ("Noise", as_facts(report.noise_facts())),
        ("Method", as_facts(_method(report))),
    )
    body = "\n".join(f"<h2>{heading}</h2>\n{content}" for heading, content in sections)
    return (
        f'<section class="skdp-report">\n<style>{STYLE}</style>\n<h1>{html.escape(report.title)}</h1>\n'
        f"{_guarantee(report)}\n{body}\n</section>"
    )


def _steps(report: Any) -> list[tuple[str, Any]]:
    """Return the report of each step with the end of its heading; the report itself without steps."""
    steps = {} if report.steps is None else report.steps
    return [(f" of {name} ({step.estimator})", step) for name, step in steps.items()] or [("", report)]


def _guarantee(report: Any) -> str:
    kind = "" if report.private else " skdp-none"
    in_words = f"<p>{plain_words(report)}</p>" if report.private else ""
    return f'<div class="skdp-guarantee{kind}"><p><strong>{html.escape(report.guarantee)}.</strong></p>{in_words}</div>'


def plain_words(report: Any) -> str:
    """Return what epsilon and delta bound, for readers who do not know them."""
    epsilon, delta = report.budget.epsilon, report.budget.delta
    factor = f"about {math.exp(epsilon):.3g}" if epsilon < 100 else "exp(epsilon)"
    differ = "one record" if report.budget.unit == "record" else "all rows of one person"
    more = f", plus a delta of {delta:.2g}. {DELTA_IN_WORDS.format(units=report.budget.unit + 's')}" if delta else "."
    return (
        f"In plain words: for any two tables that differ in {differ}, every outcome computed from the model "
        f"{'would be' if report.planned else 'is'} at most {factor} times as probable with one table as with the other{more}"
    )


def _budget(report: Any) -> dict[str, str]:
    budget, spent = report.budget, report.spent
    label = "With secure noise" if report.reproducible_noise else "Would spend" if report.planned else "Spent"
    accounted = {label: f"epsilon = {spent.epsilon:.6g}, delta = {spent.delta:.6g}", "Accounting": report.accounting}
    return {
        "Asked for": f"epsilon = {budget.epsilon:.6g}, delta = {budget.delta:.6g}",
        **(accounted if budget.private else {}),
        "Neighbours": f"{budget.adjacency}: {report.adjacency_in_words}",
    }


def releases_table(report: Any) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return titles and rows of a table of all releases."""
    head = ("Count", "Query", "Mechanism", "Noise multiplier", "Clip norm", "Records", "For rounding")
    return head, [_cells(line) for line in report.releases_together()]


def _releases(report: Any) -> str:
    lines = report.releases_together()
    number = sum(line.count for line in lines)
    answers = f"{number} {'noisy ' if report.budget.private else ''}answer{'s' * (number != 1)}"
    intro = (
        f"<p>{answers} from the records. The model is computed from {'them' if number != 1 else 'it'} and from public values.</p>"
    )
    return intro + _folded(as_table(*releases_table(report)), f"{len(lines)} kinds of releases", len(lines) > MANY)


def _cells(line: Any) -> tuple[str, ...]:
    plain = line.noise_multiplier is None and line.mechanism != Selection.__name__
    return (
        str(line.count),
        line.query,
        line.in_words or "Gaussian noise",
        NONE if line.noise_multiplier is None else f"{line.noise_multiplier:.6g}",
        NONE if plain else line.clip_in_words,
        line.records_in_words,
        NONE if plain else line.rounding_in_words,
    )


def _public(report: Any) -> dict[str, Any]:
    """Return public facts by name; every item of a mapping becomes a fact of its own, except for parameters and schema."""
    facts: dict[str, Any] = {}
    for name, value in in_words(report.public).items():
        facts |= value if isinstance(value, Mapping) and name not in WHOLE else {name: value}
    return facts


def _method(report: Any) -> dict[str, str]:
    software = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return {"Solver": f"{report.solver}: {report.solver_title}", "Chosen": report.solver_reason, "Software": software}


def _value(value: Any) -> str:
    """Return a public value as HTML: a mapping as a table, folded if it is long."""
    if isinstance(value, Mapping):
        return _folded(as_facts({str(name): str(item) for name, item in value.items()}), f"{len(value)} entries", True)
    several = isinstance(value, (list, tuple))
    text = html.escape(", ".join(map(str, value)) if several else f"{value:.6g}" if isinstance(value, float) else str(value))
    return _folded(text, f"{len(value)} values" if several else "show", len(text) > LONG)


def _folded(content: str, summary: str, folded: bool) -> str:
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>" if folded else content


def as_facts(facts: Mapping[str, str], escaped: bool = False) -> str:
    """Return names and texts as a table of HTML."""
    rows = (
        f'<tr><th scope="row">{html.escape(name)}</th><td>{value if escaped else html.escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table class="skdp-facts"><tbody>{"".join(rows)}</tbody></table>'


def as_table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return titles and cells of text as HTML; each cell has its title where the page is narrow."""
    titles = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, head, row))}</tr>" for row in rows)
    return f'<table class="skdp-lines"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'


def _cell(title: str, text: str) -> str:
    return f'<td data-name="{html.escape(title)}">{text if isinstance(text, Picture) else html.escape(text)}</td>'


def as_list(lines: Iterable[str]) -> str:
    """Return lines as a list of HTML."""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"
