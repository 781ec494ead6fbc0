"""What all private estimators share: plan, calibrate, run, report. The order of these is the guarantee."""

import copy
import functools
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

import skdp
from skdp._progress import CallbackSupportMixin, Progress
from skdp._tables import Facts
from skdp._validation import check_integer, check_number, check_scale, shown
from skdp.privacy.calibration import calibrate, noise_multiplier
from skdp.privacy.noise import MAX_FEATURES, NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.report import PrivacyReport, describe_releases, spent
from skdp.privacy.rows import Rows
from skdp.privacy.schedule import Schedule
from skdp.solvers import Problem, Solver, SolverResult, choose_solver

__all__ = ["DPEstimator", "Plan", "explain_refusals"]

REFUSED = {
    "warm_start": "starting from an earlier private fit composes with it, so one fit's guarantee would not be the whole one",
    "sample_weight": "a weight is part of a record and would change the sensitivity; class_weight takes public numbers",
    "partial_fit": "every call would be one more private fit that nobody counts; fit once on all records",
    "max_iter": "the number of steps is public and belongs to the solver: solver=GradientDescent(n_steps=...)",
    "tol": "a stopping test would read the data without noise; the number of steps is public, as for max_iter",
    "C": "the penalty is alpha = 1 / (C * n_samples)",
    "penalty": "alpha sets the strength of the L2 penalty, the one that this version has",
    "n_jobs": "a fit is a few passes over the data; NumPy's BLAS uses the cores",
}


@dataclass(frozen=True)
class Plan:
    """A fit before any data is touched: public facts, the algorithm, its releases and their noise.

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


class DPEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the private estimators. Subclasses have the parameters that it checks."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of a solver object as ``solver__name``.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self
            The estimator.
        """
        _refuse(type(self), params)
        return super().set_params(**params)

    @property
    def partial_fit(self) -> Any:
        """Refused: every call would be one more private fit."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: {REFUSED['partial_fit']}.")

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, minimum=0.0, maximum=1e50, optional=True)
        check_scale("data_norm", self.data_norm, optional=True)
        check_scale("clip_norm", self.clip_norm, optional=True)
        check_scale("intercept_scaling", self.intercept_scaling)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept={shown(self.fit_intercept)}; expected True or False.")
        check_integer("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, minimum=0)
        NoiseSource(self.random_state)

    def _run(self, plan: Plan, rows: Rows, noise: NoiseSource, progress: Progress) -> SolverResult:
        """Solve the problem through the gate."""
        oracle = Oracle(rows, plan.schedule, plan.problem.budget, plan.scale, noise, progress.tick)
        progress.begin()
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging iterate is refused by the gate
            result = plan.solver.solve(plan.problem, oracle.ask, noise.public_generator())
        oracle.finish()
        if np.shape(result.coef) != plan.problem.shape or not np.isfinite(result.coef).all():
            raise ValueError(f"{plan.solver!r} returned no finite array of shape {plan.problem.shape}: the iteration diverged.")
        return result

    def _commit(self, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes at once, so that an interrupted fit leaves the estimator as it was."""
        self.__dict__ = {**vars(self._scratch()), **attributes}

    def _scratch(self) -> Any:
        """A copy without fitted attributes, for scikit-learn's validation to write to."""
        scratch = copy.copy(self)
        for name in fitted_attributes(self):
            delattr(scratch, name)
        return scratch

    def _privacy_attributes(self, plan: Plan, noise: NoiseSource, facts: Facts) -> dict[str, Any]:
        report = self._report(plan, noise, facts)
        attributes: dict[str, Any] = {"privacy_report_": report, "privacy_spent_": report.spent}
        if len(report.releases) == 1:
            attributes["noise_multiplier_"] = report.releases[0].noise_multiplier
        return attributes

    def _report(self, plan: Plan, noise: NoiseSource, facts: Facts | None = None) -> PrivacyReport:
        problem = plan.problem
        return PrivacyReport(
            estimator=type(self).__name__,
            planned=facts is None,
            budget=problem.budget,
            spent=spent(plan.schedule, plan.scale, problem.budget),
            solver=f"{plan.solver.name}: {plan.solver.title}",
            solver_reason=plan.reason,
            releases=describe_releases(plan.schedule, plan.scale, problem.budget.adjacency),
            reproducible_noise=not noise.secure,
            noise_size=_noise_size(plan),
            public={**_public_table(problem, facts), **_public_choices(self, plan)},
            assumptions=_assumptions(plan, self.classes),
            versions=_versions(),
        )


def explain_refusals(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate a constructor: parameters of the non-private twin that cannot exist here are refused with the reason."""

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **parameters: Any) -> None:
        _refuse(type(self), parameters)
        init(self, *args, **parameters)

    return wrapper


def _refuse(kind: type, given: dict[str, Any]) -> None:
    for name in given:
        if name in REFUSED:
            raise TypeError(f"{kind.__name__} does not take {name}: {REFUSED[name]}.")


def refuse_fit_arguments(kind: type, given: dict[str, Any]) -> None:
    """Raise the explaining TypeError for any further argument of ``fit``."""
    given = {name: value for name, value in given.items() if value is not None}
    _refuse(kind, given)
    if given:
        raise TypeError(f"{kind.__name__}.fit does not take {sorted(given)}; expected X and y only.")


def check_width(n_features: int) -> None:
    """Raise ValueError beyond the number of features for which the rounding of a row's norm is covered."""
    if n_features > MAX_FEATURES:
        raise ValueError(f"X has {n_features} features; expected at most {MAX_FEATURES}, up to which the noise covers rounding.")


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return the attributes that a fit sets, by scikit-learn's rule for their names."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


def _noise_size(plan: Plan) -> str:
    problem = plan.problem
    if not problem.budget.private:
        return "no noise"
    multipliers = [(count, noise_multiplier(line, plan.scale, problem.budget.adjacency)) for count, line in plan.schedule.entries]
    single = max(multiplier for _, multiplier in multipliers) / problem.n_samples
    average = 1 / math.sqrt(sum(count / multiplier**2 for count, multiplier in multipliers)) / problem.n_samples
    size = math.prod(problem.shape)
    return (
        f"per coordinate, {single:.3g} times the largest possible mean gradient in each release, {average:.3g} times in the "
        f"average of all; {average * math.sqrt(size):.3g} times over the {size} coordinates of the average together (near 1 and "
        "above, noise drowns the signal; rows shorter than data_norm give less signal)"
    )


def _public_table(problem: Problem, facts: Facts | None) -> dict[str, Any]:
    shape = {"n_samples": problem.n_samples, "n_features": problem.n_features}
    if facts is None:
        return shape
    names = None if facts.feature_names is None else facts.feature_names.tolist()
    return {**shape, "feature_names": names, "storage": f"{facts.storage} {facts.dtype}", "classes": facts.classes.tolist()}


def _public_choices(estimator: DPEstimator, plan: Plan) -> dict[str, Any]:
    parameters = {name: repr(value) for name, value in estimator.get_params(deep=False).items() if name != "random_state"}
    problem = plan.problem
    chosen = {
        "solver": repr(plan.solver),
        "data_norm": problem.data_norm,
        "clip_norm": problem.clip_norm,
        "penalty": f"{problem.penalty!r}, which spares the intercept",
    }
    return {"parameters": parameters, "resolved": chosen, "n_releases": len(plan.schedule)}


def _assumptions(plan: Plan, classes: object) -> tuple[str, ...]:
    trusted = {type(plan.problem.loss), *(release.query for _, release in plan.schedule.entries)}
    foreign = sorted(kind.__qualname__ for kind in trusted if not kind.__module__.startswith("skdp."))
    labels = (
        "the label set is read from y: neighbours have the same label set (classes=[...] removes this)"
        if classes is None
        else "every label is one of the given classes"
    )
    return (
        "every entry of X is a finite number; " + labels,
        "no parameter was computed from the data: data_norm, class_weight and all other public values above",
        "other fits on the same records, and anything else computed from them, spend in addition",
        "one record is one person: who has k records is protected less, by about k times the epsilon",
        *(f"{name} is unreviewed: it sees the data and is not part of skdp" for name in foreign),
    )


def _versions() -> dict[str, str]:
    return {
        "skdp": skdp.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
