"""Compaction: what is picked, and that no pick changes a row."""
