"""Texts of each dialect against its engine: every function, pair of types and edge value."""
