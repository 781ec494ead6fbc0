"""Compute the epsilon that an attack proves against the claim of a fit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.noise_calibration import spent_epsilon
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger.gaussian_cover import gaussian_cover
from skdp.privacy.schedule import Schedule

METHODS = {
    "gaussian": "the trade-off of one Gaussian release",
    "subsampled": "the trade-off of the schedule at some noise",
    "cover": "the trade-off of a Gaussian release that covers the selections",
    "proof": "the trade-off that the proof of the mechanism gives at some noise",
    "clopper-pearson": "the definition alone",
}
# Step, tolerance and largest number of steps of the search for the logarithm of a noise scale. The tolerance sets the relative
# error of the epsilon that an audit reports.
STEP, TOLERANCE, MOST_STEPS = math.log(1.25), 1e-4, 40
POINTS = 200  # number of points at which the privacy profile is evaluated; more points make bounds slightly tighter


@dataclass(frozen=True)
class Claim:
    """Hold the stated releases, their noise, and the budget that they claim to spend.

    Parameters
    ----------
    schedule : Schedule
        Releases of one fit.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    budget : Budget
        epsilon, delta and adjacency.
    """

    schedule: Schedule
    scale: float
    budget: Budget

    @cached_property
    def composition(self) -> Composition | None:
        """The releases as the accounting sees them; None if the accounting has no noise scale for them."""
        try:
            return Composition.of(self.schedule, self.budget.adjacency)
        except PrivacyAccountingError:
            return None

    @property
    def method(self) -> str:
        """The strongest conversion of error rates into an epsilon that is valid for these releases, out of `METHODS`."""
        if self.schedule.curve is not None:
            return "proof"
        if self.composition is None:
            return "clopper-pearson"
        if self.composition.sampled:
            return "subsampled"
        return "cover" if self.composition.selections else "gaussian"

    def strength(self, rates: np.ndarray, method: str) -> np.ndarray:
        """Return, for many pairs of error rates, a number that increases with the epsilon which they prove.

        Parameters
        ----------
        rates : ndarray of shape (2, k)
            False positive and false negative rates.
        method : str
            One of `METHODS`. All methods except the definition are ranked like "gaussian", to which many samples converge. If
            delta is 0, they are ranked like the definition.

        Returns
        -------
        ndarray of shape (k,)
            Epsilon, or a Gaussian-DP parameter.
        """
        by_definition = method == "clopper-pearson" or self.budget.delta == 0
        return definition_epsilon(rates, self.budget.delta) if by_definition else gaussian_parameter(rates)

    def trade_off(self, positive: np.ndarray, method: str) -> np.ndarray:
        """Return the smallest false negative rate that the claim permits.

        Parameters
        ----------
        positive : ndarray of shape (k,)
            False positive rates.
        method : str
            One of `METHODS`.

        Returns
        -------
        ndarray of shape (k,)
            Values in [0, 1].
        """
        if method == "gaussian":
            assert self.composition is not None
            return ndtr(-ndtri(positive) - math.sqrt(self.composition.full) / self.scale)
        if method == "cover":
            covered = ndtr(-ndtri(positive) - self._cover(math.log(self.scale)))
            return np.maximum(covered, self.trade_off(positive, "clopper-pearson"))
        if method == "clopper-pearson":
            epsilons, deltas = np.array([self.budget.epsilon]), np.array([self.budget.delta])
        else:
            epsilons = np.linspace(0.0, 2 * self.budget.epsilon, POINTS)
            deltas = self._deltas(self.scale, epsilons)
        return np.maximum(_least(positive[:, None], epsilons, deltas).max(axis=1), 0.0)

    def epsilon(self, rates: np.ndarray, method: str) -> float:
        """Return the epsilon at the claimed delta below which no attack has such error rates.

        Parameters
        ----------
        rates : ndarray of shape (2,)
            Upper bounds of the false positive and the false negative rate.
        method : str
            One of `METHODS`.

        Returns
        -------
        float
            The epsilon; 0 if the attack is no better than guessing.
        """
        if method == "clopper-pearson":
            return float(definition_epsilon(rates, self.budget.delta))
        if method == "gaussian":
            return gaussian_epsilon(float(gaussian_parameter(rates)), self.budget.delta)
        if method == "cover":
            return self._covered_epsilon(rates)
        return self._profile_epsilon(rates)

    def _covered_epsilon(self, rates: np.ndarray) -> float:
        """Return the epsilon of the largest noise at which the Gaussian cover of the schedule permits the rates."""
        proved, mu = float(definition_epsilon(rates, self.budget.delta)), float(gaussian_parameter(rates))
        if mu == 0:
            return proved
        root = _root(lambda log_scale: mu - self._cover(log_scale), math.log(self.scale))
        return max(proved, spent_epsilon(self.schedule, math.exp(root + TOLERANCE), self.budget))

    def _cover(self, log_scale: float) -> float:
        """Return the Gaussian-DP parameter that covers the selections together with full-data releases."""
        assert self.composition is not None
        return gaussian_cover(self.composition.at(math.exp(log_scale)), self.budget, 0.0)

    def _profile_epsilon(self, rates: np.ndarray) -> float:
        """Return the epsilon of the largest noise that permits the rates, by the whole privacy profile of the schedule."""
        if rates.sum() >= 1:
            return 0.0
        epsilons = np.linspace(0.0, -math.log(rates.min()), POINTS)

        def excess(log_scale: float) -> float:
            """Return how far the rates lie below the trade-off curve; this increases with the noise."""
            deltas = self._deltas(math.exp(log_scale), epsilons)
            return float(_least(rates[0], epsilons, deltas).max() - rates[1])

        proved, start = float(definition_epsilon(rates, self.budget.delta)), math.log(self.scale)
        if self.schedule.curve is not None and excess(start + MOST_STEPS * STEP) <= 0:
            # the part of the budget that does not depend on the noise already permits the rates: they say nothing about the noise
            return proved
        return max(proved, spent_epsilon(self.schedule, math.exp(_root(excess, start) + TOLERANCE), self.budget))

    def _deltas(self, scale: float, epsilons: np.ndarray) -> np.ndarray:
        """Return upper bounds of the deltas at which the releases are (epsilon, delta)-DP."""
        if (curve := self.schedule.curve) is not None:
            return curve.deltas(scale, epsilons, self.budget)
        assert self.composition is not None
        distribution, error = self.composition.losses(scale, self.budget)
        return np.minimum(distribution.get_delta_for_epsilon(epsilons) + error, 1.0)


def definition_epsilon(rates: np.ndarray, delta: float) -> np.ndarray:
    """Return the smallest epsilon of an (epsilon, delta)-private release that permits an attack with given error rates.

    Parameters
    ----------
    rates : ndarray of shape (2, ...)
        False positive and false negative rates a, b: ``1 - b <= exp(epsilon) a + delta``, and the same with a and b exchanged.
    delta : float
        Privacy parameter.

    Returns
    -------
    ndarray
        Non-negative values.

    References
    ----------
    .. [1] P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", ICML 2015, Theorem 2.1.
    """
    powers = np.maximum(1 - delta - rates[::-1], 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(powers / rates).max(axis=0), 0.0)


def gaussian_parameter(rates: np.ndarray) -> np.ndarray:
    """Return the smallest mu of a mu-GDP release that permits an attack with given error rates.

    Parameters
    ----------
    rates : ndarray of shape (2, ...)
        False positive and false negative rates a, b: ``b >= Phi(Phi^-1(1 - a) - mu)``.

    Returns
    -------
    ndarray
        Non-negative values.

    References
    ----------
    .. [1] M. Nasr, J. Hayes, T. Steinke, B. Balle, F. Tramer, M. Jagielski, N. Carlini, A. Terzis, "Tight auditing of
       differentially private machine learning", USENIX Security 2023, section 4.
    """
    return np.maximum(-ndtri(rates).sum(axis=0), 0.0)


def _least(positive: Any, epsilons: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Return the false negative rates below which a false positive rate violates (epsilon, delta)-DP in either direction."""
    return np.maximum(1 - deltas - np.exp(epsilons) * positive, np.exp(-epsilons) * (1 - deltas - positive))


def _root(excess: Callable[[float], float], start: float) -> float:
    """Return the root of an increasing function of the logarithm of a noise scale."""
    value = lru_cache(maxsize=None)(excess)
    direction = -STEP if value(start) > 0 else STEP
    for i in range(MOST_STEPS):
        left, right = start + i * direction, start + (i + 1) * direction
        if value(left) * value(right) <= 0:
            return brentq(value, left, right, xtol=TOLERANCE / 2)
    return right
