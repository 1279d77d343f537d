"""Parquet files by their own metadata; nothing here knows a table."""
