"""Public facts of a minimax fit: what is released before the steps, and the saddle problem that follows from it."""

import math
from dataclasses import dataclass
from typing import NoReturn, cast

import numpy as np

from skdp.minimax import SaddleProblem
from skdp.privacy.schedule import Release
from skdp.solvers._base import Ask, Problem

__all__ = ["MinimaxProblem", "NoLoss"]


@dataclass(frozen=True)
class NoLoss:
    """What stands for a pointwise loss where there is none: the objective is a saddle problem.

    Parameters
    ----------
    name : str
        Of the saddle problem.
    """

    name: str
    lipschitz: float = math.inf
    smoothness: float = math.inf
    n_outputs: int = 1
    targets: str = "numbers"
    convex: bool = False
    bounded: bool = False

    def value(self, raw: np.ndarray, targets: np.ndarray) -> NoReturn:
        """Refused: there is no loss of a raw prediction."""
        raise TypeError(f"The saddle problem {self.name!r} has no pointwise loss.")

    def derivative(self, raw: np.ndarray, targets: np.ndarray) -> NoReturn:
        """Refused: there is no loss of a raw prediction."""
        raise TypeError(f"The saddle problem {self.name!r} has no pointwise loss.")


@dataclass(frozen=True)
class MinimaxProblem(Problem):
    """Public facts of a fit to a saddle problem.

    Parameters
    ----------
    saddle : SaddleProblem or None, default=None
        The problem; None where it follows from releases, which derived classes say.
    """

    saddle: SaddleProblem | None = None

    @property
    def offers(self) -> frozenset[str]:
        """What solvers may need, by the names in ``NEEDS``."""
        return frozenset({"saddle"})

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of primal and of dual variables."""
        saddle = cast(SaddleProblem, self.saddle)
        return saddle.n_primal, saddle.n_dual

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the released model: one column of primal variables."""
        return cast(SaddleProblem, self.saddle).n_primal, 1

    @property
    def batch_size(self) -> float | None:
        """Expected number of records in a sample for one that is left out; None takes all."""
        return cast(SaddleProblem, self.saddle).batch_size

    @property
    def mean_weight(self) -> float:
        """Mean weight of a record in the gradients, where that is public and not 1."""
        return 1.0

    @property
    def whose(self) -> str:
        """Whose mean gradient the noise is compared with, for the report, where it is not that of all records."""
        return ""

    @property
    def advice(self) -> str:
        """What to do about much noise, for the report."""
        return "noise drowns the signal: take more records, fewer variables or a larger epsilon"

    def clip_norms(self, standardize: bool | None) -> tuple[float | None, float | None]:
        """Return the usual bounds on the norms of one record's gradients, None where earlier releases will set one.

        Parameters
        ----------
        standardize : bool or None
            Whether features are centred and scaled; None leaves it to the problem.

        Returns
        -------
        primal : float or None
            That of the problem.
        dual : float or None
            The same.
        """
        saddle = cast(SaddleProblem, self.saddle)
        moves = type(saddle).primal_reach is not SaddleProblem.primal_reach
        return None if moves else float(saddle.primal_clip_norm), float(saddle.dual_clip_norm)

    def preparation(self, share: float, standardize: bool | None) -> tuple[tuple[int, Release], ...]:
        """Return the releases before the steps; none for a problem that is known.

        Parameters
        ----------
        share : float
            Share of the squared Gaussian-DP parameter that they may have, in (0, 1); the steps get the rest.
        standardize : bool or None
            Whether features are centred and scaled; None leaves it to the problem.

        Returns
        -------
        tuple of (int, Release)
            Entries of a schedule.
        """
        return ()

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
            The problem.
        """
        return cast(SaddleProblem, self.saddle)

    def model(self, saddle: SaddleProblem, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the released model.

        Parameters
        ----------
        saddle : SaddleProblem
            As prepared.
        primal : ndarray of shape (n_primal,)
            What the steps led to.
        dual : ndarray of shape (n_dual,)
            The same.

        Returns
        -------
        ndarray of shape ``shape``
            The primal variables.
        """
        return primal[:, None]
