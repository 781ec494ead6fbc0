r"""Gap to the minimum and running time of variance reduction against gradient descent, under accounting that holds.

The experiment of Wang, Ye, Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General" (NeurIPS
2017), appendix A: logistic regression on covertype, lodgepole pine against other trees. The gap is the training objective of a
private model less that of the minimum; no record is held out. Beside it a made-up table of the full size of covertype, what the
paper's noise costs (`benchmarks/claimed_epsilon.py`), and the gradients that are evaluated as tables grow
(`benchmarks/gradient_growth.py`).
"""

import contextlib
import itertools
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import fetch_covtype

from benchmarks import gradient_growth
from benchmarks.claimed_epsilon import N_EPOCHS, N_INNER, claims, claims_table
from benchmarks.gradient_growth import (
    ADJACENCY,
    CASES,
    DELTA,
    Case,
    estimator,
    fitted,
    grow,
    growth_table,
    minimum,
    objective,
    passes,
    reached,
    weights,
)
from benchmarks.nonsmooth_rates import slope
from benchmarks.synthetic import Population
from benchmarks.tables import covertype_rows, load
from benchmarks.writing import figure, row
from skdp import WeakPrivacyWarning
from skdp.solvers import SVRG, GradientDescent, Solver, SVRGPlusPlus

__all__ = ["draw", "markdown", "measure"]

EPSILONS, ALPHAS = (0.2, 0.5, 1.0), (0.01, 0.0)  # of the paper
SHAPE, REPEATS, PATIENCE = (581_012, 54), 3, 180  # of the whole of covertype; fits per cell; seconds of a download
SOLVERS: dict[str, Solver] = {
    "gd": GradientDescent(),
    "gd without momentum": GradientDescent(momentum=0.0),
    "svrg": SVRG(),
    "svrg++": SVRGPlusPlus(),
}
LENGTHS = "svrg, paper's lengths"
PAPER: dict[str, Solver] = {LENGTHS: SVRG(N_EPOCHS, n_inner=N_INNER, batch_size=1)}
QUICK_ROWS, QUICK_SIZES = 20_000, 3
ABOUT = """\
Training objective less its minimum, and processor seconds of one fit on one thread: medians of {repeats} fits
("{lengths}": one fit, on covertype only). {adjacency}, delta {delta:g} (the paper's; far too large for a release, as it
lets one record in a thousand be published), `data_norm=1`. Lengths, steps and clips are the solvers' defaults; nothing
was tuned. The seconds contain the calibration of the noise, in brackets, which is done once per schedule and budget: 0.00
where the process has met the same one before. The ratio is to `gd` in the same process."""
GROWTH = f"""\
Evaluations until the gap is {gradient_growth.FIXED:g} and stays so at greater lengths (no noise), or
{gradient_growth.MULTIPLE:g} times what noise alone leaves, which falls as 1/n^2 (epsilon 1; "-" where that is more than half
of what there is to gain, or is not reached); {gradient_growth.POPULATION.n_features} features, {ADJACENCY}, delta {DELTA:g},
interpolated in logarithms. The powers of n are fitted; that of the theory is the power that its number of evaluations has
over the same sizes, logarithms included. Without noise, `svrg` and `svrg++` have the lengths of Theorems 4.2 and 4.4 and
samples of one record (`theorem=True`)."""
STYLES = dict(zip((*SOLVERS, LENGTHS), (("C0", "o"), ("C1", "s"), ("C2", "^"), ("C3", "v"), ("C4", "D")), strict=True))
Rows = tuple[np.ndarray, np.ndarray]


def measure(quick: bool, jobs: int | None) -> dict[str, Any]:
    """Measure gaps, times and evaluations.

    Parameters
    ----------
    quick : bool
        Whether two minutes are all there is.
    jobs : int or None
        Processes.

    Returns
    -------
    dict
        Settings; a record per table, penalty, epsilon and solver; what is claimed; how evaluations grow.
    """
    repeats = 2 if quick else REPEATS
    with parallel_config("loky", inner_max_num_threads=1):
        records = compared(tables(quick), EPSILONS[-1:] if quick else EPSILONS, repeats, {} if quick else PAPER, jobs)
        sizes = gradient_growth.SIZES[:QUICK_SIZES] if quick else gradient_growth.SIZES
        growth = grow(sizes, repeats, jobs)
    settings = {"delta": DELTA, "adjacency": ADJACENCY, "repeats": repeats, "data_norm": 1.0}
    return {"settings": settings, "records": records, "claims": claims(), "growth": growth}


def tables(quick: bool) -> dict[str, Rows]:
    """Covertype where there is any, and the made-up table."""
    found: dict[str, Rows] = {}
    try:
        name, rows = covertype(download=not quick)
        found[name] = rows
    except OSError as error:
        print(f"Without covertype: {error}", flush=True)
    found["made-up"] = Population("normal", SHAPE[1]).draw(SHAPE[0], 0)
    return {name: (X[:QUICK_ROWS], y[:QUICK_ROWS]) for name, (X, y) in found.items()} if quick else found


def covertype(download: bool) -> tuple[str, Rows]:
    """The whole table from scikit-learn's cache or the network; else the sample among the data sets."""
    try:
        X, labels = fetched(download)
    except OSError:
        sample = load("covertype")
        return "covertype, a sample", (np.vstack([sample.X_train, sample.X_test]), np.append(sample.y_train, sample.y_test))
    return "covertype", (covertype_rows(X), (labels == 2).astype(int))


def fetched(download: bool) -> Rows:
    """What scikit-learn has; a download is another process, because a name server may never answer."""
    with contextlib.suppress(OSError):
        return fetch_covtype(download_if_missing=False, return_X_y=True)
    if download:
        command = [sys.executable, "-c", "from sklearn.datasets import fetch_covtype; fetch_covtype()"]
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run(command, timeout=PATIENCE, capture_output=True, check=False)
    return fetch_covtype(download_if_missing=False, return_X_y=True)


def compared(
    found: dict[str, Rows], epsilons: tuple[float, ...], repeats: int, paper: dict[str, Solver], jobs: int | None
) -> list[dict[str, Any]]:
    """A record per table, penalty, epsilon and solver."""
    tasks = []
    for (name, (X, y)), alpha in itertools.product(found.items(), ALPHAS):
        least = objective(X, y, minimum(X, y, alpha), alpha)
        solvers = SOLVERS | (paper if name.startswith("covertype") else {})
        tasks += [delayed(cell)(name, X, y, Case(epsilon, alpha), least, solvers, repeats) for epsilon in epsilons]
    return [record for records in Parallel(jobs)(tasks) for record in records]


def cell(
    name: str, X: np.ndarray, y: np.ndarray, case: Case, least: float, solvers: dict[str, Solver], repeats: int
) -> list[dict[str, Any]]:
    """All solvers on one problem, one after the other in one process."""
    measured(X[:99], y[:99], Case(3.0, 1.0), SVRG(1), 0.0, 1)  # imports what the calibration needs
    found = []
    for solver, given in solvers.items():
        about = {"table": name, "n_samples": len(y), "alpha": case.alpha, "epsilon": case.epsilon, "solver": solver}
        found.append(about | measured(X, y, case, given, least, 1 if solver == LENGTHS else repeats))
        gap, seconds = np.median(found[-1]["gaps"]), np.median(found[-1]["seconds"])
        print(f"{name}, {case}, {solver}: gap {gap:.2g}, {seconds:.2g} s", flush=True)
    return found


def measured(X: np.ndarray, y: np.ndarray, case: Case, solver: Solver, least: float, repeats: int) -> dict[str, Any]:
    """Passes, gaps and processor seconds of some fits; those of the calibration, which later fits remember."""
    gaps, seconds = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrivacyWarning)
        start = time.process_time()
        report = estimator(case, solver).plan(*X.shape)
        calibration = time.process_time() - start
        for seed in range(repeats):
            start = time.process_time()
            model = fitted(case, solver, seed, X, y)
            seconds.append(time.process_time() - start)
            gaps.append(objective(X, y, weights(model), case.alpha) - least)
    return {"passes": passes(report), "gaps": gaps, "seconds": seconds, "calibration": calibration}


def took(record: dict[str, Any]) -> float:
    """Seconds of one fit and its calibration."""
    return float(np.median(record["seconds"])) + record["calibration"]


def markdown(contents: dict[str, Any]) -> str:
    """Return gaps and times, claims, and evaluations.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.

    Returns
    -------
    str
        Markdown.
    """
    about = ABOUT.format(**contents["settings"], lengths=LENGTHS)
    parts = ["## Gap and time", about, gap_table(contents["records"]), "## What the paper's noise costs"]
    parts += [claims_table(contents["claims"]), "## Gradients that are evaluated", GROWTH, growth_table(contents["growth"])]
    return "\n\n".join(parts)


def gap_table(records: list[dict[str, Any]]) -> str:
    """A line per table, penalty, epsilon and solver."""
    heads = ["table", "n", "lambda", "epsilon", "solver", "passes", "gap", "seconds (calibration)", "times gd"]
    lines = [row(heads), row(["---"] * len(heads))]
    base = {key(record): took(record) for record in records if record["solver"] == "gd"}
    for record in records:
        cells = [record["table"], str(record["n_samples"]), f"{record['alpha']:g}", f"{record['epsilon']:g}", record["solver"]]
        cells += [f"{record['passes']:.1f}", f"{np.median(record['gaps']):.2e}"]
        cells += [f"{took(record):.2f} ({record['calibration']:.2f})", f"{took(record) / base[key(record)]:.2f}"]
        lines.append(row(cells))
    return "\n".join(lines)


def key(record: dict[str, Any]) -> tuple[str, float, float]:
    """The problem of a record."""
    return record["table"], record["alpha"], record["epsilon"]


def draw(contents: dict[str, Any], path: Path) -> None:
    """Plot gaps against epsilon, times, and evaluations against the number of records.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.
    path : Path
        PNG file.
    """
    records, growth = contents["records"], contents["growth"]
    problems = list(dict.fromkeys((record["table"], record["alpha"]) for record in records))
    page = figure(figsize=(13, 7))
    if page is None:
        return
    panels = page.subplots(2, 4)
    for axes in panels[0, len(problems) :]:
        axes.set_visible(False)
    for axes, problem in zip(panels[0], problems, strict=False):
        draw_gaps(axes, [record for record in records if key(record)[:2] == problem])
    panels[0, 0].set_ylabel("gap to the minimum")
    draw_times(panels[1, 0], records)
    for axes, case in zip(panels[1, 1:], CASES, strict=True):
        draw_evaluations(axes, reached(growth, case), str(case))
    handles = {label: handle for axes in panels.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    page.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
    page.savefig(path, dpi=100)


def draw_gaps(axes: Any, records: list[dict[str, Any]]) -> None:
    """Gaps of one table and penalty against epsilon."""
    for solver, (colour, marker) in STYLES.items():
        chosen = [record for record in records if record["solver"] == solver]
        if chosen:
            low, middle, high = np.quantile([record["gaps"] for record in chosen], (0.25, 0.5, 0.75), axis=1)
            epsilons = [record["epsilon"] for record in chosen]
            axes.fill_between(epsilons, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(epsilons, middle, color=colour, marker=marker, markersize=4, label=solver)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", title=f"{records[0]['table']}, lambda {records[0]['alpha']:g}")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def draw_times(axes: Any, records: list[dict[str, Any]]) -> None:
    """Seconds of fits for all penalties and epsilons, by table."""
    names = list(dict.fromkeys(record["table"] for record in records))
    for number, (solver, (colour, marker)) in enumerate(STYLES.items()):
        chosen = [record for record in records if record["solver"] == solver]
        places = [names.index(record["table"]) + 0.15 * (number - 2) for record in chosen]
        axes.plot(places, [took(record) for record in chosen], color=colour, marker=marker, markersize=4, linestyle="")
    axes.set(yscale="log", ylabel="processor seconds of a fit", title="time, all lambda and epsilon")
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.grid(alpha=0.25, axis="y")


def draw_evaluations(axes: Any, found: dict[str, tuple[list[int], list[float]]], title: str) -> None:
    """Evaluations against the number of records, with powers."""
    lines, powers = [], []
    for solver, (sizes, evaluations) in found.items():
        colour, marker = STYLES[solver]
        (line,) = axes.plot(sizes, evaluations, color=colour, marker=marker, markersize=4, label=solver)
        if len(sizes) > 1:
            lines.append(line)
            powers.append(f"n^{slope(sizes, evaluations):.2f}")
    axes.set(xlabel="training records", title=title, ylabel="evaluated gradients")
    if any(sizes for sizes, _ in found.values()):
        axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.25)
    axes.legend(lines, powers, frameon=False, fontsize=8, loc="upper left")
