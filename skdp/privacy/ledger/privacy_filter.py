r"""What a ledger enforces: a bound that holds when every fit is chosen after seeing the results of all earlier ones.

A figure that is right for a plan fixed in advance may be wrong for choices made on the way, so the ceiling
:math:`(\varepsilon, \delta)` is guarded by a *filter* with two compartments.

1. Charges *by themselves* come first, if at all: their epsilons and deltas add up to (E, D).
2. All others are charged by their Gaussian cover :math:`(\mu_j, s_j)` against what is then left,
   :math:`(\varepsilon', \delta') = (\varepsilon - E, \delta - D)`. With a reserve s, about a thousandth of :math:`\delta'`, they
   have to keep

.. math:: \sum_j s_j \le s \quad\text{and}\quad \delta_m(\varepsilon') \le \delta' - s, \quad m^2 = \sum_j \mu_j^2.

**Proof.** The compartments are two mechanisms, the second chosen after the first, so their guarantees add up [1]_. Within the
second, let w be the probability that no cover tells the tables apart: a function of the transcript that is the same for both
tables, at least 1 - s because the :math:`s_j` add up to at most s on every path. So for any event S, with the processes
:math:`P_G, Q_G` of normals only, :math:`P(S) \le s + \int_S w \, dP_G` and :math:`Q(S) \ge \int_S w \, dQ_G`, and

.. math:: P(S) - e^{\varepsilon'} Q(S) \le s + \int w \, (dP_G - e^{\varepsilon'} dQ_G)_+ \le s + \delta_m(\varepsilon').

The last step is the filter for adaptively chosen Gaussian releases [2]_.

**Why a reserve.** A ledger that gave Gaussian fits all of delta and turned to another rule at the first sampled fit would be
wrong: the analyst turns after a result that makes the Gaussian rest useless to him, and gains the delta of the sampled fit on
top (a delta 1.49 times the stated one was found). The reserve is that delta. It costs Gaussian fits about one part in 20000 of
epsilon for a delta of 1e-6, and up to one in 300 where delta is 1e-9 and the reserve a tenth of it.

Fits may also run side by side: Gaussian releases, and by their covers all others, compose concurrently as they do one after the
other [3]_. Their noise has to be independent, which is why no seed of an estimator reaches it.

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

__all__ = ["Charge", "Filter"]

RESERVE, RESOLVED, LARGEST_RESERVE = 1e-3, 1e-10, 0.1  # shares of delta, and what float64 convolutions resolve with room
NEXT_SLACK = 1 / 50  # share of the rest of the reserve that the next cover may use
SMALLEST_EPSILON = 1e-6


@dataclass(frozen=True)
class Charge:
    """What one entry of a ledger costs.

    Parameters
    ----------
    epsilon, delta : float
        Its own guarantee.
    mu, slack : float
        Its Gaussian cover.
    by_itself : bool
        Whether it is charged by its own guarantee, not by its cover.
    """

    epsilon: float
    delta: float
    mu: float
    slack: float
    by_itself: bool = False


@dataclass(frozen=True)
class Filter:
    """A ceiling and what was charged against it.

    Parameters
    ----------
    epsilon, delta : float
        The ceiling.
    charges : tuple of Charge
        In order.
    """

    epsilon: float
    delta: float
    charges: tuple[Charge, ...]

    def admits(self, charge: Charge) -> bool:
        """Tell whether a charge stays under the ceiling.

        Parameters
        ----------
        charge : Charge
            By its cover, or by itself: the latter only before any charge by a cover.

        Returns
        -------
        bool
            True if it does.
        """
        if charge.by_itself:
            return not self._covered and charge.epsilon <= self.rest[0] and charge.delta <= self.rest[1]
        return charge.slack <= self.slack_left and math.fsum([*self._squares, charge.mu**2]) <= self.largest_mu**2

    @cached_property
    def rest(self) -> tuple[float, float]:
        """Epsilon and delta that the charges by themselves leave."""
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
        """Bound on the root of the sum of the squared mu of all covers; 0 where nothing is left."""
        epsilon, delta = self.rest
        return gaussian_mu(epsilon, delta - self.reserve) if epsilon > SMALLEST_EPSILON and delta > 0 else 0.0

    @property
    def mu_left(self) -> float:
        """The mu of one cover that still fits."""
        return math.sqrt(max(0.0, math.fsum([self.largest_mu**2, *(-square for square in self._squares)])))

    @property
    def slack_left(self) -> float:
        """Rest of the reserve."""
        return max(0.0, math.fsum([self.reserve, *(-charge.slack for charge in self._covered)]))

    @property
    def delta_left(self) -> float:
        """Largest delta that a charge of which nothing else is known may have."""
        return self.slack_left if self._covered else self.rest[1]

    @property
    def next_slack(self) -> float:
        """Slack for the next cover, a power of two, so that equal fits have equal covers."""
        slack = NEXT_SLACK * self.slack_left
        return math.ldexp(1.0, math.frexp(slack)[1] - 1) if slack > 0 else 0.0

    @property
    def spent_epsilon(self) -> float:
        """Epsilon at the ceiling's delta that the charges use up."""
        alone = self.epsilon - self.rest[0]
        if not self._covered:
            return alone
        return alone + gaussian_epsilon(math.sqrt(math.fsum(self._squares)), self.rest[1] - self.reserve)

    def epsilon_left(self, delta: float, n_fits: int = 1) -> float:
        """Return the largest epsilon at which some fits on full data still fit.

        Parameters
        ----------
        delta : float
            The delta of each fit.
        n_fits : int, default=1
            How many, all with the same epsilon.

        Returns
        -------
        float
            Rounded down to four digits; 0 if nothing fits.
        """
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
    """Four significant digits, never above ``x``."""
    if x <= SMALLEST_EPSILON:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(x)) - 3)
    candidates = (float(f"{(math.floor(x / unit) - back) * unit:.3e}") for back in (0, 1))
    return next(candidate for candidate in candidates if candidate <= x)
