"""
An attack on the guarantee
==========================

You need not trust a proof: you can attack the guarantee. An audit fits an estimator many times on two tables that differ in one
record. From all noisy answers, an adversary guesses which of the two tables it was. The success rate of the guesses gives a lower
bound on the spent epsilon. If the guarantee holds, the bound is below the claim.
"""

# %%
# Attack
# ------
# The other 39 of the forty records are zeros, so nothing hides the record that differs. This is the worst case. Each audit makes
# 2 x 400 fits.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPLogisticRegression
from skdp.audit import audit
from skdp.inspection import TradeOffDisplay
from skdp.solvers import GradientDescent

X, y = np.zeros((40, 2)), np.arange(40) % 2


def attacked(epsilon):
    """The audit of an estimator that claims this epsilon."""
    solver = GradientDescent(3, step_size=0.01)
    model = DPLogisticRegression(
        epsilon=epsilon, delta=1e-5, fit_intercept=False, classes=[0, 1], solver=solver
    )
    return audit(model, X, y, n_runs=400, views="transcript", random_state=0)


claims = np.array([1.0, 2.0, 4.0, 8.0])
results = [attacked(epsilon) for epsilon in claims]
bounds = np.array([result.bounds[0].epsilon for result in results])

# %%
# The picture
# -----------
# Left: the errors of the adversary at epsilon 2. A false positive mistakes the second table for the first, a false negative the
# first for the second. The claim forbids the shaded region, and the attack comes close to it. With 400 fits, the observed curve
# may cross the border by chance; the circle takes this into account, and only the circle decides. Right: the proved epsilon
# against the claimed one. A point above the diagonal would prove that an estimator is broken.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
TradeOffDisplay.from_audit(results[1], ax=axes[0])
axes[1].fill_between(
    [0, 9], [0, 9], 9, color="tab:red", alpha=0.12, linewidth=0, label="would prove a defect"
)
axes[1].plot([0, 9], [0, 9], color="tab:red", linewidth=1)
axes[1].plot(claims, bounds, "o", color="tab:blue", label="proved to be spent, at least")
axes[1].set_title("Bounds of four audits")
axes[1].set(xlim=(0, 9), ylim=(-0.2, 9), xlabel="claimed epsilon", ylabel="lower bound on epsilon")
axes[1].legend(loc="upper left")
plt.show()

# %%
# No bound is above its claim, and the bounds of the larger claims are not far below. With more fits, all bounds get closer.

for claim, bound in zip(claims, bounds, strict=True):
    print(f"claimed {claim:g}, at least {bound:.2f}")
assert (bounds <= claims).all() and (bounds[2:] > 0.5 * claims[2:]).all()
