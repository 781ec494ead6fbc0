"""Shared fixtures; seeds are fixed, and every statistical test states its false-alarm rate."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20261120)
