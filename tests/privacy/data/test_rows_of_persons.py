"""Rows of persons: weights that add up to exactly 1, and rows that are the same to the last bit wherever they stand."""

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy.data.packed_rows import PackedCategory, PackedRows
from skdp.privacy.data.persons import GRAIN, Persons
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData

D, KEY = 60, bytes(range(32))


@pytest.mark.parametrize("k", (1, 2, 3, 5, 7, 499, 500, 10_000, 2**22 + 1))
def test_the_weights_of_a_person_add_up_to_exactly_one(k):
    weights = Persons(np.zeros(k, dtype=np.int32), 1).weights
    assert weights.sum() == 1 and weights.min() >= 0
    assert weights.max() - weights.min() in (0, GRAIN)
    np.testing.assert_array_equal(weights / GRAIN, np.rint(weights / GRAIN))


def test_weights_depend_neither_on_other_persons_nor_on_the_order_of_numbers(rng):
    numbers = rng.integers(40, size=300)
    numbers[:40] = np.arange(40)
    weights = Persons(numbers, 40).weights
    np.testing.assert_array_equal(np.bincount(numbers, weights), np.ones(40))
    np.testing.assert_array_equal(weights, Persons(rng.permutation(40)[numbers], 40).weights)
    others = numbers != 7
    np.testing.assert_array_equal(weights[others], Persons(numbers[others] - (numbers[others] > 7), 39).weights)


def packed(rows):
    codes = [np.clip(np.rint(3 * column), 0, 2).astype(np.uint8) for column in rows.T]
    return PackedRows([PackedCategory(3 * place, 3, 0.3 + place / 100) for place in range(D)], codes, 3 * D)


STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda rows: rows.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "packed": packed,
}


@pytest.mark.parametrize("n_shared, sizes", ((BLOCK, (1, 2)), (BLOCK + 40, (1, 33, 64))))  # a last row alone, and others
@pytest.mark.parametrize("storage", STORAGES)
def test_what_rows_of_others_are_does_not_depend_on_the_number_of_rows_of_a_person(storage, n_shared, sizes, rng):
    """BLAS gives rows other bits at other places of a block. Her rows come first, and move all others."""
    shared, own = rng.normal(size=(n_shared, D)), rng.normal(size=(64, D))
    found = [facts_of(STORAGES[storage], np.vstack([own[:k], shared]), k) for k in sizes]
    for facts in found[1:]:
        for name, one in facts.items():
            assert len(one)
            np.testing.assert_array_equal(one, found[0][name], err_msg=name)


def facts_of(storage, rows, k):
    """Return what queries see of the shared rows, and all that is public."""
    rng = np.random.default_rng(0)
    n_persons = len(rows) - k + 1
    table = TrainingData(
        storage(rows),
        np.arange(len(rows)) % 2,
        data_norm=4.0,
        intercept_scaling=1.0,
        by_column=True,
        persons=Persons(np.r_[np.zeros(k, dtype=int), np.arange(1, n_persons)], n_persons),
    )
    d = table.n_features
    coef, matrix = rng.normal(size=(d + 1, 2)), rng.normal(size=(d, d)) / 9
    seen = {"public": [table.n_samples, table.n_features, table.summation_error]}

    def noted(name, facts):
        facts = facts.toarray() if sparse.issparse(facts) else facts
        seen[name] = np.vstack([seen.get(name, facts[:0]), facts])
        return facts

    def noting(name):
        def kernel(raw, records):
            noted(name, np.column_stack([raw[:, 0], records.inverse_norms]))
            return raw[:, :1].copy()

        return kernel

    table.sum(coef, noting("sum"))
    table.gram(coef, noting("gram"))
    table.block_sum(coef, np.array([0, 3]), noting("block"), 1.0)
    table.clipped_sum(coef, noting("clipped"), 0.5, kept=True)
    table.standardized(np.full(d, 0.1), np.full(d, 0.7)).sum(coef, noting("standardized"))
    table.standardized(np.full(d, 0.1), matrix).sum(coef, noting("whitened"))
    mapped = table.mapped(sparse.csr_array(np.round(matrix[:, :9], 1)))
    mapped.sum(coef[:10], noting("mapped"))
    sample = table.sampled(KEY, 0.6)
    drawn = sample._blocks.sample
    inside = int((drawn < k).sum())
    assert inside in (0, k)
    sample.sum(coef, noting("sample"))
    sample.standardized(np.full(d, 0.1), matrix).sum(coef, noting("sample, whitened"))
    sample.batch_sum(lambda batch: noted("batches of a sample", batch.rows[:, :2]).sum(axis=0), 2)
    seen["coins"] = np.arange(len(rows))[drawn] - k
    offsets = {name: inside for name in ("sample", "sample, whitened", "batches of a sample", "coins")} | {"public": 0}
    if d == D:  # packed rows have bins of their own
        seen["scores"] = table.binned(lambda block: np.zeros((1, block.shape[0]), dtype=np.uint8), coef)._scores.T
    return {name: facts[offsets.get(name, k) :] for name, facts in seen.items()}


def test_scores_of_a_person_do_not_depend_on_where_blocks_end(rng):
    """A person with rows in two blocks, and one with more rows than a block has."""
    rows = rng.normal(size=(3 * BLOCK, 3))
    numbers = np.r_[np.zeros(BLOCK - 5, dtype=int), np.full(9, 1), np.full(len(rows) - BLOCK - 5, 2), 3]
    table = TrainingData(rows, numbers, data_norm=9.0, intercept_scaling=1.0, persons=Persons(numbers, 4))
    coef = np.ones((4, 1))
    found = table.score_products(coef, lambda raw, records: raw)
    raw = np.column_stack([rows, np.ones(len(rows))])
    weighted = raw * (raw @ coef) * Persons(numbers, 4).weights[:, None]
    scores = np.array([weighted[numbers == person].sum(axis=0) for person in range(4)])
    np.testing.assert_allclose(found, scores.T @ scores, rtol=1e-12)
