"""The canary audit through partitions: a correct fit passes, and each broken twin is caught."""

import numpy as np
import pytest
from partitions import of_records
from seeded import fitted

from skdp import DPLogisticRegression
from skdp.audit import audit
from skdp.data import chunks
from skdp.estimators._partitioned import read_partitions
from skdp.losses import Logistic
from skdp.privacy.data.partition import Chunk, Partition, partial_sum, prepared
from skdp.privacy.data.spill import Spill
from skdp.privacy.errors import SourceError
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import Gradient
from skdp.solvers import GradientDescent

CUTS = [1, 1, 7, 12]  # the canary is alone in the first partition; the second one is empty
X, Y = np.zeros((20, 2)), np.repeat([0, 1, 0, 1], (7, 1, 4, 8))  # the last partition has the label of the canary
N_RUNS = 500


class InPartitions:
    """A checked table, whose rows are in partitions behind the oracle; ``tamper`` maps their labels to a breach of the tree."""

    def __init__(self, table, tamper):
        self.table, self.tamper, self.facts, self.given = table, tamper, table.facts, table.given

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def rows(self, bounds):
        X, y, groups = self.table._taken()
        return of_records(X, y, CUTS, bounds, groups, tamper=self.tamper(y))


class Correct(DPLogisticRegression):
    """Fits in partitions whatever table it gets."""

    class _task_class(DPLogisticRegression._task_class):
        def checked(self, *given):
            return InPartitions(super().checked(*given), self.estimator._tamper)

    def _tamper(self, y):
        return lambda sums: sums


class CountedTwice(Correct):
    """The first partition enters the sum twice."""

    def _tamper(self, y):
        def doubled(sums):
            for node in sums[0]._nodes[:1]:
                node *= 2
            return sums

        return doubled


class LeftOut(Correct):
    """The last partition is left out if the label of the first record is 0."""

    def _tamper(self, y):
        return lambda sums: sums if y[0] else sums[:-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, adjacency",
    (
        (Correct, "replace_one"),
        pytest.param(Correct, "zero_out", marks=pytest.mark.slow),
        (CountedTwice, "replace_one"),
        (LeftOut, "replace_one"),
    ),
)
def test_the_audit_passes_a_correct_fit_and_catches_a_tree_that_is_not_the_table_s(kind, adjacency):
    """A correct fit fails with a probability of at most 1e-4."""
    model = kind(4.0, delta=1e-5, adjacency=adjacency, classes=[0, 1], data_norm=1.0, solver=GradientDescent(1))
    result = audit(model, X, Y, n_runs=N_RUNS, views="transcript", confidence=1 - 1e-4, random_state=0)
    assert result.consistent == (kind is Correct)
    assert result.bounds[0].epsilon > 1.0  # the attack has teeth


def three_labels():
    """A table whose labels do not come in their order, and a function that yields it in parts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.repeat(["c", "b", "a"], 1000)
    return X, y, chunks(lambda: ((X[s : s + 700], y[s : s + 700]) for s in range(0, 3000, 700)))


def draws(monkeypatch, model, *data):
    """How often noise is added during a fit, and the fitted coefficients."""
    number, add_to = [], GridGaussian.add_to
    with monkeypatch.context() as patch:
        patch.setattr(GridGaussian, "add_to", lambda *given: number.append(1) or add_to(*given))
        coef = fitted(model, *data).coef_
    return len(number), coef


def test_noise_is_added_once_per_release_and_noise_per_partition_is_caught(monkeypatch):
    X, y, table = three_labels()
    model = DPLogisticRegression(data_norm=1.0, solver=GradientDescent(5))
    in_memory, wanted = draws(monkeypatch, model, X, y)
    in_partitions, coef = draws(monkeypatch, model, table)
    assert in_memory == in_partitions == 5
    np.testing.assert_array_equal(coef, wanted)

    def noisy(*given):
        total, source = partial_sum(*given), NoiseSource()
        for node in total._nodes:
            if node is not None:
                node += source.normal(node.size)
        return total

    monkeypatch.setattr("skdp.privacy.engines.threads.partial_sum", noisy)
    assert not np.array_equal(draws(monkeypatch, model, table)[1], wanted)


def test_kept_norms_bound_no_other_records_and_the_fingerprint_stops_them():
    """A partition that is loaded again with longer rows: with the old norms a record moves the sum beyond the clip norm."""
    secret, kept, query = bytes(32), {}, Gradient(Logistic(), np.array([[0.0], [0.0]]), 0.5)

    def loaded(size):
        chunk = Chunk(np.array([[size, 0.0]]), np.zeros(1, dtype=np.int16))
        return prepared(
            Partition((chunk,), chunk.digest(secret), keep=lambda name, new: kept.setdefault(name, new)), {"data_norm": 1.0}, None
        )

    first, again = loaded(1.0), loaded(30.0)
    assert np.linalg.norm(partial_sum(first, query, 0, first.digest).total()) == 0.5
    with pytest.raises(SourceError, match="The source changed while it was read"):
        partial_sum(again, query, 0, first.digest)
    unchecked = again.digest  # a twin without the comparison
    assert np.linalg.norm(partial_sum(again, query, 0, unchecked).total()) > 10 * query.clip_norm


def test_labels_are_looked_up_once_and_a_second_time_is_caught(monkeypatch):
    X, y, table = three_labels()
    model = DPLogisticRegression(data_norm=1.0, solver=GradientDescent(5))
    wanted = fitted(model, X, y).coef_
    np.testing.assert_array_equal(fitted(model, table).coef_, wanted)

    def twice(part, bounds, lookup, *groups):
        return prepared(part, bounds, lookup[lookup], *groups)

    monkeypatch.setattr("skdp.privacy.data.partitioned_rows.prepared", twice)
    assert not np.array_equal(fitted(model, table).coef_, wanted)


def test_preparing_a_kept_partition_again_changes_nothing():
    """A task may run several times: what it reads, no run overwrites."""
    spill, lookup, codes = Spill(), np.array([2, 0, 1]), np.array([0, 1, 2, 0], dtype=np.int16)
    chunk, keep = spill.keep(Chunk(np.ones((4, 2)), codes, codes[::-1].copy()))
    kept = Partition((chunk,), b"", keep=keep)
    for _ in range(2):
        (rows,) = prepared(kept, {"data_norm": 1.0}, lookup, lookup).rows
        np.testing.assert_array_equal(rows._y, lookup[codes])
        np.testing.assert_array_equal(rows._groups, lookup[codes[::-1]])
    spill.close()


def test_the_order_in_which_labels_come_shows_nowhere():
    """Neighbours with the same labels may have them in another order: facts, numbers of classes and their dtype are the same."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), np.tile(["b", "c", "a", "c", "b"], 100)
    stated = set()
    for first in ("a", "b", "c"):
        order = np.argsort(y != first, kind="stable")
        parts = [order[start::5] for start in range(5)]
        source = chunks(lambda parts=parts: ((X[part], y[part]) for part in parts))
        with read_partitions(DPLogisticRegression()._task(), source, None) as table:
            table.rows({"data_norm": 1.0})
            (kept,) = table.engine._partitions
            np.testing.assert_array_equal(kept.rows[0]._y, np.searchsorted(["a", "b", "c"], y[np.concatenate(parts)]))
            stated.add((kept.rows[0]._y.dtype, *table.facts.labels, table.facts.n_samples, table.facts.partitions))
    assert len(stated) == 1
