"""Statements of Spark's SQL on our tables by their names in a catalog, or by their paths."""
