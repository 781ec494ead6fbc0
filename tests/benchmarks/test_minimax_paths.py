"""The witness of the benchmark of ranking: what it takes for the truth is true, and what it sees is what the solver does."""

import warnings

import numpy as np
import pytest
from seeded import fitted

from benchmarks.minimax_paths import WatchedMaximizer, Witness, best_dual, clipped_mean, primal_gradient
from benchmarks.tables import Table
from skdp import DPAUCMaximizer
from skdp.minimax import AUCSaddle
from skdp.privacy.data.kernels import Batch
from skdp.scorers import MLPScorer
from skdp.solvers import SGDA, PrivateDiff

N, HIDDEN, STEPS = 500, (4,), 4
SOLVERS = {
    "sgda": lambda batch_size, clip: SGDA(STEPS, batch_size=batch_size, primal_clip_norm=clip),
    "privatediff": lambda batch_size, clip: PrivateDiff(
        STEPS, batch_size=batch_size, primal_clip_norm=clip, difference_slope=1e3
    ),
}


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, size=(N, 3))
    y = (X @ [1, -1, 0.5] + 0.3 * rng.normal(size=N) > 0.4).astype(int)
    return Table(X, y, X[:50], y[:50])


@pytest.fixture
def saddle(table):
    return AUCSaddle(MLPScorer(3, HIDDEN), float(table.y_train.mean()))


def objective(saddle, primal, dual, table):
    """Mean over the records, with the part that none of them enters, in the units of the solvers."""
    batch = saddle.read(Batch(table.X_train, table.y_train))
    return saddle.value(batch, primal, np.array([dual])).mean() / saddle.divisor - dual**2 / 2


def test_the_primal_function_is_the_largest_value_and_its_gradient_that_of_differences(table, saddle, rng):
    """A grid of dual variables has no better one; slopes along random directions agree."""
    primal = rng.normal(size=saddle.n_primal) / 2
    largest = objective(saddle, primal, best_dual(saddle, primal, table.X_train, table.y_train)[0], table)
    assert largest >= max(objective(saddle, primal, dual, table) for dual in np.linspace(-1, 1, 201))
    gradient = primal_gradient(saddle, primal, table.X_train, table.y_train)
    for _ in range(5):
        step = 1e-6 * rng.normal(size=primal.size)
        sides = [
            objective(saddle, w, best_dual(saddle, w, table.X_train, table.y_train)[0], table)
            for w in (primal + step, primal - step)
        ]
        assert (sides[0] - sides[1]) / 2 == pytest.approx(gradient @ step, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_without_noise_and_samples_there_is_no_error(table, name):
    """Nor does a clip that shortens most gradients make one for "sgda"; for "privatediff" a long enough one does not."""
    path = watched(table, SOLVERS[name](N, 0.5 if name == "sgda" else 1e3), np.inf, N)
    assert path["step"] == [0, 2] and path["sampling"] == [0.0, 0.0]
    assert np.max(path["squared_error"]) < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_the_witness_changes_nothing(table, name):
    """The model is the same to the last bit."""
    models = [maximizer(kind, SOLVERS[name](100, None), 5.0) for kind in (DPAUCMaximizer, WatchedMaximizer)]
    models[1].witness = Witness(table, STEPS, 100 / N, 2)
    scores = [fitted(model, table.X_train, table.y_train).decision_function(table.X_test) for model in models]
    np.testing.assert_array_equal(*scores)
    assert 0 < models[1].witness.seconds


def test_the_error_of_samples_is_as_foretold(table, saddle, rng):
    """Mean over 2000 samples, within 5 standard deviations of that mean: fewer than one false alarm in a million."""
    primal, dual, rate, clip = rng.normal(size=saddle.n_primal), np.zeros(1), 0.2, 0.5
    mean, square = clipped_mean(saddle, primal, dual, table.X_train, table.y_train, clip)
    each = np.array(
        [clipped_mean(saddle, primal, dual, table.X_train[i : i + 1], table.y_train[i : i + 1], clip)[0] for i in range(N)]
    )
    np.testing.assert_allclose(each.mean(axis=0), mean, atol=1e-12)
    assert np.linalg.norm(each, axis=1).max() == pytest.approx(clip / saddle.divisor)
    drawn = rng.random((2000, N)) < rate
    errors = (((drawn @ each) / (rate * N) - mean) ** 2).sum(axis=1)
    assert abs(errors.mean() - square * (1 - rate) / (rate * N)) < 5 * errors.std() / np.sqrt(2000)


def test_the_error_of_full_releases_is_that_of_their_noise(table):
    """Sum over all steps and coordinates, within 6 standard deviations of a chi-square: one false alarm in 10^8."""
    solver, given = SGDA(STEPS, batch_size=N), {"hidden": (64,), "positive_rate": 0.3}
    path = watched(table, solver, 1.0, N, **given)
    planned = maximizer(DPAUCMaximizer, solver, 1.0, **given).plan(N, 3)
    divisor, clip_norm = 0.6, 3.0  # of the rate; of networks
    deviation = planned.releases[-1].noise_multiplier * clip_norm / np.sqrt(1 - solver.dual_share) / (N * divisor)
    freedom = STEPS * (MLPScorer(3, (64,)).n_parameters + 2)
    assert abs(np.sum(path["squared_error"]) / deviation**2 - freedom) < 6 * np.sqrt(2 * freedom) < 0.3 * freedom


def maximizer(kind, solver, epsilon, hidden=HIDDEN, **given):
    given |= {"adjacency": "zero_out", "classes": [0, 1]}
    return kind(epsilon, scorer="mlp", hidden_layer_sizes=hidden, solver=solver, **given)


def watched(table, solver, epsilon, batch_size, **given):
    """What the witness of a fit wrote down."""
    model = maximizer(WatchedMaximizer, solver, epsilon, **given)
    model.witness = Witness(table, STEPS, batch_size / N, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted(model, table.X_train, table.y_train)
    return model.witness.found
