"""
===========================================
Risk by age: a curve with a confidence band
===========================================

A hospital asks how the risk of a complication depends on age. Odds ratios per ten years would hide that both the young and the
old are at risk. An additive model has a curve for each number. With ``inference=True`` each curve has a confidence band, which
covers the sampling of the patients and the noise that protects them.
"""

# %%
# The table
# ---------
#
# Made-up records of 30 000 patients, for whom the true curve is known. Bounds and categories come from public knowledge.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPAdditiveClassifier
from skdp.inspection import AdditiveDisplay

rng = np.random.default_rng(0)
n = 30_000
patients = pd.DataFrame(
    {
        "age": rng.normal(55, 15, n).clip(18, 95),
        "weight": rng.normal(80, 14, n).clip(40, 180),
        "ward": rng.choice(["surgery", "medicine", "gynaecology"], n, p=[0.5, 0.4, 0.1]),
    }
)


def effect_of_age(age):
    """Return what age adds to the log-odds: it is lowest at 45."""
    return ((age - 45) / 25) ** 2


log_odds = -2 + effect_of_age(patients["age"]) + 0.6 * (patients["ward"] == "surgery")
complication = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
schema = {
    "columns": {
        "age": {"kind": "number", "bounds": [18, 95]},
        "weight": {"kind": "number", "bounds": [40, 180]},
        "ward": {"kind": "category", "categories": ["surgery", "medicine", "gynaecology"]},
    }
}

# %%
# The fit
# -------
#
# The plan says beforehand, from the numbers of records and columns and the budget alone, whether the curves are likely to be
# identified. One small release places the knots of each curve where the patients are.
model = DPAdditiveClassifier(epsilon=2, schema=schema, classes=[0, 1], inference=True)
print(model.plan(n).noise_size.partition("intervals: ")[2])
model.fit(patients, complication)

# %%
# The curves
# ----------
#
# The dark part of a band is the noise, and the light part adds the sampling of the patients. The height is relative to an
# average patient.
AdditiveDisplay.from_estimator(model, simultaneous=True)
plt.show()

# %%
# These bands hold a whole curve at once, so that statements about its form are allowed. The true curve is in it. Does weight
# matter? Nothing says so: a constant fits into its band, and the test agrees.
curve = model.bands(simultaneous=True)["age"]
truth = effect_of_age(curve.grid) - effect_of_age(patients["age"]).mean()
low, high = patients["age"].quantile([0.02, 0.98])
among = (curve.grid >= low) & (curve.grid <= high)
held = (curve.lower <= truth) & (truth <= curve.upper)
print(
    f"the band holds the true curve at {100 * held[among].mean():.0f} % of the ages of 96 % of the patients"
)
for name, test in model.column_tests().items():
    print(f"{name}: p = {test.pvalue:.2g}")

# %%
# Single patients
# ---------------
#
# The probability of a complication of patients like these, with its interval:
some = pd.DataFrame({"age": [25, 45, 85], "weight": [80, 80, 80], "ward": ["medicine"] * 3})
for place, (least, most) in enumerate(model.predict_interval(some)):
    print(f"{some['age'][place]} years: {100 * least:.0f} to {100 * most:.0f} %")

tests = model.column_tests()
assert held[among].mean() > 0.9 and tests["age"].pvalue < 0.001 < tests["weight"].pvalue
