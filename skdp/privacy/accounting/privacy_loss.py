r"""Account for schedules with Poisson-subsampled releases by privacy loss distributions.

The distribution of the privacy loss of every release is put on a grid, rounded to the private side, and convolved by fast
Fourier transforms (``dp_accounting``). The central limit theorem gives the standard deviation of one loss. A spacing of a
twentieth of it overstates epsilon by about one part in 5000.

References
----------
.. [1] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, "Connect the dots: tighter discrete approximations of
   privacy loss distributions", PoPETs 2022.
.. [2] A. Koskela, J. Jalko, A. Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS 2020.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Schedule, Selection, SinglePass

# Smallest delta that is accepted. Below it a convolution in float64 has no correct digits left.
SMALLEST_DELTA = 1e-12

# Allowance for the absolute error that the transforms make in delta, per composed release. The largest measured error was
# 2.5 * 2**-53, against tilted transforms. It is taken off delta, so a larger allowance adds noise.
TRANSFORM_ERROR = 4 * 2.0**-53

# Grid points per standard deviation of one loss: COARSE while a search brackets the noise, FINE for the result. A choice:
# FINE = 20 overstates epsilon by about one part in 5000. More points take more time and overstate less.
COARSE, FINE = 4, 20

# USUAL is the spacing of the loss that dp_accounting takes by default. It replaces a coarser spacing from FINE if it leaves at
# least FEWEST_POINTS points per standard deviation of one loss. FEWEST_POINTS is a choice.
USUAL, FEWEST_POINTS = 1e-4, 6

# Logarithm of the share of epsilon that a calibrated schedule spends at least. A choice: the search for the noise ends between
# this share and the whole budget. A share closer to 1 takes more evaluations.
LEAST_SPENT = math.log(0.9995)

# Largest number of evaluations of epsilon in one search, and largest number of subsampled releases in one schedule. Both are
# choices that end computations without a result.
MAX_EVALUATIONS, MOST_RELEASES = 50, 10**7

# The constant k: largest shift of a sum between neighbours, in units of the clip norm.
K = {"replace_one": 2, "zero_out": 1}

# Largest number of grid points for one loss. A choice that bounds memory; a coarser grid overstates epsilon and stays private.
MOST_POINTS = 2**16


@dataclass(frozen=True)
class Composition:
    """Hold the facts of a schedule that determine its privacy cost; it is hashable, so that results are cached.

    Parameters
    ----------
    adjacency : {"replace_one", "zero_out"}
        Which tables are neighbours.
    sampled : tuple of (int, float, float)
        Subsampled Gaussian releases: number, sampling rate, noise multiplier at noise scale 1.
    selections : tuple of (int, float)
        Selections: number, weight.
    full : float
        Sum of ``1 / weight**2`` over the full-data Gaussian releases, which compose to one, plus the largest ``1 / weight**2`` of
        the single-pass releases, because each record appears in at most one of them.
    """

    adjacency: str
    sampled: tuple[tuple[int, float, float], ...]
    selections: tuple[tuple[int, float], ...]
    full: float

    @classmethod
    def of(cls, schedule: Schedule, adjacency: str) -> "Composition":
        """Return the composition of a schedule.

        Parameters
        ----------
        schedule : Schedule
            Gaussian releases (full-data, subsampled or single-pass) and selections.
        adjacency : {"replace_one", "zero_out"}
            Which tables are neighbours.

        Returns
        -------
        Composition
            Independent of clip norms and of the order of the releases.

        Raises
        ------
        PrivacyAccountingError
            If a mechanism has no accounting here.
        """
        sampled: Counter[tuple[float, float]] = Counter()
        selections: Counter[float] = Counter()
        full = once = 0.0
        for count, release in schedule.entries:
            match release.mechanism:
                case Gaussian(weight) | PoissonGaussian(1.0, weight):
                    full += count / weight**2
                case PoissonGaussian(sampling_rate, weight):
                    sampled[sampling_rate, weight * release.query.relative_sensitivity[adjacency]] += count
                case SinglePass(_, weight):
                    once = max(once, 1 / weight**2)
                case Selection(weight):
                    selections[weight] += count
                case _:
                    raise PrivacyAccountingError(f"No accounting is known for the mechanism {release.mechanism!r}.")
        return cls(
            adjacency,
            tuple((count, *kind) for kind, count in sampled.items()),
            tuple((count, weight) for weight, count in selections.items()),
            full + once,
        )

    def at(self, scale: float) -> "Composition":
        """Return the composition whose noise at scale 1 is the noise of this one at ``scale``.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1, positive.

        Returns
        -------
        Composition
            The releases with their actual noise.
        """
        sampled = tuple((count, rate, multiplier * scale) for count, rate, multiplier in self.sampled)
        selections = tuple((count, weight * scale) for count, weight in self.selections)
        return Composition(self.adjacency, sampled, selections, self.full / scale**2)

    def calibrate(self, budget: Budget) -> float:
        """Return the noise scale at which the releases spend between 0.9995 and all of the budget.

        Parameters
        ----------
        budget : Budget
            The budget of the fit.

        Returns
        -------
        float
            Standard deviation over sensitivity of a release of weight 1; 0 for ``epsilon=inf``.

        Raises
        ------
        ValueError
            If delta is too small for convolutions in float64, or so large that it would allow publishing the few drawn records.
        """
        return _calibrate(self, budget) if budget.private else 0.0

    def epsilon(self, scale: float, budget: Budget) -> float:
        """Return an upper bound on the epsilon that the releases spend.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.
        budget : Budget
            The bound holds at its delta. Its epsilon only sets the spacing of the grid.

        Returns
        -------
        float
            Exact up to discretisation, which overstates it; ``inf`` without noise.
        """
        return _epsilon(self, scale, budget, FINE) if scale > 0 else math.inf

    def losses(self, scale: float, budget: Budget) -> tuple[Any, float]:
        """Return the distribution of the privacy loss.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.
        budget : Budget
            Approximate cost of the releases; it sets the spacing of the grid.

        Returns
        -------
        distribution : PrivacyLossDistribution
            Upper bound, by ``dp_accounting``.
        error : float
            Bound on the error of its delta.
        """
        return loss_distribution(self, scale, _spacing(self, scale, budget, FINE)), self.n_losses * TRANSFORM_ERROR

    @property
    def n_losses(self) -> int:
        """Number of convolved losses."""
        return sum(count for count, *_ in self.sampled + self.selections) + 1

    def central_limit_mu(self, scale: float) -> float:
        """Return the Gaussian-DP parameter that many such releases approach.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.

        Returns
        -------
        float
            Square root of the sum of the variances of all losses. A subsampled release counts at most the variance that it has
            without sampling, which matters if the noise is small. The variance of a selection is at most the square of half the
            length of the interval that contains its loss.
        """
        total = (self.full + sum(count / weight**2 for count, weight in self.selections)) / scale**2
        for count, rate, multiplier in self.sampled:
            inverse_square = 1 / (multiplier * scale) ** 2
            exponent = min(inverse_square, 700.0)
            # The chi-squared divergence of the normals that a sample mixes; the loss has about rate**2 times this variance.
            variance = 4 * math.sinh(exponent) if self.adjacency == "replace_one" else math.expm1(exponent)
            total += count * min(rate**2 * variance, K[self.adjacency] ** 2 * inverse_square)
        return math.sqrt(total)

    def largest_loss(self, scale: float) -> float:
        """Return a bound on the loss of one subsampled release, which fails with probability 1e-22.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.

        Returns
        -------
        float
            The bound for the same release without sampling.
        """
        mu = max(K[self.adjacency] / (multiplier * scale) for _, _, multiplier in self.sampled)
        return mu * mu / 2 + 10 * mu


@functools.lru_cache(maxsize=1024)
def _calibrate(composition: Composition, budget: Budget) -> float:
    def excess(log_scale: float, points: int) -> float:
        """Return the logarithm of epsilon over the budget's epsilon, which decreases with the noise."""
        try:
            epsilon = _epsilon(composition, math.exp(log_scale), budget, points)
        except OverflowError:  # the noise is too small
            epsilon = math.inf
        return math.log(min(max(epsilon, 1e-9 * budget.epsilon), 1e9 * budget.epsilon) / budget.epsilon)

    if composition.n_losses > MOST_RELEASES:
        raise ValueError(f"The schedule has {composition.n_losses - 1} subsampled releases; expected at most {MOST_RELEASES}.")
    # Where a record is hardly ever drawn, delta allows publishing it, and no noise solves the equation.
    drawn = sum(count * rate for count, rate, _ in composition.sampled)
    if drawn <= 2 * budget.delta and not composition.full:
        raise ValueError(
            f"A record is drawn {drawn:.3g} times on average, so delta={budget.delta!r} allows publishing it without noise; "
            "expected more steps or larger batches."
        )
    mu = gaussian_mu(budget.epsilon, budget.delta)
    # Start where the central limit theorem would have it, bracket the root on a coarse grid, and end on the fine one with the
    # slope of the coarse one.
    limit = brentq(lambda t: math.log(composition.central_limit_mu(math.exp(t)) / mu), -40, 60, xtol=1e-6)
    root, slope = _bracketed_root(functools.partial(excess, points=COARSE), limit)
    for _ in range(MAX_EVALUATIONS):
        left = excess(root, FINE)
        if LEAST_SPENT <= left <= 0:
            return math.exp(root)
        # Newton's step towards the middle of the accepted range.
        root += (LEAST_SPENT / 2 - left) / slope
    raise PrivacyAccountingError(
        f"The search found no noise that spends epsilon={budget.epsilon!r} at delta={budget.delta!r}; full-data solvers (gd) "
        "have an exact formula."
    )


def _bracketed_root(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return the root of a decreasing function near ``start``, and its slope there."""
    known = functools.lru_cache(maxsize=None)(excess)
    ends = [start, start + 1.2 * known(start) + math.copysign(2e-3, known(start))]
    while known(ends[0]) * known(ends[1]) > 0:
        ends = [ends[1], ends[1] + 2 * (ends[1] - ends[0])]
    root = brentq(known, *ends, xtol=2e-4)
    other = min((end for end in ends if end != root), key=lambda end: abs(end - root))
    return root, (known(other) - known(root)) / (other - root)


@functools.lru_cache(maxsize=1024)
def _epsilon(composition: Composition, scale: float, budget: Budget, points: int) -> float:
    """Return epsilon at the budget's delta minus the error bound of the transforms."""
    rounding = composition.n_losses * TRANSFORM_ERROR
    if budget.delta < max(SMALLEST_DELTA, 2 * rounding):
        raise ValueError(
            f"delta={budget.delta!r} is too small to account for {composition.n_losses - 1} subsampled releases; expected at "
            f"least {max(SMALLEST_DELTA, 2 * rounding):.3g}. Full-data solvers (gd) have an exact formula for any delta."
        )
    spacing = _spacing(composition, scale, budget, points)
    try:
        # Independent of the caller's np.errstate. If losses overflow, dp_accounting would return a delta of 0 in place of 1.
        with np.errstate(all="ignore", over="raise"):
            return loss_distribution(composition, scale, spacing).get_epsilon_for_delta(budget.delta - rounding)
    except FloatingPointError:  # the noise is too small
        return math.inf


def _spacing(composition: Composition, scale: float, budget: Budget, points: int) -> float:
    """Return the distance between neighbouring grid points."""
    # Standard deviation of one of n losses of a composition that is mu-GDP.
    spread = gaussian_mu(budget.epsilon, budget.delta) / math.sqrt(composition.n_losses)
    spacing = spread / COARSE if points == COARSE else max(spread / FINE, min(USUAL, spread / FEWEST_POINTS))
    return max(spacing, composition.largest_loss(scale) / MOST_POINTS)


def loss_distribution(composition: Composition, scale: float, spacing: float) -> Any:
    """Return the composed distribution on a grid; every step rounds to the private side."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as losses

    relation = {"replace_one": NeighboringRelation.REPLACE_ONE, "zero_out": NeighboringRelation.REPLACE_SPECIAL}
    options = {"value_discretization_interval": spacing, "neighboring_relation": relation[composition.adjacency]}
    parts = [
        losses.from_gaussian_mechanism(multiplier * scale, sampling_prob=rate, **options).self_compose(count)
        for count, rate, multiplier in composition.sampled
    ]
    for count, weight in composition.selections:  # two-bucket randomised response with log-odds 2 / (weight * scale)
        flip = 2 / (1 + math.exp(min(2 / (weight * scale), 700.0)))
        response = losses.from_randomized_response(flip, 2, value_discretization_interval=spacing)
        parts.append(response.self_compose(count))
    if composition.full:  # standard deviation over clip norm: dp_accounting multiplies the shift by K
        multiplier = K[composition.adjacency] * scale / math.sqrt(composition.full)
        parts.append(losses.from_gaussian_mechanism(multiplier, **options))
    return functools.reduce(lambda left, right: left.compose(right), parts)
