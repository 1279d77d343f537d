"""Maintenance: make a table cheaper to read and store, and recommend when."""
