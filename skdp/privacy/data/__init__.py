"""Stores the training data and computes sums over their records; only queries and the oracle read them."""
