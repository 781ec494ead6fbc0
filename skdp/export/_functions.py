"""Export fitted models; what does it is imported when it is used, because it needs much of scikit-learn."""

import os
from collections.abc import Mapping, Sequence
from typing import Any


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, categories: Mapping[str, Sequence[Any]] | None = None
) -> Any:
    """Export a fitted model to ONNX, with float64 numbers, so that other programs can predict without this package.

    Parameters
    ----------
    model : estimator
        A fitted estimator or pipeline of skdp; a pipeline of scikit-learn whose steps are those of skdp; or a fitted search, for
        its best estimator.
    path : path-like or None, default=None
        Where to write a file that ends in ``.onnx``, which is replaced completely or not at all. None writes nothing.
    categories : dict or None, default=None
        Spellings that you know, by column: ``{"work": ["clerk", "nurse"]}``. Needed for each column of text whose categories were
        learned, because these are known by a hash that ONNX does not have. All other text of such a column counts as "other".

    Returns
    -------
    onnx.ModelProto
        The model: operators of ONNX 1.12 (opset 17, ai.onnx.ml 3, ir_version 8), run with onnxruntime 1.18 and 1.32.

    Raises
    ------
    ImportError, OSError
        If ``onnx`` is missing, or the file cannot be written.
    TypeError, ValueError
        If a step has no predictions or is not of skdp, if spellings are missing, or if there is no such column.

    See Also
    --------
    to_sklearn : Export to plain objects of scikit-learn, where these have equal predictions.

    Notes
    -----
    **Inputs.** A model that was fitted to an array has one input ``X`` of shape (n, n_features). A model of a data frame has an
    input of shape (n, 1) for each column, with the name of the column: doubles for numbers, text for categories. NaN is a missing
    number, "" a missing text. Dates are seconds since 1970 in UTC, durations are seconds. Categories that are numbers are text,
    too: "1" and "1.0" are the same, as are "True" and "False" for truths. Up to one blank on each side of a text does not count.
    A column whose cells are numbers or text is one or the other, by what was learned: text in a column of numbers is NaN.

    **Outputs.** ``label``, ``probabilities`` and ``decision`` of classifiers, ``prediction`` of regressors, ``cluster``, and
    ``scores`` or ``features`` of transformers, as the methods of the model return them; intervals are not exported. An output
    whose name a column has gets an underscore behind it. Where the model raises an error, as for infinite numbers in a column of
    public bounds, an output means nothing.

    **Properties.** ``metadata_props`` has epsilon, delta, neighbours and unit of the guarantee, the SHA-256 of the JSON of the
    privacy report, the classes, and the version of skdp. Where a pipeline has several steps with budgets of their own, epsilon
    and delta are their sums.

    **Privacy.** Post-processing: the file holds released numbers and public facts. No record is read.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import DPLogisticRegression, to_onnx
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 90, 2000), "work": rng.choice(["clerk", "nurse"], 2000)})
    >>> columns = {
    ...     "age": {"kind": "number", "bounds": [0, 120]},
    ...     "work": {"kind": "category", "categories": ["clerk", "nurse"]},
    ... }
    >>> model = DPLogisticRegression(epsilon=1.0, schema=columns).fit(frame, frame["age"] > 50)
    >>> found = to_onnx(model)
    >>> [entry.name for entry in found.graph.input]
    ['age', 'work']
    >>> [entry.name for entry in found.graph.output]
    ['label', 'probabilities', 'decision']
    """
    from skdp.export._onnx import exported

    return exported(model, path, categories)


def to_sklearn(model: Any) -> Any:
    """Return plain objects of scikit-learn with the predictions of a fitted model, so that others need not install this package.

    They have the released numbers and public facts alone: no record is read.

    Parameters
    ----------
    model : estimator
        A fitted estimator.

    Returns
    -------
    estimator
        An estimator or a pipeline of scikit-learn. Its predictions are those of the model up to rounding, wherever the model
        makes any: for finite numbers whose products are finite, and for text that is spelt as in the schema.

    Raises
    ------
    TypeError
        If scikit-learn has no public objects with these predictions: for trees, networks, pairs of columns, rows that are
        shortened, columns that were learned and logarithms of negative numbers. `to_onnx` exports all of these.

    See Also
    --------
    to_onnx : Export any model.

    Notes
    -----
    **Privacy.** Post-processing of what was released.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, to_sklearn
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> model = DPLogisticRegression(epsilon=1.0, feature_bounds=1.0).fit(X, X[:, 0] > 0)
    >>> plain = to_sklearn(model)
    >>> type(plain).__name__
    'LogisticRegression'
    >>> bool(np.allclose(plain.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12))
    True
    """
    from skdp.export._plain import plain_model

    return plain_model(model)
