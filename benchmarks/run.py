"""Fit every method on every table, several times, and collect the test scores."""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.methods import METHODS, Method, reasons_to_skip
from benchmarks.noise import noise_of
from benchmarks.peers import Build
from benchmarks.scores import CHOSEN_BY, fit_and_score, megabytes
from benchmarks.tables import Table, load
from benchmarks.writing import made_with

__all__ = ["QUICK", "QUICK_TABLES", "Settings", "run"]

SMALLEST_DELTA = 1e-11
FINALISTS = 3  # configurations of a tuned method that are fitted with every seed
QUICK_ROWS = 1500


@dataclass(frozen=True)
class Settings:
    """What to measure.

    Parameters
    ----------
    tables, methods : list of str
        Names out of ``TABLES`` and ``METHODS``.
    adjacencies : list of str
        Neighbours for which private methods are fitted.
    epsilons : list of float
        Privacy parameters.
    repeats : int
        Fits per cell; methods without privacy are fitted once.
    secure : bool, default=False
        Whether the noise is fresh; otherwise the seeds are 0, 1, and so on.
    quick : bool, default=False
        Whether only the first 1500 training and test records are used, and a tuned method has one in 24 of its configurations.
    """

    tables: list[str]
    methods: list[str]
    adjacencies: list[str]
    epsilons: list[float]
    repeats: int
    secure: bool = False
    quick: bool = False

    @property
    def seeds(self) -> list[int | None]:
        """One per fit of a cell."""
        return [None] * self.repeats if self.secure else list(range(self.repeats))


QUICK: dict[str, Any] = {"epsilons": [0.1, 1.0], "repeats": 2, "adjacencies": ["zero_out"]}
"""What ``--quick`` sets."""
QUICK_TABLES = ("adult", "mammography", "california", "bike")
"""What it takes where no tables are named."""


def run(settings: Settings, out: Path) -> dict[str, Any]:
    """Measure, print progress, and write JSON, Markdown and plots after each table.

    Parameters
    ----------
    settings : Settings
        What to measure.
    out : Path
        Directory, created where needed.

    Returns
    -------
    dict
        What the JSON holds.
    """
    out.mkdir(parents=True, exist_ok=True)
    skipped = reasons_to_skip(settings.methods, settings.adjacencies)
    for name, reason in skipped.items():
        print(f"{name} is skipped: {reason}", flush=True)
    available = [name for name in settings.methods if name not in skipped]
    results = header(settings) | {"skipped": skipped, "records": []}
    for name in settings.tables:
        table = first_rows(load(name)) if settings.quick else load(name)
        records, refused = table_records(name, table, available, settings)
        results["records"] += records
        skipped |= refused
        if not records and not refused:
            skipped[name] = f"none of the methods that can run is for {table.task}"
            print(f"{name} is skipped: {skipped[name]}", flush=True)
        report.write(results, out)
        report.plot(records, out / f"accuracy_{name}.png")
    report.overview(results["records"], out / "accuracy.png")
    return results


def first_rows(table: Table) -> Table:
    """The beginning of a table."""
    parts = (part[:QUICK_ROWS] for part in (table.X_train, table.y_train, table.X_test, table.y_test))
    return Table(*parts, table.task)


def header(settings: Settings) -> dict[str, Any]:
    """Versions, and settings that do not depend on the machine."""
    noise = "secure" if settings.secure else "of the seeds, so it can be had again and protects nobody"
    public = {"delta": f"max(1 / n_train**2, {SMALLEST_DELTA:g})", "data_norm": 1.0, "noise": noise, "seeds": settings.seeds}
    return made_with() | {"settings": asdict(settings) | public | {"quartiles": [0.25, 0.5, 0.75]}}


def table_records(name: str, table: Table, methods: list[str], settings: Settings) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """One record per method, adjacency and epsilon, and what the methods refused."""
    records, refused = [], {}
    for method in (method for method in methods if METHODS[method].builds.get(table.task)):
        peak = None
        for adjacency, epsilon in cells(METHODS[method], settings):
            key = {"table": name, "method": method, "adjacency": adjacency, "epsilon": epsilon}
            try:
                chosen, measured = measure(table, METHODS[method], adjacency, epsilon, settings)
            except ValueError as error:
                about = f"{method} on {name}, {adjacency}, epsilon {epsilon}"
                refused[about] = f"it raised: {error}"
                print(f"{about} is skipped: {refused[about]}", flush=True)
                continue
            if peak is None:  # it hardly depends on the budget
                peak = megabytes(chosen, table)
            records.append(key | measured | {"megabytes": round(peak, 2)})
            print(progress(records[-1]), flush=True)
    return records, refused


def cells(method: Method, settings: Settings) -> Iterator[tuple[str | None, float | None]]:
    """Adjacencies and epsilons that make sense for a method."""
    if not method.private:
        return iter([(None, None)])
    covered = [adjacency for adjacency in settings.adjacencies if adjacency in method.adjacencies]
    return itertools.product(covered, settings.epsilons)


def measure(
    table: Table, method: Method, adjacency: str | None, epsilon: float | None, settings: Settings
) -> tuple[Any, dict[str, Any]]:
    """Return a fresh estimator of the chosen configuration, and the quartiles of its scores."""
    n_train, n_features = table.X_train.shape
    delta = max(1 / n_train**2, SMALLEST_DELTA) if method.private else None
    seeds = settings.seeds if method.private else settings.seeds[:1]
    builds = method.builds[table.task][:: 24 if settings.quick else 1]

    def score(build: Build, seed: int | None) -> dict[str, float]:
        with noise_of(seed):
            return fit_and_score(build(epsilon, delta, adjacency, seed), table)

    by = CHOSEN_BY[table.task]
    if len(builds) > 1:
        builds = sorted(builds, key=lambda build: -score(build, seeds[0])[by])[:FINALISTS]
    fits = {build: [score(build, seed) for seed in seeds] for build in builds}
    best = max(builds, key=lambda build: float(np.median([fit[by] for fit in fits[build]])))
    values = quartiles(fits[best])
    facts = {"task": table.task, "private": method.private, "n_train": n_train, "n_features": n_features, "repeats": len(seeds)}
    tuned = {"configuration": repr(best(epsilon, delta, adjacency, 0))} if len(method.builds[table.task]) > 1 else {}
    return best(epsilon, delta, adjacency, seeds[0]), facts | {"delta": 0.0 if method.pure else delta} | values | tuned


def quartiles(fits: list[dict[str, float]]) -> dict[str, list[float]]:
    """Quartiles of each score over the fits."""
    return {name: np.quantile([fit[name] for fit in fits], (0.25, 0.5, 0.75)).round(5).tolist() for name in fits[0]}


def progress(record: dict[str, Any]) -> str:
    """One line about a cell."""
    budget = f"{record['adjacency']} epsilon={record['epsilon']:g}" if record["private"] else "not private"
    reached = f"{report.cell(record)} in {record['fit_seconds'][1]:.2f} s, {record['megabytes']:g} MB"
    return f"{record['table']} {record['method']} {budget}: {reached}"
