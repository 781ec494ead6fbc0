"""The canary of an audit is a person of many rows: honest fits stay below the claim, and what weighs her rows wrongly does not.

A coin per row, and batches of rows, are attacked where samples are drawn.
"""

import numpy as np
import pytest
import sklearn
from marks import slow
from packaging.version import Version

from skdp import DPLinearRegression, DPLogisticRegression
from skdp import _persons as persons_module
from skdp.audit import audit, audit_one_run
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.data import persons as weights_module
from skdp.privacy.data.persons import Persons
from skdp.privacy.queries import gradient
from skdp.solvers import GradientDescent

pytestmark = [
    pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough"),
    pytest.mark.filterwarnings("ignore::skdp.WeakPrivacyWarning"),
]
CONFIDENCE = 1 - 1e-4
# It stays at the start, where the gradients of the canary's rows are 500 times longer than the clip norm.
PLAIN = {"data_norm": 10.0, "clip_norm": 0.01, "solver": GradientDescent(2, step_size=1e-3), "privacy_unit": "person"}
MODELS = {
    "logistic": DPLogisticRegression(4.0, delta=1e-3, classes=[0, 1], **PLAIN),
    "linear": DPLinearRegression(4.0, delta=1e-3, target_bounds=(-1, 1), **PLAIN),
}


def attacked(name, adjacency="replace_one", n_rows=500, n_runs=600, **given):
    model = sklearn.base.clone(MODELS[name]).set_params(adjacency=adjacency, **given)
    persons = np.r_[np.arange(1, 41), np.zeros(n_rows - 1, int), 0][::-1]
    X, y = np.zeros((len(persons), 2)), (np.arange(len(persons)) % 2).astype(float)
    return audit(model, X, y, persons=persons, n_runs=n_runs, confidence=CONFIDENCE, random_state=0, n_jobs=1)


def no_weight(patched):
    patched.setattr(Persons, "weights", property(lambda self: np.ones(len(self.numbers))))


def weight_before_the_clip(patched):
    """The clipped term of a row times its weight becomes its clipped weighted term."""

    def residuals(query, raw, records, clip=gradient.clip_residuals):
        weights = np.ones((len(raw), 1)) if records.present is None else records.present[:, None]  # of the adversary's records
        terms = clip(gradient.slopes(query.loss, raw, records) * weights, records.inverse_norms, query.clip_norm)
        return np.divide(terms, weights, out=np.zeros_like(terms), where=weights > 0)

    patched.setattr(gradient.Gradient, "residuals", residuals)


def nearest_rounding(patched):
    """With coarse grains, 255 rows do what 8 million would do: each has a weight of half a grain, which is rounded up."""
    patched.setattr(weights_module, "GRAIN", grain := 2.0**-7)
    counts = lambda self: np.bincount(self.numbers)[self.numbers]  # noqa: E731
    patched.setattr(Persons, "weights", property(lambda self: np.rint(1 / counts(self) / grain) * grain))


def number_of_rows_in_delta(patched):
    n_rows, honest, made = [], persons_module.persons_of, Budget.from_parameters.__func__

    def counted(ids):
        n_rows[:] = [len(ids)]
        return honest(ids)

    patched.setattr(persons_module, "persons_of", counted)
    patched.setattr(
        Budget, "from_parameters", classmethod(lambda cls, *given: made(cls, *given[:3], *(n_rows or given[3:4]), *given[4:]))
    )


TWINS = {  # number of rows of the canary, of runs, and what else an audit needs
    no_weight: (500, 100, {}),
    weight_before_the_clip: (50, 100, {}),
    nearest_rounding: (255, 900, {}),
    number_of_rows_in_delta: (500, 100, {"delta": None}),
}


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", MODELS)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(name, adjacency):
    """A false alarm has probability at most 1e-4 per view. All of a Gaussian release would prove 2.0 with 800 runs."""
    result = attacked(name, adjacency)
    assert result.consistent and result.bound("transcript").epsilon > 1.2


@pytest.mark.parametrize("twin", [weight_before_the_clip, *slow(*(twin for twin in TWINS if twin is not weight_before_the_clip))])
@pytest.mark.parametrize("name", ("logistic", *slow("linear")))
def test_every_broken_twin_is_caught(name, twin, monkeypatch):
    n_rows, n_runs, given = TWINS[twin]
    twin(monkeypatch)
    result = attacked(name, n_rows=n_rows, n_runs=n_runs, **given)
    assert result.epsilon == 4.0
    assert result.bound("transcript").epsilon > 4.0


@pytest.mark.slow
def test_an_honest_default_delta_stays_below_the_claim():
    assert attacked("logistic", n_runs=100, delta=None).consistent


@pytest.mark.slow
def test_the_canary_person_is_replaced_by_one_of_another_number_of_rows(monkeypatch):
    """Her rows may be anywhere; under ``zero_out`` they become null rows."""
    seen, fit = [], DPLogisticRegression.fit

    def kept(model, X, y, **given):
        seen.append((X[:, 0].tolist(), y.tolist(), given["persons"].tolist()))
        return fit(model, X, y, **given)

    monkeypatch.setattr(DPLogisticRegression, "fit", kept)
    X, y, persons = (
        np.arange(8.0)[:, None],
        np.array([0, 0, 1, 0, 1, 1, 0, 1]),
        np.array(["b", "a", "b", "c", "d", "b", "e", "f"]),
    )
    for adjacency, n_rows in (("replace_one", 1), ("zero_out", 3)):
        del seen[:]
        audit(sklearn.base.clone(MODELS["logistic"]).set_params(adjacency=adjacency), X, y, persons=persons, n_runs=20)
        others = [1.0, 3.0, 4.0, 6.0, 7.0]
        assert [table[0][-5:] for table in seen] == [others] * len(seen)
        absent, present = seen[1], seen[2]
        assert len(absent[0]) == n_rows + 5 and len(present[0]) == 8
        assert len(set(present[0][:3])) == 1 and present[1][:3] == [1, 1, 1]
        assert absent[1][:n_rows] == ([0] if n_rows == 1 else [1, 1, 1])


def test_audits_of_persons_need_them():
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"expected audit\(model, X, y, persons=ids\) with one id per row\.$"):
        audit(MODELS["logistic"], X, y)
    with pytest.raises(TypeError, match="expected privacy_unit='person'"):
        audit(sklearn.base.clone(MODELS["logistic"]).set_params(privacy_unit="record"), X, y, persons=y)
    with pytest.raises(ValueError, match="canaries of one run are single rows"):
        audit_one_run(MODELS["logistic"], X, y)
