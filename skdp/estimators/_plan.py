"""Plan a fit from public facts, before any data is read: solver, releases and noise."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._extra_facts import ExtraFacts
from skdp.estimators._foreign_classes import SKDP_CLASSES
from skdp.minimax import GroupDROSaddle
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.data.summation import summation_error
from skdp.privacy.errors import PrivacyAccountingError, shown
from skdp.privacy.noise.gaussian import MAX_FEATURES
from skdp.privacy.queries import TotalWeight
from skdp.privacy.release_plan import ReleasePlan
from skdp.privacy.schedule import Gaussian, Laplace, Release, Schedule
from skdp.solvers import SOLVERS, Problem, Solver, choose_solver


@dataclass(frozen=True)
class Plan(ReleasePlan):
    """Hold the public facts of a fit, the algorithm, its releases and their noise.

    Parameters
    ----------
    problem : Problem
        Public facts.
    solver : Solver
        The algorithm.
    reason : str
        Why it was chosen.
    scaling : ColumnScaling or None, default=None
        Public map of the columns; None leaves them in the units of X.
    """

    problem: Problem
    solver: Solver
    reason: str
    scaling: ColumnScaling | None = None

    @classmethod
    def make(
        cls, problem: Problem, solver: object, alpha: float | None, clip_norm: float | None, by_column: bool = False
    ) -> "Plan":
        """Choose the solver, let it set its defaults and its schedule, and calibrate the noise to the budget.

        Raises an error for noise that random bits cannot resolve, before any data is read.
        """
        if problem.n_features > MAX_FEATURES:  # the noise covers the rounding of a row's norm up to there
            raise ValueError(f"X has {problem.n_features} features; expected at most {MAX_FEATURES}.")
        _check_constraint(problem)
        chosen, reason = choose_solver(solver, problem)
        problem = replace(problem, alpha=chosen.default_alpha(problem) if alpha is None else float(alpha))
        problem = replace(problem, clip_norm=chosen.default_clip_norm(problem) if clip_norm is None else float(clip_norm))
        schedule = with_others(problem, chosen.schedule(problem), chosen)
        _refuse_unit(problem, schedule)
        by_column = schedule.by_column or (by_column and not schedule.by_row)  # the same for dense and CSR, which data may decide
        by_column = by_column and problem.budget.unit == "record"  # rows of persons are summed by blocks, whatever their number
        plan = cls(
            problem,
            chosen,
            reason,
            schedule=schedule,
            budget=problem.budget,
            n_samples=problem.n_samples,
            scale=calibrate(schedule, problem.budget),
            default_size=math.prod(problem.shape),
            summation_error=summation_error(problem.n_samples, by_column),
        )
        plan.rounding_allowances  # noqa: B018 - raises an error
        return plan

    @property
    def row_bounds(self) -> dict[str, Any]:
        """Public constants of the training data behind the oracle."""
        weights = None if self.problem.class_weight is None else np.array(self.problem.class_weight)
        return {
            "data_norm": self.problem.data_norm,
            "intercept_scaling": self.problem.intercept_scaling,
            "class_weight": weights,
            "by_row": self.schedule.by_row,
            "by_column": self.schedule.by_column,
            "scaling": self.scaling,
        }

    def refuse_partitions(self, estimator: str, kept: bool) -> None:
        """Raise ValueError if a release needs a table in memory, or releases a kept copy of the table."""
        if (need := self.schedule.need_of_memory(self.budget.unit)) is None:
            if not kept and self.schedule.samples:
                raise ValueError(
                    f"solver={self.solver.name!r} draws a sample of the records for each release, and with cache=None each "
                    "sample reads the whole source; expected a table with cache='disk', which keeps a copy."
                )
            if not kept and self.schedule.grows:
                raise ValueError(
                    f"{estimator} adds trees to the scores of the records, and with cache=None each pass over the data would add "
                    "all earlier trees again; expected a table with cache='disk', which keeps a copy."
                )
            return
        names = ", ".join(repr(name) for name in solvers_in_partitions(self.problem))
        only = " with delta=0" if self.budget.delta == 0 else ""
        raise ValueError(
            f"solver={self.solver.name!r} {need}; it needs a table in memory. Solvers of {estimator} that fit a table in "
            f"partitions{only}: {names or 'none'}."
        )


def solvers_in_partitions(problem: Problem) -> list[str]:
    """Return the names of the solvers that fit a problem on a table in partitions."""
    found = []
    for name, kind in sorted(SOLVERS.items()):
        if kind.needs <= problem.offers and kind.pure >= (problem.budget.delta == 0):
            try:
                schedule = with_others(problem, kind().schedule(problem), kind())
            except ValueError:  # the schedule refuses the problem
                continue
            found += [] if schedule.need_of_memory(problem.budget.unit) else [name]
    return found


def with_others(problem: Problem, schedule: Schedule, solver: Solver) -> Schedule:
    """Return the solver's schedule with the releases of the estimator before and after it, if there are any."""
    if problem.max_sample_weight is not None:
        return _after_total(problem, schedule)
    for extra in (problem.extra, problem.around):
        schedule = _with(extra, schedule, solver)
    return schedule


def _with(extra: ExtraFacts, schedule: Schedule, solver: Solver) -> Schedule:
    """Return a schedule with the releases of an estimator before and after it."""
    front, back = extra.front, extra.back
    if front is None and back is None:
        return schedule
    if not schedule.full_gaussian:
        first = "releases" if front is None else front.query.__name__
        raise ValueError(
            f"solver={solver!r} uses releases that are not full-data Gaussian, and these cannot share a budget with the "
            f"{first} {'after' if front is None else 'before'} them; expected a solver of full-data Gaussian releases, as 'auto' "
            "chooses."
        )
    of_back = 1 - extra.share - extra.of_front
    if back is not None and of_back <= 0:  # one share cannot state two divisions
        raise PrivacyAccountingError("Releases before and after the solver share its budget; expected either, not both.")
    if back is not None:
        schedule = schedule.followed_by(back, of_back / (1 - extra.of_front))
    return schedule if front is None else schedule.preceded_by(front, extra.of_front)


def _after_total(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the solver's schedule with the release of the total weight before it."""
    if problem.extra.front is not None or problem.extra.back is not None:
        raise ValueError(
            "max_sample_weight is given beside releases of the estimator that count records without weights; expected None, or "
            "no such release: not knots='private'."
        )
    if not schedule.full_gaussian:
        raise ValueError("max_sample_weight is given with releases that are not full-data Gaussian; expected None.")
    return schedule.preceded_by(Release(TotalWeight, Gaussian(), TotalWeight.clip_norm, TotalWeight.size), problem.total_share)


def _refuse_unit(problem: Any, schedule: Schedule) -> None:
    """Raise ValueError, before anything is charged, for releases whose guarantee holds for records alone."""
    if problem.budget.unit == "record":
        return
    if any(isinstance(release.mechanism, Laplace) for _, release in schedule.entries):
        raise ValueError(
            "Laplace noise with privacy_unit='person': a person adds fractions to many counts, each of which may be rounded to "
            "another integer; expected Gaussian noise."
        )
    if problem.max_sample_weight is not None:
        raise ValueError("max_sample_weight is given with privacy_unit='person', which weighs rows itself; expected None.")
    if isinstance(getattr(problem, "saddle", None), GroupDROSaddle):
        raise ValueError("GroupDROSaddle with privacy_unit='person': sizes of groups are numbers of rows; expected 'record'.")
    for query in {release.query for _, release in schedule.entries} - SKDP_CLASSES:
        if not getattr(query, "takes_persons", False):
            raise ValueError(
                f"{query.__name__} is not part of skdp, and does not state takes_persons = True: that what a row adds is clipped "
                "before it is multiplied by the weight of the row."
            )


def _check_constraint(problem: Problem) -> None:
    """Raise ValueError, before anything is charged, if the constraint has another number of coefficients."""
    size = problem.n_features * problem.loss.n_outputs
    if problem.constraint is None or size > MAX_FEATURES:
        return
    nearest = np.asarray(problem.constraint.project(np.zeros(size)))
    if nearest.shape != (size,) or nearest.dtype.kind not in "fiu" or not np.isfinite(nearest).all():
        raise ValueError(f"constraint={shown(problem.constraint)}: 0 is projected to no finite vector of shape ({size},).")
