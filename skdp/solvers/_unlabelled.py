"""Define fits without targets: their public facts, and the base of their solvers."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skdp.privacy.queries import Standardization
from skdp.solvers._base import Problem, Solver


@dataclass(frozen=True)
class UnlabelledProblem(Problem):
    """Hold the public facts of a fit without targets.

    It describes rows as points ``z = (x - middle) / widths``, where x is a row behind the oracle. Their length is at most
    ``reach``.

    Parameters
    ----------
    middle : tuple of float, default=()
        Middle of the bounds of each feature.
    widths : tuple of float, default=()
        Unit of each feature: half the width of its bounds, or 1.
    reach : float, default=1.0
        Bound on the length of z.
    box : tuple of float, default=()
        Bound on each coordinate of z.
    """

    middle: tuple[float, ...] = ()
    widths: tuple[float, ...] = ()
    reach: float = 1.0
    box: tuple[float, ...] = ()

    @property
    def offers(self) -> frozenset[str]:
        """Properties of the problem that solvers may need, by their names in ``NEEDS``."""
        return frozenset({"unlabelled"})

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the released points: one row per feature, and one column per point; there is no intercept."""
        return self.n_features, self.loss.n_outputs

    @cached_property
    def public_geometry(self) -> Standardization:
        """The map of rows to z over ``reach``, so that no row within the bounds is longer than 1."""
        return self.geometry(np.zeros(self.n_features), self.reach)

    def boxed(self, point: np.ndarray) -> np.ndarray:
        """Return the point of the box that is nearest to a point.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
            In the coordinates of z.

        Returns
        -------
        ndarray of shape (n_features,)
            Where a mean of rows can be.
        """
        ends = np.asarray(self.box)
        return np.clip(point, -ends, ends)

    def geometry(self, centre: np.ndarray, radius: float) -> Standardization:
        """Return the map of rows to ``(z - centre) / radius``.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
            In the coordinates of z.
        radius : float
            Unit of lengths.

        Returns
        -------
        Standardization
            For queries.
        """
        widths = np.asarray(self.widths)
        return Standardization(np.asarray(self.middle) + widths * centre, 1 / (radius * widths), True, self.data_norm)


class UnlabelledSolver(Solver):
    """Base of the solvers of fits without targets, which estimators choose by themselves."""

    needs: ClassVar[frozenset[str]] = frozenset({"unlabelled"})

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: there is no penalty."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return ``inf``: earlier releases set clip norms."""
        return math.inf

    def remark(self, problem: Any) -> str:
        """Return the noise over the level at which it drowns the signal, as a clause for the report."""
        return "no noise" if not problem.budget.private else self.noise_in_words(problem)

    def noise_in_words(self, problem: Any) -> str:
        """Return how large the noise is, as a clause for the report of a private fit."""
        return ""
