"""From ``solver=`` to a solver, with the reason for the choice."""

from sklearn.base import clone

from skdp._validation import shown
from skdp.solvers._base import Problem, Solver
from skdp.solvers.gradient_descent import GradientDescent
from skdp.solvers.sgd import SGD
from skdp.solvers.standardized_gd import StandardizedGradientDescent

__all__ = ["SOLVERS", "choose_solver"]

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (GradientDescent, SGD, StandardizedGradientDescent)}

NEEDS = {
    "smooth": "a smooth loss",
    "classes": "class labels",
    "binary": "exactly two classes",
    "squared": "a number to predict, with the squared loss",
}
AUTO = "gd"
AUTO_REASON = "it is the solver for smooth losses, its accounting is exact, and its defaults follow from public facts"


def choose_solver(solver: object, problem: Problem) -> tuple[Solver, str]:
    """Return the solver for a problem and why it was chosen.

    Parameters
    ----------
    solver : "auto", str or Solver
        As given to the estimator.
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
        If the name is unknown, or the problem lacks what the algorithm rests on.
    TypeError
        If ``solver`` is neither a string nor a solver.
    """
    if isinstance(solver, Solver):
        chosen, reason = clone(solver), "given as solver="
    elif not isinstance(solver, str):
        raise TypeError(f"solver={shown(solver)}; expected 'auto', one of {sorted(SOLVERS)}, or a solver object.")
    elif solver == "auto":
        chosen, reason = SOLVERS[AUTO](), f"chosen by solver='auto': {AUTO_REASON}"
    elif solver in SOLVERS:
        chosen, reason = SOLVERS[solver](), "given as solver="
    else:
        raise ValueError(f"solver={shown(solver)}; expected 'auto', one of {sorted(SOLVERS)}, or a solver object.")
    _check_needs(chosen, problem)
    return chosen, reason


def _check_needs(solver: Solver, problem: Problem) -> None:
    if missing := solver.needs - problem.offers:
        fitting = sorted(name for name, other in SOLVERS.items() if other.needs <= problem.offers)
        raise ValueError(
            f"solver={solver.name!r} needs {' and '.join(NEEDS[need] for need in sorted(missing))}, and the {problem.loss.name} "
            f"loss is not for that. Solvers that fit: {', '.join(fitting) or 'none'}."
        )
