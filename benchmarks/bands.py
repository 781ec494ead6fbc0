"""Measure the coverage and the width of the bands of additive and boosted models, over refits of records or over fresh ones."""

import functools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit

from benchmarks.noise import noise_of
from benchmarks.writing import made_with, row, write_json
from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPGradientBoostingClassifier, DPGradientBoostingRegressor

__all__ = ["MODELS", "cell", "measure", "table"]

MODELS = {
    "additive regressor": DPAdditiveRegressor,
    "additive classifier": DPAdditiveClassifier,
    "boosted regressor": DPGradientBoostingRegressor,
    "boosted classifier": DPGradientBoostingClassifier,
    "inferred additive regressor": functools.partial(DPAdditiveRegressor, inference=True),
    "inferred additive classifier": functools.partial(DPAdditiveClassifier, inference=True),
}
SAME = " of the same records"  # the same models, refitted
MODELS |= {f"{name}{SAME}": model for name, model in MODELS.items() if name.startswith("inferred")}
SIGNAL = 0.3  # of the targets by the sum of the functions, with errors of .2
SLOPE = 1.5  # of the log-odds of the classes by the sum of the functions
# What the columns add, and where the confidence bands are looked at: quantiles of a column.
EFFECTS = (lambda x: np.sin(3 * x), np.square, lambda x: 0.8 * x, np.zeros_like)
LEVELS = np.linspace(0.06, 0.94, 23)
TESTED = 0.05  # level of a test
ABOUT = """\
Noise bands of the curves of `shape_functions_`, over {repeats} fits of the same records with fresh noise: 4 numbers, of which two
have a correlation of {correlation:g} and one has no effect, `{adjacency}`, delta = 1 / n².

- **coverage**: share of the fits whose 95 % band holds the mean curve of all fits, over all points of all curves; **lowest**: of
  the point with the lowest share.
- **width**: median over the points of the width over 2 · 1.96 standard deviations of the curve between fits; 1 is ideal.
  **5 %, 95 %**: quantiles of the same over the points.

For models with `inference=True` the records are fresh in each fit, too, the band is the confidence band, and the curve that it
should hold is that of the population, at 23 points between the 6 % and the 94 % quantile of each column. **estimable** is the
share of points and fits with a band; the others are left out. "Of the same records" are refits with fresh noise and bands of the
noise. **size** is the share of tests at the 5 % level that reject the true hypothesis that the last column has no effect.
"""


def measure(models: list[str], sizes: dict[str, Any], repeats: int, jobs: int | None, out: Path) -> None:
    """Measure; write ``bands.json`` and ``bands.md``.

    Parameters
    ----------
    models : list of str
        Out of ``MODELS``.
    sizes : dict
        The keys n (a list), epsilons (a list), adjacency, correlation (of the first two columns) and seed.
    repeats : int
        Fits per cell.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    """
    settings, records = {**sizes, "repeats": repeats}, []
    for name in models:
        for n in sizes["n"]:
            for epsilon in sizes["epsilons"]:
                about = {"model": name, "n": n, "epsilon": epsilon}
                records.append(about | cell(about, sizes, repeats, jobs))
                print(records[-1], flush=True)
                write_json({**made_with(), "settings": settings, "records": records}, out / "bands.json")
                (out / "bands.md").write_text(markdown(records, settings), encoding="utf-8")


def cell(about: dict[str, Any], sizes: dict[str, Any], repeats: int, jobs: int | None) -> dict[str, Any]:
    """Return coverage and widths of one model, over the points of its curves."""
    inference = about["model"].startswith("inferred")
    run = inferred_curves if inference else fitted_curves
    curves = Parallel(n_jobs=jobs)(delayed(run)(about, sizes, seed) for seed in range(repeats))
    values, lower, upper, tests = (np.array(part) for part in zip(*curves, strict=True))
    known = np.isfinite(lower)
    fresh = inference and not about["model"].endswith(SAME)
    middle = np.zeros(values.shape[1]) if fresh else np.mean(values, axis=0, where=known)
    spread = np.maximum(np.std(values, axis=0, ddof=1, where=known), 1e-300)
    held, times = ((lower <= middle) & (middle <= upper) & known).sum(axis=0), known.sum(axis=0)
    widths = np.nanmedian(np.where(known, upper - lower, np.nan), axis=0) / (2 * 1.96 * spread)
    low, median, high = np.nanquantile(widths, [0.05, 0.5, 0.95])
    return {
        "coverage": float(held.sum() / times.sum()),
        "lowest": float((held / np.maximum(times, 1))[times > 0.3 * len(values)].min(initial=1.0)),
        "width": float(median),
        "5 %": float(low),
        "95 %": float(high),
        "estimable": float(known.mean()),
        "size": float(np.mean(tests[np.isfinite(tests)] < TESTED)) if np.isfinite(tests).any() else None,
    }


def fitted_curves(about: dict[str, Any], sizes: dict[str, Any], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Fit once, with the noise of a seed; return values and ends of the bands of all curves, and NaN."""
    functions = model_of(about, sizes, seed, *table_of(about, sizes, sizes["seed"])).shape_functions_.values()
    parts = [(f.values, f.lower, f.upper) for f in functions]
    values, lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, lower, upper, math.nan


def inferred_curves(about: dict[str, Any], sizes: dict[str, Any], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Fit fresh records once; return values and ends of the confidence bands at the points, less the true curves, and a p-value.

    The latter is that of the test of the last column, which has no effect. For the same records, bands are those of the noise,
    and nothing is taken off.
    """
    same = about["model"].endswith(SAME)
    model = model_of(about, sizes, seed, *table_of(about, sizes, sizes["seed"] if same else (sizes["seed"], 1 + seed)))
    functions = model.bands(kind="noise" if same else "confidence").values()
    scale = SLOPE if "classifier" in about["model"] else SIGNAL
    many, _ = table(200_000, False, sizes["correlation"], sizes["seed"])
    parts = []
    for place, (function, effect) in enumerate(zip(functions, EFFECTS, strict=True)):
        points = np.quantile(many[:, place], LEVELS)
        truth = 0.0 if same else scale * (effect(points) - effect(many[:, place]).mean())
        parts.append(
            [np.interp(points, function.grid, part) - truth for part in (function.values, function.lower, function.upper)]
        )
    values, lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = list(model.column_tests().values())
    return values, lower, upper, math.nan if same else tests[-1].pvalue


def model_of(about: dict[str, Any], sizes: dict[str, Any], seed: int, X: np.ndarray, y: np.ndarray) -> Any:
    """Return a model that is fitted with the noise of a seed."""
    given = {"feature_bounds": 1.0, "delta": 1 / about["n"] ** 2, "adjacency": sizes["adjacency"]}
    given |= (
        {"classes": [0, 1]}
        if "classifier" in about["model"]
        else {"target_bounds": (-2, 2) if about["model"].startswith("inferred") else (-1, 1)}
    )
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        return MODELS[about["model"]](about["epsilon"], **given).fit(X, y)


def table_of(about: dict[str, Any], sizes: dict[str, Any], seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of a cell."""
    return table(about["n"], "classifier" in about["model"], sizes["correlation"], seed)


def table(n: int, classes: bool, correlation: float, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of 4 numbers in [-1, 1] and its targets, in [-2, 2] or of two classes."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    Z[:, 1] = correlation * Z[:, 0] + np.sqrt(1 - correlation**2) * Z[:, 1]
    X = np.clip(Z, -2.5, 2.5) / 2.5
    signal = sum(effect(X[:, place]) for place, effect in enumerate(EFFECTS))
    signal -= signal.mean()
    if classes:
        return X, (rng.random(n) < expit(SLOPE * signal)).astype(int)
    return X, np.clip(SIGNAL * signal + 0.2 * rng.normal(size=n), -2, 2)


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the page."""
    measures = ("coverage", "lowest", "width", "5 %", "95 %", "estimable", "size")
    lines = [row(heads := ["model", "n", "epsilon", *measures]), row(["---"] * len(heads))]
    for record in records:
        shown = ["-" if record[name] is None else f"{record[name]:.3f}" for name in measures]
        lines.append(row([record["model"], str(record["n"]), f"{record['epsilon']:g}", *shown]))
    return "\n".join(["# Bands of curves", "", ABOUT.format(**settings), *lines]) + "\n"
