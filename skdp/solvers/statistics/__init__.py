"""Provide the solvers that release statistics once and compute the model from them."""
