"""Implement what "svrg" and "svrg++" share: variance reduction by released differences, and their defaults."""

import copy
import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from skdp._validation import check_integer, check_number, check_truth, shown
from skdp.privacy.queries import Difference, Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._noise_limits import bearable_noise, noise_limited_clip_norm

# Largest default step, times the smoothness of a record's loss: three quarters of the stability limit 2 of gradient descent.
STEP = 1.5
# Reciprocal of the step of Theorem 4.2 (Wang, Ye, Xu 2017) times the smoothness. The paper prints 12; its inequality (4) needs
# more than 24 (docs/proofs/svrg.md), and 48 is half of that step.
THEOREM_STEP = 48.0
# Noise multiplier that the default batch size aims at: from about there on, sampling amplifies privacy well. A choice; a larger
# one means larger samples.
MULTIPLIER = 1.2
# Largest path of one epoch, times the strong convexity: on the scale of 1 the penalty alone contracts by a factor of e. A choice.
LONGEST = 2.0
# Default number of epochs. A choice; more epochs divide the budget of the snapshots further.
EPOCHS = 4
# Least and largest default number of inner steps per epoch, on average. Choices; they bound the time of a fit.
FEWEST_INNER, MOST_INNER = 25, 500
# Least default batch size, in records, and largest ratio of the records that differences read to those that snapshots read.
# Choices; a larger ratio costs time and saves noise.
SMALLEST_BATCH, MOST_READ = 32, 4.0
# Share of a snapshot in the snapshots' budget, over that of the next one: an epoch of the theorem halves the error of the one
# before. The first of many epochs have at least LEAST_FRACTION of the share of the last one, a choice.
FORGETTING, LEAST_FRACTION = 0.5, 2.0**-10
# Least noise weight of a release (and largest one, by its reciprocal), and least sampling rate: what a schedule accepts.
LEAST_WEIGHT, LEAST_RATE = 1e-6, 2.0**-53
# Largest numbers of epochs and of inner steps that are accepted, and of the inner steps that the theorem's schedule takes.
# Choices.
MOST_EPOCHS, MOST_STEPS, MOST_THEOREM_STEPS = 1000, 10**7, 10**6


@dataclass(frozen=True)
class EpochSettings:
    """Public settings of a run.

    Parameters
    ----------
    lengths : tuple of int
        Inner steps of each epoch.
    rate : float
        Probability that a record enters a difference.
    step_size : float
        Size of every inner step, or the largest one for "bb".
    fractions : tuple of float
        Shares of the epochs in the snapshots' budget; they sum to 1.
    smoothness : float
        Clip norm of a difference over the distance of the iterate from the snapshot.
    """

    lengths: tuple[int, ...]
    rate: float
    step_size: float
    fractions: tuple[float, ...]
    smoothness: float


@dataclass(eq=False, repr=False)
class VarianceReduction(Solver):
    """Base of the solvers that release one snapshot gradient per epoch, and many differences from it.

    Subclasses implement the lengths of the epochs, and the start of the next one.

    Attributes
    ----------
    noiseless_epochs : int
        Default number of epochs for ``epsilon=inf``.
    """

    needs = frozenset({"convex", "pointwise", "smooth"})
    noiseless_epochs: ClassVar[int]

    n_epochs: int | None = None
    _: KW_ONLY
    n_inner: int | None = None
    batch_size: float | None = None
    step_size: "float | str | None" = None
    snapshot_share: float = 0.8
    difference_clip: float = 0.5
    theorem: bool = False

    def default_clip_norm(self, problem: Problem) -> float:
        """Return the clip norm of "gd"; with ``theorem`` the largest norm of a gradient, so that nothing is clipped."""
        whole = isinstance(self.theorem, (bool, np.bool_)) and self.theorem
        return problem.lipschitz if whole else noise_limited_clip_norm(problem)

    def schedule(self, problem: Problem) -> Schedule:
        """Return two entries per epoch, the gradient of all records and the differences; raises for invalid parameters."""
        return self._validated(problem)._schedule(problem)

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run all epochs and return the average of the last one; ``rng`` is not used."""
        settled = self._validated(problem)
        settings = settled._settings(problem)
        expected = settings.rate * problem.n_samples
        coef, snapshot, past = problem.start, problem.start, None
        for length in settings.lengths:
            gradient = ask(Gradient(problem.loss, snapshot, problem.clip_norm)).reshape(problem.shape) / problem.n_samples
            step_size = settings.step_size
            if settled.step_size == "bb" and past is not None:
                step_size = barzilai_borwein(problem, snapshot - past[0], gradient - past[1], length / expected, step_size)
            past, average = (snapshot, gradient), np.zeros(problem.shape)
            # An inner step: the difference brings the snapshot's gradient to the present point.
            for _ in range(length):
                difference = ask(Difference(problem.loss, coef, snapshot, problem.clip_norm, settings.smoothness))
                coef = problem.prox(coef - step_size * (difference.reshape(problem.shape) / expected + gradient), step_size)
                average += coef / length
            snapshot = average
            coef = self._restart(coef, average)
        return SolverResult(snapshot, len(settings.lengths) + sum(settings.lengths))

    @abstractmethod
    def _proportions(self, n_epochs: int) -> list[float]:
        """Return the length of each epoch over that of the first."""

    @abstractmethod
    def _restart(self, last: np.ndarray, average: np.ndarray) -> np.ndarray:
        """Return the start of the next epoch."""

    @abstractmethod
    def _theorem(self, problem: Problem) -> tuple[int, int, float]:
        """Return the number of epochs, length of the first, and step size of the theorem."""

    def _schedule(self, problem: Problem) -> Schedule:
        settings, size = self._settings(problem), math.prod(problem.shape)
        share = self.snapshot_share
        weight = settings.rate * math.sqrt(sum(settings.lengths) * share / (1 - share))  # by the central limit theorem
        inner = Release(Difference, PoissonGaussian(settings.rate, bounded(weight)), None, size)
        entries = []
        for length, fraction in zip(settings.lengths, settings.fractions, strict=True):
            outer = Release(Gradient, Gaussian(bounded(1 / math.sqrt(fraction))), problem.clip_norm)
            entries += [(1, outer), (length, inner)]
        return Schedule(tuple(entries))

    def _settings(self, problem: Problem) -> EpochSettings:
        n_epochs, first, step_size = self._theorem(problem) if self.theorem else self._practical(problem)
        lengths = self._lengths(n_epochs, self.n_inner or first)
        if isinstance(self.step_size, float):
            step_size = self.step_size
        elif not self.theorem:
            step_size = min(step_size, self._path(problem, n_epochs) / sum(lengths))
        batch_size = self.batch_size or (1.0 if self.theorem else self._batch(problem, lengths))
        rate = min(max(batch_size / problem.n_samples, LEAST_RATE), 1.0)
        clip = 1.0 if self.theorem or not problem.budget.private else self.difference_clip
        return EpochSettings(lengths, rate, step_size, fractions_of(n_epochs), clip * problem.smoothness)

    def _lengths(self, n_epochs: int, first: int) -> tuple[int, ...]:
        proportions = self._proportions(n_epochs)
        if first * sum(proportions) > MOST_STEPS:
            raise ValueError(
                f"n_epochs={n_epochs} and n_inner={first} make {first * sum(proportions):.3g} inner steps; expected at most "
                f"{MOST_STEPS}."
            )
        return tuple(int(first * proportion) for proportion in proportions)

    def _practical(self, problem: Problem) -> tuple[int, int, float]:
        """Return the number of epochs, length of the first, and largest step size, from the path."""
        n_epochs = self.n_epochs or (EPOCHS if problem.budget.private else self.noiseless_epochs)
        largest = STEP / max(problem.smoothness, 1e-300)
        steps = min(max(self._path(problem, n_epochs) / largest, FEWEST_INNER * n_epochs), MOST_INNER * n_epochs)
        return n_epochs, max(1, math.ceil(steps / sum(self._proportions(n_epochs)))), largest

    def _path(self, problem: Problem, n_epochs: int) -> float:
        """Return the total length of the steps of all epochs."""
        proportions = np.array(self._proportions(n_epochs))
        # The path is the shortest of three. A path K divides into K * parts over the epochs.
        parts = proportions / proportions.sum()
        signal, size = problem.signal_to_noise, math.prod(problem.shape)
        gathered = math.sqrt(float(np.sum(parts**2 / np.array(fractions_of(n_epochs)))))
        # 1. A snapshot's noise enters all steps of its epoch: K * parts of it, with the root of its share. Together it must be
        # bearable.
        by_snapshots = math.sqrt(self.snapshot_share) * bearable_noise(problem) * signal
        by_snapshots /= problem.clip_norm * problem.row_norm * gathered
        # 2. The noise of differences grows with the distance from the snapshot. Per epoch it must not feed itself: the squared
        # distance that it makes is at most that for which it is calibrated.
        by_differences = signal * math.sqrt((1 - self.snapshot_share) / (size * parts.max()))
        by_differences /= max(self.difference_clip * problem.smoothness, 1e-300)
        # 3. With a strong penalty the longest epoch has contracted after such a path, and gains nothing by a longer one.
        by_convexity = LONGEST / max(problem.penalty.strong_convexity * float(parts.max()), 1e-300)
        return min(by_snapshots, by_differences, by_convexity)

    def _batch(self, problem: Problem, lengths: tuple[int, ...]) -> float:
        steps = sum(lengths)
        # By the central limit theorem a rate q has the noise multiplier q sqrt(steps / share) * k / mu; s = mu n / k.
        wanted = MULTIPLIER * math.sqrt((1 - self.snapshot_share) / steps) * problem.signal_to_noise
        affordable = MOST_READ * problem.n_samples * len(lengths) / (2 * steps)
        return max(min(wanted, affordable), SMALLEST_BATCH)

    def _validated(self, problem: Problem) -> Any:
        """Return a validated copy with parameters converted to int and float."""
        check_integer("n_epochs", self.n_epochs, minimum=1, maximum=MOST_EPOCHS, optional=True)
        check_integer("n_inner", self.n_inner, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("batch_size", self.batch_size, minimum=1.0, maximum=problem.n_samples, optional=True)
        check_number("snapshot_share", self.snapshot_share, minimum=1e-6, maximum=1 - 1e-6)
        check_number("difference_clip", self.difference_clip, minimum=1e-6, maximum=1.0)
        check_truth("theorem", self.theorem)
        if isinstance(self.step_size, str):
            if self.step_size != "bb":
                raise ValueError(f"step_size={shown(self.step_size)}; expected a positive number, 'bb', or None.")
        else:
            check_number("step_size", self.step_size, above=0.0, optional=True)
        settled = copy.copy(self)
        for name, kind in (("n_epochs", int), ("n_inner", int), ("batch_size", float), ("step_size", float)):
            value = getattr(self, name)
            setattr(settled, name, value if value is None or isinstance(value, str) else kind(value))
        settled.snapshot_share, settled.difference_clip = float(self.snapshot_share), float(self.difference_clip)
        return settled


def barzilai_borwein(problem: Problem, moved: np.ndarray, bent: np.ndarray, length: float, largest: float) -> float:
    """Return the step size of an epoch, from the curvature between the last two snapshots.

    Parameters
    ----------
    problem : Problem
        Public facts.
    moved, bent : ndarray of shape ``problem.shape``
        Changes of the snapshot, and of the gradient released there.
    length : float
        Inner steps over the expected size of a sample.
    largest : float
        Upper bound from public facts.

    Returns
    -------
    float
        Between the step of the theorem (or ``largest``, if that is smaller) and ``largest``. It is ``largest`` where noise makes
        the curvature negative.
    """
    squared = float(np.vdot(moved, moved))
    curvature = float(np.vdot(moved, bent)) + problem.penalty.strong_convexity * squared
    smallest = min(1 / (THEOREM_STEP * max(problem.smoothness, 1e-300)), largest)
    step_size = squared / (length * curvature) if curvature > 0 else largest
    return min(max(step_size, smallest), largest)


def fractions_of(n_epochs: int) -> tuple[float, ...]:
    """Return the share of each epoch in the snapshots' budget: half for the last one, a quarter for the one before, and so on.

    By the theorem an epoch at least halves the noise that is left of the epoch before, so earlier snapshots may be noisier. The
    first of many epochs have at least ``LEAST_FRACTION`` of the share of the last one.
    """
    relative = [max(FORGETTING ** (n_epochs - 1 - epoch), LEAST_FRACTION) for epoch in range(n_epochs)]
    return tuple(fraction / sum(relative) for fraction in relative)


def bounded(weight: float) -> float:
    """Return the nearest weight that a schedule accepts."""
    return min(max(weight, LEAST_WEIGHT), 1 / LEAST_WEIGHT)
