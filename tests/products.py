"""Which solvers fit which problem, for tests that build cross products."""

from skdp.losses import Logistic, Multinomial
from skdp.privacy.budget import Budget
from skdp.solvers import SOLVERS, Problem

__all__ = ["LOSSES", "fitting"]

LOSSES = {"binary": Logistic(), "multinomial": Multinomial(3)}


def fitting(kind, solver=None):
    """Names of the solvers that fit a kind of problem, or whether a given one does."""
    problem = Problem(100, 3, LOSSES[kind], Budget(1.0, 1e-6, "replace_one"), data_norm=1.0, intercept_scaling=1.0)
    names = [name for name, known in SOLVERS.items() if known.needs <= problem.offers]
    return names if solver is None else solver.name in names
