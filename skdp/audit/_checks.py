"""Check the arguments of an audit."""

import math
from typing import Any

from skdp._validation import check_integer, check_number, shown
from skdp.audit._attack import VIEWS
from skdp.estimators._base import DPEstimator
from skdp.estimators.additive._reading import Additive
from skdp.privacy.ledger.active import active
from skdp.solvers import NoLoss, Problem


def check_audit(estimator: Any, confidence: Any, random_state: Any) -> None:
    """Raise TypeError or ValueError unless the fits of the estimator can be audited.

    Parameters
    ----------
    estimator : object
        As given by the user.
    confidence : object
        Probability that a bound holds.
    random_state : object
        Seed of the audit.
    """
    name = type(estimator).__name__
    if not isinstance(estimator, DPEstimator):
        raise TypeError(
            f"An audit fits one private estimator, got {name}; for a pipeline, pass its last step, and X as prepared by the "
            "previous steps."
        )
    if getattr(estimator, "schema", None) is not None:
        raise ValueError(
            f"schema={shown(estimator.schema)}: canaries are rows as the oracle sees them, not records of a data frame; expected "
            "a linear estimator without schema, with data_norm=1, and X as from_schema or LearnedSchema prepares it."
        )
    if estimator.epsilon == math.inf:
        raise ValueError("epsilon=inf claims nothing that an audit could refute; expected a finite epsilon.")
    if active():
        raise ValueError("An audit fits thousands of times and is not private; expected a call outside of a ledger's with block.")
    check_number("confidence", confidence, above=0.0, below=1.0)
    check_integer("random_state", random_state, minimum=0, optional=True)


def check_attack(problem: Problem, views: tuple[str, ...]) -> None:
    """Raise TypeError or ValueError unless canaries can be made and scored for this fit.

    Parameters
    ----------
    problem : Problem
        Public facts of the fit.
    views : tuple of str
        What the adversary sees.
    """
    if isinstance(problem.loss, NoLoss):
        raise TypeError("Canaries need a loss of labels or targets; expected an estimator that has one, not DPMinimax.")
    if isinstance(problem.extra, Additive):
        raise TypeError(
            "Canaries are rows as the oracle sees them, not columns of a data frame; expected the estimator of the same fit, "
            "DPLogisticRegression or DPLinearRegression with data_norm=basis.data_norm, and basis.transform(X), for basis = the "
            "basis_ of a fitted additive model."
        )
    if "final" in views and problem.shape[0] != problem.n_features + bool(problem.intercept_scaling):
        raise ValueError("The view 'final' judges canaries by a linear model; expected the view 'transcript' for a network.")


def check_views(views: Any) -> tuple[str, ...]:
    """Return the views of the adversary without repetitions.

    Parameters
    ----------
    views : str or sequence of str
        As given by the user.

    Returns
    -------
    tuple of str
        At least one of `VIEWS`.
    """
    names = (views,) if isinstance(views, str) else tuple(views)
    if not names or any(name not in VIEWS for name in names):
        raise ValueError(f"views={shown(views)}; expected some of {VIEWS!r}.")
    return tuple(dict.fromkeys(names))
