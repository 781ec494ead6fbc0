"""Define fits of the largest mean loss of a group: their public facts and their saddle problem."""

from dataclasses import dataclass

import numpy as np

from skdp.minimax import GroupDROSaddle, SaddleProblem
from skdp.privacy.schedule import Release
from skdp.scorers import LinearScorer
from skdp.solvers._base import Ask
from skdp.solvers._standardization import mean_noise, moments, moments_release, standard
from skdp.solvers.minimax._problem import MinimaxProblem

# Share of the preparation's squared Gaussian-DP parameter for the moments. A choice, as for the area under the ROC curve, where
# the class frequencies get the rest; here the rest goes to the steps.
MOMENTS_PART = 0.8
LONGEST_STEP = 2.0  # largest step on standardised features, before the penalty shortens it; a choice
STABLE = 4.0  # one over the smoothness of the logistic loss: a step is stable up to this divided by the largest squared row norm


@dataclass(frozen=True)
class GroupDROProblem(MinimaxProblem):
    """Hold the public facts of a fit of the largest mean loss of a group.

    Parameters
    ----------
    group_sizes : tuple of int, default=()
        Number of records in each group; they add up to ``n_samples``.
    """

    group_sizes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the released model: coefficients, with that of the intercept last."""
        return self.n_features + bool(self.intercept_scaling), 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of primal variables (coefficients and intercept) and of dual variables (groups)."""
        return self.n_features + 1, len(self.group_sizes)

    @property
    def batch_size(self) -> float | None:
        """Default of the expected number of records in a sample: all."""
        return None

    @property
    def mean_weight(self) -> float:
        """Mean weight of a record in the gradients, at least: the share of the smallest group."""
        return min(self.group_sizes) / self.n_samples

    @property
    def whose(self) -> str:
        """Whose mean gradient the report compares the noise with: that of the smallest group."""
        return f" of the smallest group ({min(self.group_sizes)} records)" if len(self.group_sizes) > 1 else ""

    @property
    def advice(self) -> str:
        """Advice for the report if the noise is large."""
        return "noise drowns the signal: take more records of the smallest group, fewer features or a larger epsilon"

    def clip_norms(self, standardize: bool | None) -> tuple[float | None, float | None]:
        """Return the default clip norms of one record's gradients; None if earlier releases set one.

        Parameters
        ----------
        standardize : bool or None
            As for `preparation`.

        Returns
        -------
        primal : None
            It depends on the weights of the groups.
        dual : float
            Known in advance.
        """
        return None, GroupDROSaddle.dual_clip_norm

    def preparation(self, share: float, standardize: bool | None) -> tuple[tuple[int, Release], ...]:
        """Return the releases before the steps: moments for standardising.

        Parameters
        ----------
        share : float
            Share of the squared Gaussian-DP parameter, in (0, 1): four fifths of it are for the moments, the rest goes to the
            steps.
        standardize : bool or None
            Whether features are centred and scaled; None means yes.

        Returns
        -------
        tuple of (int, Release)
            Entries of a schedule.
        """
        if not _standardizes(standardize):
            return ()
        return ((1, moments_release(self, (MOMENTS_PART * share) ** -0.5)),)

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
            The problem, with linear scores.
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
        """Return the model for rows in the units of X.

        Parameters
        ----------
        saddle : SaddleProblem
            As returned by `prepared`.
        primal : ndarray of shape (n_primal,)
            Parameters of the scorer, intercept.
        dual : ndarray of shape (n_dual,)
            Not used.

        Returns
        -------
        ndarray of shape ``shape``
            Coefficients, with that of the intercept last.
        """
        if not isinstance(saddle, GroupDROSaddle):
            raise TypeError(f"saddle={saddle.name!r}; expected the saddle problem of groups.")
        released = saddle.scorer.for_rows(primal[:-1], shift=float(primal[-1]))
        if self.intercept_scaling:
            released[-1] /= self.intercept_scaling
        return released[: self.shape[0], None]

    def _stable(self, step: float) -> float:
        """Return a step that is stable with the penalty, from one that is stable without it."""
        return step / (1 + self.alpha * step)


def _standardizes(standardize: bool | None) -> bool:
    return standardize is None or bool(standardize)
