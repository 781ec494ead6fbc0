"""Marks of some values of a parameter."""

import pytest

__all__ = ["slow"]


def slow(*values):
    """Values of a parameter whose cases are slow: a case beside them shows the same."""
    if any(getattr(value, "__name__", "").startswith("test_") for value in values):
        raise TypeError(
            "slow is for values of a parameter; expected @pytest.mark.slow above a test, which would vanish otherwise."
        )
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
