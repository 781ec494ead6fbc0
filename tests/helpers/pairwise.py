"""Some combinations out of many, such that every value, or every two values that meet in any of them, is still in one."""

from itertools import combinations_with_replacement

__all__ = ["covering", "pairs_of", "pairwise", "values_of"]


def values_of(combination):
    """Values of a combination, each with its place."""
    return set(enumerate(combination))


def pairs_of(combination):
    """Pairs of values of a combination, each value with its place; a value and itself is one of them."""
    return set(combinations_with_replacement(enumerate(combination), 2))


def covering(candidates, parts_of):
    """Combinations that have all parts of the candidates; takes the one with most new parts until none is missing.

    The same candidates give the same combinations.
    """
    left = {candidate: parts_of(candidate) for candidate in candidates}
    chosen, missing = [], set().union(*left.values())
    while missing:
        best = max(left, key=lambda candidate: len(left[candidate]))
        chosen.append(best)
        missing -= left[best]
        left = {candidate: parts & missing for candidate, parts in left.items() if parts & missing}
    return chosen


def pairwise(candidates):
    """Combinations that have all pairs of the candidates.

    For all pairs of a product, give it ``itertools.product(...)``; where not all values go together, those that do.
    A pair may not be enough for a fault that takes three values at once.
    """
    return covering(candidates, pairs_of)
