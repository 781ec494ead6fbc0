"""List every solver of the package, one line each.

The names of `skdp.solvers`, `SOLVERS`, the classes that model files may hold and the tables of the site follow from these lines.
"""

from skdp.solvers.adaptive.inference_descent import InferenceDescent as InferenceDescent
from skdp.solvers.adaptive.rescaled_gd import RescaledGradientDescent as RescaledGradientDescent
from skdp.solvers.adaptive.standardized_gd import StandardizedGradientDescent as StandardizedGradientDescent
from skdp.solvers.adaptive.whitened_gd import WhitenedGradientDescent as WhitenedGradientDescent
from skdp.solvers.first_order.block_coordinate import BlockCoordinateDescent as BlockCoordinateDescent
from skdp.solvers.first_order.frank_wolfe import FrankWolfe as FrankWolfe
from skdp.solvers.first_order.gradient_descent import GradientDescent as GradientDescent
from skdp.solvers.first_order.mirror_descent import AcceleratedMirrorDescent as AcceleratedMirrorDescent
from skdp.solvers.first_order.sgd import SGD as SGD
from skdp.solvers.first_order.svrg import SVRG as SVRG
from skdp.solvers.first_order.svrg_plus_plus import SVRGPlusPlus as SVRGPlusPlus
from skdp.solvers.minimax.privatediff import PrivateDiff as PrivateDiff
from skdp.solvers.minimax.sgda import SGDA as SGDA
from skdp.solvers.perturbation.objective import ObjectivePerturbation as ObjectivePerturbation
from skdp.solvers.perturbation.output import OutputPerturbation as OutputPerturbation
from skdp.solvers.second_order.newton import Newton as Newton
from skdp.solvers.statistics.discriminant_analysis import DiscriminantAnalysis as DiscriminantAnalysis
from skdp.solvers.statistics.sufficient_statistics import SufficientStatistics as SufficientStatistics
