"""The estimators to start with: public facts choose among linear, additive and boosted models."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted

from skdp._data_validation import quoting_no_data
from skdp._persons import taken_persons
from skdp._table_types import as_table, is_dask, is_lazy
from skdp.data._dask import table_of
from skdp.estimators._classifier import DPProbabilisticClassifier
from skdp.estimators._logistic import DPLogisticRegression
from skdp.estimators._planned_shape import planned_table, read_shape
from skdp.estimators._regression import DPLinearRegression
from skdp.estimators._regressor import DPRegressor
from skdp.estimators._task import Choice
from skdp.estimators._two_stages import Learning, LearningInPartitions, learning_of
from skdp.estimators._unsupported import complete_estimator, refuse_fit_arguments
from skdp.estimators.additive._base import ColumnModel
from skdp.estimators.additive._estimators import DPAdditiveClassifier
from skdp.estimators.additive._reading import labels_of_columns, number_of_records
from skdp.estimators.additive._terms import ShapeFunction, Shapes
from skdp.estimators.boosting._base import BoostedModel
from skdp.estimators.boosting._estimators import (
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    StagedClassification,
    StagedRegression,
)
from skdp.preprocessing._frame_facts import leaves_to_learn
from skdp.privacy.budget import FEWEST_BY_DEFAULT, Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.report.statement import PrivacyReport

# Signal-to-noise ratio, mu n over the sensitivity, below which a classifier is linear. Between 1000 and 1500 the additive model
# was .008 above the linear one on spambase; between 500 and 1000 it was .006 above on adult, .002 above on spambase and .007 to
# .08 below on ijcnn1.
LEAST_OF_CURVES = 1000.0
SHARED = frozenset(  # what a fitted estimator has of the one that was chosen
    "n_features_in_ feature_names_in_ classes_ event_ target_bounds_ n_iter_ privacy_spent_ schema_ learnt_ privacy_report_ "
    "prepared_features_ link_ calibration_".split()
)


class TabularModel(ColumnModel):
    """Base of estimators that fit another one, which public facts choose.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator that was chosen, with attributes of its own: one of *See Also*.
    learnt_ : dict
        What was learned of each column. Present only if columns were learned.
    privacy_report_ : PrivacyReport
        The privacy report, with the choice and its reason.
    """

    _refused = BoostedModel._refused
    _boosted: ClassVar[Any]
    _usual: ClassVar[Any]  # where noise would win over trees
    _faint: ClassVar[Any]  # where noise would win over functions of columns, too

    def _fit(self, X: Any, y: Any, unsupported: dict[str, Any], choice: Any = None, persons: Any = None, **inputs: Any) -> Any:
        refuse_fit_arguments(type(self), unsupported)  # also what the chosen estimator takes
        task = self._task()
        X, group = taken_persons(task.privacy_unit, task.kind, as_table(X), y, persons)
        del persons
        n_samples, n_columns, rest = self._facts_of(X, y, task if group is None else task.replaced(n_persons=group.n_persons))
        model, choice = self._chosen(n_samples, n_columns, rest)
        if self._ledgers:
            model._ledgers = self._ledgers
        model._fit(X, y, unsupported, choice, persons=group, **inputs)
        self._commit(self._attributes_of(model))
        return self

    def _attributes_for(self, model: Any, attributes: dict[str, Any]) -> dict[str, Any]:
        fitted = self._made(type(model))
        vars(fitted).update(attributes)
        return self._attributes_of(fitted)

    def _attributes_of(self, model: Any) -> dict[str, Any]:
        """Return the attributes of this estimator once the chosen one is fitted."""
        return {**{name: value for name, value in vars(model).items() if name in SHARED}, "estimator_": model}

    def plan(
        self, n_samples: Any, n_features: int | None = None, n_classes: int | None = None, *, persons: Any = None
    ) -> PrivacyReport:
        """Return the report of a fit on a table of the given shape, before any data is touched; states what would be fitted."""
        task, n_samples = self._planned_units(n_samples, persons)
        table = planned_table(self.schema, n_samples, n_features)
        if (hasattr(table, "shape") and not isinstance(table, Integral)) or is_lazy(table):
            model, choice = self._chosen(*self._facts_of(table, None, task))
        else:
            shape = read_shape(n_samples, n_features)
            model, choice = self._chosen(shape.n_samples, self._task().n_columns(shape.n_features))
        return model._planned(model._task(choice).replaced(n_persons=task.n_persons), n_samples, n_features, n_classes)  # type: ignore[no-any-return]

    def _chosen(self, n_samples: int, n_columns: int, budget: Budget | None = None) -> tuple[Any, Choice]:
        """Return the estimator that is fitted, chosen by public facts alone; None stands for the whole budget."""
        # fewer records are refused by the chosen estimator, whichever it is
        n_samples = n_samples if n_samples >= 2 else FEWEST_BY_DEFAULT
        task = self._task()
        signal = task.signal(task.known_budget(n_samples) if budget is None else budget, n_samples)
        if task.rule(signal, n_columns) is not None:
            kind, why = self._boosted, "enough for trees"
        elif signal >= LEAST_OF_CURVES:
            kind, why = self._usual, "where noise would win over trees"
        else:
            kind, why = self._faint, "where noise would win over trees and curves"
        reason = f"the signal-to-noise ratio is {signal:.4g} for {n_columns} columns, {why}"
        return self._made(kind), Choice(self, reason)

    def _made(self, kind: Any) -> Any:
        """Return an estimator with the parameters of this one."""
        given = self.get_params(deep=False)
        return kind(**{name: given[name] for name in kind._get_param_names() if name in given})

    def _facts_of(self, X: Any, y: Any, task: Any) -> tuple[int, int, Budget | None]:
        """Return the numbers of records and of columns, and the budget that columns which are learned leave."""
        n_samples, n_columns = self._shape_of(X, y)
        n_samples = task.units_of(n_samples)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the chosen estimator repeats them
            try:
                learning = learning_of(task, X)
                if isinstance(learning, LearningInPartitions):
                    learning = Learning.planned(task, replace(learning.facts, n_samples=n_samples))
            except (TypeError, ValueError, PrivacyAccountingError):
                return n_samples, n_columns, None  # the chosen estimator says what is wrong
        return n_samples, *((n_columns, None) if learning is None else (len(learning.facts.likely().columns), learning.rest))

    def _shape_of(self, X: Any, y: Any) -> tuple[int, int]:
        """Return the numbers of records and of columns; what is wrong with a table, the chosen estimator says."""
        facts = None if self.schema is None or leaves_to_learn(self.schema, X) else self._task().input_schema
        if is_lazy(X):
            table = table_of(X, y) if is_dask(X) else X
            return number_of_records(table), len(labels_of_columns(table) if facts is None else facts.columns)
        if sparse.issparse(X):
            check_array(X)  # refuses it, as two of the three would
        shape = X.shape if hasattr(X, "shape") else quoting_no_data(X, lambda: np.asarray(X).shape)
        n_samples, n_columns = (*shape, 1, 1)[:2]
        return n_samples, n_columns if facts is None else len(facts.columns)

    def _raw(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(self.estimator_._raw(X))

    @property
    def feature_names_out_(self) -> np.ndarray:
        """Names of the columns of ``coef_`` of the chosen estimator."""
        return np.asarray(self._model_with("feature_names_out_").feature_names_out_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the variance of raw predictions, if a boosted model was chosen."""
        return np.asarray(self._model_with("feature_importances_").feature_importances_)

    @property
    def shape_functions_(self) -> Any:
        """The function of each column, if an additive or a boosted model was chosen."""
        return self._model_with("shape_functions_").shape_functions_

    def bands(self, level: float = 0.95, *, simultaneous: bool = False, kind: str | None = None) -> Any:
        """Return the functions with bands of another level, or for whole curves; see the chosen estimator."""
        return self._model_with("bands").bands(level, simultaneous=simultaneous, kind=kind)

    def column_tests(self) -> Any:
        """Return a test for each column, if an additive model was chosen; see the chosen estimator."""
        return self._model_with("column_tests").column_tests()

    @property
    def baseline_(self) -> np.ndarray:
        """Raw prediction of an average record, if an additive or a boosted model was chosen."""
        return np.asarray(self._model_with("baseline_").baseline_)

    @property
    def interactions_(self) -> Any:
        """Strength of the interaction of each pair of columns, if a boosted model was chosen."""
        return self._model_with("interactions_").interactions_

    def interaction(self, one: Any, other: Any) -> ShapeFunction:
        """Return what two columns add together, if a boosted model was chosen; see the chosen estimator."""
        found: ShapeFunction = self._model_with("interaction").interaction(one, other)
        return found

    def explain(self, X: Any) -> np.ndarray:
        """Return what each column adds for each record, if an additive or a boosted model was chosen."""
        return np.asarray(self._model_with("explain").explain(X))

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        check_is_fitted(self)
        if isinstance(self.estimator_, BoostedModel):
            return self.estimator_._staged(X)
        return iter([self._raw(X)])

    def _shapes(self) -> Shapes:
        return self._model_with("_shapes")._shapes()  # type: ignore[no-any-return]

    def _model_with(self, name: str) -> Any:
        """Return the chosen estimator if it has an attribute."""
        check_is_fitted(self)
        if not hasattr(type(self.estimator_), name):
            raise AttributeError(
                f"The chosen estimator, {type(self.estimator_).__name__}, has no {name.lstrip('_')}; privacy_report_ says why it "
                "was chosen, and estimator_ has what it has."
            )
        return self.estimator_


@complete_estimator
@dataclass(eq=False, repr=False)
class DPTabularClassifier(StagedClassification, TabularModel, DPProbabilisticClassifier):
    r"""The classifier to start with: differentially private, with nothing to describe or to tune.

    It fits another estimator: `DPGradientBoostingClassifier` where noise leaves trees a chance, `DPAdditiveClassifier` where it
    leaves curves one, and `DPLogisticRegression` elsewhere. The number of records, the number of columns and the budget decide,
    which are public, so the choice costs nothing. What is not given about the columns of a data frame is learned within the same
    budget. The report states what was chosen and why.

    Attributes
    ----------
    estimator_, classes_, privacy_spent_, privacy_report_, schema_, learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPGradientBoostingClassifier, DPAdditiveClassifier, DPLogisticRegression : The estimators that it chooses from.

    Notes
    -----
    **Privacy.** One call of ``fit`` is one fit of the chosen estimator, with its guarantee. The choice depends on public facts
    alone.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import DPTabularClassifier
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 90, 20000), "job": rng.choice(["a", "b", "c"], 20000)})
    >>> y = (frame["age"] > 40 + 20 * (frame["job"] == "b")).astype(int)
    >>> model = DPTabularClassifier(epsilon=1.0).fit(frame, y)
    >>> type(model.estimator_).__name__
    'DPGradientBoostingClassifier'
    >>> bool(model.score(frame, y) > 0.9)
    True
    """

    _task_class = DPGradientBoostingClassifier._task_class
    _boosted, _usual, _faint = DPGradientBoostingClassifier, DPAdditiveClassifier, DPLogisticRegression


@complete_estimator
@dataclass(eq=False, repr=False)
class DPTabularRegressor(StagedRegression, TabularModel, DPRegressor):
    r"""The regressor to start with: differentially private, with nothing to describe or to tune.

    It fits another estimator: `DPGradientBoostingRegressor` where noise leaves trees a chance, and `DPLinearRegression`
    elsewhere. The number of records, the number of columns and the budget decide, which are public, so the choice costs nothing.
    What is not given about the columns of a data frame is learned within the same budget. The report states what was chosen and
    why.

    Parameters
    ----------
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. None takes the range in ``schema``, or learns it, inside the budget, together with the
        columns of a data frame; where these are drowned by noise, the model is the mean of y alone, and a warning says what would
        be enough for more. For an array it means (-1, 1) and warns.

    Attributes
    ----------
    estimator_, target_bounds_, link_, calibration_, privacy_spent_, privacy_report_, schema_, learnt_, n_features_in_
    feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPGradientBoostingRegressor, DPLinearRegression : The estimators that it chooses from.
    DPAdditiveRegressor : Curves of columns.

    Notes
    -----
    **Privacy.** One call of ``fit`` is one fit of the chosen estimator, with its guarantee. The choice depends on public facts
    alone.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import DPTabularRegressor
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 90, 20000), "job": rng.choice(["a", "b", "c"], 20000)})
    >>> y = frame["age"] * (1 + (frame["job"] == "b"))
    >>> model = DPTabularRegressor(epsilon=1.0).fit(frame, y)
    >>> type(model.estimator_).__name__
    'DPGradientBoostingRegressor'
    >>> bool(model.score(frame, y) > 0.9)
    True
    """

    _task_class = DPGradientBoostingRegressor._task_class
    _boosted, _usual, _faint = DPGradientBoostingRegressor, DPLinearRegression, DPLinearRegression
