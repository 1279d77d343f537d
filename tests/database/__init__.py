"""Databases: many tables in one log."""
