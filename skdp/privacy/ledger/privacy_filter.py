r"""Decide which charges a ledger admits, by a bound that also holds if each fit is chosen after seeing all earlier results.

A bound that is right for a plan fixed in advance may be wrong for choices made on the way. So a *filter* with two compartments
guards the ceiling :math:`(\varepsilon, \delta)`.

1. Charges *by themselves* come first, if there are any: their epsilons and deltas add up to (E, D).
2. All others are charged by their Gaussian cover :math:`(\mu_j, s_j)` against the rest,
   :math:`(\varepsilon', \delta') = (\varepsilon - E, \delta - D)`. With a reserve s, about a thousandth of :math:`\delta'`, they
   must satisfy

.. math:: \sum_j s_j \le s \quad\text{and}\quad \delta_m(\varepsilon') \le \delta' - s, \quad m^2 = \sum_j \mu_j^2.

**Proof.** The compartments are two mechanisms, the second chosen after the first, so their guarantees add up [1]_. Within the
second, let w be the probability that no cover tells the tables apart. It is the same function of the transcript for both tables,
and at least 1 - s because the :math:`s_j` add up to at most s on every path. So for any event S, with the processes
:math:`P_G, Q_G` of normals only, :math:`P(S) \le s + \int_S w \, dP_G` and :math:`Q(S) \ge \int_S w \, dQ_G`, and

.. math:: P(S) - e^{\varepsilon'} Q(S) \le s + \int w \, (dP_G - e^{\varepsilon'} dQ_G)_+ \le s + \delta_m(\varepsilon').

The last step is the filter for adaptively chosen Gaussian releases [2]_.

**Why a reserve.** It would be wrong to give Gaussian fits all of delta and to change to another rule at the first sampled fit: an
analyst could change after a result that makes the rest of the Gaussian budget useless to him, and would gain the delta of the
sampled fit in addition (a delta 1.49 times the stated one was found). The reserve is that delta. It costs Gaussian fits about one
part in 20000 of epsilon for a delta of 1e-6, and up to one in 300 if delta is 1e-9 and the reserve is a tenth of it.

Fits may also run at the same time: Gaussian releases, and by their covers all others, compose concurrently as they do
sequentially [3]_. Their noise must be independent, which is why no seed of an estimator sets it.

References
----------
.. [1] R. Rogers, A. Roth, J. Ullman, S. Vadhan, "Privacy odometers and filters", NeurIPS 2016: sums of epsilons and deltas.
.. [2] A. Smith, A. Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022; the same in
   A. Koskela, M. Tobaben, A. Honkela, "Individual privacy accounting with Gaussian differential privacy", ICLR 2023.
.. [3] S. Vadhan, W. Zhang, "Concurrent composition theorems for differential privacy", STOC 2023.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu

# The reserve is RESERVE times delta, at least RESOLVED (an absolute delta, well above the error of float64 convolutions), and at
# most LARGEST_RESERVE times delta. All three are choices. A larger reserve admits more subsampled fits, but reduces what Gaussian
# fits may spend.
RESERVE, RESOLVED, LARGEST_RESERVE = 1e-3, 1e-10, 0.1

# Share of the rest of the reserve that the next cover may use. A choice: a smaller share admits more fits, each with a larger mu.
NEXT_SLACK = 1 / 50

# Smallest epsilon that counts as left. A choice: below it nothing more is admitted by a cover.
SMALLEST_EPSILON = 1e-6


@dataclass(frozen=True)
class Charge:
    """State what one entry of a ledger costs.

    Parameters
    ----------
    epsilon, delta : float
        Guarantee of the entry alone.
    mu, slack : float
        Gaussian cover of the entry.
    by_itself : bool
        Whether the entry is charged by its own guarantee, not by its cover.
    """

    epsilon: float
    delta: float
    mu: float
    slack: float
    by_itself: bool = False


@dataclass(frozen=True)
class Filter:
    """Compare charges with a ceiling.

    Parameters
    ----------
    epsilon, delta : float
        The ceiling.
    charges : tuple of Charge
        All charges so far, in order.
    """

    epsilon: float
    delta: float
    charges: tuple[Charge, ...]

    def admits(self, charge: Charge) -> bool:
        """Return whether the ceiling admits one more charge.

        Parameters
        ----------
        charge : Charge
            Charge by its cover or by itself; the latter is admitted only before any charge by a cover.

        Returns
        -------
        bool
            True if it is admitted.
        """
        if charge.by_itself:
            return not self._covered and charge.epsilon <= self.rest[0] and charge.delta <= self.rest[1]
        return charge.slack <= self.slack_left and math.fsum([*self._squares, charge.mu**2]) <= self.largest_mu**2

    @cached_property
    def rest(self) -> tuple[float, float]:
        """Epsilon and delta that are left after the charges by themselves."""
        # Sums are exact to a rounding (fsum), so that the order of charges does not matter.
        alone = [charge for charge in self.charges if charge.by_itself]
        epsilon = math.fsum([self.epsilon, *(-charge.epsilon for charge in alone)])
        delta = math.fsum([self.delta, *(-charge.delta for charge in alone)])
        return max(epsilon, 0.0), max(delta, 0.0)

    @cached_property
    def reserve(self) -> float:
        """Part of delta that is kept for the slacks of covers."""
        delta = self.rest[1]
        return min(max(RESERVE * delta, RESOLVED), LARGEST_RESERVE * delta)

    @cached_property
    def largest_mu(self) -> float:
        """Bound on the square root of the sum of the squared mu of all covers; 0 if nothing is left."""
        epsilon, delta = self.rest
        return gaussian_mu(epsilon, delta - self.reserve) if epsilon > SMALLEST_EPSILON and delta > 0 else 0.0

    @property
    def mu_left(self) -> float:
        """Largest mu of one more cover."""
        return math.sqrt(max(0.0, math.fsum([self.largest_mu**2, *(-square for square in self._squares)])))

    @property
    def slack_left(self) -> float:
        """Part of the reserve that is left."""
        return max(0.0, math.fsum([self.reserve, *(-charge.slack for charge in self._covered)]))

    @property
    def delta_left(self) -> float:
        """Largest delta of one more release with only a known guarantee."""
        return self.slack_left if self._covered else self.rest[1]

    @property
    def next_slack(self) -> float:
        """Slack for the next cover: a power of two, so that equal fits have equal covers."""
        slack = NEXT_SLACK * self.slack_left
        return math.ldexp(1.0, math.frexp(slack)[1] - 1) if slack > 0 else 0.0

    @property
    def spent_epsilon(self) -> float:
        """Epsilon that the charges spend, at the ceiling's delta."""
        alone = self.epsilon - self.rest[0]
        if not self._covered:
            return alone
        return alone + gaussian_epsilon(math.sqrt(math.fsum(self._squares)), self.rest[1] - self.reserve)

    def epsilon_left(self, delta: float, n_fits: int = 1) -> float:
        """Return the largest epsilon that each of ``n_fits`` full-data fits could still be charged.

        Parameters
        ----------
        delta : float
            The delta of each fit.
        n_fits : int, default=1
            Number of fits, all with the same epsilon.

        Returns
        -------
        float
            Epsilon rounded down to four digits; 0 if nothing more can be charged.
        """
        # Equal fits share the squared mu that is left; rounded down, because the charge rounds up.
        covered = gaussian_epsilon(self.mu_left / math.sqrt(n_fits), delta) if self.mu_left > 0 else 0.0
        alone = self.rest[0] if n_fits == 1 and not self._covered and delta <= self.rest[1] else 0.0
        return _rounded_down(max(covered * (1 - 1e-8), alone))

    @property
    def _covered(self) -> list[Charge]:
        return [charge for charge in self.charges if not charge.by_itself]

    @property
    def _squares(self) -> Iterable[float]:
        return [charge.mu**2 for charge in self._covered]


def _rounded_down(x: float) -> float:
    """Return ``x`` rounded down to four significant digits."""
    if x <= SMALLEST_EPSILON:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(x)) - 3)
    candidates = (float(f"{(math.floor(x / unit) - back) * unit:.3e}") for back in (0, 1))
    return next(candidate for candidate in candidates if candidate <= x)
