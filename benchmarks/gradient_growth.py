r"""Count gradient evaluations up to a gap as the table grows, for full-data gradient descent and variance reduction.

A gradient of all records counts as n evaluations, a difference on a sample of rate q as 2 q n. Records are those of a logistic
model in ten features on which ``data_norm=1`` clips next to nothing.

Without noise, the gap is a fixed one, and variance reduction has the schedules of the theorems (samples of one record). Under
privacy a fixed gap is out of reach on small tables and idle on large ones. There it is a multiple of what noise alone leaves, and
variance reduction has our defaults, but for the number of epochs. With the Hessian H of the objective at its minimum, C the
largest norm of a gradient and s = mu n / k, noise alone leaves

.. math:: \frac{C^2}{2 s^2} \operatorname{tr} H^{-1}:

the gap after one Newton step from the minimum, on a gradient released there with the whole budget. It is of the order of the
theorem's excess, and no solver's.
"""

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit

from benchmarks.noise import noise_of
from benchmarks.nonsmooth_rates import slope
from benchmarks.synthetic import Population
from benchmarks.writing import row
from skdp import DPLogisticRegression, NotPrivateWarning, WeakPrivacyWarning
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import SVRG, GradientDescent, Solver, SVRGPlusPlus

__all__ = ["CASES", "Case", "grow", "growth_table", "minimum", "objective", "passes", "reached"]

SIZES = tuple(round(10 ** (exponent / 2)) for exponent in range(6, 13))
POPULATION = Population("normal", 10)
DELTA, ADJACENCY = 1e-3, "replace_one"
FIXED, MULTIPLE = 1e-4, 5.0  # gap without noise; gap under privacy, divided by the gap that noise alone leaves
IDLE = 0.5  # share of the initial gap: if noise alone leaves more, no gap can be reached
STEPS, PLAIN_STEPS = (5, 10, 20, 40, 80, 160), (10, 40, 160, 640)
EPOCHS, DOUBLING_EPOCHS = (1, 2, 4, 8, 16), (1, 2, 4, 6, 8, 10)
LARGE = 30_000  # records; one fit per length on larger tables
SQUARED_NORM = 2.0  # of a row with its intercept, and of its gradient
NEWTON_STEPS, DECREMENT, ROUNDING = 100, 1e-15, 1e-16


@dataclass(frozen=True)
class Case:
    """Hold an objective and a budget.

    Parameters
    ----------
    epsilon : float
        Of the budget; ``inf`` for none.
    alpha : float
        L2 penalty.
    """

    epsilon: float
    alpha: float

    def __str__(self) -> str:
        budget = "no noise" if self.epsilon == math.inf else f"epsilon {self.epsilon:g}"
        return f"{budget}, lambda {self.alpha:g}"


CASES = (Case(math.inf, 0.01), Case(1.0, 0.01), Case(1.0, 0.0))


def ladders(case: Case) -> dict[str, tuple[Solver, ...]]:
    """Solvers of growing lengths."""
    found: dict[str, tuple[Solver, ...]] = {
        "gd": tuple(GradientDescent(n_steps) for n_steps in STEPS),
        "gd without momentum": tuple(GradientDescent(n_steps, momentum=0.0) for n_steps in PLAIN_STEPS),
    }
    if case.epsilon == math.inf:
        found["svrg"] = tuple(SVRG(n_epochs, theorem=True) for n_epochs in (1, 2))
        found["svrg++"] = tuple(SVRGPlusPlus(n_epochs, theorem=True) for n_epochs in (6, 8, 9))
    else:
        found["svrg"] = tuple(SVRG(n_epochs) for n_epochs in EPOCHS)
        found["svrg++"] = tuple(SVRGPlusPlus(n_epochs) for n_epochs in DOUBLING_EPOCHS)
    return found


def grow(sizes: Sequence[int], repeats: int, jobs: int | None) -> list[dict[str, Any]]:
    """Measure gaps for growing tables and lengths.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of records.
    repeats : int
        Fits per length; one on large tables, and where there is no noise.
    jobs : int or None
        Processes.

    Returns
    -------
    list of dict
        A record per case, solver, size and length.
    """
    cells = itertools.product(sorted(sizes, reverse=True), CASES)
    tasks = [delayed(curve)(case, solver, size, repeats) for size, case in cells for solver in ladders(case)]
    found = [record for records in Parallel(jobs)(tasks) for record in records]
    return sorted(found, key=lambda record: record["n_samples"])


def curve(case: Case, solver: str, n_samples: int, repeats: int) -> list[dict[str, Any]]:
    """Passes and mean gaps of one solver at growing lengths, and the gap to be reached."""
    X, y = POPULATION.draw(n_samples, 0)
    w = minimum(X, y, case.alpha)
    least, wanted = objective(X, y, w, case.alpha), target(X, y, w, case)
    seeds, found = range(1 if case.epsilon == math.inf or n_samples > LARGE else repeats), []
    for length in ladders(case)[solver]:
        with warnings.catch_warnings():
            for idle in (NotPrivateWarning, WeakPrivacyWarning):
                warnings.simplefilter("ignore", idle)
            fits = [fitted(case, length, seed, X, y) for seed in seeds]
        gaps = [objective(X, y, weights(model), case.alpha) - least for model in fits]
        about = {"epsilon": str(case.epsilon), "alpha": case.alpha, "solver": solver, "n_samples": n_samples, "target": wanted}
        found.append(about | {"length": repr(length), "passes": passes(fits[0].privacy_report_), "gap": float(np.mean(gaps))})
    print(f"{case}, {solver}, n={n_samples}: {min(record['gap'] for record in found):.2g}, wanted {wanted:.2g}", flush=True)
    return found


def target(X: np.ndarray, y: np.ndarray, w: np.ndarray, case: Case) -> float:
    """Return the gap to be reached; 0 where noise alone leaves too much for any.

    Parameters
    ----------
    X, y, w
        As for `objective`; the minimum.
    case : Case
        Penalty and budget.

    Returns
    -------
    float
        Fixed without noise.
    """
    if case.epsilon == math.inf:
        return FIXED
    signal = len(y) * gaussian_mu(case.epsilon, DELTA) / 2
    wanted = MULTIPLE * SQUARED_NORM / (2 * signal**2) * float(np.trace(np.linalg.pinv(hessian(X, w, case.alpha))))
    start = objective(X, y, np.zeros_like(w), case.alpha) - objective(X, y, w, case.alpha)
    return wanted if wanted < IDLE * start else 0.0


def fitted(case: Case, solver: Solver, seed: int, X: np.ndarray, y: np.ndarray) -> DPLogisticRegression:
    """A fit with the noise of a seed."""
    with noise_of(seed):
        return estimator(case, solver).fit(X, y)


def estimator(case: Case, solver: Solver) -> DPLogisticRegression:
    """Return a logistic regression with a budget and a solver; the rest is the default."""
    given = {"delta": DELTA, "adjacency": ADJACENCY, "alpha": case.alpha, "data_norm": 1.0}
    return DPLogisticRegression(case.epsilon, solver=solver, **given)


def weights(model: Any) -> np.ndarray:
    """Return the coefficients, followed by the intercept."""
    return np.append(model.coef_, model.intercept_)


def objective(X: np.ndarray, y: np.ndarray, w: np.ndarray, alpha: float) -> float:
    """Return the mean logistic loss and the penalty.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Records.
    y : ndarray of shape (n_samples,)
        Labels 0 and 1.
    w : ndarray of shape (n_features + 1,)
        Coefficients, and the intercept, which is not penalised.
    alpha : float
        L2 penalty.

    Returns
    -------
    float
        What is minimised.
    """
    raw = X @ w[:-1] + w[-1]
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -raw, raw))) + alpha / 2 * w[:-1] @ w[:-1])


def minimum(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """Return where the objective is least, by Newton steps that are halved until they descend.

    Parameters
    ----------
    X, y, alpha
        As for `objective`.

    Returns
    -------
    ndarray of shape (n_features + 1,)
        Coefficients and intercept; the shortest step where columns depend on each other.
    """
    w, penalty = np.zeros(X.shape[1] + 1), np.append(np.full(X.shape[1], alpha), 0.0)
    for _ in range(NEWTON_STEPS):
        error = expit(X @ w[:-1] + w[-1]) - y
        slopes = np.append(error @ X, error.sum()) / len(y) + penalty * w
        step = np.linalg.lstsq(hessian(X, w, alpha), slopes, rcond=1e-12)[0]
        if slopes @ step < DECREMENT:
            break
        before = objective(X, y, w, alpha)
        while objective(X, y, w - step, alpha) > before:
            step /= 2
        w = w - step
    return w


def hessian(X: np.ndarray, w: np.ndarray, alpha: float) -> np.ndarray:
    """Second derivatives of the objective."""
    chance = expit(X @ w[:-1] + w[-1])
    curvature = chance * (1 - chance)
    weighted = X.T * curvature
    side = weighted.sum(axis=1)
    whole = np.block([[weighted @ X, side[:, None]], [side, curvature.sum()]]) / len(chance)
    return whole + np.diag(np.append(np.full(X.shape[1], alpha), 0.0))


def passes(report: PrivacyReport) -> float:
    """Return evaluated gradients over the number of records, expected.

    Parameters
    ----------
    report : PrivacyReport
        Of a fit or a plan.

    Returns
    -------
    float
        A difference takes two gradients of every record that is drawn.
    """
    return sum((1 + (line.query == "Difference")) * line.count * line.sampling_rate for line in report.releases)


def needed(points: Sequence[tuple[float, float]], gap: float) -> float:
    """Return the fewest passes from which on a curve is down at a gap, interpolated in logarithms.

    Parameters
    ----------
    points : sequence of (float, float)
        Passes and gaps.
    gap : float
        Where to.

    Returns
    -------
    float
        Infinite where the longest is not there.
    """
    points = sorted(points)
    if not points or points[-1][1] > gap:
        return math.inf
    for (left, above), (right, below) in reversed(list(itertools.pairwise(points))):
        if above > gap:
            share = math.log(above / gap) / math.log(above / max(below, ROUNDING))
            return math.exp(math.log(left) + share * math.log(right / left))
    return points[0][0]


def reached(records: list[dict[str, Any]], case: Case) -> dict[str, tuple[list[int], list[float]]]:
    """Return the evaluations that each solver needs.

    Parameters
    ----------
    records : list of dict
        As `grow` returned them.
    case : Case
        Which of them.

    Returns
    -------
    dict
        By solver: numbers of records, and evaluations, where the gap is reached.
    """
    chosen = [record for record in records if (float(record["epsilon"]), record["alpha"]) == (case.epsilon, case.alpha)]
    found: dict[str, tuple[list[int], list[float]]] = {record["solver"]: ([], []) for record in chosen}
    for size in sorted({record["n_samples"] for record in chosen}):
        here = [record for record in chosen if record["n_samples"] == size]
        gap = here[0]["target"]
        for solver, (sizes, evaluations) in found.items():
            took = needed([(record["passes"], record["gap"]) for record in here if record["solver"] == solver], gap)
            if math.isfinite(took):
                sizes.append(size)
                evaluations.append(took * size)
    return found


def theory(solver: str, case: Case, n_samples: int) -> float:
    """Return what the worst-case number of evaluations is proportional to.

    Parameters
    ----------
    solver : str
        Its name.
    case : Case
        Penalty and budget.
    n_samples : int
        Number of records.

    Returns
    -------
    float
        From the lengths of Theorems 4.2 and 4.4 and the rates of gradient descent; NaN where there is no theorem.
    """
    size, smoothness = POPULATION.n_features + 1, SQUARED_NORM / 4
    noiseless = case.epsilon == math.inf
    accuracy = 0.0 if noiseless else n_samples * gaussian_mu(case.epsilon, DELTA) / 2 / math.sqrt(size * SQUARED_NORM)
    halvings = math.log2(math.log(2) / FIXED) if noiseless else math.log2(max(accuracy, 2.0))
    if solver == "svrg++":
        return n_samples * halvings + 2 * 13 * smoothness * 2**halvings
    if not case.alpha:
        return n_samples * accuracy if solver.startswith("gd") else math.nan
    halvings = halvings if noiseless else math.log2(max(accuracy**2 * case.alpha, 2.0))
    return (n_samples + (2 * 200 * smoothness / case.alpha if solver == "svrg" else 0.0)) * halvings


def growth_table(records: list[dict[str, Any]]) -> str:
    """Return a line per case and solver.

    Parameters
    ----------
    records : list of dict
        As `grow` returned them.

    Returns
    -------
    str
        Markdown.
    """
    sizes = sorted({record["n_samples"] for record in records})
    heads = ["case", "solver", *(f"n = {size:.3g}" for size in sizes), "power", "power of the theory"]
    lines = [row(heads), row(["---"] * len(heads))]
    for case in CASES:
        for solver, (found, evaluations) in reached(records, case).items():
            cells = dict(zip(found, (f"{value:.2g}" for value in evaluations), strict=True))
            worst = slope(found, [theory(solver, case, size) for size in found])
            powers = [f"{value:.2f}" if math.isfinite(value) else "-" for value in (slope(found, evaluations), worst)]
            lines.append(row([str(case), solver, *(cells.get(size, "-") for size in sizes), *powers]))
    return "\n".join(lines)
