"""The queries of rescaled_gd: their definitions, and their sensitivities searched for over neighbours."""

import math

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import Absolute, EpsilonInsensitive, Quantile
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import (
    LEAST_EXPONENT,
    DistanceHistogram,
    FeatureSums,
    ResidualSigns,
    ShortenedGradient,
    Standardization,
    TargetExponents,
    TargetHistogram,
)

STORAGES = {"C": np.ascontiguousarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
R, D, N = 1.3, 3, 40
NULL = np.array([0, 3])
ANY = np.array(
    [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 0.5, -0.75, 1.0, -1.0, 3.0, 1e6, -1e6, 1e150, 1e308, -1.7976931348623157e308]
)
EDGES = np.array([-2.0, -1.0, -1.0, 0.0, 0.5, 3.0])
every_storage = pytest.mark.parametrize("storage", STORAGES)
null_or_not = pytest.mark.parametrize("null", (False, True))


def rows_of(storage, X, y, null, intercept=True):
    rows, kept = (
        TrainingData(STORAGES[storage](X), y, data_norm=R, intercept_scaling=0.7 * intercept),
        np.ones(len(y), dtype=bool),
    )
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    return rows, kept


@every_storage
@null_or_not
def test_every_target_falls_into_the_range_of_its_exponent(storage, null):
    rows, kept = rows_of(storage, np.zeros((ANY.size, D)), ANY, null)
    query = TargetExponents()
    counts = query.evaluate(rows)
    assert counts.size == query.size and counts.sum() == kept.sum()
    assert counts[0] == np.count_nonzero(ANY[kept] == 0)
    for exponent in (-1073, -1021, 0, 1, 2, 20, 499, 1024):
        ends = [math.ldexp(1.0, exponent - 1), math.ldexp(1.0, exponent) if exponent < 1024 else math.inf]
        inside = (ends[0] <= np.abs(ANY)) & (np.abs(ANY) < ends[1]) & kept
        assert counts[exponent - LEAST_EXPONENT] == np.count_nonzero(inside)


@pytest.mark.parametrize("kind", ("targets", "lengths"))
def test_a_record_moves_no_other_where_the_edges_are_in_disorder(kind, rng):
    """A binary search may begin where that of the record before ended, which is right in sorted edges only."""
    plain = Standardization(np.zeros(1), np.ones(1), False, 9.0)
    for edges in rng.uniform(0, 3, size=(200, 8)):
        query = TargetHistogram(edges) if kind == "targets" else DistanceHistogram(plain, edges)
        values, changed = rng.uniform(0, 3, size=(2, N))
        changed[1:] = values[1:]
        first, second = (query.evaluate(TrainingData(v[:, None], v, data_norm=9.0)) for v in (values, changed))
        assert np.linalg.norm(first - second) <= query.sensitivity("replace_one") + 1e-12


def shortened(query, X, y, kept, intercept):
    """The definition of a shortened gradient."""
    X = X * (R / np.maximum(np.linalg.norm(X, axis=1), R))[:, None]
    z = (X - query.geometry.centre) @ (query.geometry.scale if query.geometry.scale.ndim == 2 else np.diag(query.geometry.scale))
    z = np.column_stack([z, np.ones(len(z))]) if intercept else z
    residuals = query.loss.derivative(query.offset + query.unit * (z @ query.coef), y)[:, 0]
    weights = np.minimum(1, query.clip_norm / query.loss.lipschitz / np.linalg.norm(z, axis=1))
    return z.T @ (weights * residuals * kept)


def queries(rng, intercept):
    geometry = Standardization(np.zeros(D) if not intercept else np.full(D, 0.2), np.full(D, 5 / R), intercept, R)
    coef = rng.normal(size=(D + intercept, 1))
    losses = (Quantile(0.1), Absolute(), EpsilonInsensitive(1e-3))
    return [
        TargetExponents(),
        TargetHistogram(EDGES),
        FeatureSums(R, D),
        ResidualSigns(coef),
        *(ShortenedGradient(loss, 10 * coef, 0.3, geometry, offset=5.0, unit=1e3) for loss in losses),
        ShortenedGradient(losses[0], coef, 1e3, geometry, offset=1e300, unit=1e300),
    ]


def test_two_opposite_rows_attain_the_sensitivity_of_a_quantile_without_intercept():
    geometry = Standardization(np.zeros(1), np.ones(1), False, R)
    query = ShortenedGradient(Quantile(0.1), np.zeros((1, 1)), 0.9, geometry)
    sums = [query.evaluate(TrainingData(np.array([[x]]), np.array([-1.0]), data_norm=R))[0] for x in (R, -R)]
    assert sums[0] - sums[1] == pytest.approx(query.sensitivity("replace_one"))
