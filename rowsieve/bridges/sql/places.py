"""Where in its text a condition fails to bind: the smallest part that fails, its columns and types.

Trees carry no positions, so the text is read again, once, after it has failed. Soundness: nothing
is decided here; an error whose place is not found is returned as it is.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.nodes import Reader
from rowsieve.bridges.sql.parse import parsed
from rowsieve.bridges.sql.source_text import Source
from rowsieve.errors import InvalidPredicate, RowsieveError, UnknownColumn
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import type_name
from rowsieve.types.schema import Schema

_MOST_CHARACTERS: Final = 20_000
_MOST_SHOWN: Final = 4  # columns

_Piece: TypeAlias = tuple[ir.Predicate | ir.Operand, Any]


class _Recording(Reader):
    """A reader that records each node of the tree with the node of the text, inner ones first."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.pieces: list[_Piece] = []

    def predicate(self, node: Any) -> ir.Predicate:
        """Read the node as a condition."""
        found = super().predicate(node)
        self.pieces.append((found, node))
        return found

    def operand(self, node: Any) -> ir.Operand:
        """Read the node as a value."""
        found = super().operand(node)
        self.pieces.append((found, node))
        return found


def placed(
    error: InvalidPredicate, text: str, dialect: str, schema: Schema, semantics: Semantics
) -> InvalidPredicate:
    """Return the error with the offset of the part that causes it, and the types of its columns."""
    if error.position is not None or type(error) not in (InvalidPredicate, UnknownColumn):
        return error
    if len(text) > _MOST_CHARACTERS:
        return error
    try:
        source, root = parsed(text, dialect_named(dialect))
        reader = _Recording(source)
        reader.predicate(root)
    except (RowsieveError, RecursionError):
        return error
    for piece, node in reader.pieces:
        if _fails(piece, error, schema, semantics):
            found = source.refusal(node, f"{error}{_columns(piece, schema)}")
            if isinstance(error, UnknownColumn):
                return UnknownColumn(str(found), name=error.name, position=found.position)
            return found
    return error


def _fails(
    piece: ir.Predicate | ir.Operand, error: InvalidPredicate, schema: Schema, semantics: Semantics
) -> bool:
    try:
        if isinstance(piece, ir.Predicate):
            bind(piece, schema, semantics, now_us=0, simplified=False)
        else:
            bind_operand(piece, schema, semantics, now_us=0)
    except RowsieveError as own:
        return type(own) is type(error) and own.args == error.args
    return False


def _columns(piece: ir.Predicate | ir.Operand, schema: Schema) -> str:
    names = dict.fromkeys(node.name for node in ir.walk(piece) if isinstance(node, ir.Column))
    shown = []
    for name in list(names)[:_MOST_SHOWN]:
        try:
            field = schema.field(name)
        except UnknownColumn:
            continue
        shown.append(f"{field.name} is {type_name(field.type)}")
    return f" ({', '.join(shown)})" if shown else ""
