r"""Excess risk on losses with a kink as the table grows, beside the rate of stochastic convex optimisation.

For convex losses of bounded slope, the least excess risk that is possible is of the order

.. math:: D G \left(\frac{1}{\sqrt n} + \frac{\sqrt d}{s}\right), \qquad s = \mu n / k

with :math:`s \approx \varepsilon n` up to logarithms (Bassily, Feldman, Talwar, Thakurta 2019); "gd" and "sgd" with Poisson
samples attain it with enough steps, a single pass of records that are used once, without amplification, is of the order
:math:`D G (1 / \sqrt n + (\sqrt d / s)^{1/2})`. That is for the hardest problem. Where the risk is curved at its minimum, as
it is here, the powers double: the excess falls up to twice as fast.

Both populations have rows on the unit sphere and no intercept, and their best models are known by symmetry: targets are a linear
function and Laplace noise, or signs of a linear function of which one in ten is wrong.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar

from benchmarks.writing import figure, row
from skdp import DPLinearSVC, DPQuantileRegressor
from skdp.privacy.accounting import gaussian_mu
from skdp.solvers import SGD

__all__ = ["draw", "markdown", "measure"]

SIZES = tuple(round(10 ** (exponent / 2)) for exponent in range(6, 12))
N_TEST, N_FEATURES, REPEATS = 200_000, 10, 10
EPSILON, ADJACENCY = 1.0, "zero_out"
BOUND, NOISE, WRONG = 2.0, 0.2, 0.1  # of targets, of their noise, and share of wrong signs
SOLVERS: dict[str, Any] = {"gd": "gd", "sgd": "sgd", "sgd single pass": SGD(sampling="single_pass")}


@dataclass(frozen=True)
class Population:
    """Where records come from, and what a model loses on them.

    Parameters
    ----------
    estimator : callable
        From parameters to an estimator.
    targets : callable
        From scores on the best direction and a generator.
    loss : callable
        Of raw predictions and targets, per record.
    """

    estimator: Callable[..., Any]
    targets: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]


POPULATIONS = {
    "hinge": Population(
        lambda **given: DPLinearSVC(loss="hinge", classes=[0, 1], **given),
        lambda scores, rng: ((scores > 0) ^ (rng.random(scores.size) < WRONG)).astype(int),
        lambda raw, y: np.maximum(1 - np.where(y == 1, raw, -raw), 0.0),
    ),
    "absolute error": Population(
        lambda **given: DPQuantileRegressor(target_bounds=(-BOUND, BOUND), **given),
        lambda scores, rng: np.clip(scores + rng.laplace(scale=NOISE, size=scores.size), -BOUND, BOUND),
        lambda raw, y: np.abs(raw - y),
    ),
}


def draw_records(population: Population, n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the sphere and their targets; the first feature is the best direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, N_FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, population.targets(X[:, 0], rng)


def measure(quick: bool, jobs: int | None) -> dict[str, Any]:
    """Measure the excess risk for growing tables.

    Parameters
    ----------
    quick : bool
        Whether two minutes are all there is.
    jobs : int or None
        Processes.

    Returns
    -------
    dict
        A record per population, solver and size.
    """
    sizes, repeats = (SIZES[:3], 3) if quick else (SIZES, REPEATS)
    records = []
    for name, population in POPULATIONS.items():
        test = draw_records(population, N_TEST, 10**6)
        best = least(population, test[0][:, 0], test[1])
        for n_samples, (solver, given) in itertools.product(sizes, SOLVERS.items()):
            tasks = (delayed(risk)(population, given, n_samples, seed, test) for seed in range(repeats))
            quartiles = np.quantile(np.array(Parallel(jobs)(tasks)) - best, (0.25, 0.5, 0.75)).tolist()
            records.append({"population": name, "solver": solver, "n_samples": n_samples, "excess": quartiles})
            print(f"{name} {solver} n={n_samples}: {quartiles[1]:.3g}", flush=True)
    settings = {"epsilon": EPSILON, "adjacency": ADJACENCY, "repeats": repeats, "n_test": N_TEST, "delta": "1 / n**2"}
    return {"settings": settings, "records": records}


def least(population: Population, scores: np.ndarray, y: np.ndarray) -> float:
    """Mean test loss of the best model, some multiple of the scores."""
    return float(minimize_scalar(lambda c: population.loss(c * scores, y).mean(), bounds=(0, 100), method="bounded").fun)


def risk(population: Population, solver: Any, n_samples: int, seed: int, test: tuple[np.ndarray, np.ndarray]) -> float:
    """Mean test loss of one private fit."""
    public = {"epsilon": EPSILON, "adjacency": ADJACENCY, "data_norm": 1.0, "fit_intercept": False, "alpha": 0.0}
    model = population.estimator(solver=solver, random_state=seed, **public).fit(*draw_records(population, n_samples, seed))
    return float(population.loss(test[0] @ np.ravel(model.coef_), test[1]).mean())


def rate(n_samples: Any) -> np.ndarray:
    """Return what the least possible excess is proportional to, for the hardest problem.

    Parameters
    ----------
    n_samples : list of int
        Sizes.

    Returns
    -------
    ndarray
        ``1 / sqrt(n) + sqrt(d) / (mu n)``.
    """
    noise = [math.sqrt(N_FEATURES) / (n * gaussian_mu(EPSILON, max(1 / n**2, 1e-11))) for n in n_samples]
    return np.asarray(n_samples, dtype=float) ** -0.5 + noise


def slope(sizes: Any, values: Any) -> float:
    """Power of n that values follow."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-300)), 1)[0])


def groups(records: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[list[int], np.ndarray]]:
    """Sizes and quartiles by population and solver."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault((record["population"], record["solver"]), []).append(record)
    return {key: ([r["n_samples"] for r in group], np.array([r["excess"] for r in group]).T) for key, group in found.items()}


def markdown(contents: dict[str, Any]) -> str:
    """Return a line per population and solver.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.

    Returns
    -------
    str
        Markdown.
    """
    records, repeats = contents["records"], contents["settings"]["repeats"]
    sizes = sorted({record["n_samples"] for record in records})
    power = slope(sizes, rate(sizes))
    about = (
        f"Median excess test loss over {repeats} tables and fits, epsilon {EPSILON:g}, {ADJACENCY}, delta 1/n^2, {N_FEATURES}\n"
        "features on the unit sphere (see `benchmarks/nonsmooth_rates.py`). The last column is the power of n; that of the rate\n"
        f"`1 / sqrt(n) + sqrt(d) / (mu n)`, which is the least possible for the hardest problem, is {power:.2f} here."
    )
    heads = ["population", "solver", *(f"n = {size:.3g}" for size in sizes), "power"]
    lines = [about, "", row(heads), row(["---"] * len(heads))]
    for (name, solver), (found, (_, middle, _)) in groups(records).items():
        lines.append(row([name, solver, *(f"{value:.2g}" for value in middle), f"{slope(found, middle):.2f}"]))
    return "\n".join(lines)


def draw(contents: dict[str, Any], path: Path) -> None:
    """Plot a panel per population: excess against size, and the rate through the first point.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.
    path : Path
        PNG file.
    """
    records = contents["records"]
    names = list(dict.fromkeys(record["population"] for record in records))
    page = figure(figsize=(4.4 * len(names), 3.8))
    if page is None:
        return
    for axes, name in zip(page.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        chosen = [(solver, group) for (population, solver), group in groups(records).items() if population == name]
        for number, (solver, (sizes, (low, middle, high))) in enumerate(chosen):
            axes.fill_between(sizes, low, high, alpha=0.15, color=f"C{number}", linewidth=0)
            label = f"{solver}: n^{slope(sizes, middle):.2f}"
            axes.plot(sizes, middle, marker="o", markersize=4, color=f"C{number}", label=label)
        shape = rate(sizes)
        start = max(middle[0] for _, (_, (_, middle, _)) in chosen)
        label = f"1/sqrt(n) + sqrt(d)/(mu n): n^{slope(sizes, shape):.2f}"
        axes.plot(sizes, start * shape / shape[0], color="#222222", linestyle=":", label=label)
        axes.set(xscale="log", yscale="log", title=name, xlabel="training records", ylabel="excess test loss")
        axes.set_ylim(bottom=axes.get_ylim()[0] / 20)  # room for the legend
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
    page.savefig(path, dpi=100)
