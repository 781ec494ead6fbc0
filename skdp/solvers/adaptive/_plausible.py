"""Compute errors of averaged steps over plausible curvatures, where noise hides how steep a direction is; post-processing."""

from dataclasses import dataclass

import numpy as np

from skdp.solvers.adaptive._shrinkage import tail_gains

# Curvature up to which a direction counts as hidden: h / (h + f) of an eigenvalue h at the half edge e of its noise, with the
# floor f = e / 2 of the whitening. It follows from `FLOOR` there.
HIDDEN = 2 / 3
# Least plausible curvature of a hidden direction, over the estimated one: the reciprocal of `INFLATION`, the variance inflation
# factor of severe collinearity. A smaller value makes intervals wider.
LEAST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class TailSteps:
    """Gradient steps whose iterates are averaged from ``warm_up`` on, with a Newton finish; see `tail_gains`.

    Parameters
    ----------
    step : float
        Step size.
    finish : ndarray of shape (d,)
        Factor of the average gradient that is added to the average of the iterates.
    warm_up, n_steps : int
        The averages run over iterates and gradients from ``warm_up`` on.
    """

    step: float
    finish: np.ndarray
    warm_up: int
    n_steps: int

    def unlearned(self, curvature: np.ndarray) -> np.ndarray:
        """Return the share of each coefficient that the steps miss, from a start at 0."""
        # A coefficient b starts at 0, so the iterate of step t lacks (1 - step * curvature)^t of it; the finish takes back a
        # part.
        left = (1 - self.step * curvature)[:, None] ** np.arange(self.warm_up, self.n_steps)
        return np.asarray(1 - (1 - left).mean(axis=1) - self.finish * curvature * left.mean(axis=1))

    def plausible_errors(
        self,
        curvature: np.ndarray,
        penalty: np.ndarray,
        noise: np.ndarray,
        squares: np.ndarray,
        n_features: int,
        unclipped: float = 1.0,
    ) -> np.ndarray:
        """Return mean squared errors of the estimates, averaged over plausible curvatures.

        Parameters
        ----------
        curvature, penalty : ndarray of shape (d,)
            Estimated curvature of the loss, and curvature of the penalty.
        noise : ndarray of shape (n_steps,)
            Standard deviation of a coordinate of each gradient.
        squares : ndarray of shape (d,)
            Estimated squares of the coefficients; they may be negative.
        n_features : int
            Number of coordinates without the intercept.
        unclipped : float, default=1.0
            Share of the gradients that are not clipped: clipped ones do not change with the coefficients along their features.

        Returns
        -------
        ndarray of shape (d,)
            Variance of the noise plus squared bias.
        """
        squares, hidden = squares.copy(), hidden_directions(curvature[:n_features])
        if hidden.any():
            # Where noise hides the curvature it hides the coefficients too: they share the mean of their squares.
            squares[:n_features][hidden] = squares[:n_features][hidden].mean()
        squares = np.maximum(squares, 0.0)
        errors = []
        for plausible in plausible_curvatures(curvature):
            bend = unclipped * plausible + penalty
            gains = tail_gains(self.step, bend, self.finish, self.warm_up, self.n_steps)
            errors.append(np.square(gains * noise).sum(axis=1) + np.square(self.unlearned(bend)) * squares)
        return np.asarray(np.mean(errors, axis=0))


def hidden_directions(curvature: np.ndarray) -> np.ndarray:
    """Return which directions of a whitened geometry the noise of the second moment hides."""
    return np.asarray(curvature <= HIDDEN * (1 + 1e-9))


def plausible_curvatures(curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the estimated curvature, the geometric mean of it and the least plausible one, and the least plausible one.

    An eigenvalue h gives the curvature ``c = h / (h + e / 2)``, where e is the half edge of the noise. The true eigenvalue may be
    less by e. Then the curvature is ``3 c - 2``; the least plausible one is that, or ``c / 10`` where this is more.
    """
    least = np.maximum(3 * curvature - 2, LEAST_SHARE * curvature)
    return curvature, np.sqrt(curvature * least), least
