"""Constructs of SQL that are read and written: literals, times, zones, patterns, nested values."""
