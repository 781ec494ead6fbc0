"""
A ranking where positives are rare
==================================

Fewer than two transactions in a hundred are fraud. A model that never predicts fraud is right in 98 of 100 cases, so accuracy is
not informative. An office that can check a few hundred transactions a day needs a ranking with the suspicious ones on top.
`skdp.DPAUCMaximizer` fits scores for such a ranking; they are evaluated by the area under the ROC curve (AUC).
"""

# %%
# Transactions
# ------------
# The records are made up: twelve features in [-1, 1], four of them informative, and few positives.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import RocCurveDisplay
from sklearn.model_selection import train_test_split

from skdp import DPAUCMaximizer
from skdp.testing import reproducible_noise

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(60_000, 12))
log_odds = X[:, :4] @ [3.0, -2.0, 2.0, 1.5] - 6.5
fraud = (log_odds + rng.logistic(size=60_000) > 0).astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, fraud, random_state=0, stratify=fraud)
print(f"{y_train.sum()} of {len(y_train)} training records are fraud")

# %%
# Three budgets
# -------------
# The share of fraud is released with a small part of the budget. The ``with`` block makes the noise reproducible, which is for
# examples only.

fits = {}
for epsilon in (0.1, 0.3, 1.0):
    with reproducible_noise(0):
        fits[epsilon] = DPAUCMaximizer(epsilon=epsilon, data_norm=2.0, classes=[0, 1]).fit(
            X_train, y_train
        )

# %%
# The picture
# -----------
# Left: the ROC curve. Right: the share of the frauds that are among the transactions with the highest scores.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
looked_at = np.arange(1, len(y_test) + 1)
for epsilon, colour in zip(fits, ("tab:orange", "tab:green", "tab:blue"), strict=True):
    scores = fits[epsilon].decision_function(X_test)
    RocCurveDisplay.from_predictions(
        y_test,
        scores,
        ax=axes[0],
        name=f"epsilon {epsilon:g}",
        curve_kwargs={"color": colour},
        plot_chance_level=False,
    )
    found = np.cumsum(y_test[np.argsort(-scores)]) / y_test.sum()
    axes[1].plot(looked_at, found, color=colour, label=f"epsilon {epsilon:g}")
best = np.cumsum(y_test[np.argsort(-(X_test[:, :4] @ [3.0, -2.0, 2.0, 1.5]))]) / y_test.sum()
axes[1].plot(looked_at, best, color="black", linestyle="--", label="the true odds")
axes[1].plot(looked_at, looked_at / len(y_test), color="grey", linestyle=":", label="at random")
axes[1].set(
    xlim=(0, 3000), ylim=(0, 1), xlabel="transactions looked at", ylabel="share of the frauds found"
)
axes[1].legend(loc="lower right")
axes[0].set(title="ROC curve, test records")
plt.show()

# %%
# At epsilon 1 the ranking is almost as good as the ranking by the true odds:

auc = {epsilon: fit.score(X_test, y_test) for epsilon, fit in fits.items()}
print({epsilon: round(value, 3) for epsilon, value in auc.items()})
assert auc[1.0] > 0.85 and auc[1.0] >= auc[0.1]
