"""Export the estimators; each family has its own file."""

from skdp.estimators._auc import DPAUCMaximizer
from skdp.estimators._constrained import DPConstrainedClassifier, DPConstrainedRegression
from skdp.estimators._group_dro import DPGroupDROClassifier
from skdp.estimators._logistic import DPLogisticRegression
from skdp.estimators._minimax import DPMinimax
from skdp.estimators._quantile import DPQuantileRegressor
from skdp.estimators._regression import DPLinearRegression
from skdp.estimators._robust import DPRobustRegressor
from skdp.estimators._svm import DPLinearSVC
from skdp.estimators._tabular import DPTabularClassifier, DPTabularRegressor
from skdp.estimators.additive._estimators import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.estimators.boosting._estimators import DPGradientBoostingClassifier, DPGradientBoostingRegressor

__all__ = [
    "DPAUCMaximizer",
    "DPAdditiveClassifier",
    "DPAdditiveRegressor",
    "DPConstrainedClassifier",
    "DPConstrainedRegression",
    "DPGradientBoostingClassifier",
    "DPGradientBoostingRegressor",
    "DPGroupDROClassifier",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPMinimax",
    "DPQuantileRegressor",
    "DPRobustRegressor",
    "DPTabularClassifier",
    "DPTabularRegressor",
]
