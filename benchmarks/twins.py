"""Estimators that break their guarantee in a known way: an audit has to catch them."""

from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from skdp import DPAUCMaximizer, DPConstrainedClassifier, DPLinearRegression, DPLogisticRegression, DPQuantileRegressor
from skdp.privacy import Schedule
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ClassMoments, Gradient, ShortenedGradient
from skdp.privacy.schedule import Release
from skdp.solvers import (
    SGD,
    SVRG,
    AcceleratedMirrorDescent,
    DiscriminantAnalysis,
    FrankWolfe,
    InferenceDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Problem,
    Solver,
    SolverResult,
    SufficientStatistics,
    SVRGPlusPlus,
)

__all__ = [
    "ExactGradientOverSet",
    "ExactUpdates",
    "First",
    "ForgetfulGate",
    "Halved",
    "HalvedNoise",
    "HalvedNoiseOverSet",
    "HalvedNoiseQuantile",
    "HalvedNoiseRanking",
    "HalvedNoiseRegression",
    "RepeatedObjective",
    "RepeatedOutput",
    "RepeatedPasses",
    "Segment",
    "UnderstatedDiscriminantAnalysis",
    "UnderstatedFrankWolfe",
    "UnderstatedInference",
    "UnderstatedSVRG",
    "UnderstatedSVRGPlusPlus",
    "UnderstatedSufficientStatistics",
    "UnscheduledReleases",
    "UnscheduledReleasesOverSet",
    "UnscheduledReleasesQuantile",
    "UnscheduledReleasesRanking",
    "UnscheduledReleasesRegression",
    "UnscheduledReplicates",
    "UnscheduledSelections",
    "understated",
    "with_more",
]


MORE = 3  # unstated releases: with the one that is stated they double the Gaussian-DP parameter, as half the noise does


def tampered(task: type, kind: Any) -> type:
    """Return the class of a task of an estimator that runs as another class says."""
    return type(f"{task.__name__}{kind.__name__}", (task, kind._task_class), {})


class Halved:
    """Half the noise that the report states."""

    def run(self, plan: Any, *arguments: Any) -> Any:
        return super().run(replace(plan, scale=plan.scale / 2), *arguments)


class Unscheduled:
    """An oracle that answers more often than the schedule says, for a solver that states fewer releases than it asks."""

    number = MORE

    def run(self, plan: Any, rows: Any, noise: Any, rng: Any, progress: Any) -> Any:
        unseen = SimpleNamespace(begin=lambda: None, tick=lambda: None)  # scikit-learn's callbacks would count the releases
        return super().run(replace(plan, schedule=with_more(plan.schedule, self.number)), rows, noise, rng, unseen)


class HalvedNoise(DPLogisticRegression):
    """Half the noise, for class labels."""

    _task_class = tampered(Halved, DPLogisticRegression)


class HalvedNoiseRegression(DPLinearRegression):
    """Half the noise, for numbers."""

    _task_class = tampered(Halved, DPLinearRegression)


class HalvedNoiseQuantile(DPQuantileRegressor):
    """Half the noise, for a quantile."""

    _task_class = tampered(Halved, DPQuantileRegressor)


class HalvedNoiseRanking(DPAUCMaximizer):
    """Half the noise, for scores of two classes."""

    _task_class = tampered(Halved, DPAUCMaximizer)


class HalvedNoiseOverSet(DPConstrainedClassifier):
    """Half the noise, over a set."""

    _task_class = tampered(Halved, DPConstrainedClassifier)


class UnscheduledReleases(DPLogisticRegression):
    """Makes additional releases, for class labels."""

    _task_class = tampered(Unscheduled, DPLogisticRegression)


class UnscheduledReleasesRegression(DPLinearRegression):
    """Makes additional releases, for numbers."""

    _task_class = tampered(Unscheduled, DPLinearRegression)


class UnscheduledReleasesQuantile(DPQuantileRegressor):
    """Makes additional releases, for a quantile."""

    _task_class = tampered(Unscheduled, DPQuantileRegressor)


class UnscheduledReleasesRanking(DPAUCMaximizer):
    """Makes additional releases, for scores of two classes."""

    _task_class = tampered(Unscheduled, DPAUCMaximizer)


class UnscheduledReleasesOverSet(DPConstrainedClassifier):
    """Makes additional releases, over a set."""

    _task_class = tampered(Unscheduled, DPConstrainedClassifier)


class UnscheduledSelections(UnscheduledReleasesOverSet):
    """Makes additional selections."""

    class _task_class(UnscheduledReleasesOverSet._task_class):
        """Its task."""

        number = 2 * MORE

    number = 2 * MORE  # with the two that are stated they do the same; a single one is charged what no attack can show


class Segment:
    """Two opposite vertices on the first axis: the polytope whose choices reveal most about a record.

    Parameters
    ----------
    radius : float
        Distance of the vertices from 0.
    """

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def __repr__(self) -> str:
        return f"Segment({self.radius!r})"

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the segment."""
        return np.eye(1, w.size)[0] * np.clip(w[0], -self.radius, self.radius)

    def scaled(self, factor: float) -> "Segment":
        """Return the segment times a factor."""
        return Segment(self.radius * factor)

    def vertices(self, n_coefficients: int) -> np.ndarray:
        """Return both vertices, one per row."""
        return self.radius * np.eye(1, n_coefficients) * np.array([[1.0], [-1.0]])


class First:
    """Draws in the worst way: always the coordinate of the canary, whatever probabilities are stated."""

    probabilities = (0.5, 0.5)

    def __repr__(self) -> str:
        return "First()"

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Return the first coordinate."""
        return np.array([0])


class ExactGradientOverSet(DPConstrainedClassifier):
    """Gives the records to a solver that reads them."""

    class _task_class(DPConstrainedClassifier._task_class):
        """Its task."""

        def run(self, plan: Any, rows: Any, *arguments: Any) -> Any:
            ExactUpdates.rows = rows
            return super().run(plan, rows, *arguments)


class Forgetful(Oracle):
    """An oracle that does not remember which records a single pass has used."""

    def _use(self, named: np.ndarray | None, release: Release) -> np.ndarray | None:
        self._uses[:] = 0
        return super()._use(named, release)


class ForgetfulGate(DPLogisticRegression):
    """Lets a solver use records again."""

    uses = 1 + MORE

    class _task_class(DPLogisticRegression._task_class):
        """Its task."""

        def run(self, *arguments: Any) -> Any:
            with patch("skdp.privacy.release_plan.Oracle", Forgetful):
                return super().run(*arguments)


class Understated:
    """The schedule of a solver without the additional releases that the oracle makes."""

    def schedule(self, problem: Problem) -> Schedule:
        """Return fewer releases than the solver will query."""
        return with_more(super().schedule(problem), -MORE)


@lru_cache
def understated(kind: type[Solver]) -> type[Solver]:
    """Return a solver class that makes more queries than it states."""
    return type(f"Understated{kind.__name__}", (Understated, kind), {"__doc__": "Asks more than it states."})


class UnderstatedFrankWolfe(FrankWolfe):
    """Makes more queries than it states."""

    def schedule(self, problem: Problem) -> Schedule:
        """Return fewer releases than the solver will query."""
        return with_more(super().schedule(problem), -UnscheduledSelections.number)


class UnderstatedInference(InferenceDescent):
    """Makes more replicates than it states."""

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Solve with more replicates."""
        return InferenceDescent(self.n_steps, n_replicates=1 + MORE, row_bound=self.row_bound).solve(problem, ask, rng)


class UnscheduledReplicates(DPLogisticRegression):
    """Answers more replicates than the schedule has."""

    class _task_class(DPLogisticRegression._task_class):
        """Its task."""

        def run(self, plan: Any, *arguments: Any) -> Any:
            entries = list(plan.schedule.entries)
            place = max(
                place for place, (_, release) in enumerate(entries) if release.query is ShortenedGradient
            )  # not the pilot
            entries[place] = (1 + MORE) * entries[place][0], entries[place][1]
            return super().run(replace(plan, schedule=Schedule(tuple(entries))), *arguments)


class ExactUpdates(AcceleratedMirrorDescent):
    """The algorithm as the paper prints it: the y-update takes the gradient without noise."""

    rows: TrainingData

    def _y_update(self, problem: Problem, query: Gradient, move: np.ndarray) -> np.ndarray:
        gradient = query.evaluate(self.rows) / problem.n_samples
        return problem.constraint.project(query.coef.ravel() - gradient / problem.smoothness)


class RepeatedPasses(SGD):
    """A single pass that uses all records in every step."""

    def _batches(self, problem: Problem, rng: np.random.Generator) -> list[np.ndarray]:
        return [np.arange(problem.n_samples)] * self._steps(problem)


class FirstRepeated:
    """Queries the gradient at the start several times, and states it once."""

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Solve with the last answer."""
        times = [1 + MORE]
        return super().solve(problem, lambda query: [ask(query) for _ in range(times.pop() if times else 1)][-1], rng)


class UnderstatedSVRG(FirstRepeated, SVRG):
    """Makes more queries than it states."""


class UnderstatedSVRGPlusPlus(FirstRepeated, SVRGPlusPlus):
    """Makes more queries than it states."""


class Repeated:
    """Queries the minimum several times, states one release, and returns the mean."""

    times = 1 + MORE

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Return the mean of the answers."""
        answers = [super(Repeated, self).solve(problem, ask, rng).coef for _ in range(self.times)]
        return SolverResult(sum(answers) / self.times, None)


class RepeatedObjective(Repeated, ObjectivePerturbation):
    """Makes more queries than it states."""


class RepeatedOutput(Repeated, OutputPerturbation):
    """Makes more queries than it states."""


class UnderstatedSufficientStatistics(SufficientStatistics):
    """Makes every query several times, and states it once."""

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Solve with the last answer."""
        return super().solve(problem, lambda query: [ask(query) for _ in range(1 + MORE)][-1], rng)


class UnderstatedDiscriminantAnalysis(DiscriminantAnalysis):
    """Queries the moments of the classes several times, and states it once."""

    def solve(self, problem: Problem, ask: Any, rng: Any) -> SolverResult:
        """Solve with the last answer."""

        def answer(query: Any) -> Any:
            return [ask(query) for _ in range(1 + MORE if isinstance(query, ClassMoments) else 1)][-1]

        return super().solve(problem, answer, rng)


def with_more(schedule: Schedule, number: int) -> Schedule:
    """Schedule whose gradients, or whose last releases where there are none, are asked so many times more."""
    entries = list(schedule.entries)
    place = next(
        (place for place, (_, release) in enumerate(entries) if release.query.__name__.endswith(("Gradient", "Minimum"))), -1
    )
    entries[place] = entries[place][0] + number, entries[place][1]
    return Schedule(tuple(entries))
