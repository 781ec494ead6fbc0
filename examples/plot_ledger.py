"""
A budget for a data set
=======================

Every fit on the same records spends budget. A ledger keeps the account of a data set in a file: it charges each fit before the
first release, and refuses a fit that would exceed the ceiling. This example spends a budget on an exploratory model, a grid
search and a final model, and plots the charges.
"""

# %%
# A ledger
# --------
# The ceiling of 3 holds for everything that is ever released about these records. In a study, keep the ledger in a permanent
# file, ``PrivacyLedger("study.sqlite", ...)``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from skdp import BudgetExceededError, DPLinearSVC, DPLogisticRegression, PrivacyLedger
from skdp.inspection import BudgetTimelineDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(20_000, 8))
y = (X @ rng.normal(size=8) + 0.3 * rng.logistic(size=20_000) > 0).astype(int)
ledger = PrivacyLedger(epsilon=3.0, delta=1e-6)

# %%
# Spend
# -----
# All fits inside the block are charged, including those of a search on the folds: two candidates and three folds make six fits,
# and the refit is the seventh. The folds do not depend on the labels: in a stratified split, one changed label would move many
# records.

private = {"delta": 1e-7, "data_norm": 2.0, "classes": [0, 1]}
with ledger:
    DPLinearSVC(epsilon=0.5, **private).fit(X, y)
    search = GridSearchCV(
        DPLogisticRegression(epsilon=0.5, **private), {"alpha": [1e-4, 1e-2]}, cv=KFold(3)
    )
    search.fit(X, y)
together = ledger.spent_after_each[-1]
print(f"{len(ledger.entries)} fits of epsilon 0.5 have spent epsilon {together:.2f} together")

# %%
# What is left
# ------------
# ``epsilon_left`` is the largest epsilon of one more fit, at the delta of the ledger. A larger one is refused before the records
# are touched.

left = ledger.epsilon_left()
print(f"left: one fit with epsilon {left:.2f}")
with ledger:
    try:
        DPLogisticRegression(epsilon=10.0, **private).fit(X, y)
    except BudgetExceededError as error:
        refused = str(error)
    rest = private | {"epsilon": round(0.9 * left, 2), "delta": 1e-6}
    final = DPLogisticRegression(**rest).fit(X, y)
print(refused)

# %%
# Where it went
# -------------
# The steps get smaller, although all fits of the search have the same epsilon: the total is less than the sum.

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
BudgetTimelineDisplay.from_ledger(ledger, ax=ax)
ax.legend(loc="upper left", bbox_to_anchor=(0, 0.9), frameon=False)
plt.show()
print(ledger.summary())

# %%
# The refused fit is not in the ledger, and the ceiling holds:

assert len(ledger.entries) == 9 and ledger.spent_after_each[-1] <= 3.0 and final.score(X, y) > 0.8
