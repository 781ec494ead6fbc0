"""Provides saddle problems for the solvers "sgda" and "privatediff", and the tools to write and check your own."""

from skdp.minimax._auc_saddle import AUCSaddle
from skdp.minimax._check import check_saddle
from skdp.minimax._group_dro_saddle import GroupDROSaddle
from skdp.minimax._saddle_problem import SaddleProblem
from skdp.privacy.data.exact_products import products
from skdp.privacy.data.gradient_factors import Factors
from skdp.privacy.data.kernels import Batch
from skdp.privacy.queries import SaddlePoint

__all__ = ["AUCSaddle", "Batch", "Factors", "GroupDROSaddle", "SaddlePoint", "SaddleProblem", "check_saddle", "products"]
