"""Calibrate a score from one release of counts by class and score, by Bayesian post-processing: for small tables."""

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr

# All constants were chosen on subsets of 300 to 3000 records of adult, ijcnn1, mammography and spambase, and on a table of breast
# cancer (docs/defaults.md).

# Signal-to-noise ratio below which there are counts. At 27 to 110 they had a lower log loss than clipped gradients of slope and
# offset, and at 236 a higher one, because scores are not normal.
COUNTED = 150.0

# First score of each range but the first, in hundredths of `ScoreCounts`' units, and the edges between the ranges. Four sizes on
# either side, because where noise hides the scale of the features, the size of the score is known to a factor of 16 only. A
# choice; sizes up to 64 times smaller changed the mean accuracy by .003.
CUTS = (-200, -50, -12, 0, 12, 50, 200)
EDGES = np.concatenate([[-np.inf], (np.array(CUTS) - 0.5) / 100, [np.inf]])
# A score of one standard deviation, by the released variances, in those units.
UNIT = 2.0
# Largest share of the squared Gaussian-DP parameter for the counts, which else is one over the root of the signal-to-noise ratio:
# at 27 a share of .25 in place of .05 had a third of the excess log loss, and .01 less AUC; at 77 all that helped was .1.
MOST_FOR_COUNTS = 0.2
# Grid of the posterior: standard deviation within a class over `UNIT`, centre and distance of the classes over that standard
# deviation, log-odds of the second class. Choices that reach beyond what a released score has shown.
WITHIN, CENTRES = 2.0 ** np.arange(-6, 1.01, 0.5), np.arange(-1.5, 1.51, 0.5)
DISTANCES, LOG_ODDS = np.array([0.0, 0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0, 4.0]), np.arange(-5, 5.01, 0.25)
# Prior: normal centres with this standard deviation, and exponential distances with this mean for classes of the same size. For
# others the mean falls with p (1 - p), as the gradients do from which the score was learned.
CENTRE_SPREAD, MEAN_DISTANCE = 1.0, 1.5
# Points of the posterior below this share of the largest one are left out.
NEGLIGIBLE = 1e-4
# Means of a class over the standard deviation, from the least to the greatest of the grid; others are divided between two of
# them, which adds at most 6e-4 to the variance of 1.
MEANS = np.linspace(-5.5, 5.5, 221)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Number of scores of a class over which the log loss is averaged. With all of up to 400 000, slope and offset differed by at most
# 6e-4 of their size in 40 made-up cases.
MOST_SCORES = 2000
MOST_STEPS, LONGEST_STEP, SETTLED = 50, 2.0, 1e-9  # of Newton's method


def share_of_counts(signal_to_noise: float) -> float:
    """Return the share of the squared Gaussian-DP parameter for the counts, from public facts."""
    return min(MOST_FOR_COUNTS, 1 / math.sqrt(signal_to_noise))


def calibrated_line(
    shares: np.ndarray,
    noise: float,
    n_samples: int,
    difference: tuple[float, float],
    class_weight: tuple[float, ...] | None = None,
    *,
    penalty: float = 0.0,
    intercept: bool = True,
) -> tuple[float, float, float]:
    """Return slope and offset with the least expected log loss, and the posterior variance of the slope.

    The scores of each class count as normal with one variance. Variance, centre, distance of the classes and class frequencies
    have a prior. The noise of the releases is known, which gives the posterior on a grid. The log loss of a line is averaged over
    the posterior and over the scores.

    Parameters
    ----------
    shares : ndarray of shape (2, 8)
        Released counts by class and range between ``EDGES``, over n.
    noise : float
        Standard deviation of their noise.
    n_samples : int
        Number of records.
    difference : tuple of float
        Released frequency of the second class less that of the first, and the standard deviation of its noise.
    class_weight : tuple of float or None, default=None
        Factor of each record's loss.
    penalty : float, default=0.0
        Strength of an L2 penalty on the slope.
    intercept : bool, default=True
        Whether there is an offset.

    Returns
    -------
    tuple of float
        Slope and offset, for scores in the units of ``EDGES``, and the variance of the slope.
    """
    grid = _Grid.of_constants()
    distance, rate = grid.distance, grid.rate
    with np.errstate(under="ignore"):  # densities far from the mode
        # 1. Posterior density on the grid, as a logarithm. The released difference of the frequencies has the variance of its
        # noise and that of n records.
        rates = rate[: LOG_ODDS.size]  # the last axis of the grid
        spread = difference[1] ** 2 + 4 * rates * (1 - rates) / n_samples
        missed = (difference[0] - (2 * rates - 1)) ** 2 / spread + np.log(spread)
        log_density = (grid.log_prior.reshape(-1, rates.size) - missed / 2).ravel()
        # Each of the 16 counts adds at most -log(noise). So points that are negligible even with that are left out, which the
        # points of the likeliest frequency tell.
        likely = np.arange(np.argmin(missed), rate.size, rates.size)
        least = float(grid.with_counts(log_density, likely, shares, noise, n_samples).max()) + math.log(NEGLIGIBLE)
        kept = np.flatnonzero(~(log_density < least + shares.size * math.log(max(noise, 1e-300)) - 1e-6))
        log_density = grid.with_counts(log_density, kept, shares, noise, n_samples)
        log_density -= log_density.max()
        # 2. Scores of each class under the posterior: at every grid point that counts normal ones, by quadrature. Their masses
        # are divided between fixed places, and thinned, so that there are not too many.
        large = np.flatnonzero(log_density > math.log(NEGLIGIBLE))
        kept, density = kept[large], np.exp(log_density[large])
        density, within, rate = density / density.sum(), grid.within[kept], rate[kept]
        scores, masses = zip(
            *(
                _thinned(*_with_nodes(places[kept], density * share))
                for places, share in zip(grid.places, (1 - rate, rate), strict=True)
            ),
            strict=True,
        )
        weights = np.concatenate([mass * w for mass, w in zip(masses, class_weight or (1.0, 1.0), strict=True)])
        # 3. Slope and offset with the least mean log loss over these scores.
        labels = np.repeat((0.0, 1.0), [len(s) for s in scores])
        slope, offset = _least_log_loss(np.concatenate(scores), labels, weights, penalty, intercept)
        # The slope of the log-odds of two normal classes is their distance over the variance, here in units of `within`.
        slopes = distance[kept] / within
        mean = float(density @ slopes)
        return slope, offset, float(density @ (slopes - mean) ** 2)


@dataclass(frozen=True)
class _Grid:
    """Points of the posterior, and what depends on them alone.

    Parameters
    ----------
    within, distance, rate, log_prior : ndarray of shape (n_points,)
        Standard deviation of the scores of a class, distance of the classes over it, frequency of the second class, and logarithm
        of the prior density.
    places : tuple of ndarray of shape (n_points,)
        For each class, the mean score over the standard deviation as a place in ``MEANS``, in the row of the standard deviation.
    expected : ndarray of shape (16, n_points)
        Expected share of the records in each range, of the first class and then of the second.
    """

    within: np.ndarray
    distance: np.ndarray
    rate: np.ndarray
    log_prior: np.ndarray
    places: tuple[np.ndarray, np.ndarray]
    expected: np.ndarray

    @classmethod
    @functools.cache
    def of_constants(cls) -> "_Grid":
        """Return the grid, which is the same for all tables."""
        points = np.meshgrid(UNIT * WITHIN, CENTRES, DISTANCES, expit(LOG_ODDS), indexing="ij")
        within, centre, distance, rate = (axis.ravel() for axis in points)
        # Means of the two classes over `within`: their distance is `distance`, and their weighted mean is `centre`.
        means = centre - rate * distance, centre + (1 - rate) * distance
        with np.errstate(under="ignore"):
            expected = np.concatenate(
                [
                    frequency * np.diff(ndtr(EDGES[:, None] / within - mean), axis=0)
                    for mean, frequency in zip(means, (1 - rate, rate), strict=True)
                ]
            )
        # Each standard deviation has a row of places, one for each mean in `MEANS`; a mean between two of them has a broken
        # place.
        rows = np.repeat(np.arange(WITHIN.size), within.size // WITHIN.size) * MEANS.size
        places = tuple(rows + (mean - MEANS[0]) / (MEANS[1] - MEANS[0]) for mean in means)
        log_prior = -distance / (MEAN_DISTANCE * 4 * rate * (1 - rate)) - (centre / CENTRE_SPREAD) ** 2 / 2
        return cls(within, distance, rate, log_prior, places, expected)

    def with_counts(
        self, log_density: np.ndarray, points: np.ndarray, shares: np.ndarray, noise: float, n_samples: int
    ) -> np.ndarray:
        """Return the logarithm of the density at some points with the released counts.

        Each count has the variance of its noise and that of n records, whose expected share is that of the point. The determinant
        is a product of 16 variances, so that one logarithm is enough.
        """
        log_density, determinant = log_density[points], np.ones(points.size)
        for observed, expected in zip(shares.ravel(), self.expected, strict=True):  # a range at a time fits into the cache
            expected = expected[points]
            variance = expected / n_samples
            variance += noise**2
            determinant *= variance
            missed = observed - expected
            missed *= missed
            missed /= variance
            log_density -= missed / 2
        log_density -= np.log(determinant) / 2
        return log_density


def _with_nodes(places: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of normal distributions at places of the grid of means, by quadrature, and their masses."""
    masses = _divided(places, masses, WITHIN.size * MEANS.size)
    there = np.flatnonzero(masses)
    row, column = np.divmod(there, MEANS.size)
    scores = UNIT * WITHIN[row, None] * (MEANS[column, None] + NODES)
    return scores.ravel(), (masses[there, None] * WEIGHTS).ravel()


def _thinned(scores: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``MOST_SCORES`` scores, even from the first to the last, and masses with the same total and mean."""
    if len(scores) <= MOST_SCORES:
        return scores, masses
    even = np.linspace(scores.min(), scores.max(), MOST_SCORES)
    return even, _divided((scores - even[0]) / (even[1] - even[0]), masses, MOST_SCORES)


def _divided(places: np.ndarray, masses: np.ndarray, size: int) -> np.ndarray:
    """Divide masses at places from 0 to size - 1 between the whole numbers on either side, so that the means stay."""
    first = np.minimum(places.astype(np.intp), size - 2)
    above = masses * (places - first)
    found = np.bincount(first, masses - above, size)
    found[1:] += np.bincount(first, above, size)[:-1]
    return found


def _least_log_loss(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, penalty: float, intercept: bool
) -> tuple[float, float]:
    """Return the slope and offset of a logistic regression on weighted scores, by Newton's method."""
    unit = float(np.sqrt(weights @ scores**2 / weights.sum()))
    columns = np.column_stack([scores / unit, np.full(len(scores), float(intercept))])
    ridge = np.array([penalty / unit**2, 0.0]) + 1e-9
    line = np.array([0.0, logit(weights @ labels / weights.sum()) if intercept else 0.0])
    for _ in range(MOST_STEPS):
        p = expit(columns @ line)
        gradient = columns.T @ (weights * (p - labels)) + ridge * line
        bend = (columns * (weights * p * (1 - p))[:, None]).T @ columns + np.diag(ridge)
        # A Newton step, cut so that it cannot leave where the classes are nearly separated.
        step = np.linalg.solve(bend, gradient)
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        line = line - step
        if float(np.abs(step).max()) < SETTLED:
            break
    return float(line[0] / unit), float(line[1])
