"""Plan the releases of a private evaluation, report them and charge for them."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

from skdp._validation import shown
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.budget import Budget
from skdp.privacy.ledger.charging import pay, tokens_along
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.release_plan import ReleasePlan
from skdp.privacy.report.statement import ONE_PERSON, OTHER_FITS, PrivacyReport

__all__ = ["FEWEST", "NOISES", "EvaluationPlan", "budget_of", "check_level", "check_noise", "refuse_laplace"]

FEWEST = 50  # records
LARGEST_LEVEL = 1 - 1e-9  # of intervals. A choice: closer to 1, quantiles have few digits, and the last one below 1 is infinite
DISJOINT = "the test records are other people than the training records, as the caller stated: then the two budgets do not add up"
NOISES = ("auto", "laplace", "gaussian")
SHARED = "the budget adds to that of the fit, unless the test records are other people than the training records"


@dataclass(frozen=True)
class EvaluationPlan(ReleasePlan):
    """Hold the releases of an evaluation, from public facts.

    They are full-data Gaussian releases, each with its clip norm, or Laplace releases.

    Parameters
    ----------
    title, reason, unit : str
        What is released, why, and what the noise of the last release is in, for the report.
    assumption : str
        What is assumed of the targets.
    """

    title: str
    reason: str
    unit: str
    assumption: str

    @property
    def laplace(self) -> bool:
        """Whether the noise is Laplace (True) or Gaussian."""
        return bool(self.changes)

    @cached_property
    def stds(self) -> list[float]:
        """Standard deviation of the noise of each coordinate, by release."""
        releases = [release for _, release in self.schedule.entries]
        if not self.budget.private:
            return [0.0] * len(releases)
        if self.laplace:
            return [self.integer_noise(release, change).std for release, change in zip(releases, self.changes, strict=True)]
        return [noise_multiplier(line, self.scale, self.budget.adjacency) * float(line.clip_norm or 0) for line in releases]

    def report(
        self, names: tuple[str, ...], model: str = "any", noise: NoiseSource | None = None, *, disjoint: bool = False
    ) -> PrivacyReport:
        """Return the report; it is that of a plan without a source of noise."""
        return self.cost.report(
            "evaluate",
            planned=noise is None,
            reproducible_noise=noise is not None and not noise.secure,
            solver="counts",
            solver_title=self.title,
            solver_reason=self.reason,
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
        )

    def pay(self, report: PrivacyReport, noise: NoiseSource) -> None:
        """Charge the active ledgers, and those that came along into a worker process."""
        pay(self.cost.spending(report.estimator, report.public["parameters"], noise), tokens_along())


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
