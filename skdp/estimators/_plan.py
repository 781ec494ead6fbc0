"""Plan a fit from public facts, before any data is read: solver, releases and noise."""

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.data.summation import summation_error
from skdp.privacy.errors import PrivacyAccountingError, shown
from skdp.privacy.noise.gaussian import MAX_FEATURES, GridGaussian
from skdp.privacy.noise.selection import GumbelNoise
from skdp.privacy.queries import Scores, TotalWeight
from skdp.privacy.schedule import Curve, Gaussian, Release, Schedule, Selection
from skdp.solvers import Problem, Solver, choose_solver

__all__ = ["Plan", "with_others"]


@dataclass(frozen=True)
class Plan:
    """Hold the public facts of a fit, the algorithm, its releases and their noise.

    Parameters
    ----------
    problem : Problem
        Public facts.
    solver : Solver
        The algorithm.
    reason : str
        Why it was chosen.
    schedule : Schedule
        All releases.
    scale : float
        Standard deviation of the noise divided by the sensitivity, for a release of weight 1.
    rounding_allowances : tuple of float
        Relative increase of the noise that covers rounding, for each entry of the schedule.
    scaling : ColumnScaling or None, default=None
        Public map of the columns; None leaves them in the units of X.
    """

    problem: Problem
    solver: Solver
    reason: str
    schedule: Schedule
    scale: float
    rounding_allowances: tuple[float, ...]
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
        scale = calibrate(schedule, problem.budget)
        by_column = schedule.by_column or (by_column and not schedule.by_row)  # the same for dense and CSR, which data may decide
        return cls(problem, chosen, reason, schedule, scale, _rounding_allowances(problem, schedule, scale, by_column))

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


def with_others(problem: Problem, schedule: Schedule, solver: Solver) -> Schedule:
    """Return the solver's schedule with the releases of the estimator before and after it, if there are any."""
    if problem.max_sample_weight is not None:
        return _after_total(problem, schedule)
    front, back, share = problem.extra.front, problem.extra.back, problem.extra.share
    if front is None and back is None:
        return schedule
    if not schedule.full_gaussian:
        first = "releases" if front is None else front.query.__name__
        raise ValueError(
            f"solver={solver!r} uses releases that are not full-data Gaussian, and these cannot share a budget with the "
            f"{first} {'after' if front is None else 'before'} them; expected a solver of full-data Gaussian releases, as 'auto' "
            "chooses."
        )
    if front is not None and back is not None:  # one share cannot state two divisions
        raise PrivacyAccountingError("Releases before and after the solver share its budget; expected either, not both.")
    if back is not None:
        schedule = schedule.followed_by(back, 1 - share)
    return schedule if front is None else schedule.preceded_by(front, 1 - share)


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


def _check_constraint(problem: Problem) -> None:
    """Raise ValueError, before anything is charged, if the constraint has another number of coefficients."""
    size = problem.n_features * problem.loss.n_outputs
    if problem.constraint is None or size > MAX_FEATURES:
        return
    nearest = np.asarray(problem.constraint.project(np.zeros(size)))
    if nearest.shape != (size,) or nearest.dtype.kind not in "fiu" or not np.isfinite(nearest).all():
        raise ValueError(f"constraint={shown(problem.constraint)}: 0 is projected to no finite vector of shape ({size},).")


def _rounding_allowances(problem: Problem, schedule: Schedule, scale: float, by_column: bool) -> tuple[float, ...]:
    """Return the relative increase of the noise for each entry; equal releases are computed once."""
    kinds = {release for _, release in schedule.entries}
    allowances = {release: _rounding_allowance(problem, release, scale, by_column) for release in kinds}
    return tuple(allowances[release] for _, release in schedule.entries)


def _rounding_allowance(problem: Problem, release: Release, scale: float, by_column: bool) -> float:
    """Return the relative increase of a release's noise; it does not depend on a clip norm that earlier releases set.

    The report states it. Raises an error for noise that random bits cannot resolve. The oracle calibrates the noise again for
    each query, from the clip norm and the sensitivity of the query itself: earlier releases may set the clip norm, and noise must
    not rely on what a plan states about a query that does not exist yet.
    """
    if not problem.budget.private or isinstance(release.mechanism, Curve):  # whose proof covers rounding
        return 0.0
    if isinstance(release.mechanism, Selection):
        return _selection_allowance(problem, release, release.mechanism.weight * scale, by_column)
    nominal, clip_norm = noise_multiplier(release, scale, problem.budget.adjacency), release.clip_norm or 1.0
    sensitivity = release.query.relative_sensitivity[problem.budget.adjacency]
    rounding = release.query.rounding  # a float where it is public in advance, otherwise a property
    noise = GridGaussian.calibrated(
        clip_norm=clip_norm,
        relative_sensitivity=sensitivity,
        scale=nominal / sensitivity,
        n_samples=problem.n_samples,
        size=release.size or math.prod(problem.shape),
        summation_error=summation_error(problem.n_samples, by_column) * (rounding if isinstance(rounding, float) else 1.0),
    )
    return noise.std / (nominal * clip_norm) - 1


def _selection_allowance(problem: Problem, release: Release, scale: float, by_column: bool) -> float:
    """Return the same for a selection, in the units of its relative sensitivity."""
    n_samples, sensitivity = problem.n_samples, release.query.relative_sensitivity[problem.budget.adjacency]
    query = cast("type[Scores]", release.query)
    rounding = query.score_rounding(n_samples, math.prod(problem.shape), summation_error(n_samples, by_column))
    noise = GumbelNoise.calibrated(sensitivity=sensitivity, scale=scale, rounding=rounding)
    return noise.scale / (scale * sensitivity) - 1
