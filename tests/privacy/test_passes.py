"""Tests the number of passes over the data that a schedule states, also against the passes that fits make."""

import numpy as np
import pytest

from skdp import DPLogisticRegression
from skdp.audit._attack import planned
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import BlockGradient, Gradient, Minimum, ScoreGradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule, SinglePass


def release(query=Gradient, mechanism=None):
    return Release(query, mechanism or Gaussian(), 1.0)


@pytest.mark.parametrize(
    ("entries", "passes"),
    [
        (((1, release()),), 1),
        (((3, release()), (2, release())), 5),
        (((3, release()), (30, release(ScoreGradient))), 4),
        (((10, release(ScoreGradient)), (20, release(ScoreGradient))), 1),
        (((10, release(ScoreGradient)), (2, release()), (20, release(ScoreGradient))), 4),
        (((7, release(Gradient, SinglePass(4))), (5, release(Gradient, SinglePass(2)))), 1),
        (((1, release()), (7, release(Gradient, SinglePass(4)))), 2),
        (((10, release(Gradient, PoissonGaussian(0.125))),), 2),
        (((4, release(Gradient, PoissonGaussian(0.25))), (1, release())), 2),
        (((1, release()), (1, release(Minimum))), None),
        (((5, release(BlockGradient)),), None),
    ],
)
def test_the_number_of_passes_follows_from_the_schedule(entries, passes):
    assert Schedule(entries).passes == passes


@pytest.mark.parametrize("solver", ("gd", "newton", "standardized_gd"))
def test_a_fit_reads_the_records_as_often_as_its_schedule_states(solver, monkeypatch):
    reads = []

    def counted(method):
        return lambda *args, **bounds: reads.append(method) or method(*args, **bounds)

    for name in ("sum", "gram", "totals", "moments", "label_counts"):
        monkeypatch.setattr(TrainingData, name, counted(getattr(TrainingData, name)))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), np.arange(500) % 2
    model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], data_norm=1.0, solver=solver)
    schedule = planned(model, X, y).schedule
    model.fit(X, y)
    assert len(reads) == schedule.passes
