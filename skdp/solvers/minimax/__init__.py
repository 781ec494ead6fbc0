"""Provides the solvers of saddle problems."""
