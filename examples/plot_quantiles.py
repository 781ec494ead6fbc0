"""
A fan of quantiles
==================

How long does a repair take? A mean says little if times vary, and if they vary more for large repairs. Five quantile regressions
give the whole picture: half of the repairs take less time than the middle line, and nine of ten take less than the uppermost
line. The models need no bounds of the times: a part of the budget is used to learn their location and scale.
"""

# %%
# Repairs
# -------
# The records are made up: the size of a repair is between 0 and 10, and the time in minutes has a long tail. The columns are
# powers of the size, so that the lines can be curved. Public bounds scale them to [-1, 1].

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skdp import DPQuantileRegressor, PrivacyLedger
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
size = rng.uniform(0, 10, 40_000)
minutes = 30 + 12 * size + (2 + size**1.5) * rng.gamma(2.0, 2.0, size=40_000)


def powers(size):
    """Return the size and its square, scaled to [-1, 1]."""
    place = size / 5 - 1
    return np.column_stack([place, place**2])


X, X_test, y, y_test = train_test_split(powers(size), minutes, random_state=0)

# %%
# Five fits, one budget
# ---------------------
# Five fits on the same records spend budget five times. The ledger adds them up: five times epsilon 0.5 is less than 1.5
# together. The ``reproducible_noise`` block makes the noise reproducible, which is for examples only.

quantiles = (0.1, 0.25, 0.5, 0.75, 0.9)
ledger = PrivacyLedger(epsilon=2.5, delta=1e-6)
with ledger, reproducible_noise(0):
    fits = [
        DPQuantileRegressor(epsilon=0.5, delta=1e-7, quantile=q, data_norm=1.5).fit(X, y)
        for q in quantiles
    ]
below = [np.mean(y_test <= fit.predict(X_test)) for fit in fits]
print(f"spent together: epsilon {ledger.spent_after_each[-1]:.2f} at delta 1e-6")
for q, share in zip(quantiles, below, strict=True):
    print(f"quantile {q:.2f}: {share:.3f} of the times of the test records are below the line")

# %%
# The picture
# -----------
# The dots are test records. Here they are made up; with private records, such a plot would not be private.

grid = np.linspace(0, 10, 101)
lines = [fit.predict(powers(grid)) for fit in fits]
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
shown = np.arange(0, len(y_test), 8)
ax.plot(5 * (X_test[shown, 0] + 1), y_test[shown], ".", color="grey", markersize=2, alpha=0.5)
for outer, opacity, share in ((0, 0.2, "eight tenths"), (1, 0.4, "half")):
    ax.fill_between(
        grid,
        lines[outer],
        lines[-1 - outer],
        color="tab:blue",
        alpha=opacity,
        linewidth=0,
        label=f"{share} of the repairs",
    )
ax.plot(grid, lines[2], color="tab:blue", label="median")
ax.set(
    xlabel="size of the repair",
    ylabel="minutes",
    ylim=(0, 450),
    xlim=(0, 10),
    title="Five private quantile regressions",
)
ax.legend(loc="upper left")
plt.show()

# %%
# The share of the test times below each line is close to the requested one:

assert np.abs(np.subtract(below, quantiles)).max() < 0.03
