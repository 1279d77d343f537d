"""Reads Parquet files by their own metadata; independent of tables."""
