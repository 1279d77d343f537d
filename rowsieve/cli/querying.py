"""The commands that read a table: query, explain, history, inspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from rowsieve.cli.named import catalog_of, check_catalog
from rowsieve.cli.options import (
    Ansi,
    AsJson,
    AsOf,
    Dialect,
    Html,
    Limit,
    Output,
    Params,
    StorageOptions,
    TimeZone,
    Uri,
    Version,
    Vertical,
    Wide,
    open_at,
    read_pairs,
    read_params,
    session_of,
)
from rowsieve.cli.output import print_facts, print_json, print_table
from rowsieve.cli.progress import CatalogChange, begin
from rowsieve.pictures.page import page, section, write_html


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
    param: Params = None,
    limit: Limit = None,
    output: Output = "text",
    vertical: Vertical = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Run SQL through DataFusion; --json is --output json."""
    from rowsieve.cli.printing.writing import show_rows
    from rowsieve.cli.run_query import run_query

    named = _by_name(tables or [], read_pairs(table, "--table"))
    values = read_params(param)
    catalog = None if named else catalog_of(read_pairs(storage_option, "--storage-option"))
    if catalog is not None:
        if version is not None or as_of is not None:
            raise typer.BadParameter("write db.t FOR VERSION AS OF 12 in the query instead")
        check_catalog(catalog, read_pairs(storage_option, "--storage-option"))
        begin(CatalogChange(catalog.uri))  # it may be a statement that changes something
        answer = catalog.sql(sql, params=values)
        schema, batches = answer.schema, iter(answer.to_batches())
    elif named:
        opened = {name: open_at(uri, storage_option, version, as_of) for name, uri in named.items()}
        schema, batches = run_query(sql, opened, values)
    else:
        raise typer.BadParameter("name the tables that the query reads, or use --table NAME=TABLE")
    chosen = "json" if as_json else output
    show_rows(schema, batches, chosen, limit, wide=wide, vertical=vertical)


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
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Also read all rows once, and show what was counted.")
    ] = False,
    html: Html = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show which parts a read skips, and which condition and bounds prove it."""
    scan = open_at(uri, storage_option, version, as_of).scan(
        where, dialect=dialect, session=session_of(time_zone, ansi)
    )
    explanation = scan.explain(row_groups=row_groups, analyze=analyze)
    if html is not None:
        explanation.picture().save(html)
    if as_json:
        print_json(explanation.as_dict())
    else:
        typer.echo(str(explanation))


def history(
    uri: Uri,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Show only this many commits.")] = None,
    html: Html = None,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the commits, newest first."""
    table = open_at(uri, storage_option)
    commits = table.history(limit)
    if html is not None:
        table.timeline(max(len(commits), 1)).save(html)
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
        first=("version", "operation", "written", "deleted", "time"),
    )


def inspect(
    uri: Uri,
    *,
    parts: Annotated[bool, typer.Option("--parts", help="List every part.")] = False,
    html: Html = None,
    wide: Wide = False,
    version: Version = None,
    as_of: AsOf = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show a table's columns, key, version and sizes, and optionally its parts."""
    from rowsieve.cli.inspected import columns_of, flags_set, parts_of

    table = open_at(uri, storage_option, version, as_of)
    if html is not None:
        sections = [section(picture) for picture in (table.key_ranges(), table.health())]
        write_html(page(table.uri, sections), html)
    detail = table.detail()
    columns = columns_of(table)
    listed = parts_of(table) if parts else None
    if as_json:
        extra = {} if listed is None else {"part_list": listed}
        print_json({**detail, "columns": columns, **extra})
        return
    if not detail["distinct_counts"]:
        del detail["distinct_counts"]
    del detail["flags"]
    if flags := flags_set(table):
        detail["flags"] = flags
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
    from rowsieve.objects import Location, table_uri_of

    return Location.parse(table_uri_of(uri)).name


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}={text}" for name, text in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else value
