"""Public facts of a fit to the largest mean loss of a group, and its saddle problem."""

from dataclasses import dataclass

import numpy as np

from skdp.minimax import GroupDROSaddle, SaddleProblem
from skdp.privacy.schedule import Release
from skdp.scorers import LinearScorer
from skdp.solvers._base import Ask
from skdp.solvers._standardization import mean_noise, moments, moments_release, standard
from skdp.solvers.minimax._problem import MinimaxProblem

__all__ = ["GroupDROProblem"]

MOMENTS_PART = 0.8  # of the preparation's share, as where class frequencies have the rest
LONGEST_STEP = 2.0  # on standardised features
STABLE = 4.0  # step over the largest squared norm of a row: one over the smoothness of the logistic loss


@dataclass(frozen=True)
class GroupDROProblem(MinimaxProblem):
    """Public facts of a fit to the largest mean loss of a group.

    Parameters
    ----------
    group_sizes : tuple of int, default=()
        Number of records of every group; they add up to ``n_samples``.
    """

    group_sizes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the released model: coefficients, then the intercept's."""
        return self.n_features + bool(self.intercept_scaling), 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of primal and of dual variables: coefficients and intercept; groups."""
        return self.n_features + 1, len(self.group_sizes)

    @property
    def batch_size(self) -> float | None:
        """Expected number of records in a sample for one that is left out: all."""
        return None

    @property
    def mean_weight(self) -> float:
        """Weight of a record in the gradients, on average and at least: the share of the smallest group."""
        return min(self.group_sizes) / self.n_samples

    @property
    def whose(self) -> str:
        """Whose mean gradient the noise is compared with: that of the smallest group."""
        return f" of the smallest group ({min(self.group_sizes)} records)" if len(self.group_sizes) > 1 else ""

    @property
    def advice(self) -> str:
        """What to do about much noise, for the report."""
        return "noise drowns the signal: take more records of the smallest group, fewer features or a larger epsilon"

    def clip_norms(self, standardize: bool | None) -> tuple[float | None, float | None]:
        """Return the usual bounds on the norms of one record's gradients, None where earlier releases will set one.

        Parameters
        ----------
        standardize : bool or None
            As for the preparation.

        Returns
        -------
        primal : None
            It follows the weights of the groups.
        dual : float
            Known.
        """
        return None, GroupDROSaddle.dual_clip_norm

    def preparation(self, share: float, standardize: bool | None) -> tuple[tuple[int, Release], ...]:
        """Return the releases before the steps: moments for standardising.

        Parameters
        ----------
        share : float
            Share of the squared Gaussian-DP parameter, in (0, 1), four fifths of which are for the moments; the rest is left to
            the steps.
        standardize : bool or None
            Whether features are centred and scaled; None does so.

        Returns
        -------
        tuple of (int, Release)
            Entries of a schedule.
        """
        if not _standardizes(standardize):
            return ()
        return ((1, moments_release(self, (MOMENTS_PART * share) ** -0.5)),)

    def prepared(self, ask: Ask, share: float, standardize: bool | None) -> SaddleProblem:
        """Ask the releases of the preparation, and return the problem that follows.

        Parameters
        ----------
        ask : callable
            Answers a query with noise.
        share : float
            As for the preparation.
        standardize : bool or None
            As for the preparation.

        Returns
        -------
        SaddleProblem
            Of linear scores.
        """
        if not _standardizes(standardize):
            longest = 1 + self.data_norm**2
            scorer = LinearScorer(self.n_features)
            return GroupDROSaddle(scorer, self.group_sizes, usual=longest, longest_step=self._stable(STABLE / longest))
        query = moments(self)
        found = standard(self, ask(query), mean_noise(self, query, MOMENTS_PART * share))
        scorer = LinearScorer(self.n_features, found.geometry.centre, found.geometry.scale)
        usual = 1 + float(found.variances.sum())
        return GroupDROSaddle(scorer, self.group_sizes, usual=usual, longest_step=self._stable(LONGEST_STEP))

    def model(self, saddle: SaddleProblem, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the released model, for rows as they are.

        Parameters
        ----------
        saddle : SaddleProblem
            As prepared.
        primal : ndarray of shape (n_primal,)
            Parameters of the scorer, intercept.
        dual : ndarray of shape (n_dual,)
            Not used.

        Returns
        -------
        ndarray of shape ``shape``
            Coefficients and the intercept's.
        """
        if not isinstance(saddle, GroupDROSaddle):
            raise TypeError(f"saddle={saddle.name!r}; expected the saddle problem of groups.")
        released = saddle.scorer.for_rows(primal[:-1], shift=float(primal[-1]))
        if self.intercept_scaling:
            released[-1] /= self.intercept_scaling
        return released[: self.shape[0], None]

    def _stable(self, step: float) -> float:
        """A step that is stable without the penalty, made so with it."""
        return step / (1 + self.alpha * step)


def _standardizes(standardize: bool | None) -> bool:
    return standardize is None or bool(standardize)
