"""Scorers: gradients against finite differences of plain networks, and that every row is worked out alone."""

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy.data.gradient_factors import lengths, n_entries
from skdp.scorers import LinearScorer, MLPScorer

CENTRE, SCALE = np.array([0.5, -1.0, 0.0, 2.0, 0.1, 0.0]), np.array([2.0, 0.5, 1.0, 3.0, 1e-3, 1.0])
SCORERS = {
    "linear": LinearScorer(6),
    "linear, one feature": LinearScorer(1),
    "linear, standardised": LinearScorer(6, CENTRE, SCALE),
    "linear, scaled": LinearScorer(6, scale=SCALE),
    "no hidden layer": MLPScorer(6, ()),
    "one unit": MLPScorer(6, (1,)),
    "one feature": MLPScorer(1, (7,)),
    "all of width one": MLPScorer(1, (1, 1)),
    "one layer": MLPScorer(6, (9,)),
    "two layers": MLPScorer(6, (9, 5)),
    "three layers": MLPScorer(6, (3, 17, 2)),
    "four layers": MLPScorer(6, (7, 8, 5, 6)),
    "centred network": MLPScorer(6, (8,), CENTRE),
    "standardised network": MLPScorer(6, (9, 5), CENTRE, SCALE),
}
every_scorer = pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
STORAGES = {"C": np.ascontiguousarray, "csr": sparse.csr_matrix, "csr_array": sparse.csr_array}
every_storage = pytest.mark.parametrize("storage", STORAGES)


def width(scorer):
    return scorer.n_features


def made(rng, scorer, m, sparsity=0.3):
    """Rows, parameters without dead ends, residuals."""
    rows = rng.normal(size=(m, width(scorer))) * (rng.random((m, width(scorer))) > sparsity)
    return rows, scorer.start(rng) + 0.3 * rng.normal(size=scorer.n_parameters), rng.normal(size=m)


def plain(scorer, rows, parameters):
    """The scorer from its definition, by ordinary products."""
    units = (rows - (0 if scorer.centre is None else scorer.centre)) * (1 if scorer.scale is None else scorer.scale)
    if isinstance(scorer, LinearScorer):
        return units @ parameters
    first = 0
    for number, (outputs, inputs) in enumerate(scorer.shapes):
        weights, biases = np.split(parameters[first : first + outputs * (inputs + 1)], [outputs * inputs])
        units = units @ weights.reshape(outputs, inputs).T + biases
        units = np.maximum(units, 0) if number < len(scorer.shapes) - 1 else units
        first += outputs * (inputs + 1)
    return units[:, 0]


def numerical(scorer, rows, parameters, step=1e-6):
    """Gradients of the scores, one row per record."""
    shifts = step * np.eye(parameters.size)
    return np.stack([plain(scorer, rows, parameters + s) - plain(scorer, rows, parameters - s) for s in shifts], axis=1) / (
        2 * step
    )


@every_scorer
@every_storage
@pytest.mark.parametrize("m", (1, 40))
def test_scores_norms_and_sums_are_those_of_the_definition(scorer, storage, m, rng):
    """Of the grid on which products are worked out, 25 bits are left here."""
    rows, parameters, residuals = made(rng, scorer, m)
    scored = scorer.at(scorer.read(STORAGES[storage](rows)), parameters)
    np.testing.assert_allclose(scored.scores, plain(scorer, rows, parameters), rtol=1e-6, atol=1e-6)
    parts, gradients = scored.gradients(residuals), residuals[:, None] * numerical(scorer, rows, parameters)
    assert n_entries(parts) == scorer.n_parameters
    np.testing.assert_allclose(lengths(parts), np.linalg.norm(gradients, axis=1), rtol=1e-5, atol=1e-6)
    weights = rng.random(m)
    total = np.concatenate([part.total(weights) for part in parts])
    np.testing.assert_allclose(total, weights @ gradients, rtol=1e-5, atol=1e-5)


@every_scorer
def test_gradients_of_records_are_those_of_the_definition(scorer, rng):
    """One by one, so that no two errors make up for each other."""
    rows, parameters, residuals = made(rng, scorer, 30)
    gradients = residuals[:, None] * numerical(scorer, rows, parameters)
    parts = scorer.at(scorer.read(rows), parameters).gradients(residuals)
    for record, alone in enumerate(np.eye(30)):
        value = np.concatenate([part.total(alone) for part in parts])
        np.testing.assert_allclose(value, gradients[record], rtol=1e-5, atol=1e-5)


def test_units_that_are_off_pass_nothing_back(rng):
    """All units of a layer, for all records: only the last bias has a gradient."""
    scorer = SCORERS["two layers"]
    rows, parameters, residuals = made(rng, scorer, 20)
    weights, biases = scorer.layers(parameters)[1]
    weights[:], biases[:] = -np.abs(weights), -1.0
    parts = scorer.at(rows, parameters).gradients(residuals)
    total = np.concatenate([part.total(np.ones(20)) for part in parts])
    assert not total[:-1].any()
    assert total[-1] == pytest.approx(residuals.sum())
    np.testing.assert_allclose(lengths(parts), np.abs(residuals))


def bits_of(scored, residuals):
    """Per record, all that it contributes by."""
    parts = scored.gradients(residuals)
    matrices = [matrix.toarray() if sparse.issparse(matrix) else matrix for part in parts for matrix in (part.left, part.right)]
    return [
        tuple(numbers.tobytes() for numbers in record) for record in zip(scored.scores, lengths(parts), *matrices, strict=True)
    ]


WIDE = {"linear, wide": LinearScorer(9000), "wide": MLPScorer(784, (256, 128)), "very wide": MLPScorer(3, (8200, 6))}


@pytest.mark.parametrize("scorer", (*SCORERS.values(), *WIDE.values()), ids=(*SCORERS, *WIDE))
@every_storage
@pytest.mark.parametrize("spread", (0.0, 6.0))
def test_a_record_contributes_alike_whatever_sample_it_is_in(scorer, storage, spread, rng):
    """Bit by bit: scores, factors and norms, over random samples of many sizes."""
    n = 60 if scorer in WIDE.values() else 300
    rows, parameters, residuals = made(rng, scorer, n)
    rows = STORAGES[storage](rows * 10 ** rng.uniform(-spread, spread, size=(n, 1)))
    known = bits_of(scorer.at(scorer.read(rows), parameters), residuals)
    for size in (1, 1, 2, 3, *rng.integers(1, n, 6)):
        chosen = np.sort(rng.choice(n, size, replace=False))
        found = bits_of(scorer.at(scorer.read(rows[chosen]), parameters), residuals[chosen])
        assert found == [known[record] for record in chosen]


@every_scorer
@every_storage
def test_rows_are_read_once_and_are_the_first_factor(scorer, storage, rng):
    """The same object at all points; as they are without centre and scale; never changed."""
    rows, parameters, residuals = made(rng, scorer, 9)
    stored = STORAGES[storage](rows)
    read = scorer.read(stored)
    assert (read is stored) == (scorer.centre is None and scorer.scale is None)
    assert all(scorer.at(read, point).gradients(residuals)[0].right is read for point in (parameters, 2 * parameters))
    assert sparse.issparse(read) == (sparse.issparse(stored) and scorer.centre is None)
    kept = stored.toarray() if sparse.issparse(stored) else stored
    np.testing.assert_array_equal(kept, rows)


@every_scorer
def test_parameters_for_rows_as_they_are_give_the_same_scores(scorer, rng):
    rows, parameters, _ = made(rng, scorer, 25)
    moved = scorer.for_rows(parameters, shift=0.7)
    bare = MLPScorer(width(scorer), [outputs for outputs, _ in scorer.shapes[:-1]]) if isinstance(scorer, MLPScorer) else None
    scores = plain(bare, rows, moved) if bare else rows @ moved[:-1] + moved[-1]
    np.testing.assert_allclose(scores, plain(scorer, rows, parameters) + 0.7, rtol=1e-9, atol=1e-9)


def test_the_start_is_public_and_keeps_the_size_of_what_passes():
    """Same generator, same start; the variance of units that are rectified stays, to 10 %."""
    scorer = MLPScorer(500, (400, 300))
    parameters = scorer.start(np.random.default_rng(3))
    np.testing.assert_array_equal(parameters, scorer.start(np.random.default_rng(3)))
    sizes = [(weights.std() * np.sqrt(weights.shape[1]), np.abs(biases).max()) for weights, biases in scorer.layers(parameters)]
    np.testing.assert_allclose(sizes, [(np.sqrt(2), 0), (np.sqrt(2), 0), (1, 0)], rtol=0.1)
    assert not LinearScorer(4).start(np.random.default_rng(3)).any()
