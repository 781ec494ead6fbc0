"""Saddle problems: what the solvers "sgda" and "privatediff" solve, and what it takes to bring one's own."""

from skdp.minimax._auc import AUCSaddle
from skdp.minimax._check import check_saddle
from skdp.minimax._groups import GroupDROSaddle
from skdp.minimax._problem import SaddleProblem
from skdp.privacy.factors import Factors
from skdp.privacy.products import products
from skdp.privacy.queries import SaddlePoint
from skdp.privacy.records import Batch

__all__ = ["AUCSaddle", "Batch", "Factors", "GroupDROSaddle", "SaddlePoint", "SaddleProblem", "check_saddle", "products"]
