"""The change feed: the rows that each commit inserted, updated and deleted."""
