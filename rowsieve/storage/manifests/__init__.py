"""The manifest of a version: one row per part, with columns that load on demand."""
