"""
Two columns that matter together
================================

How many bicycles are hired in an hour? On working days people ride to work at eight and home at six; at weekends they ride in the
afternoon. A sum of a function of the hour and a function of the day cannot express that. A function of the pair of both columns
can. The table is the bike sharing table of UCI (2011 and 2012). Its records are hours, so here an hour is what privacy protects;
in a table of people it would be a person.
"""

# sphinx_gallery_thumbnail_path = "images/additive_bike_2.png"
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

from skdp import DPAdditiveRegressor
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
# One function per column
# -----------------------
# The public bound on the target is 1000 bicycles per hour.

params = {"epsilon": 1.0, "schema": schema, "target_bounds": (0, 1000)}
with reproducible_noise(0):  # for examples only: a model to publish is fitted outside of it
    alone = DPAdditiveRegressor(**params).fit(train, train["cnt"])
print(f"R2 {alone.score(test, test['cnt']):.3f}")
AdditiveDisplay.from_estimator(
    alone, features=["hr", "workingday", "temp", "hum", "weathersit", "mnth"], n_cols=4
)
plt.show()

# %%
# And a function of two
# ---------------------
# The pair has 25 x 3 coefficients, one for each hour on each kind of day (including "other" for unknown values), and each
# coefficient adds noise. For this pair the gain is larger than the noise.

with reproducible_noise(0):
    together = DPAdditiveRegressor(interactions=[("hr", "workingday")], **params).fit(
        train, train["cnt"]
    )
print(f"R2 {together.score(test, test['cnt']):.3f}")
AdditiveDisplay.from_estimator(together, features=[("hr", "workingday"), "hr", "temp"], n_cols=3)
plt.show()

# %%
# Three hours
# -----------
# Eight o'clock on a working day and on a Sunday, and three in the morning:

hours = test[(test["weathersit"] == 1) & (test["yr"] == 1)]
kinds = [(8, 1), (8, 0), (3, 1)]
records = pd.concat(
    [
        hours[(hours["hr"] == hour) & (hours["workingday"] == working)].head(1)
        for hour, working in kinds
    ]
)
names = [name if isinstance(name, str) else " x ".join(name) for name in together.shape_functions_]
parts = pd.DataFrame(
    together.explain(records),
    columns=names,
    index=["8, working day", "8, day off", "3, working day"],
)
parts.insert(0, "a usual hour", together.baseline_[0])
parts["together"] = parts.sum(axis=1)
parts["counted"] = records["cnt"].to_numpy()
print(parts.T.round().astype(int).to_string())

# %%
# What it cost
# ------------
# Two fits on the same records spend budget twice. The report covers one of them:

print(together.privacy_report_)

# %%
# The pair improves the model:

assert together.score(test, test["cnt"]) > alone.score(test, test["cnt"]) + 0.08 > 0.7
