"""
Which columns matter together
=============================

How many bicycles are hired in an hour? On working days people ride to work at eight and home at six; at weekends they ride in the
afternoon. An additive model has to be told that the hour and the kind of day matter together. Gradient boosting finds it by
itself, and the fitted model can be read: curves of columns, heat maps of pairs, and what each column adds for a record. The table
is the bike sharing table of UCI (2011 and 2012). Its records are hours, so here an hour is what privacy protects; in a table of
people it would be a person.
"""

# sphinx_gallery_thumbnail_path = "images/boosting_bike_1.png"
# %%
# The table, and what is public about it
# --------------------------------------
# A year has twelve months and a day has 24 hours. Temperature, humidity and wind are fractions of public maxima.

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPAdditiveRegressor, DPGradientBoostingRegressor
from skdp.inspection import AdditiveDisplay
from skdp.testing import reproducible_noise

beside = Path(sys.argv[0]).resolve().parents[2] / "shared" / "data"
path = Path(os.environ.get("SKDP_DATA", beside)) / "bike_sharing_hour.csv.gz"
if not path.exists():
    print(f"{path} is missing; set SKDP_DATA to the directory that holds the data sets.")
    raise SystemExit

table = pd.read_csv(path)
first_and_last = {
    "season": (1, 4),
    "yr": (0, 1),
    "mnth": (1, 12),
    "hr": (0, 23),
    "holiday": (0, 1),
    "weekday": (0, 6),
}
first_and_last |= {"workingday": (0, 1), "weathersit": (1, 4)}
columns = {
    name: {"kind": "category", "categories": [str(value) for value in range(first, last + 1)]}
    for name, (first, last) in first_and_last.items()
}
columns |= {name: {"kind": "number", "bounds": [0, 1]} for name in ("temp", "hum", "windspeed")}
schema = {"columns": columns, "target": "cnt"}
place = np.random.default_rng(0).permutation(len(table))
train, test = table.iloc[place[: len(table) * 4 // 5]], table.iloc[place[len(table) * 4 // 5 :]]

# %%
# Two fits
# --------
# The public bound on the target is 1000 bicycles per hour. Nothing says which columns interact.

params = {"epsilon": 3.0, "schema": schema, "target_bounds": (0, 1000), "random_state": 0}
with reproducible_noise(0):  # for examples only: a model to publish is fitted outside of it
    additive = DPAdditiveRegressor(**params).fit(train, train["cnt"])
    boosted = DPGradientBoostingRegressor(**params).fit(train, train["cnt"])
print(
    f"R2 {additive.score(test, test['cnt']):.3f} additive, {boosted.score(test, test['cnt']):.3f} boosted"
)

# %%
# Which pairs interact
# --------------------
# The strength of a pair is the root mean square of what the two columns add together and neither of them adds alone, in bicycles
# per hour. It follows from the model, without the records.

for pair, strength in list(boosted.interactions_.items())[:5]:
    print(f"{' x '.join(pair):20} {strength:3.0f}")

# %%
# Hours by working day
# --------------------
# The heat map shows the interaction of the strongest pair: on working days (1), more bicycles than the sum of both curves at
# eight and at five and six, and fewer at noon. Dots mark points where the band of the noise contains 0.

(strongest, *_) = boosted.interactions_
AdditiveDisplay.from_estimator(boosted, features=[strongest, "hr", "temp"], n_cols=3)
plt.show()

# %%
# Three hours
# -----------
# Eight o'clock on a working day and on a day off, and three in the morning. The contributions are Shapley values: an interaction
# is shared between its columns. Together with the baseline they are the prediction.

hours = test[(test["weathersit"] == 1) & (test["yr"] == 1)]
kinds = [(8, 1), (8, 0), (3, 1)]
records = pd.concat(
    [
        hours[(hours["hr"] == hour) & (hours["workingday"] == working)].head(1)
        for hour, working in kinds
    ]
)
parts = pd.DataFrame(
    boosted.explain(records),
    columns=list(boosted.shape_functions_),
    index=["8, working day", "8, day off", "3, working day"],
)
parts.insert(0, "a usual hour", boosted.baseline_[0])
parts["together"] = parts.sum(axis=1)
parts["counted"] = records["cnt"].to_numpy()
print(parts.T.round().astype(int).to_string())

# %%
# The pair was found, and the model is better for it:

assert set(strongest) == {"hr", "workingday"}
assert boosted.score(test, test["cnt"]) > additive.score(test, test["cnt"]) + 0.1 > 0.7
