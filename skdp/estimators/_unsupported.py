"""Refuse parameters of scikit-learn's estimators that cannot exist here, and explain why."""

import functools
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from skdp._docstrings import Kind, complete_docstring

REFUSED = {
    "warm_start": "starting from an earlier private fit composes with it, so one fit's guarantee would not be the whole one",
    "sample_weight": "a weight is part of a record and would change the sensitivity; linear and additive models take it "
    "with max_sample_weight, a public bound, and classifiers take public class_weight",
    "partial_fit": "every call would be one more private fit that nobody counts; fit once on all records",
    "max_iter": "the number of steps is public and belongs to the solver: n_steps of an object of skdp.solvers",
    "tol": "a stopping test would read the data without noise; the number of steps is public, as for max_iter",
    "C": "the penalty is alpha = 1 / (C * n_samples)",
    "penalty": "alpha sets its strength, and l1_ratio, without a constraint, its kind: 0 is L2, 1 is L1, between is elastic net; "
    "alpha=0 is none",
    "n_jobs": "a fit is a few passes over the data; NumPy's BLAS uses the cores",
    **dict.fromkeys(
        ("accountant", "ledger"),
        "a clone would copy the account; call {kind}.fit inside `with PrivacyLedger(path, epsilon=..., delta=...):`, "
        "which is charged for every fit",
    ),
}


def explain_refusals(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate a constructor: it refuses parameters that cannot exist here, and ``repr`` always shows epsilon."""

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **parameters: Any) -> None:
        refuse(type(self), parameters)
        init(self, *args, **parameters)

    given = signature(init)  # scikit-learn prints a parameter without a default at any value
    parameters = [p.replace(default=Parameter.empty) if p.name == "epsilon" else p for p in given.parameters.values()]
    wrapper.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


def complete_estimator(kind: Kind) -> Kind:
    """Decorate an estimator that is a dataclass: `explain_refusals` in its constructor, and complete its docstring.

    ``random_state`` and ``verbose`` come last in the signature, although they are fields of a base.
    """
    init: Any = kind.__init__  # type: ignore[misc]
    given = signature(init)
    parameters = sorted(given.parameters.values(), key=lambda one: one.name in ("random_state", "verbose"))
    init.__signature__ = given.replace(parameters=parameters)
    kind.__init__ = explain_refusals(init)  # type: ignore[misc]
    return complete_docstring(kind)


def refuse(kind: type, given: dict[str, Any]) -> None:
    """Raise a TypeError with the reason for a parameter that cannot exist."""
    reasons = {**REFUSED, **getattr(kind, "_refused", {})}
    for name in given:
        if name in reasons and name not in signature(kind).parameters:
            reason = reasons[name].format(kind=kind.__name__)
            raise TypeError(f"{kind.__name__} does not take {name}: {reason}.")


def refuse_fit_arguments(kind: type, given: dict[str, Any]) -> None:
    """Raise a TypeError, with the reason if there is one, for any further argument of ``fit``."""
    given = {name: value for name, value in given.items() if value is not None}
    refuse(kind, given)
    if given:
        ids = " Ids of persons are fit(X, y, persons=ids), with privacy_unit='person'." if "groups" in given else ""
        raise TypeError(f"{kind.__name__}.fit does not take {sorted(given)}; expected X and y only.{ids}")
