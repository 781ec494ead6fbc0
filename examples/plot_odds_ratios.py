"""
========================================
Odds ratios with intervals, and privacy
========================================

A hospital wants to publish how smoking, age and blood pressure go with a disease. The model is fitted under differential
privacy with ``inference=True``. Its intervals cover both the sampling of the patients and the noise that protects them.
"""

# %%
# The table
# ---------
#
# Made-up records of 20 000 patients, in which the true odds ratios are known. The bounds of the columns come from public
# knowledge, such as a measurement protocol, and not from the records.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPLogisticRegression
from skdp.inspection import CoefficientDisplay

rng = np.random.default_rng(0)
n = 20_000
patients = pd.DataFrame(
    {
        "age": rng.uniform(30, 80, n).round(),
        "smoker": rng.integers(0, 2, n),
        "blood_pressure": rng.normal(130, 15, n).clip(80, 200),
        "shoe_size": rng.normal(41, 3, n).clip(34, 48),
    }
)
log_odds = (
    -6.5 + 0.05 * patients["age"] + 0.7 * patients["smoker"] + 0.02 * patients["blood_pressure"]
)
ill = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
bounds = {"age": (30, 80), "smoker": (0, 1), "blood_pressure": (80, 200), "shoe_size": (34, 48)}

# %%
# The fit
# -------
#
# ``inference=True`` spends the same epsilon. A part of it pays for the covariance of the coefficients.
model = DPLogisticRegression(epsilon=2, classes=[0, 1], feature_bounds=bounds, inference=True)
model.fit(patients, ill)
print(model.summary())

# %%
# The column "noise %" says how much of the variance of a coefficient is due to the privacy noise; the rest is sampling, and would
# be there without privacy.
#
# The plot
# --------
#
# An odds ratio is for one unit of a column, so we ask for ten years, and for 10 mmHg. The thick part of a line is the noise.
CoefficientDisplay.from_estimator(model, units={"age": 10, "blood_pressure": 10})
plt.show()

# %%
# Questions about several coefficients
# ------------------------------------
#
# Is smoking worth more than ten years of age? The contrast is the difference of both effects on the log-odds.
difference = model.contrast({"smoker": 1, "age": -10}, names=["smoker - 10 years"])
print(
    f"{difference.estimate[0]:.2f}, 95 % interval [{difference.lower[0]:.2f}, {difference.upper[0]:.2f}]"
)

# %%
# All of this is computed from what the fit released, so it costs no further budget.
table = model.summary().to_frame()
assert table.loc["smoker", "odds_lower"] > 1
