"""The rules of `bind`: types of both sides, constants, casts, zones, inverses of functions."""
