"""Refuse parameters of scikit-learn's estimators that cannot exist here, and explain why."""

import functools
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from textwrap import fill
from typing import Any

from skdp._docstrings import WIDTH, Kind, complete_docstring, complete_methods

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
        ("bounds", "bounds_X", "bounds_y"),
        "bounds from public knowledge are feature_bounds, one pair (low, high) per column; those of y are target_bounds",
    ),
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
    return describe_tables(complete_docstring(kind))


def describe_tables(kind: Kind) -> Kind:
    """Decorate an estimator: its methods say what X may be.

    In their docstrings, ``{table}`` stands for all kinds of tables, ``{rows}`` for those in memory, and ``{records}`` for what
    `fit` takes, which the summary of the class also says.
    """
    in_memory = "array-like, data frame, CSR or CSC" if kind._takes_sparse else "array-like or data frame"  # type: ignore[attr-defined]
    records = " ".join(_records(kind))
    complete_methods(kind, table=f"{in_memory}, or table in partitions", rows=in_memory, records=records)
    before, title, others = (kind.__doc__ or "").partition("\n\nParameters\n")
    kind.__doc__ = f"{before}\n\n{fill(f'**X.** {records}', WIDTH)}{title}{others}"
    return kind


def _records(kind: Any) -> Iterator[str]:
    """Yield sentences on the records that `fit` takes."""
    learns = "schema" in signature(kind).parameters
    if learns:
        yield "Records. The columns of a data frame may be numbers, text or dates, and have missing cells. An array"
        yield "or a sparse table has finite numbers alone." if kind._takes_sparse else "has finite numbers alone."
    else:
        yield "Records: finite numbers. The column names of a data frame are kept."
    if not kind._takes_sparse:
        yield "Sparse tables are refused."
    yield "`skdp.data` and Dask have tables in partitions,"
    yield 'which most solvers take; text in them needs ``schema="learn"``, or a schema.' if learns else "which most solvers take."


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
