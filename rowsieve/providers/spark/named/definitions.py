"""Statements that create, describe, alter, empty or drop a table of ours in a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import InvalidInput, TableExists, UnsupportedOperation
from rowsieve.providers.spark.created_tables import created_rows, creation_options, refuse_others
from rowsieve.providers.spark.frames import write_frame
from rowsieve.providers.spark.named.table_names import NamedTable, Names, dotted
from rowsieve.providers.spark.option_values import names_of, with_prefix
from rowsieve.providers.spark.plans import class_of, items
from rowsieve.providers.spark.reads.native_columns import quoted
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.text_literals import text_literal

if TYPE_CHECKING:
    from rowsieve.table import Table

_SOURCE: Final = "rowsieve"


def create_named(session: Any, names: Names, kind: str, plan: Any, query: Any) -> bool:
    """Create a table in a catalog of ours with columns, or with the rows of a query.

    False for a table of Spark's.
    """
    spec, parts = plan.tableSpec(), [str(part) for part in items(plan.name().nameParts())]
    provider = str(spec.provider().get()).lower() if spec.provider().isDefined() else _SOURCE
    if provider != _SOURCE or (place := names.place(parts)) is None:
        return False
    refuse_others(plan, kind, spec)
    options = creation_options(spec)
    if "path" in options:
        raise InvalidInput(
            f"CREATE TABLE {dotted(parts)}: the catalog places its tables; leave the path out, or "
            "create the table at its path and register it"
        )
    unknown = [name for name in options if name != "key" and not name.startswith("property.")]
    if unknown:
        raise InvalidInput(
            f"CREATE TABLE {dotted(parts)}: unknown option {unknown[0]!r}; options of a table in a "
            "catalog are key and property.*"
        )
    catalog, name = place
    if named := names.find(parts):
        if plan.ignoreIfExists():
            return True
        raise TableExists(f"CREATE TABLE: there is a table {named.name}; nothing was created")
    frame = created_rows(session, plan, kind, query)
    key = names_of(options["key"], "key") if options.get("key") else None
    is_query = kind.endswith("AsSelect")
    columns = arrow_schema_of(frame.schema)
    if is_query:
        columns = pa.schema([field.with_nullable(nullable=True) for field in columns])
    table = catalog.create_table(name, columns, key, properties=with_prefix(options, "property."))
    if is_query:
        _filled(catalog, name, table, frame)
    return True


def _filled(catalog: Any, name: str, table: Table, frame: Any) -> None:
    """Write the rows of a new table; without them it is dropped again."""
    try:
        write_frame(table, frame, "upsert" if table.key else "append")
    except BaseException:
        catalog.drop_table(name, purge=True)
        raise


def drop_named(named: NamedTable, *, purge: bool) -> None:
    """Drop the name of a table in its catalog; with `purge` its files, too."""
    if named.home is None:
        raise UnsupportedOperation(
            f"sql: DROP TABLE {named.name}: a path has no name to drop; nothing was changed"
        )
    catalog, name = named.home
    catalog.drop_table(name, purge=purge)


def create_statement(named: NamedTable) -> str:
    """The statement that creates a table with these columns, key and properties."""
    table = named.table
    info = table.handle.pinned.table
    columns = ",\n".join(
        f"  {quoted(column.name)} {column.dataType.simpleString().upper()}"
        f"{'' if column.nullable else ' NOT NULL'}"
        for column in spark_schema(table.handle.pinned.schema)
    )
    options = {f"property.{name}": value for name, value in sorted(info.properties.items())}
    if info.key:
        options["key"] = ", ".join(info.key)
    if named.home is None:
        options["path"] = table.uri
    given = ", ".join(f"{quoted(name)} {text_literal(value)}" for name, value in options.items())
    name = "named" if named.home is None else named.name
    clause = f"\nOPTIONS ({given})" if given else ""
    return f"CREATE TABLE {name} (\n{columns})\nUSING rowsieve{clause}"


def alter_named(named: NamedTable, actions: str) -> None:
    """Run the actions of an ALTER TABLE in one commit."""
    with named.table.alter() as alteration:
        alteration.sql(actions, "spark")


def is_source_of_spark(session: Any, parts: Sequence[str]) -> bool:
    """Return whether a table of Spark's own catalog, which exists, is one of our source."""
    state = session._jsparkSession.sessionState()
    name = state.sqlParser().parseTableIdentifier(dotted(parts[-2:]))
    provider = state.catalog().getTableMetadata(name).provider()
    return bool(provider.isDefined()) and str(provider.get()).lower() == _SOURCE


def kind_of(plan: Any) -> str:
    """The name of the class of a statement's plan, without its package."""
    return class_of(plan).rpartition(".")[2]
