"""The benchmark of confidence intervals: its designs, its measures, and what it writes."""

import json

import numpy as np
import pytest

from benchmarks import inference
from benchmarks.__main__ import main
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._schema import TreatmentSchema


@pytest.mark.parametrize("design", inference.DESIGNS)
@pytest.mark.parametrize("d", (5, 20))
def test_rows_are_within_their_bounds_and_as_described(design, d):
    X = inference.columns_of(design, 4000, d, np.random.default_rng(0))
    assert X.shape == (4000, d) and np.abs(X).max() <= 1
    correlations = np.abs(np.corrcoef(X.T) - np.eye(d))
    if design == "correlated":
        assert correlations[0, 1] == pytest.approx(0.9, abs=0.02)
    elif design == "collinear":
        assert correlations[0, 1] > 0.98
    elif design == "all levels":
        assert (X[:, : d // 2 + 1].sum(axis=1) == 1).all()
    elif design == "categories":
        assert set(X.sum(axis=1)) == {0.0, 1.0}
    elif design == "schema":
        frame, schema = inference.as_frame(X)
        coded = from_schema(TreatmentSchema.of(Schema.read(schema))).fit_transform(frame)
        np.testing.assert_allclose(coded, X)
        assert frame["c0"].nunique() == d // 4 + 1 and correlations[0, -1] > 0.02
    else:
        assert correlations.max() < 0.1


def test_chance_is_the_lowest_of_right_intervals():
    rng = np.random.default_rng(0)
    lowest = (rng.random((5000, 6, 400)) < 0.95).mean(axis=2).min(axis=1)
    assert np.mean(lowest < inference.chance(np.full(6, 400))) == pytest.approx(0.01, abs=0.006)


@pytest.mark.slow
def test_a_run_writes_what_it_measures(tmp_path):
    words = "inference --families linear --designs independent --columns 3 --epsilons 3 --n-samples 2000 --repeats 12 --seed 7"
    main([*words.split(), "--out", str(tmp_path)])
    (record,) = json.loads((tmp_path / "inference.json").read_text())["records"]
    assert record["coverage"] > 0.8 and record["estimable"] == 1 and 0.5 < record["width"] < 2 < 2 * record["private"] < 6
    assert "| linear | independent | 3 | 3 |" in (tmp_path / "inference.md").read_text()


@pytest.mark.slow
def test_a_true_hypothesis_is_tested_and_intervals_are_compared_with_the_truth():
    """Wrong truths are not held."""
    about = {"family": "logistic", "design": "independent", "d": 3, "epsilon": 3.0}
    sizes = {"n": 3000, "adjacency": "zero_out", "seed": 5}
    found = inference.cell(about, sizes, 10, True, 1)
    assert found["size"] < 0.4 and found["predictions"] > 0.7
    one = inference.once(about, sizes, False, 0)
    assert one["held"].shape == (4,) and one["estimate"][2] == pytest.approx(0, abs=1.0) and abs(one["estimate"][:2]).max() > 0.3
    assert (one["width"] > one["not private"]).all()
