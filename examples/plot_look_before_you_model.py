"""
Look before you model: statistics, clusters and a model under one budget
========================================================================

A study of a private table begins with a look at it: means, quantiles and groups of people tell of their records as much as a
model does. This example describes a raw census table, finds clusters in it, fits a model and publishes its score. One ledger of
epsilon 2 pays for all four, and everything that is printed and drawn may be published. The table is the census income table of
UCI (Adult, 1994).
"""

# %%
# A raw table
# -----------
# One person in three is set aside for the score of the model.

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPKMeans, DPLogisticRegression, PrivacyLedger
from skdp.inspection import BudgetTimelineDisplay, ClusterDisplay
from skdp.metrics import RocCurveDisplay, evaluate
from skdp.preprocessing import read_table
from skdp.stats import describe
from skdp.testing import reproducible_noise

repository = Path(sys.argv[0]).resolve().parents[1]
path = Path(os.environ.get("SKDP_DATA", repository.parent / "shared" / "data")) / "adult.csv.gz"
if not path.exists():
    print(f"{path} is missing; set SKDP_DATA to the directory that holds the data sets.")
    raise SystemExit

table = read_table(path, repository / "examples" / "schemas" / "adult.json")
columns = [name for name in table.columns if name not in ("income", "split", "fnlwgt")]
train, test = table[table["split"] == "train"], table[table["split"] == "test"]

# %%
# Describe
# --------
# Nothing is known of the columns, so a tenth of the squared budget learns their bounds. Each number has an interval of 95 % for
# noise and sampling. The ``with`` blocks make the noise reproducible, which is for examples only.

ledger = PrivacyLedger(epsilon=2.0, delta=1e-6)
with ledger, reproducible_noise(0):
    found = describe(train[columns], epsilon=0.9)
print(found.table.round(1).to_string())
found.plot()
plt.show()

# %%
# Find clusters
# -------------
# Three columns: age, years of education and hours of work. The bounds that the description has learned are handed on, so that
# they are not learned again, and centres are in years and hours. The areas of the discs are numbers of people. There are no
# points, because these would be people, and no labels of training records.

shown = ["age", "education-num", "hours-per-week"]
bounds = {name: found.schema.columns[name].bounds for name in shown}
with ledger, reproducible_noise(1):
    clusters = DPKMeans(4, epsilon=0.9, feature_bounds=bounds, random_state=0).fit(train[shown])
centres = pd.DataFrame(clusters.cluster_centers_, columns=shown)
print(centres.assign(people=clusters.cluster_counts_).round(1))
ClusterDisplay.from_estimator(clusters)
plt.show()

# %%
# Model, and publish the score
# ----------------------------
# The model takes all columns, again with the schema. It is evaluated on other people, with noise: the exact score would tell of
# them. The ledger adds this up with the rest, as if one person could be in both tables, so no one has to argue that nobody is.

with ledger, reproducible_noise(2):
    model = DPLogisticRegression(epsilon=1.8, schema=found.schema, classes=["<=50K", ">50K"])
    model.fit(train[columns], train["income"])
    scores = evaluate(
        model, test[columns], test["income"], metrics=["accuracy", "roc_auc"], epsilon=0.9
    )
print(scores)

# %%
# What it has cost
# ----------------
# Epsilons of .9, .9, 1.8 and .9 spend less than 2 together, because it is the squares of noisy releases that add up.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
RocCurveDisplay.from_evaluation(scores, ax=axes[0])
BudgetTimelineDisplay.from_ledger(ledger, ax=axes[1])
plt.show()
print(f"spent: epsilon {ledger.spent_after_each[-1]:.2f}, left: {ledger.epsilon_left():.2f}")

exact = np.bincount(clusters.predict(train[shown]), minlength=4)  # for the assertion; not published
assert np.abs(clusters.cluster_counts_ - exact).max() < 5 * clusters.cluster_counts_std_
assert len(ledger.entries) == 4 and scores["roc_auc"].low > 0.8
