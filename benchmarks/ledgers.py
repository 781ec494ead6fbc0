"""Measure how many charges a second a ledger takes in a file and on a server, and that many writers get what one would get."""

import multiprocessing
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.writing import made_with, row, write_json
from skdp import BudgetExceededError, PrivacyLedger
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.ledger.entries import Spending

__all__ = ["measure", "race"]

SPENDING = Spending("one of many", {}, (), "replace_one", 0.1, 1e-6, Composition("replace_one", (), (), 0.02**2))
DELTA = 1e-6


def charges(ledger: PrivacyLedger, n_charges: int) -> int:
    """Ask for charges, and return how many were granted."""
    granted = 0
    for _ in range(n_charges):
        try:
            ledger.charge(SPENDING)
            granted += 1
        except BudgetExceededError:
            pass
    return granted


def client(address: str, n_threads: int, n_charges: int, barrier: Any, results: Any) -> None:
    """Charge in threads, each of which has a ledger of its own."""
    ledgers, granted = [PrivacyLedger(address) for _ in range(n_threads)], []
    threads = [threading.Thread(target=lambda one=one: granted.append(charges(one, n_charges))) for one in ledgers]
    barrier.wait()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((sum(granted), time.time()))


def race(address: str, n_processes: int, n_threads: int, n_charges: int) -> dict[str, float]:
    """Let processes charge one new ledger, whose ceiling admits two thirds of the charges.

    Parameters
    ----------
    address : str
        Where there is no ledger yet.
    n_processes, n_threads, n_charges : int
        Processes, threads of each, and charges that each thread asks for.

    Returns
    -------
    dict
        Charges that were granted to all ``together`` and would be to one process ``alone``, and ``charges_per_second``.
    """
    asked = n_processes * n_threads * n_charges
    ceiling = _ceiling(2 * asked // 3)
    PrivacyLedger(address, epsilon=ceiling, delta=DELTA)
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    barrier, results = context.Barrier(n_processes + 1), context.Queue()
    given = (address, n_threads, n_charges, barrier, results)
    processes = [context.Process(target=client, args=given) for _ in range(n_processes)]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.time()
    found = [results.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    together, seconds = sum(granted for granted, _ in found), max(end for _, end in found) - start
    assert together == len(PrivacyLedger(address).entries)
    alone = charges(PrivacyLedger(epsilon=ceiling, delta=DELTA), asked)
    return {"together": together, "alone": alone, "charges_per_second": asked / seconds}


def _ceiling(n_charges: int) -> float:
    """Return a ceiling of epsilon that admits about so many charges."""
    return gaussian_epsilon(0.02 * (n_charges + 0.5) ** 0.5, 0.999 * DELTA)


def measure(addresses: list[str], n_processes: int, n_threads: int, n_charges: int, repeats: int, out: Path) -> None:
    """Measure each store in turn; write ``ledgers.json`` and ``ledgers.md``.

    Parameters
    ----------
    addresses : list of str
        A folder for files, or the address of a database, without a study.
    n_processes, n_threads, n_charges : int
        Processes, threads of each, and charges of each thread.
    repeats : int
        Runs of each store, which take turns.
    out : Path
        Folder to write to.
    """
    out.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for repeat in range(repeats):
        for address in addresses:
            name = f"{time.time_ns()}"
            server = "://" in address
            place = f"{address}?study={name}" if server else str(Path(address) / f"{name}.sqlite")
            found = race(place, n_processes, n_threads, n_charges)
            results.append({"store": "server" if server else "file", "repeat": repeat, **found})
            print(results[-1], flush=True)
    lines = [row(["store", "granted together", "granted to one", "charges per second"]), row(["---", *3 * ["---:"]])]
    for one in results:
        lines.append(row([one["store"], str(one["together"]), str(one["alone"]), f"{one['charges_per_second']:.1f}"]))
    asked = f"{n_processes} processes with {n_threads} threads each ask for {n_charges} charges per thread."
    write_json({**made_with(), "asked": asked, "results": results}, out / "ledgers.json")
    (out / "ledgers.md").write_text(f"{asked} Each charge has a connection of its own.\n\n" + "\n".join(lines) + "\n")
