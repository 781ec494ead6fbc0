"""Comparisons and measurements; nothing here is imported by the package."""
