"""Questions about the training data, one file per family; each sensitivity's docstring is its proof."""

from skdp.privacy.queries._base import Loss, Query
from skdp.privacy.queries.gradient import Gradient

__all__ = ["Gradient", "Loss", "Query"]
