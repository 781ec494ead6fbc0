"""Describe tables with columns in their own units and categories relative to a reference level, for inference."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp.preprocessing._categories import KnownCategories
from skdp.preprocessing._scaling import BoundedScaler, signed_log
from skdp.preprocessing._schema import OTHER, Category, Number, Schema

__all__ = ["TreatmentSchema"]


class BoundedNumbers(BoundedScaler):
    """Clip numbers to public bounds, and leave them in their own units, or in those of the logarithm."""

    def _scaled(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return self._bounded(X, low, high)[0]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns; logarithms say so.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        names = super().get_feature_names_out(input_features)
        return np.array([f"log1p({name})" for name in names], dtype=object) if self.scale == "log" else names


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
            If columns were learnt.
        """
        if learnt := [name for name, column in schema.columns.items() if not column.plain]:
            raise ValueError(
                f"inference=True with columns that are learnt, {learnt}: the coefficients would have no units, and categories no "
                "names. Use bounds and categories of all columns, from public knowledge."
            )
        return cls(schema.columns, schema.target, schema.classes, schema.target_bounds)

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return sum(1 if isinstance(column, Number) else len(self.levels(name)) - 1 for name, column in self.columns.items())

    def levels(self, name: str) -> list[str]:
        """Return the levels of a category, the reference level first.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        list of str
            At least two.
        """
        column = self.columns[name]
        assert isinstance(column, Category)
        return list(column.categories) if len(column.categories) > 1 else [OTHER, *column.categories]

    @property
    def references(self) -> dict[str, str]:
        """Reference level of each category."""
        return {name: self.levels(name)[0] for name, column in self.columns.items() if isinstance(column, Category)}

    @property
    def row_facts(self) -> dict[str, Any]:
        """Parameters of an estimator of the prepared rows: ``feature_bounds``, and a ``data_norm`` that no row exceeds.

        A number adds at most 1 to the squared length of a row in units of its bounds, and so does a category, as a record has at
        most one of its levels.
        """
        bounds = [
            pair
            for _, _, names in self.parts(False)
            for name in names
            for pair in ([self._range(name)] if name not in self.references else [(0.0, 1.0)] * (len(self.levels(name)) - 1))
        ]
        return {"feature_bounds": bounds, "data_norm": math.sqrt(len(self.columns))}

    def _range(self, name: str) -> tuple[float, float]:
        column = self.columns[name]
        assert isinstance(column, Number)
        low, high = signed_log(np.array(column.bounds)) if column.scale == "log" else column.bounds
        return float(low), float(high)

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Yield each column and the places of its features, in the order of the features."""
        start = 0
        for _, _, names in self.parts(False):
            for name in names:
                size = len(self.levels(name)) - 1 if name in self.references else 1
                yield name, slice(start, start + size)
                start += size

    def parts(self, sparse_output: bool) -> Iterator[tuple[str, Any, list[str]]]:
        """Yield the parts of the preparation: a name, a transformer, and the columns that it takes.

        Parameters
        ----------
        sparse_output : bool
            Whether indicators are in CSR.
        """
        numbers = {name: column for name, column in self.columns.items() if isinstance(column, Number)}
        for scale, fill in dict.fromkeys((column.scale, column.fill) for column in numbers.values()):
            alike = {name: column.bounds for name, column in numbers.items() if (column.scale, column.fill) == (scale, fill)}
            label = f"{scale} numbers" + ("" if fill is None else f", {fill!r} where missing")
            yield label, BoundedNumbers(list(alike.values()), scale=scale, fill=fill), list(alike)
        if references := self.references:
            levels = [self.levels(name) for name in references]
            others = [OTHER if OTHER in names else names[0] for names in levels]
            encoder = OneHotEncoder(categories=levels, drop=list(references.values()), sparse_output=sparse_output)
            yield "categories", make_pipeline(KnownCategories(levels, other=others), encoder), list(references)
