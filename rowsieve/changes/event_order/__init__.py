"""The event order of a table: the version of a key with the greatest sequence is its row."""
