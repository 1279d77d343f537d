"""Rows as pandas DataFrames. pandas is never imported here: pyarrow does."""
