"""Run the demonstration: measure on a table how accuracy depends on epsilon."""

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, LowSignalWarning
from skdp._commands._records import Labelled, read_labelled
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import REPORTS, picture_content, report_content
from skdp._files._tables import CSV, TextFormat, column_names
from skdp.preprocessing import Schema, from_schema

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Rounded upper bounds of the mean, the standard error and the worst value of each of the ten measurements, in their units. They
# follow the ranges in the documentation of the table, and stand for what a laboratory knows about its instrument. For your own
# records, never compute them from the records.
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
BLUE, GREY = "#1f5fa8", "#666666"


@dataclass(frozen=True)
class Score:
    """Quartiles of test accuracy and area under the ROC curve over the repeats."""

    accuracy: np.ndarray
    auc: np.ndarray


def run(table: Path | None, schema: Path | None, out: Path, repeats: int, form: TextFormat = CSV) -> None:
    """Print the table of test scores, and write the plot and the privacy report.

    Parameters
    ----------
    table, schema : Path or None
        Records with two classes, and what is public about them; None uses scikit-learn's breast cancer table.
    out : Path
        Directory; it is created if it does not exist.
    repeats : int
        Private fits per epsilon.
    form : TextFormat
        How a text is written.

    Raises
    ------
    ValueError
        If only one of table and schema is given, or there are more than two classes.
    """
    if (table is None) != (schema is None):
        raise ValueError("The demonstration needs --table and --schema together; expected both or none.")
    out.mkdir(parents=True, exist_ok=True)
    check_outputs([(out / "report.html", REPORTS), (out / "privacy_utility.png", (".png",))], [table, schema])
    names = None if table is None else partial(column_names, table, form)
    facts = _breast_cancer_schema() if schema is None else Schema.read(schema, names)
    data = _breast_cancer() if table is None else read_labelled(table, facts, "0.25", form)
    if facts.classes is None or len(facts.classes) != 2:
        raise ValueError(f"classes={facts.classes!r}; expected two, for the area under the ROC curve.")
    name = "Breast cancer" if table is None else table.name
    print(f"{name}: {len(data.y)} training records, {len(data.y_test)} test records, {facts.n_features} prepared columns.")
    print(f"Medians of {repeats} private fits, secure noise; neighbouring tables differ in one replaced record.")
    if table is not None:
        print(
            f"{repeats * len(EPSILONS)} private fits and one without privacy are compared on test records: nothing that is "
            "printed or plotted here is private. Use records that are public or old."
        )
    print()
    reference = _score(_pipeline(facts, LogisticRegression(max_iter=1000)), data, 1)
    private = {}
    print(f"{'epsilon':>13}  {'accuracy':>8}  {'AUC':>6}")
    for epsilon in EPSILONS:
        private[epsilon] = _score(_private(facts, epsilon), data, repeats)
        _print_row(f"{epsilon:g}", private[epsilon])
    _print_row(
        "1, no bounds", _score(DPLogisticRegression(1.0, schema="learn", classes=facts.classes), _raw(data, facts), repeats)
    )
    _print_row("not private", reference)
    print(f"{'larger class':>13}  {_majority(data):>8.3f}  {0.5:>6.3f}\n")
    print("1, no bounds: the fit at epsilon 1 learns the columns inside its budget; python -m skdp fit needs no schema.")
    if table is None:
        statement = _private(facts, 1.0).fit(data.X, data.y)[-1].privacy_report_
        write_whole(out / "report.html", report_content(statement, out / "report.html"))
        print(f"Privacy report of a fit at epsilon 1: {out / 'report.html'}")
    _plot(out / "privacy_utility.png", private, reference, _majority(data), f"{name} ({len(data.y)} training records)")


def _breast_cancer_schema() -> Schema:
    names = load_breast_cancer().feature_names
    largest = np.array(list(LARGEST.values())).T.ravel()
    columns = {str(name): {"kind": "number", "bounds": [0, float(high)]} for name, high in zip(names, largest, strict=True)}
    return Schema.read({"columns": columns, "target": "target", "classes": [0, 1]})


def _breast_cancer() -> Labelled:
    cancer = load_breast_cancer(as_frame=True)
    X, X_test, y, y_test = train_test_split(cancer.data, cancer.target, test_size=0.25, random_state=0, stratify=cancer.target)
    return Labelled(X, y.to_numpy(), X_test, y_test.to_numpy())


def _pipeline(facts: Schema, model: Any) -> Any:
    return make_pipeline(from_schema(facts).set_output(transform="pandas"), model)


def _private(facts: Schema, epsilon: float) -> Any:
    return _pipeline(facts, DPLogisticRegression(epsilon, data_norm=1.0, classes=facts.classes))


def _score(model: Any, data: Labelled, repeats: int) -> Score:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)  # the demonstration shows the effect of noise
        warnings.filterwarnings("ignore", "X does not look like the records of the fit|X has what no training record")  # the same
        fits = [clone(model).fit(data.X, data.y) for _ in range(repeats)]
        accuracy = [fit.score(data.X_test, data.y_test) for fit in fits]
        auc = [roc_auc_score(data.y_test, fit.decision_function(data.X_test)) for fit in fits]
    return Score(np.quantile(accuracy, (0.25, 0.5, 0.75)), np.quantile(auc, (0.25, 0.5, 0.75)))


def _raw(data: Labelled, facts: Schema) -> Labelled:
    """Return the columns of the schema as the file has them."""
    names = list(facts.columns)
    return Labelled(data.X[names], data.y, data.X_test[names], data.y_test)


def _majority(data: Labelled) -> float:
    share = float(np.mean(data.y_test == data.y_test[0]))
    return max(share, 1 - share)


def _print_row(label: str, score: Score) -> None:
    print(f"{label:>13}  {score.accuracy[1]:>8.3f}  {score.auc[1]:>6.3f}", flush=True)


def _plot(path: Path, private: dict[float, Score], reference: Score, majority: float, title: str) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("No plot: matplotlib is missing; install it with pip install matplotlib.")
        return
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for axes, name, label in zip(figure.subplots(1, 2), ("accuracy", "auc"), ("test accuracy", "test AUC"), strict=True):
        low, middle, high = np.array([getattr(score, name) for score in private.values()]).T
        axes.fill_between(EPSILONS, low, high, color=BLUE, alpha=0.2, linewidth=0, label="middle half of the fits")
        axes.plot(EPSILONS, middle, marker="o", color=BLUE, label="DPLogisticRegression")
        axes.axhline(getattr(reference, name)[1], color=GREY, linestyle="--", label="LogisticRegression, not private")
        chance = majority if name == "accuracy" else 0.5
        axes.axhline(chance, color=GREY, linestyle=":", label="larger class (AUC: chance)")
        axes.set(xscale="log", xlabel="epsilon (smaller is more private)", ylabel=label)
        axes.set_ylim(min(chance, low.min()) - 0.02, min(1.02, max(getattr(reference, name)[1], high.max()) + 0.03))
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS], minor=False)
        axes.minorticks_off()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(f"What privacy costs: {title}")
    write_whole(path, picture_content(figure))
    print(f"Plot: {path}")
