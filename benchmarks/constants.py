"""Measure the effect of every public choice of the defaults: each constant times 1/4, 1/2, 2 and 4, the others unchanged.

The choices are the solver's parameters; a new parameter is included automatically. A momentum beta is scaled through
``1 / (1 - beta)``, the number of steps that it remembers, and a fraction stays at most 1. Differences are between fits to
the same table with the same seeds.
"""

import math
import statistics
from collections.abc import Iterator
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.methods import ours
from benchmarks.noise import noise_of
from benchmarks.scores import CHOSEN_BY, fit_and_score
from benchmarks.synthetic import Population
from benchmarks.tables import TABLES, Table, load
from benchmarks.writing import figure, made_with, row, write_json
from skdp.solvers import SOLVERS, Solver
from skdp.solvers.adaptive._step_rules import CLIPPED

__all__ = ["FACTORS", "FAMILIES", "SOLVERS_OF", "choices", "vary"]

FACTORS = (0.25, 0.5, 2.0, 4.0)
ADJACENCY = "zero_out"
SOLVERS_OF = {"classification": "standardized_gd", "regression": "whitened_gd"}
FAMILIES = {
    "made-up normal": (Population("normal", 20), 10_000),
    "made-up offset": (Population("offset", 20, positive_rate=0.2), 5000),
    "made-up heavy": (Population("heavy", 50, signal=4.0), 20_000),
    "made-up binary": (Population("binary", 100, positive_rate=0.1), 20_000),
    "made-up wild": (Population("wild", 30), 10_000),
    "made-up linear": (Population("normal", 20, "regression"), 10_000),
    "made-up linear correlated": (Population("correlated", 30, "regression", spread=0.1), 10_000),
    "made-up linear heavy": (Population("heavy", 20, "regression", middle=0.5, spread=0.1), 10_000),
}
N_TEST = 20_000
UNBOUNDED = ("clip", "ridge")  # may exceed 1, although their defaults do not
NARROWEST = 0.002  # half of the smallest range of an axis, so that negligible differences look negligible
ABOUT = """\
Mean over the tables of the change of test AUC (R2 of a regression), its standard error over the seeds, and in brackets the range
over the tables; {repeats} paired fits per cell, {adjacency}. A default on a plateau has changes near 0, and mostly negative ones.
"""


def vary(names: list[str], epsilons: list[float], repeats: int, out: Path) -> list[dict[str, Any]]:
    """Measure the effect of each choice; write JSON, Markdown and a plot per choice.

    Parameters
    ----------
    names : list of str
        Tables, out of ``TABLES`` and ``FAMILIES``.
    epsilons : list of float
        Privacy parameters.
    repeats : int
        Fits per cell; the seeds are 0, 1, and so on.
    out : Path
        Directory of ``constants.json``, ``constants.md`` and a PNG per choice.

    Returns
    -------
    list of dict
        A record per table, epsilon, choice and factor.
    """
    records: list[dict[str, Any]] = []
    for name in names:
        table = load(name) if name in TABLES else made_up(name)
        records += table_records(name, table, epsilons, repeats)
        settings = {"adjacency": ADJACENCY, "repeats": repeats, "factors": FACTORS, "epsilons": epsilons}
        write_json({**made_with(), "settings": settings, "records": records}, out / "constants.json")
    (out / "constants.md").write_text(markdown(records, epsilons, repeats), encoding="utf-8")
    for solver, choice in dict.fromkeys((record["solver"], record["choice"]) for record in records):
        chosen = [record for record in records if (record["solver"], record["choice"]) == (solver, choice)]
        draw(chosen, f"{solver}: {choice}", out / f"constants_{solver}_{choice}.png")
    return records


def made_up(name: str) -> Table:
    """Table of a synthetic family."""
    population, n_samples = FAMILIES[name]
    return population.table(n_samples, N_TEST)


def varied(name: str) -> Solver:
    """Return a solver whose constants are numbers: of class labels, those of clipped gradients, on tables of any size."""
    numbers = {constant: getattr(CLIPPED, constant) for constant in ("clip", "noise", "calibration_share")}
    return SOLVERS[name](**numbers if name == "standardized_gd" else {})


def table_records(name: str, table: Table, epsilons: list[float], repeats: int) -> list[dict[str, Any]]:
    """Differences from the default on one table."""
    solver = SOLVERS_OF[table.task]
    records = []
    for epsilon in epsilons:
        usual = scores(table, epsilon, varied(solver), repeats)
        for choice, factor, changed in choices(varied(solver), steps(table, epsilon, solver)):
            try:
                differences = np.subtract(scores(table, epsilon, changed, repeats), usual)
            except ValueError as error:
                print(f"{name} {choice} x{factor:g}: not possible, {error}", flush=True)
                continue
            key = {"table": name, "task": table.task, "solver": solver, "epsilon": epsilon, "choice": choice, "factor": factor}
            measured = {"value": float(getattr(changed, choice)), "default": statistics.median(usual)}
            measured |= {"difference": float(differences.mean()), "standard_error": error_of(differences)}
            records.append(key | measured)
        print(f"{name} epsilon={epsilon:g}: {statistics.median(usual):.4f}", flush=True)
    return records


def choices(solver: Solver, n_steps: int) -> Iterator[tuple[str, float, Solver]]:
    """Yield the solver with one parameter changed, for each parameter and factor.

    Parameters
    ----------
    solver : Solver
        With its defaults.
    n_steps : int
        Number of steps that a default of None stands for.

    Yields
    ------
    tuple of (str, float, Solver)
        Parameter, factor, changed solver; a change that changes nothing, or was made before, is left out.
    """
    for choice, value in solver.get_params(deep=False).items():
        usual = n_steps if value is None and choice == "n_steps" else value
        if not isinstance(usual, Number) or isinstance(usual, bool) or usual == 0:
            continue
        seen = {usual}
        for factor in FACTORS:
            changed = scaled(choice, usual, factor)
            if changed not in seen:
                seen.add(changed)
                yield choice, factor, clone(solver).set_params(**{choice: changed})


def scaled(choice: str, usual: Any, factor: float) -> Any:
    """Return a parameter times a factor, by the rule for that parameter."""
    if choice == "momentum":
        return max(0.0, 1 - (1 - usual) / factor)
    if isinstance(usual, int):
        return max(1, round(usual * factor))
    return min(1.0, usual * factor) if usual <= 1 and choice not in UNBOUNDED else usual * factor


def steps(table: Table, epsilon: float, solver: str) -> int:
    """Number of steps of the default, a public fact."""
    return int(model(table, epsilon, varied(solver)).fit(table.X_train, table.y_train).n_iter_ or 0)


def scores(table: Table, epsilon: float, solver: Solver, repeats: int) -> list[float]:
    """Test scores of fits with one solver."""
    return [score(table, epsilon, solver, seed) for seed in range(repeats)]


def score(table: Table, epsilon: float, solver: Solver, seed: int) -> float:
    """Test score of one fit."""
    with noise_of(seed):
        return fit_and_score(model(table, epsilon, solver), table)[CHOSEN_BY[table.task]]


def model(table: Table, epsilon: float, solver: Solver) -> Any:
    """Our estimator with a solver."""
    delta = max(1 / len(table.y_train) ** 2, 1e-11)
    return ours(epsilon, delta, ADJACENCY, task=table.task, solver=solver)


def error_of(differences: np.ndarray) -> float | None:
    """Standard error of a mean of differences."""
    return float(differences.std(ddof=1) / math.sqrt(len(differences))) if len(differences) > 1 else None


def markdown(records: list[dict[str, Any]], epsilons: list[float], repeats: int) -> str:
    """Return the mean differences over the tables as Markdown, a line per choice and factor."""
    lines = ["# Sensitivity to the constants of the defaults", ""]
    lines += [ABOUT.format(repeats=repeats, adjacency=ADJACENCY)]
    for solver in dict.fromkeys(record["solver"] for record in records):
        own = [record for record in records if record["solver"] == solver]
        lines += [f"## {solver}", "", f"Tables: {', '.join(dict.fromkeys(record['table'] for record in own))}.", ""]
        heads = ["choice", "factor", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
        lines += [row(heads), row(["---"] * len(heads))]
        for choice, factor in dict.fromkeys((record["choice"], record["factor"]) for record in own):
            same = [record for record in own if (record["choice"], record["factor"]) == (choice, factor)]
            lines.append(row([choice, f"{factor:g}", *(over_tables(same, epsilon) for epsilon in epsilons)]))
        lines.append("")
    return "\n".join(lines)


def over_tables(records: list[dict[str, Any]], epsilon: float) -> str:
    """Mean of the differences at one epsilon, its standard error where there are several seeds, and range."""
    own = [record for record in records if record["epsilon"] == epsilon]
    if not own:
        return ""
    values, errors = [record["difference"] for record in own], [record["standard_error"] for record in own]
    error = "" if None in errors else f" +- {np.linalg.norm(errors) / len(errors):.4f}"
    return f"{np.mean(values):+.4f}{error} [{min(values):+.3f}, {max(values):+.3f}]"


def draw(records: list[dict[str, Any]], title: str, path: Path) -> None:
    """A panel per epsilon: change against factor, a thin line per table, the mean bold."""
    levels = sorted({record["epsilon"] for record in records})
    page = figure(figsize=(4.2 * len(levels), 4.4))
    if page is None:
        return
    names = list(dict.fromkeys(record["table"] for record in records))
    factors = sorted({1.0, *(record["factor"] for record in records)})
    for axes, epsilon in zip(page.subplots(1, len(levels), squeeze=False)[0], levels, strict=True):
        curves = []
        for number, name in enumerate(names):
            own = [record for record in records if (record["table"], record["epsilon"]) == (name, epsilon)]
            curve = {1.0: 0.0} | {record["factor"]: record["difference"] for record in own}
            curves.append([curve.get(factor, math.nan) for factor in factors])
            axes.plot(
                factors, curves[-1], linewidth=0.9, color=f"C{number % 10}", linestyle="-" if number < 10 else "--", label=name
            )
        axes.plot(factors, np.nanmean(curves, axis=0), color="black", linewidth=2.5, label="mean")
        axes.axhline(0, color="#888888", linewidth=0.8)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, -NARROWEST), max(high, NARROWEST))
        axes.set(xscale="log", title=f"epsilon {epsilon:g}", xlabel="factor of the default")
        axes.set_xticks(factors, [f"{factor:g}" for factor in factors])
        axes.minorticks_off()
        axes.grid(alpha=0.25)
    page.axes[0].set_ylabel("change of test AUC" if records[0]["task"] == "classification" else "change of test R2")
    page.suptitle(title)
    page.legend(*page.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    page.savefig(path, dpi=100)
