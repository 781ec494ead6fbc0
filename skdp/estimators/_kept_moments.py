"""Keep the moments of the features that a solver releases on its way."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skdp.estimators._plan import Plan
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.queries import Moments, Query, SecondMoment
from skdp.privacy.queries._half_vector import symmetric
from skdp.solvers import ReleasedMoments, SolverResult
from skdp.solvers._standardization import released_moments

__all__ = ["KeptMoments"]


class KeptMoments:
    """Ask queries, and keep the answers that are moments of the features.

    Parameters
    ----------
    ask : callable
        Returns the noisy answer to a query.
    plan : Plan
        Of the fit.
    """

    def __init__(self, ask: Callable[[Query], np.ndarray], plan: Plan) -> None:
        self._ask, self._plan = ask, plan
        self._moments: tuple[np.ndarray, float] | None = None
        self._second: tuple[SecondMoment, np.ndarray, float] | None = None

    def __call__(self, query: Query) -> np.ndarray:
        """Return the answer."""
        answer = self._ask(query)
        if isinstance(query, Moments):
            self._moments = answer, self._noise(query)
        elif isinstance(query, SecondMoment):
            self._second = query, answer, self._noise(query)
        return answer

    def beside(self, result: SolverResult) -> SolverResult:
        """Return a result with all moments that were released."""
        problem, moments = self._plan.problem, result.moments
        if moments is None and self._moments is not None:
            moments = released_moments(problem, *self._moments)
        if self._second is not None:
            query, answer, noise = self._second
            geometry, d = query.geometry, problem.n_features
            variances = np.diag(symmetric(answer / problem.n_samples, d)) / geometry.scale**2
            moments = replace(
                moments or ReleasedMoments(np.zeros(d), math.inf),
                shortened=variances + geometry.centre**2,
                shortened_noise=noise / float(geometry.scale.min()) ** 2,
            )
        return replace(result, kept=moments)

    def _noise(self, query: Query) -> float:
        """Return the standard deviation of the noise over the number of records."""
        plan = self._plan
        release = next(release for _, release in plan.schedule.entries if release.query is type(query))
        multiplier = noise_multiplier(release, plan.scale, plan.problem.budget.adjacency)
        return multiplier * query.clip_norm / plan.problem.n_samples
