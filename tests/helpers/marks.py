"""Marks of some values of a parameter."""

import pytest

__all__ = ["slow"]


def slow(*values):
    """Values of a parameter whose cases are slow: a case beside them shows the same."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
