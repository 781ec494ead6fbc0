"""The untuned defaults: solvers that learn scale and geometry privately before they descend."""
