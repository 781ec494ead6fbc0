"""Private linear regression of a quantile."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from skdp._validation import check_number
from skdp.estimators._base import LinearModel
from skdp.estimators._regressor import DPRegressor, RegressionTask
from skdp.estimators._unsupported import complete_estimator
from skdp.losses import Quantile
from skdp.privacy.queries import Loss


class QuantileTask(RegressionTask):
    """Task of a quantile regression: its loss."""

    quantile: Any

    loss = "quantile"
    losses: ClassVar[tuple[str, ...]] = ("quantile",)
    stays_in_reach: ClassVar[bool] = True

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number("quantile", self.quantile, above=0.0, below=1.0)

    def _loss(self) -> Loss:
        return Quantile(float(self.quantile))


@complete_estimator
@dataclass(eq=False, repr=False)
class DPQuantileRegressor(LinearModel, DPRegressor):
    r"""Linear regression of a quantile of y, whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to minimise the pinball loss

    .. math:: \frac1n \sum_i \max\{q (y_i - t_i), (1 - q) (t_i - y_i)\} + \frac{\alpha}{2} \|w\|^2, \quad t_i = x_i^\top w + b.

    Its slope is bounded for every y, so nothing needs to be known about y: a small share of the budget goes to learning its
    location and scale.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile q, in (0, 1); 0.5 is the median.
    solver : "auto", str or Solver, default="auto"
        Algorithm: a name from `skdp.solvers.SOLVERS` such as ``"rescaled_gd"``, or a solver object such as
        ``RescaledGradientDescent(n_steps=100)``. "auto" chooses from public facts; the report names the choice and its reason.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. If None, the range is learned. This takes some hundred records at epsilon 1 (with
        fewer, predictions may have any size), and loses coverage if most targets are the same number.
    alpha : float or None, default=None
        Strength of the penalty, which excludes the intercept; scikit-learn's default is 1. If None, the solver sets it; "auto"
        then has no penalty.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1
        as in scikit-learn, between is elastic net. A positive value needs ``target_bounds`` or a named solver: "gd" and "sgd"
        take y in units of half its range, or in units of 1 without a range, and then make no progress if y is large.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X, or of the scaled columns if there are
        ``feature_bounds``. The fit scales longer rows down to it. None means ``sqrt(n_features)``: rows of features in [-1, 1]
        never exceed it. It must not be computed from the data.

    Attributes
    ----------
    coef_, intercept_
    target_bounds_ : tuple of float
        Range of the predictions: ``target_bounds``, or without them the range of the released model over rows of norm at most
        ``data_norm``, to which the fit scaled longer rows.
    n_iter_, noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_
    n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPRobustRegressor : Its absolute loss gives the median; it has other robust losses.
    skdp.solvers.RescaledGradientDescent : The default solver.

    Notes
    -----
    The default solver first releases histograms of y, with about 5 % of the budget (more if n is small), and takes the spread
    that they show as the unit of y. It does not resolve a spread below 2**-30 of the largest absolute values of y. For other
    solvers the unit is half the width of ``target_bounds``, or 1 without bounds. The lines of several quantiles may cross, and
    each fit spends its own budget. To predict an interval, fit two quantiles with half of epsilon each.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, all parameters (including ``target_bounds``) and the number of steps.
    The guarantee assumes that X and y are finite. It treats one record as one person. Two fits spend twice the budget;
    cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 3))
    >>> y = 2e5 + 1e4 * (X @ [1.0, 2.0, 0.0] + rng.normal(size=5000))
    >>> model = DPQuantileRegressor(epsilon=1.0, quantile=0.9).fit(X, y)
    >>> bool(0.85 < np.mean(y <= model.predict(X)) < 0.95)
    True
    """

    _task_class = QuantileTask

    _: KW_ONLY
    quantile: float = 0.5
    target_bounds: tuple[float, float] | None = None
    l1_ratio: float = 0.0
