"""Statements on the names of a catalog: its namespaces and its tables.

NAMESPACE and DATABASE are other words for SCHEMA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rowsieve.errors import InvalidInput
from rowsieve.statements.calls import NAME, PART, name_parts
from rowsieve.statements.read_change import DropTable
from rowsieve.statements.tokens import Target

_KIND: Final = r"(?:SCHEMA|NAMESPACE|DATABASE)"
_CREATE = re.compile(
    rf"CREATE\s+{_KIND}\s+(IF\s+NOT\s+EXISTS\s+)?({PART})"
    r"(?:\s+WITH\s*\(\s*'?log'?\s*=\s*'(own|shared)'\s*\))?",
    re.IGNORECASE,
)
_DROP = re.compile(
    rf"DROP\s+{_KIND}\s+(IF\s+EXISTS\s+)?({PART})(\s+CASCADE|\s+RESTRICT)?", re.IGNORECASE
)
_SHOW = re.compile(rf"SHOW\s+{_KIND}S", re.IGNORECASE)
_SCHEMA = re.compile(
    rf"(?:CREATE|DROP)\s+SCHEMA\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?({NAME})", re.IGNORECASE
)
_BEGINS = re.compile(
    rf"(?:CREATE|DROP)\s+{_KIND}\b|DROP\s+TABLE\b|SHOW\s+(?:TABLES|{_KIND}S)\b"
    rf"|ALTER\s+TABLE\s+{NAME}\s+RENAME\s+TO\b",
    re.IGNORECASE,
)
_DROP_TABLE = re.compile(rf"DROP\s+TABLE\s+(IF\s+EXISTS\s+)?({NAME})(\s+PURGE)?", re.IGNORECASE)
_RENAME_TABLE = re.compile(rf"ALTER\s+TABLE\s+({NAME})\s+RENAME\s+TO\s+({NAME})", re.IGNORECASE)
_SHOW_TABLES = re.compile(rf"SHOW\s+TABLES(?:\s+(?:IN|FROM)\s+({PART}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """`CREATE SCHEMA [IF NOT EXISTS] name [WITH (log = 'shared')]`; `log` is None without it."""

    name: str
    ignores_existing: bool
    log: Literal["own", "shared"] | None = None


@dataclass(frozen=True, slots=True)
class DropNamespace:
    """`DROP SCHEMA [IF EXISTS] name [CASCADE | RESTRICT]`."""

    name: str
    ignores_absent: bool
    cascade: bool


@dataclass(frozen=True, slots=True)
class ShowNamespaces:
    """`SHOW SCHEMAS`."""


@dataclass(frozen=True, slots=True)
class RenameTable:
    """`ALTER TABLE namespace.name RENAME TO [namespace.]name`, by the parts of both names."""

    name: tuple[str, ...]
    new_name: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShowTables:
    """`SHOW TABLES [IN namespace]`."""

    namespace: str | None


NameStatement: TypeAlias = (
    CreateNamespace | DropNamespace | ShowNamespaces | DropTable | RenameTable | ShowTables
)


def schema_named(text: str) -> tuple[str, ...]:
    """Return the name in a `CREATE SCHEMA` or `DROP SCHEMA` without comments; empty for others."""
    named = _SCHEMA.match(text)
    return () if named is None else tuple(name_parts(named[1]))


def read_name_statement(text: str) -> NameStatement | None:
    """Read a statement without comments; None for one that does not concern a catalog's names.

    InvalidInput for one that cannot be read. Names keep their case.
    """
    if create := _CREATE.fullmatch(text):
        log: Literal["own", "shared"] | None = None
        if create[3] is not None:
            log = "shared" if create[3].lower() == "shared" else "own"
        return CreateNamespace(name_parts(create[2])[0], create[1] is not None, log)
    if drop := _DROP.fullmatch(text):
        cascade = (drop[3] or "").strip().upper() == "CASCADE"
        return DropNamespace(name_parts(drop[2])[0], drop[1] is not None, cascade)
    if _SHOW.fullmatch(text):
        return ShowNamespaces()
    if drop := _DROP_TABLE.fullmatch(text):
        target = Target(drop[2], tuple(name_parts(drop[2])), start=drop.start(2))
        return DropTable(target, drop[1] is not None, drop[3] is not None)
    if rename := _RENAME_TABLE.fullmatch(text):
        old, new = tuple(name_parts(rename[1])), tuple(name_parts(rename[2]))
        return RenameTable(old, new if len(new) > 1 else (*old[:-1], *new))
    if show := _SHOW_TABLES.fullmatch(text):
        return ShowTables(None if show[1] is None else name_parts(show[1])[0])
    if _BEGINS.match(text):
        raise InvalidInput(
            f"sql: {text[:60]!r} cannot be read; write CREATE SCHEMA [IF NOT EXISTS] db "
            "[WITH (log = 'shared')], DROP SCHEMA [IF EXISTS] db [CASCADE], SHOW SCHEMAS, SHOW "
            "TABLES [IN db], DROP TABLE [IF EXISTS] db.name [PURGE], or ALTER TABLE db.name RENAME "
            "TO [db.]name"
        )
    return None
