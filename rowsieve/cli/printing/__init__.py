"""Rows as text and in the formats of other programs."""
