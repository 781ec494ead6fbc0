"""Provide the solvers of saddle problems."""
