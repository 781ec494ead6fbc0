"""Tests saddle problems of users: which factors are refused, and which arrays they cannot write to."""

import numpy as np
import pytest
from scipy import sparse

from skdp.minimax import Factors, SaddleProblem
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import DualGradient, JointGradient, PrimalDifference, PrimalGradient

QUERIES = {
    "primal": lambda saddle, point: PrimalGradient(saddle, *point, 1.0),
    "dual": lambda saddle, point: DualGradient(saddle, *point, 1.0),
    "joint": lambda saddle, point: JointGradient(saddle, *point, 1.0, 1.0, 0.3),
    "difference": lambda saddle, point: PrimalDifference(saddle, *point, *(part + 1 for part in point), 1.0, 0.0, 1.0),
}
every_query = pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)


class Foreign(SaddleProblem):
    """One record after the other has the gradient (2, 2) on the primal side, and 1 on the dual one."""

    n_primal, n_dual = 2, 1
    part = Factors

    def __init__(self, constant=0.0):
        self.constant = constant

    def at(self, batch, primal, dual):
        self.n_records = len(batch.targets)
        return self

    def primal(self):
        wide = 1 if self.constant else 2
        return [self.part(np.full((self.n_records, 1), 2.0), np.ones((self.n_records, wide)), self.constant)]

    def dual(self):
        return [self.part(np.ones((self.n_records, 1)), np.ones((self.n_records, 0 if self.constant else 1)), self.constant)]


class Longer(Factors):
    def total(self, weights):
        return 2 * super().total(weights)


def asked(query, saddle):
    rows = TrainingData(np.ones((2, 1)), np.zeros(2), data_norm=1.0).without(np.array([1]))
    return query(saddle, (np.zeros(2), np.zeros(1))).evaluate(rows)


@every_query
@pytest.mark.parametrize("constant", (np.float16(1e-4), np.float32(1e-30), np.int8(100), 1j, "1"))
def test_constants_are_numbers_whose_squares_neither_vanish_nor_wrap_around(query, constant):
    with pytest.raises(PrivacyAccountingError, match="must be Factors, and their constants"):
        asked(query, Foreign(constant))
    for fine in (0.0, 1, True, np.float64(0.5)):
        assert np.isfinite(asked(query, Foreign(fine))).all()


@every_query
def test_parts_add_up_what_their_norms_are_of(query):
    saddle = Foreign()
    saddle.part = Longer
    with pytest.raises(PrivacyAccountingError, match="must be Factors, and their constants"):
        asked(query, saddle)


@every_query
def test_entries_stored_twice_are_found_whatever_the_matrix_says(query):
    class Flagged(Foreign):
        def primal(self):
            return [Factors(np.ones((2, 1)), flagged(2))]

        def dual(self):
            return [Factors(np.ones((2, 1)), flagged(1))]

    def flagged(width):
        entries = sparse.csr_array((np.ones(6), np.zeros(6, dtype=int), [0, 3, 6]), shape=(2, width))
        entries.has_canonical_format = True
        return entries

    with pytest.raises(PrivacyAccountingError, match="without duplicate entries"):
        asked(query, Flagged())


@every_query
@pytest.mark.parametrize("what", ("primal", "dual", "targets", "present"))
def test_a_problem_cannot_write_to_what_it_is_given(query, what):
    """A point that takes up records would leave as the next iterate, without noise."""

    class Writing(Foreign):
        def at(self, batch, primal, dual):
            array = {"primal": primal, "dual": dual, "targets": batch.targets, "present": batch.present}[what]
            array += 1
            return super().at(batch, primal, dual)

    with pytest.raises(ValueError, match="read-only"):
        asked(query, Writing())
