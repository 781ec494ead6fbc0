"""Find what sees data or makes noise and is not part of skdp; the report names it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from skdp import losses, minimax, scorers
from skdp.privacy import objective_perturbation as perturbation
from skdp.privacy import queries, schedule
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.solvers import Ask, MinimaxProblem, NoLoss

if TYPE_CHECKING:
    from skdp.estimators._plan import Plan

MODULES = (losses, minimax, perturbation, queries, schedule, scorers)
SKDP_CLASSES = frozenset(
    {Minimization, NoLoss, queries.Standardization, queries.Whitening}
    | {kind for module in MODULES for name in module.__all__ if isinstance(kind := getattr(module, name), type)}
)
KINDS = "biuf"  # of arrays of numbers
NUMBERS = frozenset({type(None), bool, int, float, str, *np.sctypeDict.values()})

Foreign = set[tuple[str, type]]


def unreviewed(plan: "Plan") -> list[str]:
    """Return the names of what sees the data or makes the noise of a fit and is not part of skdp.

    Classes are compared by identity: an author can choose any module and name, and a derived class can override anything. An
    object of skdp holds only numbers and other objects of skdp. So a function in it, which may hide a method of its class, is
    named as well.

    Parameters
    ----------
    plan : Plan
        The fit.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted({name for name, _ in _of(plan)})


def refuse_foreign_parts(ask: Ask, plan: "Plan") -> Ask:
    """Return ``ask`` with a check that queries hold nothing foreign that the report does not name.

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
        The refuse_foreign_parts function; it raises `PrivacyAccountingError` before a query is evaluated.
    """
    known = _of(plan)

    def asked(query: Any) -> np.ndarray:
        parts = vars(query).items() if type(query) in SKDP_CLASSES else ()  # the report names any other query
        for name, part in parts:
            if not (_is_number(part) or _has_numbers(part)) and (found := _foreign(part) - known):
                raise PrivacyAccountingError(
                    f"{type(query).__name__} was asked with {name} of class {type(part).__name__}, but "
                    f"{', '.join(sorted(name for name, _ in found))} is not part of skdp; expected the {name} of the problem, "
                    "which the report names."
                )
        return ask(query)

    return asked


def _of(plan: "Plan") -> Foreign:
    """Return the foreign parts of everything in a plan that sees the data or makes noise."""
    releases = [release for _, release in plan.schedule.entries]
    saddle = plan.problem.saddle if isinstance(plan.problem, MinimaxProblem) else None
    found = {(release.query.__qualname__, release.query) for release in releases if release.query not in SKDP_CLASSES}
    return found.union(*map(_foreign, (plan.problem.loss, saddle, *(release.mechanism for release in releases))))


def _is_number(part: Any) -> bool:
    """Return whether an object is a number, a text, None, a tuple of them or an array of numbers, which can hold nothing else."""
    kind = type(part)
    if kind is tuple:
        return all(type(each) in NUMBERS for each in part)
    return kind in NUMBERS or (kind is np.ndarray and part.dtype.kind in KINDS)


def _has_numbers(part: Any) -> bool:
    """Return whether an object is of skdp and has attributes of `_is_number` alone; most parts of queries are."""
    plain = type(part) in SKDP_CLASSES and not hasattr(part, "__slots__")
    return plain and all(map(_is_number, vars(part).values()))


def _foreign(whole: Any) -> Foreign:
    """Return the name and the class of everything in an object that is neither a number nor an object of skdp."""
    found: Foreign = set()
    waiting, seen = [("", whole)], set()
    while waiting:
        place, part = waiting.pop()
        kind = type(part)
        if _is_number(part) or id(part) in seen:
            continue
        seen.add(id(part))
        if kind is tuple:
            waiting += [(place, each) for each in part]
        elif kind in SKDP_CLASSES or kind is sparse.csr_array:
            names = (*getattr(part, "__dict__", ()), *getattr(kind, "__slots__", ()))
            held = [(name, getattr(part, name)) for name in names]
            waiting += [(f"{kind.__qualname__}.{name}", each) for name, each in held if not _is_number(each)]
        else:
            found.add((place if place and (callable(part) or kind is np.ndarray) else kind.__qualname__, kind))
            # The class is named, and so is a scorer that it may have from elsewhere
            waiting += [("", each) for each in getattr(part, "__dict__", {}).values() if isinstance(each, scorers.Scorer)]
    return found
