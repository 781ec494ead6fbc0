r"""What the noise of Theorem 4.1 of Wang, Ye, Xu (2017) costs by exact accounting, at the lengths of that paper's experiment.

The theorem gives each of T m inner steps, which draw one of n records, noise of variance

.. math:: \sigma^2 = c\, G^2\, T m \ln(1/\delta) / (n \varepsilon)^2

on a gradient of norm at most G, for :math:`\varepsilon \le c_1 T m / n^2`. The constants c and :math:`c_1` are not stated. Here
the steps are Poisson-subsampled Gaussian releases of one gradient each, at rate 1/n. That is kind to the paper, where a step
releases a difference of two gradients and the mean of all of them, too.
"""

import math
from typing import Any

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr
from scipy.stats import binom

from benchmarks.writing import row
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget

__all__ = ["claims", "claims_table"]

N_SAMPLES, N_EPOCHS, N_INNER = 200_000, 15, 5_000  # of the paper's experiment
EPSILONS, DELTA, ADJACENCY = (0.2, 0.5, 1.0), 1e-3, "replace_one"
CONSTANTS = (1.0, 10.0, 100.0, 1000.0)
LARGE = 5.0  # least epsilon at which the lower bound is printed
N_STEPS, RATE = N_EPOCHS * N_INNER, 1 / N_SAMPLES


def claims() -> list[dict[str, Any]]:
    """Return the epsilon that holds for each claimed epsilon.

    Returns
    -------
    list of dict
        Epsilon that is claimed; noise multiplier with the constant 1; constants, epsilon that holds with each, and below which
        none does; the constant with which the claim would hold.
    """
    found = []
    for epsilon in EPSILONS:
        noise = [multiplier(epsilon, constant) for constant in CONSTANTS]
        holds = [composition(each).epsilon(1.0, Budget(epsilon, DELTA, ADJACENCY)) for each in noise]
        enough = (composition(1.0).calibrate(Budget(epsilon, DELTA, ADJACENCY)) / multiplier(epsilon, 1.0)) ** 2
        about = {"claimed": epsilon, "multiplier": multiplier(epsilon, 1.0), "constants": list(CONSTANTS), "enough": enough}
        found.append(about | {"holds": holds, "least": [least_epsilon(each) for each in noise]})
    return found


def multiplier(epsilon: float, constant: float) -> float:
    """Return the noise of the theorem over the largest norm of a gradient.

    Parameters
    ----------
    epsilon : float
        That is claimed.
    constant : float
        The constant c.

    Returns
    -------
    float
        Standard deviation over clip norm.
    """
    return math.sqrt(constant * N_STEPS * math.log(1 / DELTA)) / (N_SAMPLES * epsilon)


def composition(noise_multiplier: float) -> Composition:
    """All inner steps."""
    return Composition(ADJACENCY, ((N_STEPS, RATE, noise_multiplier),), (), 0.0)


def least_epsilon(noise_multiplier: float) -> float:
    """Return a lower bound of epsilon from the probabilities of one event.

    The record's gradient has the norm G and one direction, the neighbour's has the opposite one. The event is that the answers of
    k steps or more exceed a threshold in that direction. Its probability is P on the one table; on the other it is at most that
    under pure noise, Q. Where epsilon holds, P is at most delta + exp(epsilon) Q.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over clip norm.

    Returns
    -------
    float
        The best over a grid of thresholds, and k.
    """
    shift = 1 / noise_multiplier
    thresholds, k = np.meshgrid(np.linspace(0.0, shift + 10, 4001), np.arange(1, 9))
    chance = (1 - RATE) * ndtr(-thresholds) + RATE * ndtr(shift - thresholds)
    told = binom.sf(k - 1, N_STEPS, chance) - DELTA
    sets = gammaln(N_STEPS + 1) - gammaln(k + 1) - gammaln(N_STEPS - k + 1)
    noise = np.minimum(0.0, sets + k * log_ndtr(-thresholds))  # union bound over the sets of k steps
    return float(max(0.0, np.max(np.log(told[told > 0]) - noise[told > 0], initial=0.0)))


def claims_table(found: list[dict[str, Any]]) -> str:
    """Return the claims as Markdown.

    Parameters
    ----------
    found : list of dict
        As `claims` returned them.

    Returns
    -------
    str
        A line per claim.
    """
    drawn = -math.expm1(N_STEPS * math.log1p(-RATE))
    about = (
        f"Theorem 4.1 at the paper's lengths (n = {N_SAMPLES}, T = {N_EPOCHS}, m = {N_INNER}, delta {DELTA:g}): epsilon as\n"
        f"claimed, and epsilon that holds at the same delta, {ADJACENCY}, by exact accounting, for some values of the\n"
        f"constant c that the theorem leaves open. A record is drawn with probability {drawn:.2f}. The last column is the\n"
        "least c with which the claim holds."
    )
    heads = ["claimed", "noise multiplier, c = 1", *(f"holds, c = {constant:g}" for constant in CONSTANTS), "c that is enough"]
    lines = [about, "", row(heads), row(["---"] * len(heads))]
    for claim in found:
        cells = [f"{value:.2g}" if value < 100 else f"{value:.0f}" for value in claim["holds"]]
        lines.append(row([f"{claim['claimed']:g}", f"{claim['multiplier']:.2g}", *cells, f"{claim['enough']:.0f}"]))
    pairs = [pair for claim in found for pair in zip(claim["least"], claim["holds"], strict=True) if pair[1] > LARGE]
    if pairs:
        share = min(least / holds for least, holds in pairs)
        lines += [
            "",
            f"Of those above {LARGE:g}, no epsilon below {share:.0%} of the one that is printed holds: one event tells.",
        ]
    return "\n".join(lines)
