"""Search for parameters and estimators with one privacy budget for all fits, all scores and the final model."""

from skdp.model_selection._plan import SearchPlan
from skdp.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = ["DPGridSearchCV", "DPRandomizedSearchCV", "SearchPlan"]
