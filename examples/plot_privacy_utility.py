"""
What privacy costs in accuracy
==============================

A smaller epsilon gives a stronger guarantee and adds more noise. How much accuracy does that cost? This example fits
scikit-learn's breast cancer table, which has only 426 training records, twenty times for each of several values of epsilon. The
records are public, so the comparison is harmless. On private records, every fit would spend budget.
"""

# %%
# Records and what is public about them
# -------------------------------------
# The bounds stand for what a laboratory knows about its instrument: they are round numbers, not the largest values of the table.
# For each measurement there is a mean, a standard error and a worst value.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression, LowSignalWarning
from skdp.preprocessing import BoundedScaler
from skdp.testing import reproducible_noise

mean = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.35, 0.1]
error = [3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03]
worst = [40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25]
X, y = load_breast_cancer(return_X_y=True)
X = BoundedScaler(bounds=[(0, largest) for largest in mean + error + worst]).fit_transform(X)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.25, random_state=0, stratify=y
)

# %%
# Twenty fits per epsilon
# -----------------------
# ``data_norm`` is the bound on the length of a row. Rows of thirty columns in [-1, 1] have a length of at most 5.5, and rows that
# are longer than 3 are scaled down to it. Below epsilon 0.6, ``fit`` warns that 426 records are too few; the example ignores the
# warning. The ``with`` block makes the noise reproducible, which is for examples only.

epsilons = np.array([0.1, 0.2, 0.5, 1, 2, 5, 10])


def accuracies(epsilon):
    """Return the test accuracies of twenty private fits."""
    model = DPLogisticRegression(epsilon=epsilon, data_norm=3.0, classes=[0, 1])
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        return [model.fit(X_train, y_train).score(X_test, y_test) for _ in range(20)]


scores = np.array([accuracies(epsilon) for epsilon in epsilons])
without_privacy = LogisticRegression(max_iter=1000).fit(X_train, y_train).score(X_test, y_test)
larger_class = max(y_test.mean(), 1 - y_test.mean())

# %%
# The picture
# -----------
# The dark band contains half of the fits, the light band eight of ten. At epsilon 0.1 a model is hardly better than always
# predicting the larger class, and may be worse.

lowest, low, middle, high, highest = np.quantile(scores, [0.1, 0.25, 0.5, 0.75, 0.9], axis=1)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(
    epsilons, lowest, highest, color="tab:blue", alpha=0.15, linewidth=0, label="8 fits of 10"
)
ax.fill_between(
    epsilons, low, high, color="tab:blue", alpha=0.35, linewidth=0, label="half of the fits"
)
ax.plot(epsilons, middle, color="tab:blue", marker="o", label="median of the private fits")
ax.axhline(without_privacy, color="black", linestyle="--", label="without privacy")
ax.axhline(larger_class, color="grey", linestyle=":", label="the larger class")
ax.set(
    xscale="log",
    xlabel="epsilon",
    ylabel="test accuracy",
    title="Breast cancer, 426 training records",
)
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.legend(loc="lower right")
plt.show()

# %%
# From epsilon 2 on, the median is within three points of the model without privacy:

assert (middle[epsilons >= 2] > without_privacy - 0.03).all()
