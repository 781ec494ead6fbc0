"""Additive models: the estimators, the knots of their columns, and reading a fitted one."""
