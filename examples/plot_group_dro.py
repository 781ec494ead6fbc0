"""
For the group that fares worst
==============================

A model that is right on average may be wrong half of the time for a small group that follows a different rule.
`skdp.DPGroupDROClassifier` minimises the largest loss of a group; the groups must be public. The patients of this example are
made up: most are in a large hospital, some in a small one, whose laboratory works differently. The hospital of each patient is
assumed to be public; the measurements and the illness are private.
"""

# %%
# Two hospitals
# -------------
# There are six measurements in [-1, 1]. In the large hospital the first one indicates the illness, in the small one also the
# second.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skdp import DPGroupDROClassifier, DPLogisticRegression
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
hospital = np.where(np.arange(30_000) < 3_000, "small", "large")
X = rng.uniform(-1, 1, size=(30_000, 6))
risk = np.where(hospital == "small", X @ [4, 8, 0, 0, 0, 0], X @ [8, -2, 0, 0, 0, 0])
ill = risk + rng.logistic(size=30_000) > 0
X_train, X_test, ill_train, ill_test, train, test = train_test_split(
    X, ill, hospital, random_state=0, stratify=hospital
)

# %%
# The noise before anything is spent
# ----------------------------------
# The smallest group determines the noise. The plan compares the noise with the mean gradient of this group.

names, sizes = np.unique(train, return_counts=True)
model = DPGroupDROClassifier(epsilon=1.0)
print(model.plan(len(train), 6, group_sizes=sizes).noise_size)

# %%
# Two fits
# --------
# Both fits have the same epsilon and delta. Predictions need no group. The ``with`` block makes the noise reproducible, which is
# for examples only: fit a model that you publish outside of it.

with reproducible_noise(0):
    model.fit(X_train, ill_train, groups=train)
with reproducible_noise(0):
    plain = DPLogisticRegression(epsilon=1.0).fit(X_train, ill_train)
models = {"DPLogisticRegression": plain, "DPGroupDROClassifier": model}


def by_hospital(score):
    """A score of both models for the patients of each hospital that neither has seen."""
    return {
        name: [score(fitted, X_test[test == group], ill_test[test == group]) for group in names]
        for name, fitted in models.items()
    }


accuracy = by_hospital(lambda fitted, X, y: fitted.score(X, y))
loss = by_hospital(lambda fitted, X, y: log_loss(y, fitted.predict_proba(X), labels=[False, True]))
for name, fitted in models.items():
    print(
        f"{name}: accuracy {fitted.score(X_test, ill_test):.3f}, in the worse hospital {min(accuracy[name]):.3f}"
    )

# %%
# The largest loss falls, and so does the difference between the hospitals. The large hospital pays for it. Because most patients
# are there, the average accuracy falls.

figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True, layout="constrained")
for ax, scores, title in zip(
    axes, (accuracy, loss), ("accuracy", "mean logistic loss"), strict=True
):
    for (name, values), marker in zip(scores.items(), "os", strict=True):
        ax.plot(values, names, marker, markersize=8, label=name)
    ax.set(xlabel=f"{title}, patients not seen", ylim=(-0.5, 1.5))
    ax.grid(axis="y", alpha=0.4)
axes[0].set(ylabel="hospital", xlim=(0.4, 1.0))
axes[0].axvline(0.5, color="gray", linestyle=":", label="a coin")
axes[1].axvline(np.log(2), color="gray", linestyle=":")
axes[1].set_xlim(0, None)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
plt.show()

# %%
# The released weights of the groups add up to 1. They show which group the fit concentrated on:

print(dict(zip(model.groups_.tolist(), model.group_weights_.round(2).tolist(), strict=True)))

# %%
# What it cost
# ------------
# The report states the guarantee, the assumptions, and what is public, which here includes the groups. Do not make groups from
# the labels, or from anything else that must be protected.

print(model.privacy_report_)

# %%
# The accuracy in the small hospital improves by far more than the noise, and is better than guessing:

baseline = max(min(accuracy["DPLogisticRegression"]), 0.5)
assert min(accuracy["DPGroupDROClassifier"]) > baseline + 0.05
