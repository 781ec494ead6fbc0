"""
A complete study: from a raw table to a published report
========================================================

A hospital asks who comes back within thirty days, and wants to publish the answer. This study looks at the table, finds groups
of stays, fits a model with curves, estimates odds ratios, publishes a score, and ends with a report. One ledger pays for all of
it. With secure noise, all that is printed and drawn may be published, except for the first rows.
"""

# %%
# A raw table
# -----------
# The stays are made up, so we may look at them. One third is set aside for the score. Nothing is prepared: there are gaps, text
# and a column that says nothing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPAdditiveClassifier, DPKMeans, DPLogisticRegression, PrivacyLedger, model_card
from skdp.inspection import (
    AdditiveDisplay,
    BudgetTimelineDisplay,
    ClusterDisplay,
    CoefficientDisplay,
)
from skdp.metrics import RocCurveDisplay, evaluate
from skdp.stats import describe
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
n = 30_000
stays = pd.DataFrame(
    {
        "age": rng.normal(62, 15, n).clip(18, 100).round(),
        "days": rng.gamma(2, 3, n).clip(1, 60).round(),
        "blood_pressure": rng.normal(135, 18, n).clip(80, 220).round(),
        "smoker": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
        "ward": rng.choice(["medicine", "surgery", "heart"], n, p=[0.5, 0.3, 0.2]),
        "bed": rng.integers(1, 400, n),
    }
)
log_odds = (
    -2.2
    + 0.03 * (stays["age"] - 60).clip(0)
    + 0.7 * (stays["smoker"] == "yes")
    + 0.5 * (stays["ward"] == "heart")
    + 0.08 * (stays["days"] - 10).clip(0)
)
back = pd.Series(np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "yes", "no"), name="back")
stays.loc[rng.random(n) < 0.1, "blood_pressure"] = np.nan
train, test = slice(0, 20_000), slice(20_000, None)
print(stays.head(3).to_string())  # of made-up stays: never print rows of patients

# %%
# One budget
# ----------
# The ceiling is for the whole study. It is chosen beforehand, with the data protection officer. The plan of the curves asks
# whether there are enough records, and spends nothing. Three columns are known from the forms of the hospital; the others are
# learned.

known = {
    "age": {"kind": "number", "bounds": [18, 100]},
    "smoker": {"kind": "category", "categories": ["no", "yes"]},
    "ward": {"kind": "category", "categories": ["medicine", "surgery", "heart"]},
}
ledger = PrivacyLedger(epsilon=3.0, delta=1e-6)
curves = DPAdditiveClassifier(epsilon=1.0, schema=known, classes=["no", "yes"])
print(curves.plan(stays[train]).needed)

# %%
# Look at the table
# -----------------
# Bounds of the other columns are learned from the records, with noise. Each number has a 95 % interval for noise and sampling.
# The ``with`` blocks make the noise reproducible, which is for examples only.

with ledger, reproducible_noise(0):
    found = describe(stays[train], epsilon=0.5, schema=known)
print(found.table.round(1).to_string())
found.plot()
plt.show()

# %%
# Groups of stays
# ---------------
# The schema of the description is handed on, so that bounds are not learned again. The table has
# centres in years and days; the plot has them over the scale of the fit. The areas of the discs are numbers of stays.
# There are no points, because these would be patients.

shown = ["age", "days"]
bounds = {name: found.schema.columns[name].bounds for name in shown}
with ledger, reproducible_noise(1):
    groups = DPKMeans(3, epsilon=0.5, feature_bounds=bounds, random_state=0)
    groups.fit(stays.loc[stays.index[train], shown])
centres = pd.DataFrame(groups.cluster_centers_, columns=shown)
print(centres.assign(stays=groups.cluster_counts_).round(1))
ClusterDisplay.from_estimator(groups)
plt.show()

# %%
# A model that can be read
# ------------------------
# One function per column, with bands for the noise. The curve of age rises from 50 to 80 years by more than its band is wide.
# Where few stays are, bands are wide, and a curve says little. Smoking and the ward for the heart have effects, and bed and blood
# pressure have none that shows.

with ledger, reproducible_noise(2):
    curves.fit(stays[train], back[train])
# sphinx_gallery_thumbnail_number = 3
AdditiveDisplay.from_estimator(curves)
plt.show()

# %%
# Odds ratios for the paper
# -------------------------
# An odds ratio needs a unit and a reference, so this fit takes a schema from the protocol of the study, and not from the records.
# Ratios are for ten years, and for ten days.

protocol = {
    "columns": {
        "age": {"kind": "number", "bounds": [18, 100]},
        "days": {"kind": "number", "bounds": [1, 60]},
        "smoker": {"kind": "category", "categories": ["no", "yes"]},
        "ward": {"kind": "category", "categories": ["medicine", "surgery", "heart"]},
    }
}
odds = DPLogisticRegression(epsilon=1.5, schema=protocol, classes=["no", "yes"], inference=True)
with ledger, reproducible_noise(3):
    odds.fit(stays.loc[stays.index[train], [*protocol["columns"]]], back[train])
print(odds.summary())
CoefficientDisplay.from_estimator(odds, units={"age": 10, "days": 10})
plt.show()

# %%
# A score that may be published
# -----------------------------
# The exact score would tell of the stays that were set aside. The score of the curves is released with noise.

with ledger, reproducible_noise(4):
    scores = evaluate(curves, stays[test], back[test], metrics=["roc_auc", "accuracy"], epsilon=0.8)
print(scores)

# %%
# What the study has cost
# -----------------------
# Epsilons of 0.5, 0.5, 1, 1.5 and 0.8 spend less than 3 together, because the squares of noisy releases add up.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
RocCurveDisplay.from_evaluation(scores, ax=axes[0])
BudgetTimelineDisplay.from_ledger(ledger, ax=axes[1])
plt.show()
print(f"spent: epsilon {ledger.spent_after_each[-1]:.2f}, left: {ledger.epsilon_left():.2f}")

# %%
# The report
# ----------
# The report states what is guaranteed, what was released and what is public. The card repeats it for readers, with the score.
# Here it says that the noise came from a seed; that of your fits says ``secure``.

print(curves.privacy_report_)
card = model_card(curves, evaluation=scores, purpose={"Intended use": "Plan calls after a stay."})
print(card[:400], "...", sep="\n")

# %%
# The intervals hold what the stays were made with:

table = odds.summary().to_frame()
assert table.loc["smoker_yes", "lower"] < 0.7 < table.loc["smoker_yes", "upper"]
assert len(ledger.entries) == 5 and scores["roc_auc"].low > 0.55
