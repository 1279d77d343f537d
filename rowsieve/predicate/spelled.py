"""Format a predicate as short text that reads like SQL, for `repr`.

For people only: no engine parses it (see `rowsieve.bridges.sql`). Its length is bounded, so
formatting a predicate of a million terms costs no more than one of ten. Names and values are
untrusted: control characters are escaped. The walk is iterative.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias, assert_never

from rowsieve.predicate import ir
from rowsieve.shown import printable
from rowsieve.types import interval_bytes, numeric_bytes
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.logical import (
    Date,
    Interval,
    LogicalType,
    Nanos,
    Numeric,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

MOST_CHARACTERS: Final = 400
_MOST_TEXT: Final = 60  # characters of one constant
_MOST_MEMBERS: Final = 5  # of an IN list
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Piece: TypeAlias = str | ir.Predicate | ir.Operand
"""Text, or a node that is not formatted yet."""


def text_of(node: ir.Predicate | ir.Operand, most: int = MOST_CHARACTERS) -> str:
    """Format the node with at most `most` characters and an ellipsis."""
    written: list[str] = []
    length = 0
    pending: list[Piece] = [node]
    while pending and length <= most:
        piece = pending.pop()
        if isinstance(piece, str):
            written.append(piece)
            length += len(piece)
        else:
            pending.extend(reversed(_pieces(piece, most)))
    text = "".join(written)
    return text if length <= most and not pending else f"{text[:most]}…"


def _pieces(node: ir.Predicate | ir.Operand, most: int) -> Sequence[Piece]:
    match node:
        case ir.TruePredicate():
            return ("TRUE",)
        case ir.FalsePredicate():
            return ("FALSE",)
        case ir.Comparison(op=op, left=left, right=right):
            return (left, f" {op.value} ", right)
        case ir.Not(term=term):
            return ("NOT (", term, ")")
        case ir.And(terms=terms):
            return _joined(" AND ", terms, most)
        case ir.Or(terms=terms):
            return _joined(" OR ", terms, most)
        case ir.InList(operand=operand, values=values):
            return (operand, f" IN ({_members(values)})")
        case ir.IsNull(operand=operand):
            return (operand, " IS NULL")
        case ir.Like(operand=operand, pattern=pattern, escape=escape, ignore_case=ignore_case):
            word = " ILIKE " if ignore_case else " LIKE "
            tail = "" if escape is None else f" ESCAPE {_quoted(escape)}"
            return (operand, f"{word}{_quoted(pattern)}{tail}")
        case ir.BooleanOperand(operand=operand):
            return (operand,)
        case ir.Opaque(description=description):
            return (f"OPAQUE({_short(description)})",)
        case _:
            return _operand(node, most)


def _operand(node: ir.Operand, most: int) -> Sequence[Piece]:
    match node:
        case ir.Column(name=name) | ir.BoundColumn(name=name):
            return (_name(name),)
        case ir.Literal(value=value, type=type_):
            return (_constant(value, type_),)
        case ir.Call(function=function, arguments=arguments):
            return (f"{function}(", *_listed(", ", arguments[:most]), ")")
        case ir.Cast(operand=operand, type=type_, try_=try_):
            return ("TRY_CAST(" if try_ else "CAST(", operand, f" AS {type_name(type_)})")
        case ir.FieldAccess(operand=operand, name=name):
            return (operand, f".{_name(name)}")
        case ir.Case(branches=branches, otherwise=otherwise):
            whens: list[Piece] = []
            for condition, result in branches[:most]:
                whens += [" WHEN ", condition, " THEN ", result]
            return ("CASE", *whens, " ELSE ", otherwise, " END")
        case ir.Now():
            return ("now()",)
        case ir.Condition(predicate=predicate):
            return ("(", predicate, ")")
        case _:
            assert_never(node)


def _joined(word: str, terms: Sequence[ir.Predicate], most: int) -> Sequence[Piece]:
    """Join terms by `word`; at most `most` terms, since more cannot fit."""
    if not terms:
        return ("TRUE" if word == " AND " else "FALSE",)
    pieces: list[Piece] = []
    for term in terms[:most]:
        pieces += (word, "(", term, ")") if isinstance(term, ir.And | ir.Or) else (word, term)
    return pieces[1:]


def _listed(word: str, items: Iterable[ir.Operand]) -> Sequence[Piece]:
    pieces: list[Piece] = []
    for item in items:
        pieces += (word, item)
    return pieces[1:]


def _members(values: ir.ValueSet) -> str:
    shown = []
    for value in values.array[:_MOST_MEMBERS]:
        try:
            plain = value.as_py()
        except (OverflowError, ValueError):  # a time that Python cannot represent
            plain = value.value
        temporal = isinstance(values.type, Date | Time | Timestamp | Uuid)
        shown.append(_quoted(str(plain)) if temporal and plain is not None else _constant(plain))
    more = len(values) - len(shown)
    return ", ".join([*shown, *([f"… {more:,} more"] if more else [])])


def _constant(value: Any, type_: LogicalType | None = None) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return _quoted(value)
        case bytes():
            if isinstance(type_, Interval) and len(value) == 16:
                return f"INTERVAL '{interval_bytes.spelled(value)}'"
            if isinstance(type_, Numeric):
                return f"NUMERIC '{_short(numeric_bytes.spelled(value))}'"
            return _uuid(value) if isinstance(type_, Uuid) else f"X'{_short(value.hex())}'"
        case tuple() | list():
            inner = [_constant(item) for item in value[: _MOST_MEMBERS + 1]]
            return (
                f"({', '.join(inner[:_MOST_MEMBERS])}{', …' if len(inner) > _MOST_MEMBERS else ''})"
            )
        case int() if isinstance(type_, Nanos):
            return _fine_moment(value, type_)
        case int() if isinstance(type_, Date | Time | Timestamp):
            return _moment(value, type_)
        case _:
            return _short(str(value))


def _moment(value: int, type_: Date | Time | Timestamp) -> str:
    """Format a date, time or instant; as its number if Python cannot represent it."""
    word = type_name(type_).upper()
    days = isinstance(type_, Date)
    try:
        at = _EPOCH + (timedelta(days=value) if days else timedelta(microseconds=value))
    except OverflowError:
        return f"{word} '{value}'"
    if days:
        return f"{word} '{at:%Y-%m-%d}'"
    if isinstance(type_, Time):
        return f"{word} '{at.time()}'"
    zone = "Z" if isinstance(type_, Timestamp) and type_.utc else ""
    return f"{word} '{at.replace(tzinfo=None)}{zone}'"


def _fine_moment(value: int, type_: Nanos) -> str:
    micros, rest = divmod(value, NANOS_OF_MICRO)
    at = _EPOCH + timedelta(microseconds=micros)
    zone = "Z" if type_.utc else ""
    return f"{type_name(type_).upper()} '{at:%Y-%m-%d %H:%M:%S.%f}{rest:03}{zone}'"


def _uuid(value: bytes) -> str:
    return f"UUID '{uuid.UUID(bytes=value)}'" if len(value) == 16 else f"X'{value.hex()}'"


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    doubled = name.replace('"', '""')
    return f'"{_short(doubled)}"'


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{_short(doubled)}'"


def _short(text: str) -> str:
    shown = printable(text[: _MOST_TEXT + 1])
    return shown if len(shown) <= _MOST_TEXT else f"{shown[:_MOST_TEXT]}…"
