"""Tables as pyarrow Datasets, for DuckDB, Polars, pandas and other readers of Arrow."""
