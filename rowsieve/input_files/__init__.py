"""Files of rows that a caller names: CSV, JSON lines, Parquet, Arrow IPC, and their types."""
