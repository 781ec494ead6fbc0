"""Find the solver for a ``solver=`` parameter, with the reason for the choice."""

from collections.abc import Callable
from typing import NamedTuple

from sklearn.base import clone

from skdp._validation import shown
from skdp.solvers import _algorithms
from skdp.solvers._base import Problem, Solver
from skdp.solvers.minimax._auc_problem import AUCProblem

#: Class of each solver, by the name that ``solver=`` takes.
SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in vars(_algorithms).values() if isinstance(kind, type) and issubclass(kind, Solver)
}

# What the names in `Solver.needs` and `Problem.offers` mean, for messages.
NEEDS = {
    "smooth": "a smooth loss",
    "kinked": "a loss of bounded slope with a kink",
    "convex": "a convex loss",
    "bounded": "a loss whose slope is bounded",
    "curved": "a loss whose second derivative is known",
    "separable": "no constraint, or a box",
    "plain": "a problem without constraint and without l1 penalty",
    "mirror": "a constraint with a mirror map, as all of skdp.constraints have, and no intercept",
    "vertices": "a constraint that is a polytope with few vertices, such as 'l1' or 'simplex', and no intercept (one of your own "
    "has a method vertices(p) that returns them as rows)",
    "classes": "class labels",
    "binary": "exactly two classes",
    "numbers": "a number to predict",
    "squared": "a single number to predict, with the squared loss",
    "least_squares": "a number to predict, with the squared loss",
    "saddle": "a saddle problem, such as that of DPAUCMaximizer",
    "inference": "two classes and the logistic loss, or a number to predict and the squared loss, without class weights",
    "pointwise": "a mean of losses of single records, which no saddle problem and no ranking is",
    "unlabelled": "a table without targets, such as that of DPPCA",
    "ranking": "two classes to rank, as for the area under the ROC curve",
}


class Choice(NamedTuple):
    """One line of the table behind ``solver="auto"``."""

    solver: str
    reason: str
    holds: Callable[[Problem], bool] = lambda problem: True


WHITE = "in which geometry the features are white, so no parameter needs tuning"
# Order of preference of solver="auto": it takes the first line that holds and whose solver fits the problem (docs/defaults.md).
AUTO = (
    Choice("sgda", "it goes with every saddle problem", lambda problem: "ranking" not in problem.offers),
    Choice(
        "objective",
        "it is the more accurate of the solvers that support delta = 0",
        lambda problem: problem.budget.delta == 0,
    ),
    Choice("frank_wolfe", "over a polytope it is the one that supports delta = 0", lambda problem: problem.budget.delta == 0),
    Choice("standardized_gd", "it learns privately how to centre and scale the features, so no parameter needs tuning"),
    Choice("whitened_gd", f"it learns privately {WHITE}"),
    Choice("rescaled_gd", f"it learns privately the unit of the targets and {WHITE}"),
    Choice("accmd", "its mirror map fits the geometry of the constraint"),
    Choice("gd", "it goes with every loss, penalty and constraint"),
)


def choose_solver(solver: object, problem: Problem) -> tuple[Solver, str]:
    """Return the solver for a problem and why it was chosen.

    Parameters
    ----------
    solver : "auto", str or Solver
        The parameter of the estimator.
    problem : Problem
        Public facts.

    Returns
    -------
    solver : Solver
        A copy; the estimator's parameter is not shared.
    reason : str
        A clause for the report.

    Raises
    ------
    ValueError
        If the name is unknown, or the problem lacks what the algorithm needs.
    TypeError
        If ``solver`` is neither a string nor a solver.
    """
    if isinstance(solver, Solver):
        chosen, reason = clone(solver), "given as solver="
    elif isinstance(solver, type) and issubclass(solver, Solver):
        raise TypeError(f"solver={solver.__name__}; expected an object: solver={solver.__name__}().")
    elif not isinstance(solver, str):
        raise TypeError(f"solver={shown(solver)}; expected 'auto', one of {sorted(SOLVERS)}, or a solver object.")
    elif solver == "auto":
        fitting = (choice for choice in AUTO if SOLVERS[choice.solver].needs <= problem.offers and choice.holds(problem))
        choice = next(fitting, None)
        if choice is None:
            raise ValueError(f"solver='auto' has no solver for the {problem.loss.name} loss; expected one of {sorted(SOLVERS)}.")
        chosen, reason = SOLVERS[choice.solver](), f"chosen by solver='auto': {choice.reason}"
    elif solver in SOLVERS:
        chosen, reason = SOLVERS[solver](), "given as solver="
    else:
        raise ValueError(f"solver={shown(solver)}; expected 'auto', one of {sorted(SOLVERS)}, or a solver object.")
    _check_needs(chosen, problem)
    _check_weights(chosen, problem)
    return chosen, reason


def _described(problem: Problem) -> str:
    constraint = "no constraint" if problem.constraint is None else repr(problem.constraint)
    intercept = "an intercept" if problem.intercept_scaling else "no intercept"
    penalty = f"l1_ratio={problem.l1_ratio:g}, " if problem.l1_ratio else ""
    network = "" if _linear(problem) else " by a network"
    ranked = f"two classes to rank{network}, " if isinstance(problem, AUCProblem) else ""
    return f"{ranked}the {problem.loss.name} loss, {penalty}{constraint} and {intercept}"


def _linear(problem: Problem) -> bool:
    """Return whether scores are linear in the features."""
    return not isinstance(problem, AUCProblem) or problem.linear


def _needed(solver: type[Solver] | Solver, problem: Problem) -> str:
    """Return the needs of a solver that the problem lacks, as a clause; empty if it lacks none."""
    missing = sorted(solver.needs - problem.offers)
    if missing and not _linear(problem):
        return "scores that are linear in the features"
    return " and ".join(NEEDS[need] for need in missing)


def _check_weights(solver: Solver, problem: Problem) -> None:
    if problem.max_sample_weight is None or solver.takes_weights:
        return
    fits = sorted(name for name, other in SOLVERS.items() if other.takes_weights and other.needs <= problem.offers)
    raise ValueError(
        f"max_sample_weight={problem.max_sample_weight!r}: solver={solver.name!r} takes no sample_weight, because it divides by "
        "the public number of records, and what weights add up to is private. Solvers that take it for the "
        f"{problem.loss.name} loss, with a positive delta: {', '.join(fits) or 'none'}."
    )


def _check_needs(solver: Solver, problem: Problem) -> None:
    pure, missing = problem.budget.delta == 0, _needed(solver, problem)
    if not missing and (solver.pure or not pure):
        return
    fits = [name for name, other in SOLVERS.items() if other.needs <= problem.offers and other.pure >= pure]
    others = [f"{name} needs {_needed(other, problem)}" for name, other in sorted(SOLVERS.items()) if other.pure and pure]
    fitting = ", ".join(sorted(fits)) or "; ".join(["none", *others])
    if missing:
        described = _described(problem)
        raise ValueError(f"solver={solver.name!r} needs {missing}, but the problem has {described}. Solvers that fit: {fitting}.")
    raise ValueError(
        f"delta={problem.budget.delta!r}: solver={solver.name!r} does not support pure epsilon-DP; expected a number in "
        f"(0, 0.5], or None. Solvers that support it here: {fitting}."
    )
