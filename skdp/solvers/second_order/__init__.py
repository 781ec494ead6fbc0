"""Provide the solvers that also release curvature."""
