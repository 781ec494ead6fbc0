"""Define the queries about the training data, one file per family; the docstring of each ``sensitivity`` is its proof."""

from skdp.privacy.queries._base import ClassLoss, CountQuery, CurvedLoss, Loss, NonNegativeQuery, Query, Scores, SumQuery
from skdp.privacy.queries._half_vector import half_vector, half_vector_size, symmetric
from skdp.privacy.queries.block_gradient import *  # noqa: F403
from skdp.privacy.queries.cell_counts import *  # noqa: F403
from skdp.privacy.queries.class_moments import *  # noqa: F403
from skdp.privacy.queries.class_sums import *  # noqa: F403
from skdp.privacy.queries.clipped_moments import *  # noqa: F403
from skdp.privacy.queries.cluster_steps import *  # noqa: F403
from skdp.privacy.queries.column_histograms import *  # noqa: F403
from skdp.privacy.queries.deviations import *  # noqa: F403
from skdp.privacy.queries.difference import *  # noqa: F403
from skdp.privacy.queries.error_sums import *  # noqa: F403
from skdp.privacy.queries.feature_moments import *  # noqa: F403
from skdp.privacy.queries.first_and_second_moment import *  # noqa: F403
from skdp.privacy.queries.gradient import *  # noqa: F403
from skdp.privacy.queries.haar_counts import *  # noqa: F403
from skdp.privacy.queries.hat_sums import *  # noqa: F403
from skdp.privacy.queries.joint_histogram import *  # noqa: F403
from skdp.privacy.queries.label_counts import *  # noqa: F403
from skdp.privacy.queries.leaf_sums import *  # noqa: F403
from skdp.privacy.queries.length_histograms import *  # noqa: F403
from skdp.privacy.queries.limited_moments import *  # noqa: F403
from skdp.privacy.queries.linked_sums import *  # noqa: F403
from skdp.privacy.queries.loss_sums import *  # noqa: F403
from skdp.privacy.queries.minimum import *  # noqa: F403
from skdp.privacy.queries.newton_direction import *  # noqa: F403
from skdp.privacy.queries.product_moments import *  # noqa: F403
from skdp.privacy.queries.rank_scores import *  # noqa: F403
from skdp.privacy.queries.saddle_gradient import *  # noqa: F403
from skdp.privacy.queries.sandwich import *  # noqa: F403
from skdp.privacy.queries.score_counts import *  # noqa: F403
from skdp.privacy.queries.second_moment import *  # noqa: F403
from skdp.privacy.queries.shortened_gradient import *  # noqa: F403
from skdp.privacy.queries.slope_derivatives import *  # noqa: F403
from skdp.privacy.queries.standardized_gradient import *  # noqa: F403
from skdp.privacy.queries.sufficient import *  # noqa: F403
from skdp.privacy.queries.target_histograms import *  # noqa: F403
from skdp.privacy.queries.target_sums import *  # noqa: F403
from skdp.privacy.queries.total_weight import *  # noqa: F403
from skdp.privacy.queries.vertex_scores import *  # noqa: F403

__all__ = ["ClassLoss", "CountQuery", "CurvedLoss", "Loss", "NonNegativeQuery", "Query", "Scores", "SumQuery"]
__all__ += ["half_vector", "half_vector_size", "symmetric"]
__all__ += [
    name for family, module in list(vars().items()) if not family.startswith("_") for name in getattr(module, "__all__", ())
]
