"""Measure the coverage and the width of the noise bands of additive and boosted models, over refits of the same records."""

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
}
CORRELATION = 0.9  # of the first two columns
ABOUT = """\
Noise bands of the curves of `shape_functions_`, over {repeats} fits of the same records with fresh noise: 4 numbers, of which two
have a correlation of .9 and one has no effect, `{adjacency}`, delta = 1 / n².

- **coverage**: share of the fits whose 95 % band holds the mean curve of all fits, over all points of all curves; **lowest**: of
  the point with the lowest share.
- **width**: median over the points of the width over 2 · 1.96 standard deviations of the curve between fits; 1 is ideal.
  **5 %, 95 %**: quantiles of the same over the points.
"""


def measure(models: list[str], sizes: dict[str, Any], repeats: int, jobs: int | None, out: Path) -> None:
    """Measure; write ``bands.json`` and ``bands.md``.

    Parameters
    ----------
    models : list of str
        Out of ``MODELS``.
    sizes : dict
        The keys n (a list), epsilons (a list), adjacency and seed.
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


def cell(about: dict[str, Any], sizes: dict[str, Any], repeats: int, jobs: int | None) -> dict[str, float]:
    """Return coverage and widths of one model, over the points of its curves."""
    curves = Parallel(n_jobs=jobs)(delayed(fitted_curves)(about, sizes, seed) for seed in range(repeats))
    values, lower, upper = (np.array(part) for part in zip(*curves, strict=True))
    middle, spread = values.mean(axis=0), np.maximum(values.std(axis=0, ddof=1), 1e-300)
    shares = ((lower <= middle) & (middle <= upper)).mean(axis=0)
    widths = np.median(upper - lower, axis=0) / (2 * 1.96 * spread)
    low, median, high = np.quantile(widths, [0.05, 0.5, 0.95])
    return {
        "coverage": float(shares.mean()),
        "lowest": float(shares.min()),
        "width": float(median),
        "5 %": float(low),
        "95 %": float(high),
    }


def fitted_curves(about: dict[str, Any], sizes: dict[str, Any], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit once, with the noise of a seed; return values and ends of the bands of all curves."""
    given = {"feature_bounds": 1.0, "delta": 1 / about["n"] ** 2, "adjacency": sizes["adjacency"]}
    classes = about["model"].endswith("classifier")
    X, y = table(about["n"], classes, sizes["seed"])
    given |= {"classes": [0, 1]} if classes else {"target_bounds": (-1, 1)}
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        functions = MODELS[about["model"]](about["epsilon"], **given).fit(X, y).shape_functions_.values()
    parts = [(f.values, f.lower, f.upper) for f in functions]
    values, lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, lower, upper


def table(n: int, classes: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of 4 numbers in [-1, 1] and its targets, in [-1, 1] or of two classes."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    Z[:, 1] = CORRELATION * Z[:, 0] + np.sqrt(1 - CORRELATION**2) * Z[:, 1]
    X = np.clip(Z, -2.5, 2.5) / 2.5
    signal = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.8 * X[:, 2]
    signal -= signal.mean()
    if classes:
        return X, (rng.random(n) < expit(1.5 * signal)).astype(int)
    return X, np.clip(0.3 * signal + 0.2 * rng.normal(size=n), -1, 1)


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the page."""
    measures = ("coverage", "lowest", "width", "5 %", "95 %")
    lines = [row(heads := ["model", "n", "epsilon", *measures]), row(["---"] * len(heads))]
    for record in records:
        shown = [f"{record[name]:.3f}" for name in measures]
        lines.append(row([record["model"], str(record["n"]), f"{record['epsilon']:g}", *shown]))
    return "\n".join(["# Bands of curves", "", ABOUT.format(**settings), *lines]) + "\n"
