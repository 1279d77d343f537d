"""Patterns of LIKE, from ours to Spark's and back, and what any case means to each."""

from __future__ import annotations

from rowsieve.errors import UnsupportedOperation

# Our patterns of any case take a long s for an s, and a dotted capital I for no i.
FOLDED = ("\u017f\u0130", "s\u00e9")


def spark_pattern(pattern: str, escape: str | None) -> str:
    """The pattern with a backslash as its escape."""
    made: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters)
            made.append(f"\\{following}" if following in "%_\\" else following)
        else:
            made.append("\\\\" if character == "\\" else character)
    return "".join(made)


def check_pattern(pattern: str, escape: str) -> None:
    """Refuse what Spark fails on: an escape before an ordinary character, or at the end."""
    characters = iter(pattern)
    for character in characters:
        if character == escape and next(characters, "") not in ("%", "_", escape):
            raise UnsupportedOperation("Spark fails on an escape that escapes nothing")
