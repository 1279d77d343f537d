"""EXPLAIN of a change of our tables, in words that DataFusion plans; nothing runs.

The plan is that of DataFusion: an INSERT is planned without ON CONFLICT, and RETURNING is left out.
DataFusion has no physical plan of a change, which we run: a row has the flags of the write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion.changes.run_change import spelled_out, text_for_engine
from rowsieve.providers.datafusion.changes.statement_queries import (
    StatementQueries,
    closing,
)
from rowsieve.providers.datafusion.session.changed_table import Changed
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.statements.comments import blanked
from rowsieve.statements.parse_statement import explained_change
from rowsieve.statements.read_change import (
    Change,
    CreateTable,
    DropTable,
    Insert,
    read_change,
    take_returning,
)

if TYPE_CHECKING:
    from datafusion import DataFrame


_TREE: Final = re.compile(r"\bformat\s+tree\b", re.IGNORECASE)
_NO_PHYSICAL_PLAN: Final = "physical_plan_error"


def text_to_explain(
    session: OwnSession,
    query: str,
    values: Mapping[str, Any] | None,
    named_params: Mapping[str, Any],
) -> tuple[str, Changed | None]:
    """The text of an EXPLAIN for DataFusion, and the table of ours whose change it explains.

    UnsupportedOperation for a change whose physical plan alone is asked for.
    """
    if (explained := explained_change(query)) is None:
        return query, None
    words, change = explained
    changed = session.changed_table(change.name) if change.changes_rows else None
    if changed is None:
        return f"{words} {change.text}", None
    if _TREE.search(blanked(words)) is not None:
        raise UnsupportedOperation(
            f"sql: EXPLAIN FORMAT TREE {change.verb} is not available for a Rowsieve table: it "
            "shows a physical plan of DataFusion, and the change is run by Rowsieve; leave FORMAT "
            "TREE out"
        )
    return _spelled_out(session, changed, words, change, (values, named_params)), changed


def with_flags_of_write(session: OwnSession, frame: DataFrame, changed: Changed) -> DataFrame:
    """The rows of an EXPLAIN with the flags of the write instead of DataFusion's error.

    The error says that it has no physical plan of a change.
    """
    rows = frame.to_arrow_table()
    planned = rows.filter(pc.not_equal(rows["plan_type"], _NO_PHYSICAL_PLAN))
    flags = changed.table.handle.newest.table.flags.of_writes()
    lines = [f"{changed.name}: flag {flag}" for flag in flags if not flag.is_usual]
    if lines:
        row = {"plan_type": ["rowsieve"], "plan": ["\n".join(lines)]}
        planned = pa.concat_tables([planned, pa.table(row).cast(planned.schema)])
    return session.read_batches(planned.combine_chunks().to_batches())


def _spelled_out(
    session: OwnSession,
    changed: Changed,
    words: str,
    change: Change,
    parameters: tuple[Mapping[str, Any] | None, Mapping[str, Any]],
) -> str:
    text = change.tokens.whole if take_returning(change.tokens) else change.text
    statement = read_change(change.tokens)
    if statement is None or isinstance(statement, CreateTable | DropTable):
        return f"{words} {text}"
    named = session.refreshed(change.text)
    with closing(StatementQueries(session, changed, named, parameters)) as queries:
        statement = spelled_out(queries, statement)
    if isinstance(statement, Insert):
        return f"{words} {statement.text}"
    return f"{words} {text_for_engine(statement) or text}"
