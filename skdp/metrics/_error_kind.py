"""Release sums of the errors or deviances of a regression on test records, with one or two Gaussian releases."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._validation import check_bounds as check_range
from skdp._validation import check_scale
from skdp.metrics._definition import ErrorMetric
from skdp.metrics._deviances import LEAST, Constant, unit_deviance
from skdp.metrics._kind import Ask, EvaluationKind, EvaluationPlan
from skdp.metrics._noisy_errors import NoisyDeviances, NoisyErrors
from skdp.privacy.budget import Budget
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.queries import ErrorSums, MomentSums, SumQuery, TargetHistogram

# The release that finds the bound of the errors, or the range of the targets, counts them in ranges from 2**-32 to 2**32, each
# sqrt(2) times as wide as the one below. Its share of the squared budget, from the design's simulations. The bound is the upper
# end of the last occupied range, times sqrt(2) where OCCUPIED standard deviations are at most FINE of the records, and times 2
# otherwise. Above COARSE, the bound is refused: it could leave out so large a share of the errors.
EDGES = 2.0 ** (np.arange(-64, 65) / 2)
SHARE, OCCUPIED, FINE, COARSE = 0.15, 4.0, 0.02, 0.1
# A range is occupied if its noisy count is above OCCUPIED standard deviations, and above ALONE, or above AROUND with two on each
# side of it. In 400 000 draws, noise alone made ranges apart from the others look so in .6 of 10 000 (without ALONE and
# AROUND in 39). Of 16 kinds of errors, with which these were chosen, it changes at most 2 % of the bounds, if there is no single
# range far above the others with 4 to 6 standard deviations in it; then looked at once on bike, california and bank: at most 6 %.
ALONE, AROUND = 5.0, 9.0


def kind_of_errors(metrics: Sequence[ErrorMetric], error_bound: Any, target_bounds: Any) -> "OfErrors":
    """Return the release from which some metrics follow.

    Parameters
    ----------
    metrics : sequence of ErrorMetric
        The metrics, of one kind of errors.
    error_bound : float or None
        Public bound of the errors.
    target_bounds : tuple of float or None
        Public range of the targets.

    Returns
    -------
    OfErrors
        Moments of absolute errors, or of deviances.

    Raises
    ------
    TypeError, ValueError
        If the bounds are not valid, or lack for a metric, or if metrics have two kinds of errors.
    """
    check_scale("error_bound", error_bound, optional=True)
    if target_bounds is not None:
        check_range("target_bounds", target_bounds)
    (first, *others), deviance = metrics, metrics[0].deviance
    if apart := [metric.name for metric in others if metric.deviance != deviance]:
        raise ValueError(
            f"metrics: {first.name!r} and {apart[0]!r} follow from different releases; expected one evaluation for each of them, "
            "whose budgets add up."
        )
    if not deviance:
        if target_bounds is None and (without := [metric.name for metric in metrics if metric.needs_range]):
            raise ValueError(f"metrics: {without[0]!r} needs the variance of the targets; expected target_bounds=(low, high).")
        return ErrorMoments(error_bound, target_bounds)
    if target_bounds is not None and float(target_bounds[0]) < 0:
        raise ValueError(f"target_bounds={target_bounds!r}; expected a lower end >= 0 for {first.name!r}.")
    return DevianceMoments(error_bound, target_bounds, deviance, any(metric.of_constant for metric in metrics))


def refuse_bounds(error_bound: Any, target_bounds: Any) -> None:
    """Raise ValueError if bounds are given for a classifier."""
    if error_bound is not None or target_bounds is not None:
        raise ValueError("error_bound and target_bounds are for regressors; expected None for a classifier.")


@dataclass(frozen=True)
class OfErrors(EvaluationKind):
    """Base of the kinds that bound the errors of a regression by a first release, where no bound is given.

    Parameters
    ----------
    error_bound : float or None
        Larger errors count as it; None finds a bound by a first release.
    target_bounds : tuple of float or None
        Public range of the targets.
    """

    error_bound: float | None
    target_bounds: tuple[float, float] | None

    assumption = "every target is finite"

    @property
    def finds(self) -> bool:
        """Whether there is a first release."""
        return self.error_bound is None

    @property
    def reason(self) -> str:  # type: ignore[override]
        """Why this is released."""
        return f"the only one; {SHARE:.0%} of the squared budget finds a bound" if self.finds else "the only one"

    @property
    def shares(self) -> tuple[float, ...]:  # type: ignore[override]
        """Share of the squared budget of each release."""
        return (SHARE, 1 - SHARE) if self.finds else (1.0,)

    def plan(self, n_samples: int, budget: Budget, noise: str) -> EvaluationPlan:
        """Return the releases; ValueError if there are too few records to find a bound."""
        plan = super().plan(n_samples, budget, noise)
        if self.finds and (least := OCCUPIED * plan.stds[0] / n_samples) > COARSE:
            raise ValueError(
                f"At this budget, {n_samples} test records do not tell a bound of the errors: {least:.0%} of them could hide in "
                f"the noise, more than {COARSE:.0%}. Use {self.instead}a larger epsilon or more test records."
            )
        return plan

    @property
    def instead(self) -> str:
        """What makes the first release needless, as a part of a message."""
        return "error_bound=, "

    @abstractmethod
    def records(self, targets: np.ndarray, predictions: np.ndarray) -> ScoredRecords:
        """Return scored records of targets and predictions."""


class ErrorMoments(OfErrors):
    """Release sums of powers of the clipped errors and targets of a regression."""

    title = "sums of powers of the clipped errors and targets of the test records"
    unit = "of their bound in the mean absolute error"

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return the query that finds a bound, if one is needed, and the sums for the bound 1."""
        return (*((TargetHistogram(EDGES),) if self.finds else ()), self._sums(1.0))

    def release(self, ask: Ask, plan: EvaluationPlan) -> NoisyErrors:
        """Find a bound if none is given, and ask for the sums of the errors that are clipped to it."""
        if self.error_bound is None:
            bound = _bound(ask(TargetHistogram(EDGES)), plan.stds[0], plan.n_samples)
        else:
            bound = float(self.error_bound)
        return NoisyErrors.from_sums(ask(self._sums(bound)), plan.stds[-1], bound, self._half_range, plan.n_samples)

    def records(self, targets: np.ndarray, predictions: np.ndarray) -> ScoredRecords:
        """Return scored records: the error of each prediction, the target over half its range, and the side of the prediction.

        A prediction that is not finite has the largest error that counts. The target of a record without prediction (nan) counts
        as above it.
        """
        scores = np.column_stack([np.zeros(len(targets)), np.where(targets <= predictions, 0.5, -0.5)])
        with np.errstate(all="ignore"):  # a warning or an error would reveal a target
            if self.target_bounds is not None:
                low, high = map(float, self.target_bounds)
                targets = np.clip(targets, low, high)
                scores[:, 0] = (targets - (low / 2 + high / 2)) / (high / 2 - low / 2)
            errors = np.nan_to_num(np.abs(targets - predictions), nan=np.finfo(float).max)  # as of infinite ones
        return ScoredRecords(scores, errors)

    @property
    def _half_range(self) -> float | None:
        if self.target_bounds is None:
            return None
        low, high = map(float, self.target_bounds)
        return high / 2 - low / 2

    def _sums(self, bound: float) -> ErrorSums:
        return ErrorSums(bound, self.target_bounds is not None)


@dataclass(frozen=True)
class DevianceMoments(OfErrors):
    """Release moments of the clipped deviances of a model, and of a constant.

    Parameters
    ----------
    error_bound, target_bounds : float or None, and tuple of float or None
        As of the base.
    deviance : {"poisson", "gamma"}
        Which one.
    of_constant : bool
        Whether the deviance of a constant is released, too. Then the first release finds the range of the targets and their rough
        mean, which is the constant; without a bound, deviances of the model count at most as the largest one of the constant.
    """

    deviance: str
    of_constant: bool

    title = "sums of the clipped deviances of the test records and of their products"
    unit = "of their bound in the mean deviance"

    @property
    def finds(self) -> bool:
        """Whether there is a first release."""
        return self.error_bound is None or self.of_constant

    @property
    def instead(self) -> str:
        """What makes the first release needless, as a part of a message."""
        return "" if self.of_constant else super().instead

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return the query of the first release, if there is one, and the moments for some bounds."""
        return (*((TargetHistogram(EDGES),) if self.finds else ()), self._moments(1.0, None))

    def release(self, ask: Ask, plan: EvaluationPlan) -> NoisyDeviances:
        """Find the bounds, and ask for the moments of the deviances that are clipped to them."""
        counts = ask(TargetHistogram(EDGES)) if self.finds else np.zeros(0)
        constant = self._constant(counts, plan) if self.of_constant else None
        if self.error_bound is not None:
            bound = float(self.error_bound)
        else:
            bound = constant.bound if constant else _bound(counts, plan.stds[0], plan.n_samples)
        return NoisyDeviances.from_sums(ask(self._moments(bound, constant)), plan.stds[-1], bound, constant, plan.n_samples)

    def records(self, targets: np.ndarray, predictions: np.ndarray) -> ScoredRecords:
        """Return scored records: the deviance of each prediction, and what the first release counts.

        A record without prediction has the largest deviance that counts, and a target outside its range counts as the nearer end.
        """
        targets = np.clip(targets, *self._range)
        deviances = unit_deviance(self.deviance, targets, predictions)
        return ScoredRecords(deviances, targets if self.of_constant else deviances)

    @property
    def _range(self) -> tuple[float, float]:
        low, high = map(float, (0.0, math.inf) if self.target_bounds is None else self.target_bounds)
        return max(low, LEAST[self.deviance]), high

    def _moments(self, bound: float, constant: Constant | None) -> MomentSums:
        def numbers(deviances: np.ndarray, targets: np.ndarray) -> np.ndarray:
            return np.stack([np.minimum(deviances, bound) / bound, *(constant.numbers(targets) if constant else ())])

        return MomentSums(numbers, 3 if self.of_constant else 1)

    def _constant(self, counts: np.ndarray, plan: EvaluationPlan) -> Constant:
        """Return the range of the targets and their rough mean, which follow from noisy counts by range."""
        occupied, notches = _occupied(counts, plan.stds[0], plan.n_samples)
        middles = np.concatenate([[0.0], np.sqrt(EDGES[1:] * EDGES[:-1]), [EDGES[-1]]])
        mean = max(float(counts[occupied] @ middles[occupied]) / max(float(counts[occupied].sum()), 1.0), float(EDGES[0]))
        none = occupied[0] == LEAST[self.deviance] == 0  # counts of nothing have a range of their own
        low = 0.0 if none else float(EDGES[max(occupied[0] - 1 - notches, 0)])
        high = float(EDGES[min(occupied[-1] + notches, EDGES.size - 1)])
        least, most = self._range
        low, high = max(low, least), min(high, most)
        low, high = (low, high) if low < high else (least, most)
        return Constant(self.deviance, low, high, min(max(mean, low), high))


def _occupied(counts: np.ndarray, noise: float, n_samples: int) -> tuple[np.ndarray, int]:
    """Return the ranges whose noisy counts are above the noise, and how many more belong to the bound on each side."""
    around = np.convolve(counts, np.ones(5), "same")
    occupied = np.flatnonzero((counts > OCCUPIED * noise) & ((counts > ALONE * noise) | (around > AROUND * noise)))
    notches = 1 if OCCUPIED * noise / n_samples <= FINE else 2
    return occupied if occupied.size else np.array([np.argmax(counts)]), notches


def _bound(counts: np.ndarray, noise: float, n_samples: int) -> float:
    """Return the bound of the errors that follows from noisy counts by range."""
    occupied, notches = _occupied(counts, noise, n_samples)
    return float(EDGES[min(occupied[-1] + notches, EDGES.size - 1)])
