"""Conclude from the distribution of a column how a model takes it, so that a fit need not learn it again."""

from dataclasses import replace

import numpy as np

from skdp.preprocessing._column_kinds import MOST_INTEGERS
from skdp.preprocessing._fine_rule import FEWEST_INTEGERS
from skdp.preprocessing._octave_rule import LEAST_MASS, LEAST_SQUARE, MODE, TRIM, Finding
from skdp.stats._distribution import INTEGERS, Distribution


def feature_of(finding: Finding, distribution: Distribution, missing: float) -> Finding:
    """Return what is known of a column as a feature: its scale from the first release, its place from the distribution.

    Parameters
    ----------
    finding : Finding
        What the first release tells of it.
    distribution : Distribution
        Of the column.
    missing : float
        Share of missing cells; 0 if noise may be all of it.

    Returns
    -------
    Finding
        Limits, core, centre and integers of a column on a linear scale; others as they are.
    """
    low, high = distribution.quantile(TRIM), distribution.quantile(1 - TRIM)
    if finding.kind != "linear" or not distribution.determined or low == high:
        return replace(finding, missing=missing)
    middles, masses = distribution.masses
    values, at = distribution.edges, masses[1::2]
    whole = values == np.rint(values)
    held = whole & (at > LEAST_MASS)
    integers: tuple[float, ...] = ()
    if at[held].sum() > INTEGERS and FEWEST_INTEGERS <= held.sum() <= MOST_INTEGERS:
        integers = tuple(values[held].tolist())
        low, high = integers[0], integers[-1]
    top = float(values[np.argmax(at)])
    centre = top if at.max() > MODE and low <= top <= high else low / 2 + high / 2
    size = max(high - centre, centre - low)
    square = float((np.clip(middles, low, high) - centre) ** 2 @ masses) / size**2
    return replace(
        finding,
        kind="integers" if integers else "linear",
        limits=(low, high),
        core=(low, high),
        centre=centre,
        missing=missing,
        integers=integers,
        square=max(square, LEAST_SQUARE),
        binary=bool(at[held].sum() > INTEGERS and held.sum() == 2),
        logarithm=finding.logarithm if not integers else 0.0,
    )
