"""Displays of what a guarantee means, in the manner of scikit-learn's."""

from skdp.inspection._additive_display import AdditiveDisplay
from skdp.inspection._timeline import BudgetTimelineDisplay
from skdp.inspection._trade_off import TradeOffDisplay

__all__ = ["AdditiveDisplay", "BudgetTimelineDisplay", "TradeOffDisplay"]
