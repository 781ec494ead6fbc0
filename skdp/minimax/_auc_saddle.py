"""Defines the area under the ROC curve as a saddle problem."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from skdp.minimax._saddle_problem import SaddleProblem
from skdp.privacy.data.gradient_factors import Factors
from skdp.privacy.data.kernels import Batch
from skdp.scorers import LinearScorer, Scored, Scorer

# The choices below were made on mammography, spambase, bank, ijcnn1, adult and on groups of digits (docs/defaults.md, "Saddle
# problems").

# Bounds on the absolute value of alpha, and of a and b, in units of the scores: the optimum has differences of mean scores
# below 1. Choices; larger bounds let noise carry the variables further.
LARGEST_DUAL, LARGEST_OFFSET = 1.0, 3.0
# Largest step of the descent, and step of the ascent. With a descent step of 1 the iteration oscillates; the ascent has
# curvature 1.
LONGEST_STEP, DUAL_STEP = 0.3, 0.3
# Noise that a linear score may gather over all steps, and that for more than WIDE features. Choices; a larger value means longer
# steps.
NOISE, NOISE_WIDE, WIDE = 0.6, 0.3, 300
# Networks: clip norm, and clip norm of a difference per distance. Clip norms from 3 to 6 had an AUC within .002 of each other; 16
# lost .02.
NETWORK_CLIP, NETWORK_SLOPE = 3.0, 1.5


@dataclass(frozen=True)
class _AUCBatch(Batch):
    """Batch for `AUCSaddle.at`: rows as the scorer sees them, and the arrays that both points of a difference share."""

    positive: np.ndarray | None = None
    weights: np.ndarray | None = None
    ones: np.ndarray | None = None


@dataclass(frozen=True)
class _AUCPoint:
    """Gradients of a batch at one point."""

    scored: Scored
    batch: _AUCBatch
    offsets: tuple[float, float]
    alpha: float

    def primal(self) -> Sequence[Factors]:
        positive, weights = cast(np.ndarray, self.batch.positive), cast(np.ndarray, self.batch.weights)
        distances = 2 * weights * (self.scored.scores - np.where(positive, *self.offsets))
        slope = 2 * weights * (1 + self.alpha)
        sides = np.stack([np.where(positive, -distances, 0.0), np.where(positive, 0.0, -distances)], axis=1)
        return (*self.scored.gradients(distances - np.where(positive, slope, -slope)), Factors(sides, self.batch.ones))

    def dual(self) -> Sequence[Factors]:
        positive, weights = cast(np.ndarray, self.batch.positive), cast(np.ndarray, self.batch.weights)
        slopes = 2 * weights * self.scored.scores
        return (Factors(np.where(positive, -slopes, slopes)[:, None], self.batch.ones),)


class AUCSaddle(SaddleProblem):
    r"""The least-squares surrogate of the area under the ROC curve, as a saddle problem [1]_.

    With scores s, the share p of positive records, :math:`u_+ = 1` and :math:`u_- = p / (1 - p)` for :math:`p \le 1/2`,
    :math:`u_+ = (1 - p) / p` and :math:`u_- = 1` beyond, it is the mean over the records of

    .. math::

        u_+ [(s - a)^2 - 2 (1 + \alpha) s] \text{ for positive, }
        u_- [(s - b)^2 + 2 (1 + \alpha) s] \text{ for negative ones,}

    less :math:`\min(p, 1 - p)\, \alpha^2`: the function of [1]_ over max(p, 1 - p), so that no record's weight is above 1. Its
    primal variables are the scorer's parameters, then a and b; its dual variable is :math:`\alpha`. Its minimum over a and b and
    maximum over :math:`\alpha` is, except for a factor and a constant, the sum of the variances of the scores within the two
    classes, plus the squared difference of 1 from the difference of their means.

    Parameters
    ----------
    scorer : Scorer
        Scorer that is fitted.
    positive_rate : float
        p, in (0, 1): public, or an earlier release clipped to (0, 1).
    usual : float or None, default=None
        Usual squared norm Q of a row as a linear scorer sees it, from public facts or earlier releases. It sets the primal clip
        norm, :math:`\sqrt{1 + Q}`, and the step; None takes 1.
    clip : float, default=1.0
        Factor of the primal clip norm, which is 3 for a network.
    longest_step : float, default=0.3
        Largest step of the descent.
    noise : float or None, default=None
        Noise that a score may gather over all steps. Where noise sets the step of the descent, the step is this times the
        divisor and the signal, over the number of steps and Q (the clip norm for a network). None takes 0.6, 0.3 beyond 300
        features, and :math:`\sqrt{2 / d}` for a network of d inputs: then the noise that a weight gathers is as large as its
        start.

    Notes
    -----
    **Privacy.** Pure functions of single records, called only inside queries; the scores of a record do not depend on other
    records. p and Q are public or released, never read from the labels.

    References
    ----------
    .. [1] Y. Ying, L. Wen, S. Lyu, "Stochastic Online AUC Maximization", NeurIPS 2016, Theorem 1.
    """

    name = "area under the ROC curve, least squares"
    n_dual = 1

    def __init__(
        self,
        scorer: Scorer,
        positive_rate: float,
        *,
        usual: float | None = None,
        clip: float = 1.0,
        longest_step: float = LONGEST_STEP,
        noise: float | None = None,
    ) -> None:
        self.scorer, self.positive_rate = scorer, positive_rate
        self.n_primal = scorer.n_parameters + 2
        self.divisor = 2 * min(positive_rate, 1 - positive_rate)
        self.class_weights = (min(1.0, positive_rate / (1 - positive_rate)), min(1.0, (1 - positive_rate) / positive_rate))
        self.linear = isinstance(scorer, LinearScorer)
        self.usual, self.longest_step = 1.0 if usual is None else usual, longest_step
        self.primal_clip_norm = clip * (math.sqrt(1 + self.usual) if self.linear else NETWORK_CLIP)
        self.dual_clip_norm = 1.0
        self.difference_slope = math.sqrt(self.usual) if self.linear else NETWORK_SLOPE
        usually = (NOISE if scorer.n_features <= WIDE else NOISE_WIDE) if self.linear else math.sqrt(2 / scorer.n_features)
        self.noise = usually if noise is None else noise

    def read(self, batch: Batch) -> Batch:
        """Return the batch with rows as the scorer sees them, weights and signs; targets are 1 for positive records, else 0."""
        positive = batch.targets == 1
        weights, ones = np.where(positive, self.class_weights[1], self.class_weights[0]), np.ones((len(positive), 1))
        return _AUCBatch(self.scorer.read(batch.rows), batch.targets, batch.present, positive, weights, ones)

    def at(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> _AUCPoint:
        """Return the gradients at a point: one primal part per layer of the scorer and one for a and b; one dual part."""
        scored = self.scorer.at(batch.rows, primal[:-2])
        return _AUCPoint(scored, cast(_AUCBatch, batch), (float(primal[-2]), float(primal[-1])), float(dual[0]))

    def value(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the objective of each record without the public part, shape (m,), for `check_saddle`."""
        scores, read = self.scorer.at(batch.rows, primal[:-2]).scores, cast(Any, batch)
        slopes = 2 * (1 + dual[0]) * np.where(read.positive, -scores, scores)
        return np.asarray(read.weights * ((scores - np.where(read.positive, primal[-2], primal[-1])) ** 2 + slopes))

    def start(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the scorer's start, and zeros for a, b and alpha."""
        return np.append(self.scorer.start(rng), [0.0, 0.0]), np.zeros(1)

    def project(self, primal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the variables with a and b clipped to [-3, 3] and alpha to [-1, 1]."""
        inside = primal.copy()
        np.clip(inside[-2:], -LARGEST_OFFSET, LARGEST_OFFSET, out=inside[-2:])
        return inside, np.clip(dual, -LARGEST_DUAL, LARGEST_DUAL)

    def public_gradient(self, primal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return zeros, and ``-alpha``: the gradient of the public part over the divisor 2 min(p, 1 - p)."""
        return np.zeros(self.n_primal), -dual

    def penalized(self, primal: np.ndarray) -> np.ndarray:
        """Return the scorer's parameters, and zeros for a and b."""
        return np.append(primal[:-2], [0.0, 0.0])

    def step_sizes(self, signal: float, n_steps: int) -> tuple[float, float]:
        """Return the step of the descent, at most ``longest_step``, for which noise stays small; and 0.3 for the ascent."""
        reach = self.usual if self.linear else self.primal_clip_norm
        return min(self.longest_step, self.noise * self.divisor * signal / (reach * n_steps)), DUAL_STEP
