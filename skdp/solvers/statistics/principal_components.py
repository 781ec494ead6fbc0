"""Find principal components from one private release of the first and second moments of clipped rows."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._extra_facts import ExtraFacts
from skdp.privacy.queries import DistanceHistogram, FirstAndSecondMoment, FirstMoment, FourthMoments
from skdp.privacy.queries.first_and_second_moment import MEAN_WEIGHT
from skdp.privacy.schedule import Schedule
from skdp.solvers._base import Ask, SolverResult
from skdp.solvers._standardization import james_stein, mean_noise
from skdp.solvers._unlabelled import UnlabelledProblem, UnlabelledSolver
from skdp.solvers.adaptive._shrinkage import half_edge, noisy_quantile
from skdp.solvers.adaptive._whitening import ranges, releases

# Largest number of features: matrices with its square are released. A choice; it is that of "whitened_gd".
MOST_FEATURES = 1024
# Shares of the squared Gaussian-DP parameter for the centre, the lengths of rows, and the spread of variances; choices.
OF_CENTRE, OF_RADIUS, OF_SPREAD = 0.15, 0.05, 0.05
MOST_SPREADS = 16  # components whose spread is released if their number is not given; a choice
# Noise of the centre, per feature and over half the width of its bounds, above which there is no such release. A choice.
HIDDEN = 0.5
N_RANGES = 20  # of lengths, which grow by the root of 2; a choice
# Level of the quantile of the lengths to which rows are clipped, by the largest eigenvalue of the noise over the squared radius:
# the first whose least edge is exceeded. Set on adult, bank, california, mammography, covertype, spambase, madelon and mnist10k.
LEVELS = ((0.015, 0.75), (0.005, 0.9), (0.0, 0.98))
LARGEST_RADIUS = 1.5  # over the reach; a choice
# Variance of the first component over the squared radius in many tables, by which plans warn; and the least one that stands out,
# over half the edge of the noise. The former is a choice, the latter follows from ABOVE.
USUAL, LEAST_FOUND = 0.3, 1.37
# Least eigenvalue over half the edge of the noise, from which a component stands out: the edge is 2, and what a table of so few
# features adds to it is small. A choice.
ABOVE = 2.1
# Least multiple of a variance up to which squared scores enter fourth moments in full: 3.5 standard deviations. A choice.
MULTIPLE = 12.0
# Noise of fourth moments over the square of the variance, up to which the multiple is larger; the variance of squared scores over
# that square where noise hides it, which is twice that of a normal law; and the distance from the edge, in standard deviations of
# the noise, up to which the interval of an eigenvalue begins at 0. All three set by the coverage of intervals on adult, bike,
# covertype and Student's law with 3 degrees of freedom.
NOISE, USUAL_SPREAD, CLEAR = 2.0, 4.0, 4.0
LEAST = 1e-12  # of a variance in a divisor; a choice for fits without noise
CONFIDENCE = 0.95  # of the intervals
Z = -float(ndtri((1 - CONFIDENCE) / 2))


@dataclass(frozen=True, kw_only=True)
class Components(ExtraFacts):
    """Hold released components, in the coordinates of z.

    Parameters
    ----------
    vectors : ndarray of shape (n_features, n_features)
        Orthonormal directions, one per row, by decreasing variance.
    variances : ndarray of shape (n_features,)
        Variances of clipped rows along them, without what noise adds.
    intervals : ndarray of shape (n_features, 2)
        Ends of their intervals.
    total : float
        Total variance of the clipped rows.
    n_found : int
        Number of components that stand out from the noise.
    edge : float
        Largest eigenvalue of the noise.
    radius : float
        Length to which rows are clipped.
    longer : float
        Share of the rows that are longer.
    """

    vectors: np.ndarray
    variances: np.ndarray
    intervals: np.ndarray
    total: float
    n_found: int
    edge: float
    radius: float
    longer: float


@dataclass(eq=False, repr=False)
class PrincipalComponents(UnlabelledSolver):
    r"""Principal components of rows that are clipped around a released centre.

    1. The mean of the rows, shrunk towards the middle of the bounds, is the centre. Where noise would hide it, there is none.
    2. A histogram of the distances from it gives the radius to which rows are clipped.
    3. One release has the first and second moments of the clipped rows v. The covariance is that around the released mean of v,
       so that a centre that is wrong does not become a component.
    4. Fourth powers of the scores along the first components tell how much a sample moves their variances.

    A formula for the spectrum of random matrices takes the noise off the eigenvalues [1]_.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components that will be used; None means those above the noise.

    Notes
    -----
    **Privacy.** Three or four Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the
    budget. Centre, radius and directions come from earlier releases. Which releases there are, and the level of the radius,
    follow from public facts.

    References
    ----------
    .. [1] F. Benaych-Georges, R. R. Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank perturbations of large
       random matrices", Advances in Mathematics 227 (2011), Theorem 2.1: what noise does to large eigenvalues.
    """

    name = "components"
    title = "principal components from one release of the moments of clipped rows"

    n_components: int | None = None

    def schedule(self, problem: Any) -> Schedule:
        """Return the centre, the lengths, and the moments; raises for too many features."""
        d = problem.n_features
        if d > MOST_FEATURES:
            raise ValueError(f"X has {d} features, whose products are released; expected at most {MOST_FEATURES}.")
        of_centre, of_radius, of_moments, of_spread = self._shares(problem)
        moments = FirstAndSecondMoment(problem.public_geometry)
        kinds = [
            (1, of_centre, FirstMoment, FirstMoment.clip_norm, d),
            (1, of_radius, DistanceHistogram, 1.0, N_RANGES),
            (1, of_moments, FirstAndSecondMoment, moments.clip_norm, moments.size),
            (1, of_spread, FourthMoments, FourthMoments.clip_norm, self._n_spreads(problem)),
        ]
        return Schedule(releases(kinds))

    def solve(self, problem: Any, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Make the releases, and return the mean of the rows with the components; ``rng`` is not used."""
        of_centre, _, of_moments, of_spread = self._shares(problem)
        centre = released_centre(problem, ask, of_centre) if of_centre else np.zeros(problem.n_features)
        radius, longer = self._radius(problem, ask, centre)
        spectrum = released_spectrum(problem, ask, centre, radius, of_moments)
        fourths = FourthMoments(problem.geometry(centre, radius), spectrum.vectors[: self._n_spreads(problem)])
        noise = mean_noise(problem, fourths, of_spread)
        limits = spectrum.limits(fourths.size, noise)
        shorter = replace(fourths, directions=fourths.directions / np.sqrt(limits)[:, None])
        answer = np.square(limits) * ask(shorter) / problem.n_samples
        components = spectrum.components(answer, noise * np.square(limits), radius)
        mean = centre + radius * spectrum.mean
        return SolverResult(mean[:, None], None, extra=replace(components, longer=longer))

    def noise_level(self, problem: Any) -> float:
        """Return the least variance of a component that is found, over a usual one; at least 1 where the mean may be one."""
        half = self._half_edge(problem)
        noise = half / half_edge(1.0, problem.n_features)
        return max(LEAST_FOUND * half / USUAL, float(hides_the_mean(noise, problem.n_features)))

    def noise_in_words(self, problem: Any) -> str:
        """Return the largest eigenvalue of the noise as a clause for the report."""
        edge = 2 * self._half_edge(problem)
        return f"eigenvalues of the noise reach {edge:.3g} times the largest variance that clipped rows could have"

    def _n_spreads(self, problem: UnlabelledProblem) -> int:
        """Return the number of components whose spread is released."""
        return min(self.n_components or MOST_SPREADS, problem.n_features)

    def _shares(self, problem: UnlabelledProblem) -> tuple[float, float, float, float]:
        """Return the shares of the releases; the first is 0 where noise would hide the centre."""
        noise = mean_noise(problem, FirstMoment(problem.public_geometry), OF_CENTRE) * math.sqrt(problem.n_features)
        of_centre = OF_CENTRE if noise <= HIDDEN else 0.0
        return of_centre, OF_RADIUS, 1 - of_centre - OF_RADIUS - OF_SPREAD, OF_SPREAD

    def _half_edge(self, problem: UnlabelledProblem) -> float:
        """Return half of the largest eigenvalue of the noise, over the squared radius."""
        moments = FirstAndSecondMoment(problem.public_geometry)
        return half_edge(mean_noise(problem, moments, self._shares(problem)[2]), problem.n_features)

    def _radius(self, problem: UnlabelledProblem, ask: Ask, centre: np.ndarray) -> tuple[float, float]:
        """Ask for the lengths of the rows around their centre; return the radius, and the share of rows that are longer."""
        edges = ranges(problem.reach + float(np.linalg.norm(centre)), N_RANGES)
        counts = ask(DistanceHistogram(problem.geometry(centre, 1.0), edges))
        if not problem.budget.private:
            return float(edges[-1]), 0.0
        edge = 2 * self._half_edge(problem)
        level = next(level for least, level in LEVELS if edge >= least)
        return min(noisy_quantile(counts, edges, level, problem.n_samples), LARGEST_RADIUS * problem.reach), 1 - level


def released_centre(problem: UnlabelledProblem, ask: Ask, share: float) -> np.ndarray:
    """Ask for the mean of the rows, and shrink it towards the middle of the bounds.

    Parameters
    ----------
    problem : UnlabelledProblem
        Public facts.
    ask : Ask
        The oracle.
    share : float
        Of the squared Gaussian-DP parameter.

    Returns
    -------
    ndarray of shape (n_features,)
        A point within the bounds, in the coordinates of z.
    """
    query = FirstMoment(problem.public_geometry)
    mean, noise = ask(query) / problem.n_samples, mean_noise(problem, query, share)
    length = float(np.linalg.norm(mean))
    return problem.boxed(problem.reach * mean * james_stein(mean.size, noise**2, length**2) / max(length, 1.0))


def released_spectrum(problem: UnlabelledProblem, ask: Ask, centre: np.ndarray, radius: float, share: float) -> "Spectrum":
    """Ask for the moments of the rows that are clipped around a centre.

    Parameters
    ----------
    problem : UnlabelledProblem
        Public facts.
    ask : Ask
        The oracle.
    centre : ndarray of shape (n_features,)
        In the coordinates of z.
    radius : float
        Length to which the rows are clipped.
    share : float
        Of the squared Gaussian-DP parameter.

    Returns
    -------
    Spectrum
        In units of the radius.
    """
    query = FirstAndSecondMoment(problem.geometry(centre, radius))
    first, second = query.parts(ask(query) / problem.n_samples)
    ends = np.array([(problem.boxed(np.full(centre.size, far)) - centre) / radius for far in (-np.inf, np.inf)])
    return Spectrum(first, second, mean_noise(problem, query, share), problem.n_samples, ends)


def hides_the_mean(noise: float, n_features: int) -> bool:
    """Return whether noise in the square of a mean may look like a component.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise of a coordinate of the half-vector.
    n_features : int
        Number of features.

    Returns
    -------
    bool
        A function of public facts.
    """
    return Z * math.sqrt(2) * (noise / MEAN_WEIGHT) ** 2 > half_edge(noise, n_features)


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of a released covariance of rows of length 1 at most, and what noise and sampling do to them.

    Parameters
    ----------
    first : ndarray of shape (n_features,)
        Released mean of the clipped rows.
    second : ndarray of shape (n_features, n_features)
        Released mean of their products.
    noise : float
        Standard deviation of the noise of a coordinate of its half-vector.
    n_samples : float
        Number of records.
    ends : ndarray of shape (2, n_features)
        Least and largest mean of rows that are within their bounds.
    """

    first: np.ndarray
    second: np.ndarray
    noise: float
    n_samples: float
    ends: np.ndarray

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean, shrunk and within the bounds, that is taken off the rows."""
        shrunk = self.first * james_stein(self.first.size, self.of_mean, float(self.first @ self.first))
        return np.clip(shrunk, *self.ends)

    @property
    def of_mean(self) -> float:
        """Variance of the noise of each entry of the mean."""
        return (self.noise / MEAN_WEIGHT) ** 2

    @property
    def half(self) -> float:
        """Half of the largest eigenvalue of the noise."""
        return half_edge(self.noise, self.first.size)

    @cached_property
    def vectors(self) -> np.ndarray:
        """Eigenvectors by decreasing eigenvalue, one per row; the largest entry of each is positive."""
        vectors = self._eigen[1][:, ::-1].T
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
        return vectors * np.where(largest < 0, -1.0, 1.0)

    @property
    def values(self) -> np.ndarray:
        """Eigenvalues in decreasing order."""
        return self._eigen[0][::-1]

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = np.linalg.eigh(self.second - np.outer(self.mean, self.mean))
        return values, vectors

    @cached_property
    def shown(self) -> np.ndarray:
        """Whether eigenvalues stand out from the noise."""
        return (self.values > ABOVE * self.half) & (not hides_the_mean(self.noise, self.first.size))

    @cached_property
    def variances(self) -> np.ndarray:
        """Eigenvalues that stand out without what noise adds to them; the others share what these leave of the total."""
        variances = np.where(self.shown, _without(self.values, self.half), 0.0)
        rest = (float(self.values.sum()) - float(variances.sum())) / max(int((~self.shown).sum()), 1)
        return np.maximum(variances, min(max(rest, 0.0), self.half))

    @cached_property
    def squared_means(self) -> np.ndarray:
        """Square of the mean along each direction, which has less noise than its length has."""
        return np.maximum(np.square(self.vectors @ self.first) - self.of_mean, 0.0)

    def limits(self, number: int, noise: float) -> np.ndarray:
        """Return the largest squared scores of the first components that enter fourth moments in full; ``noise`` is theirs."""
        multiple = max(MULTIPLE, math.sqrt(NOISE / max(noise, LEAST)))
        return np.minimum(multiple * np.maximum(self.variances[:number], max(self.half, LEAST)), 1.0)

    def components(self, fourths: np.ndarray, errors: np.ndarray, radius: float) -> Components:
        """Return the components in units of a radius.

        Parameters
        ----------
        fourths, errors : ndarray of shape (n_components,)
            Released means of fourth powers of the first scores, and the standard deviations of their noise.
        radius : float
            Length to which rows are clipped.

        Returns
        -------
        Components
            By decreasing variance, those that stand out first.
        """
        variances, (shift, of_sample) = self.variances, np.where(self.shown, self._shifts(), 0.0)
        # Ends by the noise alone, which is inverted as the eigenvalues are; then with the spread of samples and of the mean.
        of_mean = math.sqrt(self.mean.size * self.of_mean * float(self.mean @ self.mean))  # what a wrong mean may seem to be
        clear = self.shown & (self.values > 2 * self.half + CLEAR * self.noise + of_mean)
        low = np.where(clear, _without(self.values - Z * self.noise, self.half), 0.0)
        high = _without(np.maximum(self.values, 2 * self.half) + Z * self.noise, self.half)
        of_means = 4 * self.squared_means * self.of_mean + 2 * self.of_mean**2
        others = Z * np.sqrt(self._spreads(fourths, errors) / self.n_samples + of_means)
        ends = np.stack([variances - np.hypot(variances - low, others), variances + np.hypot(high - variances, others)], axis=1)
        ends += self._repulsion() * [-1.0, 1.0]
        factor = self.n_samples / max(self.n_samples - 1, 1) * radius**2
        taken = np.maximum(variances - shift, 0.0)
        order = np.lexsort((-taken, ~self.shown))
        return Components(
            vectors=self.vectors[order],
            variances=taken[order] * factor,
            intervals=np.maximum(ends - (shift + of_sample)[:, None], 0.0)[order] * factor,
            total=max(float(self.values.sum()), float(taken.sum())) * factor,
            n_found=int(self.shown.sum()),
            edge=2 * self.half * radius**2,
            radius=radius,
            longer=0.0,
        )

    def _shifts(self) -> np.ndarray:
        """Return what is still to be taken off variances, for the mean and for noise, and then for the population.

        To second order, noise raises an eigenvalue h by the sum over the others h' of its variance between two directions over
        ``h - h'``; `_without` has that for others of 0. Sampling does the same with the variance ``h h' / n``.
        """
        h, n = self.variances, self.n_samples
        of_mean = self.squared_means - np.square(self.vectors @ self.mean)
        of_noise, of_sample, gaps = self.noise**2 / 2, np.outer(h, h) / n, h[:, None] - h
        inverse = gaps / np.maximum(np.square(gaps) + of_noise + of_sample, LEAST**2)
        known = of_noise * (h.size - 1) / np.maximum(h, LEAST)
        return np.stack([of_mean + of_noise * inverse.sum(axis=1) - known, (of_sample * inverse).sum(axis=1)])

    def _spreads(self, fourths: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Return bounds on the variances of squared scores: usual ones, the more so the noisier the fourth moments are."""
        h, k = self.variances, fourths.size
        spreads = USUAL_SPREAD * np.square(h)
        known = np.square(spreads[:k]) / np.maximum(np.square(spreads[:k]) + np.square(errors), LEAST**4)
        found = np.maximum(fourths - np.square(h[:k] + self.squared_means[:k]), 0.0)
        spreads[:k] = known * (found + errors) + (1 - known) * spreads[:k]
        return np.minimum(spreads, np.maximum(h - np.square(h), 0.0))

    def _repulsion(self) -> np.ndarray:
        """Return how far up and down noise and sampling may have driven neighbours, beyond `_shifts`.

        Equal variances, between whose directions the matrix has the variance v, show a mean squared gap of 8 v. Half of it is
        taken, as both move together, too.
        """
        h = self.variances
        gaps, v = h[:-1] - h[1:], self.noise**2 / 2 + h[:-1] * h[1:] / self.n_samples
        most = (gaps - np.sqrt(np.maximum(np.square(gaps) - 4 * v, 0.0))) / 2
        rest = np.maximum(most - v * gaps / np.maximum(np.square(gaps) + v, LEAST**2), 0.0) * self.shown[1:]
        return np.stack([np.append(rest, 0.0), np.append(0.0, rest)], axis=1)


def _without(values: np.ndarray, half: float) -> np.ndarray:
    """Return eigenvalues without what noise adds to them, and 0 for those within its edge; see `deconvolved`."""
    roots = np.sqrt(np.maximum(np.square(values) - 4 * half**2, 0.0))
    return np.where(values > 2 * half, (values + roots) / 2, 0.0)
