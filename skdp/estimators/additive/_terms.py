"""Read an additive model: the function of each column, its band for the noise, and monotone functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtri
from sklearn.isotonic import isotonic_regression

from skdp._validation import shown
from skdp.estimators._public_columns import named_columns
from skdp.preprocessing import AdditiveBasis, Schema, Term
from skdp.solvers import CoefficientNoise, WaldTest

LEVEL = 0.95  # pointwise coverage of the band for the noise; a choice
CELLS = 2**22  # largest number of entries of a dense part of a grid; a choice that bounds memory
DRAWS = 4000  # simulations of the largest deviation of a curve: its 95 % quantile has an error of about 1 %
# Least variance of a direction in which a curve can differ from a constant, over the largest one: below it rounding decides.
LEAST_VARIANCE = 1e-12
# Standard deviations of its noise below which a released mean counts as 0, and least share of a point of a grid. Choices: a
# function is large where nobody is, so that noise in these shares would make its column important.
SEEN, LEAST_SHARE = 2.0, 1e-6
LEAST_WEIGHT = 1e-3  # smallest relative weight of a knot in averages, because released frequencies are noisy; a choice


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """Hold the contribution of one column, or of a pair of columns, to the raw prediction.

    Parameters
    ----------
    names : tuple of str
        Name of the column, or of both.
    grid : ndarray of shape (k,), or tuple of two of shape (k1,) and (k2,)
        Values of each column: increasing numbers in its units, or its categories.
    values : ndarray of shape (k,), (k1, k2), or with a last axis of n_classes
        Contribution at the grid: in log-odds for a classifier, in units of y for a regressor. It is 0 for an average record.
    lower, upper : ndarray of the same shape, or None
        95 % band for the noise that was added for privacy: at each point, it covers the mean of the curves of fits with fresh
        noise to the same records. It does not cover the variation between samples of records. None if the solver reports no
        noise. After a fit for inference it is a 95 % confidence band, which covers both, and is infinite where the budget does
        not identify the curve.
    importance : float
        Root mean square of the values over records, estimated from released frequencies.
    scales : tuple of str
        Scale of each column: "linear" or "log", as in the schema; "date" for seconds since 1970; or "category", also for a number
        that has two values.
    missing : ndarray of shape (3,), or (3, n_classes), or None, default=None
        Contribution of a missing cell of a learned number, and the ends of its band, NaN if the solver reports no noise. None if
        noise hides that cells are missing, and for other columns: a category has its missing cells in the grid.
    noise : pair of ndarray or None, default=None
        Lower and upper ends of a band for the noise alone, beside a confidence band.
    """

    names: tuple[str, ...]
    grid: Any
    values: np.ndarray
    lower: np.ndarray | None
    upper: np.ndarray | None
    importance: float
    scales: tuple[str, ...]
    missing: np.ndarray | None = None
    noise: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class Shapes:
    """Read the coefficients of a basis term by term, from releases and public facts only.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis functions.
    coef : ndarray of shape (n_outputs, n_functions)
        Coefficients of the functions.
    noise : CoefficientNoise or None
        Noise of the coefficients, if it is known.
    directions : dict
        1 or -1 for each monotone column, by name.
    """

    basis: AdditiveBasis
    coef: np.ndarray
    noise: CoefficientNoise | None
    directions: Mapping[str, int]

    @cached_property
    def centre(self) -> np.ndarray:
        """Functions of an average record, of shape (n_functions,): released means, or the means over the grid."""
        if self.noise is not None:
            return np.asarray(self.noise.geometry.centre)
        means = [np.asarray(self._rows(term).mean(axis=0)).ravel() for term in self.basis.terms]
        return np.concatenate(means)

    def function(self, term: Term, squeeze: bool, level: float = LEVEL, simultaneous: bool = False) -> ShapeFunction:
        """Return the function of a term; ``squeeze`` drops the last axis of a single output."""
        grids, rows, columns = self._grids(term), self._rows(term), term.columns
        added, variances = self._added(term, grids)
        values = rows @ self.coef[:, columns].T - self.coef[:, columns] @ self.centre[columns] + added
        ends = self._ends(term, rows, values, variances, level, simultaneous)
        importance, scales = self._importance(term, values, rows), self.scales(term.names, grids)
        parts, of_missing = np.stack([values, *(ends or [np.full(values.shape, np.nan)] * 2)]), self._has_missing(term)
        missing, parts = (parts[:, -1], parts[:, :-1]) if of_missing else (None, parts)
        last = () if squeeze else (self.coef.shape[0],)
        parts = parts.reshape(3, *(grid.size for grid in grids), *last)
        lower, upper = (None, None) if ends is None else parts[1:]
        missing = None if missing is None else missing.reshape(3, *last)
        grid = grids[0] if len(grids) == 1 else grids
        return ShapeFunction(term.names, grid, parts[0], lower, upper, importance, scales, missing)

    def _ends(
        self, term: Term, rows: Any, values: np.ndarray, variances: Any, level: float, simultaneous: bool
    ) -> list[np.ndarray] | None:
        """Return both ends of the band on the grid; None if the noise is not known."""
        if self.noise is None:
            return None
        errors = np.hypot(self._standard_errors(term, rows), np.sqrt(variances))
        half = (self._quantiles(term, level) if simultaneous else float(ndtri((1 + level) / 2))) * errors
        return [self._in_order(term, values + sign * half) for sign in (-1, 1)]

    @property
    def _has_means(self) -> bool:
        """Whether the centre was released."""
        return self.noise is not None

    def test(self, term: Term) -> WaldTest:
        """Return the chi-squared test, on the covariance of the noise, that the function of a term is constant."""
        assert self.noise is not None
        (grid_rows, columns), total, df = (self._rows(term), term.columns), 0.0, 0
        rows = grid_rows.toarray() - self.centre[columns]
        for output, coef in enumerate(self.coef):
            roots = self.noise.factors(rows, columns, output)[:, :-1]
            directions, lengths, _ = np.linalg.svd(roots - roots.mean(axis=0), full_matrices=False)
            known = np.square(lengths) > LEAST_VARIANCE * max(float(np.square(lengths).max(initial=0.0)), 1e-300)
            values = rows @ coef[columns]
            total += float(np.square(directions[:, known].T @ (values - values.mean()) / lengths[known]).sum())
            df += int(known.sum())
        if not df:
            return WaldTest(np.nan, (0.0, np.inf), np.nan, False)
        return WaldTest(total / df, (float(df), np.inf), float(stats.chi2.sf(total, df)), True)

    def _quantiles(self, term: Term, level: float) -> np.ndarray:
        """Return, for each output, a quantile of the largest deviation of the curve from its mean, in standard deviations."""
        assert self.noise is not None
        rows, columns = self._rows(term).toarray() - self.centre[term.columns], term.columns
        weights = np.zeros_like(self.coef)
        weights[:, columns] = self.coef[:, columns]
        centre, quantiles = self.noise.centre_errors(weights), []
        for output in range(len(self.coef)):
            roots = self.noise.factors(rows, columns, output)
            roots = np.column_stack([roots, np.full(len(roots), centre[output])])
            roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-300)
            draws = np.random.default_rng(0).normal(size=(roots.shape[1], DRAWS))  # no privacy noise: a simulation of it
            largest = np.zeros(DRAWS)
            for start in range(0, len(roots), 256):
                largest = np.maximum(largest, np.abs(roots[start : start + 256] @ draws).max(axis=0))
            quantiles.append(float(np.quantile(largest, level)))
        return np.array(quantiles)

    def scales(self, names: Sequence[str], grids: Sequence[np.ndarray]) -> tuple[str, ...]:
        """Return the scale of each column; a number at its only two values is a category."""
        columns = self.basis.facts.columns
        usual = [getattr(columns[name], "shown_on", "category") for name in names]
        two = [self.basis.is_binary(name) and grid.size == 2 for name, grid in zip(names, grids, strict=True)]
        return tuple("category" if bars else scale for bars, scale in zip(two, usual, strict=True))

    def importances(self) -> np.ndarray:
        """Return the mean square of each column's functions over records, from released frequencies; pairs count half for each.

        What noise adds to the squares is subtracted, and each function counts as at least 0.
        """
        names = list(self.basis.facts.columns)
        found = np.zeros(len(names))
        for term in self.basis.terms:
            grids, rows = self._grids(term), self._rows(term)
            added, variances = self._added(term, grids)
            values = rows @ self.coef[:, term.columns].T - self.coef[:, term.columns] @ self.centre[term.columns] + added
            noise = 0.0 if self.noise is None else np.square(self._standard_errors(term, rows)) + variances
            square = float(self._weights(term, rows) @ (np.square(values) - noise).mean(axis=1))
            found[[names.index(name) for name in term.names]] += max(square, 0.0) / len(term.names)
        return found

    def _added(self, term: Term, grids: Sequence[np.ndarray]) -> tuple[Any, Any]:
        """Return what else is added to the values on the grid, with the variances of its noise."""
        return 0.0, 0.0

    def _standard_errors(self, term: Term, rows: Any) -> np.ndarray:
        """Return the standard errors on the grid, with the noise of the average record, computed in parts to bound memory."""
        assert self.noise is not None
        step = max(1, CELLS // self.basis.n_features)
        parts = []
        for start in range(0, rows.shape[0], step):
            part = rows[start : start + step].toarray() - self.centre[term.columns]
            wide = np.zeros((len(part), self.basis.n_features))
            wide[:, term.columns] = part
            parts.append(self.noise.standard_errors(wide))
        weights = np.zeros_like(self.coef)
        weights[:, term.columns] = self.coef[:, term.columns]
        return np.hypot(np.concatenate(parts), self.noise.centre_errors(weights))

    def _grids(self, term: Term) -> tuple[np.ndarray, ...]:
        return tuple(self.basis.grid(name, fine=len(term.names) == 1) for name in term.names)

    def _rows(self, term: Term) -> Any:
        """Return the functions of the term on its grid, in CSR; for a pair, the second column varies fastest.

        The last row is that of a missing cell, where these have an indicator.
        """
        return self._functions(term, self._grids(term))

    def _functions(self, term: Term, grids: Sequence[np.ndarray]) -> Any:
        points = [place.ravel() for place in np.meshgrid(*grids, indexing="ij")]
        points = [np.append(points[0], np.nan)] if self._has_missing(term) else points
        return self.basis.of_term(term, dict(zip(term.names, points, strict=True)))

    def _has_missing(self, term: Term) -> bool:
        """Return whether missing cells of the column have an indicator, the last function of the term."""
        learned = getattr(self.basis.facts.columns[term.names[0]], "learned", None)
        return len(term.names) == 1 and learned is not None and bool(learned.missing)

    def shares(self, term: Term, hardly_seen: Sequence[Any] = ()) -> np.ndarray | None:
        """Return the released shares of the records at the points of a term, and last that of missing cells.

        Parameters
        ----------
        term : Term
            A term of the basis.
        hardly_seen : sequence of (part, share), default=()
            Parts of its column that hardly any record has: the points within a range count next to nothing, as do those of a
            number beyond its outer knots.

        Returns
        -------
        ndarray or None
            None if nothing was released of the points.
        """
        if not self._has_shares(term):
            return None
        weights, (name, *others) = self._weights(term, self._rows(term)), term.names
        if others or name not in self.basis.numbers:
            return weights
        (grid,), peaks = self._grids(term), self.basis.grid(name, fine=False)
        beyond = (grid < peaks[0]) | (grid > peaks[-1])
        for part, _ in hardly_seen:
            if not isinstance(part, str):
                beyond |= (grid > part[0]) & (grid < part[1])
        weights[: grid.size][beyond] = np.minimum(weights[: grid.size][beyond], LEAST_SHARE)
        return weights

    def _has_shares(self, term: Term) -> bool:
        """Return whether the means of hats, indicators or products of a term were released."""
        return self._has_means and (len(term.names) == 2 or term.names[0] in self.basis.categories or self.basis.n_intervals > 0)

    def _importance(self, term: Term, values: np.ndarray, rows: Any) -> float:
        """Return the root mean square of a function, of a number with hats at its knots, where frequencies are released.

        Between the knots of a column of 0 and 1, for example, nobody is.
        """
        (name, *others), columns = term.names, term.columns
        if not others and name in self.basis.numbers and self.basis.n_intervals and self._has_means:
            rows = self._functions(term, [self.basis.grid(name, fine=False)])
            values = rows @ self.coef[:, columns].T - self.coef[:, columns] @ self.centre[columns]
        return float(np.sqrt(self._weights(term, rows) @ np.square(values).mean(axis=1)))

    def _weights(self, term: Term, rows: Any) -> np.ndarray:
        """Return the weights of the grid's points, from released means of hats and indicators; all equal without them.

        The weight of a missing cell is the share of these, from the released mean of their indicator.
        """
        if self._has_missing(term):
            share = np.clip(self.centre[term.columns][-1] / rows[[-1]].toarray()[0, -1], 0.0, 1.0)
            return np.append(self._weights_on_grid(term, rows[:-1]) * (1 - share), share)
        return self._weights_on_grid(term, rows)

    def _weights_on_grid(self, term: Term, rows: Any) -> np.ndarray:
        if len(term.names) == 1 and term.names[0] in self.basis.numbers and not self.basis.n_intervals:
            return np.full(rows.shape[0], 1 / rows.shape[0])
        means = np.maximum(self.centre[term.columns], 0.0)
        means[means < SEEN * getattr(self.noise, "centre_noise", 0.0)] = 0.0
        weights = rows[:, self._families(term)] @ means[self._families(term)]
        weights = np.maximum(weights, LEAST_SHARE * max(weights.sum(), 1e-300)) if weights.size else weights
        return weights / weights.sum()

    def _families(self, term: Term) -> slice:
        """Return the columns of a term that are hats, indicators or products: all but the scaled value of a number."""
        return slice(1 if len(term.names) == 1 and term.names[0] in self.basis.numbers else 0, None)

    def _in_order(self, term: Term, values: np.ndarray) -> np.ndarray:
        """Return an end of the band, made monotone: a monotone curve below (above) the end stays so, whatever the weights."""
        direction = self.directions.get(term.names[0], 0) if len(term.names) == 1 else 0
        return in_order(values[:, 0], direction, self._weights(term, self._rows(term)))[:, None] if direction else values


def in_order(values: np.ndarray, direction: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the nearest values that increase (1) or decrease (-1)."""
    return np.asarray(isotonic_regression(values, sample_weight=weights, increasing=direction > 0), dtype=np.float64)


def monotone_coefficients(shapes: Shapes) -> np.ndarray:
    """Return the coefficients of the nearest model whose named functions are monotone, by post-processing.

    Parameters
    ----------
    shapes : Shapes
        The functions of a model with one output.

    Returns
    -------
    ndarray of shape (1, n_functions)
        The coefficients. The function of a number with hats is given by its values at the knots; isotonic regression, weighted by
        frequency, makes these monotone. A slope of the wrong sign becomes 0.
    """
    basis, coef = shapes.basis, shapes.coef.copy()
    for term in basis.terms:
        direction = shapes.directions.get(term.names[0], 0) if len(term.names) == 1 else 0
        if not direction:
            continue
        if not basis.n_intervals:
            coef[0, term.columns] = direction * np.maximum(direction * coef[0, term.columns], 0.0)
            continue
        (name,) = term.names
        rows = basis.of_term(term, {name: basis.grid(name, fine=False)}).toarray()
        hats = rows[:, 1:]
        weights = np.maximum(hats @ np.maximum(shapes.centre[term.columns][1:], 0.0), 0.0)
        weights = np.maximum(weights, LEAST_WEIGHT * max(float(weights.max()), 1e-300))
        values = in_order(rows @ coef[0, term.columns], direction, weights)
        coef[0, term.columns] = np.append(0.0, values / hats.max(axis=1))
    return coef


def check_monotone(monotone: Any) -> None:
    """Raise TypeError or ValueError unless every column has a direction, 1 or -1."""
    expected = "expected a dict from column to 1 (never falls) or -1 (never rises), or None"
    if monotone is None:
        return
    if not isinstance(monotone, Mapping):
        raise TypeError(f"monotone={shown(monotone)}; {expected}.")
    if not all(isinstance(way, (int, np.integer)) and not isinstance(way, bool) and way in (1, -1) for way in monotone.values()):
        raise ValueError(f"monotone={shown(monotone)}; {expected}.")


def monotone_directions(monotone: Any, facts: Schema) -> dict[str, int]:
    """Return the direction of each monotone column of numbers, by name.

    Raises
    ------
    TypeError, ValueError
        If a direction is neither 1 nor -1, or a column does not exist or is not a column of numbers.
    """
    check_monotone(monotone)
    directions = {}
    for column, way in (monotone or {}).items():
        (name,) = named_columns("monotone", [column], list(facts.columns))
        if facts.columns[name].exhaustive:
            raise ValueError(f"monotone has {name!r}, a column of categories, which have no order; expected numbers.")
        directions[name] = int(way)
    return directions
