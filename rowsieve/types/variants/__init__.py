"""Converts Variants of Parquet files to JSON texts."""
