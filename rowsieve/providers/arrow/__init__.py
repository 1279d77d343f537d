"""Tables as pyarrow Datasets, for DuckDB, Polars, pandas and whatever else reads Arrow."""
