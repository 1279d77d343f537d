"""Statements on the names of a catalog: its namespaces and its tables.

NAMESPACE and DATABASE are other words for SCHEMA. A text is one statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from rowsieve.catalog.names import identifier
from rowsieve.errors import InvalidInput
from rowsieve.procedures.call_statement import statement_of

_KIND: Final = r"(?:SCHEMA|NAMESPACE|DATABASE)"
_PART: Final = r'(?:"[^"]+"|`[^`]+`|[\w-]+)'
_NAME: Final = rf"({_PART})"
_TABLE: Final = rf"({_PART}(?:\.{_PART})*)"
_CREATE = re.compile(rf"CREATE\s+{_KIND}\s+(IF\s+NOT\s+EXISTS\s+)?{_NAME}", re.IGNORECASE)
_DROP = re.compile(
    rf"DROP\s+{_KIND}\s+(IF\s+EXISTS\s+)?{_NAME}(\s+CASCADE|\s+RESTRICT)?", re.IGNORECASE
)
_SHOW = re.compile(rf"SHOW\s+{_KIND}S", re.IGNORECASE)
_BEGINS = re.compile(rf"(?:CREATE|DROP)\s+{_KIND}\b", re.IGNORECASE)
_DROP_TABLE = re.compile(rf"DROP\s+TABLE\s+(IF\s+EXISTS\s+)?{_TABLE}(\s+PURGE)?", re.IGNORECASE)
_RENAME_TABLE = re.compile(rf"ALTER\s+TABLE\s+{_TABLE}\s+RENAME\s+TO\s+{_TABLE}", re.IGNORECASE)
_SHOW_TABLES = re.compile(rf"SHOW\s+TABLES(?:\s+(?:IN|FROM)\s+{_NAME})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """`CREATE SCHEMA [IF NOT EXISTS] name`."""

    name: str
    ignores_existing: bool


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
class DropTable:
    """`DROP TABLE [IF EXISTS] namespace.name [PURGE]`."""

    name: str
    ignores_absent: bool
    purge: bool


@dataclass(frozen=True, slots=True)
class RenameTable:
    """`ALTER TABLE namespace.name RENAME TO [namespace.]name`."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ShowTables:
    """`SHOW TABLES [IN namespace]`."""

    namespace: str | None


NameStatement: TypeAlias = (
    CreateNamespace | DropNamespace | ShowNamespaces | DropTable | RenameTable | ShowTables
)


def name_statement(text: str) -> NameStatement | None:
    """Read a statement; None for one that does not concern the names of a catalog.

    InvalidInput for one that cannot be read.
    """
    text = statement_of(text)
    if found := _CREATE.fullmatch(text):
        return CreateNamespace(found[2].strip('"`'), found[1] is not None)
    if found := _DROP.fullmatch(text):
        cascade = (found[3] or "").strip().upper() == "CASCADE"
        return DropNamespace(found[2].strip('"`'), found[1] is not None, cascade)
    if _SHOW.fullmatch(text):
        return ShowNamespaces()
    if found := _DROP_TABLE.fullmatch(text):
        return DropTable(_plain(found[2]), found[1] is not None, found[3] is not None)
    if found := _RENAME_TABLE.fullmatch(text):
        old, new = _plain(found[1]), _plain(found[2])
        return RenameTable(old, new if "." in new else f"{old.rpartition('.')[0]}.{new}")
    if found := _SHOW_TABLES.fullmatch(text):
        return ShowTables(None if found[1] is None else found[1].strip('"`'))
    if _BEGINS.match(text):
        raise InvalidInput(
            f"sql: {text[:60]!r} cannot be read; write CREATE SCHEMA [IF NOT EXISTS] db, or "
            "DROP SCHEMA [IF EXISTS] db [CASCADE]"
        )
    return None


def _plain(name: str) -> str:
    """A table's name without quotes; InvalidInput if a quoted name has invalid characters."""
    return ".".join(identifier(part.strip('"`')) for part in re.findall(_PART, name))
