"""Provides the solvers that also release curvature."""
