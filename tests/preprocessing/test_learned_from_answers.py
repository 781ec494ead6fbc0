"""Whatever the oracle answers, a schema follows; and it follows from the answers alone."""

import json
import math
import pickle
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp.preprocessing import LearnedSchema, Schema, from_schema
from skdp.privacy.oracle import Oracle

N = 200
WORDS = {"either": "either", "coded": "category", "spelt": "number"}


def tables():
    """Two tables that share no cell, but names, types and the number of records."""
    one = pd.DataFrame({"n": np.arange(N) / 7, "i": np.arange(N) % 12, "t": ["x"] * N, "either": ["1.5", "z"] * (N // 2)})
    one = one.assign(
        coded=np.arange(N) % 3, spelt=["1e3"] * N, day=pd.Timestamp("2031-04-15"), truth=True, gaps=[math.nan, 1.0] * (N // 2)
    )
    two = pd.DataFrame(
        {"n": [-math.inf, 1e300] * (N // 2), "i": np.arange(N) + 10**9, "t": [None] * N, "either": ["", "ä"] * (N // 2)}
    )
    two = two.assign(coded=5 + np.arange(N), spelt=["no number"] * N, day=pd.NaT, truth=False, gaps=[5e-324, -0.0] * (N // 2))
    for table in (one, two):
        for name in ("t", "either", "spelt"):
            table[name] = table[name].astype(object)
    return one, two.astype({"day": one["day"].dtype})


ONE, TWO = tables()
TARGETS = {"one": np.arange(N) / 3, "two": np.full(N, -1e300)}


def sizes_of(query):
    """Numbers of bins of each column, or of the counts of the targets."""
    return query.sizes() if hasattr(query, "sizes") else [query.size]


def noise(scale):
    return lambda rng, query: rng.normal(0, scale, query.size)


def spike(rng, query):
    answer = np.zeros(query.size)
    if query.size:  # no column may be left for the last round
        answer[rng.integers(query.size)] = N * rng.choice([1, -1, 1e9])
    return answer


def crowded(rng, query):
    """Whole columns in one bin, at one of the ends."""
    answer, at = np.zeros(query.size), 0
    for size in sizes_of(query):
        answer[at + rng.choice([0, 1, size // 2, size - 2, size - 1])] = N * rng.choice([0.3, 0.6, 1.0, 1.5])
        at += size
    return answer


def peaked(rng, query):
    """A few bins of every column, beside noise."""
    answer, at = rng.normal(0, 1, query.size), 0
    for size in sizes_of(query):
        places = at + rng.choice(size, rng.integers(1, 9))
        answer[places] += N * rng.dirichlet(np.ones(places.size))
        at += size
    return answer


ANSWERS = {
    "zeros": lambda rng, query: np.zeros(query.size),
    "minus": lambda rng, query: np.full(query.size, -1e15),
    "plus": lambda rng, query: np.full(query.size, 1e15),
    "everybody everywhere": lambda rng, query: np.full(query.size, float(N)),
    "little noise": noise(1e-9),
    "noise": noise(10.0),
    "much noise": noise(1e12),
    "heavy tails": lambda rng, query: np.clip(rng.standard_cauchy(query.size) ** 3, -1e200, 1e200),
    "spike": spike,
    "crowded": crowded,
    "peaked": peaked,
}


def answering(patched, how, seed):
    rng = np.random.default_rng(seed)
    patched.setattr(Oracle, "_answer", lambda self, query, release, records: ANSWERS[how](rng, query))


@pytest.mark.slow
@pytest.mark.parametrize("how", ANSWERS)
def test_a_schema_follows_from_every_answer(how, monkeypatch):
    """No error and no warning; limits are finite, rows have length at most 1, JSON gives the same schema."""
    for seed in range(12):
        answering(monkeypatch, how, seed)
        model = fitted(LearnedSchema(1.0 if seed % 2 else 10.0, schema=WORDS, learn_target=True), ONE, TARGETS["one"])
        content = json.dumps(model.to_schema(), allow_nan=False)
        assert Schema.read(json.loads(content)) == model.schema_
        low, high = model.schema_.target_bounds
        assert math.isfinite(low) and math.isfinite(high) and low < high
        for table in (ONE, TWO):
            rows = from_schema(model.schema_).fit_transform(table)
            assert np.isfinite(rows).all() and (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
        assert str(model.privacy_report_) and model.privacy_report_.to_dict() and repr(model)


@pytest.mark.parametrize("how", ANSWERS)
def test_tables_that_share_no_cell_leave_the_same_bits(how, monkeypatch):
    """With the same answers: pickles, schemas, reports, texts, and what is written into a ledger."""
    left = []
    for table, target in ((ONE, TARGETS["one"]), (TWO, TARGETS["two"])):
        answering(monkeypatch, how, 7)
        model = fitted(LearnedSchema(1.0, schema=WORDS, learn_target=True, random_state=0), table, target)
        report = model.privacy_report_
        left.append(
            (pickle.dumps(model), str(report), json.dumps(report.to_dict()), repr(model.learnt_), json.dumps(model.to_schema()))
        )
        left[-1] += (report._repr_html_(),)
    assert left[0] == left[1]


def test_nothing_is_the_same_without_the_answers(monkeypatch):
    """The comparison above can fail: tables without noise leave other bits."""
    monkeypatch.setattr(Oracle, "_answer", lambda self, query, release, records: query.evaluate(self._rows))
    models = [fitted(LearnedSchema(10.0, schema=WORDS, random_state=0), table) for table in (ONE, TWO)]
    assert pickle.dumps(models[0]) != pickle.dumps(models[1])


def test_failures_after_the_charge_depend_on_no_cell(monkeypatch):
    """Cells whose conversions, comparisons or hashes fail are missing; no fit fails, before or after the charge."""

    class Hostile:
        def __eq__(self, other):
            raise ValueError("secret 31415")

        __hash__ = __float__ = __str__ = __repr__ = __len__ = __eq__

    cells = [Hostile(), "x", 10**400, float("nan"), date(1, 1, 1), datetime(9999, 12, 31), b"", {1}, [Hostile()], (), 1j, ...]
    frame = pd.DataFrame(
        {"a": pd.Series(cells, dtype=object), "b": pd.Series(cells, dtype=object), "c": pd.Series(cells, dtype=object)}
    )
    heard = []
    monkeypatch.setattr(
        Oracle, "_answer", lambda self, query, *rest: heard.append(query.evaluate(self._rows)) or np.zeros(query.size)
    )
    model = LearnedSchema(1.0, delta=1e-3, schema={"a": "category", "b": "number", "c": "either"}).fit(frame)
    assert all(math.isfinite(count) for answer in heard for count in answer) and len(heard) == 3
    assert heard[0].sum() == 3 * len(cells)
    assert np.isfinite(model.transform(frame)).all()
