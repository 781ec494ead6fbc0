"""Estimate the curvature of a mean loss, and the errors of averaged steps over plausible curvatures; post-processing."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from skdp.privacy.queries import Standardization
from skdp.solvers._inference import MOST_ASIDE
from skdp.solvers.adaptive._whitening import Frame

# The matrices here, all of order k = d + 1 (the features of z, and the constant):
#   released    H + E: mean second derivatives at the estimate, and the noise of their release. E is symmetric, with independent
#               entries of variance s^2 on the diagonal and s^2 / 2 beside it, which is one law in all orthonormal bases.
#   directions  U: eigenvectors of `released`, with `values` h, the eigenvalues without the spread that E adds.
#   inverse     U diag(1 / max(h, floor)) U', on both sides of the sandwich.
#   newton      N = U diag(1 / (max(h, floor) + damping)) U': the last step of each descent is -N times its mean gradient.
#   leaks       the part of a direction that may be flat which the eigenvector of another may have, because E turns them.
#
# Where no source is named, the constants were chosen on generated tables of 5000 records: a pair with correlation .99 and a block
# of levels, equal correlations of .9, and independent columns (docs/guarantees/intervals.md has those of the check).

# Least curvature that the Newton step and the covariance assume, over the mean one, and over the half edge of its noise.
FLOOR, FLOOR_OF_EDGE = 0.08, 0.6
# Least plausible curvature over the mean one. A smaller value makes intervals wider where noise hides a direction.
LEAST_CURVATURE = 0.06
# Damping of the Newton step in directions that show and in hidden ones, over the mean curvature. A larger value has less noise
# and takes back less of what the steps left undone.
DAMPING, DAMPING_HIDDEN = 0.045, 0.15
# An eigenvalue does not come from a flat direction if it exceeds what such a one would show by ABOVE_MEAN of the mean curvature,
# but by no less and no more than these numbers of standard deviations of the noise. Larger numbers refuse more.
ABOVE_MEAN, ABOVE_FLAT = 0.25, (2.0, 4.0)
# Largest half edge of the noise, over the mean curvature, at which a flat direction shows: the theory has 1, where its
# eigenvector says nothing of it.
MOST_EDGE = 0.6
# Factor of the squared part of a flat direction that its eigenvector may miss: all of it made intervals twice too wide.
LEAK = 0.3
# Plausible curvatures in standard deviations of their noise, with weights: a normal law in five points.
PLACES = np.array([-1.64, -0.8, 0.0, 0.8, 1.64])
WEIGHTS = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
# Curvatures over the mean one at which what steps leave undone is computed; between them, it is interpolated.
TABULATED = np.geomspace(LEAST_CURVATURE, 10.0, 60)
# Least curvature of a direction that is not flat, over the mean one, where there is no noise. A choice above rounding errors.
SINGULAR = 1e-9


@dataclass(frozen=True)
class Steps:
    """Heavy-ball steps of one descent, whose last iterates and gradients are averaged.

    Parameters
    ----------
    length, momentum : float
        Step length ``length * (1 - momentum)``, and heavy-ball coefficient.
    warm_up, n_steps : int
        The averages run from step ``warm_up`` on.
    noise : float
        Standard deviation of a coordinate of each gradient.
    """

    length: float
    momentum: float
    warm_up: int
    n_steps: int
    noise: float

    def run(self, gradient: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the averages of the iterates and of the gradients, from a start."""
        # Heavy ball; `response` runs it on impulses, so that its noise follows from the same lines.
        theta, velocity = start.copy(), np.zeros(start.shape)
        iterates, gradients = np.zeros(start.shape), np.zeros(start.shape)
        for number in range(self.n_steps):
            slope = gradient(theta)
            if number >= self.warm_up:
                iterates, gradients = iterates + theta, gradients + slope
            velocity = self.momentum * velocity + slope
            theta = theta - self.length * (1 - self.momentum) * velocity
        kept = self.n_steps - self.warm_up
        return iterates / kept, gradients / kept

    def response(self, curvature: np.ndarray, finish: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what is left of the start, and the variance from the noise of the gradients, after a Newton step.

        The iteration is linear, so the start and the impulse of each gradient run through it side by side.

        Parameters
        ----------
        curvature : ndarray of shape (q,)
            Curvatures of q directions.
        finish : ndarray of shape (q,)
            Factor of the average gradient that is taken off the average of the iterates.

        Returns
        -------
        rest : ndarray of shape (q,)
            Factor of the start.
        variances : ndarray of shape (q,)
            Variances from the noise.
        """
        impulses, number = np.eye(self.n_steps + 1), iter(range(1, self.n_steps + 1))
        start = np.tile(impulses[0], (curvature.size, 1))  # one column per impulse, the start first
        iterates, gradients = self.run(lambda theta: curvature[:, None] * theta + impulses[next(number)], start)
        # Column 0 belongs to the start and the others to the gradients, one each.
        left = iterates - finish[:, None] * gradients
        return left[:, 0], self.noise**2 * np.square(left[:, 1:]).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Unlearned:
    """What the steps leave undone of a linear combination, by the curvature along the combination itself.

    Noise mixes eigenvectors of different curvatures, so that a flat one may be in none of those that it shows. The noise of the
    curvature along one given combination is small beside that of eigenvalues. Without this, intervals of the largest effect of
    a level missed it in .14 of 300 samples (logistic, 20 columns, epsilon 1), and with it in .06 and .10 in two runs.

    Parameters
    ----------
    released, variances : ndarray of shape (k, k)
        Released mean second derivatives, and the variances of their noise.
    newton : ndarray of shape (k, k)
        Matrix of the Newton step.
    curvatures, rest : ndarray of shape (n_tabulated,)
        Increasing curvatures, and the factor of the start that is in the mean of the iterates.
    size : float
        Mean square of a coefficient.
    """

    released: np.ndarray
    variances: np.ndarray
    newton: np.ndarray
    curvatures: np.ndarray
    rest: np.ndarray
    size: float

    def along(self, rows: np.ndarray, estimates: np.ndarray) -> np.ndarray:
        """Return the squared bias of linear combinations of coefficients, shape (m,), averaged over plausible curvatures.

        Parameters
        ----------
        rows : ndarray of shape (m, k)
            Factors of the coefficients.
        estimates : ndarray of shape (k,)
            Coefficients.
        """
        # Curvature u' (H + E) u and Newton step u' N u along each unit vector u; E adds noise of known variance to the former.
        lengths = np.square(rows).sum(axis=1)
        units = rows / np.sqrt(np.maximum(lengths, 1e-300))[:, None]
        curvature, newton = (((units @ matrix) * units).sum(axis=1) for matrix in (self.released, self.newton))
        spread = np.sqrt(_quadratic(self.variances, np.square(units).T))
        plausible = np.maximum(curvature + PLACES[:, None] * spread, self.curvatures[0])
        # What the steps leave of a coefficient, times what the Newton step leaves of that.
        left = np.interp(plausible, self.curvatures, self.rest) * (1 - newton * plausible)
        return np.asarray((WEIGHTS @ np.square(left)) * np.maximum(self.size * lengths, np.square(rows @ estimates)))


@dataclass(frozen=True, eq=False)
class EstimatedBread:
    """Eigenvalues and eigenvectors of an estimated matrix of second derivatives, with the noise that is left.

    Parameters
    ----------
    released : ndarray of shape (k, k)
        The matrix with its noise.
    variances : ndarray of shape (k, k)
        Variances of the entries.
    values : ndarray of shape (k,)
        Eigenvalues without the spread that noise adds; those that noise hides as they show, at least 0.
    directions : ndarray of shape (k, k)
        Eigenvectors, one per column.
    shown : ndarray of bool of shape (k,)
        Eigenvalues that stand out from the noise.
    floored : ndarray of shape (k,)
        Eigenvalues with a floor, for inverses.
    mean : float
        Mean curvature.
    leaks : ndarray of shape (k, k)
        Squared part of the direction behind the column that the eigenvector of the row may have.
    """

    released: np.ndarray
    variances: np.ndarray
    values: np.ndarray
    directions: np.ndarray
    shown: np.ndarray
    floored: np.ndarray
    mean: float
    leaks: np.ndarray

    @property
    def damped(self) -> np.ndarray:
        """Eigenvalues for the Newton step."""
        return np.asarray(self.floored + self.mean * np.where(self.shown, DAMPING, DAMPING_HIDDEN))

    @property
    def inverse(self) -> np.ndarray:
        """Inverse with floored eigenvalues."""
        return np.asarray((self.directions / self.floored) @ self.directions.T)

    @property
    def newton(self) -> np.ndarray:
        """Matrix of the Newton step."""
        return np.asarray((self.directions / self.damped) @ self.directions.T)

    @property
    def plausible(self) -> np.ndarray:
        """Curvatures that the release does not exclude, shape (n_places, k), to be weighted by ``WEIGHTS``."""
        squares = np.square(self.directions)
        spread = np.sqrt(_quadratic(self.variances, squares))
        return np.asarray(np.maximum(self.values + PLACES[:, None] * spread, LEAST_CURVATURE * self.mean))

    def errors(self, pilot: Steps, steps: Steps, size: float) -> tuple[np.ndarray, np.ndarray]:
        """Return variances of descents from a pilot along the eigenvectors, averaged over plausible curvatures.

        A direction that may be flat counts as flat.

        Parameters
        ----------
        pilot, steps : Steps
            Steps of the pilot, from 0, and of the descents that start where it ends.
        size : float
            Mean square of a coefficient.

        Returns
        -------
        own : ndarray of shape (k,)
            Variance of one descent.
        common : ndarray of shape (k,)
            Variance and squared bias that all descents share.
        """
        # For each plausible curvature: own is the noise of a descent's steps; common is what is left of its start, the end
        # of the pilot, with the noise of the pilot and with what that left of a coefficient of the mean size.
        own, common, none = np.zeros((3, self.values.size))
        for weight, curvature in zip(WEIGHTS, np.where(self.shown, self.plausible, 0.0), strict=True):
            rest_of_pilot, noise_of_pilot = pilot.response(curvature, none)
            rest, noise = steps.response(curvature, 1 / self.damped)
            own += weight * noise
            common += weight * np.square(rest) * (noise_of_pilot + np.square(rest_of_pilot) * size)
        return own, common

    def unlearned(self, pilot: Steps, steps: Steps, size: float) -> Unlearned:
        """Return what descents from a pilot leave undone; arguments as for `errors`."""
        curvatures = TABULATED * self.mean
        none = np.zeros(curvatures.size)
        rest = pilot.response(curvatures, none)[0] * steps.response(curvatures, none)[0]
        return Unlearned(self.released, self.variances, self.newton, curvatures, rest, size)

    def moved(self, move: np.ndarray) -> np.ndarray:
        """Return the covariance of ``E @ move`` for the error E of the matrix, whose entries are independent."""
        # Var (E m)_i = sum_j V_ij m_j^2, and Cov((E m)_i, (E m)_j) = V_ij m_i m_j, because E_ij = E_ji is in both
        squares = np.square(move)
        return np.asarray(
            np.diag(self.variances @ squares - np.diag(self.variances) * squares) + self.variances * np.outer(move, move)
        )


def estimated_bread(
    released: np.ndarray, noise: float, frame: Frame, least: float, most: float, blocks: tuple[slice, ...] = ()
) -> EstimatedBread:
    """Return the curvature behind a released matrix.

    Parameters
    ----------
    released : ndarray of shape (k, k)
        Mean second derivatives with noise.
    noise : float
        Standard deviation of the noise of a diagonal entry.
    frame : Frame
        Geometry, with the second moment in it.
    least, most : float
        Range of the mean second derivative over the second moment.
    blocks : tuple of slice, default=()
        Places of indicators of all levels of a category but one.

    Returns
    -------
    EstimatedBread
        The matrix.
    """
    # The trace has less noise than any eigenvalue. Eigenvectors once with all columns; again without those that are flat alone.
    mean = min(max(float(np.trace(released)) / max(float(frame.curvature.sum()), 1e-300), least), most)
    everything = np.eye(len(released))
    found = _curvature(released, noise, everything, everything[:, :0], mean)
    aside = _flat_columns(found, frame.geometry, blocks)
    kept, aside = _apart(aside) if aside.size else (everything, aside)
    return _curvature(released, noise, kept, aside, mean) if aside.size and kept.size else found


def _curvature(released: np.ndarray, noise: float, kept: np.ndarray, aside: np.ndarray, mean: float) -> EstimatedBread:
    """Return the curvature with eigenvectors among the directions that are kept, and the others, which count as flat.

    Both are orthonormal. What is not known along the latter reaches the former by the second derivatives between them, and by
    nothing else. The noise of a released matrix has the same law in all orthonormal bases.
    """
    # Eigenvectors are those of the block of kept directions; the columns that are set aside come first and count as hidden.
    values, turned = np.linalg.eigh(kept.T @ released @ kept)
    cleaned, shown, edges, leaks = _along_eigenvectors(values, turned, np.square(noise * _half(len(values))))
    directions, n_aside = np.column_stack([aside, kept @ turned]), aside.shape[1]
    values = np.append(np.maximum(((released @ aside) * aside).sum(axis=0), 0.0), cleaned)
    edges, shown = np.append(np.full(n_aside, edges.max(initial=0.0)), edges), np.append(np.zeros(n_aside, dtype=bool), shown)
    floored = np.maximum(values, np.maximum(FLOOR * mean, FLOOR_OF_EDGE * edges))
    # An unknown amount t along a column a moves the minimum along u by -t u'Ha / h: the square of that factor is a's leak into u.
    all_leaks = np.zeros(released.shape)
    all_leaks[n_aside:, n_aside:] = leaks
    all_leaks[n_aside:, :n_aside] = np.square(directions[:, n_aside:].T @ released @ aside / floored[n_aside:, None])
    variances = np.square(noise * _half(len(released)))
    return EstimatedBread(released, variances, values, directions, shown, floored, mean, all_leaks)


def _flat_columns(found: EstimatedBread, geometry: Standardization, blocks: tuple[slice, ...]) -> np.ndarray:
    """Return the directions in which the effect of one column or one level changes that nothing identifies, shape (k, n_flat).

    The curvature in such a direction is the information about one column, such as the indicator of a rare level. Its noise is
    that of one number, so that it shows more than eigenvalues do. The coefficients of all other columns are orthogonal to it. A
    level without an indicator changes the constant, and the coefficients of all levels that have one.
    """
    # Rows of `coefficients`: the user's coefficients as functions of those in the geometry. Its inverse has, in each column, the
    # direction in which one of them changes and all others stay.
    d, order = geometry.centre.size, len(found.released)
    coefficients = geometry.to_rows(np.eye(order))  # of the user, from those in the geometry
    effects = np.eye(order)[:, :d]
    for block in blocks if geometry.intercept else ():
        left_out = np.zeros(order)
        left_out[block], left_out[d] = -1.0, 1.0
        effects = np.column_stack([effects, left_out])
    changes = np.linalg.solve(coefficients, effects)
    changes = changes / np.linalg.norm(changes, axis=0)
    # How far each effect is in directions that noise hides: only these are taken out.
    rows = np.vstack([coefficients[:d], changes[:, d:].T])
    hidden = np.square(rows @ found.directions[:, ~found.shown]).sum(axis=1) / np.square(rows).sum(axis=1)
    curvature = ((found.released @ changes) * changes).sum(axis=0)
    spread = np.sqrt(_quadratic(found.variances, np.square(changes)))
    mean = float(found.values.mean())
    flat = curvature <= np.maximum(np.minimum(clear_of_flat(mean, spread), mean - ABOVE_FLAT[0] * spread), SINGULAR * found.mean)
    return np.asarray(changes[:, flat & (hidden > MOST_ASIDE)])


def _apart(aside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal bases of the directions that are orthogonal to some, and of these."""
    basis, sizes, _ = np.linalg.svd(aside)
    rank = int(np.count_nonzero(sizes > SINGULAR * sizes[0]))
    return basis[:, rank:], basis[:, :rank]


def clear_of_flat(mean: float, spread: np.ndarray) -> np.ndarray:
    """Return how far above a flat direction the curvature of one is that is not flat.

    Parameters
    ----------
    mean : float
        Mean curvature.
    spread : ndarray
        Standard deviations of the noise of curvatures.

    Returns
    -------
    ndarray
        Of the shape of ``spread``.
    """
    return np.asarray(np.clip(ABOVE_MEAN * mean, ABOVE_FLAT[0] * spread, ABOVE_FLAT[1] * spread))


def estimated_meat(released: np.ndarray, noise: float) -> np.ndarray:
    """Return the non-negative part of a released matrix, its eigenvalues without the spread of the noise."""
    values, directions = np.linalg.eigh(released)
    cleaned, shown, edges = _without_noise(values, directions, np.square(noise * _half(len(released))))
    cleaned = np.where(shown, cleaned, np.maximum(cleaned, edges / 2))
    return np.asarray((directions * cleaned) @ directions.T)


def _along_eigenvectors(
    values: np.ndarray, directions: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return curvatures along noisy eigenvectors, which are not flat, half edges of the noise, and what they may miss.

    Noise makes eigenvalues repel each other, in proportion to its variance between two eigenvectors. The estimate along an
    eigenvector takes the repulsion off [1]_. A flat direction would show near the eigenvalue to which the others push it;
    eigenvalues well above that are not flat.

    References
    ----------
    .. [1] J. Bun, R. Allez, J.-P. Bouchaud, M. Potters, "Rotational invariant estimator for general noisy matrices", IEEE
       Transactions on Information Theory 62 (2016).
    """
    # between_ij is about the variance of u_i' E u_j. To second order, noise raises eigenvalue i by
    # sum_j between_ij / (h_i - h_j), and turns u_i towards u_j by an angle of variance between_ij / (h_i - h_j)^2. Along the
    # turned u_i, u_i' E u_i is twice that rise, which is taken off. `width` keeps all finite where eigenvalues meet.
    squares = np.square(directions)
    between = squares.T @ variances @ squares
    edges = np.sqrt(squares.T @ variances.sum(axis=1))
    gaps = values[:, None] - values
    width = edges[:, None] / math.sqrt(len(values))
    mixed = between / np.maximum(np.square(gaps) + np.square(width), 1e-300)
    cleaned = np.maximum(isotonic_regression(values - 2 * (mixed * gaps).sum(axis=1)), 0.0)
    spread = np.sqrt(_quadratic(variances, squares))
    mean = float(cleaned.mean())
    flat = -(between / np.maximum(cleaned, np.maximum(edges / 2, 1e-300))).sum(axis=1)
    shown = (values > np.maximum(flat + clear_of_flat(mean, spread), SINGULAR * mean)) & (edges <= MOST_EDGE * mean)
    return cleaned, shown, edges, LEAK * mixed


def _without_noise(
    values: np.ndarray, directions: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues without the spread of noise, which stand out, and the half edge of the noise in each direction."""
    edges = np.sqrt(np.square(directions).T @ variances.sum(axis=1))
    shown = values > 2 * edges
    roots = np.sqrt(np.maximum(np.square(values) - 4 * np.square(edges), 0.0))
    return np.where(shown, (values + roots) / 2, np.maximum(values, 0.0)), shown, edges


def _half(order: int) -> np.ndarray:
    """Return the factor of the noise of each entry of a matrix from a half-vector."""
    return np.where(np.eye(order) > 0, 1.0, np.sqrt(0.5))


def _quadratic(variances: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the variances of ``u' E u`` for the columns u whose squares are given, with independent entries of a symmetric E."""
    twice = 2 * variances - np.diag(np.diag(variances))
    return np.asarray((squares * (twice @ squares)).sum(axis=0))
