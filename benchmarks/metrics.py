"""Measure the intervals and the errors of private evaluations on made-up scores, of which the true metrics are known."""

import math
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import binom

from benchmarks.writing import made_with, row, write_json
from skdp.metrics import evaluate
from skdp.metrics._metrics import CLASSIFICATION, REGRESSION
from skdp.testing import reproducible_noise

__all__ = ["ERRORS", "SCORES", "Model", "measure", "true_errors", "true_metrics"]

# Distance of the two classes, whose log-odds are normal, and a factor of the scores: 0.2 is a model that ranks well and is badly
# calibrated, as strong penalties make it.
SCORES = {"good": (2.0, 1.0), "poor": (0.5, 1.0), "squeezed": (2.0, 0.2)}
ERRORS = {"normal": 0.25, "t3": 0.25}  # standard deviation, or scale, of errors of targets in [-1, 1]
TARGETS = (-2.0, 2.0)
OF_ERRORS = tuple(name for name, metric in REGRESSION.items() if not metric.deviance)
# Metrics that are asked alone. Those of a group have one release, whether one or all of them are asked. The area under the curve
# and the average precision need the release of all metrics.
ALONE_RELEASES = (("accuracy",), ("log_loss",), ("brier_score",), ("recall", "specificity", "precision"))
LOW, HIGH, SURE = 0.93, 0.99, 1e-3  # coverage that is aimed at, and the level at which a cell is outside of it
PLAIN_REPEATS = 20  # of evaluations without noise, for widths
TRUE = 4_000_000  # records of which the true metrics of clipped errors are taken
ABOUT = """\
`evaluate` on made-up records, of which the true metrics are known: fresh records and noise in each of {repeats} repetitions,
delta = 1 / n² or 0, `noise="auto"`. Log-odds of the classes are normal: **good** scores have an AUC of 0.921, **poor** ones of
0.638, **squeezed** ones are the good ones with a fifth of the log-odds. `python -m benchmarks metrics` writes this page.
"""
INTERVALS = """\
## Intervals

Coverage of the 95 % intervals, the median width and, in parentheses, the median width without noise. Where less than half of the
evaluations determined a metric, the cell has the share that did; an interval that is "not determined" is the whole range. The
standard error of a coverage of 0.95 is {error:.3f}. Of the {number} coverages of metrics that were determined, {below} are below
{low} and {above} above {high}. {surely} of them are outside by more than chance, with a one-sided p-value below 0.001; of as many
with a coverage of {low}, {expected:.2f} would be{named}. All metrics of a row are from one evaluation.
"""
ALONE = """\
## One metric alone and all of them

Root mean square of the error that noise makes, against the exact metric of the same records: **all** from one evaluation with all
metrics, **alone** from an evaluation of this metric with the same budget, how many times as large the first one is, and the
coverage of the interval of the second. "-" where less than half of the evaluations determined the metric. The AUC and the average
precision need the release of all metrics: they have none of their own.
"""


class Model:
    """Hold a model that predicts a multiple of the first column as log-odds."""

    classes_ = np.array([0, 1])

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return probabilities of both classes."""
        p = expit(self.factor * X[:, 0])
        return np.column_stack([1 - p, p])


class Column:
    """Hold a model that predicts the first column."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return predictions."""
        return X[:, 0]


def drawn(cell: dict[str, Any], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return records of a cell."""
    if cell["kind"] == "regression":
        x = rng.uniform(-1, 1, cell["n"])
        noise = rng.normal(size=cell["n"]) if cell["scores"] == "normal" else rng.standard_t(3, size=cell["n"])
        return x[:, None], np.clip(x + ERRORS[cell["scores"]] * noise, *TARGETS)
    (distance, _), rate = SCORES[cell["scores"]], cell["rate"]
    y = (rng.random(cell["n"]) < rate).astype(int)
    z = rng.normal((y - 0.5) * distance**2, distance) + math.log(rate / (1 - rate))
    return z[:, None], y


def true_metrics(distance: float, factor: float, rate: float) -> dict[str, float]:
    """Return the metrics of infinitely many records, of log-odds clipped to [-6, 6].

    Parameters
    ----------
    distance : float
        Distance of the classes in standard deviations.
    factor : float
        Factor of the scores.
    rate : float
        Share of positive records.

    Returns
    -------
    dict of float
        By name.
    """
    shift, middle = math.log(rate / (1 - rate)), distance**2 / 2
    recall, specificity = float(ndtr((middle + shift) / distance)), float(ndtr((middle - shift) / distance))
    x, weights = np.polynomial.legendre.leggauss(2000)
    density = 8 * weights * np.exp(-((8 * x) ** 2) / 2) / math.sqrt(2 * math.pi)
    mean = {name: 0.0 for name in ("log_loss", "brier_score")}
    for sign, share in ((-1, 1 - rate), (1, rate)):
        z = np.clip(factor * (sign * middle + shift + distance * 8 * x), -6, 6)
        mean["log_loss"] += share * float(density @ np.logaddexp(0, -sign * z))
        mean["brier_score"] += share * float(density @ expit(-sign * z) ** 2)
    positive = rate * recall + (1 - rate) * (1 - specificity)
    above = [
        share * ndtr((sign * middle - distance * (8 * x) - middle) / distance) for sign, share in ((-1, 1 - rate), (1, rate))
    ]
    return {
        "accuracy": rate * recall + (1 - rate) * specificity,
        "roc_auc": float(ndtr(distance / math.sqrt(2))),
        **mean,
        "recall": recall,
        "specificity": specificity,
        "precision": rate * recall / positive,
        "average_precision": float(density @ (above[1] / (above[0] + above[1]))),
    }


def true_errors(errors: np.ndarray, targets: np.ndarray, bound: float) -> dict[str, float]:
    """Return the metrics of many records, of errors clipped to a bound.

    Parameters
    ----------
    errors, targets : ndarray
        Of the records.
    bound : float
        Larger errors count as this one.

    Returns
    -------
    dict of float
        By name.
    """
    clipped = np.minimum(np.abs(errors), bound)
    square = float(np.mean(clipped**2))
    return {
        "mae": float(clipped.mean()),
        "rmse": math.sqrt(square),
        "r2": 1 - square / float(targets.var()),
        "coverage": float(np.mean(errors <= 0)),
    }


def cells(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield what is measured."""
    sizes, epsilons = ((500, 5000), (0.5,)) if quick else ((500, 5000, 50_000), (0.1, 0.5, 1.0))
    for scores, rate, n, epsilon in product(SCORES, (0.5, 0.02), sizes, epsilons):
        yield {"kind": "classes", "adjacency": "zero_out", "scores": scores, "rate": rate, "n": n, "epsilon": epsilon}
    for rate, n in product((0.5, 0.02), sizes):
        yield {"kind": "classes", "adjacency": "replace_one", "scores": "good", "rate": rate, "n": n, "epsilon": 0.5}
    for scores, n, epsilon in product(ERRORS, sizes, epsilons):
        yield {"kind": "regression", "adjacency": "zero_out", "scores": scores, "rate": None, "n": n, "epsilon": epsilon}
    for n in sizes:
        yield {"kind": "regression", "adjacency": "replace_one", "scores": "normal", "rate": None, "n": n, "epsilon": 0.5}


def measure(quick: bool, repeats: int, seed: int, out: Path) -> None:
    """Measure; write ``metrics.json`` and ``metrics.md`` after each cell.

    Parameters
    ----------
    quick : bool
        Whether to take few cells.
    repeats : int
        Evaluations per cell.
    seed : int
        Of records and noise.
    out : Path
        Directory.
    """
    records: list[dict[str, Any]] = []
    settings = {"quick": quick, "repeats": repeats, "seed": seed}
    for number, cell in enumerate(cells(quick)):
        start = time.perf_counter()
        records.append({**cell, **measured(cell, repeats, [seed, number])})
        write_json({**made_with(), "settings": settings, "records": records}, out / "metrics.json")
        (out / "metrics.md").write_text(markdown(records, settings), encoding="utf-8")
        print(*cell.values(), f"{time.perf_counter() - start:.1f} s", flush=True)


def measured(cell: dict[str, Any], repeats: int, seed: list[int]) -> dict[str, Any]:
    """Return coverage, widths and errors of the metrics of a cell, or why it was refused."""
    regression, whole = cell["kind"] == "regression", None
    names = OF_ERRORS if regression else tuple(CLASSIFICATION)
    model = Column() if regression else Model(SCORES[cell["scores"]][1])
    if regression:
        X, y = drawn({**cell, "n": TRUE}, np.random.default_rng([*seed, 10**9]))
        whole = X[:, 0] - y, y
    else:
        truth = true_metrics(*SCORES[cell["scores"]], cell["rate"])
    given = {"epsilon": cell["epsilon"], "adjacency": cell["adjacency"]} | ({"target_bounds": TARGETS} if regression else {})
    alone = not regression and cell["epsilon"] == 0.5 and cell["scores"] == "good"
    by_bound: dict[float, dict[str, float]] = {}
    seen: dict[str, dict[str, list[float]]] = {
        name: {key: [] for key in ("inside", "low", "high", "value", "exact", "plain", "alone", "alone_inside")} for name in names
    }
    for repeat in range(repeats):
        X, y = drawn(cell, np.random.default_rng([*seed, repeat]))
        with reproducible_noise(hash((*seed, repeat)) % 2**31), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = evaluate(model, X, y, metrics=names, **given)
            except ValueError as error:
                return {"refused": str(error)}
            if whole is not None:
                bound = found.table.error_bound  # type: ignore[union-attr]
                truth = by_bound[bound] = by_bound.get(bound) or true_errors(*whole, bound)
            fixed = {"error_bound": found.table.error_bound} if regression else {}  # type: ignore[union-attr]
            exact = evaluate(model, X, y, metrics=names, **given | fixed | {"epsilon": math.inf})
            singles: dict[str, Any] = {}
            for group in ALONE_RELEASES if alone else ():
                singles |= evaluate(model, X, y, metrics=group, **given)
        for name in names:
            metric, kept = found[name], seen[name]
            kept["inside"].append(metric.low <= truth[name] <= metric.high)
            kept["low"].append(metric.low)
            kept["high"].append(metric.high)
            kept["value"].append(metric.value)
            kept["exact"].append(exact[name].value)
            if repeat < PLAIN_REPEATS:
                kept["plain"].append(exact[name].high - exact[name].low)
            if name in singles:
                kept["alone"].append(singles[name].value)
                kept["alone_inside"].append(singles[name].low <= truth[name] <= singles[name].high)
    return {"metrics": {name: summary(kept) for name, kept in seen.items()}}


def summary(kept: dict[str, list[float]]) -> dict[str, Any]:
    """Return the coverage, widths and errors of a metric."""
    value, exact = np.array(kept["value"]), np.array(kept["exact"])
    clear, inside = ~np.isnan(value), np.array(kept["inside"], dtype=bool)
    width = np.array(kept["high"]) - np.array(kept["low"])
    found: dict[str, Any] = {
        "coverage": float(inside.mean()),
        "determined": float(clear.mean()),
        "coverage_if_determined": float(inside[clear].mean()) if clear.any() else None,
        "width": float(np.median(width[clear])) if clear.any() else None,
        "width_without_noise": float(np.median(kept["plain"])),
        "error": root_mean_square(value, exact),
    }
    if kept["alone"]:
        found["error_alone"] = root_mean_square(np.array(kept["alone"]), exact)
        found["coverage_alone"] = float(np.mean(kept["alone_inside"]))
    return found


def root_mean_square(value: np.ndarray, exact: np.ndarray) -> float | None:
    """Return the error of the determined values, or None if they are less than half."""
    clear = ~(np.isnan(value) | np.isnan(exact))
    return float(np.sqrt(np.mean((value - exact)[clear] ** 2))) if clear.mean() >= 0.5 else None


def about(record: dict[str, Any]) -> list[str]:
    """Return the first columns of a row."""
    rate = "" if record["rate"] is None else f"{record['rate']:g}"
    return [record["adjacency"], record["scores"], rate, str(record["n"]), f"{record['epsilon']:g}"]


def markdown(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the page."""
    repeats = settings["repeats"]
    shown = [
        (record, name, found)
        for record in records
        for name, found in record.get("metrics", {}).items()
        if found["determined"] >= 0.5
    ]
    found = np.array([one["coverage"] for _, _, one in shown])
    surely = [
        f"{name} of {', '.join(about(record))}"
        for record, name, one in shown
        if binom.cdf(round(one["coverage"] * repeats), repeats, LOW) < SURE
        or binom.sf(round(one["coverage"] * repeats) - 1, repeats, HIGH) < SURE
    ]
    text = INTERVALS.format(
        error=math.sqrt(0.95 * 0.05 / repeats),
        number=len(shown),
        below=int((found < LOW - 1e-9).sum()),
        above=int((found > HIGH + 1e-9).sum()),
        low=LOW,
        high=HIGH,
        surely=len(surely),
        expected=SURE * len(shown),
        named=f": {'; '.join(surely)}" if surely else "",
    )
    lines = ["# Private metrics", "", ABOUT.format(**settings), text]
    for kind, names in (("classes", tuple(CLASSIFICATION)), ("regression", OF_ERRORS)):
        heads = ["adjacency", "scores" if kind == "classes" else "errors", "rate", "records", "epsilon", *names]
        lines += [row(heads), row(["---"] * len(heads))]
        for record in records:
            if record["kind"] == kind:
                cells_of = record.get("metrics") or {}
                texts = [_cell(cells_of[name]) if cells_of else "refused" for name in names]
                lines.append(row([*about(record), *texts]))
        lines.append("")
    refused = sorted({record["refused"] for record in records if "refused" in record})
    lines += [f"Refused before anything is spent: {reason}" for reason in refused[:1]]
    lines += [
        "",
        ALONE,
        row(heads := ["adjacency", "scores", "rate", "records", "epsilon", "metric", "all", "alone", "ratio", "coverage alone"]),
    ]
    lines.append(row(["---"] * len(heads)))
    for record in records:
        for name, one in record.get("metrics", {}).items():
            if "error_alone" in one and any(name in group for group in ALONE_RELEASES):
                both = [one["error"], one["error_alone"]]
                ratio = f"{both[0] / both[1]:.2f}" if None not in both and both[1] else "-"
                texts = ["-" if error is None else f"{error:.4f}" for error in both]
                lines.append(row([*about(record), name, *texts, ratio, f"{one['coverage_alone']:.3f}"]))
    return "\n".join(lines) + "\n"


def _cell(found: dict[str, Any]) -> str:
    if found["determined"] < 0.5:
        return f"not determined ({found['determined']:.0%} are)"
    return f"{found['coverage']:.3f}, {found['width']:.3g} ({found['width_without_noise']:.3g})"
