"""Estimators that break their guarantee in a known way: an audit has to catch them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.privacy import Schedule
from skdp.solvers import (
    SGD,
    GradientDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    Problem,
    SolverResult,
    StandardizedGradientDescent,
    SufficientStatistics,
    WhitenedGradientDescent,
)

__all__ = [
    "HalvedNoise",
    "HalvedNoiseRegression",
    "RepeatedObjective",
    "RepeatedOutput",
    "UnderstatedGradientDescent",
    "UnderstatedNewton",
    "UnderstatedSGD",
    "UnderstatedStandardizedGradientDescent",
    "UnderstatedSufficientStatistics",
    "UnderstatedWhitenedGradientDescent",
    "UnscheduledRelease",
    "UnscheduledReleaseRegression",
    "UnscheduledReleases",
]


class Halved:
    """Half the noise that the report states."""

    def _run(self, plan: Any, *arguments: Any) -> Any:
        return super()._run(replace(plan, scale=plan.scale / 2), *arguments)


class Unscheduled:
    """A gate that answers once more than the schedule says, for a solver that states one release fewer than it asks."""

    number = 1

    def _run(self, plan: Any, rows: Any, noise: Any, progress: Any) -> Any:
        unseen = SimpleNamespace(begin=lambda: None, tick=lambda: None)  # scikit-learn's callbacks would count the releases
        return super()._run(replace(plan, schedule=with_more(plan.schedule, self.number)), rows, noise, unseen)


class HalvedNoise(Halved, DPLogisticRegression):
    """Half the noise, for class labels."""


class HalvedNoiseRegression(Halved, DPLinearRegression):
    """Half the noise, for numbers."""


class UnscheduledRelease(Unscheduled, DPLogisticRegression):
    """One release more, for class labels."""


class UnscheduledReleases(UnscheduledRelease):
    """A gate that answers twice more than the schedule says."""

    number = 2


class UnscheduledReleaseRegression(Unscheduled, DPLinearRegression):
    """One release more, for numbers."""


class Understated:
    """A solver's schedule less one release."""

    def schedule(self, problem: Problem) -> Schedule:
        """Return one release fewer than will be asked."""
        return with_more(super().schedule(problem), -1)


class UnderstatedGradientDescent(Understated, GradientDescent):
    """Asks once more than it states."""


class UnderstatedNewton(Understated, Newton):
    """Asks once more than it states."""


class UnderstatedSGD(Understated, SGD):
    """Asks once more than it states."""


class UnderstatedStandardizedGradientDescent(Understated, StandardizedGradientDescent):
    """Asks once more than it states."""


class Repeated:
    """Asks for the minimum several times, states one release, and returns the mean."""

    times = 2

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Return the mean of the answers."""
        answers = [super(Repeated, self).solve(problem, ask, rng).coef for _ in range(self.times)]
        return SolverResult(sum(answers) / self.times, None)


class RepeatedObjective(Repeated, ObjectivePerturbation):
    """Asks twice more than it states: the bound of the proof is not attained, so once more is too little to see."""

    times = 3


class RepeatedOutput(Repeated, OutputPerturbation):
    """Asks once more than it states."""


class UnderstatedSufficientStatistics(SufficientStatistics):
    """Asks for everything twice, and states it once."""

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Solve with the second answer."""
        return super().solve(problem, lambda query: (ask(query), ask(query))[1], rng)


class UnderstatedWhitenedGradientDescent(Understated, WhitenedGradientDescent):
    """Asks once more than it states."""


def with_more(schedule: Schedule, number: int) -> Schedule:
    """Schedule whose gradients, or whose last releases where there are none, are asked so many times more."""
    entries = list(schedule.entries)
    place = next(
        (place for place, (_, release) in enumerate(entries) if release.query.__name__.endswith(("Gradient", "Minimum"))), -1
    )
    entries[place] = entries[place][0] + number, entries[place][1]
    return Schedule(tuple(entries))
