"""Questions about the training data, one file per family; each sensitivity's docstring is its proof."""

from skdp.privacy.queries._base import ClassLoss, CurvedLoss, Loss, Query, Scores
from skdp.privacy.queries._half_vector import half_vector, symmetric
from skdp.privacy.queries.block_gradient import BlockGradient, CoordinateScores
from skdp.privacy.queries.class_moments import ClassMoments
from skdp.privacy.queries.difference import Difference
from skdp.privacy.queries.feature_moments import Moments
from skdp.privacy.queries.gradient import Gradient
from skdp.privacy.queries.hat_sums import HatSums
from skdp.privacy.queries.label_counts import ClassCounts, LabelSum
from skdp.privacy.queries.length_histograms import DistanceHistogram, ResidualHistogram
from skdp.privacy.queries.minimum import Minimum
from skdp.privacy.queries.newton_direction import Curvature, NewtonDirection
from skdp.privacy.queries.platt_gradient import ScoreGradient
from skdp.privacy.queries.saddle_gradient import (
    DualGradient,
    JointGradient,
    PrimalDifference,
    PrimalGradient,
    Saddle,
    SaddlePoint,
)
from skdp.privacy.queries.second_moment import SecondMoment
from skdp.privacy.queries.standardized_gradient import Standardization, StandardizedGradient, Whitening
from skdp.privacy.queries.sufficient import JointMoments, SmallestEigenvalue
from skdp.privacy.queries.target_histograms import LEAST_EXPONENT, TargetExponents, TargetHistogram
from skdp.privacy.queries.target_sums import FeatureSums, FeatureTargetSums, TargetSum
from skdp.privacy.queries.vertex_scores import Vertex, Vertices, score_rounding
from skdp.privacy.queries.weighted_gradient import ResidualSigns, ShortenedGradient

__all__ = [
    "LEAST_EXPONENT",
    "BlockGradient",
    "ClassCounts",
    "ClassLoss",
    "ClassMoments",
    "CoordinateScores",
    "Curvature",
    "CurvedLoss",
    "Difference",
    "DistanceHistogram",
    "DualGradient",
    "FeatureSums",
    "FeatureTargetSums",
    "Gradient",
    "HatSums",
    "JointGradient",
    "JointMoments",
    "LabelSum",
    "Loss",
    "Minimum",
    "Moments",
    "NewtonDirection",
    "PrimalDifference",
    "PrimalGradient",
    "Query",
    "ResidualHistogram",
    "ResidualSigns",
    "Saddle",
    "SaddlePoint",
    "ScoreGradient",
    "Scores",
    "SecondMoment",
    "ShortenedGradient",
    "SmallestEigenvalue",
    "Standardization",
    "StandardizedGradient",
    "TargetExponents",
    "TargetHistogram",
    "TargetSum",
    "Vertex",
    "Vertices",
    "Whitening",
    "half_vector",
    "score_rounding",
    "symmetric",
]
