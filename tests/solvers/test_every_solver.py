"""What holds for every solver: the transcript is the schedule, and the schedule spends the budget."""

import inspect

import numpy as np
import pytest
from products import LOSSES, estimator_of, fitting, labels_of
from seeded import fitted

import skdp
from skdp import DPLogisticRegression
from skdp.privacy.oracle import Oracle
from skdp.solvers import SOLVERS, Solver, _algorithms

X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 3
LABELS = {"binary": y > 0, "multinomial": y, "numbers": X @ [1.0, 2.0, -1.0]}


@pytest.mark.each_pair
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("kind, solver", [(kind, solver) for kind in LOSSES for solver in fitting(kind)])
@pytest.mark.parametrize("epsilon", (0.1, 5.0))
def test_transcript_is_the_schedule_and_spends_the_budget(kind, solver, adjacency, epsilon, monkeypatch):
    oracles = []
    finish = Oracle.finish
    monkeypatch.setattr(Oracle, "finish", lambda self: (oracles.append(self), finish(self))[1])
    model = estimator_of(kind, epsilon=epsilon, adjacency=adjacency, solver=solver)
    fitted(model, X, LABELS[labels_of(kind)])
    (oracle,) = oracles
    kinds = [(line.query, line.mechanism, line.clip_norm) for line in model.privacy_report_.releases for _ in range(line.count)]
    made = [(release.query.__name__, type(release.mechanism).__name__, release.clip_norm) for release in oracle.transcript]
    assert made == kinds
    assert 0.999 * epsilon <= model.privacy_spent_.epsilon <= epsilon


@pytest.mark.parametrize("name", SOLVERS)
def test_a_class_in_place_of_an_object_is_told_how_to_make_one(name):
    kind = SOLVERS[name]
    with pytest.raises(TypeError, match=rf"solver={kind.__name__}; expected an object: solver={kind.__name__}\(\)\."):
        DPLogisticRegression(solver=kind).plan(100, 3)


def test_the_list_of_solvers_holds_solvers_only_and_each_under_a_name_of_its_own():
    """What follows from the list, such as the classes that model files may hold, is as narrow as the list is."""
    listed = {name: thing for name, thing in vars(_algorithms).items() if not name.startswith("__")}
    assert all(issubclass(kind, Solver) and not inspect.isabstract(kind) for kind in listed.values())
    assert sorted(listed) == sorted(kind.__name__ for kind in SOLVERS.values())
    assert all(kind.name == name for name, kind in SOLVERS.items()) and set(listed) <= set(skdp.solvers.__all__)
