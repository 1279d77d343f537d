"""Statistics in Parquet files, of row groups and pages, as the abstract interpreter takes them."""
