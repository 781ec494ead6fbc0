"""
A private model that can be read
================================

Who earns more than 50 000 dollars? An additive model adds up one function per column: so much for the age, so much for the
education. The functions are fitted with differential privacy, so they can be published, drawn and discussed, and what they say
about any single person in the table is limited. The table is the census income table of UCI (Adult, 1994).
"""

# sphinx_gallery_thumbnail_path = "images/additive_adult_1.png"
# %%
# The table, and what is public about it
# --------------------------------------
# Bounds and categories come from a schema that was written from the documentation of the data set, not from its records.

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
# One call, on the columns as they are. The block repeats the noise, which is for examples only: fit a model to publish outside of
# it.

with reproducible_noise(0):
    model = DPAdditiveClassifier(epsilon=1.0, schema=schema).fit(train, train["income"])
auc = roc_auc_score(test["income"], model.decision_function(test))
print(f"accuracy {model.score(test, test['income']):.3f}, area under the ROC curve {auc:.3f}")

# %%
# A model that is linear in the numbers, at the same epsilon:

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
# The most important functions come first. A height of 1 multiplies the odds of a high income by e, 2.7; 0 is a usual record.
# The band is the noise that was added for privacy: where there are hardly any records, as for capital gains of 100 dollars, it is
# wide, and what the curve does there means nothing.

AdditiveDisplay.from_estimator(model, order="value")
plt.show()

# %%
# One person
# ----------
# What each column adds for one record. Together with the baseline, the log-odds of a usual record, it is the prediction.

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
# Where it is known that more education can only help, the model can be told so. The released curve is brought in order after the
# fit, which costs no privacy, and takes out wiggles that are noise. It is a second fit all the same, and spends a second time,
# unless it is the only one: decide beforehand. (With the seed of the first fit, both have the same noise.)

rising = DPAdditiveClassifier(epsilon=1.0, schema=schema, monotone={"education-num": 1})
with reproducible_noise(0):
    rising.fit(train, train["income"])
# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, fitted, title in zip(
    axes, (model, rising), ("as released", "brought in order"), strict=True
):
    AdditiveDisplay.from_estimator(fitted, terms=["education-num"], ax=ax)
    ax.set(title=f"education-num, {title}", ylabel="")
axes[0].set_ylabel("added to the log-odds")
plt.show()

# %%
# What it cost
# ------------
# The report says what is guaranteed, what was assumed, and what counts as public.

print(model.privacy_report_)

# %%
# The linear model is beaten, and the curve rises:

education = rising.shape_functions_["education-num"].values
assert auc > max(auc_linear + 0.005, 0.9) and (education[1:] >= education[:-1] - 1e-12).all()
