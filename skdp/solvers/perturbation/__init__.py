"""Solvers that release one perturbed minimum."""
