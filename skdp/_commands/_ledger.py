"""Show a ledger, or make one."""

import io
from pathlib import Path
from typing import Any

from skdp._outputs import check_outputs, write_whole
from skdp.inspection import BudgetTimelineDisplay
from skdp.privacy import PrivacyLedger

__all__ = ["ledger"]


def ledger(path: Path, out: Path | None, **ceiling: Any) -> None:
    """Print what a ledger allowed, what was spent and what is left; make the ledger where there is none.

    Parameters
    ----------
    path : Path
        Its file.
    out : Path or None
        Where to write it: JSON, or a picture of its timeline.
    **ceiling : dict
        epsilon, delta and adjacency of a new ledger, else None.
    """
    check_outputs([(out, (".json", ".png"))], [path])
    account = PrivacyLedger(path, **ceiling)
    if out is not None:
        picture = io.BytesIO()
        if out.suffix == ".png":
            BudgetTimelineDisplay.from_ledger(account).figure_.savefig(picture, dpi=150, format="png")
        write_whole(out, picture.getvalue() or (account.to_json() + "\n").encode())
    print(account.summary())
    if out is not None:
        print(f"Written: {out}")
