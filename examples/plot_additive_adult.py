"""
A private model that can be read
================================

Who earns more than 50 000 dollars? An additive model is a sum of one function per column, for example of age and of education.
The functions are fitted with differential privacy. So they can be published, plotted and discussed, and they reveal little about
any single person in the table. The table is the census income table of UCI (Adult, 1994).
"""

# sphinx_gallery_thumbnail_path = "images/additive_adult_1.png"
# %%
# The table, and what is public about it
# --------------------------------------
# Bounds and categories come from a schema that was written from the documentation of the data set, not from the records.

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, DPLogisticRegression
from skdp.inspection import AdditiveDisplay
from skdp.preprocessing import from_schema, read_table
from skdp.testing import reproducible_noise

repository = Path(sys.argv[0]).resolve().parents[1]
path = Path(os.environ.get("SKDP_DATA", repository.parent / "shared" / "data")) / "adult.csv.gz"
if not path.exists():
    print(f"{path} is missing; set SKDP_DATA to the directory that holds the data sets.")
    raise SystemExit

schema = repository / "examples" / "schemas" / "adult.json"
table = read_table(path, schema)
train, test = table[table["split"] == "train"], table[table["split"] == "test"]
print(f"{len(train)} people to learn from, {len(test)} to test on")

# %%
# Fit
# ---
# One call fits the model to the unprepared columns. The ``with`` block makes the noise reproducible, which is for examples only:
# fit a model that you publish outside of it.

with reproducible_noise(0):
    model = DPAdditiveClassifier(epsilon=1.0, schema=schema).fit(train, train["income"])
auc = roc_auc_score(test["income"], model.decision_function(test))
print(f"accuracy {model.score(test, test['income']):.3f}, area under the ROC curve {auc:.3f}")

# %%
# For comparison, a model that is linear in the numbers, at the same epsilon:

linear = DPLogisticRegression(epsilon=1.0, data_norm=1.0)
with reproducible_noise(0):
    linear.fit(from_schema(schema).fit_transform(train), train["income"])
auc_linear = roc_auc_score(
    test["income"], linear.decision_function(from_schema(schema).fit_transform(test))
)
print(f"area under the ROC curve of the linear model {auc_linear:.3f}")

# %%
# Read
# ----
# The most important functions come first. A height of 1 multiplies the odds of a high income by e, 2.7; 0 stands for an average
# record. The band shows the noise that was added for privacy. Where there are hardly any records, as for capital gains of 100
# dollars, the band is wide, and the shape of the curve has no meaning.

AdditiveDisplay.from_estimator(model, order="value")
plt.show()

# %%
# One person
# ----------
# ``explain`` returns the contribution of each column for one record. The contributions and the baseline, which is the log-odds of
# an average record, add up to the prediction.

person = test.iloc[[3]]
parts = pd.DataFrame(
    {"value": person[list(model.shape_functions_)].iloc[0], "adds": model.explain(person)[0]}
)
print(parts.sort_values("adds", key=abs, ascending=False).to_string(float_format="{:+.2f}".format))
log_odds = model.baseline_[0] + parts["adds"].sum()
print(
    f"baseline {model.baseline_[0]:+.2f}, together {log_odds:+.2f}, probability {model.predict_proba(person)[0, 1]:.2f}"
)

# %%
# What must rise
# --------------
# If it is known that more education can only help, state it as a constraint. The released curve is made monotone after the fit,
# which costs no privacy and removes fluctuations that are noise. But this is a second fit, which spends budget again, so decide
# before the first one. (Both fits have the same seed, and so the same noise.)

rising = DPAdditiveClassifier(epsilon=1.0, schema=schema, monotone={"education-num": 1})
with reproducible_noise(0):
    rising.fit(train, train["income"])
# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, fitted, title in zip(
    axes, (model, rising), ("as released", "brought in order"), strict=True
):
    AdditiveDisplay.from_estimator(fitted, features=["education-num"], ax=ax)
    ax.set(title=f"education-num, {title}", ylabel="")
axes[0].set_ylabel("added to the log-odds")
plt.show()

# %%
# What it cost
# ------------
# The report states the guarantee, the assumptions, and what is public.

print(model.privacy_report_)

# %%
# The additive model beats the linear one, and the curve rises:

education = rising.shape_functions_["education-num"].values
assert auc > max(auc_linear + 0.005, 0.9) and (education[1:] >= education[:-1] - 1e-12).all()
