"""Provide the solvers that release one perturbed minimum."""
