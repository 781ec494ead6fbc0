"""Plan releases from public facts: their noise, what they spend together, and what reports and ledgers state of them.

A `Cost` says what one charge pays for. A `ReleasePlan` has the cost of the releases of one schedule. What is released in several
schedules under one budget, such as a fit in two stages or a search, has one cost, too, and is charged once.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget, neighbours
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.privacy.noise.selection import GumbelNoise
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.noise.staircase import IntegerStaircase
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Query, Scores
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent, ReleaseLine, describe_releases
from skdp.privacy.report.versions import versions
from skdp.privacy.schedule import Curve, Gaussian, Laplace, Mechanism, Release, Schedule, Selection, Staircase

__all__ = ["Cost", "ReleasePlan", "noise_stated"]

Plan = TypeVar("Plan", bound="ReleasePlan")


def noise_stated(parameters: Mapping[str, str], noise: NoiseSource) -> dict[str, str]:
    """Return parameters as text, with a remark if the noise came from a seed."""
    return {**parameters, **({} if noise.secure else {"noise": "from a seed: not private"})}


@dataclass(frozen=True)
class Cost:
    """State what one charge pays for.

    Parameters
    ----------
    budget : Budget
        What may be spent.
    lines : tuple of ReleaseLine or str
        Releases, one line per kind.
    epsilon : float
        What they spend at the budget's delta.
    composition : Composition or None
        Releases at noise scale 1, as ledgers add them up; None if only the guarantee is known.
    samples : bool, default=False
        Whether a release reads a secret sample of the records.
    """

    budget: Budget
    lines: tuple[Any, ...]
    epsilon: float
    composition: Composition | None
    samples: bool = False

    @classmethod
    def gaussian(cls, budget: Budget, lines: Iterable[Any], squared_mu: float) -> "Cost":
        """Return the cost of full-data Gaussian releases from the sum of their squared Gaussian-DP parameters."""
        composition = Composition(budget.adjacency, (), (), squared_mu) if budget.private else None
        return cls(budget, tuple(lines), gaussian_epsilon(math.sqrt(squared_mu), budget.delta), composition)

    @property
    def spent(self) -> PrivacySpent:
        """Epsilon and delta that the releases spend."""
        return PrivacySpent(self.epsilon, self.budget.delta)

    def report(self, estimator: str, **stated: Any) -> PrivacyReport:
        """Return the privacy report; ``stated`` are its fields that do not follow from the cost."""
        of_cost = {
            "budget": self.budget,
            "adjacency_in_words": neighbours(self.budget.adjacency, self.budget.unit),
            "spent": self.spent,
            "releases": self.lines,
            "versions": versions(self.samples),
        }
        return PrivacyReport(estimator=estimator, **{**of_cost, **stated})

    def spending(self, estimator: str, parameters: Mapping[str, str], noise: NoiseSource | None = None) -> Spending:
        """Return the charge, as the ledgers record it; parameters say already where noise comes from if no source is given."""
        return Spending(
            estimator=estimator,
            parameters=dict(parameters) if noise is None else noise_stated(parameters, noise),
            schedule=tuple(map(str, self.lines)),
            adjacency=self.budget.adjacency,
            epsilon=self.epsilon,
            delta=self.budget.delta,
            composition=self.composition,
            unit=self.budget.unit,
        )


@dataclass(frozen=True, kw_only=True)
class ReleasePlan:
    """Hold the releases of one schedule and their noise, from public facts alone.

    The oracle does not rely on what is stated here about noise: it calibrates each release again, from the clip norm and the
    sensitivity of the query itself.

    Parameters
    ----------
    schedule : Schedule
        The releases.
    budget : Budget
        What they spend, or have a share of.
    n_samples : int
        Number of records.
    scale : float
        Standard deviation of the noise divided by the sensitivity, for a release of weight 1.
    default_size : int, default=1
        Number of coordinates of an answer whose release states none.
    summation_error : float, default=0.0
        Bound on the error of a sum over the records, relative to the clip norm; 0 for counts, which are exact.
    changes : tuple of int, default=()
        By how much one record changes the integers of each Laplace release.
    """

    schedule: Schedule
    budget: Budget
    n_samples: int
    scale: float
    default_size: int = 1
    summation_error: float = 0.0
    changes: tuple[int, ...] = ()

    @classmethod
    def of_queries(
        cls: type[Plan],
        queries: Sequence[Query],
        shares: Sequence[float],
        laplace: bool,
        budget: Budget,
        staircases: Sequence[int] = (),
        **facts: Any,
    ) -> Plan:
        """Plan a release of each query, all with Laplace noise or all with Gaussian noise.

        Parameters
        ----------
        queries : sequence of Query
            A query of the type, the clip norm and the size of each release; with Laplace noise, of its ``l1_sensitivity``, too.
        shares : sequence of float
            Share of each release: in epsilon for Laplace noise, in the squared Gaussian-DP parameter for Gaussian noise.
        laplace : bool
            Whether the noise is Laplace. Then no delta is spent.
        budget : Budget
            What may be spent.
        staircases : sequence of int, default=()
            Places of the releases that have staircase noise in place of Laplace noise.
        **facts : Any
            Other fields of the plan.

        Returns
        -------
        ReleasePlan
            The plan.
        """
        pure = [(Staircase if place in staircases else Laplace)(1 / share) for place, share in enumerate(shares)]
        mechanisms: Sequence[Mechanism] = pure if laplace else [Gaussian(share**-0.5) for share in shares]
        releases = (Release(type(q), noise, q.clip_norm, q.size) for q, noise in zip(queries, mechanisms, strict=True))
        schedule = Schedule(tuple((1, release) for release in releases))
        budget = replace(budget, delta=0.0) if laplace else budget
        changes = tuple(query.l1_sensitivity(budget.adjacency) for query in queries) if laplace else ()
        return cls(schedule=schedule, budget=budget, scale=calibrate(schedule, budget), changes=changes, **facts)

    @property
    def laplace(self) -> bool:
        """Whether the noise is Laplace (True) or Gaussian."""
        return bool(self.changes)

    @cached_property
    def stds(self) -> list[float]:
        """Standard deviation of the noise of each coordinate, by entry of the schedule; NaN for selections."""
        releases = [release for _, release in self.schedule.entries]
        if not self.budget.private:
            return [0.0] * len(releases)
        if self.laplace:
            pairs = zip(releases, self.changes, strict=True)
            return [self.integer_noise(*pair).std if isinstance(pair[0].mechanism, Laplace) else math.nan for pair in pairs]
        return [noise_multiplier(line, self.scale, self.budget.adjacency) * float(line.clip_norm or 0) for line in releases]

    @cached_property
    def rounding_allowances(self) -> tuple[float, ...]:
        """Relative increase of the noise that covers rounding, for each entry of the schedule; the report states it.

        It does not depend on a clip norm that earlier releases set. Raises an error for noise that random bits cannot resolve.
        """
        changes = self.changes or (0,) * len(self.schedule.entries)
        lines = [(release, change) for (_, release), change in zip(self.schedule.entries, changes, strict=True)]
        found = {line: self._rounding_allowance(*line) for line in dict.fromkeys(lines)}  # equal releases are computed once
        return tuple(found[line] for line in lines)

    def _rounding_allowance(self, release: Release, change: int) -> float:
        mechanism, query = release.mechanism, release.query
        if not self.budget.private or isinstance(mechanism, Curve):  # whose proof covers rounding
            return 0.0
        if isinstance(mechanism, Laplace):
            return self.integer_noise(release, change).scale / (change * self.scale * mechanism.weight) - 1
        # In units in which the clip norm is 1: the noise with the allowance over that without it.
        sensitivity = query.relative_sensitivity[self.budget.adjacency]
        if isinstance(mechanism, Selection):  # in the units of its relative sensitivity
            scale = self.scale * mechanism.weight
            rounding = cast("type[Scores]", query).score_rounding(self.n_samples, self.default_size, self.summation_error)
            noise = GumbelNoise.calibrated(sensitivity=sensitivity, scale=scale, rounding=rounding, n_choices=mechanism.n_choices)
            return noise.scale / (scale * sensitivity) - 1
        nominal, clip_norm = noise_multiplier(release, self.scale, self.budget.adjacency), release.clip_norm or 1.0
        relative = query.rounding if isinstance(query.rounding, float) else 1.0  # a property where earlier releases decide it
        grid = GridGaussian.calibrated(
            clip_norm=clip_norm,
            relative_sensitivity=sensitivity,
            scale=nominal / sensitivity,
            n_samples=self.n_samples,
            size=release.size or self.default_size,
            summation_error=self.summation_error * relative,
        )
        return grid.std / (nominal * clip_norm) - 1

    def integer_noise(self, release: Release, change: int) -> IntegerLaplace | IntegerStaircase:
        """Return the noise of a Laplace, or staircase, release whose integers one record changes by ``change``."""
        assert isinstance(release.mechanism, Laplace)
        return release.mechanism.noise(change, self.scale)

    @property
    def lines(self) -> tuple[ReleaseLine, ...]:
        """Lines of the releases in reports, one per entry of the schedule."""
        return describe_releases(self.schedule, self.scale, self.budget, self.rounding_allowances)

    @cached_property
    def cost(self) -> Cost:
        """What the releases cost."""
        schedule, budget = self.schedule, self.budget
        adds_up = budget.private and schedule.curve is None and schedule.pure_epsilon is None
        composition = Composition.of(schedule, budget.adjacency).at(self.scale) if adds_up else None
        return Cost(budget, self.lines, spent_epsilon(schedule, self.scale, budget), composition, schedule.samples)

    def oracle(self, rows: Any, noise: NoiseSource, on_release: Callable[[], object] | None = None) -> Oracle:
        """Return the oracle that makes the releases on the records."""
        return Oracle(rows, self.schedule, self.budget, self.scale, noise, on_release)
