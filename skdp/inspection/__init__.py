"""Plot private models, ledgers and audits with display objects like those of scikit-learn."""

from skdp.inspection._additive_display import AdditiveDisplay
from skdp.inspection._timeline import BudgetTimelineDisplay
from skdp.inspection._trade_off import TradeOffDisplay

__all__ = ["AdditiveDisplay", "BudgetTimelineDisplay", "TradeOffDisplay"]
