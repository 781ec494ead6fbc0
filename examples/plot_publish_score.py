"""
From a table to a published model with a published score
========================================================

A model with differential privacy can be published. Its exact test accuracy cannot: test records are people, too. This example
fits a model to a raw census table and evaluates it privately on other people, so that model, scores and intervals can all be
published. The table is the census income table of UCI (Adult, 1994).
"""

# %%
# The table
# ---------
# Nothing is described beforehand: the fit learns bounds and categories inside its budget.

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import accuracy_score, roc_auc_score

from skdp import DPTabularClassifier, PrivacyLedger
from skdp.inspection import check_pipeline
from skdp.metrics import (
    CalibrationDisplay,
    ConfusionMatrixDisplay,
    RocCurveDisplay,
    evaluate,
)
from skdp.preprocessing import read_table
from skdp.testing import reproducible_noise

repository = Path(sys.argv[0]).resolve().parents[1]
path = Path(os.environ.get("SKDP_DATA", repository.parent / "shared" / "data")) / "adult.csv.gz"
if not path.exists():
    print(f"{path} is missing; set SKDP_DATA to the directory that holds the data sets.")
    raise SystemExit

table = read_table(path, repository / "examples" / "schemas" / "adult.json")
train, test = table[table["split"] == "train"], table[table["split"] == "test"]
columns = [name for name in table.columns if name not in ("income", "split", "fnlwgt")]

# %%
# One ledger for both
# -------------------
# The ledger is charged by the fit and by the evaluation. It adds both up, as if one person could be in both tables. Nobody is,
# so the evaluation states this with ``disjoint=True``, and each person's guarantee is that of one of the two. Under a ledger the
# evaluation has Gaussian noise, which adds up with that of the fit. The ``with`` block makes the noise reproducible, which is for
# examples only.

model = DPTabularClassifier(epsilon=1.0)
print(check_pipeline(model))
with PrivacyLedger(epsilon=2.0, delta=1e-6) as ledger, reproducible_noise(0):
    model.fit(train[columns], train["income"])
    metrics = ["accuracy", "roc_auc", "recall", "precision", "log_loss", "brier_score"]
    found = evaluate(
        model, test[columns], test["income"], metrics=metrics, epsilon=0.5, disjoint=True
    )
print(found)
print(f"{len(ledger.entries)} charges, epsilon left: {ledger.epsilon_left():.3g}")

# %%
# What the intervals cover
# ------------------------
# Points are the private metrics with their 95 % intervals, crosses the exact ones, which would not be published.

probabilities = model.predict_proba(test[columns])[:, 1]
exact = {
    "accuracy": accuracy_score(test["income"], model.predict(test[columns])),
    "roc_auc": roc_auc_score(test["income"], probabilities),
}
shown = [name for name in metrics if name not in ("log_loss",)]
values = np.array([found[name].value for name in shown])
ends = np.array([[found[name].low, found[name].high] for name in shown])
fig, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
ax.errorbar(
    values,
    range(len(shown)),
    xerr=np.abs(ends.T - values),
    fmt="o",
    capsize=3,
    label="private, 95 % interval",
)
ax.plot(
    list(exact.values()),
    [shown.index(name) for name in exact],
    "kx",
    markersize=9,
    label="exact, not published",
)
ax.set(yticks=range(len(shown)), yticklabels=shown, xlim=(0, 1))
ax.invert_yaxis()
ax.legend(loc="lower right")
plt.show()

# %%
# Curves from the same release
# ----------------------------
# The evaluation released a table of counts by class and log-odds. ROC curve, calibration curve and confusion matrix follow from
# it, without further budget.

fig, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
RocCurveDisplay.from_evaluation(found, ax=axes[0])
CalibrationDisplay.from_evaluation(found, ax=axes[1])
matrix = ConfusionMatrixDisplay.from_evaluation(found, normalize="true", ax=axes[2])
plt.show()

assert all(found[name].low < value < found[name].high for name, value in exact.items())
assert matrix.interval[1, 1, 0] < found["recall"].value < matrix.interval[1, 1, 1]
