r"""Accounting of schedules with Poisson-subsampled releases, by privacy loss distributions.

The distribution of the privacy loss of every release is put on a grid, rounded to the private side, and convolved by fast
Fourier transforms (``dp_accounting``). The spacing of the grid follows from the spread that the central limit theorem gives one
release: a twentieth of it overstates epsilon by about one part in 5000.

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

__all__ = ["TRANSFORM_ERROR", "Composition", "loss_distribution"]

SMALLEST_DELTA = 1e-12
TRANSFORM_ERROR = 4 * 2.0**-53  # of delta, per composed release: up to 2.5 * 2**-53 was measured, against tilted transforms
COARSE, FINE = 4, 20  # grid points per standard deviation of one loss
USUAL, FEWEST = 1e-4, 6  # the spacing that others use is kept where it leaves as many points
LEAST_SPENT = math.log(0.9995)  # share of the budget at which the search for the noise ends
MAX_EVALUATIONS, MOST_RELEASES = 50, 10**7
K = {"replace_one": 2, "zero_out": 1}  # shift of a sum between neighbours, over the clip norm
MOST_POINTS = 2**16  # on the grid of one loss; a coarser grid is slower to converge, not less private


@dataclass(frozen=True)
class Composition:
    """What the accounting of a schedule depends on, as a value.

    Parameters
    ----------
    adjacency : {"replace_one", "zero_out"}
        Which tables are neighbours.
    sampled : tuple of (int, float, float)
        Subsampled Gaussian releases: how many, sampling rate, noise multiplier at noise scale 1.
    selections : tuple of (int, float)
        Selections: how many, weight.
    full : float
        Sum of ``1 / weight**2`` over the full-data Gaussian releases, which compose to one, and the largest of the single pass,
        of which every record is in one at most.
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
            Gaussian releases, subsampled or not, and selections.
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
        """Return the same releases with the noise of a given scale, now at scale 1.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1, positive.

        Returns
        -------
        Composition
            What was really released.
        """
        sampled = tuple((count, rate, multiplier * scale) for count, rate, multiplier in self.sampled)
        selections = tuple((count, weight * scale) for count, weight in self.selections)
        return Composition(self.adjacency, sampled, selections, self.full / scale**2)

    def calibrate(self, budget: Budget) -> float:
        """Return the noise scale at which the releases spend between 0.9995 and all of the budget.

        Parameters
        ----------
        budget : Budget
            What may be spent.

        Returns
        -------
        float
            Standard deviation over sensitivity of a release of weight 1; 0 for ``epsilon=inf``.

        Raises
        ------
        ValueError
            If delta is too small for convolutions in float64, or so large that it covers the few records that are drawn.
        """
        return _calibrate(self, budget) if budget.private else 0.0

    def epsilon(self, scale: float, budget: Budget) -> float:
        """Return an upper bound of the epsilon that the releases spend.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.
        budget : Budget
            Its delta is the one of the bound; its epsilon sets the spacing of the grid only.

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
            About what the releases spend: it sets the spacing of the grid.

        Returns
        -------
        distribution : PrivacyLossDistribution
            Upper bound, by ``dp_accounting``.
        error : float
            What its delta may be wrong by.
        """
        return loss_distribution(self, scale, _spacing(self, scale, budget, FINE)), self.n_losses * TRANSFORM_ERROR

    @property
    def n_losses(self) -> int:
        """Number of convolved losses."""
        return sum(count for count, *_ in self.sampled + self.selections) + 1

    def central_limit_mu(self, scale: float) -> float:
        """Return the Gaussian-DP parameter to which many such releases tend.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.

        Returns
        -------
        float
            Square root of the sum of the variances of all losses; where noise is small, of their bounds without sampling. That of
            a selection is at most the square of half of the interval in which its loss stays.
        """
        total = (self.full + sum(count / weight**2 for count, weight in self.selections)) / scale**2
        for count, rate, multiplier in self.sampled:
            inverse_square = 1 / (multiplier * scale) ** 2
            exponent = min(inverse_square, 700.0)
            variance = 4 * math.sinh(exponent) if self.adjacency == "replace_one" else math.expm1(exponent)
            total += count * min(rate**2 * variance, K[self.adjacency] ** 2 * inverse_square)
        return math.sqrt(total)

    def largest_loss(self, scale: float) -> float:
        """Return a bound on the loss of one subsampled release, but for a probability of 1e-22.

        Parameters
        ----------
        scale : float
            Standard deviation over sensitivity of a release of weight 1.

        Returns
        -------
        float
            That of the release without sampling.
        """
        mu = max(K[self.adjacency] / (multiplier * scale) for _, _, multiplier in self.sampled)
        return mu * mu / 2 + 10 * mu


@functools.lru_cache(maxsize=1024)
def _calibrate(composition: Composition, budget: Budget) -> float:
    def excess(log_scale: float, points: int) -> float:
        """Logarithm of epsilon over the budget's; decreases with the noise."""
        try:
            epsilon = _epsilon(composition, math.exp(log_scale), budget, points)
        except OverflowError:  # hardly any noise
            epsilon = math.inf
        return math.log(min(max(epsilon, 1e-9 * budget.epsilon), 1e9 * budget.epsilon) / budget.epsilon)

    if composition.n_losses > MOST_RELEASES:
        raise ValueError(f"The schedule has {composition.n_losses - 1} subsampled releases; expected at most {MOST_RELEASES}.")
    drawn = sum(count * rate for count, rate, _ in composition.sampled)
    if drawn <= 2 * budget.delta and not composition.full:
        raise ValueError(
            f"A record is drawn {drawn:.3g} times on average, so delta={budget.delta!r} allows publishing it without noise; "
            "expected more steps or larger batches."
        )
    mu = gaussian_mu(budget.epsilon, budget.delta)
    limit = brentq(lambda t: math.log(composition.central_limit_mu(math.exp(t)) / mu), -40, 60, xtol=1e-6)
    root, slope = _bracketed_root(functools.partial(excess, points=COARSE), limit)
    for _ in range(MAX_EVALUATIONS):
        left = excess(root, FINE)
        if LEAST_SPENT <= left <= 0:
            return math.exp(root)
        root += (LEAST_SPENT / 2 - left) / slope
    raise PrivacyAccountingError(
        f"No noise was found that spends epsilon={budget.epsilon!r} at delta={budget.delta!r}; a full-data solver (gd) has an "
        "exact formula."
    )


def _bracketed_root(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Root of a decreasing function near ``start``, and its slope there."""
    known = functools.lru_cache(maxsize=None)(excess)
    ends = [start, start + 1.2 * known(start) + math.copysign(2e-3, known(start))]
    while known(ends[0]) * known(ends[1]) > 0:
        ends = [ends[1], ends[1] + 2 * (ends[1] - ends[0])]
    root = brentq(known, *ends, xtol=2e-4)
    other = min((end for end in ends if end != root), key=lambda end: abs(end - root))
    return root, (known(other) - known(root)) / (other - root)


@functools.lru_cache(maxsize=1024)
def _epsilon(composition: Composition, scale: float, budget: Budget, points: int) -> float:
    """Epsilon at the budget's delta, less what the transforms may be wrong by."""
    rounding = composition.n_losses * TRANSFORM_ERROR
    if budget.delta < max(SMALLEST_DELTA, 2 * rounding):
        raise ValueError(
            f"delta={budget.delta!r} is too small to account for {composition.n_losses - 1} subsampled releases; expected at "
            f"least {max(SMALLEST_DELTA, 2 * rounding):.3g}. Solvers on the full data (gd) have an exact formula for any delta."
        )
    spacing = _spacing(composition, scale, budget, points)
    try:
        with np.errstate(
            all="ignore", over="raise"
        ):  # whatever a program makes errors; where losses overflow, the library would take a delta of 1 for 0
            return loss_distribution(composition, scale, spacing).get_epsilon_for_delta(budget.delta - rounding)
    except FloatingPointError:  # hardly any noise
        return math.inf


def _spacing(composition: Composition, scale: float, budget: Budget, points: int) -> float:
    """Distance of neighbouring grid points."""
    spread = gaussian_mu(budget.epsilon, budget.delta) / math.sqrt(composition.n_losses)
    spacing = spread / COARSE if points == COARSE else max(spread / FINE, min(USUAL, spread / FEWEST))
    return max(spacing, composition.largest_loss(scale) / MOST_POINTS)


def loss_distribution(composition: Composition, scale: float, spacing: float) -> Any:
    """Composed distribution on a grid; every step rounds to the private side."""
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
    if composition.full:  # standard deviation over clip norm: the library multiplies by K itself
        multiplier = K[composition.adjacency] * scale / math.sqrt(composition.full)
        parts.append(losses.from_gaussian_mechanism(multiplier, **options))
    return functools.reduce(lambda left, right: left.compose(right), parts)
