"""Define the base of the additive models: map the columns by public functions, then run an ordinary private fit."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import read_unlabelled
from skdp._validation import check_number, check_truth, shown
from skdp.data._predictions import takes_tables
from skdp.estimators._base import DPEstimator
from skdp.estimators._inference import KINDS, NOT_INFERRED
from skdp.estimators._prepared_rows import named_columns_of
from skdp.estimators.additive._inferred import InferredShapes, independent
from skdp.estimators.additive._knots import moves
from skdp.estimators.additive._reading import columns_of
from skdp.estimators.additive._terms import LEVEL, ShapeFunction, Shapes, monotone_directions
from skdp.preprocessing import Term
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.solvers import WaldTest

# What else hides a function of a classifier, for its warning.
ONE_CLASS = " Where nearly all records have one class, the log-odds are not identified either."


class ColumnModel(DPEstimator):
    """Base of estimators of the columns of a dense table, which may be text.

    Parameters
    ----------
    schema : "learn", path-like, dict, Schema or None, default=None
        Public facts about the columns of a data frame, in the form that `skdp.preprocessing.from_schema` takes: bounds of
        numbers, "log" for amounts with a long tail, categories. With a key "columns", it ignores other columns. It must not be
        computed from the data. "learn" learns the columns with 2 to 10 % of the squared budget, as
        `skdp.preprocessing.LearnedSchema` does. A dict of some columns alone, such as ``{"hour": "category"}``, describes these,
        and the others are learned. None learns the columns of a data frame in memory, too, unless ``feature_bounds`` or
        ``data_norm`` is given, or the solver cannot share the budget. A table in partitions, such as one of Parquet files, needs
        "learn".
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Without a schema, all columns are numbers, and these are their public bounds, in the units of X: a number B for
        ``|x_ij| <= B``, a pair (low, high) for all columns, one pair per column, or a dict from every column name (x0, x1, ...
        for arrays) to a number or a pair. None means 1 and warns. Values outside the bounds are clipped to them. They must not be
        computed from the data.
    classes : array-like of shape (n_classes,) or None, default=None
        Class labels, which are public. None takes the labels in the schema. If there are none, they are read from y, and the
        guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Public weight per class label, by which a record's loss is multiplied; 1 for other labels. A fit with trees needs no
        weights: it adds their logarithms to the log-odds, where the weighted loss of all functions is least. "balanced" would
        read y and is refused.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. None takes the range in ``schema``; without a schema it means (-1, 1) and warns.

    Attributes
    ----------
    target_bounds_ : tuple of float
        The range of predictions.
    schema_ : Schema
        The columns. Present only with a schema, or if they were learned.
    n_features_in_ : int
        Number of columns: those of the schema where there is one.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names. Present only if X has column names.
    """

    _takes_sparse = False
    schema: Any

    @abstractmethod
    def __init__(self) -> None: ...

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: text needs a schema, and scores on small tables are poor with noise."""
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = self._is_noisy()
        tags.input_tags.string = tags.input_tags.categorical = self.schema is not None
        return tags


class AdditiveModel(ColumnModel):
    """Base of additive models: the sum of one function per column and per named pair of columns.

    Subclasses declare the parameters ``schema``, ``feature_bounds``, ``interactions`` and ``knots`` in addition to those of
    `DPEstimator`.

    Parameters
    ----------
    interactions : list of pair of str or int, default=()
        Pairs of columns, by name or position, whose joint effect the model includes. Each pair adds the products of the hats or
        indicators of its two columns, and every product adds noise: name only a few pairs that are known to matter.
    monotone : dict or None, default=None
        Columns of numbers, by name or position, whose function may only rise (1) or only fall (-1). Isotonic regression makes the
        released function monotone, at no cost in budget; functions of pairs stay unchanged.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a record's scaled numbers (in [-1, 1], 0 at zero or at the nearest bound) and
        indicators together. The fit scales longer records down to it. None means ``sqrt(n_categories + n_numbers / 3 + 0.6 *
        sqrt(n_numbers))``, which one record in 40 exceeds if the numbers are spread evenly. No record exceeds
        ``sqrt(n_columns)``. It must not be computed from the data.
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient. If None, the solver sets it.
    inference : bool, default=False
        Whether the fit releases, within the same epsilon, what confidence bands and tests of the population need: `bands`,
        `column_tests` and `predict_interval` use it. The functions then have few knots, so that the budget identifies them, and
        are not smoothed: they predict less well. It needs bounds and categories of all columns from public knowledge. Errors of
        a number count as symmetric: with skewed ones, such as costs, bands are not for the mean.

    Attributes
    ----------
    intercept_ : float
        Released intercept.
    basis_ : AdditiveBasis
        The basis functions, with public or released knots; ``terms`` lists the coefficients of each column.
    noise_ : CoefficientNoise
        Noise of the coefficients. Present only if the solver reports it.
    inference_ : Inference
        The parts of the covariance of the coefficients. Present only after a fit for inference.
    shape_functions_ : dict of ShapeFunction
        The function of each column, with a band for the noise, or after a fit for inference with a confidence band.
    """

    _refused: ClassVar[dict[str, str]] = {
        "fit_intercept": "there is always one: functions of columns are told apart from each other by their means",
        "intercept_scaling": "the solvers have a scale of their own",
        "l1_ratio": "the penalty is L2; alpha sets its strength",
        "max_bins": "knots=... sets the number of even intervals between knots",
        "n_knots": "knots=... sets the number of even intervals between knots",
    }

    def _interval_rows(self, X: Any) -> tuple[Any, Any]:
        """Return the rows of a table whose factors have intervals, and the squares of what predictions may be off by besides."""
        columns, shapes = self._columns_to_predict(X), self._shapes()
        assert isinstance(shapes, InferredShapes)
        beside: Any = 0.0
        for values in self.basis_.values_of(columns):
            if values.place is not None:
                beside = beside + shapes.bends(values.term, (1 + values.place) / 2)
        return self.basis_.transform(columns)[:, independent(self.basis_)], beside

    @property
    def feature_names_out_(self) -> np.ndarray:
        """Names of the columns of ``coef_``: the functions of each column, and of each pair, with their numbers."""
        check_is_fitted(self)
        terms = [(":".join(term.names), term.columns.stop - term.columns.start) for term in self.basis_.terms]
        return np.array([f"{name}[{number}]" for name, size in terms for number in range(size)], dtype=object)

    @property
    def shape_functions_(self) -> dict[Any, ShapeFunction]:
        """The function of each column, by name, and of each pair, by both names: grid, values, band and importance."""
        return self._functions(LEVEL, False, None)

    def bands(self, level: float = 0.95, *, simultaneous: bool = False, kind: str | None = None) -> dict[Any, ShapeFunction]:
        """Return the functions of ``shape_functions_`` with bands of another level, or with bands for whole curves.

        Parameters
        ----------
        level : float, default=0.95
            Share of the fits whose band holds the curve, in (0, 1): fits with fresh noise to the same records for "noise", and to
            fresh records for "confidence".
        simultaneous : bool, default=False
            Whether a band holds the whole curve at once, at all points of its grid, or each point by itself. Curves of different
            columns are not joint.
        kind : {"confidence", "noise"} or None, default=None
            "noise" is for the curve that these records would have without privacy noise. "confidence" is for the curve of the
            population from which the records come, and needs ``inference=True``. None means the latter after such a fit, and
            else the former.

        Returns
        -------
        dict of ShapeFunction
            By the name of the column, or both names of a pair. The ends of a band are infinite where a fit for inference does
            not identify the curve; None if the solver reports no noise.

        Raises
        ------
        AttributeError
            If ``kind`` is "confidence" and the model was not fitted for inference.
        TypeError, ValueError
            If a parameter is not valid.

        Notes
        -----
        The width of a simultaneous band is a quantile of the largest deviation over the grid, in 4000 simulations of the noise
        whose covariance was released. For boosted models it is that of independent points (Sidak 1967), which is not smaller.

        **Privacy.** Post-processing of what was released.
        """
        check_number("level", level, above=0.0, below=1.0)
        check_truth("simultaneous", simultaneous)
        if kind not in (None, *KINDS):
            raise ValueError(f"kind={shown(kind)}; expected one of {list(KINDS)}, or None.")
        if kind == "confidence" and not hasattr(self, "inference_"):
            raise AttributeError(f"kind={kind!r}: {NOT_INFERRED}")
        return self._functions(float(level), bool(simultaneous), kind)

    def column_tests(self) -> dict[Any, WaldTest]:
        """Return a test, for each column and named pair, that its function is constant.

        After a fit for inference the hypothesis is that the column has no effect in the population from which the records come.
        Else it is that the function of these records is constant but for the privacy noise.

        Returns
        -------
        dict of WaldTest
            By the name of the column, or both names of a pair. The statistic is chi-squared over its degrees of freedom, on the
            covariance of the noise; after a fit for inference, it has an F law, and is NaN, with ``estimable=False``, where the
            budget does not identify all of the function.

        Raises
        ------
        AttributeError
            If the solver reports no noise, or the model has trees, whose leaves have no joint covariance.

        Notes
        -----
        Without ``inference=True`` the hypothesis is about these records: fits to them, with fresh noise, have a mean function
        that is constant. A small p-value says that the privacy noise alone does not make the function that was released. It says
        nothing about other samples of records: in a large table, chance makes functions of columns without any effect in the
        population, and this test finds them. Noise that is stated too large, as it is for most tables, makes p-values too large.

        **Privacy.** Post-processing of what was released.
        """
        shapes = self._shapes()
        if not isinstance(shapes, InferredShapes) and (type(shapes) is not Shapes or shapes.noise is None):
            raise AttributeError("This model has no tests of columns: they need the joint noise of each function.")
        found = {_name_of(term): shapes.test(term) for term in shapes.basis.terms}
        if unknown := [name for name, test in found.items() if not test.estimable]:
            warn(
                f"The functions of {unknown} are not identified at this budget, or only in part: they have no test. Take more "
                "records, a larger epsilon, fewer columns, or bounds closer to where the records are, from public knowledge; "
                f"describe a column of two values as a category.{ONE_CLASS if hasattr(self, 'classes_') else ''}",
                LowSignalWarning,
            )
        return found

    def _functions(self, level: float, simultaneous: bool, kind: str | None) -> dict[Any, ShapeFunction]:
        shapes = self._shapes()
        if isinstance(shapes, InferredShapes) and kind is not None:
            shapes = replace(shapes, kind=kind)
        squeeze = len(shapes.coef) == 1
        return {_name_of(term): shapes.function(term, squeeze, level, simultaneous) for term in shapes.basis.terms}

    @property
    def baseline_(self) -> np.ndarray:
        """Raw prediction of an average record, of shape (n_outputs,), to which `explain` adds."""
        shapes = self._shapes()
        return np.ravel(self.intercept_) + shapes.coef @ shapes.centre

    @takes_tables
    def explain(self, X: Any) -> np.ndarray:
        """Return what each column, and each named pair, adds to the raw prediction of each record.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_terms), or (n_samples, n_terms, n_classes) for more than two classes
            Contributions, in the order of ``shape_functions_``. Together with ``baseline_`` they add up to the log-odds of a
            classifier, or to the prediction of a regressor before it is clipped to ``target_bounds``.
        """
        check_is_fitted(self)
        rows, shapes = self._rows_of(X), self._shapes()
        parts = [
            rows[:, term.columns] @ shapes.coef[:, term.columns].T - shapes.coef[:, term.columns] @ shapes.centre[term.columns]
            for term in shapes.basis.terms
        ]
        contributions = np.stack(parts, axis=1)
        return contributions[:, :, 0] if len(shapes.coef) == 1 else contributions

    def _shapes(self) -> Shapes:
        check_is_fitted(self)
        directions = monotone_directions(self.monotone, self.basis_.facts)
        if (inference := getattr(self, "inference_", None)) is not None:
            n, coef = self.privacy_report_.n_units, np.atleast_2d(self.coef_)
            moved = moves(self.privacy_report_.budget, n, self.basis_)
            return InferredShapes(self.basis_, coef, None, directions, inference, "confidence", n, moved)
        return Shapes(self.basis_, np.atleast_2d(self.coef_), getattr(self, "noise_", None), directions)

    def _rows_of(self, X: Any) -> Any:
        return self.basis_.transform(self._columns_to_predict(X))

    def _raw(self, X: Any) -> np.ndarray:
        columns = self._columns_to_predict(X)
        coef = np.atleast_2d(self.coef_)
        total = sum(self.basis_.raw(values, coef) for values in self.basis_.values_of(columns)) + self.intercept_
        return total[:, 0] if self.coef_.ndim == 1 else np.asarray(total)

    def _columns_to_predict(self, X: Any) -> Any:
        """Return the columns of a table, checked, as the basis takes them."""
        check_is_fitted(self)
        if self.schema is None and not hasattr(self, "learnt_"):
            return read_unlabelled(self, X, accept_sparse=False)
        return columns_of(self.basis_.facts, named_columns_of(self, X))


def _name_of(term: Term) -> Any:
    """Return the name of the column of a function, or the names of both."""
    return term.names[0] if len(term.names) == 1 else term.names
