"""Plot private models, ledgers and audits with display objects like those of scikit-learn, and check pipelines."""

from skdp.inspection._additive_display import AdditiveDisplay
from skdp.inspection._cluster_display import ClusterDisplay
from skdp.inspection._coefficient_display import CoefficientDisplay
from skdp.inspection._pipeline_check import CheckedStep, PipelineCheck, check_pipeline
from skdp.inspection._scree_display import ScreeDisplay
from skdp.inspection._timeline import BudgetTimelineDisplay
from skdp.inspection._trade_off import TradeOffDisplay

__all__ = [
    "AdditiveDisplay",
    "BudgetTimelineDisplay",
    "CheckedStep",
    "ClusterDisplay",
    "CoefficientDisplay",
    "PipelineCheck",
    "ScreeDisplay",
    "TradeOffDisplay",
    "check_pipeline",
]
