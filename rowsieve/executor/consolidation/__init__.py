"""Sums the differences of equal rows."""
