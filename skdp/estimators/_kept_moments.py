"""Keep what a solver releases of the features on its way: their moments, or gradients."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skdp.estimators._plan import Plan
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Gradient, Moments, Query, SecondMoment
from skdp.privacy.queries._half_vector import symmetric
from skdp.solvers import ReleasedMoments, SolverResult
from skdp.solvers._standardization import released_moments


class KeptMoments:
    """Ask queries, and keep the answers that are moments of the features, and squares of those that are gradients.

    The gradients of a feature that no record has are noise of a known size, whatever the model: the sum of their squares over its
    variance has a chi-squared distribution. Those of others are more than noise while features or the intercept still move.

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
        self._steps, self._squares = 0, np.zeros((1, 1))

    def __call__(self, query: Query) -> np.ndarray:
        """Return the answer."""
        answer = self._ask(query)
        if not isinstance(query, (Moments, SecondMoment)) and type(query) is not Gradient:
            return answer
        if (noise := self._noise(query)) is None:
            return answer
        if isinstance(query, Moments):
            self._moments = answer, noise
        elif isinstance(query, SecondMoment):
            self._second = query, answer, noise
        else:
            noise = max(noise * self._plan.problem.n_samples, math.ulp(0.0))
            self._steps += 1
            self._squares = self._squares + np.square(answer.reshape(query.coef.shape) / noise)
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
        if moments is None and self._steps:
            d = problem.n_features
            moments = ReleasedMoments(np.zeros(d), math.inf, pull=self._pull()[:d])
        return replace(result, kept=moments)

    def _pull(self) -> np.ndarray:
        """Return how far gradients are from noise, by Fisher's approximation of the chi-squared distribution."""
        degrees = self._steps * self._squares.shape[1]
        return np.asarray(np.sqrt(2 * self._squares.sum(axis=1)) - math.sqrt(2 * degrees - 1))

    def _noise(self, query: Query) -> float | None:
        """Return the standard deviation of the noise over the number of records; None for a mechanism of the user."""
        plan = self._plan
        release = next(release for _, release in plan.schedule.entries if release.query is type(query))
        try:
            multiplier = noise_multiplier(release, plan.scale, plan.problem.budget.adjacency)
        except PrivacyAccountingError:
            return None
        return multiplier * query.clip_norm / plan.problem.n_samples
