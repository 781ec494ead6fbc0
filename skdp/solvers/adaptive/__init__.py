"""Provide the untuned defaults: solvers that release scale and geometry of the features before the gradients."""
