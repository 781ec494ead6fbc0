"""Fit least squares from one private release of its sufficient statistics."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from skdp._validation import check_number, check_truth
from skdp.privacy.queries import Gradient, JointMoments, Query, SmallestEigenvalue
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult

# Largest number of coefficients: a matrix with its square is released and kept in memory. A choice.
MOST_COORDINATES = 4096
# Largest value that is accepted for `floor`. A choice.
LARGEST_FLOOR = 1e6
# Largest eigenvalue of the noise over the largest possible one of the rows, from which the report warns: from there on four fits
# in five were no better than the mean. Measured; a smaller value warns earlier.
DROWNED = 0.2
# Share of the squared Gaussian-DP parameter for the smallest eigenvalue, as in Algorithm 2 of Wang (2018).
EIGENVALUE_SHARE = 1 / 3
# Probability that the ridge of that algorithm is too small. The paper's experiments have this value; a smaller one makes the
# ridge larger.
FAILURE = 0.05
# Least eigenvalue over the largest possible one. A choice: float64 solves systems with larger ones.
LEAST_EIGENVALUE = 1e-12


@dataclass(eq=False, repr=False)
class SufficientStatistics(Solver):
    r"""Linear regression from a single joint release of :math:`X^\top X` and :math:`X^\top y`.

    Both are sums over records, so the fit reads the data in one release with Gaussian noise; the rest is algebra. Eigenvalues of
    :math:`X^\top X` below those of the noise are meaningless, and a solution that divides by them is useless. So the solver
    raises them:

    - By default, to ``floor`` times the edge of the spectrum of the noise alone, :math:`\sigma \sqrt{2 p}` for p coefficients
      (Wigner's semicircle [3]_), which is public; larger eigenvalues stay. And :math:`X^\top y` is shrunk by the factor that
      subtracts the expected square of its noise from its squared length [4]_.
    - With ``adaptive=True``, all of them by the ridge of AdaSSP [2]_, for which the smallest eigenvalue is released as well:
      :math:`\max(0, \sigma \sqrt{p \log(2 p^2 / 0.05)} - \tilde\lambda_{\min})`.

    Parameters
    ----------
    adaptive : bool, default=False
        Whether to use the ridge of AdaSSP.
    floor : float, default=0.7
        Least eigenvalue over the edge of the noise's spectrum; not used with ``adaptive=True``.

    Notes
    -----
    There is no penalty by default; ``alpha`` of the estimator adds one, which spares the intercept. The intercept's constant is
    one of the features, and clip norms are not used. At most 4096 coefficients, because the square of their number is released.

    **Privacy.** One Gaussian release of :math:`(X^\top X, \sqrt 2 R X^\top y)` for targets in [-1, 1] and rows of norm at most R,
    the former in half-vector coordinates, with sensitivity :math:`\sqrt 3 R^2` (``zero_out``) or :math:`2 \sqrt 2 R^2`
    (``replace_one``); with ``adaptive=True`` another of the smallest eigenvalue, with sensitivity :math:`R^2`, which gets a
    third of the squared Gaussian-DP parameter. Public: the shape of the table, the norm bound R, the range of the targets, and
    every parameter.

    References
    ----------
    .. [1] D. Vu, A. Slavkovic, "Differential privacy for clinical trial data: preliminary evaluations", ICDM Workshops 2009:
       sufficient statistics with noise.
    .. [2] Y.-X. Wang, "Revisiting differentially private linear regression: optimal and adaptive prediction & estimation in
       unbounded domain", UAI 2018, Algorithm 2.
    .. [3] E. Wigner, "On the distribution of the roots of certain symmetric matrices", Annals of Mathematics 67 (1958).
    .. [4] W. James, C. Stein, "Estimation with quadratic loss", Berkeley Symposium 1961.

    Examples
    --------
    >>> from skdp import DPLinearRegression
    >>> from skdp.solvers import SufficientStatistics
    >>> model = DPLinearRegression(target_bounds=(0, 1), solver=SufficientStatistics(adaptive=True))
    """

    name = "ssp"
    title = "sufficient statistics with noise (Vu, Slavkovic 2009; Wang 2018)"
    needs = frozenset({"plain", "squared"})

    _: KW_ONLY
    adaptive: bool = False
    floor: float = 0.7

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: the solver raises the eigenvalues instead."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return ``inf``: there are no gradients."""
        return math.inf

    def remark(self, problem: Problem) -> str:
        """Return the edge of the noise's spectrum over the largest eigenvalue of the rows, as a clause for the report."""
        if not problem.budget.private:
            return "no noise"
        share = self._relative_edge(problem)
        remark = f"eigenvalues of the noise reach {share:.3g} times the largest that the second moments of these rows could have"
        if share >= DROWNED:
            remark += "; expect a useless model: take more records, fewer features or a larger epsilon"
        return remark

    def noise_level(self, problem: Problem) -> float:
        """Return the largest eigenvalue of the noise, over that of the rows, as a multiple of ``DROWNED``."""
        return self._relative_edge(problem) / DROWNED

    def schedule(self, problem: Problem) -> Schedule:
        """Return one release of all products, for AdaSSP after the smallest eigenvalue; raises for invalid parameters."""
        self._check(problem)
        entries = [(1, _release(self._joint(problem), self._share))]
        if self.adaptive:
            entries.insert(0, (1, _release(self._eigenvalue(problem), EIGENVALUE_SHARE)))
        return Schedule(tuple(entries))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Solve the noisy normal equations; ``rng`` is not used."""
        self._check(problem)
        smallest = float(ask(self._eigenvalue(problem))[0]) if self.adaptive else 0.0
        joint = self._joint(problem)
        second_moment, cross_moment = joint.parts(ask(joint))
        values, vectors = np.linalg.eigh(second_moment)
        least = LEAST_EIGENVALUE * problem.n_samples * problem.row_norm**2
        if self.adaptive:
            values = np.maximum(values + self._ridge(problem, smallest), least)
        else:
            values = np.maximum(values, max(float(self.floor) * self._edge(problem), least))
            cross_moment = cross_moment * self._shrinkage(problem, cross_moment)
        penalty = np.full(problem.shape[0], problem.n_samples * problem.alpha)
        penalty[problem.n_features :] = 0.0
        coef = np.linalg.solve((vectors * values) @ vectors.T + np.diag(penalty), cross_moment)
        return SolverResult(coef[:, None], None)

    def _ridge(self, problem: Problem, smallest: float) -> float:
        """Return the ridge of Algorithm 2 of Wang (2018), with the noise of these releases instead of the paper's."""
        query, order = self._eigenvalue(problem), problem.shape[0]
        noise = _noise(problem, query, EIGENVALUE_SHARE)
        # A lower bound on the smallest eigenvalue, and an upper one on the norm of the noise of X^T X; the ridge closes the gap.
        surely = max(0.0, smallest - noise * math.sqrt(math.log(6 / problem.budget.delta)))
        entries = _noise(problem, self._joint(problem), self._share)
        return max(0.0, entries * math.sqrt(order * math.log(2 * order**2 / FAILURE)) - surely)

    def _shrinkage(self, problem: Problem, cross_moment: np.ndarray) -> float:
        """Return the share of the squared length of ``X^T y`` that its noise does not explain."""
        noise = _noise(problem, self._joint(problem), self._share) / (math.sqrt(2.0) * problem.row_norm)
        length = float(np.linalg.norm(cross_moment))
        share = noise / length if length > 0 else math.inf
        return max(0.0, 1 - problem.shape[0] * share * share)

    def _edge(self, problem: Problem) -> float:
        """Return the largest eigenvalue of the noise, for many coefficients: its variance is half as large off the diagonal."""
        return _noise(problem, self._joint(problem), self._share) * math.sqrt(2 * problem.shape[0])

    def _relative_edge(self, problem: Problem) -> float:
        """Return the largest eigenvalue of the noise over the largest possible one of the rows' second moment."""
        return self._edge(problem) / (problem.n_samples * problem.row_norm**2)

    @property
    def _share(self) -> float:
        return 1 - EIGENVALUE_SHARE if self.adaptive else 1.0

    def _joint(self, problem: Problem) -> JointMoments:
        return JointMoments(problem.row_norm, problem.shape[0])

    def _eigenvalue(self, problem: Problem) -> SmallestEigenvalue:
        return SmallestEigenvalue(problem.row_norm, problem.shape[0])

    def _check(self, problem: Problem) -> None:
        if problem.shape[0] > MOST_COORDINATES:
            raise ValueError(
                f"solver='ssp' needs a {problem.shape[0]} x {problem.shape[0]} noisy matrix, too large to be useful; expected at "
                f"most {MOST_COORDINATES} coefficients. solver='whitened_gd' has no such limit."
            )
        check_truth("adaptive", self.adaptive)
        check_number("floor", self.floor, above=0.0, maximum=LARGEST_FLOOR)


def _release(query: Any, share: float) -> Release:
    return Release(type(query), Gaussian(share**-0.5), query.clip_norm, query.size)


def _noise(problem: Problem, query: Query, share: float) -> float:
    """Return the standard deviation of the noise of a release that has a share of the budget."""
    adjacency = problem.budget.adjacency
    mu = problem.signal_to_noise * Gradient.relative_sensitivity[adjacency] / problem.n_samples
    return query.sensitivity(adjacency) / (mu * math.sqrt(share))
