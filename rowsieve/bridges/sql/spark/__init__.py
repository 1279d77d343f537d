"""Spark's SQL: its types, implicit casts, own functions and texts, by the session's settings."""
