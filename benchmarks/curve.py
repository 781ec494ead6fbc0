r"""Excess test loss over the non-private fit as the table grows, compared with the rate that the noise predicts.

Near the optimum the loss of d coefficients is a quadratic of curvature H. A release of mean gradients clipped to C has noise of
standard deviation :math:`C k / (\mu n)` per coordinate when the whole budget goes into it, which moves the minimum by
:math:`H^{-1}` times that noise, so that the expected excess is at least

.. math:: \frac12 \mathrm{tr}(H^{-1}) \left(\frac{k C}{\mu n}\right)^2 .

For standardised features :math:`H = h I`, and C is about :math:`c \sqrt d`: the excess is
:math:`\frac{c^2 k^2}{2 h} (d / (\mu n))^2`. mu is about :math:`\varepsilon / \sqrt{2 \log(1/\delta)}`, so with
:math:`\delta = 1 / n^2` the rate is :math:`(d / (n \varepsilon))^2 \log n`. A curve that leaves it for large n has a bias that
does not vanish.

The excess over a fit of the same records is ``L(w) - L(v)`` with test loss L, private w and non-private v. At v the test loss
has a slope, because v fits the training records. The noise along this slope reduces the loss as often as it increases it: this
part has mean zero over the noise and is far larger than the rest. So the plot shows the excess without it,
``L(w) - L(v) - <grad L(v), w - v>``, which is never negative; the JSON has both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, log_expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.methods import fits, ours
from benchmarks.noise import noise_of
from benchmarks.synthetic import Population
from benchmarks.writing import figure, made_with, row, write_json
from skdp.privacy.accounting.gaussian_dp import gaussian_mu

__all__ = ["POPULATIONS", "SIZES", "grow"]

SIZES = tuple(round(10 ** (exponent / 2)) for exponent in range(6, 13))
N_TEST = 200_000
EPSILON, ADJACENCY = 1.0, "zero_out"
POPULATIONS = {
    "logistic": Population("normal", 10),
    "logistic rare class": Population("normal", 10, positive_rate=0.1, seed=1),
    "logistic strong signal": Population("normal", 10, signal=6.0, seed=2),
    "logistic correlated": Population("correlated", 10, seed=3),
    "linear": Population("normal", 10, "regression", spread=0.2),
    "linear off centre": Population("offset", 10, "regression", middle=0.5, spread=0.1, seed=1),
    "linear correlated": Population("correlated", 10, "regression", spread=0.2, seed=2),
}

ABOUT = """\
Median over {repeats} tables and fits, epsilon {epsilon:g}, {adjacency}, delta 1/n^2, 10 features, against the non-private fit of
the same records, without the first-order part (see `benchmarks/curve.py`). The last column is the power of the rate
`1 / (mu n)^2` that the larger half of the sizes follows: 1 is the rate that the noise predicts, 0 is levelling off.
"""


@dataclass(frozen=True)
class Loss:
    """Test loss of raw predictions.

    Parameters
    ----------
    value, slope : callable
        From raw predictions and targets, per record: the loss and its derivative.
    """

    value: Callable[[np.ndarray, np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]


LOSSES = {
    "classification": Loss(lambda raw, y: -log_expit(np.where(y == 1, raw, -raw)), lambda raw, y: expit(raw) - y),
    "regression": Loss(lambda raw, y: (raw - y) ** 2 / 2, lambda raw, y: raw - y),
}
BASELINES: dict[str, Callable[[], Any]] = {
    "classification": lambda: LogisticRegression(C=np.inf, max_iter=1000, tol=1e-10),
    "regression": LinearRegression,
}


def grow(names: list[str], solvers: list[str], repeats: int, largest: int, out: Path) -> list[dict[str, Any]]:
    """Measure the excess for growing tables; write JSON, Markdown and a plot.

    Parameters
    ----------
    names : list of str
        Out of ``POPULATIONS``.
    solvers : list of str
        "auto", or names out of ``SOLVERS``.
    repeats : int
        Tables and fits per size.
    largest : int
        Most records.
    out : Path
        Directory of ``curve.json``, ``curve.md`` and ``curve.png``.

    Returns
    -------
    list of dict
        A record per population, solver and size.

    Raises
    ------
    SystemExit
        If no solver is for any of the populations, or no size is small enough.
    """
    records = []
    for name in names:
        population = POPULATIONS[name]
        test = population.draw(N_TEST, 10**6)
        fitting = [solver for solver in solvers if solver == "auto" or fits(solver, population.task)]
        for n_samples in (size for size in SIZES if fitting and size <= largest):
            for solver, excess in measure(population, n_samples, fitting, repeats, test).items():
                records.append({"population": name, "solver": solver, "n_samples": n_samples, **excess})
                print(f"{name} {solver} n={n_samples}: {excess['excess'][1]:.3g}", flush=True)
    if not records:
        raise SystemExit(f"Nothing to measure: no solver is for these populations, or --largest is below {min(SIZES)}.")
    settings = {"epsilon": EPSILON, "adjacency": ADJACENCY, "repeats": repeats, "n_test": N_TEST, "delta": "1 / n**2"}
    write_json({**made_with(), "settings": settings, "records": records}, out / "curve.json")
    (out / "curve.md").write_text(markdown(records, repeats), encoding="utf-8")
    draw(records, out / "curve.png")
    return records


def measure(
    population: Population, n_samples: int, solvers: list[str], repeats: int, test: tuple[np.ndarray, np.ndarray]
) -> dict[str, dict[str, Any]]:
    """Per solver: quartiles of the excess without its first-order part, and mean and standard error of the whole."""
    excesses: dict[str, list[tuple[float, float]]] = {solver: [] for solver in solvers}
    for seed in range(repeats):
        X, y = population.draw(n_samples, seed)
        if population.task == "classification" and np.ptp(y) == 0:
            continue
        baseline = BASELINES[population.task]().fit(X, y)
        for solver in solvers:
            delta = max(1 / n_samples**2, 1e-11)
            model = ours(EPSILON, delta, ADJACENCY, task=population.task, classes=[0, 1], solver=solver)
            with noise_of(seed):
                model.fit(X, y)
            excesses[solver].append(excess(LOSSES[population.task], raw(model, test[0]), raw(baseline, test[0]), test[1]))
    return {solver: summary(np.array(values)) for solver, values in excesses.items()}


def raw(model: Any, X: np.ndarray) -> np.ndarray:
    """Return raw predictions; for a regression without the clip to the target bounds, which is not smooth."""
    return X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]


def excess(loss: Loss, private: np.ndarray, plain: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Excess of the mean loss without its first-order part, and the whole."""
    whole = loss.value(private, y) - loss.value(plain, y)
    return float(np.mean(whole - loss.slope(plain, y) * (private - plain))), float(np.mean(whole))


def summary(values: np.ndarray) -> dict[str, Any]:
    """Return the record of a cell for the JSON."""
    whole = values[:, 1]
    return {
        "excess": np.quantile(values[:, 0], (0.25, 0.5, 0.75)).tolist(),
        "whole_mean": float(whole.mean()),
        "whole_standard_error": float(whole.std(ddof=1) / math.sqrt(len(whole))) if len(whole) > 1 else None,
        "repeats": len(values),
    }


def rate(n_samples: np.ndarray) -> np.ndarray:
    """What the excess is proportional to, ``1 / (mu n)**2``."""
    return np.array([(n * gaussian_mu(EPSILON, max(1 / n**2, 1e-11))) ** -2.0 for n in n_samples.tolist()])


def exponent(group: list[dict[str, Any]]) -> float:
    """Power of ``1 / (mu n)**2`` that the larger half of the tables follows: 1 is the rate, 0 levels off."""
    later = group[len(group) // 2 :]
    if len(later) < 2:
        return math.nan
    rates = np.log(rate(np.array([record["n_samples"] for record in later])))
    return float(np.polyfit(rates, np.log([max(record["excess"][1], 1e-300) for record in later]), 1)[0])


def groups(records: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Records by population and solver."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault((record["population"], record["solver"]), []).append(record)
    return found


def markdown(records: list[dict[str, Any]], repeats: int) -> str:
    """Return a line per population and solver as Markdown."""
    sizes = sorted({record["n_samples"] for record in records})
    lines = ["# Excess test loss as the table grows", ""]
    lines += [ABOUT.format(repeats=repeats, epsilon=EPSILON, adjacency=ADJACENCY)]
    heads = ["population", "solver", *(f"n = {size:.3g}" for size in sizes), "power"]
    lines += [row(heads), row(["---"] * len(heads))]
    for (name, solver), group in groups(records).items():
        lines.append(row([name, solver, *(f"{record['excess'][1]:.2g}" for record in group), f"{exponent(group):.2f}"]))
    return "\n".join(lines) + "\n"


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """A panel per population: excess against size, and the rate through the middle of the default's curve."""
    names = list(dict.fromkeys(record["population"] for record in records))
    columns = min(4, len(names))
    page = figure(figsize=(3.6 * columns, 3.4 * math.ceil(len(names) / columns)))
    if page is None:
        return
    grid = page.subplots(math.ceil(len(names) / columns), columns, squeeze=False).ravel()
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(grid, names, strict=False):
        for number, ((_, solver), group) in enumerate(item for item in groups(records).items() if item[0][0] == name):
            sizes = np.array([record["n_samples"] for record in group])
            low, middle, high = np.array([record["excess"] for record in group]).T
            axes.fill_between(sizes, low, high, alpha=0.15, color=f"C{number}", linewidth=0)
            axes.plot(sizes, middle, marker="o", markersize=4, color=f"C{number}", label=solver)
            if number == 0:
                shape = rate(sizes)
                scale = np.exp(np.median(np.log(middle / shape)))
                axes.plot(sizes, scale * shape, color="#222222", linestyle=":", label="rate of the noise")
        axes.set(xscale="log", yscale="log", title=name, xlabel="training records", ylabel="excess test loss")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8)
    page.savefig(path, dpi=100)
