"""Chunks of a table as tables of their own, for tests that sum by parts."""

import numpy as np

from skdp.privacy.data.training_data import TrainingData


def bounds_of(rows):
    """The public constants of a table."""
    return {
        "data_norm": rows._data_norm,
        "intercept_scaling": rows._intercept_scaling,
        "class_weight": rows._class_weight,
        "scaling": rows._blocks._scaling,
    }


def chunk_of(rows, start, stop):
    """The rows of a chunk as a table of their own."""
    groups = None if rows._groups is None else rows._groups[start:stop]
    chunk = TrainingData(rows._blocks.table[start:stop], rows._y[start:stop], groups, **bounds_of(rows))
    return chunk if rows._presence is None else chunk.without(np.flatnonzero(rows._presence[start:stop] == 0))
