"""Export the estimators; each family has its own file."""

from typing import TYPE_CHECKING

from skdp._first_use import on_first_use

if TYPE_CHECKING:
    from skdp.estimators._auc import DPAUCMaximizer as DPAUCMaximizer
    from skdp.estimators._constrained import DPConstrainedClassifier as DPConstrainedClassifier
    from skdp.estimators._constrained import DPConstrainedRegression as DPConstrainedRegression
    from skdp.estimators._group_dro import DPGroupDROClassifier as DPGroupDROClassifier
    from skdp.estimators._kmeans import DPKMeans as DPKMeans
    from skdp.estimators._logistic import DPLogisticRegression as DPLogisticRegression
    from skdp.estimators._minimax import DPMinimax as DPMinimax
    from skdp.estimators._naive_bayes import DPMultinomialNB as DPMultinomialNB
    from skdp.estimators._pca import DPPCA as DPPCA
    from skdp.estimators._quantile import DPQuantileRegressor as DPQuantileRegressor
    from skdp.estimators._regression import DPLinearRegression as DPLinearRegression
    from skdp.estimators._robust import DPRobustRegressor as DPRobustRegressor
    from skdp.estimators._svm import DPLinearSVC as DPLinearSVC
    from skdp.estimators._tabular import DPTabularClassifier as DPTabularClassifier
    from skdp.estimators._tabular import DPTabularRegressor as DPTabularRegressor
    from skdp.estimators.additive._estimators import DPAdditiveClassifier as DPAdditiveClassifier
    from skdp.estimators.additive._estimators import DPAdditiveRegressor as DPAdditiveRegressor
    from skdp.estimators.boosting._estimators import DPGradientBoostingClassifier as DPGradientBoostingClassifier
    from skdp.estimators.boosting._estimators import DPGradientBoostingRegressor as DPGradientBoostingRegressor
else:
    __getattr__, __dir__, __all__ = on_first_use(__name__)
