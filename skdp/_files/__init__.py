"""Read and write tables and reports as files."""
