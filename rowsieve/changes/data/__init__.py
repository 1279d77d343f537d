"""What callers pass as rows becomes Arrow batches of a table's columns."""
