"""Build the privacy report of a plan: what is public about a fit, and what it assumes."""

import math
from typing import Any

from skdp._data_validation import Facts, Partitions
from skdp.estimators._foreign_classes import unreviewed
from skdp.estimators._group_labels import Groups
from skdp.estimators._plan import Plan
from skdp.estimators._signal import DROWNED, gradient_noise, prediction_noise
from skdp.preprocessing._schema import Schema
from skdp.privacy.budget import neighbours
from skdp.privacy.errors import shown
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import ESTIMAND, OTHER_FITS, UNREVIEWED, PrivacyReport, assumed_of, foreign_class
from skdp.privacy.schedule import Selection
from skdp.solvers import AUCProblem, GroupDROProblem, Problem, Solver

PURE = (
    "delta = 0 holds for noise that is a real number; what is computed is that number rounded to a grid: a probability of "
    "2**-200 that rounding is not covered is neglected, and the resolution of the random bits is covered at 8 times its root "
    "mean square"
)
PURE_SELECTION = (
    "delta = 0 holds for Gumbel noise that is a real number; what is computed is that number rounded, which is covered but for a "
    "probability of exp(-512) per candidate and selection"
)
LEARNED = (
    "the schema was learned from records by an earlier private fit, as keys such as core and buckets show: it spent a budget of "
    "its own, which adds to this one if the records are the same"
)
WEIGHTS = (
    "the weights of the records are private parts of them: every one is a finite number that is not negative and follows from "
    "its record and public facts alone, and what exceeds max_sample_weight counts as max_sample_weight"
)
WEIGHTED = "private, from 0 to {0:g}; noise, over signal, grows by {0:g} over the mean weight"
OF_ITS_GROUP = ", of the same group"
GROUPS = (
    "the group of every record and the sizes of the groups are public and not protected: neighbours keep them; groups that were "
    "made from the labels, or from anything else that is to be protected, would make that public"
)
DECIDED = "follows from the records"  # where the number of passes is not public
LONGEST = 1000  # largest number of characters for which the report shows a value in full; a choice
USELESS = 0.5  # noise divided by signal above which 9 fits in 10 are constants; measured together with DROWNED


def report(
    task: Any, plan: Plan, noise: NoiseSource, facts: Facts, planned: bool = False, as_given: bool = False
) -> PrivacyReport:
    """Return the privacy report of a fit, or of a planned fit; ``as_given`` tells that its schema was not learned within it."""
    problem, schema = plan.problem, (facts.schema or facts.stated) if as_given else None
    parameters, largest = stated_parameters(task.estimator), problem.max_sample_weight
    return plan.cost.report(
        task.name,
        planned=planned,
        reproducible_noise=not noise.secure,
        adjacency_in_words=neighbours(problem.budget.adjacency, problem.budget.unit)
        + (OF_ITS_GROUP if _grouped(problem) else ""),
        solver=plan.solver.name,
        solver_title=task.solver_title(plan),
        solver_reason=plan.reason,
        noise_size=_noise_size(plan) + task.outlook(plan),
        public={
            **({} if task.chosen_by is None else {"family": f"{task.kind}: {task.chosen_by.reason}"}),
            **_public_table(plan, facts, planned),
            "parameters": parameters,
            "resolved": {
                "solver": parameters["solver"] if isinstance(task.solver, Solver) else repr(plan.solver),
                "data_norm": problem.data_norm,
                "clip_norm": problem.clip_norm if problem.clip_norm < math.inf else "set by earlier releases",
                "penalty": _penalty(plan),
                **({} if largest is None else {"sample_weight": WEIGHTED.format(largest)}),
                **({} if problem.constraint is None else {"constraint": brief(task.constraint_set())}),
                **task.described(plan),
            },
            "n_releases": len(plan.schedule),
            "passes": DECIDED if plan.schedule.passes is None else plan.schedule.passes,
            **({} if schema is None else {"schema": schema.to_dict()}),
        },
        assumptions=_assumptions(
            plan,
            f"{task.assumed_of_x()}; {task.assumed_of_y()}",
            facts.partitions,
            schema is not None and schema.has_learned,
        )
        + tuple(filter(None, [foreign_class(task.estimator)])),
    )


def _noise_size(plan: Plan) -> str:
    if not plan.problem.budget.private:
        return "no noise"
    if plan.solver.penalizes_intercept:
        return _minimum_noise(plan)
    noise, remark = gradient_noise(plan), plan.solver.remark(plan.problem)
    if noise is None:
        return remark or "see the releases"
    advice = "if this is near 1 or above, noise drowns the signal; rows shorter than data_norm give less signal"
    if noise.together > DROWNED:
        verdict = "noise drowns the signal, expect a useless model" if noise.together > USELESS else "the model may be a constant"
        advice = f"{verdict}: take more records, fewer features or a larger epsilon"
    return (
        f"per coordinate, {noise.single:.3g} times the largest possible mean gradient in each release, {noise.average:.3g} times "
        f"in the average of all; {noise.together:.3g} times over the {noise.size} coordinates of the average together ({advice})"
    )


def _minimum_noise(plan: Plan) -> str:
    raw, unit = prediction_noise(plan)
    usual = f"{unit}, so 5" if unit == "log-odds" else f"{unit}, one unit from the boundary, so 3"
    return (
        f"the raw prediction of a row of the largest norm, {plan.problem.row_norm:.3g}, has noise of at most {raw:.3g} (root "
        f"mean square; raw predictions are {usual} and above drowns the signal)"
    )


def _public_table(plan: Plan, facts: Facts, planned: bool) -> dict[str, Any]:
    problem = plan.problem
    shape = {
        problem.budget.number: problem.n_samples,
        "n_features": problem.n_columns,
        **({} if facts.partitions is None else facts.partitions.stated(plan.schedule.passes)),
    }
    if planned:
        return shape
    names = None if facts.feature_names is None else facts.feature_names.tolist()
    labels = {} if facts.classes is None else {"classes": facts.labels}
    if (named := Groups.of(facts).labels) is None:
        return {**shape, "feature_names": names, **labels}
    groups = named.tolist()
    return {**shape, "feature_names": names, **labels, "groups": groups if len(repr(groups)) <= LONGEST else shown(groups)}


def stated_parameters(estimator: Any) -> dict[str, str]:
    """Return the parameters of an estimator as reports and ledgers state them."""
    return {name: brief(value) for name, value in estimator.get_params(deep=False).items() if name != "random_state"}


def brief(value: Any) -> str:
    """Return the value of a parameter as text; long arrays and lists are abbreviated."""
    text = repr(value)
    return text if len(text) <= LONGEST else shown(value)


def _penalty(plan: Plan) -> str:
    problem = plan.problem
    if not problem.alpha:
        return "none"
    if isinstance(problem, AUCProblem) and not problem.linear:
        return f"{problem.penalty!r}, which includes the biases"
    intercept = "includes" if plan.solver.penalizes_intercept else "spares"
    return repr(problem.penalty) + (f", which {intercept} the intercept" if problem.intercept_scaling else "")


def beside_learned(assumptions: tuple[str, ...], given: Schema) -> tuple[str, ...]:
    """Return the assumptions of a fit that learns columns beside those that are given, which an earlier fit may have learned."""
    if not given.has_learned:
        return assumptions
    return (LEARNED, *beside_released(assumptions))


def beside_released(assumptions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the assumptions of a fit some of whose parameters, data_norm perhaps, follow from releases."""
    return tuple(
        line.replace("no parameter was", "no other parameter was").replace(": data_norm and all", ": all") for line in assumptions
    )


def _assumptions(plan: Plan, of_table: str, partitions: Partitions | None, learned: bool) -> tuple[str, ...]:
    public = "data_norm and all other public values above"
    selects = any(isinstance(release.mechanism, Selection) for _, release in plan.schedule.entries)
    return (
        of_table,
        *([GROUPS] if _grouped(plan.problem) else []),
        *([WEIGHTS] if plan.problem.max_sample_weight is not None else []),
        *([LEARNED] if learned else []),
        f"no {'other ' * learned}parameter was computed from the data: {public}",
        OTHER_FITS,
        *assumed_of(plan.budget.unit),
        *([] if plan.budget.unit == "record" else [ESTIMAND]),
        *([] if partitions is None else [partitions.trusted]),
        *([PURE_SELECTION if selects else PURE] if plan.problem.budget.delta == 0 else []),
        *map(UNREVIEWED.format, unreviewed(plan)),
    )


def _grouped(problem: Problem) -> bool:
    """Return whether there are several groups; neighbouring tables have the same group for every record."""
    return isinstance(problem, GroupDROProblem) and len(problem.group_sizes) > 1
