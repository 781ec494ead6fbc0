"""
The value of a policy, from private transitions
===============================================

Ten thousand people own a machine that keeps a pole upright on a cart, all with the same controller. After a shove, each machine
reports 0.04 seconds: the state of the pole, the reward, and the next state. What is the expected future reward from any state?
Temporal-difference learning answers this from single transitions. Here it is a saddle problem, which `skdp.DPMinimax` solves with
differential privacy. A record is one transition of one machine, and the guarantee protects one record: an owner whose machine
reported several transitions would be protected less.
"""

# %%
# The machine
# -----------
# The equations of the pole are those of Barto, Sutton and Anderson (1983), in steps of 0.02 seconds. The controller, which is
# public, pushes the cart with a force that is linear in the angle of the pole and its speed, plus a disturbance. It does not know
# the position of the cart, and the track is endless, so a state is an angle and its speed. After a shove, the state is anywhere
# within public bounds.

import itertools

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPMinimax
from skdp.minimax import Factors, SaddleProblem, check_saddle, products
from skdp.solvers import SGDA
from skdp.testing import reproducible_noise

BOUNDS = np.array([0.21, 1.0])  # of the angle (rad) and its speed (rad/s)
GAINS = np.array([20.0, 3.0])  # of the controller, in newtons per unit
DISCOUNT = 0.9  # for 0.04 seconds


def fallen(state):
    """Return whether a pole is down; it then stays down."""
    return np.abs(state[:, 0]) > BOUNDS[0]


def advance(state, rng):
    """Return the states 0.04 seconds later, and the rewards: from 1 for an upright pole to -1 for one that is down."""
    force = np.clip(state @ GAINS + 2 * rng.normal(size=len(state)), -10, 10)
    for _ in range(2):
        angle, speed = state.T
        pull = (force + 0.05 * speed**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * pull) / (
            0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
        )
        state = np.where(
            fallen(state)[:, None], state, state + 0.02 * np.column_stack([speed, turn])
        )
    return state, np.where(fallen(state), -1.0, 1 - 2 * (state[:, 0] / BOUNDS[0]) ** 2)


def returns(state, rng, n_runs=20, n_moves=80):
    """Return the mean discounted sum of rewards of many runs from each state: the true value, estimated from many transitions."""
    runs, total = np.repeat(state, n_runs, axis=0), np.zeros(len(state) * n_runs)
    for move in range(n_moves):
        before = fallen(runs)
        runs, reward = advance(runs, rng)
        total += DISCOUNT**move * np.where(before, 0.0, reward)
    return total.reshape(-1, n_runs).mean(axis=1)


# %%
# Features
# --------
# The value is modelled as a linear combination of ten cosines of the state (a Fourier basis: Konidaris, Osentoski, Thomas 2011).
# They are public, between -1 and 1, and computed from one state alone. The value of a pole that is down is 0, so its features are
# zeros. A record has the features of both states as columns, and the reward as target.

ORDERS = np.array([order for order in itertools.product(range(4), repeat=2) if sum(order) <= 3])


def features(state):
    """Return the cosines of states within the bounds."""
    place = np.clip((state / BOUNDS + 1) / 2, 0, 1)
    return np.where(fallen(state)[:, None], 0.0, np.cos(np.pi * place @ ORDERS.T))


# %%
# The saddle problem
# ------------------
# A transition with the features :math:`\phi` before and :math:`\phi'` after has the temporal-difference error :math:`\delta = r +
# \gamma \phi'^\top \theta - \phi^\top \theta`, and learning should make :math:`E[\delta \phi]` zero. The squared length of this
# vector in the metric of :math:`E[\phi \phi^\top]^{-1}` is the mean squared projected Bellman error. It is not a mean over
# records, but half of it is the maximum of a mean, over dual variables w (Liu et al. 2015; Du et al. 2017):
#
# .. math:: \min_\theta \max_w \; E\bigl[\delta\, \phi^\top w - \tfrac12 (\phi^\top w)^2\bigr] - \tfrac\rho2 \|w\|^2
#
# The last term is public, and makes the problem strongly concave in w for any records; if :math:`E[\delta \phi]` can be zero, it
# does not change the solution. The gradients of a record are numbers times vectors, :math:`\phi^\top w\, (\gamma \phi' - \phi)`
# and :math:`(\delta - \phi^\top w)\, \phi`, and the problem returns them in this form.


class PolicyEvaluation(SaddleProblem):
    """The mean squared projected Bellman error."""

    name = "mean squared projected Bellman error"
    primal_clip_norm, dual_clip_norm = (
        1.0,
        3.0,
    )  # about what most gradients of made-up machines keep to
    ridge = 0.01

    def __init__(self, n_columns):
        self.n_primal = self.n_dual = n_columns // 2

    def _parts(self, batch, primal, dual):
        """Features, their discounted change, temporal-difference errors, and the weights that the dual variables give."""
        now, then = batch.rows[:, : self.n_dual], batch.rows[:, self.n_dual :]
        change = DISCOUNT * then - now
        return (
            now,
            change,
            batch.targets[:, None] + products(change, primal[:, None]),
            products(now, dual[:, None]),
        )

    def at(self, batch, primal, dual):
        now, change, error, weight = self._parts(batch, primal, dual)

        class Point:
            def primal(self):
                return [Factors(weight, change)]

            def dual(self):
                return [Factors(error - weight, now)]

        return Point()

    def value(self, batch, primal, dual):
        _, _, error, weight = self._parts(batch, primal, dual)
        return (error * weight - weight**2 / 2)[:, 0]

    def public_gradient(self, primal, dual):
        return np.zeros(self.n_primal), -self.ridge * dual

    def step_sizes(self, signal, n_steps):
        return 4.0, 1.0


# %%
# Made-up machines first
# ----------------------
# The controller and the equations are public, so anybody can simulate machines. With simulated machines we compare the gradients
# with finite differences of ``value``, and choose clip norms and steps. This does not touch the records of people.


def transitions(n, rng):
    """Return the features before and after, and the rewards, of machines that were shoved."""
    before = rng.uniform(-BOUNDS, BOUNDS, size=(n, 2))
    after, reward = advance(before, rng)
    return np.hstack([features(before), features(after)]), reward


check_saddle(PolicyEvaluation(2 * len(ORDERS)), *transitions(200, np.random.default_rng(1)))

# %%
# Fit
# ---
# The ``with`` block makes the noise reproducible, which is for examples only: fit a model that you publish outside of it.

X, y = transitions(10_000, np.random.default_rng(4))


def learned(epsilon):
    """Return the model at a given epsilon."""
    with reproducible_noise(0):
        return DPMinimax(PolicyEvaluation, epsilon=epsilon, solver=SGDA(200, dual_share=0.3)).fit(
            X, y
        )


model = learned(epsilon=1.0)

# %%
# How good is it?
# ---------------
# On new states, the learned value is compared with the mean return of 20 runs. Before learning, all values are 0; the error of
# the best constant is the standard deviation of the values. Least squares temporal differences (LSTD) is the exact solution
# without privacy.

rng = np.random.default_rng(2)
states = rng.uniform(-BOUNDS, BOUNDS, size=(500, 2))
value = returns(states, rng)


def error(coefficients):
    """Return the root mean square of the difference from the true values of the states."""
    return np.sqrt(np.mean((features(states) @ coefficients - value) ** 2))


now, then = X[:, : len(ORDERS)], X[:, len(ORDERS) :]
lstd = np.linalg.solve(now.T @ (now - DISCOUNT * then), now.T @ y)
print(
    f"error {error(model.primal_):.2f}; before learning {error(np.zeros(len(ORDERS))):.2f}, of a constant {value.std():.2f}"
)
print(f"error of LSTD, which is not private, {error(lstd):.2f}")

# %%
# The value over all states: a pole that leans and moves in the same direction will fall. The last panel shows further fits, one
# for each epsilon; with private records, each would spend budget. At epsilon 0.1 the noise exceeds the signal.

angle, speed = np.meshgrid(*(np.linspace(-bound, bound, 41) for bound in BOUNDS))
grid = np.column_stack([angle.ravel(), speed.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
panels = {
    "mean return of 20 runs": returns(grid, rng),
    "learned with epsilon = 1": features(grid) @ model.primal_,
}
for ax, (title, height) in zip(axes, panels.items(), strict=False):
    image = ax.pcolormesh(np.rad2deg(angle), speed, height.reshape(angle.shape), vmin=-2, vmax=10)
    ax.set(title=title, xlabel="angle (degrees)", ylabel="its speed (rad/s)")
figure.colorbar(image, ax=axes[:2], label="value")
budgets = (0.1, 0.2, 0.5, 1.0)
axes[2].plot(
    budgets, [error(learned(epsilon).primal_) for epsilon in budgets], marker="o", label="private"
)
for height, style, label in (
    (error(np.zeros(len(ORDERS))), ":", "before learning"),
    (value.std(), "-.", "a constant"),
):
    axes[2].axhline(height, color="grey", linestyle=style, label=label)
axes[2].axhline(error(lstd), color="black", linestyle="--", label="LSTD, not private")
axes[2].set(xscale="log", ylim=0, title="error on fresh states", xlabel="epsilon")
axes[2].legend()
plt.show()

# %%
# What it cost
# ------------
# The report states the guarantee, the assumptions, and what is public.

print(model.privacy_report_)

# %%
# The error is less than half of the error before learning, and less than half of that of the best constant:

assert error(model.primal_) < 0.5 * min(error(np.zeros(len(ORDERS))), value.std())
