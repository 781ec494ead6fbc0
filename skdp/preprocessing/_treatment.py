"""Describe tables with columns in their own units and categories relative to a reference level, for inference."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skdp.preprocessing._column_kinds import Column
from skdp.preprocessing._schema import Schema


@dataclass(frozen=True)
class TreatmentSchema(Schema):
    """Describe the same columns as a schema, with treatment coding of the categories.

    Numbers stay in their own units. The first category of a column is its reference level, and each other category has an
    indicator. Indicators of all levels would add up to 1, which is the intercept, so that no budget could tell them apart. Values
    that are not listed belong to "other" if it is listed, and to the reference level if not. Where one category is listed, all
    other values are the reference level.
    """

    @classmethod
    def of(cls, schema: Schema) -> "TreatmentSchema":
        """Return the treatment coding of a schema.

        Parameters
        ----------
        schema : Schema
            Public facts about the columns.

        Returns
        -------
        TreatmentSchema
            The same columns.

        Raises
        ------
        ValueError
            If columns were learned.
        """
        if learned := [name for name, column in schema.columns.items() if not column.plain]:
            raise ValueError(
                f"inference=True with columns that are learned, {learned}: the coefficients would have no units, and categories "
                "no names. Use bounds and categories of all columns, from public knowledge."
            )
        return cls(schema.columns, schema.target, schema.classes, schema.target_bounds)

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return sum(map(_size, self.columns.values()))

    @property
    def references(self) -> dict[str, str]:
        """Reference level of each category."""
        return {name: column.levels[0] for name, column in self.columns.items() if column.exhaustive}

    @property
    def row_facts(self) -> dict[str, Any]:
        """Parameters of an estimator of the prepared rows: ``feature_bounds``, and a ``data_norm`` that no row exceeds.

        A number adds at most 1 to the squared length of a row in units of its bounds, and so does a category, as a record has at
        most one of its levels.
        """
        numbers = self.numbers
        bounds = [
            pair
            for name, place in self.blocks()
            for pair in ([numbers[name].own_range] if name in numbers else [(0.0, 1.0)] * (place.stop - place.start))
        ]
        return {"feature_bounds": bounds, "data_norm": math.sqrt(len(self.columns))}

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Yield each column and the places of its features, in the order of the features."""
        start = 0
        for name, column in (item for columns in self.alike() for item in columns.items()):
            yield name, slice(start, start + _size(column))
            start += _size(column)

    def parts(self, sparse_output: bool) -> Iterator[tuple[str, Any, list[str]]]:
        """Yield the parts of the preparation, as for a schema; numbers keep their units."""
        for columns in self.alike():
            alike = list(columns.values())
            yield (*alike[0].in_own_units(alike, sparse_output), list(columns))


def _size(column: Column) -> int:
    return max(len(column.levels) - 1, 1)
