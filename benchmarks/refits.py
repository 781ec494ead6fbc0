"""Measure what intervals cover over fits of one real table with fresh noise: the mean of the fits, and least squares."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.frames import load_frame
from benchmarks.noise import noise_of
from benchmarks.writing import made_with, row, write_json
from skdp import DPLinearRegression
from skdp.solvers import InferenceDescent

__all__ = ["REFITTED", "WAYS", "cell", "measure"]

REFITTED = ("bike", "california")
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "inference": {"inference": True},
    "robust": {"inference": True, "solver": InferenceDescent(robust=True)},
}
LEVEL = 0.95
N_PREDICTED = 200  # test records whose intervals are looked at
# A coefficient that fewer of the fits identify has no mean to speak of.
LEAST_JUDGED = 0.3
ABOUT = """\
{repeats} fits of `DPLinearRegression` to the same training records with fresh noise, with the schema of the table, `{adjacency}`,
delta = 1 / n². "default" are the intervals of `coef_interval` and `predict(return_interval=)`, "inference" and "robust" those of
`inference=True`, "robust" with `InferenceDescent(robust=True)`. All are 95 % intervals. They are for the coefficient or the mean
target of the population; "noise" intervals are for what the same records would give without noise.

- **identified**: share of coefficients and fits with finite intervals. What fewer than 30 % of the fits identify does not count
  in the other columns.
- **mean**, **noise: mean**: share of the intervals that hold the mean of the fits. **width**: median over the coefficients of the
  width of noise intervals (of all intervals for the default) over 2 · 1.96 standard deviations between fits; 1 is ideal.
- **least squares**: share of the intervals that hold the coefficient of least squares without privacy, which is another one
  wherever the linear model does not hold.
- **predictions**: of {predicted} test records, the share of intervals that are not the whole range, and of these the shares that
  hold the mean of the fits and the prediction of least squares, and the median of the width over the whole range.
"""


def measure(tables: list[str], ways: list[str], sizes: dict[str, Any], repeats: int, jobs: int | None, out: Path) -> None:
    """Measure; write ``refits.json`` and ``refits.md``.

    Parameters
    ----------
    tables, ways : list of str
        Out of ``REFITTED`` and ``WAYS``.
    sizes : dict
        The keys epsilons (a list) and adjacency.
    repeats : int
        Fits per cell.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    """
    settings, records = {**sizes, "repeats": repeats}, []
    for table in tables:
        for way in ways:
            for epsilon in sizes["epsilons"]:
                about = {"table": table, "way": way, "epsilon": epsilon}
                records.append(about | cell(about, sizes["adjacency"], repeats, jobs))
                print(records[-1], flush=True)
                write_json({**made_with(), "settings": settings, "records": records}, out / "refits.json")
                (out / "refits.md").write_text(markdown(records, settings), encoding="utf-8")


def cell(about: dict[str, Any], adjacency: str, repeats: int, jobs: int | None) -> dict[str, float | None]:
    """Return the measures of one cell."""
    fits = Parallel(n_jobs=jobs)(delayed(once)(about, adjacency, seed) for seed in range(repeats))
    each = {key: np.array([fit[key] for fit in fits]) for key in fits[0]}
    known = np.isfinite(each["noise"]).all(axis=2)
    judged = known & (known.mean(axis=0) >= LEAST_JUDGED)
    found: dict[str, float | None] = {"identified": float(known.mean())}
    if judged.any():
        mean, spread = over_fits(each["estimate"], judged)
        ratios = np.diff(each["noise"])[..., 0] / (2 * 1.96 * spread)
        found |= {
            "mean": share(each["interval"], mean, judged),
            "noise: mean": share(each["noise"], mean, judged),
            "width": float(np.median(ratios[judged])),
            "least squares": share(each["interval"], each["least squares"][0], judged),
        }
    ends = each["ends"]
    widths = np.diff(ends)[..., 0] / 2  # targets are in [-1, 1]
    known = widths < 1
    judged = known & (known.mean(axis=0) >= LEAST_JUDGED)
    found |= {"predictions: not whole": float(known.mean())}
    if judged.any():
        found |= {
            "predictions: mean": share(ends, over_fits(each["predicted"], judged)[0], judged),
            "predictions: least squares": share(ends, each["wanted"][0], judged),
            "predictions: width": float(np.median(widths[judged])),
        }
    return found


def over_fits(values: np.ndarray, judged: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation over the fits that count; nan where none does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        kept = np.where(judged, values, np.nan)
        return np.nanmean(kept, axis=0), np.nanstd(kept, axis=0, ddof=1)


def share(ends: np.ndarray, truth: np.ndarray, judged: np.ndarray) -> float:
    """Return the share of intervals that hold the truth, among those that are judged."""
    return float(((ends[..., 0] <= truth) & (truth <= ends[..., 1]))[judged].mean())


def once(about: dict[str, Any], adjacency: str, seed: int) -> dict[str, np.ndarray]:
    """Return estimates, intervals, predictions and the fit without privacy, of one fit with the noise of a seed."""
    frame = load_frame(about["table"])
    table, given = frame.table, WAYS[about["way"]]
    new = table.X_test[:N_PREDICTED]
    stated = {"delta": 1 / len(table.y_train) ** 2, "adjacency": adjacency, "target_bounds": (-1, 1), "schema": frame.schema}
    model = DPLinearRegression(about["epsilon"], **stated, **given)
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        model.fit(table.X_train, table.y_train)
        if given:
            interval, noise = (np.asarray(model.confidence_intervals(LEVEL, kind))[:-1] for kind in ("confidence", "noise"))
            ends = model.predict_interval(new, LEVEL)
        else:
            interval = noise = model.coef_interval(LEVEL)
            ends = model.predict(new, return_interval=LEVEL)[1]
    rows = [np.column_stack([model._rows_of(X), np.ones(len(X))]) for X in (table.X_train, new)]
    coef = np.linalg.lstsq(rows[0], table.y_train, rcond=None)[0]
    return {
        "estimate": middle(interval),
        "interval": interval,
        "noise": noise,
        "least squares": coef[:-1],
        "predicted": middle(ends),
        "ends": ends,
        "wanted": np.clip(rows[1] @ coef, -1, 1),
    }


def middle(ends: np.ndarray) -> np.ndarray:
    """Return the middle of each interval; nan where it has no ends."""
    with np.errstate(invalid="ignore"):
        return np.asarray(ends.sum(axis=1) / 2)


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the page."""
    about = ABOUT.format(predicted=N_PREDICTED, **settings)
    measures = ["identified", "mean", "noise: mean", "width", "least squares"]
    measures += [f"predictions: {name}" for name in ("not whole", "mean", "least squares", "width")]
    lines = [row(heads := ["table", "way", "epsilon", *measures]), row(["---"] * len(heads))]
    for record in records:
        values = [record.get(name) for name in measures]
        shown = ["-" if value is None else f"{value:.3f}" for value in values]
        lines.append(row([record["table"], record["way"], f"{record['epsilon']:g}", *shown]))
    return "\n".join(["# Intervals over fits of the same records", "", about, *lines]) + "\n"
