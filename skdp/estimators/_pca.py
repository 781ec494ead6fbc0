"""Private principal components."""

import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts
from skdp._docstrings import complete_docstring
from skdp._validation import check_integer, check_truth, shown
from skdp.data._predictions import takes_tables
from skdp.estimators._plan import Plan
from skdp.estimators._raw_predictions import raw_predictions
from skdp.estimators._unsupervised import DPUnlabelled, UnlabelledTask
from skdp.estimators._unsupported import describe_tables, explain_refusals
from skdp.privacy.errors import LowSignalWarning
from skdp.solvers import Problem, SolverResult
from skdp.solvers.statistics.principal_components import Components, PrincipalComponents


class PCATask(UnlabelledTask):
    """Task of principal components: their number, and whether their scores have the same variance."""

    n_components: Any
    whiten: Any

    drowned = "may have no component above the noise"
    aim = "find a component above the noise"

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.n_components is not None and not isinstance(self.n_components, Integral):
            raise TypeError(
                f"n_components={shown(self.n_components)}; expected an integer, or None for those above the noise. A share of "
                "the variance would choose by noisy ratios: fit with None, and look at explained_variance_ratio_."
            )
        check_integer("n_components", self.n_components, minimum=1, optional=True)
        check_truth("whiten", self.whiten)

    def algorithm(self) -> Any:
        return PrincipalComponents(self.n_components)

    def problem_of(self, facts: Facts) -> Problem:
        of_given = "schema" not in self._changed  # later, the number of learned features is a release
        if of_given and self.n_components is not None and self.n_components > facts.n_features:
            raise ValueError(
                f"n_components={self.n_components} of {facts.n_features} features; expected at most {facts.n_features}."
            )
        return super().problem_of(facts)

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        found, units = Components.of(result), self.units_of_columns(plan)
        unit, scale = (1.0, units) if self.scale else (float(units[0]), np.ones(units.size))
        number = min(self.n_components or max(found.n_found, 1), units.size)
        square = unit**2
        variances = found.variances[:number]
        return {
            "components_": found.vectors[:number].copy(),
            "explained_variance_": variances * square,
            "explained_variance_ratio_": variances / max(found.total, np.finfo(float).tiny),
            "explained_variance_interval_": found.intervals[:number] * square,
            "mean_": self.outer(plan, result.coef.T)[0],
            "scale_": scale,
            "n_components_": number,
            "n_above_noise_": found.n_found,
            "noise_edge_": found.edge * square,
            "clip_radius_": found.radius * unit,
            "clipped_share_": found.longer,
        }

    def contradictions(self, plan: Plan, result: SolverResult, facts: Facts) -> Iterable[str | Warning]:
        found = Components.of(result).n_found
        number = max(found, 1) if self.n_components is None else min(self.n_components, facts.n_features)
        if found < number:
            yield LowSignalWarning(
                f"{found} of {number} components are above the noise. Others are directions that noise has chosen; take fewer, "
                "more records, a larger epsilon or fewer features."
            )


@describe_tables
@complete_docstring
class DPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DPUnlabelled):
    r"""Principal components with differential privacy.

    One call of ``fit`` releases a mean, a radius and the first and second moments of the rows within it, and computes directions
    and variances from these. Rows are points in units of their bounds; those that are further from the centre than the radius
    count as points at this distance.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components. None keeps those that stand out from the noise, and one at least.
    delta : float or None, default=None
        Privacy parameter, positive and at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``.
    whiten : bool, default=False
        Whether `transform` divides each score by the root of its variance.

    Attributes
    ----------
    components_ : ndarray of shape (``n_components_``, n_features)
        Orthonormal directions by decreasing variance, of features over ``scale_``.
    explained_variance_ : ndarray of shape (``n_components_``,)
        Variances along the components of rows clipped at the radius.
    explained_variance_ratio_ : ndarray of shape (``n_components_``,)
        Their shares of the total variance of these rows.
    explained_variance_interval_ : ndarray of shape (``n_components_``, 2)
        Ends of 95 % intervals of the variances.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows, in the units of X, or of the prepared features.
    n_components_ : int
        Number of components.
    n_above_noise_ : int
        Number of components that stand out from the noise.
    noise_edge_ : float
        Largest variance that noise alone would show.
    clip_radius_ : float
        Distance from the centre to which longer rows are shortened.
    clipped_share_ : float
        Share of rows that are longer, about.
    scale_, privacy_spent_, privacy_report_, schema_, prepared_features_, learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, for more than 1024 features, and for more components than
        features, before anything is released.

    See Also
    --------
    skdp.inspection.ScreeDisplay : Draws the variances with their intervals.
    sklearn.decomposition.PCA : The same without noise, for records that need no protection.

    Notes
    -----
    A step before a classifier of this package costs accuracy: gradients of d features have less noise than the products of all
    pairs. `DPLogisticRegression` on all features had accuracies of .67, .82 and .87 on 10 000 digits of MNIST (epsilon 0.5, 1 and
    3), and .21, .38 and .77 on private components that got a quarter of the same budget. Components are for looking at a table,
    and for other tools.

    Intervals hold the variances of clipped rows of the population from which the records are drawn, with noise and sampling. A
    component that does not stand out from the noise has an interval that begins at 0. The noise of an eigenvalue is that of a
    symmetric random matrix [1]_; ``n_components=None`` keeps what noise alone would hardly show. What a sample does to variances
    follows from clipped fourth powers, so that intervals are a little short for columns with long tails: on five lognormal ones
    they held the variances in .92 to .94 of 200 fits (5000 records, epsilon 3).

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records, under the chosen
    adjacency: the fitted attributes are computed from three or four releases with Gaussian noise and from public values. The
    following are public: the shape of X, its column names and types, and all parameters. The guarantee assumes that X is finite,
    where no schema prepares it. `transform` maps each record by itself: its result for a record is as private as the record.
    Two fits spend twice the budget. An interrupted fit leaves no partial model, and its budget stays spent.

    References
    ----------
    .. [1] F. Benaych-Georges, R. R. Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank perturbations of large
       random matrices", Advances in Mathematics 227 (2011).
    .. [2] C. Dwork, K. Talwar, A. Thakurta, L. Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component
       analysis", STOC 2014: the noise of the second moment.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(10000, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(10000, 6))
    >>> model = DPPCA(n_components=2, epsilon=1.0, feature_bounds=5.0).fit(X)
    >>> model.transform(X).shape
    (10000, 2)
    """

    _task_class = PCATask

    _refused: ClassVar[dict[str, str]] = {
        "svd_solver": "components are those of one noisy covariance",
        "n_oversamples": "components are those of one noisy covariance",
        "iterated_power": "components are those of one noisy covariance",
        "power_iteration_normalizer": "components are those of one noisy covariance",
        "copy": "the table is never changed",
        "centered": "the mean is released, too",
        "data_norm": "the fit learns a radius; feature_bounds are public bounds of the columns",
        "solver": "there is one algorithm",
    }

    @explain_refusals
    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "replace_one",
        privacy_unit: str = "record",
        feature_bounds: Any = None,
        schema: Any = None,
        scale: bool = True,
        whiten: bool = False,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.privacy_unit = privacy_unit
        self.feature_bounds = feature_bounds
        self.schema = schema
        self.scale = scale
        self.whiten = whiten
        self.random_state = random_state
        self.verbose = verbose

    _absent: ClassVar[dict[str, str]] = {
        "singular_values_": "they would be of the records without noise; those of clipped rows, with noise, are "
        "numpy.sqrt((n_samples - 1) * explained_variance_)",
        "noise_variance_": "explained_variance_ and explained_variance_ratio_ tell how much variance is beside the components",
        **dict.fromkeys(
            ("get_covariance", "get_precision", "score", "score_samples"),
            "it is of a normal model of rows, and variances here are of clipped ones; skdp.stats.cov releases covariances",
        ),
    }
    _usual_share: ClassVar[float] = 0.25  # of the squared Gaussian-DP parameter of a pipeline

    def _facts_of_output(self) -> dict[str, Any]:
        """Return the released length of most scores, to which the estimator that follows clips them; 1 before the fit."""
        length = 3 * math.sqrt(self._n_features_out) if self.whiten else float(getattr(self, "clip_radius_", 1.0))
        return {"data_norm": length, "feature_bounds": length}

    def _likely_widths(self, X: Any, n_features: int | None = None) -> list[int]:
        """Return likely numbers of components."""
        width = int(n_features or X.shape[1])
        return [min(number, width) for number in ((1, 8) if self.n_components is None else (int(self.n_components),))]

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns."""
        return len(getattr(self, "components_", "1"))

    @takes_tables
    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of rows along the components.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped. What is returned for records of the fit is as private as they are.

        Returns
        -------
        ndarray of shape (n_samples, ``n_components_``)
            The scores.
        """
        check_is_fitted(self)
        return raw_predictions(self._rows_of(X), *self._projection(), alone=True)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows that have the given scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, ``n_components_``)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows in the units of X, or of ``prepared_features_``.
        """
        check_is_fitted(self)
        return np.asarray(X) @ (self._axes(-1.0) * self.scale_) + self.mean_

    def _projection(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients and intercepts of the scores."""
        axes = self._axes(1.0)
        return (axes / self.scale_).T, -(axes @ (self.mean_ / self.scale_))

    def _axes(self, power: float) -> np.ndarray:
        """Return the components, over the roots of their variances to a power where scores are whitened."""
        if not self.whiten:
            return np.asarray(self.components_)
        least = max(self.noise_edge_ / 2, np.finfo(float).tiny)
        return np.asarray(self.components_ / np.sqrt(np.maximum(self.explained_variance_, least))[:, None] ** power)
