"""The text being read: its tokens, its extracted lists, and errors with positions in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.reading.lifted_lists import Lifted
from rowsieve.errors import InvalidPredicate

# Nodes without positions in the grammar: the tokens that name them.
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
class SqlSource:
    """The text of one filter while it is read."""

    text: str
    lifted: Lifted
    tokens: list[Any]
    dialect: Dialect
    is_encoded: bool = False  # generated text: errors have no position in it
    kind: str = "filter"  # what the text is, for messages

    def refusal(self, node: Any, why: str) -> InvalidPredicate:
        """Build the error with the text of this node and its position."""
        if self.is_encoded:
            return InvalidPredicate(why)
        start, stop = (None, None) if node is None else self._span(node)
        if start is None or stop is None:
            return InvalidPredicate(f"cannot read the {self.kind}: {why}")
        return self.refusal_at(start, stop, why)

    def refusal_at(self, start: int, stop: int, why: str) -> InvalidPredicate:
        """Build the error with the text from `start` to `stop` and its position."""
        if self.is_encoded:
            return InvalidPredicate(why)
        piece = self.lifted.text[start:stop]
        if piece.count("(") > piece.count(")"):  # the grammar marks a call without its end
            piece = self.lifted.text[start : self.lifted.text.find(")", stop) + 1 or stop]
        piece = " ".join(piece.split())
        shown = piece if len(piece) <= 60 else f"{piece[:57]}..."
        position = self.lifted.offset(start)
        return InvalidPredicate(
            f"cannot read the {self.kind} at offset {position}, {shown!r}: {why}", position=position
        )

    def original(self, start: int, stop: int) -> str:
        """Return the original text for a span of the text without lists."""
        return self.text[self.lifted.offset(start) : self.lifted.offset(stop)].strip()

    def argument_count(self, node: Any) -> int:
        """Return the number of arguments after the node's name."""
        return len(self.arguments(node))

    def quoted_argument(self, node: Any, index: int) -> str | None:
        """Return the text of an argument that is one string; None of any other, or of none."""
        try:
            (token,) = self.arguments(node)[index]
        except (IndexError, ValueError):
            return None
        return str(token.text) if token.token_type.name == "STRING" else None

    def arguments(self, node: Any) -> list[list[Any]]:
        """Return the tokens of each argument after the node's name."""
        start, depth = node.meta.get("start"), 0
        arguments: list[list[Any]] = []
        for token in self.tokens:
            if start is None or token.start <= start:
                continue
            kind = token.token_type.name
            is_outer = depth == 0
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth == 0:
                break
            if is_outer:
                continue  # the parenthesis that opens them
            if kind == "COMMA" and depth == 1:
                arguments.append([])
            elif arguments:
                arguments[-1].append(token)
            else:
                arguments.append([token])
        return arguments

    def _span(self, node: Any) -> tuple[int | None, int | None]:
        marks = [part.meta for part in node.walk() if "start" in part.meta]
        words = _WORDS.get(node.key, () if marks else (node.key.upper(),))
        for token in self.tokens:
            if token.token_type.name in words or token.text.upper() in words:
                return token.start, token.end + 1
        if not marks:
            return None, None
        return min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1


_OPENING = frozenset({"L_PAREN", "L_BRACKET", "L_BRACE", "CASE"})
_CLOSING = frozenset({"R_PAREN", "R_BRACKET", "R_BRACE", "END"})
_SEPARATING = frozenset({"COMMA", "WHEN", "THEN", "ELSE"})
_TESTING = frozenset({"IS", "ISNULL", "NOTNULL"})


def is_after_distinct(tokens: Sequence[Any]) -> Any | None:
    """Return the IS that follows the right side of a DISTINCT FROM outside parentheses."""
    depth, open_ = 0, set[int]()
    for token in tokens:
        kind = token.token_type.name
        if kind in _CLOSING or kind in _SEPARATING:
            open_.discard(depth)
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if kind == "DISTINCT":
            open_.add(depth)
        elif kind in _TESTING and depth in open_:
            return token
    return None


_TYPE_ENDS = Parser.TYPE_TOKENS | {TokenType.R_PAREN}  # `int '7'`, `numeric(4, 1) '1.5'`
_TYPE_WORDS = frozenset({"ZONE", "PRECISION"})


def cast_of_typed_text(tokens: Sequence[Any]) -> Any | None:
    """Return the `::` behind `DATE '…'`, which the grammar gives to the text alone."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if after.token_type != TokenType.DCOLON or token.token_type != TokenType.STRING:
            continue
        if before.token_type in _TYPE_ENDS or before.text.upper() in _TYPE_WORDS:
            return after
    return None


def split_at_and(source: SqlSource) -> list[str]:
    """Split the text at its top-level ANDs, as written; one text if there is an OR.

    The AND of a BETWEEN is not a split point. In a dialect that uses all text after DISTINCT FROM
    as its right operand, the text is not split.
    """
    depth = between = 0
    starts, stops = [0], []
    for token in source.tokens:
        kind = token.token_type.name
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if kind == "DISTINCT" and source.dialect.greedy_distinct:
            return [source.original(0, len(source.lifted.text))]
        if depth:
            continue
        if kind in ("OR", "XOR"):
            return [source.original(0, len(source.lifted.text))]
        between += kind == "BETWEEN"
        if kind == "AND" and between:
            between -= 1
        elif kind == "AND":
            stops.append(token.start)
            starts.append(token.end + 1)
    stops.append(len(source.lifted.text))
    return [source.original(start, stop) for start, stop in zip(starts, stops, strict=True)]
