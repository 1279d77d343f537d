"""EXPLAIN of a change of our tables, in words that DataFusion plans; nothing runs.

The plan is that of DataFusion: an INSERT is planned without ON CONFLICT, and RETURNING is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rowsieve.providers.datafusion.changes.run_change import spelled_out, text_for_engine
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries, closing
from rowsieve.statements.parse_statement import explained_change
from rowsieve.statements.read_change import (
    CreateTable,
    DropTable,
    Insert,
    read_change,
    take_returning,
)

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.sql_session import SessionContext


def text_to_explain(
    session: SessionContext,
    query: str,
    values: Mapping[str, Any] | None,
    given: Mapping[str, Any],
) -> str:
    """The text of an EXPLAIN for DataFusion; the same text if it explains another statement."""
    if (explained := explained_change(query)) is None:
        return query
    words, change = explained
    changed = session.changed_table(change.name) if change.changes_rows else None
    if changed is None:
        return f"{words} {change.text}"
    text = change.tokens.whole if take_returning(change.tokens) else change.text
    statement = read_change(change.tokens)
    if statement is None or isinstance(statement, CreateTable | DropTable):
        return f"{words} {text}"
    named = session.refreshed(change.text)
    with closing(StatementQueries(session, changed, named, (values, given))) as queries:
        statement = spelled_out(queries, statement)
    if isinstance(statement, Insert):
        return f"{words} {statement.text}"
    return f"{words} {text_for_engine(statement) or text}"
