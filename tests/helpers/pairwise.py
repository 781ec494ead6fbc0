"""Some combinations out of many, such that every two values that meet in any of them still meet in one."""

from itertools import combinations_with_replacement

__all__ = ["pairs_of", "pairwise"]


def pairs_of(combination):
    """Pairs of values of a combination, each value with its place; a value and itself is one of them."""
    return set(combinations_with_replacement(enumerate(combination), 2))


def pairwise(candidates):
    """Combinations that have all pairs of the candidates; takes the one with most new pairs until none is missing.

    For all pairs of a product, give it ``itertools.product(...)``; where not all values go together, those that do.
    The same candidates give the same combinations. A pair may not be enough for a fault that takes three values at once.
    """
    left = {candidate: pairs_of(candidate) for candidate in candidates}
    chosen, missing = [], set().union(*left.values())
    while missing:
        best = max(left, key=lambda candidate: len(left[candidate]))
        chosen.append(best)
        missing -= left[best]
        left = {candidate: pairs & missing for candidate, pairs in left.items() if pairs & missing}
    return chosen
