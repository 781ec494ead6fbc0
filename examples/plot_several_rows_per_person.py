"""
Protect persons, not rows
=========================

A table of visits has several rows per patient. A fit that protects single rows protects a patient with K visits about K times
less. This example compares four ways to protect each patient with all visits, on a made-up table.
"""

# %%
# A table of visits
# -----------------
# Visits of a patient are alike: half of the variance of each feature, and of what is not explained, is the patient's. Most
# patients have one or two visits, and few have many: up to K.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression, LowSignalWarning
from skdp.testing import reproducible_noise

N_PATIENTS, N_FEATURES, EPSILON = 2000, 10, 0.5
DELTA = 1 / N_PATIENTS**2
slope = np.linspace(1, -1, N_FEATURES)


def table_of_visits(n_patients, most, rng):
    """Return features and labels of visits, and the patient of each, with up to ``most`` visits per patient."""
    n_visits = np.minimum(1 + rng.pareto(1.1, size=n_patients).astype(int), most)
    patient = np.repeat(np.arange(n_patients), n_visits)

    def half_of_the_patient(width):
        own = rng.normal(size=(n_patients, width))[patient]
        return (own + rng.normal(size=own.shape)) / np.sqrt(2)

    X = half_of_the_patient(N_FEATURES)
    y = (X @ slope + 2 * half_of_the_patient(1)[:, 0] > 0).astype(int)
    return np.clip(X, -3, 3), y, patient


# %%
# Four ways to protect patients
# -----------------------------
# - ``privacy_unit="person"``: all visits are used, and a visit of a patient with k visits counts 1 / k.
# - One visit per patient, drawn at random; a row is a patient then.
# - The mean of the visits of each patient, and the label of most of them.
# - A smaller budget for each row: K rows at epsilon / K are protected with epsilon. Their delta is K e :sup:`epsilon` times that
#   of a row.
#
# The last line of the figure, rows alone, protects a patient with K visits K times less.


def fitted(kind, X, y, patient, most, rng):
    """Return a logistic regression that protects patients; "rows alone" does not."""
    model = DPLogisticRegression(
        epsilon=EPSILON, delta=DELTA, feature_bounds=(-3, 3), classes=[0, 1]
    )
    if kind == "persons":
        return model.set_params(privacy_unit="person").fit(X, y, persons=patient)
    if kind == "one visit each":
        shuffled = rng.permutation(len(y))
        chosen = shuffled[np.unique(patient[shuffled], return_index=True)[1]]
        return model.fit(X[chosen], y[chosen])
    if kind == "means of visits":
        counts = np.bincount(patient)
        means = np.column_stack([np.bincount(patient, column) / counts for column in X.T])
        return model.fit(means, (np.bincount(patient, y) / counts > 0.5).astype(int))
    if kind == "epsilon / K":
        model.set_params(epsilon=EPSILON / most, delta=DELTA / (most * np.exp(EPSILON)))
    return model.fit(X, y)


KINDS = {
    "persons": ("tab:blue", "-"),
    "one visit each": ("tab:orange", "-"),
    "means of visits": ("tab:green", "-"),
    "epsilon / K": ("tab:red", "-"),
    "rows alone": ("black", ":"),
}
largest = np.array([1, 2, 5, 20, 100])
X_test, y_test, _ = table_of_visits(20_000, 1, np.random.default_rng(99))


def areas(most):
    """Return the mean area under the ROC curve of four fits of each kind, on new patients."""
    scores = {kind: [] for kind in KINDS}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y, patient = table_of_visits(N_PATIENTS, most, rng)
        for kind, of_kind in scores.items():
            model = fitted(kind, X, y, patient, most, rng)
            of_kind.append(roc_auc_score(y_test, model.decision_function(X_test)))
    return [np.mean(of_kind) for of_kind in scores.values()]


with reproducible_noise(0), warnings.catch_warnings():
    warnings.simplefilter("ignore", LowSignalWarning)  # of small epsilons for each row
    found = np.array([areas(most) for most in largest])

# %%
# The picture
# -----------
# The noise of a fit of persons does not depend on K, and no number of rows has to be chosen. With an epsilon for each row, the
# model is useless for long histories.

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (kind, (colour, line)), of_kind in zip(KINDS.items(), found.T, strict=True):
    axes.plot(largest, of_kind, color=colour, linestyle=line, marker=".", label=kind)
axes.set(
    xscale="log",
    xticks=largest,
    xticklabels=largest,
    xlabel="K, the largest number of visits of a patient",
    ylabel="area under the ROC curve of new patients",
    title=f"{N_PATIENTS:,} patients, epsilon {EPSILON:g}",
)
axes.minorticks_off()
axes.grid(alpha=0.4)
axes.legend()
plt.show()

# %%
# Protecting persons costs little, whatever K is:

of = dict(zip(KINDS, found.T, strict=True))
assert (of["persons"] > of["rows alone"] - 0.04).all()
assert of["persons"][-1] > of["epsilon / K"][-1] + 0.1
