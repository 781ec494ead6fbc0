"""Implement what "sgda" and "privatediff" share: settings, shares of the budget, steps of both sides, the returned iterate."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import ClassVar, cast

import numpy as np

from skdp._validation import check_integer, check_number, check_option, check_scale, check_truth
from skdp.minimax import SaddleProblem
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.queries import DualGradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers.minimax._problem import MinimaxProblem

StepSizes = Callable[[float], tuple[float, float]]

OUTPUTS = ("average", "last", "random")
# Default number of full-data steps, and the number for epsilon=inf. Choices (docs/defaults.md, "Saddle problems").
STEPS, NOISELESS = 100, 1000
# Default number of passes over the data with samples, and largest default number of samples. Chosen for networks on half of the
# digits: 80 passes gained .002 to .004 of AUC at epsilon 10 and nothing at 1 (docs/defaults.md).
READ, MOST_SAMPLES = 20, 2000
# Largest number of steps that is accepted. A choice.
MOST_STEPS = 10**6
# Noise over signal of all primal variables together, from which the report warns: from there on networks ranked like chance on
# some tables, while .18 did no harm on others. A smaller value warns earlier.
MUCH = 0.15
# Least share and least sampling rate that are accepted, and least noise weight of a release (largest by its reciprocal): what a
# schedule accepts.
SMALLEST_SHARE, SMALLEST_RATE, LEAST_WEIGHT = 1e-6, 2.0**-53, 1e-6


@dataclass(frozen=True)
class SaddleSettings:
    """Public settings of a run that no release sets.

    Parameters
    ----------
    n_steps : int
        Number of primal steps.
    rate : float
        Probability that a record enters a release of the steps; 1 for all records.
    preparation_share, dual_share : float
        Share of the releases before the steps in the squared Gaussian-DP parameter, and of the dual gradients in the rest.
    """

    n_steps: int
    rate: float
    preparation_share: float
    dual_share: float


@dataclass(eq=False, repr=False)
class SaddleSolver(Solver):
    """Base of the solvers of saddle problems: descent in the primal variables, ascent in the dual ones.

    Subclasses implement the order of the queries. ``_length`` names the parameter with the number of primal steps.
    """

    needs = frozenset({"saddle"})
    _length: ClassVar[str]
    _averaged: ClassVar[str] = "primal gradients"  # name of the releases that the remark describes
    _on_others: ClassVar[str] = ""

    _: KW_ONLY
    batch_size: float | None = None
    primal_step_size: float | None = None
    dual_step_size: float | None = None
    primal_clip_norm: float | None = None
    dual_clip_norm: float | None = None
    dual_share: float = 0.1
    preparation_share: float = 0.1
    standardize: bool | None = None
    output: str = "average"

    def default_alpha(self, problem: Problem) -> float:
        """Return the strength of the penalty for ``alpha=None``: 0."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return the bound on the norm of one record's primal gradient for the report; ``inf`` where earlier releases set it."""
        facts = cast(MinimaxProblem, problem)
        self._check(facts)
        known, _ = self._public_clip_norms(facts)
        return math.inf if known is None else known

    def remark(self, problem: Problem) -> str:
        """Return the noise of the primal gradients, alone and together, as a clause for the report."""
        facts = cast(MinimaxProblem, problem)
        about = "" if self._settings(facts).rate == 1 else "about "
        (average, together), size = self._noise_together(facts), facts.sizes[0]
        advice = "if this is near 1 or above, noise drowns the signal"
        if together > MUCH:
            advice = facts.advice
        return (
            f"per coordinate, {about}{average:.3g} times the largest possible mean gradient{facts.whose} in the average of all "
            f"{self._averaged}; {about}{together:.3g} times over the {size} primal variables together ({advice}){self._on_others}"
        )

    def noise_level(self, problem: Problem) -> float:
        """Return the noise level of the primal gradients together."""
        return self._noise_together(cast(MinimaxProblem, problem))[1] / MUCH

    def _noise_together(self, facts: MinimaxProblem) -> tuple[float, float]:
        """Return the noise over the largest mean gradient, per primal variable and of all together."""
        average = 1 / (self._signal(facts, self._settings(facts)) * facts.mean_weight)
        return average, average * math.sqrt(facts.sizes[0])

    @abstractmethod
    def _signal(self, problem: MinimaxProblem, settings: SaddleSettings) -> float:
        """Return the signal-to-noise ratio of the average of all primal gradients."""

    def _settings(self, problem: MinimaxProblem) -> SaddleSettings:
        """Return the public settings, from checked parameters."""
        self._check(problem)
        batch_size = problem.batch_size if self.batch_size is None else float(self.batch_size)
        rate = 1.0 if batch_size is None else min(max(batch_size / problem.n_samples, SMALLEST_RATE), 1.0)
        before = problem.preparation(float(self.preparation_share), self.standardize)
        share = sum(count / release.mechanism.weight**2 for count, release in before if isinstance(release.mechanism, Gaussian))
        return SaddleSettings(self._steps(problem, rate), rate, share, float(self.dual_share))

    def _steps(self, problem: MinimaxProblem, rate: float) -> int:
        given = getattr(self, self._length)
        if given is not None:
            return int(given)
        if rate < 1:
            return int(min(max(math.ceil(READ / rate), STEPS), MOST_SAMPLES))
        return STEPS if problem.budget.private else NOISELESS

    def _check(self, problem: MinimaxProblem) -> None:
        check_integer(self._length, getattr(self, self._length), minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("batch_size", self.batch_size, minimum=1.0, maximum=problem.n_samples, optional=True)
        for name in ("primal_step_size", "dual_step_size"):
            check_number(name, getattr(self, name), above=0.0, optional=True)
        for name in ("primal_clip_norm", "dual_clip_norm"):
            check_scale(name, getattr(self, name), optional=True)
        for name in ("dual_share", "preparation_share"):
            check_number(name, getattr(self, name), minimum=SMALLEST_SHARE, maximum=1 - SMALLEST_SHARE)
        check_truth("standardize", self.standardize, optional=True)
        check_option("output", self.output, OUTPUTS)

    def _public_clip_norms(self, problem: MinimaxProblem) -> tuple[float | None, float | None]:
        """Return the clip norms of both sides as known before the first release; None where releases set one."""
        primal, dual = problem.clip_norms(self.standardize)
        return (
            primal if self.primal_clip_norm is None else float(self.primal_clip_norm),
            dual if self.dual_clip_norm is None else float(self.dual_clip_norm),
        )

    def _descent(self, problem: MinimaxProblem, ask: Ask, rng: np.random.Generator, settings: SaddleSettings) -> "SaddleDescent":
        """Ask the releases of the preparation, and return the iteration at its start."""
        kept = _averaged_iterates(self.output, settings.n_steps, rng)
        saddle = problem.prepared(ask, float(self.preparation_share), self.standardize)
        given = self.primal_clip_norm, self.dual_clip_norm
        usual = saddle.primal_clip_norm, saddle.dual_clip_norm
        clips = [float(norm if own is None else own) for own, norm in zip(given, usual, strict=True)]
        steps = self._step_sizes(saddle, self._signal(problem, settings), settings.n_steps)
        expected, shortens = settings.rate * problem.n_samples, self.primal_clip_norm is None
        return SaddleDescent(problem, saddle, expected, steps, (clips[0], clips[1]), shortens, kept, rng)

    def _step_sizes(self, saddle: SaddleProblem, signal: float, n_steps: int) -> "StepSizes":
        """Step sizes of both sides as a function of the primal clip norm over the usual one, with which the noise shrinks."""

        @cache
        def sizes(reach: float) -> tuple[float, float]:
            given = self.primal_step_size, self.dual_step_size
            usual = saddle.step_sizes(signal / reach, n_steps)
            primal, dual = (float(size if own is None else own) for own, size in zip(given, usual, strict=True))
            return primal, dual

        return sizes


class SaddleDescent:
    """Iterates of both sides, the steps that move them, and the average of the kept ones.

    Parameters
    ----------
    problem : MinimaxProblem
        Public facts.
    saddle : SaddleProblem
        The problem, as prepared.
    expected : float
        Expected number of records in a release.
    step_sizes : callable
        Maps the reach of the last primal clip norm to the step sizes of the primal and the dual side.
    clip_norms : tuple of float
        Clip norms of the primal and the dual side.
    shortens : bool
        Whether the primal clip norm shrinks with the records' weights at the dual variables; False for a clip norm that the user
        gave.
    kept : range
        Numbers of the iterates whose average is returned; the start is number 0.
    rng : Generator
        Draws the start.
    """

    def __init__(
        self,
        problem: MinimaxProblem,
        saddle: SaddleProblem,
        expected: float,
        step_sizes: "StepSizes",
        clip_norms: tuple[float, float],
        shortens: bool,
        kept: range,
        rng: np.random.Generator,
    ) -> None:
        self.saddle, self.clip_norms, self._shortens, self._reach = saddle, clip_norms, shortens, 1.0
        self._problem, self._step_sizes, self._averaged_iterates = problem, step_sizes, kept
        self._divisor = expected * saddle.divisor
        self.primal, self.dual = saddle.project(*saddle.start(rng))
        self._number, self._averages = 0, (np.zeros(saddle.n_primal), np.zeros(saddle.n_dual))
        self._note()

    def primal_gradient(self, total: np.ndarray, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the gradient of the mean objective, from the noisy sum over the records.

        Parameters
        ----------
        total : ndarray of shape (n_primal,)
            Noisy sum.
        primal, dual : ndarray
            Point at which it was taken.

        Returns
        -------
        ndarray of shape (n_primal,)
            Gradient with the public parts, which no record enters.
        """
        public, _ = self.saddle.public_gradient(primal, dual)
        gradient = total / self._divisor + public
        return gradient + self._problem.alpha * self.saddle.penalized(primal) if self._problem.alpha else gradient

    def ascended(self, total: np.ndarray, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Return the dual variables after one step of projected ascent.

        Parameters
        ----------
        total : ndarray of shape (n_dual,)
            Noisy sum of dual gradients.
        primal, dual : ndarray
            Point at which it was taken.

        Returns
        -------
        ndarray of shape (n_dual,)
            Projected dual variables.
        """
        _, public = self.saddle.public_gradient(primal, dual)
        gradient = self.saddle.dual_weights * (total / self._divisor) + public
        return self.saddle.project(primal, dual + self._step_sizes(1.0)[1] * gradient)[1]

    def move(self, gradient: np.ndarray, dual: np.ndarray) -> None:
        """Make one primal step, and end the round.

        Parameters
        ----------
        gradient : ndarray of shape (n_primal,)
            Gradient of the mean objective.
        dual : ndarray of shape (n_dual,)
            Dual variables of the next iterate.
        """
        self.primal = self.saddle.project(self.primal - self._step_sizes(self._reach)[0] * gradient, dual)[0]
        self.dual, self._number = dual, self._number + 1
        self._note()

    def result(self) -> SolverResult:
        """Return the model at the average of the kept iterates."""
        primal, dual = self._averages
        return SolverResult(self._problem.model(self.saddle, primal, dual), self._number, dual=dual)

    def primal_clip_norm(self, dual: np.ndarray) -> float:
        """Return the clip norm of primal gradients, which shrinks with the records' weights at the dual variables."""
        self._reach = self.saddle.primal_reach(dual) if self._shortens else 1.0
        return self.clip_norms[0] * self._reach

    def dual_query(self, dual: np.ndarray) -> DualGradient:
        """Return the query for the dual gradient at the current primal variables."""
        return DualGradient(self.saddle, self.primal, dual, self.clip_norms[1])

    def _note(self) -> None:
        if self._number in self._averaged_iterates:
            for average, iterate in zip(self._averages, (self.primal, self.dual), strict=True):
                average += iterate / len(self._averaged_iterates)


def mechanism(problem: Problem, count: int, share: float, rate: float) -> Gaussian | PoissonGaussian:
    """Return the mechanism of releases that together have a share of the squared Gaussian-DP parameter.

    For samples the share follows from the central limit theorem; the exact accounting of the whole schedule is close to that.

    Parameters
    ----------
    problem : Problem
        Public facts.
    count : int
        Number of releases.
    share : float
        Their share, in (0, 1].
    rate : float
        Probability that a record enters a release; 1 for all records.

    Returns
    -------
    Gaussian or PoissonGaussian
        Mechanism with its noise weight relative to a full-data release that has the whole budget.

    Notes
    -----
    A sampled release with the noise multiplier z spends :math:`q^2 (e^{1/z^2} - 1)` of the squared parameter under ``zero_out``,
    :math:`4 q^2 \\sinh(1/z^2)` under ``replace_one``, and never more than :math:`k^2 / z^2`, its cost without sampling.
    """
    if rate == 1:
        return Gaussian(_bounded(math.sqrt(count / share)))
    if not problem.budget.private:
        return PoissonGaussian(rate)
    mu, k = gaussian_mu(problem.budget.epsilon, problem.budget.delta), 2 if problem.budget.adjacency == "replace_one" else 1
    # Squared parameter that each release may spend; solve its formula in the notes for 1 / z^2, and take the cost without
    # sampling where that is less noise.
    cost = share * mu**2 / count
    sampled = math.asinh(cost / (4 * rate**2)) if k == 2 else math.log1p(cost / rate**2)
    inverse_square = max(sampled, cost / k**2)
    return PoissonGaussian(rate, _bounded(mu / (k * math.sqrt(inverse_square))))


def signal(problem: Problem, how: Gaussian | PoissonGaussian, count: int) -> float:
    """Return the signal-to-noise ratio of the average of releases of clipped gradients.

    Parameters
    ----------
    problem : Problem
        Public facts.
    how : Gaussian or PoissonGaussian
        Mechanism of the releases, from `mechanism`.
    count : int
        Number of releases.

    Returns
    -------
    float
        For full-data releases the ratio of the budget times the root of their share; ``inf`` without noise.
    """
    return problem.signal_to_noise * getattr(how, "sampling_rate", 1.0) * math.sqrt(count) / how.weight


def _bounded(weight: float) -> float:
    return min(max(weight, LEAST_WEIGHT), 1 / LEAST_WEIGHT)


def _averaged_iterates(output: str, n_steps: int, rng: np.random.Generator) -> range:
    """Return the numbers of the iterates that are averaged, chosen before the first release."""
    if output == "average":
        return range(n_steps - (n_steps - 1) // 2, n_steps + 1)
    chosen = n_steps if output == "last" else int(rng.integers(n_steps))
    return range(chosen, chosen + 1)
