"""Methods to compare, by name; to add one, add an entry to ``METHODS``. The peers are in ``benchmarks/peers.py``."""

from functools import partial
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks import peers
from benchmarks.peers import Method
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.losses import Logistic, Squared
from skdp.privacy.budget import Budget
from skdp.solvers import SOLVERS, Problem

__all__ = ["METHODS", "Method", "fits", "ours", "reasons_to_skip"]

ESTIMATORS = {"classification": DPLogisticRegression, "regression": DPLinearRegression}
TASKS = tuple(ESTIMATORS)
LOSSES = {"classification": Logistic(), "regression": Squared()}  # of tables of two classes
OFFERS = {
    task: Problem(100, 3, loss, Budget(1.0, 1e-6, "zero_out"), data_norm=1.0, intercept_scaling=1.0).offers
    for task, loss in LOSSES.items()
}


def ours(
    epsilon: float,
    delta: float,
    adjacency: str,
    seed: int | None = None,
    *,
    task: str = "classification",
    solver: Any = "auto",
    data_norm: float = 1.0,
    **parameters: Any,
) -> BaseEstimator:
    """Return our estimator for a task.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    adjacency : str
        Neighbours.
    seed : int or None
        Not used: our noise is that of the block around the fit.
    task : {"classification", "regression"}, default="classification"
        What to estimate; the targets of a regression lie in [-1, 1].
    solver : str or Solver, default="auto"
        Algorithm.
    data_norm : float, default=1.0
        Public bound on the norm of a row.
    **parameters : dict
        Further ones of the estimator; classes are left out where there are none.

    Returns
    -------
    BaseEstimator
        Not fitted.
    """
    if task == "regression":
        parameters = {name: value for name, value in parameters.items() if name != "classes"} | {"target_bounds": (-1.0, 1.0)}
    budget = {"delta": delta, "adjacency": adjacency}
    return ESTIMATORS[task](epsilon, **budget, solver=solver, data_norm=data_norm, **parameters)


def fits(solver: str, task: str) -> bool:
    """Return whether a solver runs on the tables of a task.

    Parameters
    ----------
    solver : str
        Name out of ``SOLVERS``.
    task : {"classification", "regression"}
        Of the table.

    Returns
    -------
    bool
        Whether the problem has all that the solver needs.
    """
    return SOLVERS[solver].needs <= OFFERS[task]


def our_method(solver: str) -> Method:
    """Method of one of our solvers, on every task that it fits."""
    builds = {task: (partial(ours, task=task, solver=solver),) for task in ESTIMATORS if fits(solver, task)}
    return Method(f"our solver {solver}: {SOLVERS[solver].title}", builds)


def without_privacy(estimator: type[BaseEstimator], **parameters: Any) -> tuple[Any, ...]:
    """Builder of an estimator that takes no budget."""
    return (lambda epsilon, delta, adjacency, seed: estimator(**parameters),)


def method_table() -> dict[str, Method]:
    """All methods: ours, those without privacy, peers."""
    plain = {
        "sklearn": Method(
            "LogisticRegression or LinearRegression of scikit-learn",
            {
                "classification": without_privacy(LogisticRegression, max_iter=3000),
                "regression": without_privacy(LinearRegression),
            },
            adjacencies=(),
        ),
        "constant": Method(
            "always the larger class, or the mean",
            {"classification": without_privacy(DummyClassifier), "regression": without_privacy(DummyRegressor)},
            adjacencies=(),
        ),
    }
    default = Method("our estimators with nothing tuned", {task: (partial(ours, task=task),) for task in ESTIMATORS})
    return {"skdp": default, **{f"skdp-{name}": our_method(name) for name in SOLVERS}, **plain, **peers.methods(ours, TASKS)}


METHODS = method_table()


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
            for builds in method.builds.values():
                builds[0](1.0, 1e-6, adjacencies[0], 0)
        except ImportError as error:
            reasons[name] = f"its library is not installed, or does not import here: {error}"
    return reasons
