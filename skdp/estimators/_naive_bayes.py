"""Private multinomial naive Bayes."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp._data_validation import Facts, read_unlabelled
from skdp._validation import check_number
from skdp.estimators._classifier import DPProbabilisticClassifier, ProbabilisticTask
from skdp.estimators._plan import Plan
from skdp.estimators._unsupported import complete_estimator
from skdp.preprocessing._scaling import RowNormClipper
from skdp.solvers.statistics.naive_bayes import NaiveBayes


class NaiveBayesTask(ProbabilisticTask):
    """Task of naive Bayes, whose alpha is a pseudo-count and no penalty."""

    bounding = ("data_norm",)
    learns_by_default = False

    def check_parameters(self) -> None:
        super(NaiveBayesTask, self.replaced(alpha=None)).check_parameters()
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            check_number("alpha", self.alpha, above=0.0, maximum=1e50)

    def assumed_of_x(self) -> str:
        return f"{super().assumed_of_x()}, of which negative ones count as 0"

    def algorithm(self) -> NaiveBayes:
        return NaiveBayes(self.alpha)

    def plan_of(self, facts: Facts) -> Plan:
        problem = self.problem_of(facts)
        plan = Plan.make(problem, self.algorithm(), 0.0, None, facts.storage == "CSC")
        return replace(plan, reason="the only one")


@complete_estimator
@dataclass(eq=False, repr=False)
class DPMultinomialNB(DPProbabilisticClassifier):
    r"""Multinomial naive Bayes whose fitted model is differentially private, for text and other counts.

    One release has the number of records of each class and, for each class, the sum of every feature. The log-odds of a record
    are a sum over its features.

    Parameters
    ----------
    alpha : "auto" or float, default="auto"
        Pseudo-count that smooths the sums: what each of the rarest class gets, in units of rows of length ``data_norm``. "auto"
        is half the standard deviation of the noise of a sum, and at least 1.
    data_norm : float, default=1.0
        Public bound on the Euclidean length of a row, in the units of X. Longer rows are scaled down to it, also in a prediction:
        at 1, a row of counts is divided by its length. It must not be computed from the data. Negative entries count as 0,
        without an error or a warning, which would tell of single records.

    Attributes
    ----------
    classes_
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Log-odds of the second class per unit of a feature, or logarithms for each class, as in `predict_log_proba`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Logarithms of the shares of the classes; for two classes, their difference.
    noise_multiplier_, privacy_spent_, privacy_report_, n_features_in_, feature_names_in_

    Raises
    ------
    TypeError, ValueError
        ``fit`` raises them for parameters or data out of range, before anything is released.

    See Also
    --------
    DPLogisticRegression : Needs fewer numbers per feature, and takes correlated features into account.

    Notes
    -----
    **When it pays.** For sparse rows with many features: on news about foreign exchange (7770 x 8315) it is ahead of
    `DPLogisticRegression` at all epsilons from .1 to 3. With few features, or dense ones, `DPLogisticRegression` is better,
    except at the smallest epsilons: naive Bayes counts more than once what several features say together.

    **Privacy.** One Gaussian release on all records, with the sensitivity :math:`\sqrt{1 + 1/16}`, and :math:`\sqrt 2` times that
    under ``replace_one``. Rows are clipped to ``data_norm``, and their negative entries count as 0. Public: the shape of X, its
    column names, the class labels and all parameters.

    References
    ----------
    .. [1] J. Vaidya, B. Shafiq, A. Basu, Y. Hong, "Differentially private naive Bayes classification", WI-IAT 2013.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from skdp import DPMultinomialNB
    >>> texts = ["good film", "good plot", "bad film", "bad plot"] * 500
    >>> X = HashingVectorizer(n_features=64, alternate_sign=False).transform(texts)
    >>> model = DPMultinomialNB(epsilon=1.0, classes=["no", "yes"]).fit(X, ["yes", "yes", "no", "no"] * 500)
    >>> model.predict(X[:4]).tolist()
    ['yes', 'yes', 'no', 'no']
    """

    _task_class = NaiveBayesTask

    _refused: ClassVar[dict[str, str]] = {
        "schema": "rows are counts of words; make_pipeline(skdp.preprocessing.from_schema(schema), DPMultinomialNB()) takes the "
        "table that the schema describes",
        **dict.fromkeys(("feature_bounds", "bounds"), "rows are counts of words, clipped to the length data_norm"),
        "solver": "there is one algorithm",
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    alpha: "str | float" = "auto"
    data_norm: float = 1.0
    classes: Any = None
    random_state: Any = None
    verbose: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: the model is for counts, as scikit-learn's is."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _rows_of(self, X: Any) -> Any:
        """Return the rows of a table to predict for as the fit takes them: clipped, then without negative entries."""
        rows = RowNormClipper(self.data_norm).fit_transform(read_unlabelled(self, X))
        return rows.maximum(0) if sparse.issparse(rows) else np.maximum(rows, 0)
