r"""Define two mechanisms with their own proofs: objective perturbation, and noise of exponential norm on a minimum.

**Objective perturbation** releases the minimum of :math:`J(w) = \sum_i \ell_i(w) + \Lambda/2 \|w\|^2 + b^\top w` with random
b. Let C and :math:`\beta` bound the norm and the Lipschitz constant of one record's gradient, let
:math:`\kappa = \log(1 + \beta/\Lambda)`, k = 2 under ``replace_one`` and 1 under ``zero_out``, and :math:`\delta_\mu` be the
curve of Gaussian differential privacy. The exact minimum is :math:`(\varepsilon, \delta)`-private for every
:math:`\varepsilon > \kappa`

- for normal b of standard deviation :math:`\sigma = C / m`, where :math:`\delta` is a sum of
  :math:`\delta_{m'}(\varepsilon - \kappa)` over the vertices of the set of possible shifts of b (see ``VERTICES``);
- for b with a density proportional to :math:`\exp(-\|b\| / s)`, with :math:`\delta = 0` if
  :math:`s = k C / (\varepsilon - \kappa)`.

An approximate minimum is within :math:`\tau / \Lambda` of the exact one. A second release adds noise that hides the difference.
The proof is in ``docs/proofs/objective.md``.

References
----------
.. [1] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12 (2011),
   Algorithms 1 and 2, Theorems 6 and 9.
.. [2] D. Kifer, A. Smith, A. Thakurta, "Private convex empirical risk minimization and high-dimensional regression", COLT 2012:
   normal b.
.. [3] R. Iyengar, J. P. Near, D. Song, O. Thakkar, A. Thakurta, L. Wang, "Towards practical differentially private convex
   optimization", IEEE S&P 2019: approximate minima.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from skdp.privacy.accounting.gaussian_dp import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.noise.gamma import GammaNorm, GridGammaNorm, Normal
from skdp.privacy.noise.gaussian import RELATIVE_SLACK, GridGaussian
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import Minimum
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.privacy.schedule import Curve

__all__ = ["ExponentialNorm", "TiltedObjective", "smallest_strength", "tilted_delta"]

# Shares of the budget: TILT_SHARE of epsilon and of delta goes to b, RELEASE_DELTA of delta to the noise on the approximate
# minimum, TAIL_DELTA of delta to the event that b is longer than its bound; they add up to 1 for delta. The shares are choices:
# docs/proofs/objective.md uses them. A smaller TILT_SHARE makes b longer and the noise on the approximate minimum smaller.
TILT_SHARE, RELEASE_DELTA, TAIL_DELTA = 0.99, 0.009, 0.001

# Largest kappa as a share of the epsilon for b. A choice: a larger share admits weaker penalties, but makes b longer for them.
LARGEST_LOSS = 0.99

# Smallest positive delta that is accepted. A choice: its shares are still normal numbers in float64.
SMALLEST_DELTA = 1e-290

# Relative amount by which noise and epsilon are rounded to the private side. A choice above the 1e-9 by which gaussian_dp rounds.
ROUNDING = 4e-9

# The constant k: largest shift of a sum of gradients between neighbours, in units of the clip norm C (from the proof).
K = {"replace_one": 2.0, "zero_out": 1.0}

# For each adjacency, with a one-sided loss or without: pairs of (number of vertices, norm of the shift of b over C), from the
# table in docs/proofs/objective.md. The vertex 0 is left out: it adds no delta.
VERTICES = {
    ("zero_out", True): ((1, 1.0),),
    ("zero_out", False): ((2, 1.0),),
    ("replace_one", True): ((1, 2.0), (2, 1.0)),
    ("replace_one", False): ((2, 2.0), (2, math.sqrt(2.0))),
}


def tilted_delta(epsilon: float, mu: float, log_determinant: float, adjacency: str, one_sided: bool) -> float:
    """Return the delta of the exact minimum with normal b.

    Parameters
    ----------
    epsilon : float
        Privacy parameter.
    mu : float
        C over the standard deviation of b.
    log_determinant : float
        Bound kappa on the change of the log-determinant between neighbours.
    adjacency : {"replace_one", "zero_out"}
        Which tables are neighbours.
    one_sided : bool
        Whether the derivative of the loss has a fixed sign for each label.

    Returns
    -------
    float
        An upper bound; 1 if epsilon is not above kappa.
    """
    left = epsilon - log_determinant
    if left <= 0:
        return 1.0
    return min(1.0, math.fsum(count * gaussian_delta(norm * mu, left) for count, norm in VERTICES[adjacency, one_sided]))


def smallest_strength(smoothness: float, epsilon: float, unit: str = "record") -> float:
    """Return the smallest penalty constant that objective perturbation admits.

    Parameters
    ----------
    smoothness : float
        Lipschitz constant of one record's gradient.
    epsilon : float
        Privacy parameter of the fit.
    unit : {"record", "person"}, default="record"
        What neighbours differ in.

    Returns
    -------
    float
        Penalty constant at which kappa is 99 % of the epsilon for b.
    """
    share = min(LARGEST_LOSS * TILT_SHARE * epsilon, 700.0)  # exp(700) is finite in float64
    ratio = math.expm1(share) if unit == "record" else share  # of smoothness to strength
    return smoothness * (1 + 4 * RELATIVE_SLACK) / ratio * (1 + ROUNDING)


@dataclass(frozen=True)
class TiltedObjective(Curve):
    """Minimise an objective with a random linear term b (objective perturbation); its scale is that of b over C.

    Parameters
    ----------
    name : str
        Name of the mechanism in the report.
    facts : Minimization
        Public facts, without the bound on b.
    """

    facts: Minimization

    def with_tilt(self, budget: Budget) -> Minimization:
        """Return the facts with a bound on b."""
        if not budget.private:
            return self.facts
        noise = self._tilt(self.scale(budget), budget)
        return replace(self.facts, tilt=noise.largest, tilt_error=noise.rounding)

    def scale(self, budget: Budget) -> float:
        """Return the scale of b over C that spends 0.99 of the budget."""
        # The log-determinant costs kappa; the rest is for the shift of b.
        left = TILT_SHARE * budget.epsilon * (1 - ROUNDING) - self._kappa(budget)
        if budget.unit == "person" and budget.delta:
            raise ValueError(
                "solver='objective' protects persons with delta=0 alone: a person moves the gradient in a set with many more "
                "vertices than the proof for delta > 0 has. Use delta=0, or another solver, such as 'auto' or 'output'."
            )
        if budget.delta == 0:
            return K[budget.adjacency] * (1 + ROUNDING) / left
        mu = _largest_mu(left, _delta(TILT_SHARE, budget), budget.adjacency, self.facts.one_sided)
        return 1 / (mu * (1 - 3 * _slack(mu)))

    def epsilon(self, scale: float, budget: Budget) -> float:
        """Return the sum of the epsilon of b, rounded up, and that of the release."""
        released = (1 - TILT_SHARE) * budget.epsilon
        if budget.delta == 0:
            return released + self._kappa(budget) + K[budget.adjacency] / scale * (1 + ROUNDING / 4)
        left = _least_epsilon(1 / scale, _delta(TILT_SHARE, budget), budget.adjacency, self.facts.one_sided)
        return released + self._kappa(budget) + left * (1 + _slack(1 / scale))

    def deltas(self, scale: float, epsilons: np.ndarray, budget: Budget) -> np.ndarray:
        """Return upper bounds on the sum of the delta of b and that of the release."""
        if budget.delta == 0:
            return _pure_deltas(self.epsilon(scale, budget), epsilons)
        left = np.asarray(epsilons) - (1 - TILT_SHARE) * budget.epsilon
        kappa, adjacency, one_sided = self._kappa(budget), budget.adjacency, self.facts.one_sided
        deltas = [tilted_delta(epsilon, 1 / scale, kappa, adjacency, one_sided) for epsilon in left]
        return np.minimum(1.0, np.array(deltas) + (1 - TILT_SHARE) * budget.delta)

    def admits(self, query: Minimum, scale: float, budget: Budget) -> bool:
        """Return whether the minimum is the scheduled one, with bounds on b that hold."""
        tilt, facts = self._tilt(scale, budget), query.facts
        bounded = tilt.largest <= facts.tilt and tilt.rounding <= facts.tilt_error
        return bounded and replace(facts, tilt=0.0, tilt_error=0.0) == self.facts

    def answer(
        self, query: Minimum, scale: float, budget: Budget, source: NoiseSource, evaluate: Callable[[Minimum], np.ndarray]
    ) -> np.ndarray:
        """Return the minimum for a random b, with noise that hides the error of the approximation."""
        tilted = query.tilted(self._tilt(scale, budget).draw(source))
        return self._release(query.facts, budget).add_to(evaluate(tilted), source)

    def raw_noise(self, scale: float, budget: Budget) -> float:
        """Return the root mean square of one coordinate of b over the penalty constant."""
        return self._tilt(scale, budget).root_mean_square / self.facts.strength

    def in_words(self, scale: float, budget: Budget) -> str:
        """Return the distributions and scales of b and of the noise on the result."""
        tilt, facts = self._tilt(scale, budget), self.with_tilt(budget)
        release = self._release(facts, budget)
        law = (
            f"exponential norm of scale {tilt.scale:.6g}" if isinstance(tilt, GammaNorm) else f"standard deviation {tilt.std:.6g}"
        )
        second = (
            f"scale {release.noise.scale:.3g}" if isinstance(release, GridGammaNorm) else f"standard deviation {release.std:.3g}"
        )
        return (
            f"{self.name}: a random linear term with {law}, gradients clipped to {facts.clip_norm:.6g}; n_samples * alpha = "
            f"{facts.strength:.6g}, where the log-determinant costs epsilon {self._kappa(budget):.3g}; minimised to a gradient "
            f"of {facts.precision:.3g}, which noise of {second} on the result hides"
        )

    def _kappa(self, budget: Budget) -> float:
        """Return the bound on the change of the log-determinant between neighbours."""
        return self.facts.log_determinant_of(budget.unit)

    def _tilt(self, scale: float, budget: Budget) -> GammaNorm | Normal:
        size, spread = self.facts.size, scale * self.facts.clip_norm * (1 + 2 * RELATIVE_SLACK)
        if budget.delta == 0:
            return GammaNorm(spread, size)
        return Normal(spread, size, budget.epsilon - math.log(_delta(TAIL_DELTA, budget) / 2))

    def _release(self, facts: Minimization, budget: Budget) -> GridGaussian | GridGammaNorm:
        """Return the noise that hides which point of small gradient was found."""
        # Two points with gradients of at most tau are within 2 tau / Lambda of each other.
        moved, epsilon = 2 * facts.precision / facts.strength, (1 - TILT_SHARE) * budget.epsilon
        if budget.delta == 0:
            return GridGammaNorm.calibrated(
                sensitivity=moved, scale=(1 + ROUNDING) / epsilon, size=facts.size, largest=2 * facts.largest
            )
        return GridGaussian.calibrated(
            clip_norm=moved,
            relative_sensitivity=1.0,
            scale=1 / gaussian_mu(epsilon, _delta(RELEASE_DELTA, budget)),
            n_samples=math.ceil(2 * facts.largest / moved),
            size=facts.size,
            summation_error=0.0,
        )


@dataclass(frozen=True)
class ExponentialNorm(Curve):
    """Add noise of exponential norm to a minimum (the sensitivity method for delta = 0); its scale is relative to sensitivity.

    Parameters
    ----------
    name : str
        Name of the mechanism in the report.
    facts : Minimization
        Public facts.
    """

    facts: Minimization

    def scale(self, budget: Budget) -> float:
        """Return one over epsilon."""
        return (1 + ROUNDING) / budget.epsilon

    def epsilon(self, scale: float, budget: Budget) -> float:
        """Return one over the scale."""
        return (1 + ROUNDING / 4) / scale

    def deltas(self, scale: float, epsilons: np.ndarray, budget: Budget) -> np.ndarray:
        """Return upper bounds on delta below epsilon, and 0 above it."""
        return _pure_deltas(self.epsilon(scale, budget), epsilons)

    def admits(self, query: Minimum, scale: float, budget: Budget) -> bool:
        """Return whether the minimum is the scheduled one."""
        return query.facts == self.facts

    def answer(
        self, query: Minimum, scale: float, budget: Budget, source: NoiseSource, evaluate: Callable[[Minimum], np.ndarray]
    ) -> np.ndarray:
        """Return the minimum with noise."""
        return self._noise(scale, budget).add_to(evaluate(query), source)

    def raw_noise(self, scale: float, budget: Budget) -> float:
        """Return the root mean square of one coordinate of the noise."""
        return self._noise(scale, budget).noise.root_mean_square

    def in_words(self, scale: float, budget: Budget) -> str:
        """Return the distribution and scale of the noise."""
        facts, noise = self.facts, self._noise(scale, budget).noise
        return (
            f"{self.name} with scale {noise.scale:.6g} on the minimum, gradients clipped to {facts.clip_norm:.6g}; n_samples * "
            f"alpha = {facts.strength:.6g}; minimised to a gradient of {facts.precision:.3g}, which the noise covers"
        )

    def _noise(self, scale: float, budget: Budget) -> GridGammaNorm:
        moved = K[budget.adjacency] * (self.facts.clip_norm + 2 * self.facts.precision) / self.facts.strength
        return GridGammaNorm.calibrated(sensitivity=moved, scale=scale, size=self.facts.size, largest=2 * self.facts.largest)


def _delta(share: float, budget: Budget) -> float:
    if budget.delta < SMALLEST_DELTA:
        raise ValueError(
            f"delta={budget.delta!r} is too small to account for objective perturbation; expected at least {SMALLEST_DELTA}, or "
            "0 for pure epsilon-DP."
        )
    return share * budget.delta


def _slack(mu: float) -> float:
    """Return a relative rounding above the error of a root and of the difference in delta."""
    return max(ROUNDING, 1e-13 / mu)


@lru_cache(maxsize=1024)
def _largest_mu(epsilon: float, delta: float, adjacency: str, one_sided: bool) -> float:
    """Return the largest mu with the given delta.

    The sum over `VERTICES` has at most four terms, each at most the delta of a shift of 2 mu.
    """
    lowest, highest = gaussian_mu(epsilon, delta / 4) / 2, gaussian_mu(epsilon, delta)

    def excess(log_mu: float) -> float:
        return _log_ratio(tilted_delta(epsilon, math.exp(log_mu), 0.0, adjacency, one_sided), delta)

    return math.exp(brentq(excess, math.log(lowest) - 1e-6, math.log(highest) + 1e-6, xtol=1e-12))


@lru_cache(maxsize=1024)
def _least_epsilon(mu: float, delta: float, adjacency: str, one_sided: bool) -> float:
    """Return the least epsilon with the given delta."""
    tiny = 1e-12 * mu
    highest = gaussian_epsilon(2 * mu, delta / 4) * (1 + 1e-6) + tiny
    excess = [_log_ratio(tilted_delta(epsilon, mu, 0.0, adjacency, one_sided), delta) for epsilon in (tiny, highest)]
    if excess[0] <= 0:
        return tiny
    return brentq(
        lambda epsilon: _log_ratio(tilted_delta(epsilon, mu, 0.0, adjacency, one_sided), delta),
        tiny,
        highest,
        xtol=1e-13 * highest,
    )


def _log_ratio(value: float, target: float) -> float:
    return math.log(max(value, 1e-320) / target)


def _pure_deltas(epsilon: float, epsilons: np.ndarray) -> np.ndarray:
    """Return the deltas of randomised response, which dominates every mechanism that is epsilon-DP with delta = 0."""
    below = np.minimum(epsilons, epsilon)
    return np.maximum(-np.expm1(below - epsilon) / (1 + np.exp(-epsilon)), 0.0)
