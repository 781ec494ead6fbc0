"""Private k-means."""

from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts
from skdp._docstrings import complete_docstring
from skdp._validation import check_integer
from skdp.data._predictions import takes_tables
from skdp.estimators._base import WeightedMixin
from skdp.estimators._plan import Plan
from skdp.estimators._raw_predictions import raw_predictions
from skdp.estimators._unsupervised import DPUnlabelled, UnlabelledTask
from skdp.estimators._unsupported import describe_tables, explain_refusals
from skdp.solvers import SolverResult
from skdp.solvers._unlabelled import UnlabelledProblem
from skdp.solvers.statistics.clusters import ClusterDescent, Clusters, Stages

OF_EACH_RECORD = "it would be a function of each training record without noise; predict takes any rows of your own"


class KMeansTask(UnlabelledTask):
    """Task of k-means: the number of clusters."""

    n_clusters: Any

    drowned = "may do no better than one centre"
    aim = "do better than one centre"

    @property
    def n_points(self) -> int:  # type: ignore[override]
        return int(self.n_clusters)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_integer("n_clusters", self.n_clusters, minimum=1)

    def algorithm(self) -> Any:
        return ClusterDescent(int(self.n_clusters))

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        found, problem, units = result.extra, plan.problem, self.units_of_columns(plan)
        assert isinstance(found, Clusters)
        factor = 1.0 if self.max_sample_weight is None else float(self.max_sample_weight)
        return {
            "cluster_centers_": self.outer(plan, result.coef.T),
            "cluster_centers_std_": found.noise[:, None] * units,
            "cluster_counts_": factor * found.counts,
            "cluster_counts_std_": factor * found.counts_noise,
            "signal_": Stages(cast(UnlabelledProblem, problem.planned)).signal,
            "scale_": units if self.scale else np.ones(units.size),
        }


@describe_tables
@complete_docstring
class DPKMeans(ClassNamePrefixFeaturesOutMixin, WeightedMixin, TransformerMixin, DPUnlabelled):
    r"""K-means clustering that is differentially private.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. It is public: who chooses it by fits with several numbers pays for each of them.
    delta : float or None, default=None
        Privacy parameter, positive and at most 0.5. None means ``max(1 / n_samples**2, 1e-11)``.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres, in the units of X, or of the prepared features.
    cluster_centers_std_ : ndarray of shape (n_clusters, n_features)
        Standard deviation of the noise of the last step of each centre, before it is shrunk; 0 for a centre whose records are so
        few that it did not move.
    cluster_counts_ : ndarray of shape (n_clusters,)
        Noisy numbers of the records that are nearest to each centre; of sample weights, their sums. A count and 1.96 standard
        deviations on both sides cover the number in 95 % of the fits.
    cluster_counts_std_ : float
        Standard deviation of the noise of a count.
    n_iter_
    signal_ : float
        Records of a cluster, over the noise of their number and the root of the number of features. It follows from public
        facts. Below 10, one centre would often do as well, and the fit warns.
    scale_, privacy_spent_, privacy_report_, schema_, prepared_features_, learnt_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPPCA : Principal components.
    skdp.inspection.ClusterDisplay : Draws the clusters.

    Notes
    -----
    A noisy tree of cells gives public points for a start, and each step moves a centre by the noisy mean of the clipped
    *differences* of its records from it. So noise is in the units of a cluster, not of the table. Distances are those of features
    over ``scale_``.

    There are no ``labels_``, no ``inertia_`` and no ``fit_predict``: each would be a function of every training record without
    noise.

    **Privacy.** One call of ``fit`` is (epsilon, delta)-differentially private with respect to the records X, under the chosen
    adjacency: the fitted attributes are computed from the releases that the report lists and from public values. The following
    are public: the shape of X, its column names, all parameters, and which releases there are. The guarantee assumes that X is
    finite. Two fits spend twice the budget; ``score``, ``predict`` and ``transform`` of training records are not private.

    References
    ----------
    .. [1] D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially Private K-Means Clustering", CODASPY 2016: noisy steps, and
       noisy cells as start.
    .. [2] W. James, C. Stein, "Estimation with Quadratic Loss", Berkeley Symposium 1961: the shrinkage of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0.5, 0.5], [-0.5, 0.5], [0.0, -0.5]])
    >>> X = centres[rng.integers(3, size=9000)] + 0.1 * rng.normal(size=(9000, 2))
    >>> model = DPKMeans(n_clusters=3, epsilon=1.0, feature_bounds=1.0).fit(X)
    >>> model.predict(model.cluster_centers_).tolist()
    [0, 1, 2]
    >>> bool(abs(model.cluster_counts_ - 3000).max() < 300)
    True
    """

    _task_class = KMeansTask

    _refused: ClassVar[dict[str, str]] = {
        "init": "a noisy tree of cells starts the steps",
        "n_init": "each start would be one more private fit; starts on released points are free, and made",
        "algorithm": "there is one algorithm",
        "copy_x": "the table is never changed",
        "data_norm": "the fit learns a radius; feature_bounds are public bounds of the columns",
        "solver": "there is one algorithm",
    }

    @explain_refusals
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "replace_one",
        privacy_unit: str = "record",
        feature_bounds: Any = None,
        schema: Any = None,
        scale: bool = True,
        max_sample_weight: float | None = None,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.privacy_unit = privacy_unit
        self.feature_bounds = feature_bounds
        self.schema = schema
        self.scale = scale
        self.max_sample_weight = max_sample_weight
        self.random_state = random_state
        self.verbose = verbose

    _absent: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("labels_", "fit_predict"), OF_EACH_RECORD),
        "inertia_": OF_EACH_RECORD.replace("predict takes", "score takes"),
    }

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns."""
        return len(self.cluster_centers_)

    @takes_tables
    def predict(self, X: Any) -> np.ndarray:
        """Return the number of the nearest centre of each row.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped. What is returned for records of the fit is as private as they are.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            From 0 to ``n_clusters - 1``; of two nearest centres, the lower one.
        """
        check_is_fitted(self)
        return np.asarray(raw_predictions(self._rows_of(X), *self._sides()).argmax(axis=1))

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts of linear functions, of which that of the nearest centre is largest."""
        centres = self.cluster_centers_ / self.scale_
        return (centres / self.scale_).T, -np.square(centres).sum(axis=1) / 2

    @takes_tables
    def transform(self, X: Any) -> np.ndarray:
        """Return the distances of rows from the centres, of features over ``scale_``.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped. What is returned for records of the fit is as private as they are.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            The distances.
        """
        check_is_fitted(self)
        rows = self._rows_of(X)
        rows = rows @ sparse.diags_array(1 / self.scale_) if sparse.issparse(rows) else rows / self.scale_
        with np.errstate(all="ignore"):
            return np.asarray(euclidean_distances(rows, self.cluster_centers_ / self.scale_))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows from their nearest centres, without noise.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.
        y : object, default=None
            Not read.

        Returns
        -------
        float
            0 at most. If the records are private, so is the score: keep it as secret as they are.
        """
        return -float(np.square(self.transform(X).min(axis=1)).sum())
