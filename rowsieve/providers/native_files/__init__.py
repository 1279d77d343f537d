"""Facts that engines need to read our Parquet files with their own readers."""
