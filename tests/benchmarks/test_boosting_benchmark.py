"""The benchmark of boosted models: what is written."""

import json

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from benchmarks import boosting, network
from benchmarks.__main__ import main
from benchmarks.tables import data_directory
from skdp.estimators.boosting import _rule


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.skipif(not (data_directory() / "spambase.npz").exists(), reason="data sets are not in the repository")
def test_the_quick_mode_writes_both_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 3)
    monkeypatch.setattr(network, "GRID", network.GRID[:2])
    monkeypatch.setattr(boosting, "EPSILONS", (3.0,))
    monkeypatch.setattr(boosting, "RAW_EPSILONS", (3.0,))
    main(["boosting", "--quick", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "boosting.json").read_text())
    assert [len(results[part]) for part in ("schema", "raw")] == [2, 2]
    assert all(
        len(record["tabular"]) == 2 and record["tabular"] in (record["linear"], record["additive"]) for record in results["raw"]
    )
    assert all(len(record["network"]) == 2 and min(record["network"]) > 0.5 for record in results["schema"])
    page = (tmp_path / "boosting.md").read_text()
    assert "| spambase | 3.0 | zero_out |" in page and "no trees" in page


def test_the_share_of_the_way_is_that_from_the_additive_model():
    record = {"table": "t", "epsilon": 1.0, "adjacency": "zero_out", "not private": 0.9, "trees": True}
    line = boosting.of_schema({**record, "additive": [0.7, 0.7], "boosted": [0.8, 0.8]})
    assert line.endswith("| +0.1000 ± 0.0000 | 0.900 | 50% |")


@pytest.mark.parametrize("classes", (True, False))
def test_the_gradients_of_the_network_are_those_of_its_loss_and_each_is_clipped(classes, rng):
    """A record at a time: finite differences of the loss, cut to the norm, and added up."""
    X, y = rng.normal(size=(6, 3)), rng.integers(0, 2, 6).astype(float)
    parameters = [rng.normal(size=shape) for shape in ((3, 4), 4, 4, 1)]

    def loss(values, row, target):
        parts = np.split(values, np.cumsum([part.size for part in parameters])[:-1])
        raw = network.predicted(row, [part.reshape(like.shape) for part, like in zip(parts, parameters, strict=True)])[1]
        return float(np.logaddexp(0, raw[0]) - target * raw[0] if classes else (raw[0] - target) ** 2 / 2)

    start = np.concatenate([part.ravel() for part in parameters])
    steps = 1e-6 * np.eye(start.size)
    slopes = np.array(
        [[(loss(start + step, X[[i]], y[i]) - loss(start - step, X[[i]], y[i])) / 2e-6 for step in steps] for i in range(6)]
    )
    norms = np.linalg.norm(slopes, axis=1)
    clip = np.median(norms)
    found = np.concatenate([part.ravel() for part in network.clipped(X, y, parameters, clip, classes)])
    assert found == pytest.approx((slopes * np.minimum(1, clip / norms)[:, None]).sum(axis=0), abs=1e-5)


@pytest.mark.slow
def test_the_noise_of_the_network_spends_the_budget():
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(network.noise(0.1, 100, 1.0, 1e-5, "zero_out"))), 100)
    spent = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event).get_epsilon(1e-5)
    assert 0.99 < spent <= 1.0
