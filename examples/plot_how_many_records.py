"""
How many records does a fit need?
=================================

The signal grows with the table, the noise does not. So for every epsilon there is a number of records below which a fit is
useless. ``plan`` computes this number from public facts alone. It needs no records and spends nothing.
"""

# %%
# Ask the plan
# ------------
# ``needed`` has the number of records that a fit at this epsilon needs to be better than a constant, and the epsilon that it
# needs with this number of records. A good model needs several times as much.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPLogisticRegression, LowSignalWarning
from skdp.testing import reproducible_noise

plan = DPLogisticRegression(epsilon=0.1, data_norm=1.0, classes=[0, 1]).plan(
    n_samples=500, n_features=20
)
print(plan.noise_size)
print(plan.needed)

# %%
# The same for several numbers of features, as a function of epsilon:

epsilons = np.geomspace(0.03, 10, 12)


def least(epsilon, n_features):
    """Return the number of records above which a model is likely to be better than a constant."""
    model = DPLogisticRegression(epsilon=epsilon, delta=1e-8, data_norm=1.0, classes=[0, 1])
    return model.plan(n_samples=10, n_features=n_features).needed.n_samples


curves = {
    n_features: [least(epsilon, n_features) for epsilon in epsilons] for n_features in (5, 20, 100)
}

# %%
# And try it
# ----------
# This measures the accuracy of ten fits for each size of a made-up table, with twenty features and epsilon 0.3. The ``with``
# block makes the noise reproducible, which is for examples only. On the small tables ``fit`` would warn; here we ignore the
# warning to see the effect.

rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 20)) / np.sqrt(20)
y = (X @ rng.normal(size=20) + 0.3 * rng.logistic(size=40_000) > 0).astype(int)
X_test, y_test = X[20_000:], y[20_000:]
sizes = np.array([200, 500, 1000, 2000, 5000, 20_000])


def accuracies(size):
    """Return the test accuracies of ten fits on the first records."""
    model = DPLogisticRegression(epsilon=0.3, delta=1e-8, data_norm=1.0, classes=[0, 1])
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        return [model.fit(X[:size], y[:size]).score(X_test, y_test) for _ in range(10)]


scores = np.array([accuracies(size) for size in sizes])
threshold = least(0.3, 20)

# %%
# The picture
# -----------
# Left: the minimum number of records. Right: the accuracy; the dashed line is the number that the plan computed.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for (n_features, records), colour in zip(
    curves.items(), ("tab:green", "tab:blue", "tab:purple"), strict=True
):
    axes[0].plot(epsilons, records, color=colour, marker=".", label=f"{n_features} features")
axes[0].set(
    xscale="log",
    yscale="log",
    xlabel="epsilon",
    ylabel="records",
    title="The least number of records",
)
axes[0].grid(alpha=0.4)
axes[0].legend()
axes[1].plot(sizes, scores, ".", color="tab:blue", alpha=0.5)
axes[1].plot(sizes, np.median(scores, axis=1), color="tab:blue", label="median of ten fits")
axes[1].axvline(threshold, color="black", linestyle="--", label=f"the plan: {threshold:,} records")
axes[1].axhline(0.5, color="grey", linestyle=":", label="a coin")
axes[1].set(
    xscale="log", xlabel="records", ylabel="test accuracy", title="20 features, epsilon 0.3"
)
axes[1].legend(loc="lower right")
plt.show()

# %%
# A larger epsilon needs fewer records. With more records than the plan asks for, the model is much better than guessing:

falling = all(np.diff(records).max() <= 0 for records in curves.values())
assert falling and np.median(scores[sizes > 2 * threshold]) > 0.7
