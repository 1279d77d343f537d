"""Writes texts as literals of Spark's SQL."""

from __future__ import annotations


def text_literal(text: str) -> str:
    """The text as a literal in single quotes, with backslashes and quotes escaped."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
