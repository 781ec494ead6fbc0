"""Fit linear models over a constraint set by accelerated mirror descent on noisy clipped gradients."""

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from skdp._validation import check_integer, check_number
from skdp.mirror_maps import MirrorMap
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers.first_order._mirror_geometry import mirror_map, row_bound, unit_width

# Factor by which the proved bound overstates the noise in the l1 geometry, where only a few coordinates have the largest noise.
# Over families of generated tables 5 was near the best of 1, 5 and 20 there, and 1 in the Euclidean geometry
# (docs/defaults.md). A larger value means more steps.
PATIENCE = 5.0
# Least default clip norm over the largest norm of a gradient, and noise over signal, in the dual norm, below which nothing is
# clipped. Chosen on the same families; a smaller clip norm has less noise and more bias.
LEAST_CLIP, CLEAR_NOISE = 0.5, 0.01
# The same for the squared loss, whose largest gradient is that of a target at one end of the range with a prediction at the
# other. A tenth in place of a fifth was 10 to 40 % better for continuous targets and worse than zero for binary ones
# (docs/defaults.md).
LEAST_CLIP_SQUARED, CLEAR_SQUARED = 0.2, 0.003
# Least and largest default number of steps, and the number for epsilon=inf. Choices.
FEWEST_STEPS, MOST_BY_DEFAULT, NOISELESS = 10, 200, 1000
# Cells of X that all passes of a default fit may read together; at least FEWEST_ON_LARGE_TABLES
# steps are made whatever they read. Choices.
WORK, FEWEST_ON_LARGE_TABLES = 5e9, 30
# Largest number of steps that is accepted. A choice.
MOST_GIVEN = 10**7
# Least smoothness of the objective: steps stay finite for a loss without slope.
LEAST_SMOOTHNESS = 1e-200


@dataclass(eq=False, repr=False)
class AcceleratedMirrorDescent(Solver):
    r"""Accelerated mirror descent in a constraint set, on noisy full-data gradients.

    Let B be the Bregman distance of the set's mirror map, :math:`r_k = 2 / (k + 2)` and
    :math:`\alpha_{k+1} = (k + 2) / (4 L)`. Every step releases one clipped noisy gradient sum and uses it twice:

    .. math::

       x_{k+1} &= r_k z_k + (1 - r_k) y_k, \qquad
       \tilde g = \tfrac1n \Big(\sum_i \mathrm{clip}(\nabla \ell_i(x_{k+1})) + N(0, \sigma^2 I)\Big) + \nabla r(x_{k+1}), \\
       z_{k+1} &= \arg\min_z \; \alpha_{k+1} \langle \tilde g, z \rangle + B(z, z_k), \qquad
       y_{k+1} = x_{k+1} + r_k (z_{k+1} - z_k).

    The model is :math:`y_T`, a weighted mean of points of the set.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes the T at which the two terms of the bound below are in balance; in the
        l1 geometry :math:`\sqrt 5` times as many, because the bound overstates the noise there. It is from 10 to 200, fewer on
        large tables but at least 30, and 1000 for ``epsilon=inf``.
    step_scale : float, default=1.0
        Factor of the steps :math:`\alpha_k`.

    Notes
    -----
    **Geometry.** The l1 ball has the entropy on the doubled simplex, the simplex the entropy, balls of order up to 2 their own
    squared norm, all other sets the Euclidean one (see `skdp.mirror_maps`). L bounds the smoothness of the objective in the norm
    of the map, :math:`\max_i \|x_i\|_*^2` times that of the loss, plus that of the penalty: in the l1 geometry
    :math:`\|x_i\|_* = \max_j |x_{ij}|`, so give the estimator ``feature_bounds``. Without them the bound on the norm of a row
    takes their place, and the steps are much shorter. *Proof.* The dual order q is at least 2, so with
    :math:`\|x s^\top\|_q = \|x\|_q \|s\|_q \le \|x\|_q \|s\|_2` for the change s of the loss's derivative, which is at most
    smoothness times the change of the raw predictions, :math:`\|V^\top x\|_2 \le \|x\|_q \|V\|_a`, the gradient of a record
    changes by at most :math:`\text{smoothness} \, \|x\|_q^2 \|V\|_a`. From bounds b of the features and R of the row's norm,
    :math:`\|x\|_q \le \min(\|b\|_q, \max_j b_j^{1 - 2/q} R^{2/q})`.

    **Bound.** Without clipping, :math:`E F(y_T) - F^* \le 8 L D / T^2 + s^2 T^2 / (6 L)` up to :math:`O(1/T)`, for any
    larger L also: D bounds the distance from the start, and :math:`s \sqrt T` is the mean dual norm of the noise of a mean
    gradient, by the Gaussian width of the norm's ball. It depends on :math:`L / T^2` alone and is least at
    :math:`s / \sqrt{48 D}`, which makes it :math:`2.4 \, s \sqrt D`: as in the paper, :math:`T^2` is proportional to
    :math:`\mu n L`. Where T is larger than the default, L is raised by the same rule, so that more steps add no noise.

    The y-update as printed minimises :math:`\langle \tilde g, y \rangle + L \|y - x_{k+1}\|^2 / 2`, which has no closed form in
    most norms; the one here satisfies the same inequality in the proof, is in the set by convexity, and averages the noise.

    The estimator's ``clip_norm=None`` means half of the largest norm of a gradient, a fifth for the squared loss, while noise
    limits the fit. It grows with the signal, until nothing is clipped where the mean dual norm of all noise is below 0.01 times
    the largest dual norm of a gradient (0.003 for the squared loss): ``R E||g||_* / (max ||x||_* mu n / k)``.

    **Privacy.** T releases of the clipped gradient sum, each with sensitivity k C and noise multiplier
    :math:`k \sqrt T / \mu`; they compose exactly to :math:`\mu`-GDP, although each depends on the ones before. Everything
    else is post-processing: as printed, the paper's algorithm takes the exact gradient in the y-update and returns y, which is
    not private. Public: the shape of the table, the bounds, the constraint, and every parameter.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 3, and section 5 for the number of steps.
    .. [2] Z. Allen-Zhu, L. Orecchia, "Linear coupling: an ultimate unification of gradient and mirror descent", ITCS 2017.
    .. [3] G. Lan, "An optimal method for stochastic composite optimization", Math. Programming 133 (2012): the y-update, and
       steps that balance noise.

    Examples
    --------
    >>> from skdp.solvers import AcceleratedMirrorDescent
    >>> AcceleratedMirrorDescent(n_steps=50)
    AcceleratedMirrorDescent(n_steps=50)
    """

    name = "accmd"
    title = "accelerated mirror descent in a constraint set (Wang, Ye, Xu 2017, Algorithm 3, repaired)"
    needs = frozenset({"convex", "mirror", "pointwise", "smooth"})

    n_steps: int | None = None
    _: KW_ONLY
    step_scale: float = 1.0

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: the constraint takes the place of a penalty."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return between half (a fifth for the squared loss) and all of the largest norm of a gradient; see Notes."""
        order, squared = mirror_map(problem).norm, "squared" in problem.offers
        least, clear = (LEAST_CLIP_SQUARED, CLEAR_SQUARED) if squared else (LEAST_CLIP, CLEAR_NOISE)
        width = unit_width(order, math.prod(problem.shape))
        signal = row_bound(problem, order) / problem.row_norm * problem.signal_to_noise
        return min(max(clear * signal / width, least), 1.0) * problem.lipschitz

    def schedule(self, problem: Problem) -> Schedule:
        """Return one entry: T gradients; raises for invalid parameters."""
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_GIVEN, optional=True)
        check_number("step_scale", self.step_scale, above=0.0, maximum=1e50)
        return Schedule(((self._steps(problem), Release(Gradient, Gaussian(), problem.clip_norm)),))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the T steps from the minimum of the mirror map; ``rng`` is not used."""
        n_steps, mirror = self._steps(problem), mirror_map(problem)
        smoothness = max(_smoothness(problem, mirror), self._balance(problem, mirror) * n_steps**2)
        state = mirror.start()
        z = y = mirror.point(state)
        for k in range(n_steps):
            # x between z and y, one release at x, and both updates from it.
            share, step_size = 2 / (k + 2), float(self.step_scale) * (k + 2) / (4 * smoothness)
            x = share * z + (1 - share) * y
            query = Gradient(problem.loss, x.reshape(problem.shape), problem.clip_norm)
            released = ask(query).reshape(problem.shape) / problem.n_samples + problem.penalty_gradient(query.coef)
            state = mirror.step(state, released.ravel(), step_size)
            y = self._y_update(problem, query, share * (mirror.point(state) - z))
            z = mirror.point(state)
        return SolverResult(problem.project(y.reshape(problem.shape)), n_steps)

    def _y_update(self, problem: Problem, query: Gradient, move: np.ndarray) -> np.ndarray:
        """Return the next y, from x and the move of z; the twin of the audit overrides it with the printed, leaking update."""
        return query.coef.ravel() + move

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return NOISELESS
        mirror = mirror_map(problem)
        needed = math.sqrt(_smoothness(problem, mirror) / self._balance(problem, mirror))
        cells = problem.n_samples * math.prod(problem.shape)
        affordable = max(WORK / cells, FEWEST_ON_LARGE_TABLES)
        return math.ceil(min(max(needed, FEWEST_STEPS), affordable, MOST_BY_DEFAULT))

    def _balance(self, problem: Problem, mirror: MirrorMap) -> float:
        """Return the smoothness over squared number of steps, at which both terms of the bound are in balance."""
        noise = problem.clip_norm / problem.signal_to_noise * unit_width(mirror.norm, math.prod(problem.shape))
        return noise / math.sqrt(48 * max(mirror.spread, LEAST_SMOOTHNESS)) / PATIENCE ** (2 / mirror.norm - 1)


def _smoothness(problem: Problem, mirror: MirrorMap) -> float:
    """Return the smoothness of the objective in the norm of the map; the penalty's is at most that in the Euclidean norm."""
    bound = row_bound(problem, mirror.norm)
    total = problem.max_weight * problem.loss.smoothness * bound**2 + problem.penalty.smoothness
    return max(total, LEAST_SMOOTHNESS)
