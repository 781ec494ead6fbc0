"""Find the classes that see data or make noise and are not part of skdp; the report names them."""

from typing import Any

import numpy as np

from skdp import losses, minimax, scorers
from skdp.estimators._plan import Plan
from skdp.privacy import objective_perturbation as perturbation
from skdp.privacy import queries, schedule
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import _strong_convexity as minima
from skdp.solvers import Ask, MinimaxProblem, NoLoss

__all__ = ["checked", "unreviewed"]

MODULES = (losses, minimax, minima, perturbation, queries, schedule, scorers)
OWN = frozenset(
    {NoLoss, queries.Standardization, queries.Whitening}
    | {kind for module in MODULES for name in module.__all__ if isinstance(kind := getattr(module, name), type)}
)
KINDS = "biuf"  # of arrays of numbers
NUMBERS = frozenset({type(None), bool, int, float, str, np.ndarray, *np.sctypeDict.values()})


def unreviewed(plan: Plan) -> list[str]:
    """Return the names of classes that see the data or make the noise of a fit and are not part of skdp.

    Classes are compared by identity: an author can choose any module and name, and a derived class can override anything.

    Parameters
    ----------
    plan : Plan
        The fit.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted({kind.__qualname__ for kind in _of(plan) - OWN})


def checked(ask: Ask, plan: Plan) -> Ask:
    """Return ``ask`` with a check that queries hold no foreign object that the report does not name.

    A user's solver makes the queries; a loss that it puts into one would see data without noise.

    Parameters
    ----------
    ask : callable
        Method `ask` of the oracle.
    plan : Plan
        The fit.

    Returns
    -------
    callable
        The checked function; it raises `PrivacyAccountingError` before a query is evaluated.
    """
    known = OWN | NUMBERS | _of(plan)

    def asked(query: Any) -> np.ndarray:
        parts = vars(query).items() if type(query) in OWN else ()  # the report names any other query
        for name, part in parts:
            if not all(_is_known(single, known) for single in (part if type(part) is tuple else (part,))):
                raise PrivacyAccountingError(
                    f"{type(query).__name__} was asked with {name} of class {type(part).__name__}, which is not part of skdp; "
                    f"expected the {name} of the problem, which the report names."
                )
        return ask(query)

    return asked


def _is_known(part: Any, known: frozenset[type]) -> bool:
    """Return whether a part of a query holds known classes only; an array of objects may hold anything."""
    if type(part) is np.ndarray:
        return part.dtype.kind in KINDS
    return {type(part), type(getattr(part, "scorer", None))} <= known


def _of(plan: Plan) -> set[type]:
    """Return the classes of everything in a plan that sees the data or makes noise."""
    releases = [release for _, release in plan.schedule.entries]
    kinds = {
        type(plan.problem.loss),
        *(release.query for release in releases),
        *(type(release.mechanism) for release in releases),
    }
    saddle = plan.problem.saddle if isinstance(plan.problem, MinimaxProblem) else None
    return kinds if saddle is None else kinds | {type(saddle), type(getattr(saddle, "scorer", saddle))}
