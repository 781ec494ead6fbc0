"""Solvers, one published algorithm per file; ``solver="name"`` means the class with its defaults."""

from skdp.solvers._auc import AUCProblem
from skdp.solvers._base import Ask, Problem, Solver, SolverResult, signal_to_noise
from skdp.solvers._group_dro import GroupDROProblem
from skdp.solvers._minimax import MinimaxProblem, NoLoss
from skdp.solvers._noise import CoefficientNoise
from skdp.solvers._registry import SOLVERS, choose_solver
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._uncertainty import Uncertainty
from skdp.solvers.block_coordinate import BlockCoordinateDescent
from skdp.solvers.frank_wolfe import FrankWolfe
from skdp.solvers.gradient_descent import GradientDescent
from skdp.solvers.mirror_descent import AcceleratedMirrorDescent
from skdp.solvers.moments import DiscriminantAnalysis
from skdp.solvers.newton import Newton
from skdp.solvers.objective import ObjectivePerturbation
from skdp.solvers.output import OutputPerturbation
from skdp.solvers.privatediff import PrivateDiff
from skdp.solvers.rescaled_gd import RescaledGradientDescent
from skdp.solvers.sgd import SGD
from skdp.solvers.sgda import SGDA
from skdp.solvers.standardized_gd import StandardizedGradientDescent
from skdp.solvers.sufficient_statistics import SufficientStatistics
from skdp.solvers.svrg import SVRG
from skdp.solvers.svrg_plus_plus import SVRGPlusPlus
from skdp.solvers.whitened_gd import WhitenedGradientDescent

__all__ = [
    "SGD",
    "SGDA",
    "SOLVERS",
    "SVRG",
    "AUCProblem",
    "AcceleratedMirrorDescent",
    "Ask",
    "BlockCoordinateDescent",
    "CoefficientNoise",
    "DiscriminantAnalysis",
    "FrankWolfe",
    "GradientDescent",
    "GroupDROProblem",
    "MinimaxProblem",
    "Newton",
    "NoLoss",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PrivateDiff",
    "Problem",
    "ReleasedMoments",
    "RescaledGradientDescent",
    "SVRGPlusPlus",
    "Solver",
    "SolverResult",
    "StandardizedGradientDescent",
    "SufficientStatistics",
    "Uncertainty",
    "WhitenedGradientDescent",
    "choose_solver",
    "signal_to_noise",
]
