"""scikit-learn's own checks, at epsilon 1 and without noise: none is expected to fail."""

import math

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import DPLogisticRegression

ESTIMATORS = [DPLogisticRegression(), DPLogisticRegression(math.inf)]


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks provoke warnings of their own
@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)
