"""Maintenance: what would make a table cheaper to read or store, and doing it."""
