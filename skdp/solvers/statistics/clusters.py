"""Find clusters: centres from a noisy tree of cells, moved by noisy steps relative to them."""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skdp._extra_facts import ExtraFacts
from skdp._validation import check_integer
from skdp.privacy.queries import (
    CellCounts,
    Centres,
    ClusterCounts,
    ClusterDistances,
    ClusterSteps,
    DistanceHistogram,
    FewCountsSteps,
    FirstAndSecondMoment,
    FirstMoment,
    Standardization,
)
from skdp.privacy.schedule import Schedule
from skdp.solvers._base import Ask, SolverResult
from skdp.solvers._standardization import james_stein, mean_noise
from skdp.solvers._unlabelled import UnlabelledProblem, UnlabelledSolver
from skdp.solvers.adaptive._shrinkage import deconvolved, noisy_quantile
from skdp.solvers.adaptive._whitening import ranges, releases
from skdp.solvers.statistics.principal_components import (
    ABOVE,
    LARGEST_RADIUS,
    MOST_FEATURES,
    released_centre,
    released_spectrum,
)

# Constants were set on six generated mixtures of 1000 and 10 000 records with 2, 10 and 50 features (the first six development
# cases of `python -m benchmarks clusters`), by the geometric mean of the inertia over that of scikit-learn at epsilon .1 to 3.
# Shares of the squared Gaussian-DP parameter. Half again as much for the cells moved that mean by less than .01.
OF_CENTRE, OF_LENGTHS, OF_MOMENTS, OF_CELLS, OF_DISTANCES, OF_STEPS = 0.03, 0.02, 0.12, 0.20, 0.03, 0.60
OF_COUNTS = 0.05  # of the records of the last centres, over the sum of the shares above; a choice
# Noise of the centre, per feature and over half the width of its bounds, above which the middle of the bounds is the centre.
HIDDEN = 0.2
N_RANGES = 20  # of lengths and distances, which grow by the root of 2; a choice
LONG, FAR = 0.97, 0.9  # levels of the radius of the rows and of the differences from centres
MOST_AXES, PUBLIC_AXES = 8, 4  # of the box that the cells divide; the second if no components are released
# Half width of the box, in standard deviations along each axis: 1.7, 2, 2.5, 3 gave 1.516, 1.522, 1.541, 1.564.
BOX = 2.0
# A cell is halved if its count is above this number of standard deviations of its noise (3 for 2: 1.458 for 1.447); least and
# largest number of levels.
THRESHOLD, FEWEST_LEVELS, MOST_LEVELS = 2.0, 4, 14
# Public points that are drawn in the cells, and starts of scikit-learn's k-means on these and on released centres. Choices.
N_POINTS, N_STARTS, N_STARTS_OF_CENTRES = 3000, 4, 8
MOST_UNSEEN = 1 / 30  # noise of a count of distances, over n, above which they are not released: the radius then is UNSEEN
UNSEEN = 1 / 3
LEAST_RADIUS = 1e-3  # of the differences, over that of the rows; a choice that bounds rounding
LEAST_COUNT = 2.0  # standard deviations of a noisy count; a cluster with fewer records keeps its centre
# Signal below which one centre is often as good. In many cells it is worse by far, but the centres are hardly those of clusters.
ONE_CENTRE = 10.0
# Signal from which there are two stages, the first with twice the centres (10, 6, 4 gave 1.522, 1.496, 1.458), and numbers of
# steps of the stages by the signal from which they hold.
TWO_STAGES = 4.0
STEPS, FIRST_STEPS, LAST_STEPS = {20.0: 2, 0.0: 1}, {60.0: 2, 0.0: 1}, {200.0: 3, 60.0: 2, 0.0: 1}


@dataclass(frozen=True, kw_only=True)
class Clusters(ExtraFacts):
    """Hold what is released of the clusters in addition to their centres.

    Parameters
    ----------
    counts : ndarray of shape (n_clusters,)
        Noisy numbers of the records that are nearest to the centres.
    counts_noise : float
        Standard deviation of their noise.
    noise : ndarray of shape (n_clusters,)
        Standard deviation of the noise of each coordinate of the last step, in the coordinates of z; 0 for a centre that is kept.
    """

    counts: np.ndarray
    counts_noise: float
    noise: np.ndarray


@dataclass(frozen=True)
class Stages:
    """Decide from public facts which releases there are.

    Parameters
    ----------
    problem : UnlabelledProblem
        Public facts, with the public number of records.
    """

    problem: UnlabelledProblem

    @property
    def signal(self) -> float:
        """Records of a cluster, over the noise of their number with all of the budget of the steps and that of all features."""
        of_counts = mean_noise(self.problem, self._counts, OF_STEPS)
        return 1 / (self.problem.loss.n_outputs * math.sqrt(self.problem.n_features) * max(of_counts, 1e-300))

    @property
    def centred(self) -> bool:
        """Whether noise would leave a centre visible."""
        return mean_noise(self.problem, FirstMoment(self.problem.public_geometry), OF_CENTRE) * self.problem.reach <= HIDDEN

    @property
    def projected(self) -> bool:
        """Whether components are released, on which cells are made."""
        return self.centred and 2 < self.problem.n_features <= MOST_FEATURES

    @property
    def measured(self) -> bool:
        """Whether distances from centres are released."""
        return mean_noise(self.problem, self._counts, OF_DISTANCES) < MOST_UNSEEN

    @cached_property
    def shares(self) -> dict[str, float]:
        """Shares of the releases in the squared Gaussian-DP parameter, which add up to 1; cells get those of lost components."""
        shares = {
            "centre": OF_CENTRE * self.centred,
            "lengths": OF_LENGTHS * self.centred,
            "moments": OF_MOMENTS * self.projected,
            "distances": OF_DISTANCES * self.measured,
            "steps": OF_STEPS,
            "counts": OF_COUNTS,
        }
        of_places = OF_CENTRE + OF_LENGTHS + OF_MOMENTS + OF_CELLS  # centre, lengths, moments and cells
        shares["cells"] = of_places - shares["centre"] - shares["lengths"] - shares["moments"]
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    @cached_property
    def n_levels(self) -> int:
        """Number of levels of the tree: two more than halve evenly spread records until noise hides their number."""
        noise = mean_noise(self.problem, self._counts, self.shares["cells"])
        levels = range(FEWEST_LEVELS - 2, MOST_LEVELS - 2)
        hidden = (level for level in levels if 2.0**-level < THRESHOLD * noise * math.sqrt(level + 1))
        return next(hidden, MOST_LEVELS - 2) + 2

    @property
    def steps(self) -> list[tuple[int, int, float]]:
        """Number of centres, number of steps and share of each stage."""
        k, share = self.problem.loss.n_outputs, self.shares["steps"]
        if self.signal <= TWO_STAGES:
            return [(k, self._number(STEPS), share)]
        return [(2 * k, self._number(FIRST_STEPS), share / 2), (k, self._number(LAST_STEPS), share / 2)]

    @property
    def step(self) -> type[ClusterSteps]:
        """The query of the steps."""
        return ClusterSteps if self.problem.budget.adjacency == "replace_one" else FewCountsSteps

    @property
    def schedule(self) -> Schedule:
        """All releases."""
        d, shares = self.problem.n_features, self.shares
        moments = FirstAndSecondMoment(self.problem.public_geometry)
        kinds = [
            (1, shares["centre"], FirstMoment, FirstMoment.clip_norm, d),
            (1, shares["lengths"], DistanceHistogram, 1.0, N_RANGES),
            (1, shares["moments"], FirstAndSecondMoment, moments.clip_norm, moments.size),
            (self.n_levels, shares["cells"], CellCounts, 1.0, 1 << self.n_levels),
            (1, shares["distances"], ClusterDistances, 1.0, N_RANGES),
            *((number, share, self.step, None, centres * (d + 1)) for centres, number, share in self.steps),
            (1, shares["counts"], ClusterCounts, 1.0, self.problem.loss.n_outputs),
        ]
        return Schedule(releases(kinds))

    @property
    def _counts(self) -> CellCounts:
        return CellCounts(np.zeros((1, 1)), (0,), 0, np.zeros(1, dtype=np.intp))

    def _number(self, steps: dict[float, int]) -> int:
        return next(number for least, number in steps.items() if self.signal >= least)


@dataclass(eq=False, repr=False)
class ClusterDescent(UnlabelledSolver):
    r"""K-means by a noisy tree of cells and noisy steps relative to centres.

    1. The mean of the rows is the centre of all, and a histogram of lengths gives their radius. The first and second moments of
       clipped rows give the components on which records are projected.
    2. A binary tree halves a box of projected rows, level by level, where noisy counts are large enough. K-means on public
       points that are drawn in its cells gives centres; it reads no record.
    3. Each step moves all centres by the noisy mean of the differences of their records, clipped to a radius that a histogram of
       distances gives, and shrunk by the rule of James and Stein. So noise is in the units of a cluster, not of the table.
       Where there is signal enough, the first steps have twice the centres, and weighted k-means of these gives those of the
       last steps, which gets them out of local optima.
    4. The records of each centre of the last step are counted.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.

    Notes
    -----
    **Privacy.** Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the budget. Which
    there are, and their numbers, follow from public facts: a level of the tree is counted even if no cell has a large count.
    """

    name = "cluster_steps"
    title = "k-means by noisy steps relative to centres, which a noisy tree of cells starts"
    takes_weights: ClassVar[bool] = True

    n_clusters: int = 8

    def schedule(self, problem: Any) -> Schedule:
        """Return centre, lengths, moments, levels of the tree, distances, steps and counts, except those that noise hides."""
        check_integer("n_clusters", self.n_clusters, minimum=1, maximum=problem.planned.n_samples)
        return Stages(problem.planned).schedule

    def solve(self, problem: Any, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Make the releases; ``rng`` draws public points and starts of k-means on released ones."""
        stages = Stages(problem.planned)
        space = _space(problem, stages, ask, rng)
        cells = _cells(problem, stages, ask, space)
        start = _k_means(cells.points(rng, max(N_POINTS, 4 * stages.steps[0][0])), stages.steps[0][0], rng, N_STARTS)
        points = start @ space.axes.T + space.origin
        radius = _radius(problem, stages, ask, Centres(points, space.geometry))
        counts = np.ones(len(points))
        for n_centres, number, share in stages.steps:
            if n_centres < len(points):
                points = _k_means(points, n_centres, rng, N_STARTS_OF_CENTRES, counts)
            for _ in range(number):
                query = stages.step(Centres(points, space.geometry), radius)
                noise = problem.n_samples * mean_noise(problem, query, share / number)
                points, counts, spread = _moved(query, ask(query), noise, space)
        last = ClusterCounts(Centres(points, space.geometry))
        noise = problem.n_samples * mean_noise(problem, last, stages.shares["counts"])
        clusters = Clusters(counts=np.maximum(ask(last), 0.0), counts_noise=noise, noise=spread * space.radius)
        return SolverResult(space.outer(points).T, sum(number for _, number, _ in stages.steps), extra=clusters)

    def noise_level(self, problem: Any) -> float:
        """Return the signal below which one centre would do as well, over the signal."""
        return ONE_CENTRE / Stages(problem.planned).signal

    def noise_in_words(self, problem: Any) -> str:
        """Return the signal as a clause for the report."""
        signal = Stages(problem.planned).signal
        return f"the signal of a cluster is {signal:.3g} times the noise; below {ONE_CENTRE:g}, one centre would do as well"


@dataclass(frozen=True)
class Space:
    """Hold the coordinates of the records, and the box that cells divide; from releases and public facts.

    Parameters
    ----------
    problem : UnlabelledProblem
        Public facts.
    centre : ndarray of shape (n_features,)
        Centre of the rows, in the coordinates of z.
    radius : float
        Their radius, the unit of lengths.
    origin : ndarray of shape (n_features,)
        Middle of the box.
    axes : ndarray of shape (n_features, n_axes)
        Orthonormal axes of the box.
    box : ndarray of shape (n_axes,)
        Half of its width along them.
    """

    problem: UnlabelledProblem
    centre: np.ndarray
    radius: float
    origin: np.ndarray
    axes: np.ndarray
    box: np.ndarray

    @cached_property
    def geometry(self) -> Standardization:
        """The map of rows to the coordinates of the records."""
        return self.problem.geometry(self.centre, self.radius)

    def outer(self, points: np.ndarray) -> np.ndarray:
        """Return points in the coordinates of z, where no row is beyond [-1, 1]."""
        return np.asarray(np.clip(self.centre + self.radius * points, -1.0, 1.0))

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Return the nearest points that are not beyond [-1, 1] in the coordinates of z."""
        return np.asarray((self.outer(points) - self.centre) / self.radius)


@dataclass(frozen=True)
class Cells:
    """Hold the leaves of the tree, in the coordinates of the axes.

    Parameters
    ----------
    low, high : ndarray of shape (n_cells, n_axes)
        Ends of the cells.
    counts : ndarray of shape (n_cells,)
        Noisy numbers of their records, 0 where noise hides them.
    """

    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray

    def points(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Draw public points evenly in the cells, by their counts."""
        total = float(self.counts.sum())
        shares = self.counts / total if total > 0 else np.full(self.counts.size, 1 / self.counts.size)
        cells = rng.choice(self.counts.size, number, p=shares)
        return np.asarray(self.low[cells] + rng.random((number, self.low.shape[1])) * (self.high - self.low)[cells])


def _space(problem: UnlabelledProblem, stages: Stages, ask: Ask, rng: np.random.Generator) -> Space:
    """Ask for centre, lengths and moments, as far as they are released."""
    d, n, shares, k = problem.n_features, problem.n_samples, stages.shares, problem.loss.n_outputs
    centre, radius = np.zeros(d), problem.reach
    if stages.centred:
        centre = released_centre(problem, ask, shares["centre"])
        edges = ranges(problem.reach + float(np.linalg.norm(centre)), N_RANGES)
        lengths = ask(DistanceHistogram(problem.geometry(centre, 1.0), edges))
        radius = min(noisy_quantile(lengths, edges, LONG, n), LARGEST_RADIUS * problem.reach)
    if not stages.projected:
        axes = np.eye(d)[:, np.arange(d) if d <= PUBLIC_AXES else rng.permutation(d)[:PUBLIC_AXES]]
        side = min(radius, 1.5) if stages.centred else 1.0
        return Space(problem, centre, radius, np.zeros(d), axes, np.full(axes.shape[1], side / radius))
    spectrum = released_spectrum(problem, ask, centre, radius, shares["moments"])
    number = max(1, min(k, MOST_AXES, int((spectrum.values > ABOVE * spectrum.half).sum())))
    variances = deconvolved(spectrum.values, spectrum.half, 0.02)[:number]
    box = np.minimum(BOX * np.sqrt(np.maximum(variances, 0.02 / d)), 1.0)
    return Space(problem, centre, radius, spectrum.mean, spectrum.vectors[:number].T, box)


def _cells(problem: UnlabelledProblem, stages: Stages, ask: Ask, space: Space) -> Cells:
    """Count the records of the cells of a tree, level by level, and halve those with large counts."""
    n_levels = stages.n_levels
    coef = space.axes / space.box
    coef = space.geometry.to_rows(np.vstack([coef, -space.origin @ coef]))
    axes = _longest_sides(space.box, n_levels)
    low, high = -space.box[None], space.box[None]
    parents, counts, leaves = np.zeros(1, dtype=np.intp), np.array([float(problem.n_samples)]), []
    for level, axis in enumerate(axes):
        # 1. Both halves of each cell, across the longest side, which is that of all cells of the level.
        query = CellCounts(coef, axes, level, parents)
        halves = ask(query).reshape(-1, 2)
        noise = problem.n_samples * mean_noise(problem, query, stages.shares["cells"] / n_levels)
        # 2. The counts of both halves add up to that of the cell, whose noise is that of one of them but for the public first.
        halves = np.maximum(halves + (counts - halves.sum(axis=1))[:, None] / (3 if level else 2), 0.0)
        middle = (low + high)[:, axis] / 2
        low, high = np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0)
        high[::2, axis], low[1::2, axis] = middle, middle
        # 3. Cells with large counts go on, and the largest one if there is none; the others are leaves.
        counts, cells = halves.ravel(), np.column_stack([2 * parents, 2 * parents + 1]).ravel()
        last = level == n_levels - 1
        going = np.zeros(counts.size, dtype=bool) if last else counts >= min(THRESHOLD * noise, counts.max())
        leaves.append((low[~going], high[~going], np.where(counts > noise, counts, 0.0)[~going]))
        low, high, counts, parents = low[going], high[going], counts[going], cells[going]
    return Cells(*(np.concatenate(part) for part in zip(*leaves, strict=True)))


def _longest_sides(box: np.ndarray, n_levels: int) -> tuple[int, ...]:
    """Return the longest side of the cells of each level, which the next one halves."""
    widths, axes = box.copy(), []
    for _ in range(n_levels):
        axes.append(int(np.argmax(widths)))
        widths[axes[-1]] /= 2
    return tuple(axes)


def _radius(problem: UnlabelledProblem, stages: Stages, ask: Ask, centres: Centres) -> float:
    """Ask for the distances from centres, and return the radius to which differences are clipped."""
    if not stages.measured:
        return UNSEEN
    edges = ranges(2.0, N_RANGES)
    counts = ask(ClusterDistances(centres, edges))
    return min(max(noisy_quantile(counts, edges, FAR, problem.n_samples), LEAST_RADIUS), 1.0)


def _moved(query: ClusterSteps, answer: np.ndarray, noise: float, space: Space) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return centres after a step, the noisy counts, and the standard deviation of the noise of a coordinate of each step."""
    points = query.centres.points
    k, d = points.shape
    weight = query.radius * query.count_weight
    counts = answer[:k] / weight
    number, seen = np.maximum(counts, 1.0), counts > LEAST_COUNT * noise / weight
    step, spread = np.where(seen[:, None], answer[k:].reshape(k, d) / number[:, None], 0.0), noise / number
    # The part of a step in the space of the axes, in which centres lie apart, is shrunk alone.
    parts = [step @ space.axes @ space.axes.T] if space.axes.shape[1] < d else [step]
    parts += [step - parts[0]] if space.axes.shape[1] < d else []
    sizes = (space.axes.shape[1], d - space.axes.shape[1])
    moves = np.zeros(points.shape)
    for part, size in zip(parts, sizes, strict=False):
        factors = [james_stein(size, s**2, float(p @ p)) for s, p in zip(spread, part, strict=True)]
        moves += np.array(factors)[:, None] * part
    return space.inside(points + moves), np.maximum(counts, 0.0), np.where(seen, spread, 0.0)


def _k_means(
    points: np.ndarray, n_clusters: int, rng: np.random.Generator, n_starts: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the centres that scikit-learn's k-means finds for public or released points."""
    from sklearn.cluster import KMeans  # here, as it imports linear models, and the package is imported light

    weights = None if weights is None else np.maximum(weights, 1e-9)
    model = KMeans(n_clusters, n_init=n_starts, random_state=int(rng.integers(1 << 30)))
    with warnings.catch_warnings():  # that released points are equal is seen in the centres
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit(points, sample_weight=weights).cluster_centers_)
