"""Writes predicates as SQL text of a dialect."""
