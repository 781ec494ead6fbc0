"""A fit before any data is touched."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp.privacy.calibration import calibrate
from skdp.privacy.noise import MAX_FEATURES
from skdp.privacy.schedule import Schedule
from skdp.solvers import Problem, Solver, choose_solver

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """Public facts, the algorithm, its releases and their noise.

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
        Standard deviation over sensitivity of a release of weight 1.
    """

    problem: Problem
    solver: Solver
    reason: str
    schedule: Schedule
    scale: float

    @classmethod
    def make(cls, problem: Problem, solver: object, alpha: float | None, clip_norm: float | None) -> "Plan":
        """Choose the solver, let it fill in what is None and schedule, and calibrate the noise to the budget."""
        if problem.n_features > MAX_FEATURES:  # the noise covers the rounding of a row's norm up to there
            raise ValueError(f"X has {problem.n_features} features; expected at most {MAX_FEATURES}.")
        chosen, reason = choose_solver(solver, problem)
        problem = replace(problem, alpha=chosen.default_alpha(problem) if alpha is None else float(alpha))
        problem = replace(problem, clip_norm=chosen.default_clip_norm(problem) if clip_norm is None else float(clip_norm))
        schedule = chosen.schedule(problem)
        return cls(problem, chosen, reason, schedule, calibrate(schedule, problem.budget))

    @property
    def row_bounds(self) -> dict[str, Any]:
        """Public constants under which the training data go behind the gate."""
        weights = None if self.problem.class_weight is None else np.array(self.problem.class_weight)
        return {
            "data_norm": self.problem.data_norm,
            "intercept_scaling": self.problem.intercept_scaling,
            "class_weight": weights,
        }
