"""Format a predicate as short text that reads like SQL, for `repr`.

For people only: no engine parses it (see `rowsieve.bridges.sql`). Its length is bounded, so
formatting a predicate of a million terms costs no more than one of ten. Names and values are
untrusted: control characters are escaped. The walk over the tree is iterative.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from rowsieve.predicate.value_set import ValueSet
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

MAX_CHARACTERS: Final = 400
_MAX_TEXT: Final = 60  # characters of one constant
_MAX_MEMBERS: Final = 5  # of an IN list
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Spelled:
    """A node that returns its own text as tokens."""

    __slots__ = ()

    def _tokens(self) -> Sequence[Token]:
        """Return the text as tokens; of a list only the first `MAX_CHARACTERS` members."""
        raise NotImplementedError


class ShownAsSql(Spelled):
    """A node whose `repr` is that text, with a bounded length."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self)


Token: TypeAlias = str | Spelled
"""Text, or a node to be formatted later."""


def text_of(node: Spelled) -> str:
    """Format the node with at most `MAX_CHARACTERS` characters and an ellipsis."""
    most = MAX_CHARACTERS
    written: list[str] = []
    length = 0
    pending: list[Token] = [node]
    while pending and length <= most:
        token = pending.pop()
        if isinstance(token, str):
            written.append(token)
            length += len(token)
        else:
            pending.extend(reversed(token._tokens()))
    text = "".join(written)
    return text if length <= most and not pending else f"{text[:most]}…"


def listed(items: Iterable[Spelled]) -> Sequence[Token]:
    """Separate the items by commas."""
    tokens: list[Token] = []
    for item in items:
        tokens += (", ", item)
    return tokens[1:]


def members_text(values: ValueSet) -> str:
    """Format the first members of an IN list, and the number of the others."""
    shown = []
    for value in values.array[:_MAX_MEMBERS]:
        try:
            plain = value.as_py()
        except (OverflowError, ValueError):  # a time that Python cannot represent
            plain = value.value
        temporal = isinstance(values.type, Date | Time | Timestamp | Uuid)
        shown.append(quoted(str(plain)) if temporal and plain is not None else constant_text(plain))
    more = len(values) - len(shown)
    return ", ".join([*shown, *([f"… {more:,} more"] if more else [])])


def constant_text(value: Any, type_: LogicalType | None = None) -> str:
    """Format a physical value as a constant of its type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quoted(value)
        case bytes():
            if isinstance(type_, Interval) and len(value) == 16:
                return f"INTERVAL '{interval_bytes.spelled(value)}'"
            if isinstance(type_, Numeric):
                return f"NUMERIC '{short(numeric_bytes.spelled(value))}'"
            return _uuid(value) if isinstance(type_, Uuid) else f"X'{short(value.hex())}'"
        case tuple() | list():
            inner = [constant_text(item) for item in value[: _MAX_MEMBERS + 1]]
            return (
                f"({', '.join(inner[:_MAX_MEMBERS])}{', …' if len(inner) > _MAX_MEMBERS else ''})"
            )
        case int() if isinstance(type_, Nanos):
            return _fine_moment(value, type_)
        case int() if isinstance(type_, Date | Time | Timestamp):
            return _moment(value, type_)
        case _:
            return short(str(value))


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


def name_text(name: str) -> str:
    """Format the name of a column or field, quoted unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    doubled = name.replace('"', '""')
    return f'"{short(doubled)}"'


def quoted(text: str) -> str:
    """Format a text constant."""
    doubled = text.replace("'", "''")
    return f"'{short(doubled)}'"


def short(text: str) -> str:
    """Return the first characters, with control characters escaped."""
    shown = printable(text[: _MAX_TEXT + 1])
    return shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…"
