"""The demonstration: what privacy costs on a small medical table, as a function of epsilon."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPLogisticRegression

__all__ = ["run"]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Round upper bounds of the ten measurements as mean, error and worst value, after the ranges in the table's documentation. They
# stand for what a laboratory knows of its instrument; for records of your own, never take them from the records.
LARGEST = {
    "radius": (30, 3, 40),
    "texture": (40, 5, 50),
    "perimeter": (200, 25, 260),
    "area": (2500, 550, 4300),
    "smoothness": (0.2, 0.04, 0.25),
    "compactness": (0.4, 0.15, 1.1),
    "concavity": (0.5, 0.4, 1.3),
    "concave points": (0.25, 0.06, 0.3),
    "symmetry": (0.35, 0.08, 0.7),
    "fractal dimension": (0.1, 0.03, 0.25),
}
BOUNDS = np.array(list(LARGEST.values())).T.ravel()
DATA_NORM = 1.0  # of a scaled record; longer ones are scaled down
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Privacy report</title></head>
<body style="font-family: sans-serif; max-width: 60em; margin: 2em auto">{}</body></html>
"""
BLUE, GREY = "#1f5fa8", "#666666"


@dataclass(frozen=True)
class Score:
    """Test accuracy and area under the ROC curve: quartiles over the repeats."""

    accuracy: np.ndarray
    auc: np.ndarray


def run(out: Path, repeats: int) -> None:
    """Print the table of test scores, and write the plot and the privacy report.

    Parameters
    ----------
    out : Path
        Directory, created where needed.
    repeats : int
        Private fits per epsilon.
    """
    cancer = load_breast_cancer()
    data = train_test_split(cancer.data, cancer.target, test_size=0.25, random_state=0, stratify=cancer.target)
    print(f"Breast cancer: {len(data[0])} training records, {len(data[1])} test records, {cancer.data.shape[1]} measurements.")
    print(f"Medians of {repeats} private fits, secure noise; neighbouring tables differ in one replaced record.\n")
    reference = _score(LogisticRegression(max_iter=1000), data, 1)
    private = {}
    print(f"{'epsilon':>12}  {'accuracy':>8}  {'AUC':>6}")
    for epsilon in EPSILONS:
        private[epsilon] = _score(DPLogisticRegression(epsilon, data_norm=DATA_NORM), data, repeats)
        _print_row(f"{epsilon:g}", private[epsilon])
    _print_row("not private", reference)
    print(f"{'majority':>12}  {max(np.mean(data[3]), 1 - np.mean(data[3])):>8.3f}  {0.5:>6.3f}\n")
    out.mkdir(parents=True, exist_ok=True)
    _write_report(out / "report.html", data)
    _plot(out / "privacy_utility.png", private, reference)


def _pipeline(model: Any) -> Any:
    return make_pipeline(FunctionTransformer(_scale), model)


def _scale(X: np.ndarray) -> np.ndarray:
    """Divide by the public bounds and centre at a public third of them; nothing is learnt from the records."""
    return np.clip(X / BOUNDS, 0.0, 1.0) - 1 / 3


def _score(model: Any, data: list[np.ndarray], repeats: int) -> Score:
    X_train, X_test, y_train, y_test = data
    fits = [_pipeline(clone(model)).fit(X_train, y_train) for _ in range(repeats)]
    accuracy = [fit.score(X_test, y_test) for fit in fits]
    auc = [roc_auc_score(y_test, fit.decision_function(X_test)) for fit in fits]
    return Score(np.quantile(accuracy, (0.25, 0.5, 0.75)), np.quantile(auc, (0.25, 0.5, 0.75)))


def _print_row(label: str, score: Score) -> None:
    print(f"{label:>12}  {score.accuracy[1]:>8.3f}  {score.auc[1]:>6.3f}", flush=True)


def _write_report(path: Path, data: list[np.ndarray]) -> None:
    X_train, _, y_train, _ = data
    report = _pipeline(DPLogisticRegression(1.0, data_norm=DATA_NORM)).fit(X_train, y_train)[-1].privacy_report_
    path.write_text(PAGE.format(report._repr_html_()), encoding="utf-8")
    print(f"Privacy report of the fit at epsilon 1: {path}")


def _plot(path: Path, private: dict[float, Score], reference: Score) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("No plot: matplotlib is missing; pip install 'skdp[demo]' brings it.")
        return
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, name, label in zip(figure.subplots(1, 2), ("accuracy", "auc"), ("test accuracy", "test AUC"), strict=True):
        low, middle, high = np.array([getattr(score, name) for score in private.values()]).T
        axes.fill_between(EPSILONS, low, high, color=BLUE, alpha=0.2, linewidth=0, label="middle half of the fits")
        axes.plot(EPSILONS, middle, marker="o", color=BLUE, label="DPLogisticRegression")
        axes.axhline(getattr(reference, name)[1], color=GREY, linestyle="--", label="LogisticRegression, not private")
        axes.set(xscale="log", xlabel="epsilon (smaller is more private)", ylabel=label, ylim=(0.45, 1.02))
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS], minor=False)
        axes.minorticks_off()
    axes.legend(loc="lower right", frameon=False)
    figure.suptitle("What privacy costs on the breast cancer table (426 training records)")
    figure.savefig(path, dpi=150)
    print(f"Plot: {path}")
