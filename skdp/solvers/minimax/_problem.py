"""Define minimax fits: their public facts, the releases before the steps, and the resulting saddle problem."""

import math
from dataclasses import dataclass
from typing import NoReturn, cast

import numpy as np

from skdp.minimax import SaddleProblem
from skdp.privacy.schedule import Release
from skdp.solvers._base import Ask, Problem


@dataclass(frozen=True)
class NoLoss:
    """Placeholder for the pointwise loss of an objective without one, such as a saddle problem.

    Parameters
    ----------
    name : str
        Name of the objective.
    """

    name: str
    lipschitz: float = math.inf
    smoothness: float = math.inf
    n_outputs: int = 1
    targets: str = "numbers"
    convex: bool = False
    bounded: bool = False

    def value(self, raw: np.ndarray, targets: np.ndarray) -> NoReturn:
        """Raise TypeError: there is no loss of a raw prediction."""
        raise TypeError(f"The objective {self.name!r} has no pointwise loss.")

    def derivative(self, raw: np.ndarray, targets: np.ndarray) -> NoReturn:
        """Raise TypeError: there is no loss of a raw prediction."""
        raise TypeError(f"The objective {self.name!r} has no pointwise loss.")


@dataclass(frozen=True)
class MinimaxProblem(Problem):
    """Hold the public facts of a fit of a saddle problem.

    Parameters
    ----------
    saddle : SaddleProblem or None, default=None
        The problem; None in derived classes that build it from releases.
    """

    saddle: SaddleProblem | None = None

    @property
    def offers(self) -> frozenset[str]:
        """Properties of the problem that solvers may need, by their names in ``NEEDS``."""
        return frozenset({"saddle"})

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of primal and number of dual variables."""
        saddle = cast(SaddleProblem, self.saddle)
        return saddle.n_primal, saddle.n_dual

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the released model: one column of primal variables."""
        return cast(SaddleProblem, self.saddle).n_primal, 1

    @property
    def batch_size(self) -> float | None:
        """Default of the expected number of records in a sample; None takes all records."""
        return cast(SaddleProblem, self.saddle).batch_size

    @property
    def mean_weight(self) -> float:
        """Mean weight of a record in the gradients, if it is public and not 1."""
        return 1.0

    @property
    def whose(self) -> str:
        """Whose mean gradient the report compares the noise with; empty for that of all records."""
        return ""

    @property
    def advice(self) -> str:
        """Advice for the report if the noise is large."""
        return "noise drowns the signal: take more records, fewer variables or a larger epsilon"

    def clip_norms(self, standardize: bool | None) -> tuple[float | None, float | None]:
        """Return the default clip norms of one record's gradients; None if earlier releases set one.

        Parameters
        ----------
        standardize : bool or None
            Whether features are centred and scaled; None leaves it to the problem.

        Returns
        -------
        primal : float or None
            Clip norm of the problem for the primal gradient.
        dual : float or None
            Clip norm of the problem for the dual gradient.
        """
        saddle = cast(SaddleProblem, self.saddle)
        moves = type(saddle).primal_reach is not SaddleProblem.primal_reach
        return None if moves else float(saddle.primal_clip_norm), float(saddle.dual_clip_norm)

    def preparation(self, share: float, standardize: bool | None) -> tuple[tuple[int, Release], ...]:
        """Return the releases before the steps; none for a given problem.

        Parameters
        ----------
        share : float
            Largest share of the squared Gaussian-DP parameter for these releases, in (0, 1); the steps get the rest.
        standardize : bool or None
            Whether features are centred and scaled; None leaves it to the problem.

        Returns
        -------
        tuple of (int, Release)
            Entries of a schedule.
        """
        return ()

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
            The problem.
        """
        return cast(SaddleProblem, self.saddle)

    def model(self, saddle: SaddleProblem, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the released model.

        Parameters
        ----------
        saddle : SaddleProblem
            As returned by `prepared`.
        primal : ndarray of shape (n_primal,)
            Primal variables after the steps.
        dual : ndarray of shape (n_dual,)
            Dual variables after the steps.

        Returns
        -------
        ndarray of shape ``shape``
            The primal variables.
        """
        return primal[:, None]
