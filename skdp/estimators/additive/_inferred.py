"""Fit additive models for inference: linearly independent functions, with bands and tests from a released covariance."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skdp.estimators.additive._terms import LEVEL, ShapeFunction, Shapes
from skdp.preprocessing import AdditiveBasis, Term
from skdp.solvers import Contrasts, Inference, InferenceDescent, Problem, WaldTest

# Numbers of intervals between knots that a fit for inference tries, in this order. Few knots leave few coefficients, and the same
# budget tells more about each; between the knots, a function is a line. With 2 and 3 intervals, bands held .4 to .9 of the points
# of a curve with two bends (log-odds, 5000 records, epsilon 1), because no knot shows these.
INTERVALS = 8, 6, 5, 4
# Largest level of `InferenceDescent.outlook` with which a number of intervals is taken, if it is not the last one, and factor of
# that level: hats of neighbouring knots are alike, so that noise hides coefficients earlier than the outlook knows. In 50 cells
# of 12 or 16 fits (4 numbers, two of them correlated by .9; numbers and classes; 10 000 to 30 000 records; epsilon .5 to 3; 4 to
# 8 intervals), all points of all curves were identified up to .48, .1 to .97 of them from .52 to 1, and .07 to .63 beyond.
CLEAR, ALIKE = 0.49, 2.8
# How far records beyond an outer knot pull the function there, over its change in the outer interval: with 1 % of the records of
# a normal column beyond, and 12 % in the outer interval, least squares gives .05.
PULL = 0.06
# Factor, in bands, of the standard deviations of the computed noise. Hats of neighbouring knots are alike, and a linear recursion
# leaves out more there than in other tables. With 1.05, bands of the noise held the mean curve of 40 fits of the same records at
# .92 to .98 of the points in the cells that set the noise of knots, with this factor at .94 to .99. Tests have no need of it.
OF_NOISE = 1.15


def independent(basis: AdditiveBasis) -> np.ndarray:
    """Return the columns of a basis of single columns that are linearly independent, also of a constant.

    The hats of a number, and the indicators of a category, add up to a constant, so that the first of each is left out. So is the
    scaled value, which is a sum of hats, unless there are none. Values that no category lists count as the first category: where
    nobody has one, no budget tells their effect.
    """
    kept = []
    for term in basis.terms:
        family = _family(basis, term)
        kept.append(np.arange(term.columns.start, term.columns.stop) if family is None else np.arange(*family)[1:])
    return np.concatenate(kept)


def fitted_first(basis: AdditiveBasis) -> np.ndarray:
    """Return the columns of a basis from which those of coarser knots follow: all hats and indicators."""
    values = [term.columns.start for term in basis.terms if term.names[0] in basis.numbers]
    return np.setdiff1d(np.arange(basis.n_features), values)


def all_means(basis: AdditiveBasis, means: np.ndarray) -> np.ndarray:
    """Return the means of all functions over some records from those of the `independent` ones, by what they add up to."""
    found = np.zeros(basis.n_features)
    found[independent(basis)] = means
    for term in basis.terms:
        if (family := _family(basis, term)) is None:
            continue
        start, stop = family
        rows = basis.of_term(term, {term.names[0]: basis.grid(term.names[0], fine=False)}).toarray()
        weight = float(rows[:, -1].max())  # that of a family is the same for all
        found[start] = weight - found[start + 1 : stop].sum()
        if start > term.columns.start:
            found[term.columns.start] = found[start:stop] @ rows[:, 0] / weight
    return found


def _family(basis: AdditiveBasis, term: Term) -> tuple[int, int] | None:
    """Return where the hats or listed indicators of a term are; None for a number without hats."""
    column = basis.facts.columns[term.names[0]]
    if column.exhaustive:
        return term.columns.start, term.columns.stop - column.implies_other
    hats = basis.hats_of(term)
    return (hats.start, hats.stop) if basis.n_intervals else None


def intervals_for_inference(problem: Problem, basis_of: Any) -> int:
    """Return the number of intervals between knots with which nearly all coefficients are likely to be identified.

    Parameters
    ----------
    problem : Problem
        Public facts of the fit; its number of features is not used.
    basis_of : callable
        Returns the basis for a number of intervals.
    """
    solver = InferenceDescent()
    for m in INTERVALS:
        if ALIKE * solver.level_with(problem, independent(basis_of(m)).size) <= CLEAR:
            return m
    return INTERVALS[-1]


@dataclass(frozen=True, eq=False)
class InferredShapes(Shapes):
    """Read the coefficients of a fit for inference, with bands and tests of the population.

    Parameters
    ----------
    inference : Inference
        Parts of the covariance of the `independent` coefficients.
    kind : {"confidence", "noise"}
        What the bands are for.
    n_samples : int
        Number of records.
    moved : float
        Standard deviation of a function from the noise of the knots, over its largest distance from lines between them.
    """

    inference: Inference
    kind: str
    n_samples: int
    moved: float

    def function(self, term: Term, squeeze: bool, level: float = LEVEL, simultaneous: bool = False) -> ShapeFunction:
        """Return the function of a term, at listed categories alone, and beside a confidence band one for the noise."""
        found = super().function(term, squeeze, level, simultaneous)
        column = self.basis.facts.columns[term.names[0]]
        if column.implies_other:
            found = replace(found, **{name: getattr(found, name)[:-1] for name in ("grid", "values", "lower", "upper")})
        if self.kind == "noise":
            return found
        inner = replace(self, kind="noise").function(term, squeeze, level, simultaneous)
        assert inner.lower is not None and inner.upper is not None
        return replace(found, noise=(inner.lower, inner.upper))

    @cached_property
    def centre(self) -> np.ndarray:
        """Functions of an average record, of shape (n_functions,): released means."""
        return all_means(self.basis, self.inference.geometry.centre)

    @cached_property
    def _louder(self) -> Inference:
        return self.inference.with_noise(OF_NOISE)

    @property
    def _has_means(self) -> bool:
        return True

    def _ends(
        self, term: Term, rows: Any, values: np.ndarray, variances: Any, level: float, simultaneous: bool
    ) -> list[np.ndarray] | None:
        factors, beside = rows.toarray() - self.centre[term.columns], np.array([self._of_centre(term, values, rows)])
        beside = beside + self.bends(term) * (1.0 if self.kind == "confidence" else self.moved**2)
        found = self._contrasts(term, factors, level, beside)
        if not simultaneous or not found.estimable.any():
            return [found.lower[:, None], found.upper[:, None]]
        half = self._louder.joint_quantile(self._factors(term, factors), level, self.kind) * found.standard_error
        return [values - half[:, None], values + half[:, None]]

    def _of_centre(self, term: Term, values: np.ndarray, rows: Any) -> float:
        """Return the variance of the function of the average record, from which a function is taken off."""
        noise = np.square(self.coef[:, term.columns]).sum() * self.inference.centre_noise**2
        sampling = self._importance(term, values, rows) ** 2 / self.n_samples
        return float(noise + sampling * (self.kind == "confidence"))

    def bends(self, term: Term, places: np.ndarray | None = None) -> np.ndarray:
        """Return the squared distance of a true function from one that is a line between knots and a constant beyond them.

        Between knots, the nearest such function is off by a twelfth of the second derivative times the squared distance of the
        knots. The second derivative follows from the slopes on both sides of a knot; the largest one near an interval counts.
        Beyond the outer knots, a true function may go on with the slope and the second derivative next to them; the few records
        there pull the function at these knots.

        Parameters
        ----------
        term : Term
            A term of one column.
        places : ndarray of shape (n_points,) or None, default=None
            Where a number lies between its bounds, from 0 to 1. None takes the points of the grid.

        Returns
        -------
        ndarray of shape (n_points,), or of shape (1,) for a category
            Squares, at least 0.
        """
        if term.names[0] not in self.basis.numbers:
            return np.zeros(1)
        places = self.basis.places(term.names[0]) if places is None else places
        peaks = self.basis.knots_of(term.names[0])
        if not self.basis.n_intervals or len(peaks) < 3:
            return np.zeros(len(places))
        gaps = np.diff(peaks)
        bends, slopes = self._derivatives(term, gaps)
        offs = bends * gaps**2 / 12
        offs[[0, -1]] += PULL * slopes * gaps[[0, -1]]
        offs = np.max([offs, np.append(offs[1:], 0.0), np.append(0.0, offs[:-1])], axis=0)  # an error at a knot is in both
        found = offs[np.clip(np.searchsorted(peaks, places, side="right") - 1, 0, len(gaps) - 1)]
        for end, beyond in ((0, np.maximum(peaks[0] - places, 0.0)), (-1, np.maximum(places - peaks[-1], 0.0))):
            found = found + beyond * (slopes[end] + bends[end] * (gaps[end] + beyond) / 2)
        return np.asarray(np.square(found))

    def _derivatives(self, term: Term, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sizes of the second derivatives near each interval, less their noise, and of both outer slopes."""
        rows = self._functions(term, [self.basis.grid(term.names[0], fine=False)]).toarray()
        slopes = np.diff(rows, axis=0) / gaps[:, None]
        found = self._contrasts(term, 2 * np.diff(slopes, axis=0) / (gaps[:-1] + gaps[1:])[:, None], LEVEL)
        squares = np.where(found.estimable, np.square(found.estimate) - np.square(found.standard_error), 0.0)
        squares = np.maximum(np.append(squares, squares[-1:]), np.append(squares[:1], squares))
        outer = self._contrasts(term, slopes[[0, -1]], LEVEL)
        ends = np.where(outer.estimable, np.hypot(outer.estimate, outer.standard_error), 0.0)
        return np.sqrt(np.maximum(squares, 0.0)), ends

    def _contrasts(self, term: Term, rows: np.ndarray, level: float, beside: Any = 0.0) -> Contrasts:
        wide = self._factors(term, rows)
        return self._louder.contrasts(wide, np.zeros(len(wide)), np.arange(len(wide)), level, self.kind, beside)

    def _factors(self, term: Term, rows: np.ndarray) -> np.ndarray:
        """Return factors of the `independent` coefficients from those of the coefficients of a term."""
        wide = np.zeros((len(rows), self.basis.n_features))
        wide[:, term.columns] = rows
        return wide[:, independent(self.basis)]

    def test(self, term: Term) -> WaldTest:
        """Return the test that the function of a term is constant in the population."""
        places = np.flatnonzero(np.isin(independent(self.basis), np.arange(term.columns.start, term.columns.stop)))
        rows = np.eye(independent(self.basis).size)[places]
        return self.inference.wald(rows, np.zeros(len(rows)))
