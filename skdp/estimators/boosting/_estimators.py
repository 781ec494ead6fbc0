"""Private gradient boosting: an additive model, then random trees that find which columns interact."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from skdp.estimators._base import DPEstimator
from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask, probabilities
from skdp.estimators._regressor import DPRegressor, RegressionTask
from skdp.estimators._unsupported import complete_estimator
from skdp.estimators.additive._knots import intervals_for_classes, intervals_for_numbers
from skdp.estimators.boosting._base import BoostedModel
from skdp.estimators.boosting._task import BoostedTask
from skdp.preprocessing import AdditiveBasis


@dataclass(eq=False, repr=False)
class StagedClassification(DPEstimator):
    """Mixin of classifiers that predict after each tree, with their parameters."""

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    schema: Any = None
    feature_bounds: Any = None
    classes: Any = None
    class_weight: dict[Any, float] | None = None
    random_state: Any = None
    verbose: int | None = None

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the raw predictions after each tree; the last ones are those of `decision_function`.

        Parameters
        ----------
        X : {rows} of shape (n_samples, n_features)
            Records.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Once per tree; once in all without trees.
        """
        for raw in self._staged(X):
            yield raw[:, 0] if self.classes_.size == 2 else raw

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probability of each class after each tree, as `predict_proba` does at the end.

        Parameters
        ----------
        X : {rows} of shape (n_samples, n_features)
            Records.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            Once per tree; once in all without trees.
        """
        yield from map(probabilities, self.staged_decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predicted labels after each tree, as `predict` does at the end.

        Parameters
        ----------
        X : {rows} of shape (n_samples, n_features)
            Records.

        Yields
        ------
        ndarray of shape (n_samples,)
            Once per tree; once in all without trees.
        """
        yield from map(self._labels_of, self.staged_decision_function(X))


@dataclass(eq=False, repr=False)
class StagedRegression(DPEstimator):
    """Mixin of regressors that predict after each tree, with their parameters."""

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    target_bounds: tuple[float, float] | None = None
    link: str = "identity"
    max_exposure: float = 1.0
    schema: Any = None
    feature_bounds: Any = None
    random_state: Any = None
    verbose: int | None = None

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each tree, as `predict` does at the end.

        Parameters
        ----------
        X : {rows} of shape (n_samples, n_features)
            Records.

        Yields
        ------
        ndarray of shape (n_samples,)
            Once per tree; once in all without trees.
        """
        yield from map(self._in_bounds, self._staged(X))


class BoostedClassificationTask(BoostedTask, ProbabilisticTask):
    """Task of boosting for classes."""

    of_classes: ClassVar[bool] = True

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_classes(signal * self._share(signal, len(basis.facts.columns)) ** 0.5, basis)


@complete_estimator
@dataclass(eq=False, repr=False)
class DPGradientBoostingClassifier(StagedClassification, BoostedModel, DPProbabilisticClassifier):
    r"""Gradient boosting for classes whose fitted model is differentially private, and which finds interactions by itself.

    An additive model gets 20 to 50 % of the squared budget. Then 1000 random trees are added, or 500 for more than 100 000
    records. A tree has the same random splits on all paths, so it depends on no record. What is released of it are noisy sums of
    clipped residuals over its leaves. A record is in one leaf, so the noise depends neither on the depth of the trees nor on the
    number of columns. There is nothing to tune.
    With too few records for trees, which public facts decide, the fit is that of `DPAdditiveClassifier`, and the report says
    so. For more than two classes, each tree adds to the raw predictions of all classes.

    Attributes
    ----------
    trees_, feature_importances_, shape_functions_, interactions_, baseline_, basis_, coef_
    intercept_ : ndarray
        Released intercept.
    classes_, n_iter_, privacy_spent_, privacy_report_, schema_
    learnt_ : dict
        What was learned of each column, as for `DPAdditiveClassifier`. Present only if columns were learned.
    n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPAdditiveClassifier : Without interactions, or with named ones; its functions can be read.
    DPGradientBoostingRegressor : For numbers as targets.

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency. All releases are full-data Gaussian: those of the additive model; counts of the bins of all columns; 500
    sums over leaves, each of sensitivity c (2c under ``replace_one``) for the clip norm c; two sums that set the weight of the
    trees; and two that set the slope of all scores, because clipped sums make clear cases too sure. Trees are drawn from public
    randomness and earlier releases. The score of a record depends on this record and on earlier releases, and never leaves
    without noise. What is public, and what is assumed, is as for `DPAdditiveClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGradientBoostingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)  # no sum of functions of single columns predicts it
    >>> model = DPGradientBoostingClassifier(epsilon=3.0, feature_bounds=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _task_class = BoostedClassificationTask


class BoostedRegressionTask(BoostedTask, RegressionTask):
    """Task of boosting for numbers."""

    of_classes: ClassVar[bool] = False
    dyadic = False  # as for the additive regressor

    def _n_intervals(self, signal: float, basis: AdditiveBasis) -> int:
        return intervals_for_numbers(signal * self._share(signal, len(basis.facts.columns)) ** 0.5, basis)


@complete_estimator
@dataclass(eq=False, repr=False)
class DPGradientBoostingRegressor(StagedRegression, BoostedModel, DPRegressor):
    r"""Gradient boosting for numbers whose fitted model is differentially private, and which finds interactions by itself.

    An additive model gets 20 to 50 % of the squared budget. Then 1000 random trees are added, or 500 for more than 100 000
    records. A tree has the same random splits on all paths, so it depends on no record. What is released of it are noisy sums of
    clipped residuals over its leaves. A record is in one leaf, so the noise depends neither on the depth of the trees nor on the
    number of columns. There is nothing to tune.
    With too few records for trees, which public facts decide, the fit is that of `DPAdditiveRegressor`, and the report says
    so.

    Attributes
    ----------
    trees_, feature_importances_, shape_functions_, interactions_, baseline_, basis_, coef_, intercept_, target_bounds_, link_
    calibration_, n_iter_, privacy_spent_, privacy_report_, schema_
    learnt_ : dict
        What was learned of each column, as for `DPAdditiveRegressor`. Present only if columns were learned.
    n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPAdditiveRegressor : Without interactions, or with named ones; its functions can be read.
    DPGradientBoostingClassifier : For classes.

    Notes
    -----
    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency. All releases are full-data Gaussian: those of the additive model; counts of the bins of all columns; 500
    sums over leaves, each of sensitivity c (2c under ``replace_one``) for the clip norm c; two sums that set the weight of the
    trees; and the sum of the residuals, clipped to half the width of ``target_bounds``, whose mean is added to all predictions.
    Trees are drawn from public randomness and earlier releases. The score of a record depends on this record and on earlier
    releases, and never leaves without noise. What is public, and what is assumed, is as for `DPAdditiveRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = DPGradientBoostingRegressor(epsilon=3.0, feature_bounds=1.0, target_bounds=(-1, 1)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _task_class = BoostedRegressionTask
