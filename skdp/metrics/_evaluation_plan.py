"""Plan the releases of a private evaluation, report them and charge for them."""

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
from skdp.privacy.ledger.charging import pay, tokens_along
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import ONE_PERSON, OTHER_FITS, PrivacyReport, describe_releases, noise_multiplier, spent
from skdp.privacy.schedule import Gaussian, Laplace, Release, Schedule

__all__ = ["FEWEST", "NOISES", "EvaluationPlan", "budget_of", "check_level", "check_noise", "refuse_laplace"]

FEWEST = 50  # records
LARGEST_LEVEL = 1 - 1e-9  # of intervals. A choice: closer to 1, quantiles have few digits, and the last one below 1 is infinite
DISJOINT = "the test records are other people than the training records, as the caller stated: then the two budgets do not add up"
NOISES = ("auto", "laplace", "gaussian")
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
        Full-data Gaussian releases, each with its clip norm, or Laplace releases.
    title, reason, unit : str
        What is released, why, and what the noise of the last release is in, for the report.
    assumption : str
        What is assumed of the targets.
    changes : tuple of int, default=()
        By how much one record changes the integers of each Laplace release.
    """

    n_samples: int
    budget: Budget
    schedule: Schedule
    title: str
    reason: str
    unit: str
    assumption: str
    changes: tuple[int, ...] = ()

    @property
    def laplace(self) -> bool:
        """Whether the noise is Laplace (True) or Gaussian."""
        return bool(self.changes)

    @cached_property
    def scale(self) -> float:
        """Noise scale of the schedule."""
        return calibrate(self.schedule, self.budget)

    @cached_property
    def stds(self) -> list[float]:
        """Standard deviation of the noise of each coordinate, by release."""
        if self.laplace:
            return [self._integer_noise(place).std if self.budget.private else 0.0 for place in range(len(self.changes))]
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
        allowances = tuple(
            self._allowance(place, release) if self.budget.private else 0.0
            for place, (_, release) in enumerate(self.schedule.entries)
        )
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
                "the model is public, its prediction for a record depends on that record alone, and no record has missing values "
                "unless the model takes these",
                self.assumption,
                DISJOINT if disjoint else SHARED,
                OTHER_FITS,
                ONE_PERSON,
            ),
            versions=versions(),
        )

    def pay(self, report: PrivacyReport) -> None:
        """Charge the active ledgers, and those that came along into a worker process."""
        seeded = {"noise": "from a seed: not private"} if report.reproducible_noise else {}
        pay(
            Spending(
                estimator=report.estimator,
                parameters={**report.public["parameters"], **seeded},
                schedule=tuple(str(line) for line in report.releases),
                adjacency=self.budget.adjacency,
                epsilon=report.spent.epsilon,
                delta=self.budget.delta,
                composition=None if self.laplace or not self.budget.private else self._composition(),
            ),
            tokens_along(),
        )

    def _composition(self) -> Composition:
        return Composition.of(self.schedule, self.budget.adjacency).at(self.scale)

    def _integer_noise(self, place: int) -> IntegerLaplace:
        """Return the Laplace noise of a release."""
        mechanism = self.schedule.entries[place][1].mechanism
        assert isinstance(mechanism, Laplace)
        return IntegerLaplace.calibrated(sensitivity=self.changes[place], scale=self.scale * mechanism.weight)

    def _allowance(self, place: int, release: Release) -> float:
        """Return the relative increase of the noise of a release that covers rounding."""
        if isinstance(release.mechanism, Laplace):
            return self._integer_noise(place).scale / (self.changes[place] * self.scale * release.mechanism.weight) - 1
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


def budget_of(n_samples: int, epsilon: Any, delta: Any, adjacency: Any, *, pure: bool = False) -> Budget:
    budget = Budget.from_parameters(epsilon, delta, adjacency, n_samples)
    if budget.delta == 0 and not pure:
        raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
    return budget


def check_level(level: Any) -> None:
    if not isinstance(level, Real) or isinstance(level, bool) or not 0.5 <= float(level) <= LARGEST_LEVEL:
        raise ValueError(f"level={shown(level)}; expected a number from 0.5 to {LARGEST_LEVEL:.9f}.")


def check_noise(noise: Any, delta: Any) -> None:
    if noise not in NOISES:
        raise ValueError(f"noise={shown(noise)}; expected one of {', '.join(NOISES)}.")
    if noise == "gaussian" and isinstance(delta, Real) and delta == 0:
        raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")


def refuse_laplace(noise: Any) -> None:
    if noise == "laplace":
        raise ValueError("noise='laplace' is for classifiers; expected 'gaussian' or 'auto' for a regressor.")
