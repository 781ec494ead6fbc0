"""Methods to compare, by name; to add one, add an entry to ``METHODS``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp.privacy.budget import ADJACENCIES

__all__ = ["METHODS", "Method", "reasons_to_skip"]


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    description : str
        What it is, in one line.
    build : callable
        From epsilon, delta and adjacency to a fresh estimator; it gets None for each where the method is not private. An
        ImportError says that a library is missing.
    task : {"classification", "regression"}, default="classification"
        On which tables it runs.
    adjacencies : tuple of str, default=("replace_one", "zero_out")
        Neighbours that its guarantee is for.
    private : bool, default=True
        Whether it has a guarantee at all.
    pure : bool, default=False
        Whether its guarantee has delta 0.
    """

    description: str
    build: Callable[[float | None, float | None, str | None], BaseEstimator]
    task: str = "classification"
    adjacencies: tuple[str, ...] = tuple(ADJACENCIES)
    private: bool = True
    pure: bool = False


def skdp_logistic(epsilon: float, delta: float, adjacency: str, solver: str = "auto") -> BaseEstimator:
    """Build our logistic regression with its defaults."""
    return DPLogisticRegression(epsilon, delta=delta, adjacency=adjacency, data_norm=1.0, solver=solver)


def sklearn_logistic(epsilon: None, delta: None, adjacency: None) -> BaseEstimator:
    """Build scikit-learn's logistic regression."""
    return LogisticRegression(max_iter=3000)


def majority(epsilon: None, delta: None, adjacency: None) -> BaseEstimator:
    """Build the constant prediction of the larger class."""
    return DummyClassifier()


def diffprivlib_logistic(epsilon: float, delta: float, adjacency: str) -> BaseEstimator:
    """Build diffprivlib's logistic regression, whose delta is 0."""
    from diffprivlib.models import LogisticRegression

    return LogisticRegression(epsilon=epsilon, data_norm=1.0, C=1.0)


METHODS = {
    "skdp": Method("DPLogisticRegression with its defaults", skdp_logistic),
    "skdp-gd": Method("DPLogisticRegression, full-data gradient descent", partial(skdp_logistic, solver="gd")),
    "skdp-sgd": Method("DPLogisticRegression, Poisson-sampled gradient descent", partial(skdp_logistic, solver="sgd")),
    "sklearn": Method("LogisticRegression of scikit-learn", sklearn_logistic, adjacencies=(), private=False),
    "majority": Method("always the larger class", majority, adjacencies=(), private=False),
    "diffprivlib": Method(
        "LogisticRegression of diffprivlib with C=1", diffprivlib_logistic, adjacencies=("replace_one",), pure=True
    ),
}


def reasons_to_skip(names: list[str], adjacencies: list[str]) -> dict[str, str]:
    """Say which methods cannot run here, and why.

    Parameters
    ----------
    names : list of str
        Names out of ``METHODS``.
    adjacencies : list of str
        Neighbours that are asked for.

    Returns
    -------
    dict of str
        Reason per method that cannot run.
    """
    reasons = {}
    for name in names:
        method = METHODS[name]
        if method.private and not set(method.adjacencies) & set(adjacencies):
            reasons[name] = f"its guarantee is for {' and '.join(method.adjacencies)} only"
        try:
            method.build(1.0, 1e-6, adjacencies[0])
        except ImportError as error:
            reasons[name] = f"its library is not installed, or does not import here: {error}"
    return reasons
