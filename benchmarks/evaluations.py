"""How many gradients a solver evaluates to come close to the minimum: variance reduction against full-data gradient descent.

The gap is the training objective of the private model less that of scikit-learn's minimum, the mean of some fits. A
gradient of all records counts as one pass over them, a difference on a sample of rate q as 2 q.
"""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression

from benchmarks.tables import Table, load
from benchmarks.writing import figure, made_with, row, write_json
from skdp import DPLogisticRegression
from skdp.privacy.report import PrivacyReport
from skdp.solvers import SVRG, GradientDescent, Solver, SVRGPlusPlus

__all__ = ["ALPHAS", "TABLES", "compare"]

TABLES = ("adult", "covertype")
ALPHAS = (0.01, 0.001)
EPSILON, ADJACENCY = 1.0, "zero_out"
STEPS, EPOCHS = (10, 20, 50, 100, 200), (1, 2, 4, 6)
SOLVERS: dict[str, tuple[Solver, ...]] = {
    "gd": tuple(GradientDescent(n_steps) for n_steps in STEPS),
    "gd without momentum": tuple(GradientDescent(n_steps, momentum=0.0) for n_steps in STEPS),
    "svrg": tuple(SVRG(n_epochs) for n_epochs in EPOCHS),
    "svrg++": tuple(SVRGPlusPlus(n_epochs) for n_epochs in EPOCHS),
}
ABOUT = """\
Mean over {repeats} fits of the training objective less that of the minimum; epsilon {epsilon:g}, {adjacency}, `data_norm=1`, all
else by default but the number of steps or epochs. A pass is as many gradients as there are records. The last column is the fewest
passes of `gd` with as small a gap, interpolated in logarithms; "never" where {most} steps and fewer have none.
"""


def compare(tables: list[str], repeats: int, out: Path) -> list[dict[str, Any]]:
    """Measure gaps and passes; write JSON, Markdown and a plot.

    Parameters
    ----------
    tables : list of str
        Out of ``TABLES``.
    repeats : int
        Fits per cell.
    out : Path
        Directory of ``evaluations.json``, ``evaluations.md`` and ``evaluations.png``.

    Returns
    -------
    list of dict
        A record per table, penalty, solver and length.
    """
    records = [record for name in tables for alpha in ALPHAS for record in measured(name, alpha, repeats)]
    settings = {"epsilon": EPSILON, "adjacency": ADJACENCY, "repeats": repeats}
    write_json({**made_with(), "settings": settings, "records": records}, out / "evaluations.json")
    (out / "evaluations.md").write_text(markdown(records, settings), encoding="utf-8")
    draw(records, out / "evaluations.png")
    return records


def measured(name: str, alpha: float, repeats: int) -> Iterator[dict[str, Any]]:
    """Records of one table and penalty."""
    table = load(name)
    minimum = LogisticRegression(C=1 / (len(table.y_train) * alpha), tol=1e-10, max_iter=10_000).fit(table.X_train, table.y_train)
    best = objective(table, minimum, alpha)
    for solver, lengths in SOLVERS.items():
        for length in lengths:
            given = {"adjacency": ADJACENCY, "alpha": alpha, "data_norm": 1.0, "solver": length}
            models = [DPLogisticRegression(EPSILON, random_state=seed, **given) for seed in range(repeats)]
            gaps = [objective(table, model.fit(table.X_train, table.y_train), alpha) - best for model in models]
            about = {"table": name, "alpha": alpha, "solver": solver, "length": repr(length)}
            yield about | {"passes": passes(models[0].privacy_report_), "gap": float(np.mean(gaps)), "gaps": gaps}
        print(f"{name}, alpha {alpha:g}: {solver}", flush=True)


def objective(table: Table, model: Any, alpha: float) -> float:
    """Training objective of a fitted model."""
    raw = model.decision_function(table.X_train)
    losses = -log_expit(np.where(table.y_train == 1, raw, -raw))
    return float(losses.mean() + alpha / 2 * np.sum(model.coef_**2))


def passes(report: PrivacyReport) -> float:
    """Evaluated gradients over the number of records, expected."""
    return sum((1 + (line.query == "Difference")) * line.count * line.sampling_rate for line in report.releases)


def needed(records: list[dict[str, Any]], gap: float) -> float:
    """Fewest passes at which a curve is down at a gap; infinite where it never is."""
    points = sorted((record["passes"], record["gap"]) for record in records)
    for (left, above), (right, below) in itertools.pairwise(points):
        if above <= gap:
            return left
        if below <= gap:
            share = math.log(above / gap) / math.log(above / below)
            return math.exp(math.log(left) + share * math.log(right / left))
    return math.inf


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    heads = ["table", "alpha", "solver", "length", "passes", "gap", "passes of gd"]
    lines = [row(heads), row(["---"] * len(heads))]
    for record in records:
        same = [other for other in records if (other["table"], other["alpha"]) == (record["table"], record["alpha"])]
        others = needed([other for other in same if other["solver"] == "gd"], record["gap"])
        cells = [record["table"], f"{record['alpha']:g}", record["solver"], record["length"]]
        cells += [f"{record['passes']:.1f}", f"{record['gap']:.2e}", "never" if others == math.inf else f"{others:.0f}"]
        lines.append(row(cells))
    about = ABOUT.format(**settings, most=max(STEPS))
    return "\n".join(["# Gradient evaluations", "", about, *lines]) + "\n"


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Plot gaps against passes; nothing where matplotlib is missing."""
    cases = list(dict.fromkeys((record["table"], record["alpha"]) for record in records))
    picture = figure(figsize=(4.2 * len(cases), 3.6))
    if picture is None:
        return
    for place, (table, alpha) in enumerate(cases):
        axes = picture.add_subplot(1, len(cases), place + 1)
        for solver in SOLVERS:
            chosen = [r for r in records if (r["table"], r["alpha"], r["solver"]) == (table, alpha, solver)]
            axes.loglog([r["passes"] for r in chosen], [r["gap"] for r in chosen], marker="o", label=solver)
        axes.set(title=f"{table}, alpha {alpha:g}", xlabel="passes over the records")
        if place == 0:
            axes.set_ylabel("gap to the minimum")
            picture.legend(loc="outside lower center", ncols=len(SOLVERS))
    picture.savefig(path)
