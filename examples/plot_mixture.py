"""
Shares that add up to one
=========================

A sample of soil is a mixture of minerals, and its spectrum is a mixture of theirs. Which shares explain the measured spectrum
best? Shares are non-negative and add up to one, so the coefficients are in a *simplex*. `skdp.DPConstrainedRegression` keeps them
in the simplex, at every step and in the released model.
"""

# %%
# Spectra
# -------
# The spectra are made up: twelve known minerals, each with two peaks, and a mixture of three of them. A record is one wavelength
# of one of many samples from the same field. The measurement is private.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPConstrainedRegression
from skdp.testing import reproducible_noise

rng = np.random.default_rng(3)
peaks, widths = rng.uniform(0, 1, size=(12, 2)), rng.uniform(0.02, 0.06, size=(12, 2))


def spectra(wavelength):
    """Return the reflection of each mineral, between 0 and 1."""
    return np.exp(-(((wavelength[:, None, None] - peaks) / widths) ** 2) / 2).max(axis=-1)


shares = np.zeros(12)
shares[[1, 4, 9]] = 0.5, 0.3, 0.2
wavelength = rng.uniform(size=100_000)
X = spectra(wavelength)
y = X @ shares + rng.normal(scale=0.05, size=100_000)

# %%
# Fit
# ---
# ``"simplex"`` is the constraint set, and its ``radius`` is the sum of the coefficients. The bounds are public: reflections are
# between 0 and 1. The ``with`` block makes the noise reproducible, which is for examples only.

bounds = {"feature_bounds": 1.0, "target_bounds": (0, 1)}
fits = {}
for epsilon in (0.1, 1.0):
    with reproducible_noise(0):
        fits[epsilon] = DPConstrainedRegression(
            epsilon=epsilon, constraint="simplex", radius=1.0, **bounds
        ).fit(X, y)

# %%
# The picture
# -----------

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=(3, 2))
grid = np.linspace(0, 1, 400)
axes[0].plot(wavelength[:2000], y[:2000], ".", color="grey", markersize=2, alpha=0.4)
axes[0].plot(grid, spectra(grid) @ shares, color="black", linestyle="--", label="the mixture")
for (epsilon, fit), colour in zip(fits.items(), ("tab:orange", "tab:blue"), strict=True):
    axes[0].plot(grid, fit.predict(spectra(grid)), color=colour, label=f"epsilon {epsilon:g}")
axes[0].set(xlabel="wavelength", ylabel="reflection", title="Spectrum", ylim=(-0.2, 0.9))
axes[0].legend(ncols=3)
places = np.arange(12)
axes[1].bar(places, shares, width=0.8, color="none", edgecolor="black", label="the mixture")
for (epsilon, fit), colour, shift in zip(
    fits.items(), ("tab:orange", "tab:blue"), (-0.2, 0.2), strict=True
):
    axes[1].bar(
        places + shift, fit.coef_.ravel(), width=0.35, color=colour, label=f"epsilon {epsilon:g}"
    )
axes[1].set(xlabel="mineral", ylabel="share", title="Shares", xticks=places)
plt.show()

# %%
# The coefficients are non-negative and add up to one, and at epsilon 1 the three largest are the minerals of the mixture:

found = fits[1.0].coef_.ravel()
on_simplex = found.min() >= -1e-9 and abs(found.sum() - 1) < 1e-9
assert on_simplex and set(np.argsort(found)[-3:]) == {1, 4, 9}
