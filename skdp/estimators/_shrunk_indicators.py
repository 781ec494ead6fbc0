"""Shrink the coefficients of indicators of linear models by what is known of their noise, and of how many records have them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from skdp.estimators._posterior import posterior_mean
from skdp.preprocessing import Schema
from skdp.preprocessing._parts import HardlySeen, Shares, support
from skdp.preprocessing._pipeline import Indicators, indicators_of
from skdp.preprocessing._schema import OTHER
from skdp.solvers import CoefficientNoise, Problem, ReleasedMoments, SolverResult

__all__ = ["average_effects", "shrunk", "shrunk_indicators"]

# Standard deviations that the effects of the indicators of a column may have, in log-odds. The range is a choice: it holds no
# effect at all, and more than any table has.
EFFECTS = np.concatenate([[0.0], np.geomspace(0.01, 10.0, 25)])
# Share of the covariance of the noise that shrinks. The steps stop early, so released coefficients are short already, and their
# whole covariance shrinks them twice. Chosen on adult and made-up frames; .25 gains half as much, and 1 loses up to .02 in AUC
# where effects of single integers are all there is (docs/defaults.md).
SHARE = 0.5
# Fewest indicators of a column that are shrunk: a level and one difference are not enough to tell the scale of a prior.
FEWEST = 3
# Least share of the records of an indicator, because released shares are noisy. A choice.
LEAST_SHARE = 1e-4
# A usual effect of a level on the slope of a record's loss, over the largest slope: about that of 1 in log-odds. A choice.
USUAL_EFFECT = 0.25
# Odds, before the releases, that no record has what is not listed, and a listed level.
OTHER_EMPTY, LISTED_EMPTY = 99.0, 0.1
# Weight below which a level is named: less than half of its coefficient is its effect.
HARDLY = 0.5


def shrunk_indicators(schema: Schema | None, result: SolverResult) -> SolverResult:
    """Return the model with posterior means in place of the released coefficients of indicators; post-processing.

    The effects of the indicators of one column have a normal prior around 0, for integers beside the number, or around a common
    level, for categories. Its scale is averaged over its posterior. The mean prediction stays as it is.

    Parameters
    ----------
    schema : Schema or None
        What prepares the rows; None if nothing is known of the columns.
    result : SolverResult
        Released coefficients, the intercept last, and their noise.

    Returns
    -------
    SolverResult
        The same result without a schema, and if it does not tell the steps that its noise came from.

    Notes
    -----
    **Privacy.** Computed from releases and public facts.
    """
    noise = result.noise
    if schema is None or noise is None or noise.steps is None:
        return result
    coef, centre = result.coef[:, 0].copy(), noise.geometry.centre
    for block in indicators_of(schema):
        found = shrunk(block, coef[block.columns], noise)
        coef[-1] -= (found - coef[block.columns]) @ centre[block.columns] if len(coef) > len(centre) else 0.0
        coef[block.columns] = found
    estimates = noise.estimates.copy()
    estimates[: centre.size, 0] = coef[: centre.size] / noise.geometry.scale
    return replace(result, coef=coef[:, None], noise=replace(noise, estimates=estimates))


def shrunk(block: Indicators, estimates: np.ndarray, noise: CoefficientNoise) -> np.ndarray:
    """Return the posterior means of the coefficients of the indicators of one column; few of them are as released.

    Parameters
    ----------
    block : Indicators
        The indicators.
    estimates : ndarray of shape (k,)
        Their released coefficients.
    noise : CoefficientNoise
        The noise of all coefficients, with the steps that it came from.

    Returns
    -------
    ndarray of shape (k,)
        Coefficients.
    """
    if len(estimates) < FEWEST:
        return estimates
    covariance = SHARE * noise.covariance(block.columns, _gram(block, noise.geometry.centre[block.columns]))
    free = np.ones((len(estimates), int(block.exhaustive)))
    return posterior_mean(estimates, covariance, np.eye(len(estimates)) / block.weight, free, EFFECTS)


def _gram(block: Indicators, means: np.ndarray) -> np.ndarray:
    """Return the covariance of indicators over the records."""
    shares = np.maximum(means / block.weight, LEAST_SHARE)
    shares /= shares.sum() if block.exhaustive else max(float(shares.sum()), 1.0)
    return np.asarray(block.weight**2 * (np.diag(shares) - np.outer(shares, shares)))


def average_effects(
    problem: Problem, schema: Schema, result: SolverResult, counted: Mapping[str, Shares]
) -> tuple[SolverResult, dict[str, list[HardlySeen]]]:
    """Return the model in which levels that hardly any record has take the average effect of their column, and these levels.

    The coefficient of a level moves to the mean of its column, over the released shares, by what `support` takes for noise. The
    level of most support keeps its own: how much of a whole column is noise is left to the solver.

    Parameters
    ----------
    problem : Problem
        Public facts.
    schema : Schema
        What prepares the rows.
    result : SolverResult
        Released coefficients, and the moments of the features if they were released.
    counted : dict
        Shares of the indicators that were released before the fit, by column.

    Returns
    -------
    result : SolverResult
        The same where no release tells the shares.
    hardly_seen : dict
        Levels of which less than half of the coefficient is their effect, and their largest possible shares, by column.

    Notes
    -----
    **Privacy.** Computed from releases and public facts.
    """
    coef = result.coef.copy()
    hardly_seen: dict[str, list[HardlySeen]] = {}
    for block in indicators_of(schema):
        if not block.exhaustive:
            continue
        found = _shares(block, result.moments)
        found = found.combined(counted[block.name]) if block.name in counted else found
        half = 1 / (USUAL_EFFECT * block.weight * problem.signal_to_noise)
        odds = np.where([part == OTHER for part in block.parts], OTHER_EMPTY, LISTED_EMPTY)
        weights = support(found, half, odds)
        weights /= max(float(weights.max()), LEAST_SHARE)
        shares = weights * np.maximum(found.shares, LEAST_SHARE)
        mean = shares @ coef[block.columns] / shares.sum()
        coef[block.columns] = mean + weights[:, None] * (coef[block.columns] - mean)
        beside = zip(block.parts, weights.tolist(), found.most.tolist(), strict=True)
        few: list[HardlySeen] = [(part, most) for part, weight, most in beside if weight < HARDLY]
        hardly_seen |= {block.name: few} if few else {}
    return replace(result, coef=coef), hardly_seen


def _shares(block: Indicators, moments: ReleasedMoments | None) -> Shares:
    """Return the shares of the indicators of a column by the released means of the features."""
    size = len(block.parts)
    if moments is None:
        return Shares(np.full(size, 1 / size), np.full(size, np.inf))
    return Shares(moments.mean[block.columns] / block.weight, np.full(size, moments.mean_noise / block.weight))
