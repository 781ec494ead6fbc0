"""
Handwritten digits that nobody wrote
====================================

A generator turns random numbers into images. It is trained against a critic, which looks for a function that is larger on real
images than on generated ones. The largest difference that a critic can find is a distance between the two, and the generator
makes it small. That is a saddle problem, which `skdp.DPMinimax` solves with differential privacy: all that leaves the table of
real images is the critic's gradients, with noise. The images are those that come with scikit-learn. A record is one image and
its label, and that is what is protected.
"""

# %%
# The images
# ----------
# There are 1797 of them, of 8 x 8 pixels. That is few: ten times as many would have a tenth of the noise.

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
GREY = 0.3  # about the ink of a digit: pixels less that much have a shorter norm, and so less noise

images, labels = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, labels, test_size=397, random_state=0)


def one_hot(labels):
    """One column for each digit."""
    return (np.asarray(labels)[:, None] == np.arange(N_DIGITS)).astype(float)


# %%
# The generator
# -------------
# An image is a logistic function, pixel by pixel, of an image of its digit plus four images, each times a random number. The
# random numbers are public, drawn once, for 50 images of each digit.

DRAWS = np.hstack(
    [one_hot(np.arange(500) % N_DIGITS), np.random.default_rng(1).normal(size=(500, N_LATENT))]
)


def generate(variables, draws):
    """Images, one row for each draw."""
    return expit(draws @ variables.reshape(N_DIGITS + N_LATENT, N_PIXELS))


# %%
# The critic
# ----------
# Wasserstein's distance takes all functions of slopes up to 1. This critic is of a smaller class: linear in public features
# of an image x and its label y, with a weight for each pixel of each digit and one for each product of two pixels. With a penalty
# on the weights v, the saddle problem is
#
# .. math:: \min_w \max_v \; \frac1n \sum_i D_v(x_i, y_i) - E_z D_v(G_w(z)) - \tfrac12 \|v\|^2 ,
#
# and its maximum is half the squared distance between the mean features of real and of generated images. Records are in the
# first term alone, and the generator's variables w are not: the primal gradient of every record is 0. Clipped to next to nothing,
# it has next to no noise, and next to all of the budget is for the dual gradients. The rest is public, and so is its gradient,
# worked out by hand.

PRODUCTS = 0.3  # weight of the products of pixels beside the pixels


def sides(labels_one_hot, images):
    """The two vectors whose product are the features of an image."""
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
# The first block repeats the noise, for examples only: a model to publish is fitted outside of it. Each fit warns that noise is
# likely to drown the signal of so few records. The second block hides the warning; the distances below show what is left.

solver = SGDA(dual_share=1 - 1e-6)


def learnt(epsilon):
    """The model that a budget allows."""
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        return DPMinimax(Generator(), epsilon=epsilon, solver=solver).fit(X, y)


model = learnt(epsilon=3.0)

# %%
# How far from real?
# ------------------
# The same class of critics, those of norm 1, now looks at images that were kept apart, and at fresh generated ones. It finds a
# distance between two sets of real images as well, because the sets are small.

fresh = np.hstack(
    [one_hot(np.arange(2000) % N_DIGITS), np.random.default_rng(3).normal(size=(2000, N_LATENT))]
)


def mean_features(labels, images):
    """What critics know of a set of images."""
    left, right = sides(one_hot(labels), images)
    return left.T @ right / len(images)


def distance(variables):
    """Of generated images from those that were kept apart."""
    made = mean_features(np.arange(2000) % N_DIGITS, generate(variables, fresh))
    return np.linalg.norm(made - mean_features(y_test, X_test))


start, _ = Generator().start(np.random.default_rng(0))
among_real = np.linalg.norm(mean_features(y, X) - mean_features(y_test, X_test))
print(
    f"distance {distance(start):.2f} before learning, {distance(model.primal_):.2f} after; of real images {among_real:.2f}"
)

# %%
# And of what use are they? A classifier that was trained on generated images alone is tested on real ones:

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
# They can be read, and they are blurred: a critic of pixels and their products knows means and variances, not strokes.

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
# Other fits, one for each epsilon, which would each spend as well if the images were private:

budgets = (0.5, 1.0, 2.0, 5.0, 10.0)
fits = [learnt(epsilon) for epsilon in budgets]
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
# The report says what is guaranteed, what was assumed, and what counts as public. Its line on noise is about primal gradients, of
# which there are none here.

print(model.privacy_report_)

# %%
# The critic's distance has fallen to less than a third, and the images are of use:

assert distance(model.primal_) < distance(start) / 3 and accuracy > 0.75
