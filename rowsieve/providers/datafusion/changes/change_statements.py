"""Splits a statement that changes a table into its clauses; each clause stays SQL text.

DataFusion plans the statement, too, which checks its grammar and names. The clauses become parts of
queries that DataFusion evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.datafusion.changes.leading_with import with_inside
from rowsieve.providers.datafusion.changes.refused_words import check_clauses
from rowsieve.providers.datafusion.statement_tokens import (
    StatementTokens,
    Target,
    quoted,
    tokens_of,
)

_FIRST: Final = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(insert|replace|delete|update|merge|truncate|create|drop|alter)\b",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_NAME: Final = (
    ("INSERT",), ("REPLACE",), ("DELETE",), ("UPDATE",), ("MERGE",), ("TRUNCATE",), ("CREATE",),
    ("DROP",), ("ALTER",), ("OR", "REPLACE"), ("UNBOUNDED",), ("EXTERNAL",), ("TEMPORARY",),
    ("TEMP",), ("OVERWRITE",), ("INTO",), ("FROM",), ("TABLE",),
    ("IF", "NOT", "EXISTS"), ("IF", "EXISTS"),
)  # fmt: skip
"""Keywords that may precede the name of the table, in the order in which they may occur."""


class OnConflict(Enum):
    """The action of an INSERT for a key that exists in the table."""

    FAIL = "fail"
    IGNORE = "ignore"
    REPLACE = "replace"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO`; `plain` is the statement without ON CONFLICT."""

    target: Target
    columns: tuple[str, ...] | None
    source: str
    on_conflict: OnConflict
    plain: str
    conflict_columns: tuple[str, ...] = ()
    assignments: Mapping[str, str] | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM`; without a condition `where` is empty."""

    target: Target
    where: str


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE`."""

    target: Target
    assignments: Mapping[str, str]
    where: str


class When(Enum):
    """The pairs of rows that a clause of MERGE applies to."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


@dataclass(frozen=True, slots=True)
class Clause:
    """A WHEN clause of MERGE: `values` by column; None deletes the row."""

    when: When
    where: str
    values: Mapping[str, str] | None
    columns: tuple[str, ...] | None = None
    positional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE INTO`; `source` is a relation with its alias."""

    target: Target
    source: str
    source_alias: str
    on: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """`TRUNCATE TABLE`."""

    target: Target


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE TABLE`; `query` is None unless it is `[(PRIMARY KEY (…))] [USING …] AS query`.

    `format` is the name after USING, in lower case; empty without one.
    """

    target: Target
    query: str | None
    key: tuple[str, ...]
    if_not_exists: bool
    replaces: bool
    format: str


@dataclass(frozen=True, slots=True)
class DropTable:
    """`DROP TABLE`."""

    target: Target
    if_exists: bool


ChangeStatement: TypeAlias = Insert | Delete | Update | Merge | Truncate | CreateTable | DropTable


def read_change(text: str) -> ChangeStatement | None:
    """Parse a statement that changes a table; None for others, and for several statements."""
    if (reader := _reader(text)) is None:
        return None
    check_clauses(reader)
    match reader.next().lower():
        case "insert" | "replace":
            return _insert(reader)
        case "delete":
            return _delete(reader)
        case "update":
            return _update(reader)
        case "merge":
            return _merge(reader)
        case "truncate":
            reader.take("TRUNCATE")
            reader.take("TABLE")
            target = reader.target()
            reader.end("TRUNCATE")
            return Truncate(target)
        case "create":
            return _create(reader)
        case "alter":
            raise UnsupportedOperation(
                "sql: ALTER TABLE is not available for a Rowsieve table in this session; use the "
                "methods of the table, as in: with table.alter() as a: a.sql('ADD COLUMN n bigint')"
            )
        case _:
            return _drop(reader)


def _reader(text: str) -> StatementTokens | None:
    """The tokens of a statement; None if it changes no table, or is not one statement."""
    text = with_inside(text)
    return None if _FIRST.match(text) is None else tokens_of(text)


def changed_name(text: str) -> tuple[str, ...] | None:
    """The parts of the name of the table that a statement changes; None for other statements.

    Unquoted parts are folded to lower case.
    """
    if (reader := _reader(text)) is None:
        return None
    for words in _BEFORE_NAME:
        reader.take(*words)
    try:
        return reader.path()[1]
    except InvalidInput:
        return None


def drops_or_replaces_table(text: str) -> bool:
    """Return whether the statement is DROP TABLE or CREATE OR REPLACE."""
    reader = _reader(text)
    return reader is not None and (
        reader.take("DROP", "TABLE") or reader.take("CREATE", "OR", "REPLACE")
    )


def creates_using_rowsieve(text: str) -> bool:
    """Return whether the statement is CREATE TABLE … USING rowsieve."""
    reader = _reader(text)
    if reader is None or not reader.take("CREATE"):
        return False
    reader.take("OR", "REPLACE")
    return reader.take("TABLE") and reader.find("USING", "ROWSIEVE") < reader.count


def _insert(reader: StatementTokens) -> Insert:
    on_conflict = OnConflict.FAIL
    if reader.take("REPLACE") or reader.take("INSERT", "OR", "REPLACE"):
        on_conflict = OnConflict.REPLACE
    else:
        reader.need("INSERT")
    if reader.next() in ("OVERWRITE", "OR"):
        raise UnsupportedOperation(
            f"sql: INSERT {reader.next()} is not available for a Rowsieve table; INSERT OR REPLACE "
            "replaces rows by key, and table.overwrite all rows"
        )
    reader.take("INTO")
    reader.take("TABLE")
    target = reader.target()
    columns = reader.names() if reader.is_list() else None
    stop = _conflict_clause(reader)
    source = reader.until(stop, "a query")
    plain = reader.piece(0, stop)
    if stop == reader.count:
        return Insert(target, columns, source, on_conflict, plain)
    reader.need("ON", "CONFLICT")
    if on_conflict is OnConflict.REPLACE:
        raise InvalidInput("sql: give OR REPLACE or ON CONFLICT, not both")
    names = reader.names() if reader.next() == "(" else ()
    reader.need("DO")
    if reader.take("NOTHING"):
        reader.end("ON CONFLICT DO NOTHING")
        return Insert(target, columns, source, OnConflict.IGNORE, plain, names)
    reader.need("UPDATE", "SET")
    if not names:
        raise InvalidInput("sql: ON CONFLICT DO UPDATE needs the key: ON CONFLICT (key) DO UPDATE")
    assignments = reader.assignments(reader.find("WHERE"))
    where = reader.where("ON CONFLICT")
    return Insert(target, columns, source, OnConflict.UPDATE, plain, names, assignments, where)


def _conflict_clause(reader: StatementTokens) -> int:
    """The position of the final ON CONFLICT clause; ignores a join ON a column `conflict`."""
    place = reader.find("ON", "CONFLICT", last=True)
    words = reader.words[place + 2 :]
    if words[:1] == ["("] and ")" in words:
        words = words[words.index(")") + 1 :]
    return place if words[:2] in (["DO", "NOTHING"], ["DO", "UPDATE"]) else reader.count


def _delete(reader: StatementTokens) -> Delete:
    reader.need("DELETE")
    reader.take("FROM")
    target = reader.target("WHERE", "LIMIT", "ORDER", "USING")
    if reader.next() == "USING":
        raise _refused_join("DELETE … USING")
    return Delete(target, reader.where("DELETE"))


def _update(reader: StatementTokens) -> Update:
    reader.need("UPDATE")
    target = reader.target("SET")
    reader.need("SET")
    place, where = reader.find("FROM"), reader.find("WHERE")
    if place < where and reader.words[place - 1] != "DISTINCT":  # IS DISTINCT FROM compares
        raise _refused_join("UPDATE … FROM")
    assignments = reader.assignments(where)
    return Update(target, assignments, reader.where("UPDATE"))


def _refused_join(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"sql: {what} is not available, because several rows of the source may fit one row of the "
        "table; write MERGE INTO … USING … ON … WHEN MATCHED THEN …, which refuses that"
    )


def _merge(reader: StatementTokens) -> Merge:
    reader.need("MERGE")
    reader.take("INTO")
    target = reader.target("USING")
    reader.need("USING")
    start = reader.at
    on = reader.find("ON")
    alias = _source_alias(reader, on)
    reader.at = start
    source = reader.until(on, "a source")
    reader.need("ON")
    condition = reader.until(reader.find("WHEN"), "a condition")
    clauses = []
    while reader.at < reader.count:
        clauses.append(_clause(reader))
    if not clauses:
        raise InvalidInput("sql: MERGE needs a WHEN clause")
    return Merge(target, source, alias, condition, tuple(clauses))


def _source_alias(reader: StatementTokens, stop: int) -> str:
    """The alias of the source, or the last part of its name."""
    default = ""
    if reader.next() != "(":
        default = quoted(reader.path()[1][-1])
    if reader.next() == "(":
        reader.bracket()
    reader.take("AS")
    if reader.at < stop and reader.next() != "(":
        return reader.name()[0]
    if not default:
        raise InvalidInput("sql: MERGE needs an alias for its source: USING (query) AS s")
    return default


def _clause(reader: StatementTokens) -> Clause:
    reader.need("WHEN")
    if reader.take("MATCHED"):
        when = When.MATCHED
    else:
        reader.need("NOT", "MATCHED")
        when = When.NOT_MATCHED
        if reader.take("BY", "SOURCE"):
            when = When.NOT_MATCHED_BY_SOURCE
        else:
            reader.take("BY", "TARGET")
    where = reader.until(reader.find("THEN"), "a condition") if reader.take("AND") else ""
    reader.need("THEN")
    stop = reader.find("WHEN")
    if reader.take("DELETE"):
        if reader.at != stop:
            reader.end("DELETE in MERGE")
        return _fitting(Clause(when, where, None))
    if reader.take("UPDATE", "SET"):
        return _fitting(Clause(when, where, reader.assignments(stop)))
    reader.need("INSERT")
    columns = reader.names() if reader.next() == "(" else None
    reader.need("VALUES")
    return _fitting(Clause(when, where, {}, columns, _values(reader, stop)))


def _values(reader: StatementTokens, stop: int) -> tuple[str, ...]:
    """Consume the values of an INSERT clause: one pair of brackets that ends at `stop`."""
    reader.bracket()
    if reader.at != stop:
        reader.end("several rows in INSERT of MERGE")
    reader.at = start = reader.opened + 1
    values = tuple(reader.piece(*place) for place in reader.terms(stop - 1))
    if start == stop - 1:
        raise InvalidInput("sql: INSERT in MERGE needs values")
    reader.at = stop
    return values


def _fitting(clause: Clause) -> Clause:
    inserts = bool(clause.positional)
    if inserts is not (clause.when is When.NOT_MATCHED):
        does = "INSERT" if inserts else "UPDATE or DELETE"
        raise InvalidInput(f"sql: WHEN {clause.when.value.upper()} cannot {does}")
    return clause


def _create(reader: StatementTokens) -> CreateTable | None:
    reader.need("CREATE")
    replaces = reader.take("OR", "REPLACE")
    if not reader.take("TABLE"):
        return None
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    written, parts = reader.path()
    key: tuple[str, ...] = ()
    if reader.take("(", "PRIMARY", "KEY"):
        key = reader.names()
        reader.need(")")
    format_ = reader.name()[1].lower() if reader.take("USING") else ""
    query = reader.piece(reader.at, reader.count) if reader.take("AS") else None
    return CreateTable(Target(written, parts), query, key, if_not_exists, replaces, format_)


def _drop(reader: StatementTokens) -> DropTable | None:
    reader.need("DROP")
    if not reader.take("TABLE"):
        return None
    if_exists = reader.take("IF", "EXISTS")
    target = Target(*reader.path())
    reader.end("DROP TABLE")
    return DropTable(target, if_exists)
