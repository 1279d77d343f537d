"""Patterns of LIKE that Spark takes."""

from __future__ import annotations

from rowsieve.errors import UnsupportedOperation


def check_pattern(pattern: str, escape: str) -> None:
    """Refuse what Spark fails on: an escape before an ordinary character, or at the end."""
    characters = iter(pattern)
    for character in characters:
        if character == escape and next(characters, "") not in ("%", "_", escape):
            raise UnsupportedOperation("Spark fails on an escape that escapes nothing")
