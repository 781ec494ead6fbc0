"""Compare the noise of a planned fit with its signal, and find the number of records or the epsilon that is enough."""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from skdp._data_validation import Facts
from skdp.estimators._plan import Plan
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.errors import LowSignalWarning, PrivacyAccountingError, warn
from skdp.privacy.report.statement import Needed
from skdp.privacy.schedule import Release, Selection, SinglePass

# Noise over signal from which a fit is likely to be a constant. Share of fits that were no better than the larger class (or than
# the mean), 12 fits each at 10 epsilons from .1 to 5 on breast cancer, wine, iris, diabetes and 18 made-up tables of 300 to 5000
# records with 3 to 30 features, by the default solvers: none below .1, 1 in 200 from .1 to .15, 1 in 9 from .15 to .2 (labels
# 1 in 60), 1 in 8 from .2 to .25, 2 in 5 from .25 to .4, 1 in 2 from .4 to .5, 9 in 10 above. Of "ssp" (6 fits
# each): 1 in 8 below .1, 4 in 9 from .1 to .2, 4 in 5 above; of "objective" and "output": 1 in 13 from .1 to .2, 3 in 10 above.
DROWNED = 0.2
# Range in which a search looks for the number of records and for epsilon. Choices; outside, the report gives no advice.
FEWEST_RECORDS, MOST_RECORDS, LEAST_EPSILON, MOST_EPSILON = 2, 2**40, 2.0**-20, 10.0
# Least and largest factor between the first values of a search, and ratio of the limits at which it ends.
# Choices that trade time for precision.
STEP, FARTHEST, PRECISION = 1.5, 1024.0, 1.02
# Number of plans of a search for solvers that sample, whose accounting is slow, and factor that covers its error. Choices.
REFINEMENTS, MARGIN = 4, 1.05

Level = Callable[[float], float]
LevelOfFit = Callable[[int, float], float]


class GradientNoise(NamedTuple):
    """Noise per coordinate divided by the largest mean gradient, of one release and of the average; number of coordinates."""

    single: float
    average: float
    size: int

    @property
    def together(self) -> float:
        """Norm, over all coordinates, of the noise of the average."""
        return self.average * math.sqrt(self.size)


def gradient_noise(plan: Plan) -> GradientNoise | None:
    """Return the noise of the gradients of a plan; None if no release is a gradient of the model."""
    problem = plan.problem
    relative = [  # noise over the largest possible sum of clipped gradients
        (useful, noise_multiplier(line, plan.scale, problem.budget.adjacency) / drawn)
        for count, line in plan.schedule.entries
        for useful, drawn in [_read(count, line, problem.n_samples)]
        if line.size is None and not isinstance(line.mechanism, Selection)
    ]
    if not relative:
        return None
    average = 1 / math.sqrt(sum(useful / noise**2 for useful, noise in relative))
    return GradientNoise(max(noise for _, noise in relative), average, math.prod(problem.shape))


def prediction_noise(plan: Plan) -> tuple[float, str]:
    """Return the noise of the raw prediction for the longest row, if the solver releases a minimiser, and its unit."""
    problem, curve = plan.problem, plan.schedule.curve
    (_, release), *_ = plan.schedule.entries
    if curve is None:
        coordinate = noise_multiplier(release, plan.scale, problem.budget.adjacency) * (release.clip_norm or 0.0)
    else:
        coordinate = curve.raw_noise(plan.scale, problem.budget)
    return problem.row_norm * coordinate, "log-odds" if getattr(problem.loss, "log_odds", False) else "margins"


def noise_level(plan: Plan) -> float:
    """Return the noise of a plan divided by the level above which a fit is likely to be a constant; 0 if it is unknown."""
    if not plan.problem.budget.private:
        return 0.0
    if plan.solver.penalizes_intercept:
        return _tilt(plan) / DROWNED
    level = plan.solver.noise_level(plan.problem)
    if level is not None:
        return level
    noise = gradient_noise(plan)
    return 0.0 if noise is None else noise.together / DROWNED


def _tilt(plan: Plan) -> float:
    """Return the gradient noise that moves the minimiser as far as its own noise, divided by the largest mean gradient."""
    problem = plan.problem
    return prediction_noise(plan)[0] / problem.row_norm * problem.alpha * math.sqrt(math.prod(problem.shape)) / problem.lipschitz


def needed(task: Any, facts: Facts, plan: Plan, level: LevelOfFit | None = None) -> Needed | None:
    """Return the number of records, or the epsilon, that the same estimator needs on such a table; None if it is unknown.

    ``level`` returns the noise level for a number of records and an epsilon; None plans the task for them.
    """
    n_samples, epsilon = facts.n_samples, float(task.epsilon)
    if not noise_level(plan):
        return None
    level = level or partial(_level, task, facts)
    search = _nearby if plan.schedule.samples else _least
    records = search(lambda n: level(int(n), epsilon), n_samples, FEWEST_RECORDS, MOST_RECORDS)
    budget = search(lambda value: level(n_samples, value), epsilon, LEAST_EPSILON, MOST_EPSILON)
    return Needed(None if records is None else int(_rounded(records)), None if budget is None else _rounded(budget), task.aim)


def warn_of_low_signal(task: Any, facts: Facts, plan: Plan, level: LevelOfFit | None = None) -> None:
    """Warn, before anything is charged, if a fit is likely to be a constant, or lacks a part; ``level`` as `needed` takes it."""
    if noise_level(plan) < 1:
        if left_out := task.left_out(plan):
            warn(left_out, LowSignalWarning)
        return
    problem, enough = plan.problem, needed(task, facts, plan, level)
    shorter = " or a smaller data_norm help" if "data_norm" in task.bounding else " help"
    what, fewer = task.drowned, f"; fewer features{shorter}, too"
    if problem.faintness >= 1:
        what, fewer = "is the mean of y alone, the same prediction for all records", ""
    intervals = f". Intervals: {outlook}" if (outlook := plan.solver.outlook(problem)[1]) else ""
    warn(
        f"Noise is likely to drown the signal of {problem.n_columns} features at epsilon={float(task.epsilon):g} and "
        f"n_samples={problem.n_samples}: the model {what}, and the budget is spent all the same{intervals}. {enough}"
        f"{fewer}. plan(n_samples, n_features) tells you this before a fit.",
        LowSignalWarning,
    )


def _read(count: int, release: Release, n_samples: int) -> tuple[float, float]:
    """Return the number of releases that carry a signal, and the number of records in each."""
    if isinstance(release.mechanism, SinglePass):
        drawn = release.mechanism.batch_size
        return min(count, max(n_samples / (2 * drawn), 1.0)), drawn
    return count, getattr(release.mechanism, "sampling_rate", 1.0) * n_samples


def _level(task: Any, facts: Facts, n_samples: int, epsilon: float) -> float:
    """Return the noise level of a fit to ``n_samples`` records with this epsilon; infinite if no fit can be planned."""
    other = task.replaced(epsilon=epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return noise_level(other.plan_of(replace(facts, n_samples=n_samples, extra=facts.extra.resized(n_samples))))
        except (ValueError, PrivacyAccountingError):
            return math.inf


def _least(level: Level, start: float, lowest: float, highest: float) -> float | None:
    """Return the smallest value near a start at which the level is below 1, within two per cent; None if there is none.

    The level is nearly inverse to the value, so that it tells where to look. The search ends between two plans on both sides.
    """
    low = high = float(start)
    at_low = at_high = level(high)
    while at_high >= 1:
        if high >= highest:
            return None
        low, at_low = high, at_high
        high = min(high * _step(at_high), highest)
        at_high = level(high)
    while low == high or at_low < 1:
        if low <= lowest:
            return low
        high, at_high = low, at_low
        low = max(low / _step(1 / at_low if at_low else math.inf), lowest)
        at_low = level(low)
    above = True  # on which side of the root that a line through both logarithms has
    while high > PRECISION * low and high - low > 0.5 * (lowest == FEWEST_RECORDS):
        share = math.log(at_low) / math.log(at_low / at_high) if 0 < at_high and 1 < at_low < math.inf else 0.5
        length = math.log(high / low)
        nudged = share + (0.4 if above else -0.4) * math.log(PRECISION) / length
        middle = low * math.exp(length * min(max(nudged, 0.1), 0.9))
        now = level(middle)
        low, at_low, high, at_high = (low, at_low, middle, now) if now < 1 else (middle, now, high, at_high)
        above = now >= 1
    return high


def _step(level: float) -> float:
    """Return the factor by which a value changes that has a level above 1."""
    return min(max(1.1 * level, STEP), FARTHEST) if math.isfinite(level) else 4.0


def _nearby(level: Level, start: float, lowest: float, highest: float) -> float | None:
    """Like `_least`, with few plans and a margin, for slow accounting of samples; noise is nearly inverse to the value."""
    value, enough = float(start), None
    for _ in range(REFINEMENTS):
        now = level(value)
        if 1 / MARGIN < now < MARGIN:
            break
        if now < 1:
            enough = value
        if math.isinf(now):  # no plan, as of fewer records than a batch has
            value = math.sqrt(value * enough) if enough else value * STEP
        else:
            value *= now
        value = min(max(value, lowest), highest)
    return min(value * MARGIN, highest) if level(value) < MARGIN else enough


def _rounded(value: float) -> float:
    """Return the value, rounded up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    rounded = math.ceil(value / unit * (1 - 1e-9)) * unit
    return float(f"{rounded:.6g}")
