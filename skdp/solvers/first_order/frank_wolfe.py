"""Fit linear models over a polytope by DP Frank-Wolfe: steps towards vertices with the best noisy scores."""

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from skdp._validation import check_integer, shown
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.accounting.zcdp import zcdp_rho
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Vertex, Vertices
from skdp.privacy.schedule import Release, Schedule, Selection
from skdp.solvers._base import Ask, Problem, Solver, SolverResult

# Largest default number of steps, number for epsilon=inf, and largest number that is accepted. Choices.
MOST_BY_DEFAULT, NOISELESS, MOST_STEPS = 1000, 1000, 10**7
# Largest possible curvature (Jaggi 2013, Theorem 1) over the one that the default number of steps expects: entries of most rows
# do not line up with a vertex. A choice; a larger value means fewer steps.
USUAL = 8.0
# Mean error of a choice over the largest coordinate of a gradient, below which nothing is clipped by default; and share of the
# largest coordinate to which it is clipped at twice this error and above. Choices.
CLEAR_ERROR = 0.005
LEAST_SHARE = 0.5
# Least error that the number of steps is computed from. A choice that keeps quotients finite.
SMALLEST_ERROR = 1e-200


@dataclass(eq=False, repr=False)
class FrankWolfe(Solver):
    r"""Frank-Wolfe steps over a polytope, each towards a vertex that nearly minimises the linearised objective.

    Step t selects the vertex with the smallest :math:`\langle v, \nabla f(w_t) \rangle` plus Gumbel noise, and moves by

    .. math:: w_{t+1} = (1 - \gamma_t) w_t + \gamma_t v_t, \qquad \gamma_t = 2 / (t + 2).

    The result is a mixture of at most T vertices: sparse over an l1 ball, and inside the set whatever the noise is. If the
    features are bounded one by one (``feature_bounds``), the error grows only with the logarithm of their number.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes the T of the utility theorem [1]_,
        :math:`T \sim (\Gamma n \varepsilon / C R)^{2/3}`, with constants: it balances the error :math:`2 \Gamma / T` of the steps
        against the mean error :math:`b \log(m) / n` of a choice among m vertices with Gumbel noise of scale b, where
        :math:`\Gamma` is an eighth of the largest possible curvature. At most 1000, and 1000 for ``epsilon=inf``.

    Notes
    -----
    For rows with entries up to B and vertices of l1 norm up to R the curvature is at most :math:`\Gamma = s (2BR)^2`, s being the
    smoothness of the loss in the raw prediction, plus that of the ridge penalty. B is the largest of ``feature_bounds``,
    or ``data_norm`` where there are none.

    The estimator's ``clip_norm`` bounds every *coordinate* of a record's gradient here: C. None means half of the largest
    absolute value of a coordinate, the Lipschitz constant of the loss times B, while noise limits the fit. It grows until nothing
    is clipped, as the mean error of a choice falls from 1/100 to 1/200 of that value. ``alpha=None`` means no penalty, because
    the constraint takes its place.

    **Privacy.** T selections by the exponential mechanism among the vertices, each with scores of sensitivity k C R, where k is
    2 under ``replace_one`` and 1 under ``zero_out``. One is :math:`\varepsilon_0^2/8`-zCDP; together they cost the smaller of
    the cost by zCDP, at its best order, and :math:`T \varepsilon_0`, which is also a guarantee for delta = 0. Public: the shape
    of the table, the bounds, the constraint and every parameter. A constraint of your own has a method ``vertices(p)``, which
    returns an array or sparse matrix with one vertex per row. It is called before any data are read, and R is computed from its
    result; the constraint sees no gradient.

    References
    ----------
    .. [1] K. Talwar, A. Thakurta, L. Zhang, "Nearly-optimal private LASSO", NeurIPS 2015, Algorithm 2 (noisy Frank-Wolfe over a
       polytope) and its utility theorem; there with Laplace noise.
    .. [2] M. Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex optimization", ICML 2013, Theorem 1: the step and the
       curvature.

    Examples
    --------
    >>> from skdp.solvers import FrankWolfe
    >>> FrankWolfe(n_steps=50).n_steps
    50
    """

    name = "frank_wolfe"
    title = "DP Frank-Wolfe, vertices selected with Gumbel noise (Talwar, Thakurta, Zhang 2015, Algorithm 2)"
    needs = frozenset({"convex", "pointwise", "smooth", "vertices"})
    pure = True

    n_steps: int | None = None

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: the constraint takes the place of a penalty."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return between half and all of the largest absolute value of a gradient's coordinate; it bounds coordinates."""
        largest = problem.max_weight * problem.loss.lipschitz * _largest_entry(problem)
        if not problem.budget.private:
            return largest
        error = calibrate(self.schedule(replace(problem, clip_norm=largest)), problem.budget) * self._noise(problem, 1.0)
        return largest * min(max(CLEAR_ERROR / error, LEAST_SHARE), 1.0)

    def schedule(self, problem: Problem) -> Schedule:
        """Return one entry: T selections of a vertex; raises if ``n_steps`` is no integer from 1 to 10**7."""
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        release = Release(Vertex, Selection(), problem.clip_norm, size=_vertices(problem).shape[0])
        return Schedule(((self._steps(problem), release),))

    def remark(self, problem: Problem) -> str:
        """Return the mean error of a choice of a vertex, as a clause for the report."""
        scale, largest = calibrate(self.schedule(problem), problem.budget), problem.clip_norm * _radius(problem)
        error, shift = scale * self._noise(problem, largest), 2 * largest
        return (
            f"a step chooses a vertex whose linearised objective is above the least one by at most {error:.3g} on average, where "
            f"no two differ by more than {shift:.3g}"
        )

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the T steps and return the last iterate, a mixture of the chosen vertices; ``rng`` is not used."""
        vertices, coef, n_steps = _vertices(problem), problem.start, self._steps(problem)
        for step in range(n_steps):
            offset = problem.n_samples * problem.penalty_gradient(coef)
            (index,) = ask(Vertex(problem.loss, coef, problem.clip_norm, vertices, offset))
            vertex = vertices.vertex(int(index)).reshape(coef.shape)
            share = 2 / (step + 2)
            coef = (1 - share) * coef + share * vertex
        return SolverResult(coef, n_steps)

    def _steps(self, problem: Problem) -> int:
        """Return the number of steps T; the noise grows with its root (zCDP) or with T (sums of epsilons), whichever is less."""
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return NOISELESS
        noise, budget = self._noise(problem, problem.clip_norm * _radius(problem)), problem.budget
        curvature = _curvature(problem) / USUAL
        # Error after T steps: 2 Gamma / T plus the error of a choice, which is pure * T for sums of epsilons and root * T**0.5
        # for zCDP. Each T below minimises one of them; the better one is taken.
        pure = max(2 * noise / budget.epsilon, SMALLEST_ERROR)
        choices = [(_capped(math.sqrt(2 * curvature / pure)), pure, 1.0)]
        if budget.delta > 0:
            root = max(noise / math.sqrt(2 * zcdp_rho(budget.epsilon, budget.delta)), SMALLEST_ERROR)
            choices.append((_capped((4 * curvature / root) ** (2 / 3)), root, 0.5))
        return min(choices, key=lambda choice: 2 * curvature / choice[0] + choice[1] * choice[0] ** choice[2])[0]

    def _noise(self, problem: Problem, largest: float) -> float:
        """Return the mean error of a choice in the linearised objective, at noise scale 1; a record adds at most ``largest``."""
        n_vertices = max(2, _vertices(problem).shape[0])
        return Vertex.relative_sensitivity[problem.budget.adjacency] * largest * math.log(n_vertices) / problem.n_samples


def _capped(n_steps: float) -> int:
    return math.ceil(n_steps) if 1 <= n_steps <= MOST_BY_DEFAULT else MOST_BY_DEFAULT if n_steps > MOST_BY_DEFAULT else 1


def _vertices(problem: Problem) -> Vertices:
    """Return the vertices of the constraint as numbers; a user's own constraint is called here, before any data are read."""
    size, constraint = math.prod(problem.shape), cast(Any, problem.constraint)
    try:
        vertices = Vertices(constraint.vertices(size))
    except (TypeError, ValueError, PrivacyAccountingError) as error:
        raise ValueError(f"constraint={shown(constraint)}: vertices({size}) is not a table of finite numbers: {error}") from error
    if vertices.shape[1] != size:
        raise ValueError(
            f"constraint={shown(constraint)}: vertices({size}) has shape {vertices.shape}; expected one vertex of {size} "
            "coefficients per row."
        )
    return vertices


def _radius(problem: Problem) -> float:
    return _vertices(problem).l1_radius


def _largest_entry(problem: Problem) -> float:
    """Return a bound on the absolute value of an entry of a clipped row."""
    if problem.feature_bounds is None:
        return problem.data_norm
    return min(problem.data_norm, float(np.max(problem.feature_bounds)))


def _curvature(problem: Problem) -> float:
    """Return the largest second derivative of the objective along a segment from any point of the set to any other."""
    raw = problem.max_weight * problem.loss.smoothness * _largest_entry(problem) ** 2
    return (raw + problem.penalty.smoothness) * (2 * _radius(problem)) ** 2
