"""Fits that learn their columns leave what follows from answers and public facts: disjoint tables leave the same bits."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPQuantileRegressor,
)
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms, FineHistograms
from skdp.testing import reproducible_noise

N = 200
CLASSIFIERS = (DPLogisticRegression, DPLinearSVC, DPAUCMaximizer, DPConstrainedClassifier, DPAdditiveClassifier)
REGRESSIONS = (DPLinearRegression, DPQuantileRegressor, DPAdditiveRegressor)
WORDS = {"n": "number", "t": "category", "e": "either", "stated": {"kind": "number", "bounds": [0, 1]}}


def table(which):
    """A table, and labels or targets; the two tables share no cell, but names and types."""
    one = {"n": np.arange(N) / 7, "t": ["x"] * N, "e": ["1.5", "z"] * (N // 2), "stated": 0.25, "day": pd.Timestamp("2031-04-15")}
    two = {"n": [-math.inf, 1e300] * (N // 2), "t": [None] * N, "e": ["", "ä"] * (N // 2), "stated": 7.0, "day": pd.NaT}
    frame = pd.DataFrame(one if which == 1 else two).astype({"t": object, "e": object, "day": "datetime64[us]"})
    labels = np.arange(N) % 2 if which == 1 else (np.arange(N) + 1) % 2
    return frame, labels, np.arange(N) / 3 if which == 1 else np.full(N, -1e200)


def left_by(model, which, seed, monkeypatch, exact=False):
    """All bits that a fit leaves, and the warnings that it gives, with answers from a seed."""
    rng = np.random.default_rng(seed)

    def answer(self, query, release, records):
        if exact:
            return query.evaluate(self._rows)
        if not isinstance(query, ColumnHistograms | FineHistograms):
            return rng.normal(0, N / 30, query.size)
        counts, at = rng.normal(0, 1, query.size), 0
        for size in query.sizes():
            counts[at + rng.choice(size, 3)] += N / 3
            at += size
        return counts

    monkeypatch.setattr(Oracle, "_answer", answer)
    frame, labels, targets = table(which)
    with warnings.catch_warnings(record=True) as said, reproducible_noise(0):
        warnings.simplefilter("always")
        model.fit(frame, targets if hasattr(model, "target_bounds") else labels)
    report = model.privacy_report_
    texts = [str(report), json.dumps(report.to_dict()), report._repr_html_(), repr(model.learnt_), repr(model.schema_)]
    return pickle.dumps(model), texts, [str(warning.message) for warning in said]


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("schema", ("learn", "words"))
@pytest.mark.parametrize("kind", (*CLASSIFIERS, *REGRESSIONS))
def test_disjoint_tables_with_the_same_answers_leave_the_same_bits(kind, schema, monkeypatch):
    for seed in range(3):
        given = {"schema": WORDS if schema == "words" else "learn", "random_state": 0}
        given |= {"target_bounds": None} if kind in REGRESSIONS else {"classes": [0, 1]}
        if kind is DPQuantileRegressor:
            given["target_bounds"] = (-1.0, 1.0)
        epsilon = (
            (2.0, 1.0, 20.0)[seed] if kind in REGRESSIONS else 2.0
        )  # the range is searched for, then all, then in histograms
        one, two = (left_by(kind(epsilon, **given), which, seed, monkeypatch) for which in (1, 2))
        assert one == two


def test_the_comparison_can_fail(monkeypatch):
    one, two = (left_by(DPLogisticRegression(2.0, schema=WORDS, random_state=0), which, 0, monkeypatch, True) for which in (1, 2))
    assert one[0] != two[0]
