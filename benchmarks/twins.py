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
    "Halved",
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
    "UnscheduledReleases",
    "UnscheduledReleasesRegression",
    "with_more",
]


MORE = 3  # unstated releases: with the one that is stated they double the Gaussian-DP parameter, as half the noise does


class Halved:
    """Half the noise that the report states."""

    def _run(self, plan: Any, *arguments: Any) -> Any:
        return super()._run(replace(plan, scale=plan.scale / 2), *arguments)


class Unscheduled:
    """A gate that answers more often than the schedule says, for a solver that states fewer releases than it asks."""

    number = MORE

    def _run(self, plan: Any, rows: Any, noise: Any, progress: Any) -> Any:
        unseen = SimpleNamespace(begin=lambda: None, tick=lambda: None)  # scikit-learn's callbacks would count the releases
        return super()._run(replace(plan, schedule=with_more(plan.schedule, self.number)), rows, noise, unseen)


class HalvedNoise(Halved, DPLogisticRegression):
    """Half the noise, for class labels."""


class HalvedNoiseRegression(Halved, DPLinearRegression):
    """Half the noise, for numbers."""


class UnscheduledReleases(Unscheduled, DPLogisticRegression):
    """Releases more, for class labels."""


class UnscheduledReleasesRegression(Unscheduled, DPLinearRegression):
    """Releases more, for numbers."""


class Understated:
    """A solver's schedule less what the gate answers beyond it."""

    def schedule(self, problem: Problem) -> Schedule:
        """Return fewer releases than will be asked."""
        return with_more(super().schedule(problem), -MORE)


class UnderstatedGradientDescent(Understated, GradientDescent):
    """Asks more than it states."""


class UnderstatedNewton(Understated, Newton):
    """Asks more than it states."""


class UnderstatedSGD(Understated, SGD):
    """Asks more than it states."""


class UnderstatedStandardizedGradientDescent(Understated, StandardizedGradientDescent):
    """Asks more than it states."""


class Repeated:
    """Asks for the minimum several times, states one release, and returns the mean."""

    times = 1 + MORE

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Return the mean of the answers."""
        answers = [super(Repeated, self).solve(problem, ask, rng).coef for _ in range(self.times)]
        return SolverResult(sum(answers) / self.times, None)


class RepeatedObjective(Repeated, ObjectivePerturbation):
    """Asks more than it states."""


class RepeatedOutput(Repeated, OutputPerturbation):
    """Asks more than it states."""


class UnderstatedSufficientStatistics(SufficientStatistics):
    """Asks for everything several times, and states it once."""

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Solve with the last answer."""
        return super().solve(problem, lambda query: [ask(query) for _ in range(1 + MORE)][-1], rng)


class UnderstatedWhitenedGradientDescent(Understated, WhitenedGradientDescent):
    """Asks more than it states."""


def with_more(schedule: Schedule, number: int) -> Schedule:
    """Schedule whose gradients, or whose last releases where there are none, are asked so many times more."""
    entries = list(schedule.entries)
    place = next(
        (place for place, (_, release) in enumerate(entries) if release.query.__name__.endswith(("Gradient", "Minimum"))), -1
    )
    entries[place] = entries[place][0] + number, entries[place][1]
    return Schedule(tuple(entries))
