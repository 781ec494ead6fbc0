"""Define fits of the area under the ROC curve: their public facts and their saddle problem."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.minimax import AUCSaddle, SaddleProblem
from skdp.privacy.queries import LabelSum
from skdp.privacy.schedule import Gaussian, Release
from skdp.scorers import LinearScorer, MLPScorer, Scorer
from skdp.solvers._base import Ask
from skdp.solvers._standardization import mean_noise, moments, moments_release, standard
from skdp.solvers.minimax._problem import MinimaxProblem

# Share of the preparation's squared Gaussian-DP parameter that the positive rate gets; the moments get the rest. A choice.
LABELS_PART = 0.2
LEAST_USUAL = 0.1  # lower limit of the usual squared norm of a standardised row; a choice
# ``clip`` of `AUCSaddle` for rows that are not standardised: far from their mean, they have longer gradients than their norm
# suggests. A choice.
RAW_CLIP = math.sqrt(2.0)
LONGEST_STEP = 0.3  # largest step for rows that are not standardised, if their squared norm is at most 1; a choice
BATCH_SIZE = 2048.0  # expected number of records in a sample for networks, which take many steps; a choice


@dataclass(frozen=True)
class AUCProblem(MinimaxProblem):
    """Hold the public facts of a fit of the area under the ROC curve, which only the order of the raw predictions determines.

    Its ``loss`` is the surrogate for solvers that do not solve the saddle problem.

    Parameters
    ----------
    positive_rate : float or None, default=None
        Share of the second of two classes, in (0, 1), if it is public.
    class_balance : float, default=0.0
        Power, in [0, 1], of the ratio of the class frequencies, which reduces the weight of the larger class; 1 gives both the
        same weight.
    hidden_layer_sizes : tuple of int, default=()
        Number of units of each hidden layer of a network; empty for a linear scorer.
    """

    positive_rate: float | None = None
    class_balance: float = 0.0
    hidden_layer_sizes: tuple[int, ...] = ()

    @property
    def linear(self) -> bool:
        """Whether scores are linear in the features."""
        return not self.hidden_layer_sizes

    @property
    def offers(self) -> frozenset[str]:
        """Properties of the problem that solvers may need, by their names in ``NEEDS``."""
        surrogate = super(MinimaxProblem, self).offers - {"pointwise"} | {"ranking"}
        return surrogate | super().offers if self.linear else super().offers

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the released model: linear coefficients with the intercept, or a column of a network's parameters."""
        if self.linear:
            return self.n_features + bool(self.intercept_scaling), 1
        return self.scorer().n_parameters, 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of primal variables (parameters, a, b) and of dual variables (alpha)."""
        return self.scorer().n_parameters + 2, 1

    @property
    def batch_size(self) -> float | None:
        """Default of the expected number of records in a sample: all for linear scores, else 2048."""
        return None if self.linear else BATCH_SIZE

    @property
    def advice(self) -> str:
        """Advice for the report if the noise is large."""
        if self.linear:
            return super().advice
        return "a network may rank like chance: take more records, narrower layers or a larger epsilon"

    def scorer(self, centre: np.ndarray | None = None, scale: np.ndarray | None = None) -> Scorer:
        """Return the scorer.

        Parameters
        ----------
        centre, scale : ndarray of shape (n_features,) or None, default=None
            The scorer sees ``scale * (x - centre)``.

        Returns
        -------
        Scorer
            Linear, or a network.
        """
        if self.linear:
            return LinearScorer(self.n_features, centre, scale)
        return MLPScorer(self.n_features, self.hidden_layer_sizes, centre, scale)

    def clip_norms(self, standardize: bool | None) -> tuple[float | None, float | None]:
        """Return the default clip norms of one record's gradients; None if earlier releases set one.

        Parameters
        ----------
        standardize : bool or None
            As for `preparation`.

        Returns
        -------
        primal : float or None
            None for linear scores of standardised features.
        dual : float
            Known in advance.
        """
        saddle, moved = self._of_rows(0.5), self._standardizes(standardize)  # whatever the rate
        return None if self.linear and moved else saddle.primal_clip_norm, saddle.dual_clip_norm

    def preparation(self, share: float, standardize: bool | None) -> tuple[tuple[int, Release], ...]:
        """Return the releases before the steps: the positive rate unless it is public, and moments for standardising.

        Parameters
        ----------
        share : float
            Share of the squared Gaussian-DP parameter, in (0, 1): a fifth of it is for the rate, the rest for the moments. If one
            of them is not released, its part goes to the steps.
        standardize : bool or None
            Whether features are centred and scaled; None means yes for a linear scorer and no for a network.

        Returns
        -------
        tuple of (int, Release)
            Entries of a schedule.
        """
        labels, features = self._shares(share, standardize)
        entries = [(1, Release(LabelSum, Gaussian(labels**-0.5), LabelSum.clip_norm, LabelSum.size))] if labels else []
        return (*entries, (1, moments_release(self, features**-0.5))) if features else tuple(entries)

    def prepared(self, ask: Ask, share: float, standardize: bool | None) -> SaddleProblem:
        """Ask for the releases of `preparation`, and return the resulting problem.

        Parameters
        ----------
        ask : callable
            Answers a query with noise.
        share : float
            As for `preparation`.
        standardize : bool or None
            As for `preparation`.

        Returns
        -------
        SaddleProblem
            The problem; its positive rate, if released, is at least its noise away from 0 and 1.
        """
        labels, features = self._shares(share, standardize)
        rate = self._released_rate(ask, labels) if self.positive_rate is None else self.positive_rate
        if not features:
            return self._of_rows(rate)
        query = moments(self)
        found = standard(self, ask(query), mean_noise(self, query, features))
        scorer = self.scorer(found.geometry.centre, found.geometry.scale)
        return AUCSaddle(scorer, rate, usual=max(float(found.variances.sum()), LEAST_USUAL))

    def model(self, saddle: SaddleProblem, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the model for rows in the units of X, shifted so that a score of ``(a + b) / 2`` becomes 0.

        Parameters
        ----------
        saddle : SaddleProblem
            As returned by `prepared`.
        primal : ndarray of shape (n_primal,)
            Parameters of the scorer, a, b.
        dual : ndarray of shape (1,)
            Not used.

        Returns
        -------
        ndarray of shape ``shape``
            Coefficients, with that of the intercept last, or the parameters of a network.
        """
        if not isinstance(saddle, AUCSaddle):
            raise TypeError(f"saddle={saddle.name!r}; expected the saddle problem of the area under the ROC curve.")
        released = saddle.scorer.for_rows(primal[:-2], shift=-float(primal[-2] + primal[-1]) / 2)
        if self.linear and self.intercept_scaling:
            released[-1] /= self.intercept_scaling
        return released[: self.shape[0], None]

    def _shares(self, share: float, standardize: bool | None) -> tuple[float, float]:
        """Return the shares of the positive rate and of the moments; 0 if it is not released."""
        labels = LABELS_PART * share if self.positive_rate is None else 0.0
        return labels, (1 - LABELS_PART) * share if self._standardizes(standardize) else 0.0

    def _standardizes(self, standardize: bool | None) -> bool:
        return self.linear if standardize is None else bool(standardize)

    def _of_rows(self, rate: float) -> AUCSaddle:
        """Return the problem for features that are not standardised."""
        if self.linear:
            usual = self.data_norm**2
            return AUCSaddle(self.scorer(), rate, usual=usual, clip=RAW_CLIP, longest_step=LONGEST_STEP / max(1.0, usual))
        unit = math.sqrt(self.n_features) / self.data_norm  # the longest rows get entries of size 1, as He's start wants
        return AUCSaddle(self.scorer(scale=None if unit == 1 else np.full(self.n_features, unit)), rate)

    def _released_rate(self, ask: Ask, share: float) -> float:
        noise = mean_noise(self, LabelSum(), share) / 2
        least = min(max(1 / self.n_samples, noise), 0.5)
        return float(np.clip((1 + float(ask(LabelSum())[0]) / self.n_samples) / 2, least, 1 - least))
