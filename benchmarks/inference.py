"""Measure the coverage, width and test size of confidence intervals over fresh samples and fresh noise."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from scipy.stats import beta

from benchmarks.writing import made_with, row, write_json
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.solvers import InferenceDescent

__all__ = ["DESIGNS", "DEVELOPMENT", "FAMILIES", "cell", "measure"]

FAMILIES = ("linear", "logistic")
# Designs on which the constants of the solver were chosen.
DEVELOPMENT = ("independent", "correlated", "collinear", "categories", "all levels")
# Standard deviation of the part of a target or of log-odds that the features explain, and of errors of a target.
SIGNAL, ERROR = {"linear": 0.3, "logistic": 1.3}, 0.2
# Records whose predictions are covered or not.
N_PREDICTED = 5
# Least share of the fits in which a coefficient is estimable, for its own coverage to be judged: fewer say nothing.
LEAST_JUDGED = 0.3
LEVEL = 0.95
ABOUT = """\
Fresh samples and fresh noise in each of {repeats} repetitions, n = {n}, `{adjacency}`, delta = 1 / n², `inference=True`{robust}.
The constants of the solver were chosen on {development} with other seeds and n = 5000,
but for two limits of classifiers: cells with 20 columns at epsilon .5, of a first run with seed 7, set that on the noise of the
bread; and cells of seed 7 with independent columns (5 at epsilon 1, 20 at 3) were among those that set that on the steps.

- **coverage**: share of the 95 % intervals that hold the true coefficient, over all coefficients and repetitions in which they
  are estimable; **lowest**: of the single coefficient, of those that are estimable in at least 30 % of the repetitions, with the
  lowest share; **chance**: the share that the lowest of as many intervals of exactly 95 % would have with a probability of 1 %.
- **estimable**: share of coefficients and repetitions; the others have infinite intervals. **missed**: share of all repetitions
  in which the interval of a coefficient is finite and does not hold it, of the coefficient with the most.
- **width**: median of the width over 2 · 1.96 standard deviations of the estimates; 1 is ideal. **private**: over the width of
  the interval without privacy, of least squares or maximum likelihood.
- **size**: share of tests at the 5 % level that reject the true hypothesis that the last coefficient is 0.
- **predictions**: coverage of the intervals of five fixed records, and that of the lowest.
"""


def independent(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return independent normal columns."""
    return rng.normal(size=(n, d))


def correlated(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return normal columns with equal correlations of .9."""
    return np.sqrt(0.9) * rng.normal(size=(n, 1)) + np.sqrt(0.1) * rng.normal(size=(n, d))


def collinear(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return a pair with correlation .989, two or more levels of a category, and normal columns."""
    X, levels = rng.normal(size=(n, d)), max(2, d // 4)
    X[:, 1] = X[:, 0] + 0.15 * X[:, 1]
    X[:, 2 : 2 + levels] = 3 * (rng.integers(0, levels + 1, n)[:, None] == np.arange(levels))
    return X


def lognormal(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return skewed columns, cut at six times their median."""
    return np.minimum(rng.lognormal(0, 0.8, (n, d)), 6.0) / 2


def categories(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return levels of one category, the reference left out, with frequencies that fall from one to the next."""
    odds = 0.85 ** np.arange(d + 1)
    return 3.0 * (rng.choice(d + 1, n, p=odds / odds.sum())[:, None] == np.arange(d))


def all_levels(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return all levels of one category beside half of the columns: they add up to one, so nothing identifies them."""
    X = rng.normal(size=(n, d))
    half = d // 2 + 1
    X[:, :half] = 3 * (rng.integers(0, half, n)[:, None] == np.arange(half))
    return X


def two_categories(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return normal columns, the first of which goes with both of two categories, and all levels of these but the first."""
    X = rng.normal(size=(n, d))
    for levels, places in blocks(d):
        odds = 0.7 ** np.arange(levels)
        chosen = np.argmax(np.log(odds) + rng.gumbel(size=(n, levels)) + 0.3 * X[:, [0]] * np.arange(levels), axis=1)
        X[:, places] = 3 * (chosen[:, None] == np.arange(1, levels))
    return X


def blocks(d: int) -> list[tuple[int, slice]]:
    """Return the number of levels and the columns of two categories among d columns, the last ones."""
    first, second = max(1, d // 4), max(1, d // 3)
    return [(first + 1, slice(d - first - second, d - second)), (second + 1, slice(d - second, d))]


def as_frame(X: np.ndarray) -> tuple[Any, dict[str, Any]]:
    """Return the data frame and the schema whose treatment coding is X of the design "schema"."""
    import pandas as pd

    d = X.shape[1]
    names = [f"x{j}" for j in range(blocks(d)[0][1].start)]
    frame = pd.DataFrame(X[:, : len(names)], columns=names)
    columns: dict[str, Any] = {name: {"kind": "number", "bounds": [-1, 1]} for name in names}
    for k, (levels, places) in enumerate(blocks(d)):
        labels = [f"level {level:02d}" for level in range(levels)]
        frame[f"c{k}"] = np.array(labels)[(X[:, places] @ np.arange(1, levels)).astype(int)]
        columns[f"c{k}"] = {"kind": "category", "categories": labels}
    return frame, {"columns": columns}


# Columns, in units in which 3 is the largest absolute value.
DESIGNS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "independent": independent,
    "correlated": correlated,
    "collinear": collinear,
    "uneven errors": independent,
    "heavy errors": independent,
    "lognormal": lognormal,
    "categories": categories,
    "all levels": all_levels,
    "schema": two_categories,
}


def measure(
    families: list[str], designs: list[str], sizes: dict[str, Any], repeats: int, robust: bool, jobs: int | None, out: Path
) -> None:
    """Measure; write ``inference.json`` and ``inference.md``.

    Parameters
    ----------
    families, designs : list of str
        Out of ``FAMILIES`` and ``DESIGNS``.
    sizes : dict
        The keys n, columns, epsilons, adjacency and seed; columns and epsilons are lists.
    repeats : int
        Samples and fits per cell.
    robust : bool
        Whether the fits release the meat.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    """
    records: list[dict[str, Any]] = []
    settings = {**sizes, "repeats": repeats, "robust": robust}
    for family in families:
        for design in designs:
            if family == "logistic" and design.endswith("errors"):
                continue
            for d in sizes["columns"]:
                for epsilon in sizes["epsilons"]:
                    about = {"family": family, "design": design, "d": d, "epsilon": epsilon}
                    records.append(about | cell(about, sizes, repeats, robust, jobs))
                    print(records[-1], flush=True)
                    write_json({**made_with(), "settings": settings, "records": records}, out / "inference.json")
                    (out / "inference.md").write_text(markdown(records, settings), encoding="utf-8")


def cell(about: dict[str, Any], sizes: dict[str, Any], repeats: int, robust: bool, jobs: int | None) -> dict[str, Any]:
    """Return the measures of one cell; the share of refused fits alone if most fits are refused."""
    calls = (delayed(once)(about, sizes, robust, seed) for seed in range(repeats))
    found = [each for each in Parallel(n_jobs=jobs)(calls) if each is not None]
    if len(found) < 2:
        return {"refused": 1 - len(found) / repeats}
    each = {key: np.array([one[key] for one in found]) for key in found[0]}
    known, held = each["estimable"], each["held"] & each["estimable"]
    times = known.sum(axis=0)
    judged = times >= LEAST_JUDGED * len(found)
    shares = held.sum(axis=0)[judged] / np.maximum(times[judged], 1)
    spread = np.array([np.std(each["estimate"][known[:, j], j]) if times[j] > 1 else np.nan for j in range(known.shape[1])])
    ratios = (each["width"] / (2 * 1.96 * spread))[known & (times > 1)]
    predicted = each["predicted"].mean(axis=0)
    return {
        "refused": 1 - len(found) / repeats,
        "coverage": float(held.sum() / max(times.sum(), 1)) if times.any() else None,
        "lowest": float(shares.min()) if judged.any() else None,
        "chance": chance(times[judged]) if judged.any() else None,
        "estimable": float(known.mean()),
        "missed": float(((known & ~each["held"]).sum(axis=0) / len(found)).max()),
        "width": float(np.median(ratios)) if ratios.size else None,
        "private": float(np.median((each["width"] / each["not private"])[known])) if known.any() else None,
        "size": float((each["rejected"][:, 0] & known[:, -2]).sum() / known[:, -2].sum()) if times[-2] else None,
        "predictions": float(predicted.mean()),
        "lowest prediction": float(predicted.min()),
    }


def chance(times: np.ndarray) -> float:
    """Return the lowest share of successes of probability .95, in these numbers of trials, at its quantile of 1 %."""
    trials = int(np.median(times))
    one = 1 - 0.99 ** (1 / len(times))
    grid = np.arange(trials + 1)
    below = beta.cdf(1 - LEVEL, trials - grid, grid + 1)  # probability of at most so many successes
    return float(grid[np.searchsorted(below[:-1], one)] / trials) if trials else 0.0


def once(about: dict[str, Any], sizes: dict[str, Any], robust: bool, seed: int) -> dict[str, Any] | None:
    """Return what one sample and one fit show; None if the fit is refused."""
    family, design, n, d = about["family"], about["design"], sizes["n"], about["d"]
    fixed = np.random.default_rng([sizes["seed"], d, list(DESIGNS).index(design)])
    some = columns_of(design, 20_000, d, fixed)
    coef = fixed.normal(size=d) * (np.arange(d) < d - 1)
    middle = some @ coef
    coef *= SIGNAL[family] / middle.std()
    constant = -float((some @ coef).mean()) + (0.0 if family == "linear" else -0.4)
    points = some[:N_PREDICTED]
    rng = np.random.default_rng([sizes["seed"], seed, d, list(DESIGNS).index(design)])
    X = columns_of(design, n, d, rng)
    raw = X @ coef + constant
    given: dict[str, Any] = {"delta": 1 / n**2, "adjacency": sizes["adjacency"], "feature_bounds": 1.0}
    table, new = X, points
    if design == "schema":
        table, given["schema"] = as_frame(X)
        given["feature_bounds"], new = None, as_frame(points)[0]
    solver: Any = InferenceDescent(robust=True) if robust else "auto"
    if family == "linear":
        model: Any = DPLinearRegression(about["epsilon"], target_bounds=(-2, 2), inference=True, solver=solver, **given)
        y = np.clip(raw + errors_of(design, X, rng), -2, 2)
    else:
        model = DPLogisticRegression(about["epsilon"], classes=[0, 1], inference=True, solver=solver, **given)
        y = (rng.random(n) < expit(raw)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(table, y)
        except ValueError:
            return None
        found = model.contrast(np.eye(d + 1))
        ends = model.predict_interval(new)
    truth, wanted = np.append(coef, constant), points @ coef + constant
    wanted = wanted if family == "linear" else expit(wanted)
    return {
        "estimable": found.estimable,
        "held": (found.lower <= truth) & (truth <= found.upper),
        "estimate": found.estimate,
        "width": found.upper - found.lower,
        "not private": 2 * 1.96 * not_private(family, X, y),
        "rejected": found.pvalue[[d - 1]] < 1 - LEVEL,
        "predicted": (ends[:, 0] <= wanted) & (wanted <= ends[:, 1]),
    }


def columns_of(design: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of a design, within [-1, 1]."""
    return np.clip(DESIGNS[design](n, d, rng), -3, 3) / 3


def errors_of(design: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return errors of a target."""
    if design == "heavy errors":
        return ERROR / np.sqrt(3) * rng.standard_t(3, len(X))
    size = 0.4 + 1.8 * np.abs(X[:, 0]) if design == "uneven errors" else 1.0
    return np.asarray(ERROR * size * rng.normal(size=len(X)))


def not_private(family: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return standard errors of least squares, or of maximum likelihood."""
    Z = np.column_stack([X, np.ones(len(X))])
    if family == "linear":
        coef = np.linalg.lstsq(Z, y, rcond=None)[0]
        variance = np.square(y - Z @ coef).sum() / (len(Z) - Z.shape[1])
        return np.sqrt(variance * np.diag(np.linalg.pinv(Z.T @ Z)))
    coef = np.zeros(Z.shape[1])
    for _ in range(15):
        p = expit(Z @ coef)
        coef += np.linalg.lstsq(Z.T @ (Z * (p * (1 - p))[:, None]), Z.T @ (y - p), rcond=None)[0]
    return np.sqrt(np.diag(np.linalg.pinv(Z.T @ (Z * (p * (1 - p))[:, None]))))


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the page."""
    robust = ", with `InferenceDescent(robust=True)`" if settings["robust"] else ""
    about = ABOUT.format(development=", ".join(DEVELOPMENT), **{**settings, "robust": robust})
    measures = ["coverage", "lowest", "chance", "estimable", "missed", "width", "private", "size", "predictions"]
    measures.append("lowest prediction")
    lines = [row(heads := ["family", "design", "d", "epsilon", *measures]), row(["---"] * len(heads))]
    for record in records:
        cells = [record["family"], record["design"], str(record["d"]), f"{record['epsilon']:g}"]
        values = [record.get(name) for name in measures]
        shown = ["-" if value is None else f"{value:.3f}" for value in values]
        if record["refused"] == 1:
            shown[0] = "refused before the fit"
        lines.append(row([*cells, *shown]))
    return "\n".join(["# Coverage of confidence intervals", "", about, *lines]) + "\n"
