"""Find assumptions of a fit that its released moments contradict: post-processing, at no cost in budget."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import is_regressor

from skdp.estimators._plan import Plan
from skdp.preprocessing import AdditiveBasis
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.errors import shown, warn
from skdp.solvers import ReleasedMoments

# Largest probability, over all rules of a fit, that noise alone triggers a warning for a table within its limits. A choice: a
# smaller value makes the warnings rarer, the false and the true ones.
FALSE_ALARM = 1e-5
# Thresholds of the warnings. All are choices; values nearer to the limit warn about more tables.
BEYOND = 1.1  # mean square of a column above which its entries are not all in [-1, 1]; the limit is 1
ALIKE = 0.97  # norm of the mean row divided by data_norm above which nearly all rows are scaled down to nearly the same row
AT_END = 0.95  # relative position of a column's mean between its bounds above which nearly all values are at the upper bound
OTHERS = 0.9  # share of the records that are in no category of a column
AT_BOUND = 0.97  # absolute mean of targets in [-1, 1] above which nearly all of them are at a bound
FAR = 10.0  # norm of a row divided by data_norm above which `predict` warns: the fit has seen no such row
BLOCK = 4096  # number of rows whose norms are computed at a time; a choice that bounds memory
ADVICE = "Use feature_bounds from public knowledge, a pair (low, high) per column, in its units; they scale the columns."


def surely(noise: float, size: int) -> float:
    """Return a bound that normal noise exceeds in any of ``size`` numbers with probability at most `FALSE_ALARM` / 4."""
    return noise * -float(ndtri(FALSE_ALARM / (4 * size)))


def contradictions(task: Any, plan: Plan, found: ReleasedMoments, names: Sequence[str] | None) -> Iterator[str]:
    """Yield a sentence for each assumption that the released moments contradict.

    Parameters
    ----------
    task : Task
        The fit, for its parameters.
    plan : Plan
        Of the fit.
    found : ReleasedMoments
        From the solver.
    names : sequence of str or None
        Of the columns.

    Yields
    ------
    str
        What was assumed, and what to do.
    """
    d, data_norm = found.mean.size, plan.problem.data_norm
    length = float(np.linalg.norm(found.mean)) - found.mean_noise * math.sqrt(d) - surely(found.mean_noise, 1)
    if task.schema is not None:  # which prepares rows of length at most 1
        yield from _about_targets(task, found)
        return
    beyond = _beyond(found) if task.feature_bounds is None and task.data_norm is None else np.array([], dtype=int)
    if beyond.size:
        yield (
            "The releases contradict what was assumed of X: without feature_bounds its entries are taken to lie in [-1, 1], but "
            f"{_listed(beyond, names)} goes far beyond, and hides the others. {ADVICE}"
        )
    elif task.feature_bounds is None and length >= ALIKE * data_norm:
        yield (
            f"The releases show that nearly all rows of X are cut to data_norm={data_norm:.4g}, to nearly the same row: they are "
            f"longer, or one column hides the others. {ADVICE} Or give the data_norm of rows as they are."
        )
    if plan.scaling is not None and (ends := _at_upper_end(plan.scaling, found)).size:
        yield (
            f"The releases show that nearly all values of {_listed(ends, names)} are at the upper end of feature_bounds, or "
            "beyond it, so that they are all the same to the fit; expected bounds with the values in between."
        )
    yield from _about_targets(task, found)


def _beyond(found: ReleasedMoments) -> np.ndarray:
    """Return the columns that are surely not in [-1, 1]."""
    limit, d = math.sqrt(BEYOND), found.mean.size
    outside = np.abs(found.mean) > limit + surely(found.mean_noise, 2 * d)
    if found.squares is not None:
        outside |= found.squares > BEYOND + surely(found.squares_noise, d)
    return np.flatnonzero(outside)


def _at_upper_end(scaling: ColumnScaling, found: ReleasedMoments) -> np.ndarray:
    """Return the columns with nearly all values at the upper bound; the lower may be usual, as 0 for counts and indicators."""
    low, high = (scaling.low - scaling.shift) / scaling.unit, (scaling.high - scaling.shift) / scaling.unit
    return np.flatnonzero(found.mean - surely(found.mean_noise, found.mean.size) >= low + AT_END * (high - low))


def _about_targets(task: Any, found: ReleasedMoments) -> Iterator[str]:
    if not is_regressor(task.estimator):  # the share of a class may be anything
        return
    if found.target is not None and abs(found.target) - surely(found.target_noise, 2) >= AT_BOUND:
        end = "upper" if found.target > 0 else "lower"
        yield (
            f"The releases show that nearly all targets are at the {end} end of the range of y, or beyond it "
            f"(target_bounds={shown(task.given_bounds())}); expected (low, high) that hold y, and not much more."
        )


def of_columns(task: Any, basis: AdditiveBasis, found: ReleasedMoments) -> Iterator[str]:
    """Yield a sentence for each column whose categories almost no record has, or whose numbers lie at an end of its bounds.

    Parameters
    ----------
    task : Task
        The fit of an additive model.
    basis : AdditiveBasis
        Its functions.
    found : ReleasedMoments
        Of their values.

    Yields
    ------
    str
        What was assumed, and what to do.
    """
    shares, doubt = found.mean * basis.length_in_force, surely(found.mean_noise, found.mean.size) * basis.length_in_force
    for term in basis.terms:
        (name, *others), column = term.names, basis.facts.columns[term.names[0]]
        if others or not column.plain:
            continue
        if column.exhaustive:
            if column.implies_other and shares[term.columns.stop - 1] - doubt >= OTHERS:
                yield (
                    f"The releases show that nearly all values of column {name!r} are none of its categories; expected them "
                    "to be spelt as in the table, from public knowledge."
                )
        elif abs(shares[term.columns.start]) - doubt >= AT_END:
            yield (
                f"The releases show that nearly all values of column {name!r} are at an end of its bounds, or beyond it; "
                "expected bounds with the values in between, in the units of the table."
            )
    yield from _about_targets(task, found)


def of_first_categories(basis: AdditiveBasis, found: ReleasedMoments) -> Iterator[str]:
    """Yield a sentence for each column nearly all of whose values count as its first category; arguments as for `of_columns`.

    They are those of a fit for inference, in which values that are not listed do.
    """
    shares, doubt = found.mean * basis.length_in_force, surely(found.mean_noise, found.mean.size) * basis.length_in_force
    for term in basis.terms:
        column = basis.facts.columns[term.names[0]]
        if column.implies_other and shares[term.columns.start] - doubt >= OTHERS:
            yield (
                f"The releases show that nearly all values of column {term.names[0]!r} are its first category, "
                f"{column.labels[0]!r}, or none of its categories; expected them to be spelt as in the table, from public "
                "knowledge."
            )


def _listed(columns: np.ndarray, names: Sequence[str] | None) -> str:
    """Return the columns as text, by name or by position."""
    known = [str(place) if names is None else repr(names[place]) for place in columns[:10].tolist()]
    return f"column {', '.join(known)}" + (" and others" if columns.size > 10 else "")


def warn_of_long_rows(table: Any, data_norm: float, scaling: ColumnScaling | None) -> None:
    """Warn if rows to predict for are much longer than the fit allowed; the message states the rule and no value."""
    with np.errstate(all="ignore"):
        far = any((_squares(rows, scaling) > (FAR * data_norm) ** 2).any() for rows in _parts(table))
    if far:
        warn(
            f"X has rows that are more than {FAR:g} times as long as data_norm={data_norm:.4g}, to which the fit cut all rows: "
            "predictions there say little. Use columns in the units of the fit, scaled by feature_bounds.",
            UserWarning,
        )


def _parts(table: Any) -> Iterator[Any]:
    """Yield blocks of rows of a dense table, or a sparse table as a whole."""
    if sparse.issparse(table):
        yield table
        return
    for start in range(0, table.shape[0], BLOCK):
        yield table[start : start + BLOCK]


def _squares(rows: Any, scaling: ColumnScaling | None) -> np.ndarray:
    """Return the squared norms of rows, of scaled columns if the fit scaled them, without clipping."""
    if sparse.issparse(rows):
        weights = np.ones(rows.shape[1]) if scaling is None else scaling.unit**-2
        return np.asarray(rows.multiply(rows) @ weights)
    if scaling is None:
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    inner = (rows - scaling.shift) / scaling.unit
    return np.einsum("ij,ij->i", inner, inner)
