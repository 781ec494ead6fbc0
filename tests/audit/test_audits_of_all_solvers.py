"""Every solver passes its audit, which has teeth, and every broken twin fails it."""

import json

import pytest
import sklearn
from packaging.version import Version

import benchmarks.audit
from benchmarks.__main__ import main
from benchmarks.audit import AUDITED, BUDGET, CONFIDENCE, TABLE
from skdp.audit import audit
from skdp.privacy.budget import ADJACENCIES
from skdp.solvers import SOLVERS

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"),
    reason="minutes of attacks on NumPy and SciPy, not on scikit-learn: once is enough",
)
TWINS = [(solver, twin) for solver, audited in AUDITED.items() for twin in audited.twins]
N_RUNS, N_RUNS_FOR_TEETH = 2500, 4000


def attacked(estimator, n_runs=N_RUNS):
    return audit(estimator, *TABLE, n_runs=n_runs, confidence=CONFIDENCE, n_jobs=2, random_state=0)


def test_every_solver_has_an_audit_and_twins():
    assert set(AUDITED) == set(SOLVERS)
    for audited in AUDITED.values():
        assert "noise halved" in audited.twins and any(name.endswith("unscheduled") for name in audited.twins)
    assert all(audited.solver.name == name for name, audited in AUDITED.items())


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("solver", AUDITED)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(solver, adjacency):
    """A false alarm has probability at most 1e-4 per view."""
    result = attacked(AUDITED[solver].estimator(adjacency), N_RUNS_FOR_TEETH)
    assert (result.epsilon, result.delta) == (BUDGET["epsilon"], BUDGET["delta"]) == (4.0, 1e-5)
    assert result.consistent
    assert result.bound("transcript").epsilon >= AUDITED[solver].tooth * result.epsilon
    assert result.bound("final").epsilon > 0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("solver, twin", TWINS)
def test_every_broken_twin_is_caught(solver, twin, adjacency):
    result = attacked(AUDITED[solver].twin(twin, adjacency))
    assert result.epsilon == 4.0
    assert result.bound("transcript").epsilon > result.epsilon


def test_the_table_is_written_and_a_twin_that_is_not_caught_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmarks.audit, "AUDITED", {"gd": AUDITED["gd"]})
    with pytest.raises(SystemExit, match="wrong side of the claim"):  # 20 runs catch nothing
        main(["audit", "--n-runs", "20", "--out", str(tmp_path / "docs" / "audit.md")])
    contents = json.loads((tmp_path / "docs" / "audit.json").read_text())
    assert len(contents["records"]) == 12
    assert all(record["as_expected"] == (record["bound"] <= 4) for record in contents["records"] if record["twin"] is None)
    text = (tmp_path / "docs" / "audit.md").read_text()
    assert text.count("| gd |") == 12
    assert "| gd | noise halved | zero_out | transcript | 4 | " in text
    assert "NO |" in text
