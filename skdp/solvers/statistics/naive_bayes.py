"""Fit multinomial naive Bayes from one private release of the sums of each class."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.queries import ClassSums
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._standardization import mean_noise

# Pseudo-count of alpha="auto" over the noise of a sum, and the least one, which is scikit-learn's default. On reuters money-fx,
# the development table, .3, .5 and 1 gave .758 .754 .739 of AUC at epsilon .1 (replace_one), .923 .926 .925 at .5, .956 .963 .963
# at 1 and .977 .980 .979 at 3 (medians of 30 fits). On a9a, spambase and an image of mnist against the others, all in
# view, .5 is the best of the three, or within .003 of it, but on mnist at .1: .820 .843 .855.
NOISES, LEAST_ALPHA = 0.5, 1.0


@dataclass(eq=False, repr=False)
class NaiveBayes(Solver):
    r"""Multinomial naive Bayes from one release of counts and sums of the classes.

    With :math:`m_c` for the mean row of class c, m for that of all records, and a floor :math:`\tau`, the raw prediction of class
    c is

    .. math:: \log p_c + \sum_j x_j \frac{m_j}{m_j + \tau} \left[\ell(m_{cj} / \tau) - \log \sum_k (1 + m_{ck} / \tau)\right],

    where :math:`\ell(u)` is :math:`\log(1 + u)`, or u itself below 0.

    The floor is the pseudo-count ``alpha`` over the released count of the rarest class, the same for all classes: a pseudo-count
    per sum would give the words of frequent classes more weight. Without the factor, features that noise hides would add noise.

    Parameters
    ----------
    alpha : "auto" or float, default="auto"
        Pseudo-count of a sum of the rarest class. "auto" is half the standard deviation of the noise of a sum, at least 1.
    """

    name = "naive_bayes"
    title = "multinomial naive Bayes from one release of counts and sums of the classes"
    needs = frozenset({"classes", "plain", "pointwise"})

    alpha: "str | float" = "auto"

    def schedule(self, problem: Problem) -> Schedule:
        """Return the one release."""
        query = self._query(problem)
        return Schedule(((1, Release(ClassSums, Gaussian(), query.clip_norm, query.size)),))

    def noise_level(self, problem: Problem) -> float:
        """Return the noise of the share of a class over a half: sums of many words tell something even below their noise."""
        if not problem.budget.private:
            return 0.0
        return 2 * mean_noise(problem, self._query(problem), 1.0) / ClassSums.count_weight

    def remark(self, problem: Problem) -> str:
        """Return the noise of a sum and of a count, as a clause for the report."""
        if not problem.budget.private:
            return "no noise"
        noise = mean_noise(problem, self._query(problem), 1.0) * problem.n_samples
        return (
            f"the sum of a feature over the rows of a class, each of which adds at most 1, has noise of {noise:.3g}, and the "
            f"number of records of a class {noise / ClassSums.count_weight:.3g}"
        )

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Make the release and compute the model; ``rng`` is not used."""
        query = self._query(problem)
        counts, sums = query.parts(ask(query))
        noise = mean_noise(problem, query, 1.0) * problem.n_samples if problem.budget.private else 0.0
        shares = _shares(counts, noise / query.count_weight, problem.n_samples)
        sizes = shares * problem.n_samples
        alpha = max(NOISES * noise, LEAST_ALPHA) if isinstance(self.alpha, str) else float(self.alpha)
        floor = alpha / float(sizes.min())
        pooled = np.maximum(sums.sum(axis=0), 0.0) / problem.n_samples
        means = sums / sizes[:, None] / floor
        totals = np.log(np.maximum(means.sum(axis=1) + problem.n_features, 1.0))
        scores = pooled / (pooled + floor) * (_log1p(means) - totals[:, None]) / problem.data_norm
        raw = np.column_stack([scores, np.log(shares) / problem.intercept_scaling])
        return SolverResult((raw if problem.loss.n_outputs > 1 else raw[1:] - raw[:1]).T, None)

    def _query(self, problem: Problem) -> ClassSums:
        return ClassSums(problem.data_norm, problem.n_features, max(problem.loss.n_outputs, 2))


def _shares(counts: np.ndarray, noise: float, n_samples: int) -> np.ndarray:
    """Return the shares of the classes, none of which is rarer than one record or half the noise of a count."""
    counts = counts + (n_samples - counts.sum()) / counts.size  # all counts add up to the public number
    least = min(max(1.0, noise / 2), n_samples / (2 * counts.size))
    shares = np.maximum(counts, least)
    return np.asarray(shares / math.fsum(shares))


def _log1p(u: np.ndarray) -> np.ndarray:
    """Return ``log(1 + u)``, and u itself below 0, where noise alone leads."""
    return np.log1p(np.maximum(u, 0.0)) + np.minimum(u, 0.0)
