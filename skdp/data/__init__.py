"""Describe tables that are larger than memory: Parquet and NumPy files, and chunks from a function of the user's."""

from skdp.data._chunks import chunks
from skdp.data._npy import npy
from skdp.data._parquet import parquet
from skdp.data._predictions import write_predictions
from skdp.data._table import Table

__all__ = ["Table", "chunks", "npy", "parquet", "write_predictions"]
