"""Give models the methods that export them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any


class Exported:
    """Base of all that is exported to forms that other programs read."""

    def to_onnx(
        self, path: str | os.PathLike[str] | None = None, *, categories: Mapping[str, Sequence[Any]] | None = None
    ) -> Any:
        """Export the fitted model to ONNX; `skdp.to_onnx` describes the file.

        Parameters
        ----------
        path : path-like or None, default=None
            Where to write a file that ends in ``.onnx``. None writes nothing.
        categories : dict or None, default=None
            Spellings that you know, by column, ``{"work": ["clerk", "nurse"]}``, for columns of text that were learned. All
            other text counts as "other".

        Returns
        -------
        onnx.ModelProto
            The model.
        """
        from skdp.export import to_onnx

        return to_onnx(self, path, categories=categories)

    def to_sklearn(self) -> Any:
        """Return plain objects of scikit-learn with equal predictions; `skdp.to_sklearn` says for which models.

        Returns
        -------
        estimator
            An estimator or a pipeline of scikit-learn.

        Raises
        ------
        TypeError
            If there are none.
        """
        from skdp.export import to_sklearn

        return to_sklearn(self)
