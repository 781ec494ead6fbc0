"""Fit a linear discriminant from one private release of the moments of both classes: the optimum of the AUC saddle."""

import copy
import math
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from skdp._validation import check_number, check_option
from skdp.privacy.queries import ClassMoments, Standardization
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._class_frequencies import public_rate
from skdp.solvers._standardization import Standard, mean_noise, moments, moments_release, outer_coefficients, standard
from skdp.solvers.adaptive._shrinkage import deconvolved, half_edge, posterior_factors

# Largest number of features: matrices with its square are released. A choice; it is that of "whitened_gd".
MOST_FEATURES = 1024
# Largest value that is accepted for `floor`. A choice.
LARGEST_FLOOR = 1e6
COVARIANCES = ("balanced", "pooled")
# Least squared clip norm of standardised rows, whose largest variance is at most 1. A choice, for features that are all noise.
LEAST_RADIUS = 0.1
# Least trace of the second moment of rows clipped to their usual norm. A choice; half of the least trace in "whitened_gd".
LEAST_TRACE = 0.35
# Least eigenvalue over the largest one. A choice: float64 solves systems with larger ones.
SINGULAR = 1e-12
# Prior variance over the largest one where the rule of empirical Bayes shrinks everything to 0: the coefficients then have the
# direction of the mean difference. A choice; any small number gives that direction.
FAINT_PRIOR = 1e-7


@dataclass(frozen=True)
class ClassEstimates:
    """Estimates per class from the joint release.

    Parameters
    ----------
    shares : ndarray of shape (2,)
        Frequencies of the classes.
    means : ndarray of shape (2, n_features)
        Means of standardised, clipped rows.
    second_moments : ndarray of shape (2, n_features, n_features)
        Second moments of the same rows.
    noise : ndarray of shape (2,)
        Standard deviation of each entry of a mean.
    """

    shares: np.ndarray
    means: np.ndarray
    second_moments: np.ndarray
    noise: np.ndarray


@dataclass(eq=False, repr=False)
class DiscriminantAnalysis(Solver):
    r"""Class-balanced linear discriminant analysis in closed form.

    The least-squares surrogate of the area under the ROC curve [1]_ is, with scores s and p the frequency of the second class,

    .. math:: p (1 - p) \left[\mathrm{Var}(s|+) + \mathrm{Var}(s|-) + (1 - E(s|+) + E(s|-))^2\right],

    and for linear scores its minimum is :math:`w = (S_+ + S_- + \delta \delta^\top)^{-1} \delta`, a multiple of
    :math:`(S_+ + S_-)^{-1} \delta`, with the covariances S of the classes and the difference :math:`\delta` of their means. This
    solver computes it from moments; "sgda" and "privatediff" approach it by steps.

    1. One release has the sums of ``(x, x * x / R)``, which give centre and scale of the features.
    2. One release has counts, sums and second moments of both classes, for rows z that are standardised and clipped to their
       usual norm. The rest is algebra.
    3. A formula for the spectrum of random matrices takes the noise off the eigenvalues h of the covariance. The model is
       :math:`w = V (h + f)^{-1} V^\top \delta` with a floor f that follows the noise; an empirical Bayes rule shrinks each
       coordinate. If that shrinks all of them to 0, w has the direction of the mean difference.

    The threshold, where the score is 0, is midway between the means of both classes, so errors on both weigh the same.

    Parameters
    ----------
    covariance : {"balanced", "pooled"}, default="balanced"
        "balanced": both classes have the same weight in the covariance, as in the surrogate. "pooled": every record has the same
        weight, as in Fisher's discriminant, which has less noise where a class is rare.
    moments_share : float, default=0.15
        Share of the squared Gaussian-DP parameter that the first release gets, in (0, 1).
    floor : float, default=0.5
        Floor f over half of the largest eigenvalue of the noise alone.

    Notes
    -----
    There is no penalty by default; ``alpha`` of the estimator adds one, on the coefficients of the unscaled features. A
    ``positive_rate`` replaces the counts of the release; ``class_balance`` and clip norms are not used. At most 1024 features,
    because the square of their number is released. The cost of the noise grows with :math:`d^{3/2}`, that of gradients with d:
    solvers that take steps are better on most tables.

    **Privacy.** Two Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the budget: the
    moments of the features (sensitivity :math:`\sqrt 2 R`; :math:`3 R / \sqrt 2` under ``replace_one``), and the moments of the
    classes (3/2; :math:`3 / \sqrt 2`). Centre, scale and clip norm of the second come from the first. Public: the shape of the
    table, the data norm R, and every parameter.

    References
    ----------
    .. [1] Y. Ying, L. Wen, S. Lyu, "Stochastic Online AUC Maximization", NeurIPS 2016, Theorem 1: the surrogate as a saddle.
    .. [2] F. Benaych-Georges, R. R. Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank perturbations of large
       random matrices", Advances in Mathematics 227 (2011), Theorem 2.1: what noise does to large eigenvalues.
    """

    name = "moments"
    title = "discriminant analysis from one release of the moments of both classes"
    needs = frozenset({"binary", "plain", "ranking"})

    covariance: str = "balanced"
    _: KW_ONLY
    moments_share: float = 0.15
    floor: float = 0.5

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: the solver shrinks its coefficients by the variance of their noise."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return ``inf``: an earlier release sets the clip norm of standardised rows."""
        return math.inf

    def remark(self, problem: Problem) -> str:
        """Return the edge of the noise's spectrum over the largest eigenvalue of the rows, as a clause for the report."""
        if not problem.budget.private:
            return "no noise"
        edge = self.noise_level(problem)
        remark = (
            f"if both classes are equally frequent, eigenvalues of the noise reach {edge:.3g} times the largest that the "
            "covariance of these rows could have, more if not"
        )
        if edge >= 1:
            remark += "; expect a useless model: take more records, fewer features or a larger epsilon"
        return remark

    def noise_level(self, problem: Problem) -> float:
        """Return the largest eigenvalue of the noise over the largest possible covariance, for equally frequent classes."""
        noise = math.sqrt(2) * mean_noise(problem, _nominal(problem), 1 - float(self.moments_share))
        return 2 * half_edge(noise, problem.n_features)

    def schedule(self, problem: Problem) -> Schedule:
        """Return the moments of the features, then those of the classes; raises for invalid parameters."""
        settled, query = self._validated(problem), _nominal(problem)
        joint = Release(ClassMoments, Gaussian((1 - settled.moments_share) ** -0.5), query.clip_norm, query.size)
        return Schedule(((1, moments_release(problem, settled.moments_share**-0.5)), (1, joint)))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Standardise the rows and solve for the coefficients; ``rng`` is not used."""
        return self._validated(problem)._solve(problem, ask)

    def _solve(self, problem: Problem, ask: Ask) -> SolverResult:
        query = moments(problem)
        features = _within_radius(problem, standard(problem, ask(query), mean_noise(problem, query, self.moments_share)))
        joint = ClassMoments(features.geometry)
        classes = _estimates(problem, joint, ask(joint), mean_noise(problem, joint, 1 - self.moments_share))
        weights = self._direction(problem, features.geometry, classes)
        coef = np.zeros(problem.shape)
        coef[: problem.n_features, 0] = weights
        coef[problem.n_features :] = -weights @ classes.means.mean(axis=0)
        return SolverResult(outer_coefficients(problem, features.geometry, coef), None)

    def _direction(self, problem: Problem, geometry: Standardization, classes: ClassEstimates) -> np.ndarray:
        r"""Return the coefficients of standardised rows, of shape (n_features,): the estimated minimum of the surrogate.

        With :math:`\pi` for the weights of the classes, the second moment around the mean of their means is
        :math:`A = \sum_c \pi_c S_c + \pi_+ \pi_- \delta \delta^\top`. The noisy :math:`\delta` need not be subtracted from it:
        :math:`(2 \sum_c \pi_c S_c + \delta \delta^\top)^{-1} \delta` is :math:`u / (2 + (1 - 2 \pi_+ \pi_-) \delta^\top u)` for
        :math:`u = A^{-1} \delta`, by Sherman and Morrison.
        """
        # 1. The second moment around the mean of the class means, without noise in its eigenvalues, with a floor.
        balance = np.full(2, 0.5) if self.covariance == "balanced" else classes.shares
        centre, difference = balance @ classes.means, classes.means[1] - classes.means[0]
        second_moment = np.tensordot(balance, classes.second_moments, axes=1) - np.outer(centre, centre)
        edge = half_edge(float(np.linalg.norm(balance * classes.noise)), problem.n_features)
        values, vectors = np.linalg.eigh(second_moment)
        values = deconvolved(values, edge, LEAST_TRACE)
        sizes = np.maximum(values + self.floor * edge, max(SINGULAR * float(values.max()), 1e-300))
        # 2. The penalty: over 2 p (1 - p), as the surrogate is, and halved, as the sum of both covariances is.
        if problem.alpha:
            penalty = problem.alpha * geometry.scale**2 / (4 * float(np.prod(classes.shares)))
            sizes, vectors = np.linalg.eigh((vectors * sizes) @ vectors.T + np.diag(penalty))
        # 3. The difference of the means along each eigenvector, shrunk by its noise.
        along = vectors.T @ difference
        if problem.budget.private:
            largest = 1 / (float(np.prod(balance)) * max(float((values / sizes).sum()), 0.5))
            along = along * _shrinkage_factors(along / np.sqrt(sizes), float(np.sum(classes.noise**2)) / sizes, largest)
        solution = vectors @ (along / sizes)
        return solution / (2 + (1 - 2 * float(np.prod(balance))) * max(float(difference @ solution), 0.0))

    def _validated(self, problem: Problem) -> "DiscriminantAnalysis":
        """Return a validated copy with parameters converted to float."""
        if problem.n_features > MOST_FEATURES:
            raise ValueError(
                f"solver='moments' needs noisy {problem.n_features} x {problem.n_features} matrices, too large to be useful; "
                f"expected at most {MOST_FEATURES} features. solver='auto' has no such limit."
            )
        check_option("covariance", self.covariance, COVARIANCES)
        check_number("moments_share", self.moments_share, minimum=1e-6, maximum=0.99)
        check_number("floor", self.floor, minimum=0.0, maximum=LARGEST_FLOOR)
        settled = copy.copy(self)
        settled.moments_share, settled.floor = float(self.moments_share), float(self.floor)
        return settled


def _nominal(problem: Problem) -> ClassMoments:
    """Return the joint query in some geometry; size and sensitivity are the same in all geometries."""
    d = problem.n_features
    return ClassMoments(Standardization(np.zeros(d), np.ones(d), bool(problem.intercept_scaling), problem.data_norm))


def _within_radius(problem: Problem, features: Standard) -> Standard:
    """Return the standardisation in units of the norm to which standardised rows are clipped."""
    geometry, usual = features.geometry, math.sqrt(max(float(features.variances.sum()), LEAST_RADIUS))
    radius = min(usual, geometry.largest_norm) if problem.budget.private else geometry.largest_norm
    return replace(features, geometry=replace(geometry, scale=geometry.scale / radius))


def _estimates(problem: Problem, joint: ClassMoments, answer: np.ndarray, noise: float) -> ClassEstimates:
    """Return the estimates per class, with released or public frequencies; ``noise`` is that of the release, over n."""
    n = problem.n_samples
    counts, sums, products = joint.parts(answer)
    # The difference of the counts over 2 n gives the share, as both add up to n; it is at least its noise away from 0 and 1.
    noise_of_share = noise / (joint.count_weight * math.sqrt(2))  # both counts add up to n
    least = min(max(1 / n, noise_of_share), 0.25)
    known = public_rate(problem)
    share = 0.5 + float(counts[1] - counts[0]) / (2 * n) if known is None else known
    share = min(max(share, least), 1 - least)
    shares = np.array([1 - share, share])
    return ClassEstimates(shares, sums / (n * shares[:, None]), products / (n * shares[:, None, None]), noise / shares)


def _shrinkage_factors(estimates: np.ndarray, variances: np.ndarray, largest: float) -> np.ndarray:
    """Return factors of an empirical Bayes rule; if all are 0, those of a small prior variance, whose ratios alone matter."""
    factors = posterior_factors(estimates, variances, largest)
    return factors if factors.any() else FAINT_PRIOR * largest / (FAINT_PRIOR * largest + variances)
