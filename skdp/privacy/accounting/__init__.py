"""Exact formulas of what releases cost, and the noise that meets a budget."""
