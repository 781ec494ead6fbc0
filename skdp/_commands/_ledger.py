"""Show a ledger, or create one."""

from pathlib import Path
from typing import Any

from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import picture_content
from skdp.inspection import BudgetTimelineDisplay
from skdp.privacy import PrivacyLedger


def ledger(path: Path, out: Path | None, **ceiling: Any) -> None:
    """Print the ceiling of a ledger, the spent budget and the rest; create the ledger if it does not exist.

    Parameters
    ----------
    path : Path
        File of the ledger.
    out : Path or None
        Where to write the ledger as JSON, or its timeline as a picture.
    **ceiling : dict
        epsilon, delta, adjacency and unit of a new ledger; None for an existing one.
    """
    check_outputs([(out, (".json", ".png"))], [path])
    account = PrivacyLedger(path, **ceiling)
    if out is not None:
        write_whole(out, _content(account, out.suffix))
    print(account.summary())
    if out is not None:
        print(f"Written: {out}")


def _content(account: PrivacyLedger, suffix: str) -> bytes:
    if suffix == ".png":
        return picture_content(BudgetTimelineDisplay.from_ledger(account).figure_)
    return (account.to_json() + "\n").encode()
