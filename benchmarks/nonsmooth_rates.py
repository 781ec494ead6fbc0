r"""Excess risk on losses with a kink as the table grows, beside the rate of stochastic convex optimisation.

For convex losses of bounded slope, the least excess risk that is possible is of the order

.. math:: r = D G \left(\frac{1}{\sqrt n} + \frac{\sqrt d}{s}\right), \qquad s = \mu n / k

with :math:`s \approx \varepsilon n` up to logarithms (Bassily, Feldman, Talwar, Thakurta 2019); "gd" and "sgd" with Poisson
samples attain it with enough steps, a single pass of records that are used once, without amplification, is of the order
:math:`r = D G (1 / \sqrt n + (\sqrt d / s)^{1/2})`. That is for the hardest problem of each size. A fixed risk that grows with
the power m of the distance from its minimum turns an error r of its gradient into an excess of the order :math:`r^{m/(m-1)}`:
twice as fast as r where it is curved.

All populations have rows uniform on the unit sphere, no intercept, and the first feature as their best direction: signs of it of
which some are wrong, or itself and symmetric noise. So the expected loss depends on two numbers of a model, and is computed by
quadrature, not from test records.
"""

import itertools
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar

from benchmarks.noise import noise_of
from benchmarks.writing import figure, row
from skdp import DPLinearSVC, DPQuantileRegressor
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.solvers import SGD

__all__ = ["draw", "markdown", "measure"]

SIZES = tuple(round(10 ** (exponent / 2)) for exponent in range(6, 11))
N_FEATURES, REPEATS = 10, 8
EPSILON, ADJACENCY = 1.0, "zero_out"
ONCE = "sgd single pass"
SOLVERS: dict[str, Any] = {"gd": "gd", "sgd": "sgd", ONCE: SGD(sampling="single_pass")}
RESAMPLES = 1000
ABOUT = """\
Median excess risk over {repeats} tables and fits, epsilon {epsilon:g}, {adjacency}, delta 1/n^2, {n_features} features on the
unit sphere (see `benchmarks/nonsmooth_rates.py`). "power" is that of n, with its standard error by the bootstrap over fits;
"theory" the power, over the same sizes, of the rate `1 / sqrt(n) + sqrt(d) / (mu n)`, or `1 / sqrt(n) + sqrt(sqrt(d) / (mu n))`
of a single pass, times m / (m - 1) where the risk grows with the power m of the distance from its minimum.
"""


class Population(Protocol):
    """A population of records, and the expected loss of a model on it."""

    @property
    def growth(self) -> float:
        """Power of the distance from the minimum with which the risk grows; infinite where it is straight."""

    def estimator(self, **given: Any) -> Any:
        """Return an estimator."""

    def targets(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the targets of a table from the first feature."""

    def losses(self, raw: np.ndarray, scores: np.ndarray, n_samples: int) -> np.ndarray:
        """Return the expected losses given rows, up to a constant, in the population of tables of a size."""


class Signs(NamedTuple):
    """Labels are signs of the first feature, and the loss is the hinge; more wrong signs make a smaller signal.

    Parameters
    ----------
    signal : float or None
        One half less the share of wrong signs; None for as much as the least possible excess risk of a table of this size.
    growth : float
        As `Population` has it.
    """

    signal: float | None
    growth: float

    def estimator(self, **given: Any) -> Any:
        """Return a support vector machine."""
        return DPLinearSVC(loss="hinge", classes=[0, 1], **given)

    def wrong(self, n_samples: int) -> float:
        """Share of wrong signs."""
        return 0.5 - (rate([n_samples])[0] if self.signal is None else self.signal)

    def targets(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw signs."""
        return ((scores > 0) ^ (rng.random(scores.size) < self.wrong(scores.size))).astype(int)

    def losses(self, raw: np.ndarray, scores: np.ndarray, n_samples: int) -> np.ndarray:
        """Return expected hinges."""
        margins, wrong = np.where(scores > 0, raw, -raw), self.wrong(n_samples)
        return (1 - wrong) * np.maximum(1 - margins, 0.0) + wrong * np.maximum(1 + margins, 0.0)


class Numbers(NamedTuple):
    r"""The first feature and noise with a density in proportion to :math:`|u|^{m-2}` on [-1, 1], and the absolute error.

    An error e of a prediction costs :math:`|e|^m / m` up to 1.

    Parameters
    ----------
    growth : float
        The power m, at least 2; with 2 the noise is uniform.
    """

    growth: float

    def estimator(self, **given: Any) -> Any:
        """Return a regressor of the median."""
        return DPQuantileRegressor(target_bounds=(-2, 2), **given)

    def targets(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw noise, and add it."""
        noise = rng.random(scores.size) ** (1 / (self.growth - 1))
        return scores + np.where(rng.random(scores.size) < 0.5, noise, -noise)

    def losses(self, raw: np.ndarray, scores: np.ndarray, n_samples: int) -> np.ndarray:
        """Return expected absolute errors, less that of the noise."""
        far = np.abs(raw - scores)
        return np.minimum(far, 1.0) ** self.growth / self.growth + np.maximum(far - 1, 0.0)


POPULATIONS: dict[str, Population] = {
    "hinge": Signs(0.4, 2.0),
    "absolute error": Numbers(2.0),
    "absolute error, flat": Numbers(4.0),
    "hinge, faint": Signs(None, math.inf),
}


def draw_records(population: Population, n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the sphere and their targets."""
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
    for name, n_samples in itertools.product(POPULATIONS, sizes):
        tasks = [
            delayed(fit)(POPULATIONS[name], solver, n_samples, seed) for solver in SOLVERS.values() for seed in range(repeats)
        ]
        fits = np.array(Parallel(jobs)(tasks)).reshape(len(SOLVERS), repeats, 2)
        for solver, (excess, counts) in zip(SOLVERS, fits.transpose(0, 2, 1), strict=True):
            about = {"population": name, "solver": solver, "n_samples": n_samples, "gradients": float(counts[0])}
            records.append(about | {"excess": excess.tolist()})
            print(f"{name} {solver} n={n_samples}: {np.median(excess):.3g}", flush=True)
    settings = {"epsilon": EPSILON, "adjacency": ADJACENCY, "repeats": repeats, "n_features": N_FEATURES, "delta": "1 / n**2"}
    return {"settings": settings, "records": records}


def fit(population: Population, solver: Any, n_samples: int, seed: int) -> tuple[float, float]:
    """Excess risk of one private fit, and how many gradients it evaluates."""
    public = {"epsilon": EPSILON, "adjacency": ADJACENCY, "data_norm": 1.0, "fit_intercept": False, "alpha": 0.0}
    with noise_of(seed):
        model = population.estimator(solver=solver, **public).fit(*draw_records(population, n_samples, seed))
    return excess_risk(population, np.ravel(model.coef_), n_samples), gradients(model.privacy_report_, n_samples)


def gradients(report: Any, n_samples: int) -> float:
    """Expected number of evaluated gradients of single records; a single pass stops after half of the records."""
    counts = [0.5 if line.mechanism == "SinglePass" else line.count * line.sampling_rate for line in report.releases]
    return n_samples * sum(counts)


def excess_risk(population: Population, coef: np.ndarray, n_samples: int) -> float:
    """Return the expected loss of a model minus that of the best one."""
    return risk(population, coef[0], float(np.linalg.norm(coef[1:])), n_samples) - least_risk(population, n_samples)


@cache
def least_risk(population: Population, n_samples: int) -> float:
    """Expected loss of the best model, which is some multiple of the first feature."""
    return float(minimize_scalar(lambda w: risk(population, w, 0.0, n_samples), bounds=(0, 100), method="bounded").fun)


def risk(population: Population, along: float, across: float, n_samples: int) -> float:
    """Return the expected loss, up to a constant, of coefficients along the first feature and orthogonal to it."""
    first, second = plane()
    return float(population.losses(along * first + across * second, first, n_samples).mean())


@cache
def plane(n_radii: int = 100, n_angles: int = 720) -> tuple[np.ndarray, np.ndarray]:
    """Two features of rows on the sphere, as points of equal weight: squared radii are beta (1, d / 2 - 1), angles uniform."""
    shares = (np.arange(n_radii) + 0.5) / n_radii
    radii = np.sqrt(1 - (1 - shares) ** (2 / (N_FEATURES - 2)))
    angles = 2 * np.pi * (np.arange(n_angles) + 0.5) / n_angles
    return np.outer(radii, np.cos(angles)).ravel(), np.outer(radii, np.sin(angles)).ravel()


def rate(n_samples: Any, once: bool = False) -> np.ndarray:
    """Return what the excess is proportional to, for the hardest problem.

    Parameters
    ----------
    n_samples : list of int
        Sizes.
    once : bool, default=False
        Whether every record is used once, in place of the least possible excess.

    Returns
    -------
    ndarray
        ``1 / sqrt(n) + sqrt(d) / (mu n)``, or the root of the second term in its place.
    """
    noise = np.array([math.sqrt(N_FEATURES) / (n * gaussian_mu(EPSILON, max(1 / n**2, 1e-11))) for n in n_samples])
    return np.asarray(n_samples, dtype=float) ** -0.5 + (np.sqrt(noise) if once else noise)


def theory(name: str, solver: str, sizes: Any) -> np.ndarray:
    """Return what the excess of a solver should be proportional to."""
    growth = POPULATIONS[name].growth
    return rate(sizes, solver == ONCE) ** (1.0 if growth == math.inf else growth / (growth - 1))


def slope(sizes: Any, values: Any) -> float:
    """Return the power of n that values follow; NaN for fewer than two values."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def slope_error(sizes: Any, excesses: np.ndarray) -> float:
    """Standard error of the power of medians, by the bootstrap over fits; a line per size."""
    n_sizes, repeats = excesses.shape
    drawn = np.random.default_rng(0).integers(repeats, size=(RESAMPLES, n_sizes, repeats))
    medians = np.median(excesses[np.arange(n_sizes)[:, None], drawn], axis=2)
    return float(np.std(np.polyfit(np.log(sizes), np.log(medians.T), 1)[0]))


def untrained(name: str, sizes: Any) -> list[float]:
    """Return the excess risk of coefficients that are 0, by size."""
    return [excess_risk(POPULATIONS[name], np.zeros(N_FEATURES), size) for size in sizes]


class Curve(NamedTuple):
    """Hold the measurements of one solver on one population, by size."""

    name: str
    solver: str
    sizes: list[int]
    gradients: list[float]
    excesses: np.ndarray

    @property
    def medians(self) -> np.ndarray:
        """Median excess risks."""
        return np.median(self.excesses, axis=1)

    @property
    def powers(self) -> str:
        """Power of n and its standard error."""
        return f"{slope(self.sizes, self.medians):.2f} ± {slope_error(self.sizes, self.excesses):.2f}"

    @property
    def expected(self) -> str:
        """Power of n in theory."""
        return f"{slope(self.sizes, theory(self.name, self.solver, self.sizes)):.2f}"


def curves(records: list[dict[str, Any]]) -> list[Curve]:
    """Records by population and solver."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault((record["population"], record["solver"]), []).append(record)
    return [
        Curve(*key, [r["n_samples"] for r in group], [r["gradients"] for r in group], np.array([r["excess"] for r in group]))
        for key, group in found.items()
    ]


def markdown(contents: dict[str, Any]) -> str:
    """Return a table of excess risks, and one of evaluated gradients.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.

    Returns
    -------
    str
        Markdown.
    """
    found = curves(contents["records"])
    sizes = [f"n = {size:.3g}" for size in found[0].sizes]
    heads = ["population", "solver", *sizes, "power", "theory"]
    lines = [ABOUT.format(**contents["settings"]), row(heads), row(["---"] * len(heads))]
    for name in dict.fromkeys(curve.name for curve in found):
        lines.append(row([name, "coefficients 0", *(f"{value:.2g}" for value in untrained(name, found[0].sizes)), "", ""]))
        for curve in (curve for curve in found if curve.name == name):
            lines.append(row([name, curve.solver, *(f"{value:.2g}" for value in curve.medians), curve.powers, curve.expected]))
    heads = ["solver", *sizes, "power"]
    lines += ["", "Gradients of single records that a fit evaluates, expected; on all populations.", "", row(heads)]
    lines.append(row(["---"] * len(heads)))
    for solver, counts in dict.fromkeys((curve.solver, tuple(curve.gradients)) for curve in found):
        lines.append(row([solver, *(f"{count:.2g}" for count in counts), f"{slope(found[0].sizes, counts):.2f}"]))
    return "\n".join(lines)


def draw(contents: dict[str, Any], path: Path) -> None:
    """Plot a row per population: excess against size beside what theory expects, and against evaluated gradients.

    Parameters
    ----------
    contents : dict
        As `measure` returned it.
    path : Path
        PNG file.
    """
    found = curves(contents["records"])
    names = list(dict.fromkeys(curve.name for curve in found))
    page = figure(figsize=(9, 2.9 * len(names)))
    if page is None:
        return
    grid = page.subplots(len(names), 2, squeeze=False, sharey="row")
    for (left, right), name in zip(grid, names, strict=True):
        left.plot(
            found[0].sizes, untrained(name, found[0].sizes), color="#999999", linestyle="--", linewidth=1, label="coefficients 0"
        )
        for number, curve in enumerate(curve for curve in found if curve.name == name):
            draw_curve(left, right, curve, f"C{number}")
        for axes in (left, right):
            axes.set(xscale="log", yscale="log", title=name)
            axes.grid(alpha=0.25)
        left.set(xlabel="training records n", ylabel="excess risk")
        right.set(xlabel="gradients evaluated")
        left.set_ylim(bottom=left.get_ylim()[0] / 40)  # room for the legend
        left.legend(frameon=False, fontsize=8, loc="lower left", title="solver: power of n (dotted: theory)", title_fontsize=8)
    page.savefig(path, dpi=100)


def draw_curve(left: Any, right: Any, curve: Curve, color: str) -> None:
    """Plot one solver against size, with what theory expects through the first point, and against gradients."""
    low, middle, high = np.quantile(curve.excesses, (0.25, 0.5, 0.75), axis=1)
    expected = theory(curve.name, curve.solver, curve.sizes)
    label = f"{curve.solver}: {curve.powers} ({curve.expected})"
    for axes, across in ((left, curve.sizes), (right, curve.gradients)):
        axes.fill_between(across, low, high, alpha=0.15, color=color, linewidth=0)
        axes.plot(across, middle, marker="o", markersize=4, color=color, label=label)
    left.plot(curve.sizes, middle[0] * expected / expected[0], color=color, linestyle=":", linewidth=1)
