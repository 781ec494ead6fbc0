"""What scikit-learn does around an estimator of this package: callers, pipelines and copies."""
