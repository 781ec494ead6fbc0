"""Solvers that follow noisy gradients, with the steps and clip norms of their papers."""
