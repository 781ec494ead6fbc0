"""The training data: how they are stored, and sums over their records. Only queries and the oracle read them."""
