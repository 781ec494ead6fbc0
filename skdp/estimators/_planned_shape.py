"""Read the shape of the table that a plan is for, from numbers, a shape or a table."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from skdp._table_types import TypedColumns, as_frame
from skdp._validation import check_integer, column_labels, shown
from skdp.preprocessing._frame_facts import leaves_to_learn
from skdp.privacy.noise.gaussian import MAX_FEATURES

MOST = 2**53  # largest number of records or features of a plan; float64 holds all integers up to it


class Shape(NamedTuple):
    """Numbers of records and of features (None if unknown), and whether they were read from a table."""

    n_samples: int
    n_features: int | None
    of_table: bool


def read_shape(n_samples: Any, n_features: Any) -> Shape:
    """Return the shape that a plan is for; nothing but the shape of a table is read."""
    n_samples = as_frame(n_samples)
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


def planned_table(schema: Any, n_samples: Any, n_features: Any) -> Any:
    """Return the table whose columns a plan is to learn: what is given, or one of numbers if only a shape is given."""
    n_samples = as_frame(n_samples)
    if not isinstance(n_samples, (Integral, tuple)) or not leaves_to_learn(schema):
        return n_samples
    shape = read_shape(n_samples, n_features)
    if shape.n_features is None:
        raise TypeError("n_features=None with columns to learn; expected an integer, or the data frame as n_samples.")
    if not isinstance(schema, str) or schema != "learn":
        raise TypeError(
            "The schema leaves some columns to learn, and a shape does not tell which these are; expected the data frame as "
            'n_samples, of which only names and types are read, or schema="learn".'
        )
    check_integer("n_features", shape.n_features, minimum=1, maximum=MAX_FEATURES)
    return TypedColumns(dict.fromkeys(column_labels(None, shape.n_features), np.dtype(np.float64)), shape.n_samples)
