"""Statements that create, describe, alter, empty or drop a table of ours in a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructType

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.bridges.sql.alterations import alterations_of
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.changes.constraint_texts import constraint_texts
from rowsieve.defined_tables import create_defined, names_in
from rowsieve.errors import InvalidInput, TableExists, TableNotFound, UnsupportedOperation
from rowsieve.properties import settings_among
from rowsieve.providers.spark.created_tables import (
    checks_of,
    created_rows,
    creation_options,
    refuse_others,
    write_new,
)
from rowsieve.providers.spark.frames import write_frame
from rowsieve.providers.spark.named.replacements import replace_rows
from rowsieve.providers.spark.named.session_definitions import check_definitions
from rowsieve.providers.spark.named.table_names import NamedTable, Names, dotted
from rowsieve.providers.spark.option_values import with_prefix
from rowsieve.providers.spark.plans import class_of, items
from rowsieve.providers.spark.reads.native_columns import quoted
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.text_literals import text_literal
from rowsieve.statements.calls import name_parts
from rowsieve.statements.name_lists import list_of_names
from rowsieve.statements.setting_actions import read_settings_change
from rowsieve.types.encodings import schema_of_arrow

if TYPE_CHECKING:
    from rowsieve.table import Table

_SOURCE: Final = "rowsieve"


def create_named(session: Any, names: Names, kind: str, plan: Any, query: Any) -> bool:
    """Create a table in a catalog of ours with columns, or with the rows of a query.

    False for a table of Spark's.
    """
    spec, parts = plan.tableSpec(), [str(part) for part in items(plan.name().nameParts())]
    provider = str(spec.provider().get()).lower() if spec.provider().isDefined() else _SOURCE
    if provider != _SOURCE:
        return False
    if (path := names.at_path(parts)) is not None:
        _create_at_path(session, names, kind, plan, query, path)
        return True
    if (place := names.place(parts)) is None:
        return False
    refuse_others(plan, spec)
    options = creation_options(spec)
    if "path" in options:
        raise InvalidInput(
            f"CREATE TABLE {dotted(parts)}: the catalog places its tables; leave the path out, or "
            "create the table at its path and register it"
        )
    others = [name for name in options if not name.startswith("property.")]
    if unknown := [name for name in others if name not in ("key", "sequence")]:
        raise InvalidInput(
            f"CREATE TABLE {dotted(parts)}: unknown option {unknown[0]!r}; options of a table in a "
            "catalog are key, sequence and property.*"
        )
    catalog, name = place
    frame = created_rows(session, plan, kind, query)
    if _is_settled(session, kind, plan, names.find(parts), options, frame):
        return True
    is_query = kind.endswith("AsSelect")
    if is_query and options.get("sequence"):
        raise UnsupportedOperation(
            f"CREATE TABLE {dotted(parts)}: an event order and AS query; nothing was created. "
            "Create the table with columns, then MERGE or apply the rows"
        )
    columns = arrow_schema_of(frame.schema)
    if is_query:
        columns = pa.schema([field.with_nullable(nullable=True) for field in columns])
    checks = checks_of(spec)
    check_definitions(session, checks, schema_of_arrow(columns))
    table = create_defined(
        catalog,
        name,
        columns,
        names_in(options, "key"),
        names_in(options, "sequence"),
        with_prefix(options, "property."),
        checks,
    )
    if is_query:
        _filled(catalog, name, table, frame)
    return True


def _create_at_path(
    session: Any, names: Names, kind: str, plan: Any, query: Any, path: str
) -> None:
    """Create a table at a path; it has no name but this."""
    spec = plan.tableSpec()
    refuse_others(plan, spec)
    options = creation_options(spec)
    if "path" in options:
        raise InvalidInput(
            f"CREATE TABLE rowsieve.`{path}`: the name is the path; leave the option path out"
        )
    if checks_of(spec):
        raise UnsupportedOperation(
            f"CREATE TABLE rowsieve.`{path}` does not take CHECK; nothing was created. Add it by "
            "ALTER TABLE ... ADD CONSTRAINT name CHECK (...), or create the table in a catalog"
        )
    try:
        named = names.find((_SOURCE, path))
    except TableNotFound:
        named = None
    frame = created_rows(session, plan, kind, query)
    if not _is_settled(session, kind, plan, named, options, frame):
        arrow_schema_of(frame.schema)  # refuses a type that a table cannot keep, by the column
        write_new(frame, path, {"key": "", **options})


def _is_settled(
    session: Any,
    kind: str,
    plan: Any,
    named: NamedTable | None,
    options: Mapping[str, str],
    frame: Any,
) -> bool:
    """Return whether nothing is to be created: the table exists, and its rows are replaced."""
    if kind.startswith("Replace"):
        if named is None:
            if plan.orCreate():
                return False
            raise TableNotFound(
                "REPLACE TABLE: there is no such table; nothing was created. CREATE OR REPLACE "
                "TABLE creates it"
            )
        replace_rows(session, named, options, checks_of(plan.tableSpec()), frame, kind)
        return True
    if named is None:
        return False
    if plan.ignoreIfExists():
        return True
    raise TableExists(f"CREATE TABLE: there is a table {named.name}; nothing was created")


def rename_named(named: NamedTable, actions: str) -> None:
    """Give a table the name of `RENAME TO name`; without a namespace, it stays in its own."""
    parts = tuple(name_parts(actions.split(maxsplit=2)[2]))
    if named.home is None:
        raise UnsupportedOperation(
            f"sql: ALTER TABLE {named.name} RENAME TO: the table is named by its path, and only "
            "names in a catalog can change; nothing was changed. Register it in a catalog, or move "
            "its folder"
        )
    catalog, name = named.home
    space = name.partition(".")[0]
    if len(parts) > 3 or (len(parts) == 3 and parts[:1] != named.parts[:-2]):
        raise InvalidInput(
            f"sql: ALTER TABLE {named.name} RENAME TO {dotted(parts)}: a table keeps its catalog; "
            "nothing was changed"
        )
    catalog.rename_table(name, f"{parts[-2] if len(parts) > 1 else space}.{parts[-1]}")


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
            f"sql: DROP TABLE {named.name}: the table is named by its path, and only names in a "
            "catalog can be dropped; nothing was changed. rowsieve.drop_table deletes a table"
        )
    catalog, name = named.home
    catalog.drop_table(name, purge=purge)


def create_statement(named: NamedTable) -> str:
    """The statement that creates a table with these columns, key and properties."""
    table = named.table
    info = table.handle.pinned.table
    columns = [
        f"  {quoted(column.name)} {_type_text(column.dataType)}"
        f"{'' if column.nullable else ' NOT NULL'}"
        for column in spark_schema(table.handle.pinned.schema)
    ]
    columns += [
        f"  CONSTRAINT {quoted(name)} CHECK ({condition})"
        for name, condition in constraint_texts(table.handle.pinned, "spark").items()
    ]
    options = {f"property.{n}": text for n, text in settings_among(info.properties).items()}
    for option, names in (("key", info.key), ("sequence", info.sequence)):
        if names:
            options[option] = list_of_names(names)
    if named.home is None:
        options["path"] = table.uri
    shown = ", ".join(f"{quoted(name)} {text_literal(value)}" for name, value in options.items())
    name = "named" if named.home is None else named.name
    clause = f"\nOPTIONS ({shown})" if shown else ""
    listed = ",\n".join(columns)
    return f"CREATE TABLE {name} (\n{listed})\nUSING rowsieve{clause}"


def _type_text(type_: Any) -> str:
    """The type as a statement writes it, with the names of fields as they are."""
    match type_:
        case StructType():
            fields = ", ".join(
                f"{quoted(each.name)}: {_type_text(each.dataType)}"
                f"{'' if each.nullable else ' NOT NULL'}"
                for each in type_
            )
            return f"STRUCT<{fields}>"
        case ArrayType(elementType=element):
            return f"ARRAY<{_type_text(element)}>"
        case MapType(keyType=key, valueType=value):
            return f"MAP<{_type_text(key)}, {_type_text(value)}>"
        case _:
            return str(type_.simpleString()).upper()


def alter_named(session: Any, named: NamedTable, actions: str) -> None:
    """Run the actions of an ALTER TABLE in one commit."""
    schema = named.table.handle.latest().schema
    if read_settings_change(actions, dialect_named("spark")) is None:
        check_definitions(session, alterations_of(actions, schema, "spark"), schema)
    named.table.sql(f"ALTER TABLE this {actions}", "spark")


def is_source_of_spark(session: Any, parts: Sequence[str]) -> bool:
    """Return whether a table of Spark's own catalog, which exists, is one of our source."""
    state = session._jsparkSession.sessionState()
    name = state.sqlParser().parseTableIdentifier(dotted(parts[-2:]))
    provider = state.catalog().getTableMetadata(name).provider()
    return bool(provider.isDefined()) and str(provider.get()).lower() == _SOURCE


def kind_of(plan: Any) -> str:
    """The name of the class of a statement's plan, without its package."""
    return class_of(plan).rpartition(".")[2]
