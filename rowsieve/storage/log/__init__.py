"""The commit log of a table: entries, checkpoints, conflicts, and the errors for missing files."""
