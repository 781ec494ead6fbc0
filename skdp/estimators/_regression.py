"""Private linear regression."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts
from skdp._validation import check_number
from skdp.estimators._base import LinearModel, WeightedMixin
from skdp.estimators._inference import InferenceMixin, InferenceTask
from skdp.estimators._link import LogCalibration
from skdp.estimators._plan import Plan
from skdp.estimators._regressor import DPRegressor, RegressionTask
from skdp.estimators._unsupported import complete_estimator
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.solvers import SolverResult, Uncertainty


class LinearTask(InferenceTask, RegressionTask):
    """Task of a linear regression: several targets, and the uncertainty of the coefficients."""

    takes_several = True

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        model = super().model(plan, result, facts)
        if result.uncertainty is not None and np.ndim(model["coef_"]) == 1:
            (centre, unit), uncertainty = self.units(), result.uncertainty
            if plan.scaling is not None:
                uncertainty = replace(uncertainty, geometry=plan.scaling.geometry(uncertainty.geometry))
            model["uncertainty_"] = replace(uncertainty, offset=centre, unit=unit)
        return model


@complete_estimator
@dataclass(eq=False, repr=False)
class DPLinearRegression(WeightedMixin, InferenceMixin, LinearModel, DPRegressor):
    r"""Linear regression whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise

    .. math:: \frac1{2n} \sum_i (x_i^\top w + b - y_i)^2 + \frac{\alpha}{2} \|w\|^2

    in units in which the public range of y is [-1, 1]. The penalty can also be L1 or an elastic net.

    Parameters
    ----------
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name from `skdp.solvers.SOLVERS` such as ``"ssp"``, or a solver object such as
        ``WhitenedGradientDescent(n_steps=60)``. "auto" chooses from public facts; the report names the choice and its reason.
    target_bounds : pair of float, sequence of pairs or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. None means (-1, 1) and warns. A y of several columns may have a pair for each; `plan`
        takes the number of targets from it.
    alpha : float or None, default=None
        Strength of the penalty, which excludes the intercept. 0 means no penalty. If None, the solver sets it from public facts:
        0 for "whitened_gd", which shrinks the coefficients according to the known noise instead.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1,
        and a value in between is an elastic net. The L1 part is in the units of the solver: ``Lasso(alpha)`` of scikit-learn
        corresponds to ``alpha`` divided by half the width of ``target_bounds``. If ``l1_ratio`` is positive, "auto" takes "gd".
    clip_norm : float or None, default=None
        Bound on the norm of one record's gradient; smaller values add less noise and more bias. If None, the solver sets it
        ("whitened_gd" from a release).
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, y is not centred, so its range should include 0.
    intercept_scaling : float, default=1.0
        Constant appended to each row for the intercept, in the units of X, for solvers whose noise grows with
        ``sqrt(data_norm**2 + intercept_scaling**2)``. "whitened_gd" sets its own constant.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Released coefficients; a row for each column of y if y has two dimensions.
    intercept_ : float or ndarray of shape (n_targets,)
        Released intercept; zero if ``fit_intercept=False``.
    target_bounds_ : tuple of float, or ndarray of shape (n_targets, 2)
        Range of the predictions.
    link_, calibration_
    uncertainty_ : Uncertainty
        Data of the intervals. Present only if the solver reports them, for one target.
    inference_
    n_iter_ : int
        Number of steps, which is public; 0 if only the mean of y was estimated. Absent for "ssp".
    noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_
    hardly_seen_ : dict
        Levels that no training record had, or so few that the releases do not tell their effect, by column, each with the largest
        share of the records that may have it, or nan where none is released, as by solvers of gradients alone. They take the
        average effect of the column. The report says where a solver tells nothing of them. Present only if a schema prepares the
        rows, with noise and without inference.
    learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    skdp.solvers.WhitenedGradientDescent : The solver "whitened_gd".
    skdp.solvers.SufficientStatistics : The solver "ssp".

    Notes
    -----
    **Several targets.** A y of shape (n_samples, n_targets) is fitted at once, within one budget. The targets share what is
    learned about the features, and a record's gradient for all of them is clipped as a whole. Each of q targets then has
    :math:`\sqrt q` times the noise that it has alone, as in q fits that divide the budget, but the geometry is paid for once. A
    fit of several targets has no intervals and no inference, and needs a table in memory. Where columns of X are learned, it
    needs ``target_bounds`` with a pair for each target.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, all parameters (including ``target_bounds``) and the number of steps.
    The guarantee assumes that X and y are finite. It treats one record as one person. Two fits spend twice the budget;
    cross-validation and grid searches fit many times; ``score`` on training records is not private.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skdp import DPLinearRegression
    >>> X, y = make_regression(n_samples=2000, n_features=5, noise=10.0, random_state=0)
    >>> model = DPLinearRegression(epsilon=1.0, feature_bounds=5.0, target_bounds=(-400, 400)).fit(X, y)
    >>> model.coef_.shape
    (5,)
    >>> print(f"{model.privacy_spent_.epsilon:.3f}")
    1.000
    >>> model.coef_interval(level=0.9).shape
    (5, 2)
    """

    _task_class = LinearTask

    _: KW_ONLY
    target_bounds: tuple[float, float] | None = None
    link: str = "identity"
    max_exposure: float = 1.0
    l1_ratio: float = 0.0

    def predict(self, X: Any, return_interval: float | None = None) -> Any:
        """Return the predicted target of each record, within ``target_bounds``.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped.
        return_interval : float or None, default=None
            Level, in (0, 1), of an interval for the mean target of records with the same features. It covers and assumes the same
            as `coef_interval`: it covers neither the bias of clipping nor a wrong model. With a log link it covers the noise of
            level and slope, too, and not that the mean of a logarithm is not the logarithm of a mean.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predicted targets; the only result if ``return_interval`` is None.
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends, within ``target_bounds``. They are centred at the predictions of the model without shrinkage.
        """
        if return_interval is None:
            return super().predict(X)
        check_is_fitted(self)
        table = self._rows_of(X)
        check_number("return_interval", return_interval, above=0.0, below=1.0)
        intervals = self._uncertain().predictions(table, float(return_interval))
        if isinstance(calibration := getattr(self, "calibration_", None), LogCalibration):
            intervals = calibration.widened(intervals, float(return_interval))
        return self._in_bounds(self._raw_of(table)), self._in_bounds(intervals)

    def coef_interval(self, level: float = 0.95) -> np.ndarray:
        """Return an interval for each coefficient, computed from the releases at no cost in budget.

        An interval covers the noise of the releases, and an estimate of the sampling error under a linear model whose errors are
        symmetric and independent of the rows. It covers neither the bias of clipping nor a wrong model: if residuals are skewed,
        or larger for some rows than for others, it may miss the least-squares coefficients. It takes the choice of the geometry
        and of the clip norm as given. A coefficient gets infinite ends, with a `LowSignalWarning`, if more than half of its
        variance comes from directions in which noise hides the variance of the features. docs/defaults.md lists the measured
        coverage.

        Parameters
        ----------
        level : float, default=0.95
            Nominal probability, in (0, 1), that an interval contains its coefficient.

        Returns
        -------
        ndarray of shape (n_features, 2)
            Lower and upper ends, centred at the coefficients without shrinkage; infinite where noise hides the variance of the
            features.

        Raises
        ------
        AttributeError
            If the solver of the fit reports no uncertainty, which "whitened_gd" does for one target.
        """
        check_is_fitted(self)
        check_number("level", level, above=0.0, below=1.0)
        ends = self._uncertain().coefficients(float(level))
        if unknown := int(np.isinf(ends[:, 0]).sum()):
            warn(
                f"{unknown} of {len(ends)} coefficients have no interval: noise hides how much the features vary in their "
                "directions. Take more records or a larger epsilon, leave out features that others nearly determine, and leave "
                "one level of each category out. Intervals of predictions do not need single coefficients.",
                LowSignalWarning,
            )
        return ends

    def _uncertain(self) -> Uncertainty:
        if np.ndim(self.coef_) == 2:
            raise AttributeError("A fit to y of two dimensions has no intervals; expected a vector y: one fit for each target.")
        if not hasattr(self, "uncertainty_"):
            raise AttributeError("The solver of this fit tells no uncertainty; expected solver='whitened_gd', which does.")
        return self.uncertainty_
