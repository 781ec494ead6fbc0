"""Displays of what a guarantee means, in the manner of scikit-learn's."""

from skdp.inspection._trade_off import TradeOffDisplay

__all__ = ["TradeOffDisplay"]
