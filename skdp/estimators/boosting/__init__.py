"""Private gradient boosting: an additive model, then random trees whose leaf sums are released."""
