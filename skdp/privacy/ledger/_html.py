"""Render a ledger as HTML, for notebooks and as a page for a data protection officer."""

from html import escape
from typing import Any

from skdp.privacy.errors import printable
from skdp.privacy.ledger.entries import LedgerEntry
from skdp.privacy.ledger.privacy_filter import Filter
from skdp.privacy.report._html import PAGE

LINE = "1px solid rgba(128,128,128,.4)"  # grey lines and inherited colours are readable on light and dark pages
CELL = f"text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border-bottom:{LINE}"
COLUMNS = ("", "Time (UTC)", "By", "What", "Epsilon", "Delta", "Charged as")


def as_html(path: str, adjacency: str | None, rule: Filter, entries: tuple[LedgerEntry, ...]) -> str:
    """Return the ceiling, what was spent, what is left, and all charges as HTML.

    Parameters
    ----------
    path : str
        Where the ledger is.
    adjacency : str or None
        Which tables are neighbours.
    rule : Filter
        The ceiling and the charges.
    entries : tuple of LedgerEntry
        All charges.

    Returns
    -------
    str
        HTML without a style sheet and without scripts.
    """
    spent = rule.spent_epsilon
    number = "1 charge" if len(entries) == 1 else f"{len(entries)} charges"
    left = f"{rule.epsilon_left(rule.delta):.4g}"
    facts = (
        ("Ceiling", f"epsilon {rule.epsilon:g}, delta {rule.delta:g}; neighbours: {adjacency or 'open until the first charge'}"),
        ("Spent", f"epsilon {spent:.4g} at this delta by {number}, even if each fit was chosen by earlier results"),
        ("Left", f"a full-data fit with epsilon up to {left}, at the ledger's delta"),
    )
    table = _table("".join(_row("td", fact, "th") for fact in facts))
    title = f"<p><b>PrivacyLedger</b> {escape(path)}</p>"
    return f'<div style="color:inherit">{title}{_bar(spent / rule.epsilon)}{table}{_charges(entries)}</div>'


def as_page(path: str, adjacency: str | None, rule: Filter, entries: tuple[LedgerEntry, ...]) -> str:
    """Return a page that also says who spent how much, and what each charge was for.

    Parameters
    ----------
    path, adjacency, rule, entries : object
        As in `as_html`.

    Returns
    -------
    str
        A complete page without scripts.
    """
    users = dict.fromkeys(entry.user for entry in entries)
    spent = {user: tuple(entry.charge for entry in entries if entry.user == user) for user in users}
    people = [
        (user or "not recorded", len(charges), f"{Filter(rule.epsilon, rule.delta, charges).spent_epsilon:.4g}")
        for user, charges in spent.items()
    ]
    releases = [
        (entry.number, entry.spending.estimator, entry.spending.unit, "; ".join(entry.spending.schedule) or "stated by hand")
        for entry in entries
    ]
    parts = (
        as_html(path, adjacency, rule, entries),
        "<h2>Who</h2><p>Costs compose, so that these epsilons do not add up to what is spent together.</p>",
        _table(_row("th", ("By", "Charges", "Epsilon of these alone")) + "".join(_row("td", row) for row in people)),
        "<h2>What was released</h2>",
        _table(_row("th", ("", "What", "Protected", "Releases")) + "".join(_row("td", row) for row in releases)),
    )
    return PAGE.format(title=f"Privacy ledger {escape(path)}", fragment="\n".join(parts))


def _bar(share: float) -> str:
    box = f"width:20em;max-width:100%;height:.6em;border:{LINE};margin:.4em 0"
    return f'<div style="{box}"><div style="width:{100 * min(share, 1):.1f}%;height:100%;background:currentColor"></div></div>'


def _charges(entries: tuple[LedgerEntry, ...]) -> str:
    if not entries:
        return ""
    rows = _row("th", COLUMNS) + "".join(_row("td", _cells(entry)) for entry in entries)
    return f'<div style="max-height:24em;overflow:auto;margin-top:.8em">{_table(rows)}</div>'


def _cells(entry: LedgerEntry) -> tuple[Any, ...]:
    spending, charge = entry.spending, entry.charge
    cost = "by itself" if charge.by_itself else f"mu {charge.mu:.4g}"
    time = entry.time[:19].replace("T", " ")
    return entry.number, time, entry.user, spending.estimator, f"{spending.epsilon:.4g}", f"{spending.delta:.3g}", cost


def _row(kind: str, cells: tuple[Any, ...], first: str | None = None) -> str:
    kinds = [first or kind, *[kind] * (len(cells) - 1)]
    inside = (f'<{tag} style="{CELL}">{escape(printable(cell))}</{tag}>' for tag, cell in zip(kinds, cells, strict=True))
    return f'<tr style="background:transparent">{"".join(inside)}</tr>'


def _table(rows: str) -> str:
    style = "border-collapse:collapse;border:0;font:inherit;color:inherit;background:transparent"
    return f'<table style="{style}"><tbody>{rows}</tbody></table>'
