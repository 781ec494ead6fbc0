"""Plan, report, charge and run an evaluation; define the interface of its kinds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from skdp._validation import shown
from skdp.metrics._definition import MetricDefinition
from skdp.metrics._evaluation import Evaluation
from skdp.metrics._noisy_table import WIDEST
from skdp.privacy.budget import Budget
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.data.summation import summation_error
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.privacy.ledger.charging import pay, paying, tokens_along
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import SumQuery
from skdp.privacy.release_plan import ReleasePlan
from skdp.privacy.report.statement import OTHER_FITS, PrivacyReport, assumed_of

FEWEST = 50  # records
DISJOINT = "the test records are other people than the training records, as the caller stated: then the two budgets do not add up"
NOISES = ("auto", "laplace", "gaussian")
SHARED = "the budget adds to that of the fit, unless the test records are other people than the training records"

Ask = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class EvaluationPlan(ReleasePlan):
    """Hold the releases of an evaluation, from public facts.

    They are full-data Gaussian releases, each with its clip norm, or Laplace releases.

    Parameters
    ----------
    kind : EvaluationKind
        What is released.
    reason : str
        Why, for the report.
    """

    kind: "EvaluationKind"
    reason: str

    def report(
        self, names: tuple[str, ...], model: str = "any", noise: NoiseSource | None = None, *, disjoint: bool = False
    ) -> PrivacyReport:
        """Return the report; it is that of a plan without a source of noise."""
        return self.cost.report(
            "evaluate",
            planned=noise is None,
            reproducible_noise=noise is not None and not noise.secure,
            solver="counts",
            solver_title=self.kind.title,
            solver_reason=self.reason,
            noise_size=f"{self.kind.relative_noise(self):.3g} {self.kind.unit}",
            public={
                self.budget.number: self.n_samples,
                "parameters": {"metrics": ", ".join(names), "model": model},
                "n_releases": len(self.schedule),
                "passes": self.schedule.passes,
            },
            assumptions=(
                "the model is public, its prediction for a record depends on that record alone, and no record has missing values "
                "unless the model takes these",
                self.kind.assumption,
                DISJOINT if disjoint else SHARED,
                OTHER_FITS,
                *assumed_of(self.budget.unit),
            ),
        )

    def pay(self, report: PrivacyReport, noise: NoiseSource) -> None:
        """Charge the active ledgers, and those that came along into a worker process."""
        pay(self.cost.spending(report.estimator, report.public["parameters"], noise), tokens_along())


class EvaluationKind(ABC):
    """Base of the kinds of evaluation. A subclass holds public facts alone, and states the releases that its metrics need.

    Attributes
    ----------
    title, reason, unit : str
        What is released, why, and what the noise of the last release is in, for the report.
    assumption : str
        What is assumed of the targets, for the report.
    shares : tuple of float
        Share of each release: in epsilon for Laplace noise, in the squared Gaussian-DP parameter for Gaussian noise.
    """

    title: ClassVar[str]
    reason: str
    unit: ClassVar[str]
    assumption: str
    shares: tuple[float, ...] = (1.0,)

    @abstractmethod
    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return a query of the type, the clip norm and the size of each release."""

    @abstractmethod
    def release(self, ask: Ask, plan: EvaluationPlan) -> Any:
        """Ask for the releases of a plan, and return the table from which all metrics follow."""

    def error(self, plan: EvaluationPlan) -> float:
        """Return the size of the noise by which Laplace and Gaussian noise are compared."""
        return plan.stds[-1]

    def relative_noise(self, plan: EvaluationPlan) -> float:
        """Return the noise of the last release, in ``unit``, for the report."""
        return plan.stds[-1] / plan.n_samples

    def metric_noise(self, plan: EvaluationPlan) -> float:
        """Return the standard deviation of the noise of a typical metric; 0 if no warning of noise is due."""
        return 0.0

    def plan(self, n_samples: int, budget: Budget, noise: str) -> EvaluationPlan:
        """Return the releases with Laplace noise or with Gaussian noise.

        Parameters
        ----------
        n_samples : int
            Number of test records.
        budget : Budget
            What may be spent. Without a delta, noise is Laplace.
        noise : {"auto", "laplace", "gaussian"}
            Which one; "auto" takes Gaussian noise under a ledger, and the one with the smaller error without, from public facts.

        Returns
        -------
        EvaluationPlan
            The plan, with the reason.
        """
        if noise != "auto" or budget.delta == 0 or not budget.private:
            return self._plan(n_samples, budget, noise == "laplace" or budget.delta == 0)
        if paying():
            plan, why = self._plan(n_samples, budget, False), "Gaussian noise, which costs less in a ledger"
        else:
            laplace, gaussian = (self._plan(n_samples, budget, laplace) for laplace in (True, False))
            less = self.error(laplace) <= self.error(gaussian)
            plan, why = (laplace, "Laplace noise") if less else (gaussian, "Gaussian noise")
            why += ", which has less error at this budget"
        return replace(plan, reason=f"{plan.reason}; {why}")

    def _plan(self, n_samples: int, budget: Budget, laplace: bool) -> EvaluationPlan:
        facts: dict[str, Any] = {"kind": self, "reason": self.reason, "summation_error": summation_error(n_samples, False)}
        return EvaluationPlan.of_queries(self.queries(laplace), self.shares, laplace, budget, n_samples=n_samples, **facts)


def run_evaluation(
    kind: EvaluationKind,
    records: ScoredRecords,
    metrics: Sequence[MetricDefinition],
    budget: Budget,
    *,
    noise: str,
    level: float,
    model: str,
    classes: tuple[Any, ...] = (),
    group_labels: tuple[Any, ...] = (),
    disjoint: bool = False,
    random_state: Any = None,
) -> Evaluation:
    """Charge the active ledgers, make the releases and return the metrics.

    Parameters
    ----------
    kind : EvaluationKind
        What is released.
    records : ScoredRecords
        Scores, targets and groups of the test records, checked.
    metrics : sequence of MetricDefinition
        Metrics that follow from these releases.
    budget : Budget
        What may be spent.
    noise : {"auto", "laplace", "gaussian"}
        Kind of noise.
    level : float
        Coverage of the intervals.
    model : str
        Name of the model, for the report.
    classes, group_labels : tuple
        Labels of the classes, and names of the groups.
    disjoint : bool, default=False
        Whether nobody in the test records is in the training records.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the noise in tests.

    Returns
    -------
    Evaluation
        The metrics, of all records and of each group.
    """
    plan = kind.plan(records.n_samples, budget, noise)
    if 2 * float(ndtri(0.975)) * kind.metric_noise(plan) > WIDEST:  # noise alone makes intervals so wide that no value is given
        warn(
            f"Noise is likely to hide the scores of {plan.n_samples} test records at epsilon={plan.budget.epsilon:g}, and the "
            "budget is spent all the same. Use more test records, a larger epsilon, or one metric alone. plan_evaluation "
            "tells the noise before.",
            LowSignalWarning,
        )
    source = NoiseSource(random_state)
    report = plan.report(tuple(metric.name for metric in metrics), model, source, disjoint=disjoint)
    plan.pay(report, source)
    oracle = plan.oracle(records, source)
    table = kind.release(oracle.ask, plan)
    oracle.finish()

    def evaluation(table: Any, parts: dict[Any, Evaluation]) -> Evaluation:
        found = {metric.name: metric.metric(table, level) for metric in metrics}
        return Evaluation(found, level, table, report, classes, parts)

    parts = (table.parts or (table,)) if group_labels else ()  # a single group has no table of its own
    return evaluation(table, {label: evaluation(part, {}) for label, part in zip(group_labels, parts, strict=True)})


def budget_of(n_samples: int, epsilon: Any, delta: Any, adjacency: Any, *, pure: bool = False, unit: Any = "record") -> Budget:
    budget = Budget.from_parameters(epsilon, delta, adjacency, n_samples, unit)
    if budget.delta == 0 and not (pure and budget.unit == "record"):
        raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
    return budget


def noise_of(noise: Any, unit: str) -> Any:
    """Return the kind of noise; that of persons is Gaussian, because weighted counts are no integers."""
    if unit == "record":
        return noise
    if noise == "laplace":
        raise ValueError("noise='laplace' with persons, whose weighted counts are no integers; expected 'gaussian' or 'auto'.")
    return "gaussian"


def check_noise(noise: Any, delta: Any) -> None:
    if noise not in NOISES:
        raise ValueError(f"noise={shown(noise)}; expected one of {', '.join(NOISES)}.")
    if noise == "gaussian" and isinstance(delta, Real) and delta == 0:
        raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")


def refuse_laplace(noise: Any) -> None:
    if noise == "laplace":
        raise ValueError("noise='laplace' is for classifiers; expected 'gaussian' or 'auto' for a regressor.")
