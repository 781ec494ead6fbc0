"""Fit linear models by DP-SkGD, random block coordinate descent, or by its greedy variant."""

import copy
import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from skdp._validation import LARGEST, check_integer, check_number, shown
from skdp.privacy.queries import BlockGradient, CoordinateScores
from skdp.privacy.schedule import Gaussian, Release, Schedule, Selection
from skdp.samplings import Blocks, Full, Importance, Nice, Sampling, Uniform, check_sampling, draw
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._noise_limits import bearable_noise, noise_limited_clip_norm

# Number of draws over which sizes and constants of blocks are averaged. A choice; they come from a fixed seed.
PROBES = 32
# Raw predictions of an optimum over the noise that one may gather (1 for log-odds). A choice; a larger value means more steps.
NEAR = 1 / 3
# Largest number of inner steps, and least divisor: choices that keep quotients finite.
MOST_INNER, LEAST_DIVISOR = 1e9, 1e-300


@dataclass(frozen=True)
class Coordinates:
    """Public constants of the coordinates of a problem; the intercept is the last one.

    Parameters
    ----------
    problem : Problem
        Public facts.
    bounds : ndarray of shape (n_coordinates,)
        Bounds on the absolute values of the features, and the constant of the intercept.
    """

    problem: Problem
    bounds: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> "Coordinates":
        """Return the constants of a problem: without ``feature_bounds``, equal parts of ``data_norm``.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        Coordinates
            Bounds are at most ``data_norm``, to which rows are clipped.
        """
        given = problem.feature_bounds
        part = problem.data_norm / math.sqrt(problem.n_features) if given is None else np.asarray(given, dtype=np.float64)
        features = np.broadcast_to(np.minimum(part, problem.data_norm), (problem.n_features,))
        constant = [problem.intercept_scaling] if problem.intercept_scaling else []
        return cls(problem, np.concatenate([features, constant]))

    @property
    def smoothness_of_each(self) -> np.ndarray:
        """Smoothness constants M of single coordinates, of one record's loss and the penalty, shape (n_coordinates,)."""
        return self.slope * self.bounds**2 + self.ridge(np.arange(self.bounds.size))

    @property
    def clip_norms(self) -> np.ndarray:
        """Clip norms of single coordinates, shape (n_coordinates,)."""
        return self.problem.clip_norm * (self.bounds / self.problem.row_norm)

    def clip_norm(self, block: np.ndarray) -> float:
        """Return the clip norm of a block: the problem's, times the share of the row norm that a row can have in the block.

        Parameters
        ----------
        block : ndarray of int
            Sorted numbers of coordinates.

        Returns
        -------
        float
            Positive.
        """
        return float(self.problem.clip_norm * (self._norm(block) / self.problem.row_norm))

    def smoothness(self, block: np.ndarray) -> np.ndarray:
        r"""Return a separable bound v of the smoothness of a block: a step of :math:`1 / v_j` per coordinate is safe.

        For a record with :math:`|x_j| \le B_j`, :math:`(\sum_j x_j h_j)^2 \le \sum_j v_j h_j^2` holds for
        :math:`v_j = B_j \sum_k B_k`, by the Cauchy-Schwarz inequality with weights, and for the squared norm of its part in the
        block; this is taken where no :math:`v_j` is below it.

        Parameters
        ----------
        block : ndarray of int
            Sorted numbers of coordinates.

        Returns
        -------
        ndarray of shape (block.size,)
            Including the smoothness of the penalty.
        """
        # v_j = B_j sum_k B_k, or the squared norm of the part if it is below all of them.
        bounds, isotropic = self.bounds[block], self._norm(block) ** 2
        separate = bounds * bounds.sum()
        loss = np.full(block.size, isotropic) if (separate >= isotropic).all() else separate
        return self.slope * loss + self.ridge(block)

    def _norm(self, block: np.ndarray) -> float:
        """Return a bound on the norm of a row's part in a block."""
        if block.size == 1:
            return float(self.bounds[block[0]])
        features = self.bounds[block[block < self.problem.n_features]]
        constant = self.problem.intercept_scaling if block[-1] == self.problem.n_features else 0.0
        return math.hypot(min(float(np.linalg.norm(features)), self.problem.data_norm), constant)

    def ridge(self, block: np.ndarray) -> np.ndarray:
        """Return the strength of the ridge penalty on the coordinates of a block, 0 for the intercept.

        Parameters
        ----------
        block : ndarray of int
            Numbers of coordinates.

        Returns
        -------
        ndarray of shape (block.size,)
            Its strong convexity and smoothness.
        """
        return np.where(block < self.problem.n_features, self.problem.penalty.strong_convexity, 0.0)

    @property
    def slope(self) -> float:
        """Smoothness of one record's loss in its raw predictions, class weights included."""
        return self.problem.max_weight * self.problem.loss.smoothness


class Terms(NamedTuple):
    """Constants of a sampling in the two theorems: the excess risk is ``distance / (2 K) + K noise / (2 s^2)`` after K steps.

    Parameters
    ----------
    size : float
        Mean number of coordinates in a block.
    distance : float
        Squared distance of the start from an optimum, in the norm in which all steps are 1.
    noise : float
        Noise that a step adds at a signal-to-noise ratio of 1.
    convexity : float
        Strong convexity in that norm.
    risk : float
        Excess risk of the start.
    """

    size: float
    distance: float
    noise: float
    convexity: float
    risk: float

    @classmethod
    def of(cls, coordinates: Coordinates, sampling: Sampling) -> "Terms":
        """Return the constants of a sampling, from a fixed sequence of its draws.

        Parameters
        ----------
        coordinates : Coordinates
            Public constants.
        sampling : Sampling
            Sampling that draws the blocks.

        Returns
        -------
        Terms
            Positive numbers; the convexity is 0 without ridge.
        """
        problem, rng = coordinates.problem, np.random.default_rng(0)
        # Means over a fixed sequence of draws. `coupling` is by how much steps in a block are shorter than those of single
        # coordinates.
        single, n_coordinates = coordinates.smoothness_of_each, problem.shape[0]
        blocks = [draw(sampling, rng, n_coordinates) for _ in range(PROBES)]
        steps = [coordinates.smoothness(block) for block in blocks]
        size = float(np.mean([block.size for block in blocks]))
        coupling = float(np.mean([(step / single[block]).mean() for block, step in zip(blocks, steps, strict=True)]))
        clip_norms = [coordinates.clip_norm(block) for block in blocks]
        noise = float(np.mean([clip**2 * (1 / step).sum() for clip, step in zip(clip_norms, steps, strict=True)]))
        # Risk and distance of an optimum whose raw predictions are NEAR times the noise that they may gather.
        risk = coordinates.slope * (NEAR * bearable_noise(problem)) ** 2
        ratios = coordinates.ridge(np.arange(n_coordinates)) * np.asarray(sampling.probabilities) / (coupling * single)
        convexity = float(ratios[: problem.n_features].min())
        return cls(size, risk * coupling * n_coordinates / size, noise * problem.loss.n_outputs, convexity, risk / 2)

    def convex(self, signal_to_noise: float) -> float:
        """Return the number of steps at which both terms of the excess risk are equal.

        Parameters
        ----------
        signal_to_noise : float
            Signal-to-noise ratio of the problem.

        Returns
        -------
        float
            Positive.
        """
        return signal_to_noise * math.sqrt(self.distance / max(self.noise, LEAST_DIVISOR))

    def strongly_convex(self, signal_to_noise: float) -> tuple[int, int]:
        """Return the number of rounds, and of steps per round: each round halves the excess risk down to that of the noise.

        Parameters
        ----------
        signal_to_noise : float
            Signal-to-noise ratio of the problem.

        Returns
        -------
        tuple of int
            T and K.
        """
        # A round of K steps halves the risk; T rounds take it down to what the noise of one round leaves.
        n_inner = math.ceil(min(2 * (1 + 1 / max(self.convexity, LEAST_DIVISOR)), MOST_INNER))
        floor = max(n_inner * self.noise / 2 / signal_to_noise**2, LEAST_DIVISOR)
        return 1 + math.ceil(math.log2(max(self.risk / floor, 1.0))), n_inner


SAMPLINGS = ("uniform", "importance", "nice", "full", "blocks", "greedy")
# Largest numbers of steps that are accepted. Choices: a greedy step reads all columns and makes two releases.
MOST_GIVEN, MOST_GREEDY = 10**7, 10**4
# Cells of X that the steps of a default fit may read; the loss and its derivative of a record take
# as long as reading DERIVATIVE cells. Choices; a larger WORK means more steps on large tables.
WORK, DERIVATIVE = 3e9, 10
# Default numbers of passes over the data: at least, at most, and for epsilon=inf, where NOISELESS_ROUNDS is the number of rounds.
# Choices.
FEWEST_PASSES, MOST_PASSES, NOISELESS_PASSES, NOISELESS_ROUNDS = 5, 200, 500, 10
# Least number of steps that the rule for "greedy" starts from, and largest default number of them. Choices.
FEWEST_GREEDY, MOST_GREEDY_BY_DEFAULT = 5, 1000


class Lengths(NamedTuple):
    """Number of rounds, steps per round, and factor on the paper's step sizes."""

    n_rounds: int
    n_inner: int
    factor: float


@dataclass(eq=False, repr=False)
class BlockCoordinateDescent(Solver):
    r"""Steps on random blocks of coordinates, each of a length that suits its smoothness, with an average per round.

    A step draws a set S of coordinates, releases
    :math:`\tilde g_S = \sum_i \mathrm{clip}(\nabla_S \ell_i(w)) + N(0, \sigma_S^2 I)` and moves

    .. math:: w_j \leftarrow \mathrm{prox}\big(w_j - (\gamma_j / p_j) (\tilde g_j / n + \nabla_j r(w))\big), \quad j \in S, \qquad
              \gamma_j = f p_j / M_j,

    where :math:`p_j` is the probability that j is in S, and :math:`M_j` its smoothness constant, known from public bounds of the
    features. The noise is proportional to the largest contribution of a record in the block, so narrow columns get little noise
    and long steps: use this solver for tables whose columns have different scales.

    Parameters
    ----------
    sampling : str or object, default="uniform"
        How S is drawn, independently of the data. "uniform": one coordinate, DP-CD [2]_. "importance": one coordinate, with
        :math:`p_j` proportional to :math:`M_j`, which spends the steps on the wide columns. "nice": ``tau`` of all. "full": all,
        gradient descent. "blocks": one of ``blocks``. "greedy": the coordinate with nearly the largest gradient over its bound,
        selected by the exponential mechanism, for models with few non-zero coefficients: DP-GCD [3]_, without l1 penalty or box,
        for one raw prediction. Or an object with ``sample(rng)`` and ``probabilities``, such as those of `skdp.samplings`; the
        intercept is the last coordinate.
    n_rounds : int or None, default=None
        Number of rounds T; each starts from the average of the one before. None takes 1, or the number of the second theorem (see
        Notes) where that takes fewer steps; 10 for ``epsilon=inf``.
    n_inner : int or None, default=None
        Number of steps of a round, K; each is one release, two for "greedy". None: see Notes.
    step_size : float or None, default=None
        Factor f on the paper's step sizes; steps are stable below 2. None takes 1, or less where more steps are given than the
        noise allows: then the path :math:`T K f` is as long as that of the default.
    tau : int or None, default=None
        Size of the sets of "nice"; None takes the root of the number of coordinates, rounded.
    blocks : list of list of int, or None, default=None
        The partition of "blocks": columns that are moved together, such as the one-hot columns of a categorical. Columns that
        are not named are blocks of their own, and so is the intercept, which may be named by the number of features.

    Notes
    -----
    **Bounds.** The estimator's ``feature_bounds`` give :math:`B_j`; without them all are ``data_norm`` over the root of the
    number of features. The intercept has its constant. :math:`M_j = s B_j^2 + \alpha (1 - \rho)` with the smoothness s of the
    loss and the ridge part of the penalty, which spares the intercept. In a block of several coordinates these constants are too
    small. There :math:`v_j = s B_j \sum_{k \in S} B_k` takes their place, or s times the squared norm of a row in the block where
    that is smaller for all coordinates.

    **Clip norms.** A record's gradient in S is clipped to :math:`C_S = C \|B_S\| / R`, where :math:`\|B_S\| / R` is the largest
    share of the row norm R that a row can have in S. ``clip_norm=None`` means, as for "gd", half of the largest norm of a
    gradient while noise limits the fit, and grows with the signal until nothing is clipped.

    **Steps.** Without noise K steps reduce the excess risk to :math:`D / 2 K`, with :math:`D = \sum_j M_j (w_j - w_j^*)^2 / p_j`,
    and noise adds :math:`K N / 2 s^2`, where :math:`N = E \sum_{j \in S} C_S^2 / v_j` and :math:`s = \mu n / k` is the
    signal-to-noise ratio: :math:`K = s \sqrt{D / N}` is best, in one round (the convex case [1]_, Theorem 8). D is that of an
    optimum whose raw predictions are a third of the noise that "gd" lets one gather: 1 for log-odds. With a strong ridge,
    :math:`K = 2 (1 + 1 / \mu_M)` and a logarithmic T need fewer steps (the strongly convex case, Theorem 9), where :math:`\mu_M`
    is the strong convexity in the norm of D. The work limits both: a fit makes between 5 and 200 passes over the data (500 for
    ``epsilon=inf``), where a step on S counts as :math:`|S| / d` passes.

    "greedy" takes :math:`(s \sqrt{D / N})^{2/3}` steps (the rate of [3]_), at most 1000, half of the budget for the choices,
    and returns the last iterate.

    Which sampling is best depends on where the signal is: "uniform" also finds it in narrow columns. "importance" hardly ever
    draws these; it helps where wide columns carry the signal and records are few.

    With an l1 penalty or a box the step is proximal, coordinate by coordinate [2]_.

    **Privacy.** T K releases of clipped gradients of blocks, each with sensitivity :math:`k C_S`. The noise multiplier
    :math:`k \sqrt{T K} / \mu` is that of every block, so they compose exactly to :math:`\mu`-GDP, although each depends on the
    ones before; the draws of S are independent of the data, and count as known to everyone. "greedy" adds as many selections, and
    zCDP composes all. Public: the shape of the table, the bounds, the draws, and every parameter.

    References
    ----------
    .. [1] A. Maranjyan, A. Sadiev, P. Richtárik, "Differentially private random block coordinate descent", arXiv:2412.17054,
       2024, Algorithm 1, Theorems 8 and 9.
    .. [2] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "Differentially private coordinate descent for composite empirical risk
       minimization", ICML 2022, Algorithm 1.
    .. [3] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "High-dimensional private empirical risk minimization by greedy
       coordinate descent", AISTATS 2023, Algorithm 1.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import BlockCoordinateDescent
    >>> model = DPLogisticRegression(epsilon=1.0, feature_bounds=[(-1, 1), (-100, 100)], solver=BlockCoordinateDescent("uniform"))
    """

    name = "skgd"
    title = "DP-SkGD, random block coordinate descent with averaging (Maranjyan, Sadiev, Richtárik 2024, Algorithm 1)"
    needs = frozenset({"convex", "pointwise", "separable", "smooth"})
    uses_bounds = True

    sampling: Any = "uniform"
    _: KW_ONLY
    n_rounds: int | None = None
    n_inner: int | None = None
    step_size: float | None = None
    tau: int | None = None
    blocks: Any = None

    def default_alpha(self, problem: Problem) -> float:
        """Return ``1 / n_samples`` for an l1 penalty, else 0: a ridge in the units of X would shrink narrow columns to 0."""
        return super().default_alpha(problem) if problem.l1_ratio else 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return the clip norm of "gd": part of the largest norm of a gradient while noise limits the fit."""
        return noise_limited_clip_norm(problem)

    def schedule(self, problem: Problem) -> Schedule:
        """Return T K gradients of blocks, each after a selection for "greedy"; raises for invalid parameters."""
        self._check(problem)
        sampling, coordinates = self._sampling(problem), Coordinates.of(problem)
        lengths = self._lengths(problem, sampling, coordinates)
        n_steps, size = lengths.n_rounds * lengths.n_inner, _largest(sampling, problem)
        # The schedule states a clip norm if all blocks have the same one.
        clip_norms = coordinates.clip_norms if size == 1 else np.empty(0)
        if size == problem.shape[0] and isinstance(sampling, (Nice, Blocks)):
            clip_norms = np.array([coordinates.clip_norm(np.arange(size))])
        clip_norm = float(clip_norms[0]) if np.unique(clip_norms).size == 1 else None
        gradient = Release(BlockGradient, Gaussian(), clip_norm, size * problem.loss.n_outputs)
        if not self._greedy:
            return Schedule(((n_steps, gradient),))
        choice = Release(CoordinateScores, Selection(), CoordinateScores.clip_norm, problem.shape[0])
        return Schedule(((1, choice), (1, gradient)) * n_steps)

    def remark(self, problem: Problem) -> str:
        """Return the noise of a block's gradient, as a clause for the report."""
        sampling, coordinates = self._sampling(problem), Coordinates.of(problem)
        lengths, share = self._lengths(problem, sampling, coordinates), 2 if self._greedy else 1
        single = math.sqrt(share * lengths.n_rounds * lengths.n_inner) / problem.signal_to_noise
        start = f"per coordinate, {single:.3g} times the largest possible mean gradient of its block in each release"
        if self._greedy:
            return start + "; noisy scores select the coordinates"
        noise = 1 / (problem.signal_to_noise * np.sqrt(np.maximum(np.asarray(sampling.probabilities), LEAST_DIVISOR)))
        least, most = float(noise.min()), float(noise.max())
        times = f"{least:.3g}" if most < 1.001 * least else f"from {least:.3g} to {most:.3g}"
        usual = (
            f"{times} times in the average of all in which it is expected (if this is near 1 or above, noise drowns the signal)"
        )
        return f"{start}, {usual}; blocks are drawn in public"

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run T rounds of K steps; return the average of the last round, for "greedy" the last iterate. ``rng`` draws blocks."""
        sampling, coordinates = self._sampling(problem), Coordinates.of(problem)
        n_rounds, n_inner, factor = self._lengths(problem, sampling, coordinates)
        result = problem.start
        for _ in range(n_rounds):
            coef, average = result, np.zeros(problem.shape)
            for _ in range(n_inner):
                block = _choose(coordinates, coef, ask) if self._greedy else draw(sampling, rng, len(coef))
                coef = _step(coordinates, coef, block, factor, ask)
                average += coef / n_inner
            result = coef if self._greedy else average
        return SolverResult(result, n_rounds * n_inner)

    @property
    def _greedy(self) -> bool:
        return isinstance(self.sampling, str) and self.sampling == "greedy"

    def _check(self, problem: Problem) -> None:
        most = MOST_GREEDY if self._greedy else MOST_GIVEN
        check_integer("n_rounds", self.n_rounds, minimum=1, maximum=most, optional=True)
        check_integer("n_inner", self.n_inner, minimum=1, maximum=most, optional=True)
        if int(self.n_rounds or 1) * int(self.n_inner or 1) > most:
            raise ValueError(f"n_rounds={self.n_rounds!r} times n_inner={self.n_inner!r}; expected at most {most} steps.")
        check_number("step_size", self.step_size, above=0.0, maximum=LARGEST, optional=True)
        check_integer("tau", self.tau, minimum=1, maximum=problem.shape[0], optional=True)
        if isinstance(self.sampling, str) and self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling={shown(self.sampling)}; expected one of {SAMPLINGS}, or an object with sample(rng).")
        if self._greedy and (problem.loss.n_outputs > 1 or "plain" not in problem.offers):
            raise ValueError(
                "sampling='greedy' compares slopes of single coefficients: expected one raw prediction per record, no constraint "
                f"and no l1 penalty; the problem has n_outputs={problem.loss.n_outputs}, constraint={shown(problem.constraint)}, "
                f"l1_ratio={problem.l1_ratio:g}."
            )
        if (self.blocks is None) == (isinstance(self.sampling, str) and self.sampling == "blocks"):
            raise ValueError(
                f"blocks={shown(self.blocks)} with sampling={shown(self.sampling)}; expected a list of lists of column numbers "
                "for sampling='blocks', and None else."
            )
        if self.tau is not None and not (isinstance(self.sampling, str) and self.sampling == "nice"):
            raise ValueError(f"tau={shown(self.tau)} with sampling={shown(self.sampling)}; expected None: it is for 'nice'.")
        if not isinstance(self.sampling, str):
            check_sampling(self.sampling, problem.shape[0])
            draw(self.sampling, np.random.default_rng(0), problem.shape[0])

    def _sampling(self, problem: Problem) -> Sampling:
        """Return the sampling of a name; uniform for "greedy", which draws no coordinates."""
        n_coordinates = problem.shape[0]
        if not isinstance(self.sampling, str):
            return copy.deepcopy(self.sampling)
        if self.sampling == "importance":
            return Importance(tuple(Coordinates.of(problem).smoothness_of_each.tolist()))
        if self.sampling == "nice":
            return Nice(n_coordinates, round(math.sqrt(n_coordinates)) if self.tau is None else int(self.tau))
        if self.sampling == "blocks":
            return Blocks(n_coordinates, self.blocks)
        return Full(n_coordinates) if self.sampling == "full" else Uniform(n_coordinates)

    def _lengths(self, problem: Problem, sampling: Sampling, coordinates: Coordinates) -> Lengths:
        """Return T, K and f, as given or from the theorems."""
        if self.n_rounds is not None and self.n_inner is not None and self.step_size is not None:
            return Lengths(int(self.n_rounds), int(self.n_inner), float(self.step_size))
        n_rounds, n_inner, bearable = self._theorems(problem, sampling, coordinates)
        if self.n_rounds is not None:
            n_rounds, n_inner = int(self.n_rounds), math.ceil(n_rounds * n_inner / int(self.n_rounds))
        if self.n_inner is not None:
            n_inner = int(self.n_inner)
        if self.step_size is not None:
            return Lengths(n_rounds, n_inner, float(self.step_size))
        return Lengths(n_rounds, n_inner, min(1.0, bearable / (n_rounds * n_inner)))

    def _theorems(self, problem: Problem, sampling: Sampling, coordinates: Coordinates) -> tuple[int, int, float]:
        """Return T and K, and the number of steps of full length that the noise allows."""
        facts = Terms.of(coordinates, sampling)
        per_pass = problem.shape[0] / facts.size
        if not problem.budget.private:
            n_steps = min(NOISELESS_PASSES * per_pass, MOST_GREEDY if self._greedy else MOST_GIVEN)
            return NOISELESS_ROUNDS, math.ceil(n_steps / NOISELESS_ROUNDS), math.inf
        # From here on: T and K of the theorems, within what the work allows.
        bearable = facts.convex(problem.signal_to_noise)
        if self._greedy:  # the selections take half of the budget
            bearable = max(bearable / math.sqrt(2), FEWEST_GREEDY)
            return 1, math.ceil(min(bearable ** (2 / 3), MOST_GREEDY_BY_DEFAULT)), bearable
        affordable = WORK / (problem.n_samples * problem.loss.n_outputs * (facts.size + DERIVATIVE))
        fewest = FEWEST_PASSES * per_pass
        most = min(max(affordable, fewest), MOST_PASSES * per_pass, MOST_GIVEN)
        n_steps = math.ceil(min(max(bearable, fewest), most))
        n_rounds, n_inner = facts.strongly_convex(problem.signal_to_noise)
        if n_rounds * n_inner < n_steps:
            return n_rounds, n_inner, max(bearable, n_rounds * n_inner)
        return 1, n_steps, bearable


def _largest(sampling: Sampling, problem: Problem) -> int:
    """Return the largest size of a block."""
    if isinstance(sampling, Nice):
        return int(sampling.tau)
    if isinstance(sampling, Importance):
        return 1
    return max(map(len, sampling.blocks)) if isinstance(sampling, Blocks) else problem.shape[0]


def _choose(coordinates: Coordinates, coef: np.ndarray, ask: Ask) -> np.ndarray:
    """Ask for the coordinate with nearly the largest gradient over its bound."""
    problem = coordinates.problem
    offset = problem.n_samples * problem.penalty_gradient(coef)[:, 0]
    (chosen,) = ask(CoordinateScores(problem.loss, coef, coordinates.clip_norms, offset))
    return np.array([int(chosen)])


def _step(coordinates: Coordinates, coef: np.ndarray, block: np.ndarray, factor: float, ask: Ask) -> np.ndarray:
    """Return the coefficients after one step on a block."""
    problem, features = coordinates.problem, block[block < coordinates.problem.n_features]
    # One over the smoothness of each coordinate, times the factor; the ridge is exact, the l1 part proximal.
    released = ask(BlockGradient(problem.loss, coef, block, coordinates.clip_norm(block))).reshape(block.size, -1)
    steps = (factor / coordinates.smoothness(block))[:, None]
    moved = coef.copy()
    moved[block] -= steps * (released / problem.n_samples + coordinates.ridge(block)[:, None] * coef[block])
    moved[features] = problem.penalty.l1_prox(moved[features], steps[: features.size])
    return problem.project(moved)
