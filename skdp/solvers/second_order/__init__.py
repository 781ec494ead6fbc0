"""Solvers that also release curvature."""
