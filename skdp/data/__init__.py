"""Describe tables that are larger than memory: Parquet and NumPy files, and chunks from a function of the user's."""

from skdp.data._chunks import chunks
from skdp.data._npy import npy
from skdp.data._parquet import parquet
from skdp.data._table import Table
from skdp.data._written import write_predictions

__all__ = ["Table", "chunks", "npy", "parquet", "write_predictions"]
