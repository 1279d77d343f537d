"""Statements on namespaces: `CREATE SCHEMA`, `DROP SCHEMA` and `SHOW SCHEMAS`.

NAMESPACE and DATABASE are other words for SCHEMA. A text is one statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from rowsieve.errors import InvalidInput
from rowsieve.procedures.call_statement import statement_of

_KIND: Final = r"(?:SCHEMA|NAMESPACE|DATABASE)"
_NAME: Final = r'("[^"]+"|`[^`]+`|[\w-]+)'
_CREATE = re.compile(rf"CREATE\s+{_KIND}\s+(IF\s+NOT\s+EXISTS\s+)?{_NAME}", re.IGNORECASE)
_DROP = re.compile(
    rf"DROP\s+{_KIND}\s+(IF\s+EXISTS\s+)?{_NAME}(\s+CASCADE|\s+RESTRICT)?", re.IGNORECASE
)
_SHOW = re.compile(rf"SHOW\s+{_KIND}S", re.IGNORECASE)
_BEGINS = re.compile(rf"(?:CREATE|DROP)\s+{_KIND}\b", re.IGNORECASE)


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


NamespaceStatement: TypeAlias = CreateNamespace | DropNamespace | ShowNamespaces


def namespace_statement(text: str) -> NamespaceStatement | None:
    """Read a statement; None for one that does not concern namespaces.

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
    if _BEGINS.match(text):
        raise InvalidInput(
            f"sql: {text[:60]!r} cannot be read; write CREATE SCHEMA [IF NOT EXISTS] db, or "
            "DROP SCHEMA [IF EXISTS] db [CASCADE]"
        )
    return None
