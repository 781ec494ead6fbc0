"""Defines the largest mean loss of a group of records as a saddle problem."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit

from skdp._projections import onto_simplex
from skdp.minimax._saddle_problem import SaddleProblem
from skdp.privacy.data.gradient_factors import Factors
from skdp.privacy.data.kernels import Batch
from skdp.scorers import Scored, Scorer

# Logistic loss of the score 0.
CONSTANT_LOSS = math.log(2.0)
# Dual clip norm: largest excess of a loss over that of the score 0, which a label with probability 0.07 has. A choice; a larger
# value clips fewer losses and adds noise to all.
LARGEST_LOSS = 2.0
# Largest step of the descent, for rows of usual norm, and of the ascent. Choices.
LONGEST_STEP, DUAL_STEP = 2.0, 0.3
# Noise that a score, and the weights of the groups, may gather over all steps. Choices; larger values mean longer steps.
NOISE, DUAL_NOISE = 0.6, 0.2


@dataclass(frozen=True)
class _GroupBatch(Batch):
    """Batch for `GroupDROSaddle.at`: rows as the scorer sees them, labels as signs, groups as weights."""

    signs: np.ndarray | None = None
    weights: np.ndarray | None = None
    members: Any = None
    ones: np.ndarray | None = None


@dataclass(frozen=True)
class _GroupPoint:
    """Gradients of a batch at one point."""

    scored: Scored
    margins: np.ndarray
    batch: _GroupBatch
    dual_variables: np.ndarray

    def primal(self) -> Sequence[Factors]:
        read = cast(Any, self.batch)
        slopes = -read.weights * self.dual_variables[read.groups] * read.signs * expit(-self.margins)
        return (*self.scored.gradients(slopes), Factors(slopes[:, None], read.ones))

    def dual(self) -> Sequence[Factors]:
        read = cast(Any, self.batch)
        return (Factors(np.where(read.weights > 0, _excess(self.margins), np.nan)[:, None], read.members),)


class GroupDROSaddle(SaddleProblem):
    r"""The largest mean logistic loss of a group, as a saddle problem [1]_ over the weights v of G groups.

    .. math:: \min_w \max_{v \ge 0, \sum_g v_g = 1}
       \sum_g v_g \frac{1}{n_g} \sum_{i \in g} \bigl(\ell(s_w(x_i), y_i) - \log 2\bigr)

    Its maximum over v is the largest of the groups' mean losses. Subtracting log 2, the loss of the score 0, changes no solution,
    because the weights add up to 1, and makes the summed losses smaller. As a mean over the records it is that of
    :math:`(n_{min} / n_g)\, v_g (\ell - \log 2)` divided by :math:`n_{min} / n`, so no record has a larger weight than those of
    the smallest group. In the dual gradients the weights come after the sum: losses of all groups have the same clip norm, and
    the means of large groups have less noise. The primal variables are the scorer's parameters, then an intercept.

    Parameters
    ----------
    scorer : Scorer
        Scorer that is fitted.
    group_sizes : sequence of int
        Number of records of every group, at least 1; public.
    usual : float or None, default=None
        Usual squared norm Q of a row as a linear scorer sees it, with the intercept's 1; from public facts or earlier releases.
        It sets the primal clip norm, :math:`\sqrt Q`, and the step. None takes 1.
    longest_step : float, default=2.0
        Largest step of the descent.

    Notes
    -----
    Labels are 0 and 1, and groups are numbered from 0 on. `skdp.DPGroupDROClassifier` passes them separately. The targets of
    `skdp.DPMinimax` contain both: ``y + 2 * group``. A record with another label or group is left out.

    **Privacy.** Pure functions of single records, called only inside queries; the scores of a record do not depend on other
    records. The sizes of the groups are read without noise: they are public, and so is the group of each record. Q is public or
    released.

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang, "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020.
    """

    name = "largest mean logistic loss of a group"
    dual_clip_norm = LARGEST_LOSS

    def __init__(
        self, scorer: Scorer, group_sizes: Sequence[int], *, usual: float | None = None, longest_step: float = LONGEST_STEP
    ) -> None:
        sizes = np.array(group_sizes, dtype=np.float64)
        self.scorer, self.group_sizes, self.longest_step = scorer, tuple(int(size) for size in group_sizes), longest_step
        self.n_primal, self.n_dual = scorer.n_parameters + 1, sizes.size
        self.divisor = float(sizes.min() / sizes.sum())
        self.usual = 1.0 if usual is None else usual
        self.primal_clip_norm = self.difference_slope = math.sqrt(self.usual)
        self._shares, self._weights = sizes / sizes.sum(), sizes.min() / sizes
        self.dual_weights = self._weights

    def read(self, batch: Batch) -> Batch:
        """Return the batch with rows as the scorer sees them, signs, groups and weights.

        Without ``groups``, the targets are ``y + 2 * group``. The weight of a record with another label or group is NaN.
        """
        groups, labels = np.divmod(batch.targets, 2) if batch.groups is None else (batch.groups, batch.targets)
        known = (groups >= 0) & (groups < self.n_dual) & ((labels == 0) | (labels == 1))
        groups, n = np.where(known, groups, 0).astype(np.intp), len(labels)
        weights, signs = np.where(known, self._weights[groups], np.nan), np.where(labels == 1, 1.0, -1.0)
        members = sparse.csr_array((np.ones(n), groups, np.arange(n + 1)), shape=(n, self.n_dual))
        rows, ones = self.scorer.read(batch.rows), np.ones((n, 1))
        return _GroupBatch(rows, batch.targets, batch.present, signs, weights, members, ones, groups=groups)

    def at(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> _GroupPoint:
        """Return the gradients at a point: one primal part per layer of the scorer and one for the intercept; one dual part."""
        scored = self.scorer.at(batch.rows, primal[:-1])
        return _GroupPoint(scored, cast(Any, batch).signs * (scored.scores + primal[-1]), cast(_GroupBatch, batch), dual)

    def value(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the objective of each record, shape (m,), which `check_saddle` compares with the gradients."""
        read = cast(Any, batch)
        return np.asarray(read.weights * dual[read.groups] * _excess(self.at(batch, primal, dual).margins))

    def start(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the scorer's start with intercept 0, and the groups' shares of the records, which give the mean loss of all."""
        return np.append(self.scorer.start(rng), 0.0), self._shares.copy()

    def project(self, primal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the primal variables unchanged, and the nearest weights in the simplex."""
        return primal, onto_simplex(np.nan_to_num(dual), 1.0)

    def primal_reach(self, dual: np.ndarray) -> float:
        """Return the largest weight of a record, ``n_min / n_g`` times that of its group, between ``divisor`` and 1."""
        return float((self._weights * dual).max())

    def penalized(self, primal: np.ndarray) -> np.ndarray:
        """Return the scorer's parameters, and 0 for the intercept."""
        return np.append(primal[:-1], 0.0)

    def step_sizes(self, signal: float, n_steps: int) -> tuple[float, float]:
        """Return steps for which noise stays small over all of them: at most ``longest_step``, and at most 0.3."""
        clear, spread = self.divisor * signal / n_steps, self.dual_clip_norm * float(np.linalg.norm(self._weights))
        return min(self.longest_step, NOISE * clear / self.usual), min(DUAL_STEP, DUAL_NOISE * clear / spread)


def _excess(margins: np.ndarray) -> np.ndarray:
    """Loss minus the loss of the score 0."""
    return -log_expit(margins) - CONSTANT_LOSS
