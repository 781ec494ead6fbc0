"""
Bounds that are too wide or too narrow
======================================

Bounds of columns are public knowledge: you state them, and do not compute them from the records. Nobody knows them exactly. What
does it cost to state ten times the true range, or a tenth of it? Values outside the bounds are clipped. If the values fill only a
small part of the bounds, the signal is weak, but the noise is as large as for the whole range.
"""

# %%
# One table, many bounds
# ----------------------
# The table is made up: ten columns, whose true values lie between 0 and 100. ``feature_bounds`` states that they lie between 0
# and B. If the releases contradict the bounds, ``fit`` warns. Here the warnings are ignored, because the scores show the effect.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPLogisticRegression
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
X = rng.uniform(0, 100, size=(24_000, 10))
y = ((X / 50 - 1) @ rng.normal(size=10) + 0.5 * rng.logistic(size=24_000) > 0).astype(int)
X_train, y_train, X_test, y_test = X[:4000], y[:4000], X[4000:], y[4000:]
bounds = np.array([1, 3, 10, 30, 100, 300, 1000, 3000, 10_000])


def accuracy(epsilon, bound):
    """Median test accuracy of five private fits."""
    model = DPLogisticRegression(epsilon=epsilon, feature_bounds=(0, bound), classes=[0, 1])
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return np.median([model.fit(X_train, y_train).score(X_test, y_test) for _ in range(5)])


curves = {epsilon: [accuracy(epsilon, bound) for bound in bounds] for epsilon in (0.1, 0.3, 1.0)}

# %%
# The picture
# -----------

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (epsilon, scores), colour in zip(
    curves.items(), ("tab:orange", "tab:green", "tab:blue"), strict=True
):
    ax.plot(bounds, scores, marker="o", color=colour, label=f"epsilon {epsilon:g}")
ax.axvline(100, color="black", linestyle="--", label="the true bound")
ax.axhline(0.5, color="grey", linestyle=":", label="a coin")
ax.set(
    xscale="log",
    xlabel="bound that was stated",
    ylabel="test accuracy",
    title="Ten columns, 4000 training records",
)
ax.legend()
plt.show()

# %%
# At epsilon 1, bounds that are three times too wide cost almost nothing. Bounds that are three times too narrow cost much,
# because most values are clipped to the same number. If you are not sure, state the wider bound, but not a much wider one if
# epsilon is small.

print(pd.DataFrame(curves, index=bounds).rename_axis(index="bound", columns="epsilon").round(2))

# %%
# The scores agree with the text, at epsilon 1 and at small epsilon:

right = list(bounds).index(100)
too_narrow_costs_more = curves[1.0][right + 1] > curves[1.0][right - 1] + 0.05
too_wide_costs_at_small_epsilon = curves[0.1][-1] < curves[0.1][right] - 0.1
assert too_narrow_costs_more and too_wide_costs_at_small_epsilon
