"""Define methods, and those of others: installable libraries, and gradient descent tuned on the test set."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skdp.privacy.budget import ADJACENCIES
from skdp.solvers import SGD, GradientDescent

__all__ = ["Build", "Method", "methods"]

Build = Callable[[float | None, float | None, str | None, int | None], BaseEstimator]
CLIPS = (0.03, 0.1, 0.3, 1.0)  # clip norms of gradients; the largest norm of a logistic gradient is 1.41 here
STEP_SIZES = (0.5, 2.0, 8.0, 32.0)
STEPS = (10, 30, 100, 300)
BATCHES = ((100, 1024), (1000, 256), (3000, 256))  # numbers of steps, expected sizes of a sample
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # C of scikit-learn, the inverse of the penalty
PLAIN = {"momentum": 0.0, "tail_average": 0.0}


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    description : str
        What it is, in one line.
    builds : dict of tuple of callable
        Per task, what makes a fresh estimator from epsilon, delta, adjacency and a seed (None for secure noise); an ImportError
        says that a library is missing. Of several, the one that does best *on the test set* is taken for each cell.
    adjacencies : tuple of str, default=("replace_one", "zero_out")
        Neighbours that its guarantee is for; none where it has no guarantee.
    pure : bool, default=False
        Whether its guarantee has delta 0.
    """

    description: str
    builds: dict[str, tuple[Build, ...]]
    adjacencies: tuple[str, ...] = tuple(ADJACENCIES)
    pure: bool = False

    @property
    def private(self) -> bool:
        """Whether it has a privacy guarantee."""
        return bool(self.adjacencies)


class PlainGD(GradientDescent):
    """Our DP-GD on any smooth loss: with all parameters given, none of its defaults for class labels is used."""

    needs = frozenset({"smooth"})


class PlainSGD(SGD):
    """Our DP-SGD on any smooth loss."""

    needs = frozenset({"smooth"})


class Bounded(BaseEstimator):
    """A model that needs the public range of every column, which is [-1, 1] for rows of norm at most 1.

    Parameters
    ----------
    make : callable
        From an array of shape (n_features, 2) to an estimator.
    """

    def __init__(self, make: Callable[[np.ndarray], BaseEstimator]) -> None:
        self.make = make

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Bounded":
        """Fit a fresh model."""
        self.model_ = self.make(np.tile([-1.0, 1.0], (X.shape[1], 1))).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict."""
        return self.model_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return probabilities of the classes."""
        return self.model_.predict_proba(X)


def methods(ours: Callable[..., BaseEstimator], tasks: tuple[str, ...]) -> dict[str, Method]:
    """Return the peers.

    Parameters
    ----------
    ours : callable
        Makes our estimators, which take what is tuned as their solver.
    tasks : tuple of str
        For which there are estimators of ours.

    Returns
    -------
    dict of Method
        By name; a star marks those that are tuned on the test set.
    """
    optimistic = "its parameters chosen on the test set for each cell, and nothing paid for it: optimistic"
    gd, sgd = (tuple(partial(ours, **parameters) for parameters in grid) for grid in (descents(), stochastic_descents()))
    replaced, pure = ("replace_one",), {"adjacencies": ("replace_one",), "pure": True}
    return {
        "dp-gd*": Method(f"plain DP-GD, {len(gd)} configurations; {optimistic}", by_task(gd, tasks)),
        "dp-sgd*": Method(f"plain DP-SGD, {len(sgd)} configurations; {optimistic}", by_task(sgd, tasks)),
        "diffprivlib": Method(
            "LogisticRegression with C=1, or LinearRegression, of diffprivlib",
            {"classification": (diffprivlib_logistic,), "regression": (diffprivlib_linear,)},
            **pure,
        ),
        "diffprivlib*": Method(
            f"LogisticRegression of diffprivlib, {len(STRENGTHS)} values of C; {optimistic}",
            {"classification": tuple(partial(diffprivlib_logistic, C=C) for C in STRENGTHS)},
            adjacencies=replaced,
            pure=True,
        ),
        "dp-ebm": Method(
            "DPExplainableBoosting of interpret: additive, not linear",
            {"classification": (partial(boosting, "Classifier"),), "regression": (partial(boosting, "Regressor"),)},
            adjacencies=("zero_out",),
        ),
    }


def descents() -> list[dict[str, Any]]:
    """Grid of the tuned DP-GD."""
    return [
        {"solver": PlainGD(n_steps, step_size=step_size, **PLAIN), "clip_norm": clip, "alpha": 0.0}
        for n_steps, step_size, clip in itertools.product(STEPS, STEP_SIZES, CLIPS)
    ]


def stochastic_descents() -> list[dict[str, Any]]:
    """Grid of the tuned DP-SGD."""
    return [
        {"solver": PlainSGD(n_steps, batch_size=batch_size, step_size=step_size, **PLAIN), "clip_norm": clip, "alpha": 0.0}
        for (n_steps, batch_size), step_size, clip in itertools.product(BATCHES, STEP_SIZES[:3], CLIPS[1:])
    ]


def by_task(builds: tuple[Build, ...], tasks: tuple[str, ...]) -> dict[str, tuple[Build, ...]]:
    """The same builders for every task."""
    return {task: tuple(partial(build, task=task) for build in builds) for task in tasks}


def diffprivlib_logistic(epsilon: float, delta: float, adjacency: str, seed: int | None, C: float = 1.0) -> BaseEstimator:
    """Build diffprivlib's logistic regression."""
    from diffprivlib.models import LogisticRegression

    return LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C, random_state=seed)


def diffprivlib_linear(epsilon: float, delta: float, adjacency: str, seed: int | None) -> BaseEstimator:
    """Build diffprivlib's linear regression."""
    from diffprivlib.models import LinearRegression

    return LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=seed)


def boosting(kind: str, epsilon: float, delta: float, adjacency: str, seed: int | None) -> BaseEstimator:
    """Build interpret's private boosting."""
    from interpret import privacy

    targets = {"privacy_target_min": -1.0, "privacy_target_max": 1.0} if kind == "Regressor" else {}
    estimator = getattr(privacy, f"DPExplainableBoosting{kind}")

    def make(bounds: np.ndarray) -> BaseEstimator:
        types = ["continuous"] * len(bounds)
        budget = {"epsilon": epsilon, "delta": delta, "random_state": seed, "n_jobs": 1}
        return estimator(feature_types=types, privacy_bounds=bounds, **budget, **targets)

    return Bounded(make)
