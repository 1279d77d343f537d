"""Casts between types, and the texts that each engine accepts and writes."""
