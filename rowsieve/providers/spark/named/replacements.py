"""CREATE OR REPLACE of a table of ours that exists: its rows are replaced in one commit.

The table keeps its versions, as in Delta Lake and Iceberg. It keeps its columns, key and order too,
so the statement must say the same ones: a table whose columns are replaced would have another
meaning for what reads it by name, and its key cannot change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.changes.computed import emptied
from rowsieve.defined_tables import names_in
from rowsieve.errors import UnsupportedOperation
from rowsieve.properties import settings_among
from rowsieve.providers.spark.frames import write_frame
from rowsieve.providers.spark.named.inserts import refuse_own_rows
from rowsieve.providers.spark.option_values import with_prefix
from rowsieve.providers.spark.writes.batch_tokens import labels_of

if TYPE_CHECKING:
    from rowsieve.providers.spark.named.table_names import NamedTable
    from rowsieve.table import Table


def replace_rows(
    session: Any,
    named: NamedTable,
    options: Mapping[str, str],
    checks: Sequence[Any],
    frame: Any,
    kind: str,
) -> None:
    """Replace the rows of a table by those of the frame, or by none for columns without a query."""
    table, is_query = named.table, kind.endswith("AsSelect")
    if (difference := _difference(table, options, checks, frame, is_query=is_query)) is not None:
        raise UnsupportedOperation(
            f"sql: CREATE OR REPLACE of {named.name} replaces its rows, and {difference}; nothing "
            "was changed. ALTER TABLE changes columns and properties; DROP TABLE ... PURGE removes "
            "the table"
        )
    if is_query:
        refuse_own_rows(table, frame)
        columns = spark_schema(table.handle.pinned.schema).toNullable()
        write_frame(table, frame.to(columns), "overwrite")
        return
    with labels_of(table, session, "overwrite", None, None) as labels:
        table.handle.commit_computed("overwrite", emptied, token=labels.token)


def _difference(
    table: Table, options: Mapping[str, str], checks: Sequence[Any], frame: Any, *, is_query: bool
) -> str | None:
    """How the statement defines another table; None if it does not."""
    info, schema = table.handle.pinned.table, spark_schema(table.handle.pinned.schema)
    ours = [(each.name.lower(), each.dataType) for each in schema]
    theirs = [(each.name.lower(), each.dataType) for each in frame.schema]
    if ours != theirs:
        kind = "query" if is_query else "statement"
        columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in schema)
        return f"the {kind} has other columns than ({columns})"
    for option, names in (("key", info.key), ("sequence", info.sequence)):
        if option in options and tuple(names_in(options, option) or ()) != tuple(names):
            return f"its {option} is ({', '.join(names)})"
    settings = dict(settings_among(info.properties))
    properties = {name: str(text) for name, text in with_prefix(options, "property.").items()}
    if others := [name for name, text in properties.items() if settings.get(name) != text]:
        return f"the statement has another property {others[0]}"
    return "the statement has constraints" if checks else None
