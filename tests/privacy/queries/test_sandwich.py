"""The queries of "inference": their definitions, and their sensitivities searched for over neighbours."""

import numpy as np
import pytest
from test_whitening_queries import (
    D,
    R,
)

from skdp.losses import BoundedProper, Huber
from skdp.privacy.queries import Bread, Whitening

BOUND = 1.7
LOSSES = {"classes": BoundedProper(), "numbers": Huber(0.4)}


@pytest.mark.parametrize("intercept", (True, False))
def test_rounding_has_no_unit(intercept, rng):
    """Data times any number, with the geometry that goes with it, have the same bound, at least that of the exact products."""
    scale, centre = rng.normal(size=(D, D)), intercept * rng.normal(size=D) / 4
    found = []
    for unit in (1e-6, 1.0, 1e6):
        geometry = Whitening(unit * centre, scale / unit, intercept, unit * R)
        found.append(Bread(LOSSES["numbers"], np.zeros((D + intercept, 1)), BOUND, geometry).rounding)
    assert found == pytest.approx([found[1]] * 3)
    whole = np.vstack([R * scale, centre @ scale])
    assert found[1] >= 1 + 2 * np.square(whole).sum() / BOUND**2
