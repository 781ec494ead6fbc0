"""Refuse solvers that need a table in memory, and name those that fit a table in partitions."""

from skdp.estimators._plan import Plan, with_others
from skdp.privacy.schedule import Schedule
from skdp.solvers import SOLVERS, Problem, Solver

__all__ = ["need_of_memory", "refuse_partitions", "solvers_in_partitions"]


def need_of_memory(schedule: Schedule) -> str | None:
    """Return why a schedule needs a table in memory, as the end of a sentence about its solver; None if partitions will do."""
    if schedule.passes_once:
        return "names the records of each release"
    for _, release in schedule.entries:
        if release.query.in_memory is not None:
            return release.query.in_memory
    return None


def solvers_in_partitions(problem: Problem) -> list[str]:
    """Return the names of the solvers that fit a problem on a table in partitions."""
    pure = problem.budget.delta == 0
    fitting = sorted(name for name, kind in SOLVERS.items() if kind.needs <= problem.offers and kind.pure >= pure)
    return [name for name in fitting if _takes_partitions(SOLVERS[name](), problem)]


def refuse_partitions(plan: Plan, estimator: str, kept: bool) -> None:
    """Raise ValueError if a release of the plan needs a table in memory, or releases a kept copy of the table."""
    need = need_of_memory(plan.schedule)
    if need is None:
        if not kept and plan.schedule.samples:
            raise ValueError(
                f"solver={plan.solver.name!r} draws a sample of the records for each release, and with cache=None each sample "
                "reads the whole source; expected a table with cache='disk', which keeps a copy."
            )
        if not kept and plan.schedule.grows:
            raise ValueError(
                f"{estimator} adds trees to the scores of the records, and with cache=None each pass over the data would add all "
                "earlier trees again; expected a table with cache='disk', which keeps a copy."
            )
        return
    names = ", ".join(repr(name) for name in solvers_in_partitions(plan.problem))
    only = " with delta=0" if plan.problem.budget.delta == 0 else ""
    raise ValueError(
        f"solver={plan.solver.name!r} {need}; it needs a table in memory. Solvers of {estimator} that fit a table in "
        f"partitions{only}: {names or 'none'}."
    )


def _takes_partitions(solver: Solver, problem: Problem) -> bool:
    try:
        return need_of_memory(with_others(problem, solver.schedule(problem), solver)) is None
    except ValueError:  # its schedule refuses the problem
        return False
