"""Evaluates RETURNING of a statement over the rows that it writes or deletes, before it commits.

Soundness: the rows are those of the attempt that is committed. If an expression fails, nothing is
committed. Subqueries read the version before the statement, as in PostgreSQL.
"""

from __future__ import annotations

import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion.changes.assigned_values import without_views
from rowsieve.providers.datafusion.changes.change_queries import Queries
from rowsieve.statements.read_change import (
    ChangeStatement,
    Delete,
    Insert,
    OnConflict,
    Update,
)
from rowsieve.statements.tokens import Target
from rowsieve.storage.snapshot import Snapshot


class ReturnedRows:
    """The result of RETURNING; `text` are its expressions."""

    def __init__(self, queries: Queries, target: Target, text: str) -> None:
        self._queries = queries
        self._target = target
        self.text = text
        self._rows: pa.Table | None = None

    def evaluate(self, rows: pa.Table, at: Snapshot) -> None:
        """Evaluate the expressions over rows with all columns; replaces an earlier attempt's."""
        name = self._queries.register_rows(rows)
        query = f"SELECT {self.text} FROM {name} AS {self._target.qualifier}"  # noqa: S608 - of the statement
        self._rows = without_views(self._queries.rows(query, at))

    def result(self) -> pa.Table:
        """The values of the last attempt."""
        assert self._rows is not None
        return self._rows


def returned_rows(queries: Queries, statement: ChangeStatement, text: str) -> ReturnedRows | None:
    """What evaluates these expressions; None if there are none.

    UnsupportedOperation for a statement whose rows are not known before it commits.
    """
    if not text:
        return None
    if not (what := _without_returning(statement)) and queries.table.handle.pinned.table.sequence:
        what = "a statement on a table with an event order, which leaves late rows out"
    if what:
        raise UnsupportedOperation(
            f"sql: RETURNING is not available for {what}: its result is the number of rows. Leave "
            "it out, and query the rows afterwards, or read the change feed of the commit"
        )
    return ReturnedRows(queries, statement.target, text)


def _without_returning(statement: ChangeStatement) -> str:
    """The kind of a statement that has no RETURNING; empty for others."""
    match statement:
        case Insert(on_conflict=OnConflict.UPDATE):
            return "ON CONFLICT DO UPDATE"
        case Insert() | Update() | Delete():
            return ""
        case _:
            return "MERGE, UPDATE … FROM, DELETE … USING or TRUNCATE"
