"""Store the training data and compute sums over their records; only queries and the oracle read them."""
