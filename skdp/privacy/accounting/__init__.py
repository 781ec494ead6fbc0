"""Compute the privacy cost of releases, and the noise that meets a budget."""
