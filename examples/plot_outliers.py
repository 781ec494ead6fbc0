"""
Regression among wrong entries
==============================

Every tenth price in this table is wrong: somebody typed it in cents. Least squares follows the wrong prices, with or without
privacy. The slope of the loss of `skdp.DPRobustRegressor` falls back to zero for large errors, so outliers have no influence.
"""

# %%
# Prices
# ------
# The records are made up: the area of a flat is between 20 and 120 square metres, the price is in thousands.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from skdp import DPLinearRegression, DPRobustRegressor
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
area = rng.uniform(20, 120, 10_000)
true = 50 + 3 * area
price = true + rng.normal(scale=25, size=10_000)
wrong = rng.random(10_000) < 0.1
price[wrong] = np.minimum(100 * price[wrong], 5000)
X = (area[:, None] - 70) / 50

# %%
# Three fits
# ----------
# The squared loss needs the public range of prices. Prices up to 5000 thousand are possible, so the range does not exclude the
# wrong ones. The robust loss needs a threshold instead, which is the error above which a record has less influence, and a typical
# price to start from, here 250. Both are public knowledge about prices, and are not computed from the records. The ``with`` block
# makes the noise reproducible, which is for examples only.

with reproducible_noise(0):
    squared = DPLinearRegression(epsilon=1.0, target_bounds=(0, 5000), data_norm=1.0).fit(X, price)
with reproducible_noise(0):
    robust = DPRobustRegressor(epsilon=1.0, loss="welsch", threshold=100.0, data_norm=1.0).fit(
        X, price - 250
    )
not_private = LinearRegression().fit(X, price)

# %%
# The picture
# -----------
# The wrong entries are far above the figure.

grid = np.linspace(20, 120, 101)
place = (grid[:, None] - 70) / 50
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
shown = slice(0, 2500)
ax.plot(
    area[shown][~wrong[shown]],
    price[shown][~wrong[shown]],
    ".",
    color="grey",
    markersize=2,
    alpha=0.6,
)
ax.plot(grid, 50 + 3 * grid, color="black", linestyle="--", label="the truth")
ax.plot(grid, not_private.predict(place), color="tab:red", label="least squares, not private")
ax.plot(grid, squared.predict(place), color="tab:orange", label="squared loss, epsilon 1")
ax.plot(grid, robust.predict(place) + 250, color="tab:blue", label="Welsch's loss, epsilon 1")
ax.set(
    xlabel="area (square metres)",
    ylabel="price (thousands)",
    ylim=(0, 1100),
    title="One entry in ten is wrong",
)
ax.legend(loc="upper left", ncols=2)
plt.show()

# %%
# The error of the robust fit is less than a fifth of the error with the squared loss:


def off(predicted):
    """Return the mean distance of predictions from the truth."""
    return np.mean(np.abs(predicted - true))


print(
    f"off by {off(robust.predict(X) + 250):.0f} thousand; with the squared loss by {off(squared.predict(X)):.0f}"
)
assert off(robust.predict(X) + 250) < 0.2 * off(squared.predict(X))
