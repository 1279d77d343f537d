"""Spark's types: of calls and constants, and the casts that Spark applies to their arguments."""
