"""Define the base of estimators without y: a table alone goes through all that fits go through."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from skdp._data_validation import Facts, NoTargetReader
from skdp._progress import with_callbacks
from skdp._validation import check_feature_bounds, check_truth
from skdp.estimators._base import DPEstimator
from skdp.estimators._plan import Plan
from skdp.estimators._task import Task
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.errors import silent
from skdp.solvers import NoLoss, Problem, SolverResult
from skdp.solvers._unlabelled import UnlabelledProblem


class UnlabelledTask(Task):
    """Task of a fit without y. Its rows are points in units of their bounds, around the middle of these."""

    scale: Any

    takes_y = False
    bounding: ClassVar[tuple[str, ...]] = ("schema", "feature_bounds")
    n_points: ClassVar[int] = 1  # number of points that the solver returns

    def check_parameters(self) -> None:
        super().check_parameters()
        check_truth("scale", self.scale)

    def target_reader(self) -> NoTargetReader:
        return NoTargetReader()

    def assumed_of_y(self) -> str:
        return "y is not read"

    def problem_of(self, facts: Facts) -> Problem:
        loss = NoLoss(self.kind, n_outputs=self.n_points)
        return self._problem(facts.n_samples, facts.n_features, loss, UnlabelledProblem)

    def plan_of(self, facts: Facts) -> Plan:
        return replace(super().plan_of(facts), reason=f"that of {self.kind}")

    def scaling(self, n_features: int, names: Any) -> ColumnScaling | None:
        scaling = super().scaling(n_features, names)
        if scaling is None or self.scale:
            return scaling
        return replace(scaling, unit=np.full(n_features, scaling.unit.max()))  # one unit keeps the proportions of the columns

    def _row_facts(self, n_samples: int, n_features: int) -> dict[str, Any]:
        facts = super()._row_facts(n_samples, n_features)
        bounds = check_feature_bounds(self.public_rows()[0], n_features)
        if bounds is None:
            middle, widths, reach = np.zeros(n_features), np.ones(n_features), facts["data_norm"]
            box = np.full(n_features, reach)
        else:
            scaling = self.scaling(n_features, None)
            assert scaling is not None
            low, high = (end / scaling.unit for end in (scaling.low - scaling.shift, scaling.high - scaling.shift))
            middle, halves = (low + high) / 2, (high - low) / 2
            widths = halves if self.scale else np.ones(n_features)
            box = halves / widths
            reach = float(np.linalg.norm(box))
        arrays = {"middle": middle, "widths": widths, "box": box}
        return {**facts, **{name: tuple(value.tolist()) for name, value in arrays.items()}, "reach": float(reach)}

    def supported(self, plan: Plan, result: SolverResult, facts: Facts) -> tuple[SolverResult, dict[str, Any]]:
        return result, {}

    def unknown(self, plan: Plan, result: SolverResult, facts: Facts) -> str:
        return ""

    def outer(self, plan: Plan, points: np.ndarray) -> np.ndarray:
        """Return points in the units of X, or of the prepared features, from those in the coordinates of z.

        Parameters
        ----------
        plan : Plan
            Of the fit.
        points : ndarray of shape (n_points, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_points, n_features)
            The same points.
        """
        problem, scaling = plan.problem, plan.scaling
        assert isinstance(problem, UnlabelledProblem)
        rows = np.asarray(problem.middle) + points * np.asarray(problem.widths)
        return rows if scaling is None else scaling.shift + scaling.unit * rows

    def units_of_columns(self, plan: Plan) -> np.ndarray:
        """Return the unit of each feature of z, in the units of X or of the prepared features."""
        zero, one = self.outer(plan, np.array([[0.0], [1.0]]) * np.ones(plan.problem.n_features))
        return one - zero


class DPUnlabelled(DPEstimator):
    """Base of the estimators without y.

    Parameters
    ----------
    schema : "learn", path-like, dict, Schema or None, default=None
        Public facts about the columns of a data frame, in the form that `skdp.preprocessing.from_schema` takes; they must not be
        computed from the data. "learn" learns the columns with 2 to 10 % of the squared budget, as
        `skdp.preprocessing.LearnedSchema` does. A dict of some columns alone, such as ``{"hour": "category"}``, describes these,
        and the others are learned. The fit prepares the rows by the schema, whose units are then those of the fit. None learns
        the columns of a data frame in memory, too, if there are no ``feature_bounds``.
    feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None, default=None
        Public bounds of the features, in the units of X: a number B for ``|x_ij| <= B``, a pair (low, high) for all columns, one
        pair per column, or a dict from every column name (x0, x1, ... for arrays) to a number or a pair. They must not be
        computed from the data. The fit clips the columns to these bounds. None takes all features to lie in [-1, 1].
    scale : bool, default=True
        Whether columns with ``feature_bounds`` are divided by half the width of their bounds, so that columns of different units
        have the same influence. A schema has units of its own.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features,)
        Public unit of each feature, in the units of X or of the prepared features: half the width of its bounds, or 1.
    """

    _task_class: ClassVar[type[UnlabelledTask]]
    _absent: ClassVar[dict[str, str]] = {}  # attributes of scikit-learn's estimator that are not here, with the reason

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, with the reason if an attribute of scikit-learn's estimator is not here."""
        reasons = type(self)._absent
        if name in reasons:
            raise AttributeError(f"{type(self).__name__} has no {name}: {reasons[name]}.")
        return object.__getattribute__(self, name)  # which raises its error, such as that of a property before a fit

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, persons: Any = None, **unsupported: Any) -> Any:
        """Fit the table, spending the budget once.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            {records}
        y : object, default=None
            Not read; for pipelines.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, with ``privacy_unit="person"``: an id per row, integers or texts, or the name of a column of a data
            frame, which is no feature then. Ids are private, and nothing keeps them.
        **unsupported : dict
            Refused: ``sample_weight`` and other arguments raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. An interrupted fit leaves it unchanged.
        """
        with silent():
            return self._fit(X, None, unsupported, persons=persons)
