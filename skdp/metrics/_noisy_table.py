"""Compute metrics and their confidence intervals from noisy counts of test records by class and log-odds: post-processing."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri

# Widest interval with which a number is published. A wider one says so little that the number would mislead. A choice.
WIDEST = 0.5

# Least share of the variance of Hanley and McNeil that counts for the AUC: the released table can look surer than it is. From
# simulations, where coverage was .915 to .973 with it.
LEAST_OF_HANLEY = 0.5
GRID = np.linspace(0.0, 1.0, 4001)  # of values of the AUC that an interval may hold
# Standard deviations of noise from which the number of records among which a share is taken counts as found. At fewer, noise
# makes an interval look narrow by chance: of those of an AUC of 10 positive records that were below 0.5, a quarter covered.
FOUND = 5.0
# The same for the average precision, which depends on a few records with large scores: at 9 to 18 standard deviations its
# intervals covered in 66 to 96 % of simulations, from 35 on in 92 to 98 %.
FOUND_PRECISION = 20.0
# Largest error of an extrapolation, as a share of the correction that it makes. A choice: a half covered in more than 99 % of
# simulations with many records, none in fewer than 93 % with few.
SLACK = 0.25
# Number of simulations that estimate the bias of the average precision. A choice, which leaves a fifth of its standard deviation.
DRAWS = 25


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Hold an unbiased estimate of the counts by class and range of the log-odds, and the covariance of its noise.

    Parameters
    ----------
    counts : ndarray of shape (2, k)
        Estimated counts of the first and of the second class, by increasing log-odds; some may be negative.
    covariance : ndarray of shape (2 k, 2 k)
        Covariance of their noise.
    edges : ndarray of shape (k + 1,)
        Log-odds at the ends of the ranges.
    n_samples : int
        Public number of test records; of a group, an estimate of its size.
    parts : tuple of NoisyTable
        The tables of the groups, if there are any.
    of_group : bool
        Whether this is the table of a group, whose size is not public.
    """

    counts: np.ndarray
    covariance: np.ndarray
    edges: np.ndarray
    n_samples: float
    parts: tuple["NoisyTable", ...] = ()
    of_group: bool = False

    @classmethod
    def from_coefficients(
        cls, answer: np.ndarray, matrix: np.ndarray, noise: float, edges: np.ndarray, n_samples: int, n_groups: int = 1
    ) -> "NoisyTable":
        """Return the table that fits noisy coefficients of the counts and the public number of records best.

        Parameters
        ----------
        answer : ndarray of shape (2 k n_groups,)
            Noisy coefficients, by group and class.
        matrix : ndarray of shape (k, k)
            Maps the counts of a class to its coefficients.
        noise : float
            Standard deviation of the noise of each coefficient.
        edges : ndarray of shape (k + 1,)
            Log-odds at the ends of the ranges.
        n_samples : int
            Number of records.
        n_groups : int, default=1
            Number of groups.

        Returns
        -------
        NoisyTable
            The table of all records, with those of the groups if there is more than one.
        """
        inverse = np.linalg.inv(matrix)
        # Least squares under a constraint: all counts add up to n. What they lack is divided in proportion to the covariance of
        # each with their sum, and the covariance falls by its part along that sum.
        one = noise**2 * inverse @ inverse.T
        counts = answer.reshape(n_groups, 2, -1) @ inverse.T
        direction, total = np.tile(one.sum(axis=1), 2), 2 * n_groups * float(one.sum())
        fall = np.zeros((direction.size, direction.size))  # of the covariance of a group, as the number of records is public
        if noise > 0:
            counts = counts + (n_samples - counts.sum()) * direction.reshape(2, -1) / total
            fall = np.outer(direction, direction) / total
        of_one = np.kron(np.eye(2), one)
        parts = [cls(part, of_one - fall, edges, max(float(part.sum()), 4.0), of_group=True) for part in counts]
        covariance = n_groups * of_one - n_groups**2 * fall
        return cls(counts.sum(axis=0), covariance, edges, n_samples, tuple(parts) if n_groups > 1 else ())

    @property
    def middles(self) -> np.ndarray:
        """Log-odds in the middle of each range, of shape (k,)."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def predicted(self) -> np.ndarray:
        """Whether a class is predicted in a column of the counts, of shape (n_classes, k)."""
        above = (self.edges[:-1] >= 0).astype(float)
        return np.stack([1 - above, above])

    def cells(self, true: int | None = None, predicted: int | None = None) -> np.ndarray:
        """Return the weights that select the counts of a true class, and of a predicted one; None selects all.

        Parameters
        ----------
        true, predicted : int or None, default=None
            Numbers of classes.

        Returns
        -------
        ndarray of the shape of the counts
            1 for the counts that are selected, and 0 for others.
        """
        rows = np.ones(len(self.counts)) if true is None else np.eye(len(self.counts))[true]
        return np.outer(rows, self.predicted.sum(axis=0) if predicted is None else self.predicted[predicted])

    def smooth(self) -> np.ndarray:
        """Return the nearest counts that are not negative, of shape (2, k); for variances only, as they are biased."""
        return self._nearest(self.counts.ravel()[None])[0]

    def _nearest(self, counts: np.ndarray) -> np.ndarray:
        """Return the nearest tables that are not negative and have the public sum, of shape (m, 2, k), given m rows of counts.

        Nearest is by the variance v of each count: the solution is the positive part of ``counts - t v``, with the t that gives
        the sum. The counts that stay positive are those with the largest ratios to v.
        """
        variances = np.broadcast_to(np.maximum(np.diag(self.covariance), 1e-12), counts.shape)
        order = np.argsort(-counts / variances, axis=1)
        sorted_counts, sorted_variances = (np.take_along_axis(one, order, axis=1) for one in (counts, variances))
        t = (np.cumsum(sorted_counts, axis=1) - self.n_samples) / np.cumsum(sorted_variances, axis=1)
        last = counts.shape[1] - 1 - np.argmax((sorted_counts > t * sorted_variances)[:, ::-1], axis=1)
        found = np.maximum(counts - t[np.arange(len(t)), last][:, None] * variances, 0.0)
        return np.asarray(found.reshape(len(counts), *self.counts.shape))

    def mean_loss(self, loss: Callable[[np.ndarray], np.ndarray], level: float) -> tuple[float, float, float]:
        """Return the mean of a function of class and log-odds, extrapolated from pairs of ranges, with a confidence interval.

        The loss in the middle of a range is off by the square of its width, so that in the middle of a pair it is off by four
        times as much.

        Parameters
        ----------
        loss : callable
            Maps log-odds of shape (k,) to losses of shape (2, k).
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end.
        """
        ends = self.edges[::2]
        near, far = loss(self.middles), np.repeat(loss((ends[1:] + ends[:-1]) / 2), 2, axis=1)
        value, low, high = self.mean((4 * near - far) / 3, level)
        slack = SLACK * abs(float(((near - far) * self.smooth()).sum())) / 3 / self.n_samples
        return value, low - slack, high + slack

    def mean(self, losses: np.ndarray, level: float) -> tuple[float, float, float]:
        """Return the mean of a loss over the records, with a confidence interval.

        Parameters
        ----------
        losses : ndarray of shape (2, k)
            Loss of a record of each class and range.
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end. The interval covers the noise and the sampling of the test records.
        """
        if self.of_group:
            return self._mean_of_group(losses, level)
        weights, smooth = losses.ravel() / self.n_samples, self.smooth()
        estimate = float(weights @ self.counts.ravel())
        # Variance of a mean of n losses, from the smoothed table, plus that of the noise.
        centre = float((losses * smooth).sum()) / self.n_samples
        sampling = max(float((losses**2 * smooth).sum()) / self.n_samples - centre**2, 0.0) / self.n_samples
        half = float(ndtri((1 + level) / 2)) * math.sqrt(sampling + max(float(weights @ self.covariance @ weights), 0.0))
        return estimate, estimate - half, estimate + half

    def _mean_of_group(self, losses: np.ndarray, level: float) -> tuple[float, float, float]:
        """Return the mean of a loss with Fieller's interval, as the number of records is not public."""
        a, b, x = losses.ravel(), np.ones(losses.size), self.counts.ravel()
        top, bottom, smooth, q2 = float(a @ x), float(b @ x), self.smooth().ravel(), float(ndtri((1 + level) / 2)) ** 2
        aa, ab, bb = (float(u @ self.covariance @ v + u * v @ smooth) for u, v in ((a, a), (a, b), (b, b)))
        # Fieller: r is in the interval if (top - r bottom)^2 <= q^2 Var(top - r bottom), a quadratic inequality in r.
        square, slope, constant = bottom**2 - q2 * bb, -2 * (top * bottom - q2 * ab), top**2 - q2 * aa
        root = slope**2 - 4 * square * constant
        if square <= 0 or root < 0 or not self._found(b):
            return math.nan, 0.0, math.inf
        low, high = ((-slope + sign * math.sqrt(root)) / (2 * square) for sign in (-1, 1))
        return top / bottom, low, high

    def _found(self, weights: np.ndarray, least: float = FOUND) -> bool:
        """Return whether a number of records is far enough above its noise, in standard deviations."""
        noise = max(float(weights @ self.covariance @ weights), 0.0)
        return float(weights @ self.counts.ravel()) > least * math.sqrt(noise)

    def ratio(self, numerator: np.ndarray, denominator: np.ndarray, level: float) -> tuple[float, float, float]:
        """Return a share of some records, with Fieller's confidence interval.

        Parameters
        ----------
        numerator, denominator : ndarray of shape (2, k)
            Weights of the records that count, and of those among which they count.
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end, all in [0, 1].
        """
        a, b, x = numerator.ravel(), denominator.ravel(), self.counts.ravel()
        top, bottom, size = float(a @ x), float(b @ x), max(float(b @ self.smooth().ravel()), 1.0)
        q2 = float(ndtri((1 + level) / 2)) ** 2
        value = float(np.clip(top / bottom, 0.0, 1.0)) if bottom > 0 else math.nan
        if not self._found(b):
            return value, 0.0, 1.0
        aa, ab, bb = (float(u @ self.covariance @ v) for u, v in ((a, a), (a, b), (b, b)))
        # Fieller with sampling: among `size` records a share r has the variance size r (1 - r), which is added to that of the
        # noise.
        square, slope, constant = (
            bottom**2 - q2 * (bb - size),
            -2 * top * bottom + q2 * (2 * ab - size),
            top**2 - q2 * aa,
        )
        inside = square * GRID**2 + slope * GRID + constant <= 0
        ends = [r for r in (0.0, 1.0) if square * r * r + slope * r + constant <= 0]
        root = slope**2 - 4 * square * constant
        if root >= 0 and square:
            ends += [r for sign in (-1, 1) if 0 <= (r := (-slope + sign * math.sqrt(root)) / (2 * square)) <= 1]
        low, high = (min(ends), max(ends)) if ends and (inside.any() or len(ends) > 1) else (0.0, 1.0)
        return value, low, high

    def confusion_matrix(self, level: float, normalize: str | None = None) -> np.ndarray:
        """Return the confusion matrix, of two classes at the probability 1/2, with confidence intervals.

        Parameters
        ----------
        level : float
            Coverage of each interval.
        normalize : {"true", "pred", "all"} or None, default=None
            Whether to return shares of the true classes, of the predicted classes or of all records; None for numbers of records.

        Returns
        -------
        ndarray of shape (n_classes, n_classes, 3)
            Estimate, lower and upper end by true and predicted class. An estimate is nan if its interval is wider than half of
            what it is a share of.
        """
        n_classes, counted = len(self.counts), normalize is None and self.of_group
        found = np.empty((n_classes, n_classes, 3))
        for i, j in np.ndindex(n_classes, n_classes):
            cell = self.cells(i, j)
            if normalize in ("true", "pred"):
                found[i, j] = self.ratio(cell, self.cells(i) if normalize == "true" else self.cells(predicted=j), level)
            else:
                found[i, j] = np.clip(self._share_of_size(cell, level) if counted else self.mean(cell, level), 0.0, 1.0)
        wide = found[:, :, 2] - found[:, :, 1] > WIDEST
        found[wide] = math.nan, 0.0, 1.0
        return found * (self.n_samples if normalize is None else 1)

    def _share_of_size(self, cell: np.ndarray, level: float) -> tuple[float, float, float]:
        """Return the records of a cell over the estimated size of the group, with the interval of their number alone."""
        number, noise = float(cell.ravel() @ self.counts.ravel()), float(cell.ravel() @ self.covariance @ cell.ravel())
        half = float(ndtri((1 + level) / 2)) * math.sqrt(max(noise, 0.0) + float((cell * self.smooth()).sum()))
        return number / self.n_samples, (number - half) / self.n_samples, (number + half) / self.n_samples

    def auc_estimate(self) -> tuple[float, float]:
        """Return the area under the ROC curve with ties within a range counted half, and the correction by extrapolation.

        Returns
        -------
        tuple of float
            Estimate without extrapolation from pairs of ranges, and the difference.
        """
        smooth, half = self.smooth(), self.covariance.shape[0] // 2
        across, order = self.covariance[half:, :half], _order(half)
        wins, pairs = float(self.counts[1] @ order @ self.counts[0]), float(self.counts[1].sum() * self.counts[0].sum())
        found = (wins - float(np.sum(across * order))) / max(pairs - float(across.sum()), 1.0)
        return found, (_auc(smooth) - _auc(_in_pairs(smooth))) / 3

    def auc(self, level: float) -> tuple[float, float, float]:
        """Return the area under the ROC curve, with Fieller's confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end, all in [0, 1]. Ties within a range are extrapolated from pairs of ranges.
        """
        smooth, half = self.smooth(), self.covariance.shape[0] // 2
        zeros, ones = self.covariance[:half, :half], self.covariance[half:, half:]
        across = self.covariance[half:, :half]
        order, every = _order(half), np.ones((half, half))
        positives = float(np.clip(smooth[1].sum(), 2.0, self.n_samples - 2.0))
        negatives = self.n_samples - positives
        wins, pairs = float(self.counts[1] @ order @ self.counts[0]), float(self.counts[1].sum() * self.counts[0].sum())

        def moment(one: np.ndarray, other: np.ndarray) -> float:
            return float(np.sum((ones @ one) * (other @ zeros)) + np.sum((one @ across.T) * (across @ other.T)))

        # AUC = wins / pairs, both bilinear in the counts. For each value of the grid: variance of wins - value * pairs by the
        # noise, first order (slopes) and second order (`moment`), its bias, and the variance from sampling.
        of_wins = np.concatenate([smooth[1] @ order, order @ smooth[0]])
        of_pairs = np.concatenate([np.full(half, positives), np.full(half, negatives)])
        first = [float(u @ self.covariance @ v) for u, v in ((of_wins, of_wins), (of_wins, of_pairs), (of_pairs, of_pairs))]
        second = [moment(order, order), moment(order, every), moment(every, every)]
        noise = (first[0] + second[0]) - 2 * GRID * (first[1] + second[1]) + GRID**2 * (first[2] + second[2])
        bias = float(np.sum(across * order)) - GRID * float(np.sum(across * every))
        sampling = np.maximum(_delong(smooth, order), LEAST_OF_HANLEY * _hanley(GRID, positives, negatives))
        allowed = float(ndtri((1 + level) / 2)) ** 2 * (np.maximum(noise, 0.0) + (positives * negatives) ** 2 * sampling)
        # Fieller on the grid: the interval holds all values that are not beyond.
        beyond = (wins - GRID * pairs - bias) ** 2 - allowed
        inside = np.flatnonzero(beyond <= 0)
        found, shift = self.auc_estimate()
        of_class = np.repeat(np.eye(2), half, axis=1)
        if not inside.size or not all(self._found(one) for one in of_class):
            return _in_range(found + shift), 0.0, 1.0
        low, high, slack = _crossing(beyond, inside[0], -1), _crossing(beyond, inside[-1], 1), SLACK * abs(shift)
        return _in_range(found + shift), _in_range(low + shift - slack), _in_range(high + shift + slack)

    def average_precision(self, level: float) -> tuple[float, float, float]:
        """Return the average precision of the second class, with a confidence interval by the delta method on the logit.

        It is that of the nearest counts that are not negative. The noise of such counts is biased; simulations estimate the bias,
        and the estimate is corrected by it. The variance of the noise is the mean of that of the simulation, which is too small,
        and that of the delta method, which is too large.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end, all in [0, 1].
        """
        smooth, positive = self.smooth(), np.repeat([0.0, 1.0], len(self.middles))
        if not self._found(positive, FOUND_PRECISION):
            return _in_range(_average_precision(smooth)), 0.0, 1.0
        value, slopes, of_counts = _average_precision(smooth), _slopes(_average_precision, smooth), smooth.ravel()
        variance = max(float(slopes**2 @ of_counts) - float(slopes @ of_counts) ** 2 / self.n_samples, 0.0)
        slack, bias = SLACK * abs(value - _area_of_precision(smooth)), 0.0
        if (noise := float(slopes @ self.covariance @ slopes)) > 0:
            rng = np.random.default_rng(0)  # this is post-processing: its seed may be known
            draws = rng.multivariate_normal(of_counts, self.covariance, DRAWS, method="eigh")
            moved = [_average_precision(draw) for draw in self._nearest(draws)]
            bias, variance = float(np.mean(moved)) - value, variance + (noise + float(np.var(moved))) / 2
        value = _in_range(value - bias)
        centre = min(max(value, 1e-3), 1 - 1e-3)
        half = float(ndtri((1 + level) / 2)) * math.sqrt(variance) / (centre * (1 - centre))
        low, high = (float(expit(logit(centre) + sign * half)) for sign in (-1, 1))
        return value, min(_in_range(low - slack), value), max(_in_range(high + slack), value)


class NoisyMatrix(NoisyTable):
    """Hold an unbiased estimate of the counts by true and predicted class, and the covariance of its noise."""

    @classmethod
    def from_counts(cls, answer: np.ndarray, noise: float, n_samples: int) -> "NoisyMatrix":
        """Return the matrix that fits noisy counts, of shape (n_classes**2,), and the public number of records best."""
        size = round(answer.size**0.5)
        counts = answer + (n_samples - answer.sum()) / answer.size
        covariance = noise**2 * (np.eye(answer.size) - 1 / answer.size)
        return cls(counts.reshape(size, size), covariance, np.zeros(0), n_samples)

    @property
    def predicted(self) -> np.ndarray:
        """Whether a class is predicted in a column of the counts: the identity."""
        return np.eye(len(self.counts))

    def smooth(self) -> np.ndarray:
        """Return the nearest counts that are not negative and have the same sum; for variances only, as they are biased."""
        falling = np.sort(self.counts.ravel())[::-1]
        excess = (np.cumsum(falling) - self.n_samples) / np.arange(1, falling.size + 1)
        return np.maximum(self.counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def _average_precision(counts: np.ndarray) -> float:
    """Return the average precision, with the records of a range in random order, extrapolated from pairs of ranges."""
    return (4 * _area_of_precision(counts) - _area_of_precision(_in_pairs(counts))) / 3


def _area_of_precision(counts: np.ndarray) -> float:
    """Return the mean precision over the positive records, of counts that are not negative.

    At the fraction t of a range, precision is ``(a + t p) / (m + t r)`` with the positive and all records above the range, a and
    m, and those in it, p and r. Its integral is closed.
    """
    positive, every = counts[1, ::-1], counts.sum(axis=0)[::-1]
    above, all_above = np.cumsum(positive) - positive, np.cumsum(every) - every
    some = every > 1e-9
    p, r, a, m = positive[some], every[some], above[some], all_above[some]
    rest = np.where(m > 1e-9, (a - m * p / r) * np.log1p(r / np.maximum(m, 1e-9)) / r, 0.0)
    return float(p @ (p / r + rest) / max(float(positive.sum()), 1e-9))


def _crossing(beyond: np.ndarray, place: int, step: int) -> float:
    """Return where the grid leaves the interval, between a value inside and the next one outside."""
    other = place + step
    if not 0 <= other < GRID.size:
        return float(GRID[place])
    share = -beyond[place] / (beyond[other] - beyond[place])
    return float(GRID[place] + share * (GRID[other] - GRID[place]))


def _slopes(function: Callable[[np.ndarray], float], counts: np.ndarray) -> np.ndarray:
    """Return the derivatives of a function of counts."""
    start, found = function(counts), np.empty(counts.size)
    for place in range(counts.size):
        moved = counts.copy()
        step = max(1e-3 * moved.flat[place], 0.05)
        moved.flat[place] += step
        found[place] = (function(moved) - start) / step
    return found


def _in_range(value: float) -> float:
    return float(np.clip(value, 0.0, 1.0))


def _order(size: int) -> np.ndarray:
    """Return whether a range is above another one, one half for the same, of shape (size, size)."""
    return np.tril(np.ones((size, size)), -1) + np.eye(size) / 2


def _auc(counts: np.ndarray) -> float:
    wins = counts[1] @ (np.cumsum(counts[0]) - counts[0] / 2)
    return float(wins / max(counts[0].sum() * counts[1].sum(), 1e-9))


def _in_pairs(counts: np.ndarray) -> np.ndarray:
    return np.asarray(counts.reshape(2, -1, 2).sum(axis=2))


def _delong(counts: np.ndarray, order: np.ndarray) -> float:
    """Sampling variance of the AUC by placements (DeLong et al.)."""
    negatives, positives = np.maximum(counts.sum(axis=1), 2.0)
    of_positives, of_negatives = order @ counts[0] / negatives, counts[1] @ order / positives
    auc = float(counts[1] @ of_positives) / positives
    return float((counts[1] @ (of_positives - auc) ** 2) / positives**2 + (counts[0] @ (of_negatives - auc) ** 2) / negatives**2)


def _hanley(auc: np.ndarray, positives: float, negatives: float) -> np.ndarray:
    """Sampling variance of the AUC by Hanley and McNeil (1982)."""
    one, other = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    return np.asarray(
        (auc * (1 - auc) + (positives - 1) * (one - auc**2) + (negatives - 1) * (other - auc**2)) / (positives * negatives)
    )
