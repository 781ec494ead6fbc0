"""Provide the solvers that follow noisy gradients, with the steps of their papers."""
