"""Shrink the coefficients of indicators of a linear classifier by the known covariance of their noise."""

from dataclasses import replace

import numpy as np

from skdp.estimators._posterior import posterior_mean
from skdp.preprocessing import Schema
from skdp.preprocessing._pipeline import Indicators, indicators_of
from skdp.solvers import CoefficientNoise, SolverResult

__all__ = ["shrunk", "shrunk_indicators"]

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
