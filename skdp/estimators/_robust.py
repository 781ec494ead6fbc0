"""Private linear regression with robust losses."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from skdp.estimators._base import LinearModel
from skdp.estimators._regressor import ROBUST, DPRegressor, RegressionTask
from skdp.estimators._unsupported import complete_estimator


class RobustTask(RegressionTask):
    """Task of a robust regression: its losses."""

    losses: ClassVar[tuple[str, ...]] = ("absolute", *ROBUST)
    stays_in_reach: ClassVar[bool] = True


@complete_estimator
@dataclass(eq=False, repr=False)
class DPRobustRegressor(LinearModel, DPRegressor):
    r"""Linear regression with a loss of bounded slope, whose fitted model is differentially private.

    One call of ``fit`` uses only noisy answers about the data to approach a stationary point of

    .. math:: \frac1n \sum_i \ell(x_i^\top w + b - y_i) + \frac{\alpha}{2} \|w\|^2.

    The absolute and the epsilon-insensitive loss have kinks; the other losses are half the squared residual near 0. The losses of
    Welsch, Tukey and Cauchy are not convex: residuals far beyond the threshold lose their influence, so that a small share of
    outliers cannot move the model far.

    Parameters
    ----------
    loss : {"welsch", "tukey", "cauchy", "huber", "absolute", "epsilon_insensitive"}, default="welsch"
        See `skdp.losses`; the last three are convex.
    threshold : float or None, default=None
        Size of the residual beyond which the loss flattens, in the units of y; positive. "epsilon_insensitive" is 0 up to it. For
        "absolute" without a range of y it is the unit of y in solvers that do not learn one. None means a quarter of the width of
        the range of y, given or learned, or 1 if there is no range.
    target_bounds : pair of float or None, default=None
        Public range (low, high) of y, in the units of y. The fit clips targets to it, and `predict` clips predictions to it. It
        must not be computed from the data. The fit starts from the middle of the range, or from 0 if there is none. From there,
        targets that are many thresholds away have almost no influence on a loss that is not convex. None learns the range
        together with columns that are learned, for the first four losses. If no column is learned there is no range, and None
        warns for these losses if ``threshold`` is None, too, and ``solver`` is "auto".
    alpha : float or None, default=None
        Strength of the penalty, which excludes the intercept. 0 means no penalty. If None, the solver sets it from public facts.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty :math:`\alpha (\rho \|w\|_1 + (1 - \rho) \|w\|^2 / 2)`, in [0, 1]: 0 is L2, 1 is L1,
        and a value in between is an elastic net.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X, in the units of X, or of the scaled columns if there are
        ``feature_bounds``. The fit scales longer rows down to it. None means ``sqrt(n_features)``: rows of features in [-1, 1]
        never exceed it. It must not be computed from the data.

    Attributes
    ----------
    coef_, intercept_
    target_bounds_ : tuple of float
        Range of the predictions: ``target_bounds``, or the learned range of y, or without them the range of the released model
        over rows of norm at most ``data_norm``, to which the fit scaled longer rows.
    n_iter_, noise_multiplier_, privacy_spent_, privacy_report_, schema_, prepared_features_, hardly_seen_, learnt_
    n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLinearRegression : Squared loss, nothing to tune, intervals.
    skdp.solvers.GradientDescent : The solver "gd".

    Notes
    -----
    The solver's unit of y is half the width of ``target_bounds``, or the threshold if there are no bounds; ``alpha`` and
    ``clip_norm`` are in this unit.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records (X, y), under the
    chosen adjacency: the fitted attributes are computed from the releases of the solver's schedule and from public values. The
    following are public: the shape of X, its column names, all parameters (including ``target_bounds``) and the number of steps.
    The guarantee assumes that X and y are finite. It treats one record as one person. Two fits spend twice the budget;
    cross-validation and grid searches fit many times; ``score`` on training records is not private.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRobustRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 3))
    >>> y = np.where(np.arange(5000) % 10 == 0, 50.0, X @ [1.0, 2.0, 0.0])  # every tenth is an outlier
    >>> model = DPRobustRegressor(epsilon=1.0).fit(X, y)
    >>> model.coef_.shape
    (3,)
    """

    _task_class = RobustTask

    _: KW_ONLY
    loss: str = "welsch"
    threshold: float | None = None
    target_bounds: tuple[float, float] | None = None
    l1_ratio: float = 0.0
