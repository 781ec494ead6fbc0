"""Sum derivatives of the log loss in the slope of released scores."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from skdp.privacy.data.kernels import Records, clip_residuals
from skdp.privacy.queries._base import SumQuery

__all__ = ["SlopeDerivatives"]

# Length of a score of trees up to which it counts as it is; a longer one counts as if it had this length. A choice.
REACH = 6.0


@dataclass(frozen=True, eq=False)
class SlopeDerivatives(SumQuery):
    r"""Sum the first and the second derivative of the log loss of ``base + slope * s`` in the slope, over the length of s.

    s is the raw prediction of a record for two classes, or the raw predictions for more classes less their mean. With
    ``u = s / max(||s||, reach)``, the probabilities p of the classes, or of the second of two, and e, which is 1 for the class of
    the record, the answer sums :math:`(e - p)^\top u`, which is a descent, and
    :math:`u^\top (\mathrm{diag}(p) - p p^\top) s / \mathrm{reach}`, how fast it falls with the slope, over the reach.

    Parameters
    ----------
    scores : ndarray of shape (n_coordinates, n_outputs) or float
        Coefficients of the raw predictions of rows; or the weight of all trees, for records with scores. Earlier releases.
    n_outputs : int
        Number of raw predictions: 1 for two classes.
    slope : float
        Where derivatives are taken: public, or an earlier release.
    largest_weight : float, default=1.0
        Largest public weight of a record's loss.
    base : ndarray of shape (n_outputs,) or float, default=0.0
        What is added to the scores whatever the slope. An earlier release.
    reach : float, default=6.0
        Length of s up to which it counts as it is: public, or an earlier release.
    """

    scores: np.ndarray | float
    n_outputs: int
    slope: float
    largest_weight: float = 1.0
    base: np.ndarray | float = 0.0
    reach: float = REACH

    size: ClassVar[int] = 2

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution."""
        return self.largest_weight * math.sqrt(min(self.n_outputs, 2))

    def sensitivity(self, adjacency: str) -> float:
        r"""Return the clip norm c under ``zero_out`` and 2c under ``replace_one``.

        Here c is the largest weight, times :math:`\sqrt 2` for more than two classes.

        Proof. Scores, base, slope and reach are public or earlier releases, so shared records contribute the same and cancel. A
        term is clipped to the norm c, and a null record has none. The clip changes only terms of scores that are longer than the
        reach: weights multiply terms; without them, let r = e - p and :math:`H = \mathrm{diag}(p) - p p^\top`. Where
        :math:`\|s\|` is at most the reach, the squared norm of a term is at most :math:`\|r\|^2 + \|H\|^2`. For two classes, with
        the probability q of the record's class, that is :math:`(1 - q)^2 (1 + q^2) \le 1`. For more, H is positive semidefinite,
        so its norm is at most its trace :math:`t = 1 - \|p\|^2 \le 1`; and :math:`\|r\|^2 = 1 - 2q + \|p\|^2 \le 2 - t`. So it is
        at most :math:`2 - t + t^2 \le 2`. A confident score for a wrong class attains the bound.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: Any) -> np.ndarray:
        """Return the un-noised sums."""
        return np.asarray(rows.score_sums(self.scores, self._terms))

    def _terms(self, raw: np.ndarray, records: Records) -> np.ndarray:
        several = self.n_outputs > 1
        s = raw - raw.mean(axis=1, keepdims=True) if several else raw
        raw = self.base + self.slope * s
        p = softmax(raw, axis=1) if several else expit(raw)
        u = s / np.maximum(np.linalg.norm(s, axis=1, keepdims=True), self.reach)
        label = records.targets[:, None] == (np.arange(self.n_outputs) if several else 1)
        mean = (p * u).sum(axis=1)
        falls = ((p * u * s).sum(axis=1) - mean * (p * s).sum(axis=1)) / self.reach
        terms = np.stack([(label * u).sum(axis=1) - mean, falls], axis=1)
        if records.weights is not None:
            terms *= records.weights[:, None]
        return clip_residuals(terms, np.ones(len(terms)), self.clip_norm)
