"""State in reports where the records of a table in partitions are, and whom the guarantee trusts with them."""

from typing import Any

from skdp._data_validation import Partitions

__all__ = ["public_partitions", "trusted"]

KEPT = "a copy of the records was in {kept} of this machine during the fit, which no other user can read"
READ_AGAIN = "the source was the same in each pass: fingerprints of the records were compared"
CLUSTER = (
    "the records were read by {n_workers} worker(s) of a Dask cluster: these, the scheduler, their disks, logs and network are "
    "trusted. Which machine computes a partition does not depend on the records"
)


def public_partitions(partitions: Partitions | None, passes: int | None) -> dict[str, Any]:
    """Return where the records of a table in partitions are, and how often the source is read.

    Parameters
    ----------
    partitions : Partitions or None
        What is public; None for a table in memory.
    passes : int or None
        Passes over the data; None if their number is not known.

    Returns
    -------
    dict
        An entry of the report, or nothing.
    """
    if partitions is None:
        return {}
    n_bytes = partitions.bytes_per_pass
    table = {
        "source": partitions.source,
        "partitions": partitions.number,
        "kept_copy": "none: each pass reads the source" if partitions.kept is None else partitions.kept,
        "reads_of_source": 1 if partitions.kept is not None or passes is None else 1 + passes,
        **({} if n_bytes is None else {"bytes_per_pass": n_bytes}),
        **({} if partitions.n_workers is None else {"n_workers": partitions.n_workers}),
    }
    return {"table": table}


def trusted(partitions: Partitions | None) -> list[str]:
    """Return what the guarantee trusts beside the process of the fit."""
    if partitions is None:
        return []
    if partitions.n_workers is not None:
        return [CLUSTER.format(n_workers=partitions.n_workers)]
    return [READ_AGAIN if partitions.kept is None else KEPT.format(kept=partitions.kept)]
