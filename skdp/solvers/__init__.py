"""Solvers, one published algorithm per file; ``solver="name"`` means the class with its defaults."""

from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._registry import SOLVERS, choose_solver
from skdp.solvers.gradient_descent import GradientDescent
from skdp.solvers.objective import ObjectivePerturbation
from skdp.solvers.output import OutputPerturbation
from skdp.solvers.sgd import SGD
from skdp.solvers.standardized_gd import StandardizedGradientDescent

__all__ = [
    "SGD",
    "SOLVERS",
    "Ask",
    "GradientDescent",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Problem",
    "Solver",
    "SolverResult",
    "StandardizedGradientDescent",
    "choose_solver",
]
