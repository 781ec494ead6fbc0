"""Hold the partitions of a table and work on them: threads of this process, or a Dask cluster."""
