"""The text being read: its tokens, its lifted lists, and errors that point into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.lists import Lifted
from rowsieve.errors import InvalidPredicate

# Nodes that the grammar does not mark: the tokens that name them.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "placeholder": ("COLON", "PLACEHOLDER"),
    "extract": ("EXTRACT", "DATE_PART"),
    "subquery": ("SELECT", "WITH"),
    "select": ("SELECT",),
    "exists": ("SELECT",),
    "any": ("ANY", "ALL", "SOME"),
    "interval": ("INTERVAL",),
}


@dataclass(frozen=True, slots=True)
class Source:
    """One filter's text on its way to a tree."""

    lifted: Lifted
    tokens: list[Any]
    dialect: Dialect

    def refusal(self, node: Any, why: str) -> InvalidPredicate:
        """The error that names the text of this node and its place."""
        start, stop = self._span(node)
        if start is None or stop is None:
            return InvalidPredicate(f"cannot read the filter: {why}")
        return self.refusal_at(start, stop, why)

    def refusal_at(self, start: int, stop: int, why: str) -> InvalidPredicate:
        """The error that names the text from `start` to `stop` and its place."""
        piece = self.lifted.text[start:stop]
        if piece.count("(") > piece.count(")"):  # the grammar marks a call without its end
            piece = self.lifted.text[start : self.lifted.text.find(")", stop) + 1 or stop]
        piece = " ".join(piece.split())
        shown = piece if len(piece) <= 60 else f"{piece[:57]}..."
        position = self.lifted.offset(start)
        return InvalidPredicate(
            f"cannot read the filter at offset {position}, {shown!r}: {why}", position=position
        )

    def token_after(self, node: Any, count: int) -> Any | None:
        """The token `count` places after the one that the node's name is; None past the end."""
        start = node.meta.get("start")
        for index, token in enumerate(self.tokens):
            if token.start == start:
                place = index + count
                return self.tokens[place] if place < len(self.tokens) else None
        return None

    def _span(self, node: Any) -> tuple[int | None, int | None]:
        marks = [part.meta for part in node.walk() if "start" in part.meta]
        words = _WORDS.get(node.key, () if marks else (node.key.upper(),))
        for token in self.tokens:
            if token.token_type.name in words or token.text.upper() in words:
                return token.start, token.end + 1
        if not marks:
            return None, None
        return min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1
