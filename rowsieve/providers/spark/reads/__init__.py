"""Reads of tables in Spark: the source's tasks, native scans, pruned queries, the change feed."""
