"""Writes versions of a table as versions of a Delta log."""
