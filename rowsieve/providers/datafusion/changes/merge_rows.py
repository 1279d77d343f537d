"""Runs the merge of `Table.merge`: the MERGE of our session, over rows in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.providers.datafusion.changes.run_change import with_columns
from rowsieve.providers.datafusion.changes.sql_merge import merge_once
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries, closing
from rowsieve.providers.datafusion.rows_in_memory import batches_of
from rowsieve.providers.datafusion.sql_session import SessionContext
from rowsieve.statements.merge_statement import Merge
from rowsieve.storage.log.log_entry import Commit

if TYPE_CHECKING:
    from rowsieve.table import Table


def merge_rows(
    table: Table,
    sources: Mapping[str, pa.Table],
    statement: Merge,
    constants: Mapping[str, Any],
    retry_timeout_s: float | None,
    token: Token | None,
    metadata: Metadata | None,
) -> Commit:
    """Merge the rows that the statement names into the table, in one commit or none."""
    session = SessionContext()
    name = statement.target.parts[-1]
    session.register_table(name, table)
    for source, rows in sources.items():
        batches = batches_of(rows)
        session.register_record_batches(source, [batches])
    with table.handle.turn():
        table.refresh()
        named = session.refreshed(statement.target.relation)
        changed = session.changed_table((name,))
        assert changed is not None
        with closing(StatementQueries(session, changed, named, (constants, {}))) as queries:
            if statement.takes_source:
                statement = with_columns(queries, statement)
            queries.check(statement.text, None)
            commit, _ = merge_once(
                queries,
                statement,
                retry_timeout_s=retry_timeout_s,
                token=token,
                metadata=metadata,
            )
            return commit
