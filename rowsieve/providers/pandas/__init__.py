"""Rows as pandas DataFrames; pyarrow imports pandas, this package does not."""
