"""Read the shape of the table that a plan is for, from numbers, a shape or a table."""

from numbers import Integral
from typing import Any, NamedTuple

from skdp._validation import check_integer, shown

__all__ = ["Shape", "read_shape"]

MOST = 2**53  # largest number of records or features of a plan; float64 holds all integers up to it


class Shape(NamedTuple):
    """Numbers of records and of features (None if unknown), and whether they were read from a table."""

    n_samples: int
    n_features: int | None
    of_table: bool


def read_shape(n_samples: Any, n_features: Any) -> Shape:
    """Return the shape that a plan is for; nothing but the shape of a table is read."""
    of_table = len(getattr(n_samples, "shape", ())) == 2
    pair = n_samples.shape if of_table else n_samples
    if of_table and not all(isinstance(number, Integral) for number in pair):
        raise TypeError(
            "The shape of the table is not known before it is read; expected plan(n_samples, n_features), with both numbers."
        )
    if isinstance(pair, (list, tuple, dict)) and not (isinstance(pair, tuple) and len(pair) == 2):  # perhaps records: not quoted
        raise TypeError(
            f"n_samples is a {type(pair).__name__} of length {len(pair)}; expected a number, a shape "
            "(n_samples, n_features), or a table that has one."
        )
    if isinstance(pair, tuple):
        if n_features is not None:
            raise ValueError(
                f"n_features={shown(n_features)} beside n_samples={shown(n_samples)}; expected None beside a shape or a table, "
                "whose y is not read."
            )
        pair, n_features = pair
    check_integer("n_samples", pair, minimum=2, maximum=MOST)
    check_integer("n_features", n_features, minimum=1, maximum=MOST, optional=True)
    return Shape(int(pair), None if n_features is None else int(n_features), of_table)
