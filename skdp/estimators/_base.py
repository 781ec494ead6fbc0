"""Define the base of all private estimators: `fit` in five lines (`DPEstimator._fit`) and `plan`."""

import math
from abc import ABC
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import read_unlabelled
from skdp._exported import Exported
from skdp._persons import planned_persons, taken_persons, without_number
from skdp._progress import CallbackSupportMixin
from skdp._scikit_learn.callers import check_splits
from skdp._scikit_learn.copies import BoundToLedgers
from skdp._scikit_learn.pipelines import refuse_selection, warn_of_learning_steps
from skdp._table_types import as_table
from skdp._validation import column_labels
from skdp.estimators._contradictions import warn_of_long_rows
from skdp.estimators._display import Displayed
from skdp.estimators._planned_fit import PlannedFit
from skdp.estimators._planned_shape import planned_table
from skdp.estimators._prepared_rows import named_columns_of, prepared
from skdp.estimators._task import Choice, Task, taken_weights
from skdp.estimators._two_stages import first_stage
from skdp.estimators._unsupported import REFUSED, refuse, refuse_fit_arguments
from skdp.privacy.errors import warn
from skdp.privacy.ledger.charging import pay
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import Solver


class DPEstimator(Exported, BoundToLedgers, Displayed, CallbackSupportMixin, BaseEstimator, ABC):
    """Base of the private estimators. Subclasses declare the parameters, name the class of their task, and predict.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter, positive; smaller values are more private. ``float("inf")`` adds no noise and warns.
    delta : float or None, default=None
        Privacy parameter, positive and at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which pairs of tables the guarantee covers. They differ in one record, which is replaced by any other record
        ("replace_one") or by a null record that contributes nothing ("zero_out", which DP-SGD libraries report).
    privacy_unit : {"record", "person"}, default="record"
        What the guarantee protects: a single row, or all rows of a person, for tables with several rows per person. With
        "person", ``fit(X, y, persons=ids)`` takes whose each row is. A row then weighs one over the number of rows of its person,
        so that the model describes a random row of a random person, and ``n_samples`` is the number of persons everywhere.
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name from `skdp.solvers.SOLVERS` such as ``"gd"``, or a solver object such as
        ``GradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    schema : "learn", path-like, dict, Schema or None, default=None
        Public facts about the columns of a data frame, in the form that `skdp.preprocessing.from_schema` takes; they must not be
        computed from the data. "learn" learns the columns with 2 to 10 % of the squared budget, as
        `skdp.preprocessing.LearnedSchema` does. A dict of some columns alone, such as ``{"hour": "category"}``, describes these,
        and the others are learned. The fit prepares the rows by the schema: they have length at most 1, and the coefficients are
        those of ``prepared_features_``. It takes the place of ``feature_bounds`` and ``data_norm``. None learns the columns of a
        data frame in memory, too, if neither of these two is given and the solver can share the budget.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from every column name (x0, x1, ... for arrays) to a number or a pair. They must not be
        computed from the data. The fit clips the columns to these bounds and divides each column by the larger absolute value of
        its bounds, so that columns of different scales have the same influence; ``coef_`` is in the units of X. A model with an
        intercept also shifts each column whose bounds exclude zero, so that the nearer bound becomes zero. The penalty applies to
        the coefficients of the scaled columns. The solver "skgd" does not scale columns: it sets its clip norms from the bounds.
        None takes X as it is.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X, or of the scaled columns if there are
        ``feature_bounds``. The fit scales longer rows down to it. None means ``sqrt(n_features)``: rows of features in [-1, 1]
        never exceed it, and rows of one-hot columns stay far below it. It must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. If None, the solver sets it.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X; the noise grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the choices that need no secrecy: initial weights, public blocks and the order of a single pass. It never seeds
        the noise, which comes from the operating system's cryptographic generator.
    verbose : int or None, default=None
        None shows a progress bar on a terminal if the fit takes more than 3 seconds; 0 shows nothing; 1 prints about ten lines; 2
        prints one line per release, and partitions done where a pass takes long.

    Attributes
    ----------
    n_iter_ : int
        Number of steps, which is public.
    noise_multiplier_ : float
        Standard deviation of the noise divided by the clip norm. Present only if the schedule has a single kind of Gaussian
        release.
    privacy_spent_ : PrivacySpent
        ``(epsilon, delta)`` of this fit, by exact accounting.
    privacy_report_ : PrivacyReport
        The privacy report: guarantee, releases, noise and assumptions.
    schema_ : Schema
        The columns. Present only if a schema prepares the rows.
    prepared_features_ : ndarray of str
        Names of the prepared features, in the order of the coefficients. Present only if a schema prepares the rows.
    hardly_seen_ : dict
        Levels that no training record had, or so few that the releases do not tell their effect, by column, each with the largest
        share of the records that may have it. They take the average effect of the column. Present only if a schema prepares the
        rows, with noise.
    learnt_ : dict
        What was learned of each column: kind, limits, scale, share of missing cells, and numbers of integers or categories.
        ``pandas.DataFrame(learnt_).T`` is a table. Present only if columns were learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names. Present only if X has column names.
    """

    _task_class: ClassVar[type[Task]]
    _takes_sparse: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: most estimators take sparse tables, and secure noise is not reproducible."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self._is_noisy() and NoiseSource().secure
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _is_noisy(self) -> bool:
        """Return whether the fit adds noise. Tags call it before epsilon is checked."""
        return not (isinstance(self.epsilon, Real) and self.epsilon == math.inf)

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``solver__name`` sets a parameter of a solver object.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self
            The estimator.
        """
        refuse(type(self), params)
        return super().set_params(**params)

    @property
    def partial_fit(self) -> Any:
        """Raise AttributeError: every call would be another private fit."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: {REFUSED['partial_fit']}.")

    @property
    def feature_names_out_(self) -> np.ndarray:
        """Names of the columns of ``coef_``: those of X, or the features that the fit makes of them."""
        check_is_fitted(self)
        names = getattr(self, "prepared_features_", getattr(self, "feature_names_in_", None))
        return np.array(column_labels(names, np.shape(self.coef_)[-1]), dtype=object)

    def _task(self, choice: Choice | None = None) -> Any:
        """Return the task of a fit with the present parameters; with what another estimator states that chose this one."""
        return self._task_class(self, choice)

    def _fit(self, X: Any, y: Any, unsupported: dict[str, Any], choice: Any = None, persons: Any = None, **inputs: Any) -> Any:
        """Fit in five lines: read the table, plan the fit, pay for it, run it, and set all attributes at once.

        The first two lines raise all errors about the parameters and the table. The third charges the ledgers, which may refuse.
        Only the fourth puts the records behind the oracle: apart from the checks of the table, nothing before it depends on them.
        """
        task = self._task(choice)
        X, group = taken_persons(task.privacy_unit, task.kind, as_table(X), y, persons)
        n_rows = None
        if group is not None:
            check_splits()
            task, n_rows = task.replaced(n_persons=group.n_persons), group.n_rows
            inputs["persons"] = [group]
        del persons, group
        inputs |= taken_weights(task, unsupported)
        task = task.replaced(exposed=True) if "exposure" in inputs else task
        refuse_fit_arguments(type(self), unsupported)
        warn_of_learning_steps()
        with without_number(n_rows):
            if (learning := first_stage(task, X)) is not None:
                refuse_selection()
                given = [X, y]
                del X, y
                return learning.fit(given, **inputs)
            with task.checked(X, y, **inputs) as table:
                del X, y  # no frame holds them from here on, but that of the caller
                fit = PlannedFit.of(task, table.facts)
                if fit.plan.problem.n_features != fit.attributes["n_features_in_"]:
                    refuse_selection()
                pay(fit.spending, self._ledgers)
                result = task.released(fit, table)
                attributes = task.attributes(fit, result, table.given)
                return self._attributed(attributes, task.contradictions(fit.plan, result, fit.facts))

    def _attributes_for(self, model: Any, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes that callbacks get of this estimator, if these are those of the model that it fits."""
        return attributes

    def _attributed(self, attributes: dict[str, Any], contradictions: Iterable[str | Warning]) -> Any:
        """Set all fitted attributes at once, then warn of what the releases tell against the model or contradict."""
        self._commit(attributes)
        for found in contradictions:  # the model is there, whatever a warning does
            warn(found, UserWarning)
        return self

    def plan(
        self, n_samples: Any, n_features: int | None = None, n_classes: int | None = None, *, persons: Any = None
    ) -> PrivacyReport:
        """Return the report of a fit on a table of the given shape, before any data is touched.

        Parameters
        ----------
        n_samples : int, tuple of int or table
            Number of records, at least 2; or the shape (n_samples, n_features); or a table, of which only the shape is read.
        n_features : int or None, default=None
            Number of columns, at least 1. None if a shape, a table or a schema gives it.
        n_classes : int or None, default=None
            Number of classes, at least 2, if neither ``classes`` nor a schema gives it. None then means 2, and the report states
            this assumption. Regressors accept only None.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row of a given table is, with ``privacy_unit="person"``, as for `fit`; without a table, ``n_samples`` is
            the number of persons.

        Returns
        -------
        PrivacyReport
            Spent budget, releases, noise, the size of the noise relative to the signal, and the number of records or the epsilon
            that would be enough.

        Raises
        ------
        TypeError, ValueError
            As `fit` does.
        """
        return self._planned(*self._planned_units(n_samples, persons), n_features, n_classes)

    def _planned_units(self, n_samples: Any, persons: Any) -> tuple[Any, Any]:
        """Return the task of a planned fit, and the shape or the table without a column of ids."""
        task = self._task()
        n_samples, n_persons = planned_persons(task.privacy_unit, task.kind, n_samples, persons)
        return task.replaced(n_persons=n_persons), n_samples

    def _planned(
        self, task: Any, n_samples: Any, n_features: int | None, n_classes: int | None, extra_of: Any = None
    ) -> PrivacyReport:
        """Return the report of a planned fit, as a user of `plan` gets it; ``extra_of`` returns extra facts of n records."""
        table = planned_table(task.schema, n_samples, n_features)
        if (learning := first_stage(task, table)) is not None:
            return learning.report(n_classes, None if extra_of is None else extra_of(learning.facts.n_samples))
        facts, public = task.planned_facts(n_samples, n_features, n_classes)
        facts = facts if extra_of is None else replace(facts, extra=extra_of(facts.n_samples))
        return task.planned_report(facts, public)  # type: ignore[no-any-return]

    def _rows_of(self, X: Any) -> Any:
        """Return the rows of a table to predict for, with the columns of ``coef_``."""
        if (schema := getattr(self, "schema_", None)) is not None:
            return prepared(schema, named_columns_of(self, X))
        table = read_unlabelled(self, X)
        task, d, names = self._task(), self.n_features_in_, getattr(self, "feature_names_in_", None)
        warn_of_long_rows(table, task.row_facts(d)["data_norm"], task.scaling(d, names))
        return table


@dataclass(eq=False, repr=False)
class PenalizedModel(DPEstimator):
    """Base of the estimators that minimise a mean of losses with a penalty: the parameters that they share.

    A subclass that is a dataclass too adds parameters, or changes a default.
    """

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    solver: "str | Solver" = "auto"
    alpha: float | None = None
    schema: Any = None
    feature_bounds: Any = None
    data_norm: float | None = None
    clip_norm: float | None = None
    random_state: Any = None
    verbose: int | None = None


@dataclass(eq=False, repr=False)
class LinearModel(PenalizedModel):
    """Base of the linear models: the parameters of their intercept."""

    _: KW_ONLY
    fit_intercept: bool = True
    intercept_scaling: float = 1.0


@dataclass(eq=False, repr=False)
class WeightedMixin:
    """Mark the estimators that have the parameter ``max_sample_weight``.

    ``sample_weight`` is no named parameter of ``fit``: without a bound it is refused, and scikit-learn's meta-estimators take
    the name for a promise. AdaBoost, for one, computes weights of a record from all others. Metadata routing passes it on.

    Parameters
    ----------
    max_sample_weight : float or None, default=None
        Public bound on the weights of records, which ``fit`` then takes as ``sample_weight``. Each weight is a private part of
        its record; a larger one counts as the bound. The bound must not be computed from the data. None takes no weights.
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    _: KW_ONLY
    max_sample_weight: float | None = None
