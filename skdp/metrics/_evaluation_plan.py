"""State what a private evaluation will release, and charge for it."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

from skdp._software import versions
from skdp._validation import shown
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.data.summation import summation_error
from skdp.privacy.ledger.charging import pay
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import ONE_PERSON, OTHER_FITS, PrivacyReport, describe_releases, noise_multiplier, spent
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["FEWEST", "EvaluationPlan", "budget_of", "check_level"]

FEWEST = 50  # records
DISJOINT = "the test records are other people than the training records, as the caller stated: then the two budgets do not add up"
SHARED = "the budget adds to that of the fit, unless the test records are other people than the training records"


@dataclass(frozen=True)
class EvaluationPlan:
    """Hold the releases of an evaluation, from public facts.

    Parameters
    ----------
    n_samples : int
        Number of test records.
    budget : Budget
        What may be spent.
    schedule : Schedule
        Full-data Gaussian releases, each with its clip norm.
    title, reason, unit : str
        What is released, why, and what the noise of the last release is in, for the report.
    assumption : str
        What is assumed of the targets.
    """

    n_samples: int
    budget: Budget
    schedule: Schedule
    title: str
    reason: str
    unit: str
    assumption: str

    @cached_property
    def scale(self) -> float:
        """Noise scale of the schedule."""
        return calibrate(self.schedule, self.budget)

    @cached_property
    def stds(self) -> list[float]:
        """Standard deviation of the noise of each coordinate, by release."""
        return [
            noise_multiplier(release, self.scale, self.budget.adjacency) * float(release.clip_norm or 0)
            if self.budget.private
            else 0.0
            for _, release in self.schedule.entries
        ]

    def report(
        self, names: tuple[str, ...], model: str = "any", noise: NoiseSource | None = None, *, disjoint: bool = False
    ) -> PrivacyReport:
        """Return the report; it is that of a plan without a source of noise."""
        allowances = tuple(self._allowance(release) if self.budget.private else 0.0 for _, release in self.schedule.entries)
        return PrivacyReport(
            estimator="evaluate",
            planned=noise is None,
            budget=self.budget,
            adjacency_in_words=ADJACENCIES[self.budget.adjacency],
            spent=spent(self.schedule, self.scale, self.budget),
            solver="counts",
            solver_title=self.title,
            solver_reason=self.reason,
            releases=describe_releases(self.schedule, self.scale, self.budget, allowances),
            reproducible_noise=noise is not None and not noise.secure,
            noise_size=f"{self.stds[-1] / self.n_samples:.3g} {self.unit}",
            public={
                "n_samples": self.n_samples,
                "parameters": {"metrics": ", ".join(names), "model": model},
                "n_releases": len(self.schedule),
                "passes": self.schedule.passes,
            },
            assumptions=(
                "the model is public, and its prediction for a record depends on that record alone",
                self.assumption,
                DISJOINT if disjoint else SHARED,
                OTHER_FITS,
                ONE_PERSON,
            ),
            versions=versions(),
        )

    def pay(self, report: PrivacyReport) -> None:
        """Charge the active ledgers."""
        seeded = {"noise": "from a seed: not private"} if report.reproducible_noise else {}
        pay(
            Spending(
                estimator=report.estimator,
                parameters={**report.public["parameters"], **seeded},
                schedule=tuple(str(line) for line in report.releases),
                adjacency=self.budget.adjacency,
                epsilon=report.spent.epsilon,
                delta=self.budget.delta,
                composition=Composition.of(self.schedule, self.budget.adjacency).at(self.scale) if self.budget.private else None,
            )
        )

    def _allowance(self, release: Release) -> float:
        """Return the relative increase of the noise of a release that covers rounding."""
        assert isinstance(release.mechanism, Gaussian)
        sensitivity, weight = release.query.relative_sensitivity[self.budget.adjacency], release.mechanism.weight
        noise = GridGaussian.calibrated(
            clip_norm=float(release.clip_norm or 1),
            relative_sensitivity=sensitivity,
            scale=self.scale * weight,
            n_samples=self.n_samples,
            size=int(release.size or 1),
            summation_error=summation_error(self.n_samples, False),
        )
        return noise.std / (sensitivity * self.scale * weight * float(release.clip_norm or 1)) - 1


def budget_of(n_samples: int, epsilon: Any, delta: Any, adjacency: Any) -> Budget:
    budget = Budget.from_parameters(epsilon, delta, adjacency, n_samples)
    if budget.delta == 0:
        raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
    return budget


def check_level(level: Any) -> None:
    if not isinstance(level, Real) or isinstance(level, bool) or not 0.5 <= float(level) < 1:
        raise ValueError(f"level={shown(level)}; expected a number from 0.5 on, below 1.")
