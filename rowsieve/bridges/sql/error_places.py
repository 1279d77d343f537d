"""Where in its text a condition or value is rejected: the smallest such part, and its columns.

Trees carry no positions, so the text is read again, once, after it has been rejected. From its
root, the first part that is rejected for the same reason is followed. So the time is that of typing
the text once for each level of nesting. Soundness: nothing is decided here; an error whose place is
unknown is returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from rowsieve.bridges.differences import Direction, check
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.bridges.sql.language import accepted_as_engine, typed_as_engine, value_text
from rowsieve.bridges.sql.reading.parse import parsed
from rowsieve.bridges.sql.reading.read_nodes import SqlReader
from rowsieve.bridges.sql.reading.similar_names import similar_names
from rowsieve.bridges.sql.reading.source_text import SqlSource
from rowsieve.errors import InvalidPredicate, RowsieveError, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.binding.enum_labels import with_text
from rowsieve.predicate.functions.registry import unknown_function
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import type_name
from rowsieve.types.schema import Schema

Rejection: TypeAlias = InvalidPredicate | UnsupportedOperation
_PLACED: Final = (InvalidPredicate, UnknownColumn, UnsupportedOperation)  # no subclasses
_MAX_SHOWN: Final = 4  # columns


@dataclass(slots=True)
class _Piece:
    """A node of the tree, the node of the text, and the pieces inside it."""

    text_node: Any
    node: ir.Predicate | ir.Operand | None = None
    parts: list[_Piece] = field(default_factory=list)


class _Recording(SqlReader):
    """A reader that records each node of the tree with the node of the text."""

    def __init__(self, source: SqlSource) -> None:
        super().__init__(source)
        self.open = [_Piece(None)]

    def predicate(self, node: Any) -> ir.Predicate:
        """Read the node as a condition."""
        with self._recorded(node) as piece:
            piece.node = predicate = super().predicate(node)
        return predicate

    def operand(self, node: Any) -> ir.Operand:
        """Read the node as a value."""
        with self._recorded(node) as piece:
            piece.node = operand = super().operand(node)
        return operand

    @contextmanager
    def _recorded(self, node: Any) -> Iterator[_Piece]:
        piece = _Piece(node)
        self.open[-1].parts.append(piece)
        self.open.append(piece)
        try:
            yield piece
        finally:
            self.open.pop()


def placed(
    error: Rejection,
    text: str,
    dialect: str,
    schema: Schema,
    semantics: Semantics,
    *,
    is_value: bool = False,
) -> Rejection:
    """Return the error with the offset of the part that causes it, and the types of its columns.

    `is_value`: the text is an expression, whose whole text is the place if no part of it is.
    """
    if type(error) not in _PLACED or error.position is not None:
        return error
    known = dialect_named(dialect)
    try:
        source, root = parsed(text, known, "expression" if is_value else "filter")
        reader = _Recording(source)
        (reader.operand if is_value else reader.predicate)(root)
    except (RowsieveError, RecursionError):
        return error
    (whole,) = reader.open[0].parts
    rejected = partial(_rejected, known=known, schema=schema, semantics=semantics)
    cause = rejected(whole)  # the error itself may be about the normalised tree
    if cause is None:
        return _with_place(error, whole, reader.source, schema) if is_value else error
    piece = _smallest(whole, cause, rejected)
    match piece.node:
        case ir.Call(function=name) if cause.args == unknown_function(name).args:
            cause = unknown_function(name, similar_names(name, known))
    return _with_place(cause, piece, reader.source, schema)


def _smallest(
    whole: _Piece, cause: Rejection, rejected: Callable[[_Piece], Rejection | None]
) -> _Piece:
    """Follow the first part of each piece that is rejected as the whole is."""
    piece = whole
    while True:
        for part in piece.parts:
            rejection = rejected(part)
            if type(rejection) is type(cause) and rejection.args == cause.args:
                piece = part
                break
        else:
            return piece


def _rejected(
    piece: _Piece, known: Dialect, schema: Schema, semantics: Semantics
) -> Rejection | None:
    try:
        if isinstance(piece.node, ir.Predicate):
            _type_condition(piece.node, known, schema, semantics)
        elif piece.node is not None:
            _type_value(piece.node, known, schema, semantics)
    except (InvalidPredicate, UnsupportedOperation) as own:
        return own if type(own) in _PLACED else None
    except RowsieveError:
        return None
    return None


def _type_condition(
    node: ir.Predicate, known: Dialect, schema: Schema, semantics: Semantics
) -> None:
    """Type a condition as `to_predicate` does, or as the bridge of Trino's text."""
    if known.listed_only:
        root = accepted_as_engine(node, schema, known, semantics).root
        check(root, semantics.name, Direction.READS | Direction.IN_CONJUNCTION)
    else:
        seen = schema if semantics.orders_enums else with_text(schema)
        typed_as_engine(node, seen, known, semantics)


def _type_value(node: ir.Operand, known: Dialect, schema: Schema, semantics: Semantics) -> None:
    """Type a value as `to_operand` does."""
    node = value_text(node, schema, known, semantics)
    bind_operand(node, schema, semantics, now_us=0)


def _with_place(cause: Rejection, piece: _Piece, source: SqlSource, schema: Schema) -> Rejection:
    columns = "" if piece.node is None else _columns(piece.node, schema)
    refusal = source.refusal(piece.text_node, f"{cause}{columns}")
    if isinstance(cause, UnknownColumn):
        refusal = source.refusal(
            piece.text_node, f"{cause}{columns}{_quoting(cause, piece.node, source, schema)}"
        )
        return UnknownColumn(str(refusal), name=cause.name, position=refusal.position)
    if isinstance(cause, UnsupportedOperation):
        return UnsupportedOperation(str(refusal), position=refusal.position)
    return refusal


def _quoting(cause: UnknownColumn, node: ir.Node | None, source: SqlSource, schema: Schema) -> str:
    """Say how the text quotes what it seems to mean: a name with a dot, or a text."""
    name, quote = cause.name, source.dialect.quote
    before = " " if str(cause).endswith("?") else "; "
    steps: list[str] = []
    while isinstance(node, ir.FieldAccess):
        steps.insert(0, node.name)
        node = node.operand
    dotted = ".".join((name, *steps))
    if steps and dotted in schema.names:
        return f"{before}the column with a dot is written {quote}{dotted}{quote}"
    if quote == '"' and f'"{name}"' in source.text:
        return f"{before}double quotes are those of names, a text is written {name!r}"
    return ""


def _columns(piece: ir.Predicate | ir.Operand, schema: Schema) -> str:
    names = dict.fromkeys(node.name for node in ir.walk(piece) if isinstance(node, ir.Column))
    shown = []
    for name in list(names)[:_MAX_SHOWN]:
        try:
            column = schema.field(name)
        except UnknownColumn:
            continue
        shown.append(f"{column.name} is {type_name(column.type)}")
    return f" ({', '.join(shown)})" if shown else ""
