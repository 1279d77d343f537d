"""Runs ALTER TABLE of a session as one commit of the table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.statements.alter import AlterTable


def alter(
    session: OwnSession,
    statement: AlterTable,
    plan: Callable[[str], Any],
    values: Iterable[Any],
) -> int | None:
    """Alter a table of ours; return the version, None if the table is not ours.

    `plan` has DataFusion plan a statement with the options of the call, which may forbid changes.
    """
    name = ".".join(statement.target.parts)
    if (changed := session.changed_table(statement.target.parts)) is None:
        if session.catalog_named(session.full_name(statement.target.parts)[0]) is None:
            return None
        raise InvalidInput(f"sql: ALTER TABLE: the catalog has no table {name}; create it first")
    if statement.actions.upper().split()[:2] == ["RENAME", "TO"]:
        raise UnsupportedOperation(
            f"sql: ALTER TABLE {name} RENAME TO is not available in this session, which knows the "
            "table under a name; use rename_table of its catalog, or register it under another name"
        )
    if any(values):
        raise InvalidInput("sql: ALTER TABLE has no parameters; leave the values out")
    plan(f"DROP TABLE IF EXISTS rowsieve_{uuid.uuid4().hex}")  # DataFusion knows if it is allowed
    return changed.table.sql(f"ALTER TABLE this {statement.actions}", "datafusion").version
