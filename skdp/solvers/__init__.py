"""Provide the solvers, one published algorithm per file; ``solver="name"`` means the class with its defaults."""

from skdp.solvers._algorithms import *  # noqa: F403
from skdp.solvers._base import Ask, Problem, Solver, SolverResult, signal_to_noise
from skdp.solvers._coefficient_noise import CoefficientNoise
from skdp.solvers._inference import Contrasts, Inference, WaldTest
from skdp.solvers._registry import SOLVERS, choose_solver
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._uncertainty import Uncertainty
from skdp.solvers.minimax._auc_problem import AUCProblem
from skdp.solvers.minimax._group_dro_problem import GroupDROProblem
from skdp.solvers.minimax._problem import MinimaxProblem, NoLoss

__all__ = [
    "SOLVERS",
    "AUCProblem",
    "Ask",
    "CoefficientNoise",
    "Contrasts",
    "GroupDROProblem",
    "Inference",
    "MinimaxProblem",
    "NoLoss",
    "Problem",
    "ReleasedMoments",
    "Solver",
    "SolverResult",
    "Uncertainty",
    "WaldTest",
    "choose_solver",
    "signal_to_noise",
]
__all__ += [solver.__name__ for solver in SOLVERS.values()]
