"""Show a ledger, create one, or move one."""

from pathlib import Path
from typing import Any

from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import picture_content
from skdp.inspection import BudgetTimelineDisplay
from skdp.privacy import PrivacyLedger
from skdp.privacy.ledger._book import Book, store_at
from skdp.privacy.ledger._chain import Chain, key_bytes


def ledger(places: list[str], out: Path | None, html: Path | None, **ceiling: Any) -> None:
    """Print the ceiling of a ledger, the spent budget and the rest; create the ledger if it does not exist.

    Parameters
    ----------
    places : list of str
        File of the ledger, or its address on a server; or the word move, and where it is and shall be.
    out : Path or None
        Where to write the ledger as JSON, or its timeline as a picture.
    html : Path or None
        Where to write a page for a data protection officer.
    **ceiling : dict
        epsilon, delta, adjacency and unit of a new ledger; None for an existing one.
    """
    if len(places) not in (1, 3) or (len(places) == 3 and places[0] != "move"):
        raise ValueError(f"ledger was given {len(places)} words; expected LEDGER, or move LEDGER NEW.")
    stores = [store_at(place) for place in places[-2:]]
    outputs = [(out, (".json", ".png")), (html, (".html",))]
    check_outputs(outputs, [store.path for store in stores])
    if len(places) == 3:
        Book.move(stores[0], stores[1], Chain(key_bytes(None)))
    account = PrivacyLedger(places[-1], **ceiling)
    if out is not None:
        write_whole(out, _content(account, out.suffix))
    if html is not None:
        write_whole(html, account.to_html().encode())
    print(account.summary())
    for path, _ in outputs:
        if path is not None:
            print(f"Written: {path}")


def _content(account: PrivacyLedger, suffix: str) -> bytes:
    if suffix == ".png":
        return picture_content(BudgetTimelineDisplay.from_ledger(account).figure_)
    return (account.to_json() + "\n").encode()
