"""Solvers, one published algorithm per file; ``solver="name"`` means the class with its defaults."""

from skdp.solvers._base import Ask, Problem, Solver, SolverResult, signal_to_noise
from skdp.solvers._coefficient_noise import CoefficientNoise
from skdp.solvers._registry import SOLVERS, choose_solver
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._uncertainty import Uncertainty
from skdp.solvers.adaptive.rescaled_gd import RescaledGradientDescent
from skdp.solvers.adaptive.standardized_gd import StandardizedGradientDescent
from skdp.solvers.adaptive.whitened_gd import WhitenedGradientDescent
from skdp.solvers.first_order.block_coordinate import BlockCoordinateDescent
from skdp.solvers.first_order.frank_wolfe import FrankWolfe
from skdp.solvers.first_order.gradient_descent import GradientDescent
from skdp.solvers.first_order.mirror_descent import AcceleratedMirrorDescent
from skdp.solvers.first_order.sgd import SGD
from skdp.solvers.first_order.svrg import SVRG
from skdp.solvers.first_order.svrg_plus_plus import SVRGPlusPlus
from skdp.solvers.minimax._auc_problem import AUCProblem
from skdp.solvers.minimax._group_dro_problem import GroupDROProblem
from skdp.solvers.minimax._problem import MinimaxProblem, NoLoss
from skdp.solvers.minimax.privatediff import PrivateDiff
from skdp.solvers.minimax.sgda import SGDA
from skdp.solvers.perturbation.objective import ObjectivePerturbation
from skdp.solvers.perturbation.output import OutputPerturbation
from skdp.solvers.second_order.newton import Newton
from skdp.solvers.statistics.discriminant_analysis import DiscriminantAnalysis
from skdp.solvers.statistics.sufficient_statistics import SufficientStatistics

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
