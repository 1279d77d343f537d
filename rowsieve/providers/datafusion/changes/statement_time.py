"""The current time of a statement that changes a table: one instant for all of its queries.

DataFusion has a time of its own for each query, in nanoseconds; without a session zone, `now()` is
a UTC time without a zone. A change runs several queries, and a table has microseconds. So the calls
become literals of DataFusion's types; where a call is all that a column is assigned, it is the
instant, the local time or the local date in the session's zone, as in PostgreSQL and DuckDB.

Soundness: no other text changes. `now()`, `today()` and words with empty brackets are calls; a bare
`current_date` is one unless it follows a dot or AS, or the table has a column of this name, as
DataFusion reads it. DataFusion has no `localtimestamp`: it is one where no other table is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve import clock
from rowsieve.errors import InvalidInput
from rowsieve.providers.datafusion.changes.sql_changes import columns_of
from rowsieve.providers.datafusion.session_settings import TIME_ZONE
from rowsieve.statements.merge_statement import Merge, MergeClause
from rowsieve.statements.read_change import Change, ChangeStatement, Insert, Update
from rowsieve.statements.tokens import StatementTokens, tokens_of
from rowsieve.types.logical import Date, LogicalType, Nanos, Timestamp
from rowsieve.types.schema import Schema

_CALLS: Final = ("NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "TODAY")
_BARE: Final = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME")
_LOCAL: Final = "LOCALTIMESTAMP"
_NAMED_BEFORE: Final = (".", "AS")  # a column or an alias follows
_OTHER_TABLES: Final = frozenset({"FROM", "USING", "SELECT", "TABLE"})
_ENDS_COLUMNS: Final = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH")
_SETS: Final = ("UNION", "EXCEPT", "INTERSECT")
_AFTER: Final = re.compile(
    r"\s*(?P<interval>[+-]\s*INTERVAL\s+(?:'[^']*'|\d+)"
    r"(?:\s+(?:YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND)S?\b)?)?"
    r"(?P<alias>(?:\s+AS)?\s+(?:\"(?:[^\"]|\"\")+\"|[^\W\d]\w*))?\s*",
    re.IGNORECASE,
)
"""What may follow a call that is all that a column is assigned: an interval, and an alias."""


class StatementTime:
    """Literals of one instant, `now_us` microseconds since 1970, in a session's zone.

    Without a zone, DataFusion's local times are those of UTC.
    """

    def __init__(self, now_us: int, zone: str | None) -> None:
        self._zone = zone or "UTC"
        utc = pa.scalar(now_us, pa.timestamp("us"))
        local = _local(now_us, self._zone)
        self._instant = _cast(f"{_text(utc)}Z", _timestamp(self._zone))
        now = self._nanoseconds = _cast(
            _text(utc) if zone is None else f"{_text(utc)}Z", _timestamp(zone, "Nanosecond")
        )
        self._local = _cast(_text(local), _timestamp(None))
        self._day = _cast(_text(local)[:10], "Date32")
        self.literals: Final[Mapping[str, str]] = {
            "NOW": now,
            "CURRENT_TIMESTAMP": now,
            _LOCAL: self._local,
            "CURRENT_DATE": self._day,
            "TODAY": self._day,
            "CURRENT_TIME": _cast(_text(local)[11:], "Time64(Nanosecond)"),
        }

    def assigned(self, value: str, type_: LogicalType) -> str:
        """The text of an assigned value, for a column of this type.

        Another one only if it is a literal of this time, maybe with an interval, of another type.
        """
        if not isinstance(type_, Timestamp | Nanos | Date):
            return value
        for literal in (self._nanoseconds, self._local, self._day):
            if not value.startswith(literal):
                continue
            if (after := _AFTER.fullmatch(value, len(literal))) is None:
                return value
            is_instant = literal == self._nanoseconds
            plain = self._instant if is_instant else literal
            shifted = f"({plain} {after['interval']})" if after["interval"] else plain
            return self._as(shifted, type_, is_instant=is_instant) + (after["alias"] or "")
        return value

    def _as(self, text: str, type_: Timestamp | Nanos | Date, *, is_instant: bool) -> str:
        """Convert an instant, or a local time or date, in the session's zone."""
        local = f"to_local_time({text})" if is_instant else text
        match type_:
            case Date():
                return _converted(local, "Date32")
            case Timestamp(utc=False) | Nanos(utc=False):
                return _converted(local, _timestamp(None))
            case Timestamp() | Nanos():
                zoned = text if is_instant else _converted(local, _timestamp(None))
                return _converted(zoned, _timestamp(self._zone))


def statement_time(change: Change, zone: str | None) -> StatementTime | None:
    """The current time of the statement, in the session's zone; None if it does not ask for it."""
    if {*_CALLS, _LOCAL}.isdisjoint(change.tokens.words):
        return None
    return StatementTime(clock.now_us(), zone)


def at_one_time(change: Change, schema: Schema, time: StatementTime) -> Change:
    """The change with literals for its calls of the current time."""
    tokens = change.tokens
    columns = {name.upper() for name in schema.names}
    bare = {*_BARE} if _OTHER_TABLES & {*tokens.words} else {*_BARE, _LOCAL}
    pieces: list[str] = []
    start = place = 0
    while place < tokens.count:
        if stop := _end_of_call(tokens, place, bare - columns):
            pieces += [tokens.piece(start, place), time.literals[tokens.words[place]]]
            start = place = stop
        else:
            place += 1
    if not pieces:
        return change
    text = " ".join([*pieces, tokens.piece(start, tokens.count)])
    pinned = tokens_of(text)
    return change if pinned is None else replace(change, text=text, tokens=pinned)


def _end_of_call(tokens: StatementTokens, place: int, bare: set[str]) -> int:
    """The place after a call of the current time; 0 if there is none."""
    word = tokens.words[place]
    if word not in bare and word not in _CALLS:
        return 0
    if place and tokens.words[place - 1] in _NAMED_BEFORE:
        return 0
    following = tokens.words[place + 1 : place + 3]
    if word in _CALLS and following == ["(", ")"]:
        return place + 3
    return place + 1 if word in bare and following[:1] != ["("] else 0


def with_assigned_times(
    statement: ChangeStatement, schema: Schema, time: StatementTime
) -> ChangeStatement:
    """The statement with the current time in the types of the columns that it is assigned to."""
    match statement:
        case Insert():
            columns = columns_of(schema, statement.columns)
            source = _source(statement.source, [schema.field(n).type for n in columns], time)
            assignments = _assignments(statement.assignments, schema, time)
            return replace(statement, source=source, assignments=assignments)
        case Update():
            assignments = _assignments(statement.assignments, schema, time)
            return replace(statement, assignments=assignments)
        case Merge():
            clauses = tuple(_clause(clause, schema, time) for clause in statement.clauses)
            return replace(statement, clauses=clauses)
        case _:
            return statement


def _assignments(
    texts: Mapping[str, str] | None, schema: Schema, time: StatementTime
) -> dict[str, str]:
    """The texts by column; a column that the table lacks is refused later."""
    return {
        name: time.assigned(text, schema.field(name).type) if name in schema.names else text
        for name, text in (texts or {}).items()
    }


def _clause(clause: MergeClause, schema: Schema, time: StatementTime) -> MergeClause:
    match clause.values:
        case None:
            return clause
        case tuple() as values:
            types = [schema.field(name).type for name in columns_of(schema, None)]
            texts = _row([str(value) for value in values], types, time)
            return replace(clause, values=tuple(texts))
        case named:
            return replace(clause, values=_assignments(named, schema, time))


def _row(texts: Sequence[str], types: Sequence[LogicalType], time: StatementTime) -> list[str]:
    """The values of a row; with another number of values, which is refused later, as they are."""
    if len(texts) != len(types):
        return list(texts)
    return [time.assigned(text, type_) for text, type_ in zip(texts, types, strict=True)]


def _source(text: str, types: Sequence[LogicalType], time: StatementTime) -> str:
    """The query of an INSERT: rows of VALUES, or the columns of one SELECT."""
    tokens = tokens_of(text)
    if tokens is None:
        return text
    if tokens.take("VALUES"):
        return _values(tokens, types, time) or text
    if min(map(tokens.find, _SETS)) < tokens.count:
        return text
    tokens.at = start = tokens.find("SELECT") + 1
    if start > tokens.count:
        return text
    if tokens.take("DISTINCT"):
        start = tokens.at
    stop = min(map(tokens.find, _ENDS_COLUMNS))
    items = [tokens.piece(*place) for place in tokens.terms(stop)]
    columns = ", ".join(_row(items, types, time))
    return " ".join([tokens.piece(0, start), columns, tokens.piece(stop, tokens.count)])


def _values(tokens: StatementTokens, types: Sequence[LogicalType], time: StatementTime) -> str:
    """The text of VALUES; empty if it is followed by something else."""
    rows: list[str] = []
    while tokens.next() == "(":
        tokens.bracket()
        stop, tokens.at = tokens.at, tokens.opened + 1
        items = [tokens.piece(*place) for place in tokens.terms(stop - 1)]
        rows.append(f"({', '.join(_row(items, types, time))})")
        tokens.at = stop
        if not tokens.take(","):
            break
    return f"VALUES {', '.join(rows)}" if tokens.at == tokens.count else ""


def _local(now_us: int, zone: str) -> pa.Scalar:
    """The local time of an instant; InvalidInput if the zone does not exist."""
    try:
        return pc.local_timestamp(pa.scalar(now_us, pa.timestamp("us", zone)))
    except pa.ArrowInvalid as error:
        raise InvalidInput(
            f"sql: the session's time zone is {zone!r}, which does not exist; SET {TIME_ZONE} to "
            "one such as 'Europe/Berlin'"
        ) from error


def _text(time: pa.Scalar) -> str:
    return str(time.cast(pa.string()).as_py()).replace(" ", "T")


def _timestamp(zone: str | None, unit: str = "Microsecond") -> str:
    return f"Timestamp({unit}, None)" if zone is None else f'Timestamp({unit}, Some("{zone}"))'


def _cast(text: str, type_: str) -> str:
    return _converted(f"'{text}'", type_)


def _converted(expression: str, type_: str) -> str:
    return f"arrow_cast({expression}, '{type_}')"
