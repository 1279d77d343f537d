"""The commands that read a table: query, explain, history, inspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any

import pyarrow as pa
import typer

from rowsieve import errors
from rowsieve.bridges.extras import imported
from rowsieve.cli.named import catalog_of
from rowsieve.cli.options import (
    Ansi,
    AsJson,
    AsOf,
    Dialect,
    StorageOptions,
    TimeZone,
    Uri,
    Version,
    Wide,
    open_at,
    read_pairs,
    session_of,
)
from rowsieve.cli.output import print_facts, print_json, print_table
from rowsieve.cli.progress import CatalogChange, begin
from rowsieve.cli.writing import Limit, Output, show_rows
from rowsieve.errors import InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.objects import Location, table_uri_of
from rowsieve.statements.calls import CallStatement
from rowsieve.statements.parse_statement import parse
from rowsieve.statements.query_words import VERSION
from rowsieve.statements.read_change import Change
from rowsieve.statements.refused import Refused
from rowsieve.statements.tokens import quoted
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.table import Table
from rowsieve.types.logical import type_name
from rowsieve.types.shown_values import python_value


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement.")],
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="The tables; each has the name of its folder."),
    ] = None,
    *,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", metavar="NAME=TABLE", help="A table with another name; repeatable."
        ),
    ] = None,
    version: Version = None,
    as_of: AsOf = None,
    limit: Limit = None,
    output: Output = "text",
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Run SQL through DataFusion; --json is --output json."""
    named = _by_name(tables or [], read_pairs(table, "--table"))
    catalog = None if named else catalog_of(read_pairs(storage_option, "--storage-option"))
    if catalog is not None:
        if version is not None or as_of is not None:
            raise typer.BadParameter("write db.t FOR VERSION AS OF 12 in the query instead")
        begin(CatalogChange(catalog.uri))  # it may be a statement that changes something
        answer = catalog.sql(sql)
        schema, batches = answer.schema, iter(answer.to_batches())
    elif named:
        opened = {name: open_at(uri, storage_option, version, as_of) for name, uri in named.items()}
        schema, batches = _run(sql, opened)
    else:
        raise typer.BadParameter("name the tables that the query reads, or use --table NAME=TABLE")
    show_rows(schema, batches, "json" if as_json else output, limit, wide=wide)


def explain(
    uri: Uri,
    where: Annotated[
        str | None, typer.Argument(help="The condition of the read, as SQL.", show_default=False)
    ] = None,
    *,
    version: Version = None,
    as_of: AsOf = None,
    dialect: Dialect = "postgres",
    time_zone: TimeZone = None,
    ansi: Ansi = None,
    row_groups: Annotated[
        bool, typer.Option("--row-groups", help="Also explain row groups; opens the parts.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show which parts a read skips, and which condition and bounds prove it."""
    scan = open_at(uri, storage_option, version, as_of).scan(
        where, dialect=dialect, session=session_of(time_zone, ansi)
    )
    explanation = scan.explain(row_groups=row_groups)
    if as_json:
        print_json(explanation.as_dict())
    else:
        typer.echo(str(explanation))


def history(
    uri: Uri,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Show only this many commits.")] = None,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the commits, newest first."""
    commits = open_at(uri, storage_option).history(limit)
    if as_json:
        print_json([asdict(commit) for commit in commits])
        return
    print_table(
        ["version", "time", "operation", "written", "deleted", "parts +", "parts -", "metadata"],
        [
            (
                commit.version,
                commit.timestamp,
                commit.operation,
                commit.rows_written,
                commit.rows_deleted,
                commit.parts_added,
                commit.parts_removed,
                _shown(dict(commit.metadata)),
            )
            for commit in commits
        ],
        wide=wide,
    )


def inspect(
    uri: Uri,
    *,
    parts: Annotated[bool, typer.Option("--parts", help="List every part.")] = False,
    wide: Wide = False,
    version: Version = None,
    as_of: AsOf = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show a table's columns, key, version and sizes, and optionally its parts."""
    table = open_at(uri, storage_option, version, as_of)
    detail = table.detail()
    columns = _columns(table)
    listed = _parts(table.handle.pinned.parts, table.key) if parts else None
    if as_json:
        extra = {} if listed is None else {"part_list": listed}
        print_json({**detail, "columns": columns, **extra})
        return
    if not detail["distinct_counts"]:
        del detail["distinct_counts"]
    print_facts({name: _shown(value) for name, value in detail.items()})
    kinds = [tuple(column.values()) for column in columns]
    print_table(["id", "column", "type", "null", "comment"][: len(kinds[0])], kinds, wide=wide)
    if listed:
        print_table(list(listed[0]), [tuple(part.values()) for part in listed], wide=wide)


def _by_name(uris: Sequence[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """The tables by name; two tables with one name are an error."""
    named = dict(renamed)
    for uri in uris:
        name = _folder_name(uri)
        if name in named:
            raise typer.BadParameter(
                f"{name!r} names a table twice, {named[name]} and {uri}; give one of them another "
                "name with --table NAME=TABLE"
            )
        named[name] = uri
    return named


def _folder_name(uri: str) -> str:
    return Location.parse(table_uri_of(uri)).name


def _run(sql: str, tables: dict[str, Table]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    _check_reads(sql)
    datafusion = imported("datafusion", "datafusion")
    context = import_module("rowsieve.providers.datafusion").SessionContext()
    for name, table in tables.items():
        context.register_table(quoted(name), table)
    only_read = datafusion.SQLOptions().with_allow_ddl(allow=False)
    only_read = only_read.with_allow_dml(allow=False).with_allow_statements(allow=False)
    try:
        frame = context.sql(sql, only_read)
        stream = frame.execute_stream()
        schema = frame.schema()
    except Exception as error:
        if VERSION.search(sql):
            raise UnsupportedOperation(
                "query: the text names no versions; give --version or --as-of, or query a catalog"
            ) from error
        raise _as_ours(error, f"; the tables of the query are {', '.join(tables)}") from error
    return schema, _batches(stream)


def _check_reads(sql: str) -> None:
    """Raise UnsupportedOperation for a statement that is not a query, such as DELETE or CALL."""
    statement = parse(sql, "datafusion")
    if isinstance(statement, Refused):
        raise statement.error
    if isinstance(statement, Change):
        raise UnsupportedOperation(
            f"query: {statement.verb} changes tables, and query only reads them; the commands "
            "upsert, delete, update, overwrite and apply change a table"
        )
    if isinstance(statement, CallStatement):
        raise UnsupportedOperation(
            "query: procedures belong to a catalog: rowsieve --catalog CATALOG call …"
        )


def _batches(stream: Any) -> Iterator[pa.RecordBatch]:
    try:
        for batch in stream:
            yield batch.to_pyarrow()
    except Exception as error:
        raise _as_ours(error) from error


def _as_ours(error: Exception, known: str = "") -> RowsieveError:
    """Recover our error: DataFusion passes it on only as text that begins with its class name."""
    if isinstance(error, RowsieveError):
        return InvalidInput(f"{error}{known}") if type(error) is InvalidInput else error
    text = str(error)
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, RowsieveError) and f"{name}: " in text:
            message = text.partition(f"{name}: ")[2]
            try:
                return kind(message)
            except TypeError:  # its constructor needs attributes that the text does not have
                return InvalidInput(text)
    return InvalidInput(f"query: {text.removeprefix('DataFusion error: ')}{known}")


def _columns(table: Table) -> list[dict[str, Any]]:
    snapshot = table.handle.pinned
    has_comments = any(field.comment for field in snapshot.schema)
    return [
        {
            "id": field.id,
            "name": field.name,
            "type": type_name(field.type),
            "nullable": field.nullable,
            **({"comment": field.comment or ""} if has_comments else {}),
        }
        for field in snapshot.schema
    ]


def _parts(parts: PartTable, key: tuple[str, ...]) -> list[dict[str, Any]]:
    entries = parts.entries(range(len(parts)))
    return [
        {
            "part": entry.part_id,
            "commits": [entry.commit_ts_min, entry.commit_ts_max],
            "rows": 0 if entry.data is None else entry.data.rows,
            "hidden": sum(ref.rows for ref in (entry.dv, entry.vector) if ref is not None),
            "tombstones": 0 if entry.deletes is None else entry.deletes.rows,
            "size_bytes": sum(
                ref.size_bytes
                for ref in (entry.data, entry.deletes, entry.dv, entry.vector)
                if ref is not None
            ),
            "key_lower": _bound(key, entry.key_lower),
            "key_upper": _bound(key, entry.key_upper),
            "data": None if entry.data is None else entry.data.path,
        }
        for entry in entries
    ]


def _bound(key: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    return {
        name: None if value is None else python_value(value)
        for name, value in zip(key, values, strict=False)
    }


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}={text}" for name, text in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else value
