"""Pairwise combinations: no pair is lost, and few are taken."""

from itertools import product
from types import SimpleNamespace

import pytest
from conftest import slow_cases
from pairwise import covering, pairs_of, pairwise, values_of

SIZES = [(2, 2), (5,), (1, 3), (4, 4, 2, 2, 3, 2), (7, 6, 4, 2), (2, 2, 22, 3), (5, 5, 5, 5)]


def pairs(combinations):
    return {pair for combination in combinations for pair in pairs_of(combination)}


def test_pairs_are_those_of_different_places():
    one, two = (0, "a"), (1, "a")
    assert pairs_of("aa") == {(one, one), (one, two), (two, two)}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_pair_of_a_product_is_covered(sizes):
    """By combinations of the product, each once, and hardly more of them than the two longest lists have pairs."""
    values = [range(size) for size in sizes]
    chosen = pairwise(product(*values))
    assert pairs(chosen) == pairs(product(*values))
    assert len(set(chosen)) == len(chosen) and set(chosen) <= set(product(*values))
    longest = sorted(sizes)[-2:]
    assert len(chosen) <= 1.5 * longest[0] * longest[-1]
    assert chosen == pairwise(product(*values))


def test_every_pair_of_what_goes_together_is_covered_and_no_other():
    together = [row for row in product(range(6), range(5), range(4), range(3)) if (row[0] + row[1]) % 2 and row[2] != row[3]]
    chosen = pairwise(together)
    assert set(chosen) <= set(together) and pairs(chosen) == pairs(together) and len(chosen) < len(together) / 4


def test_each_pair_is_missed_without_the_combinations_that_have_it():
    """The twin: what is chosen has hardly anything to spare."""
    chosen = pairwise(product(range(4), range(4), range(2)))
    assert all(pairs(chosen[:i] + chosen[i + 1 :]) != pairs(chosen) for i in range(len(chosen)))


def test_a_single_list_is_taken_as_it_is():
    assert pairwise([]) == []
    assert pairwise([("a",), ("b",)]) == [("a",), ("b",)]


def test_every_value_is_covered_by_as_few_as_the_longest_list_has():
    chosen = covering(product(range(7), range(4), range(2)), values_of)
    assert len(chosen) == 7 and {value for one in chosen for value in values_of(one)} == {
        *((0, value) for value in range(7)),
        *((1, value) for value in range(4)),
        *((2, value) for value in range(2)),
    }


@pytest.mark.parametrize("mark, number", (("each_value", 5), ("each_pair", 15), ("other", 30)))
def test_cases_beyond_those_that_a_mark_asks_for_are_slow(mark, number):
    """Values of another type are others, and so are objects."""
    things = [object(), object(), object()]
    items = [
        SimpleNamespace(
            nodeid=f"test[{number}]",
            callspec=SimpleNamespace(params=dict(zip("abc", values, strict=True))),
            iter_markers=lambda: [SimpleNamespace(name=mark)],
        )
        for number, values in enumerate(product((0, 0.0, False, "0", None), things, (1, 2)))
    ]
    slow = list(slow_cases(items))
    assert len(items) - len(slow) == number and all(item in items for item in slow)
