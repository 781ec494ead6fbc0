"""Define the base of gradient boosting: the fit of an additive model, then of random trees to what it leaves."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from joblib import cpu_count
from sklearn.utils.validation import check_is_fitted

from skdp.data._predictions import takes_tables
from skdp.estimators._public_columns import named_pairs
from skdp.estimators.additive._base import AdditiveModel
from skdp.estimators.additive._basis import TermValues
from skdp.estimators.additive._bins import bins_of, bins_of_values
from skdp.estimators.additive._terms import ShapeFunction, Shapes
from skdp.estimators.boosting._reading import BoostedShapes, TreeReader
from skdp.privacy.engines.in_threads import in_order


class BoostedModel(AdditiveModel):
    """Base of gradient boosting. Its additive part has no parameters beside the columns: public facts choose the rest.

    Attributes
    ----------
    basis_ : AdditiveBasis
        The basis functions of the additive part.
    coef_ : ndarray
        Released coefficients of these functions.
    trees_ : Trees or None
        The trees: columns and sides of their splits, and what their leaves add to the raw prediction. None if public facts chose
        the additive model alone.
    shape_functions_ : dict of ShapeFunction
        The partial dependence of each column, with a band for the noise.
    feature_importances_ : ndarray of shape (``n_features_in_``,)
        Share of each column in the variance of raw predictions, with half of its interactions, from releases.
    interactions_ : dict of float
        Strength of the interaction of each pair of columns, the strongest first; empty without trees.
    baseline_ : ndarray of shape (n_outputs,)
        Raw prediction of an average record, to which `explain` adds.
    n_iter_ : int
        Number of steps of the additive part, which is public.
    """

    monotone: Any = None
    _refused: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("learning_rate", "n_estimators", "max_iter", "max_depth", "max_leaf_nodes", "min_samples_leaf", "max_bins"),
            "public facts set the trees, so that there is nothing to tune",
        ),
        "l2_regularization": "the step of a leaf follows from the noise of its sum",
        "early_stopping": "a stopping test would read the data without noise",
        "interactions": "trees find which columns interact",
        "interaction_cst": "trees find which columns interact",
        "solver": "the additive part takes its default",
        "monotonic_cst": "trees have no directions; DPAdditiveClassifier and DPAdditiveRegressor take monotone",
        "monotone": "trees have no directions; DPAdditiveClassifier and DPAdditiveRegressor take it",
    }

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the variance of raw predictions, of shape ``(n_features_in_,)``; follows from releases.

        It counts the mean square of the column's curve under the released marginals, which is that of the additive part and the
        trees together, and half of that of each of its interactions, less what noise adds to both.
        """
        check_is_fitted(self)
        squares = self._shapes().importances()
        return squares / squares.sum() if squares.any() else np.full(squares.size, 1 / squares.size)

    @property
    def shape_functions_(self) -> dict[str, ShapeFunction]:
        """The partial dependence of each column under the released marginals: grid, values, band and importance.

        The band covers the noise of the additive part and of the leaves, for trees, marginals and a weight that count as given.
        It leaves out that later trees correct earlier noise: in 12 fits of the same made-up records, at epsilon 1 and 3, it
        contained the mean curve at 99 to 100 % of the points and was two to three times as wide as needed; in 16 others, at 93 to
        99 % of the points for a column with records at four values alone. It does not cover the variation between samples of
        records.
        """
        return super().shape_functions_

    @property
    def baseline_(self) -> np.ndarray:
        """Raw prediction of an average record, of shape (n_outputs,), to which `explain` adds."""
        baseline = super().baseline_
        return baseline if self.trees_ is None else baseline + TreeReader(self.trees_).mean

    @property
    def interactions_(self) -> dict[tuple[str, str], float]:
        """Strength of the interaction of each pair of columns, the strongest first; empty without trees.

        It is the root mean square of `interaction` under the released marginals, less what noise adds to the square, at least 0.
        """
        shapes = self._shapes()
        if not isinstance(shapes, BoostedShapes):
            return {}
        names, found = list(self.basis_.facts.columns), shapes.trees.strengths()
        return {(names[one], names[other]): found[one, other] for one, other in sorted(found, key=lambda pair: -found[pair])}

    def interaction(self, one: Any, other: Any) -> ShapeFunction:
        """Return what two columns add together that neither of them adds alone.

        This is their joint partial dependence under the released marginals, less that of each of them. The band is as for
        ``shape_functions_``; it contained the mean of 16 fits at 95 to 100 % of the points.

        Parameters
        ----------
        one, other : str or int
            Names or numbers of two columns.

        Returns
        -------
        ShapeFunction
            The function of the pair. `skdp.inspection.AdditiveDisplay` draws it.

        Raises
        ------
        ValueError
            If there are no two such columns, or no trees.
        """
        shapes = self._shapes()
        ((first, second),) = named_pairs([(one, other)], list(self.basis_.facts.columns))
        if not isinstance(shapes, BoostedShapes):
            raise ValueError("There are no trees, and so no interactions: public facts chose the additive model alone.")
        return shapes.pair(first, second, squeeze=self.coef_.ndim == 1 or len(self.coef_) == 1)

    @takes_tables
    def explain(self, X: Any) -> np.ndarray:
        """Return what each column adds to the raw prediction of each record: its Shapley value.

        The values are exact for columns that are independent and distributed as the released marginals.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_columns), or (n_samples, n_columns, n_classes) for more than two classes
            Contributions, in the order of ``shape_functions_``. Together with ``baseline_`` they add up to the log-odds of a
            classifier, or to the prediction of a regressor before it is clipped to ``target_bounds``.
        """
        contributions = super().explain(X)
        if self.trees_ is None:
            return contributions
        added = TreeReader(self.trees_).explained(self._read_to_predict(X)[1])
        return contributions + (added[:, :, 0] if contributions.ndim == 2 else added)

    def _shapes(self) -> Shapes:
        shapes = super()._shapes()
        if self.trees_ is None:
            return shapes
        trees = TreeReader(self.trees_)
        return BoostedShapes(shapes.basis, shapes.coef, shapes.noise, shapes.directions, trees=trees)

    def _raw(self, X: Any) -> np.ndarray:
        raw, bins = self._read_to_predict(X)
        if self.trees_ is not None:
            raw += self.trees_.predicted(bins)
        return raw[:, 0] if self.coef_.ndim == 1 else raw

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the raw predictions after the additive model and each tree."""
        raw, bins = self._read_to_predict(X)
        if self.trees_ is None:
            yield raw[:, 0] if self.coef_.ndim == 1 else raw
            return
        for added in self.trees_.staged(bins):
            raw = raw + added.T
            yield raw[:, 0] if self.coef_.ndim == 1 else raw

    def _read_to_predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw predictions of the additive model, of shape (m, n_outputs), and the bins, of shape (n_columns, m)."""
        columns, coef, basis = self._columns_to_predict(X), np.atleast_2d(self.coef_), self.basis_
        raw = np.zeros((len(columns), len(coef))) + self.intercept_
        bins = bins_of(basis)
        found = bins.empty(len(raw))

        def worked_out(place: int, values: TermValues) -> np.ndarray:
            found[place] = bins_of_values(bins, place, values)
            return basis.raw(values, coef)

        n_threads = cpu_count()
        with ThreadPoolExecutor(n_threads) as pool:
            for added in in_order(pool, n_threads, worked_out, enumerate(basis.values_of(columns))):
                raw += added
        return raw, found
