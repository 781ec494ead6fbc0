"""Release sums of the errors of a regression on test records, with one or two Gaussian releases."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._validation import check_bounds as check_range
from skdp._validation import check_scale
from skdp.metrics._definition import ErrorMetric
from skdp.metrics._kind import Ask, EvaluationKind, EvaluationPlan
from skdp.metrics._noisy_errors import NoisyErrors
from skdp.privacy.budget import Budget
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.queries import ErrorSums, SumQuery, TargetHistogram

# The release that finds the bound of the errors counts them in ranges from 2**-32 to 2**32, each sqrt(2) times as wide as the one
# below. Its share of the squared budget, from the design's simulations. A range counts as occupied if its noisy count is above
# 4 standard deviations: in one of 250 releases, noise alone makes a range look so. The bound is the upper end of the last such
# range, times sqrt(2) where 4 standard deviations are at most FINE of the records, and times 2 otherwise. Above COARSE, the
# bound is refused: it could leave out so large a share of the errors.
EDGES = 2.0 ** (np.arange(-64, 65) / 2)
SHARE, OCCUPIED, FINE, COARSE = 0.15, 4.0, 0.02, 0.1


def check_bounds(error_bound: Any, target_bounds: Any, metrics: Iterable[ErrorMetric]) -> None:
    """Raise TypeError or ValueError if the public bounds are not valid, or lack for a metric."""
    check_scale("error_bound", error_bound, optional=True)
    if target_bounds is not None:
        check_range("target_bounds", target_bounds)
        return
    for metric in metrics:
        if metric.needs_range:
            raise ValueError(f"metrics: {metric.name!r} needs the variance of the targets; expected target_bounds=(low, high).")


def refuse_bounds(error_bound: Any, target_bounds: Any) -> None:
    """Raise ValueError if bounds are given for a classifier."""
    if error_bound is not None or target_bounds is not None:
        raise ValueError("error_bound and target_bounds are for regressors; expected None for a classifier.")


@dataclass(frozen=True)
class ErrorMoments(EvaluationKind):
    """Release sums of powers of the clipped errors and targets of a regression.

    Parameters
    ----------
    error_bound : float or None
        Absolute errors beyond it count as it; None finds a bound by a first release.
    target_bounds : tuple of float or None
        Public range of the targets.
    """

    error_bound: float | None
    target_bounds: tuple[float, float] | None

    title = "sums of powers of the clipped errors and targets of the test records"
    unit = "of their bound in the mean absolute error"
    assumption = "every target is finite"

    @property
    def reason(self) -> str:  # type: ignore[override]
        """Why this is released."""
        return (
            "the only one" if self.error_bound is not None else f"the only one; {SHARE:.0%} of the squared budget finds a bound"
        )

    @property
    def shares(self) -> tuple[float, ...]:  # type: ignore[override]
        """Share of the squared budget of each release."""
        return (1.0,) if self.error_bound is not None else (SHARE, 1 - SHARE)

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return the query that finds a bound, if one is needed, and the sums for the bound 1."""
        first = () if self.error_bound is not None else (TargetHistogram(EDGES),)
        return (*first, self._sums(1.0))

    def plan(self, n_samples: int, budget: Budget, noise: str) -> EvaluationPlan:
        """Return the releases; ValueError if there are too few records to find a bound."""
        plan = super().plan(n_samples, budget, noise)
        if self.error_bound is None and (least := OCCUPIED * plan.stds[0] / n_samples) > COARSE:
            raise ValueError(
                f"At this budget, {n_samples} test records do not tell a bound of the errors: {least:.0%} of them could hide in "
                f"the noise, more than {COARSE:.0%}. Use error_bound=, a larger epsilon or more test records."
            )
        return plan

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


def _bound(counts: np.ndarray, noise: float, n_samples: int) -> float:
    """Return the bound of the errors that follows from noisy counts by range."""
    occupied = np.flatnonzero(counts > OCCUPIED * noise)
    last = int(occupied[-1]) if occupied.size else int(np.argmax(counts))
    notches = 1 if OCCUPIED * noise / n_samples <= FINE else 2
    return float(EDGES[min(last + notches, EDGES.size - 1)])
