"""Displays of what a guarantee means, in the manner of scikit-learn's."""

from skdp.inspection._timeline import BudgetTimelineDisplay

__all__ = ["BudgetTimelineDisplay"]
