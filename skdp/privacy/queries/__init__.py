"""Questions about the training data, one file per family; each sensitivity's docstring is its proof."""

from skdp.privacy.queries._base import Loss, Query
from skdp.privacy.queries.calibration import ScoreGradient
from skdp.privacy.queries.gradient import Gradient
from skdp.privacy.queries.labels import ClassCounts, LabelSum
from skdp.privacy.queries.minimum import Minimum
from skdp.privacy.queries.moments import Moments
from skdp.privacy.queries.standardized import Standardization, StandardizedGradient

__all__ = [
    "ClassCounts",
    "Gradient",
    "LabelSum",
    "Loss",
    "Minimum",
    "Moments",
    "Query",
    "ScoreGradient",
    "Standardization",
    "StandardizedGradient",
]
