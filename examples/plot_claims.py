"""
===================================
Insurance claims and rating factors
===================================

How many claims does a contract cause in a year? Effects of age and region multiply, contracts have run for different times, and
most have no claim at all. A regressor with ``link="log_count"`` fits such counts under differential privacy. What it releases
reads as a table of rating factors, with bands for the noise that protects the customers.
"""

# %%
# The table
# ---------
#
# Made-up contracts, for which the true factors are known. The exposure is the part of a year that a contract has run.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPAdditiveRegressor
from skdp.metrics import dp_mean_poisson_deviance
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
n, n_train = 120_000, 100_000
contracts = pd.DataFrame(
    {
        "age": rng.normal(46, 15, n).clip(18, 90).round(),
        "power": rng.normal(80, 20, n).clip(30, 150).round(),
        "region": rng.choice(["city", "suburb", "country"], n, p=[0.3, 0.45, 0.25]),
    }
)
years = np.where(rng.random(n) < 0.5, 1.0, rng.uniform(0.05, 1, n))
of_region = {"city": 1.5, "suburb": 1.0, "country": 0.8}


def of_age(age):
    """Return the factor of an age: beginners, and a slow rise of the old."""
    return 0.8 + 1.4 * np.exp(-(age - 18) / 7) + 0.5 * np.maximum(age - 65, 0) / 20


rate = 0.1 * of_age(contracts["age"]) * contracts["region"].map(of_region)
claims = rng.poisson(rate * np.sqrt(contracts["power"] / 80) * years)
print(f"{(claims == 0).mean():.0%} of the contracts have no claim")

# %%
# The fit
# -------
#
# Bounds and categories are public, and so are the range of the counts and the largest exposure, one year. The exposure itself is
# a private part of each record.
schema = {
    "columns": {
        "age": {"kind": "number", "bounds": [18, 90]},
        "power": {"kind": "number", "bounds": [30, 150]},
        "region": {"kind": "category", "categories": ["city", "suburb", "country"]},
    }
}
model = DPAdditiveRegressor(epsilon=2, schema=schema, link="log_count", target_bounds=(0, 10))
with reproducible_noise(0):  # for examples only: a model to publish is fitted outside of it
    model.fit(contracts[:n_train], claims[:n_train], exposure=years[:n_train])
print(model.calibration_)

# %%
# Rating factors
# --------------
#
# The functions add up to the logarithm of the rate, so their exponentials are factors that multiply. A factor of 1 is that of an
# average contract. The bands are for the noise in the form of the functions, and for that of the slope, which stretches all of
# them together.


def factor(curve):
    """Return a released function of a column as factors, with a 95 % band for the noise."""
    return [np.exp(part) for part in (curve.values, curve.lower, curve.upper)]


figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
for ax, (name, curve) in zip(axes, model.shape_functions_.items(), strict=True):
    value, low, high = factor(curve)
    if name == "region":
        ax.errorbar(curve.grid[:3], value[:3], [(value - low)[:3], (high - value)[:3]], fmt="o")
        ax.margins(x=0.2)
    else:
        among = contracts[name].quantile([0.01, 0.99])
        shown = (curve.grid >= among.iloc[0]) & (curve.grid <= among.iloc[1])
        ax.plot(curve.grid[shown], value[shown])
        ax.fill_between(curve.grid[shown], low[shown], high[shown], alpha=0.25)
    ax.axhline(1, color="grey", linewidth=0.6)
    ax.set(title=name, yscale="log")
axes[0].set(ylabel="factor of the claim rate", ylim=(0.4, 3), yticks=[0.5, 1, 2])
axes[0].set_yticks([], minor=True)
axes[0].set_yticklabels(["0.5", "1", "2"])
plt.show()

# %%
# As a table, for some ages, beside the truth. Strong effects come out a little smaller than they are: the fit is one of a
# logarithm, and a count is mostly 0.
curve = model.shape_functions_["age"]
places = [int(np.argmin(np.abs(curve.grid - age))) for age in (18, 22, 30, 45, 60, 75)]
table = pd.DataFrame(factor(curve), index=["factor", "low", "high"], columns=curve.grid.round())
table.loc["truth"] = of_age(curve.grid) / of_age(contracts["age"]).mean()
print(table.iloc[:, places].T.round(2).to_string())

# %%
# How good is it?
# ---------------
#
# ``predict`` is the rate of a year, so the expected claims of a contract are the rate times its exposure. The deviance of other
# contracts is released with noise, too. One less the ratio to that of a constant rate is the explained share, D2. For rare claims
# it is small even for the true rates, as chance decides about single claims.
test = slice(n_train, None)
constant = claims[:n_train].sum() / years[:n_train].sum()  # of this made-up table: no release
deviance = {}
with reproducible_noise(1):
    for name, rates in (("model", model.predict(contracts[test])), ("constant", constant)):
        deviance[name] = dp_mean_poisson_deviance(claims[test], years[test] * rates, epsilon=1)
        print(deviance[name])
explained = 1 - float(deviance["model"]) / float(deviance["constant"])
print(f"D2 {explained:.3f}")

# %%
# Sums matter to an insurer: expected claims add up to those that were counted.
expected = years[test] * model.predict(contracts[test])
print(f"expected {expected.sum():.0f}, counted {claims[test].sum()}")

assert abs(expected.sum() / claims[test].sum() - 1) < 0.1
assert table.iloc[0, places[0]] > 1.4 * table.iloc[0, places[3]] and table.loc["low"].max() > 1.3
