"""Solvers of saddle problems."""
