"""
Handwritten digits that nobody wrote
====================================

A generator turns random numbers into images. It is trained against a critic, which looks for a function that is larger on real
images than on generated ones. The largest difference that a critic can find is a distance between the two kinds of images, and
the generator minimises it. This is a saddle problem, which `skdp.DPMinimax` solves with differential privacy: only the critic's
noisy gradients leave the table of real images. The images come with scikit-learn. A record is one image with its label, and the
guarantee protects one record.
"""

# %%
# The images
# ----------
# There are 1797 images of 8 x 8 pixels. These are few: with ten times as many images, the noise would be a tenth.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdp import DPMinimax, LowSignalWarning
from skdp.minimax import Factors, SaddleProblem, check_saddle
from skdp.solvers import SGDA
from skdp.testing import reproducible_noise

N_DIGITS, N_PIXELS, N_LATENT = 10, 64, 4
GREY = 0.3  # about the mean of a pixel; subtracting it makes the norm of an image smaller, and so the noise

images, labels = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, labels, test_size=397, random_state=0)


def one_hot(labels):
    """Return indicators, with one column for each digit."""
    return (np.asarray(labels)[:, None] == np.arange(N_DIGITS)).astype(float)


# %%
# The generator
# -------------
# An image is a logistic function, pixel by pixel, of a sum: a fixed image of its digit, plus four images, each multiplied by a
# random number. The random numbers are public and drawn once, for 50 images of each digit.

DRAWS = np.hstack(
    [one_hot(np.arange(500) % N_DIGITS), np.random.default_rng(1).normal(size=(500, N_LATENT))]
)


def generate(variables, draws):
    """Return generated images, one row for each draw."""
    return expit(draws @ variables.reshape(N_DIGITS + N_LATENT, N_PIXELS))


# %%
# The critic
# ----------
# Wasserstein's distance uses all functions with slopes up to 1. This critic is from a smaller class: it is linear in public
# features of an image x and its label y, with one weight for each pixel of each digit, and one for each product of two pixels.
# With a penalty on the weights v, the saddle problem is
#
# .. math:: \min_w \max_v \; \frac1n \sum_i D_v(x_i, y_i) - E_z D_v(G_w(z)) - \tfrac12 \|v\|^2 ,
#
# and its maximum is half the squared distance between the mean features of real and of generated images. Only the first term
# contains records, and it does not contain the generator's variables w. So the primal gradient of every record is 0. With a tiny
# clip norm, it has almost no noise, and almost all of the budget is used for the dual gradients. The rest of the problem is
# public, and so is its gradient, which is computed by hand.

PRODUCTS = 0.3  # weight of the products of pixels, relative to the pixels


def sides(labels_one_hot, images):
    """Return the two vectors whose product gives the features of an image."""
    grey = images - GREY
    return np.hstack([labels_one_hot, PRODUCTS * grey]), grey


class Generator(SaddleProblem):
    """A generator against a critic that is linear in pixels of each digit and in products of pixels."""

    name = "Wasserstein generator"
    n_primal, n_dual = (N_DIGITS + N_LATENT) * N_PIXELS, (N_DIGITS + N_PIXELS) * N_PIXELS
    primal_clip_norm, dual_clip_norm = 1e-9, 4.0

    def start(self, rng):
        return 0.1 * rng.normal(size=self.n_primal), np.zeros(self.n_dual)

    def at(self, batch, primal, dual):
        left, right = sides(one_hot(batch.targets), batch.rows)
        zeros, ones = np.zeros((len(left), self.n_primal)), np.ones((len(left), 1))

        class Point:
            def primal(self):
                return [Factors(zeros, ones)]

            def dual(self):
                return [Factors(left, right)]

        return Point()

    def value(self, batch, primal, dual):
        left, right = sides(one_hot(batch.targets), batch.rows)
        return np.einsum("ij,jk,ik->i", left, dual.reshape(-1, N_PIXELS), right)

    def public_gradient(self, primal, dual):
        made, critic = generate(primal, DRAWS), dual.reshape(-1, N_PIXELS)
        left, right = sides(DRAWS[:, :N_DIGITS], made)
        slopes = (
            left @ critic + PRODUCTS * right @ critic[N_DIGITS:].T
        )  # of the critic, in the pixels
        descent = -DRAWS.T @ (slopes * made * (1 - made)) / len(DRAWS)
        return descent.ravel(), -(left.T @ right).ravel() / len(DRAWS) - dual

    def step_sizes(self, signal, n_steps):
        return 200.0, 0.05


made_up = np.random.default_rng(2).uniform(size=(40, N_PIXELS))
check_saddle(Generator(), made_up, np.arange(40) % N_DIGITS)

# %%
# Fit
# ---
# The first ``with`` block makes the noise reproducible, which is for examples only: fit a model that you publish outside of it.
# Each fit warns that the noise is likely to drown the signal, because there are few records. The second block hides the warning;
# the distances below show the remaining signal.

solver = SGDA(dual_share=1 - 1e-6)


def learned(epsilon):
    """Return the model at a given epsilon."""
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        return DPMinimax(Generator(), epsilon=epsilon, solver=solver).fit(X, y)


model = learned(epsilon=3.0)

# %%
# How far from real?
# ------------------
# The same class of critics, with norm 1, now compares held-out images with newly generated ones. The distance between two sets of
# real images is not zero either, because the sets are small.

fresh = np.hstack(
    [one_hot(np.arange(2000) % N_DIGITS), np.random.default_rng(3).normal(size=(2000, N_LATENT))]
)


def mean_features(labels, images):
    """Return the mean features of a set of images."""
    left, right = sides(one_hot(labels), images)
    return left.T @ right / len(images)


def distance(variables):
    """Return the distance between generated and held-out images."""
    made = mean_features(np.arange(2000) % N_DIGITS, generate(variables, fresh))
    return np.linalg.norm(made - mean_features(y_test, X_test))


start, _ = Generator().start(np.random.default_rng(0))
among_real = np.linalg.norm(mean_features(y, X) - mean_features(y_test, X_test))
print(
    f"distance {distance(start):.2f} before learning, {distance(model.primal_):.2f} after; of real images {among_real:.2f}"
)

# %%
# To see whether the images are useful, a classifier that was trained only on generated images is tested on real ones:

classifier = LogisticRegression(max_iter=1000).fit(
    generate(model.primal_, fresh), np.arange(2000) % N_DIGITS
)
reference = LogisticRegression(max_iter=1000).fit(X, y)
accuracy = classifier.score(X_test, y_test)
print(
    f"accuracy {accuracy:.2f}; trained on the private images {reference.score(X_test, y_test):.2f}"
)

# %%
# Look
# ----
# They are readable but blurred: a critic of pixels and products of pixels knows means and variances, not strokes.

real = np.array([X_test[y_test == digit][0] for digit in range(N_DIGITS)])
rows = {"kept apart": real, "before": generate(start, fresh[:N_DIGITS])}
rows |= {
    f"generated, {k + 1}": generate(model.primal_, fresh[k * N_DIGITS :][:N_DIGITS])
    for k in range(3)
}
figure, axes = plt.subplots(len(rows), N_DIGITS, figsize=(8, 4.4), layout="constrained")
for line, (title, drawn) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(title, rotation=0, ha="right", va="center")
    for ax, image in zip(line, drawn, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Further fits, one for each epsilon; if the images were private, each would spend budget:

budgets = (0.5, 1.0, 2.0, 5.0, 10.0)
fits = [learned(epsilon) for epsilon in budgets]
figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.plot(budgets, [distance(fit.primal_) for fit in fits], marker="o", label="generated")
ax.axhline(distance(start), color="grey", linestyle=":", label="before learning")
ax.axhline(among_real, color="black", linestyle="--", label="of real images")
ax.set(xscale="log", ylim=0, xlabel="epsilon", ylabel="distance from images kept apart")
ax.legend()
plt.show()

# %%
# What it cost
# ------------
# The report states the guarantee, the assumptions, and what is public. Its line on noise describes primal gradients, which are
# zero here.

print(model.privacy_report_)

# %%
# The critic's distance has fallen to less than a third, and the images are useful:

assert distance(model.primal_) < distance(start) / 3 and accuracy > 0.75
