"""The commands that look at a table: head, show, du, diff, profile."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rowsieve.cli import completing
from rowsieve.cli.named import catalog_of, check_catalog
from rowsieve.cli.options import (
    INT64_MAX,
    AsJson,
    AsOf,
    Dialect,
    Html,
    Limit,
    Output,
    StorageOptions,
    Uri,
    Version,
    Vertical,
    Wide,
    open_at,
    read_pairs,
)
from rowsieve.cli.output import print_facts, print_json, print_table
from rowsieve.shown import size_text

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="Show only this column; repeatable.",
        autocompletion=completing.columns,
    ),
]


def head(
    uri: Uri,
    count: Annotated[
        int, typer.Option("--rows", "-n", min=0, max=INT64_MAX, help="How many rows.")
    ] = 10,
    *,
    column: Columns = None,
    version: Version = None,
    as_of: AsOf = None,
    output: Output = "text",
    vertical: Vertical = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show the first rows: in the order of the key, if there is one."""
    from rowsieve.cli.printing.writing import show_rows

    table = open_at(uri, storage_option, version, as_of)
    rows = table.scan(columns=column, limit=count, order_by_key=bool(table.key)).to_arrow()
    chosen = "json" if as_json else output
    batches = iter(rows.to_batches())
    show_rows(rows.schema, batches, chosen, count, wide=wide, vertical=vertical)


def show(
    uri: Uri,
    where: Annotated[
        str | None,
        typer.Argument(help='The condition of the rows, as SQL: "n > 5".', show_default=False),
    ] = None,
    *,
    column: Columns = None,
    version: Version = None,
    as_of: AsOf = None,
    dialect: Dialect = "postgres",
    limit: Limit = None,
    output: Output = "text",
    vertical: Vertical = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show rows that match a condition."""
    from rowsieve.cli.printing.writing import show_rows

    table = open_at(uri, storage_option, version, as_of)
    scan = table.scan(where, columns=column, dialect=dialect)
    chosen = "json" if as_json else output
    show_rows(scan.schema, scan.to_batches(), chosen, limit, wide=wide, vertical=vertical)


def du(
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="A folder, a URI or a name; without it, all tables of the catalog.",
            show_default=False,
        ),
    ] = None,
    *,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show how many bytes the newest version has, and older versions and other files beside it."""
    names = [uri] if uri is not None else _all_tables(storage_option)
    sizes = [{"table": name, **_sizes(name, storage_option)} for name in names]
    if as_json:
        print_json(sizes[0] if uri is not None else sizes)
        return
    heads = ["table", "rows", "newest version", "all files", "files"]
    cells = [
        (
            each["table"],
            f"{each['rows']:,}",
            size_text(each["live_bytes"]),
            size_text(each["disk_bytes"]),
            f"{each['files']:,}",
        )
        for each in sizes
    ]
    print_table(heads, cells, wide=wide)


def _all_tables(storage_option: list[str] | None) -> list[str]:
    catalog = catalog_of(read_pairs(storage_option, "--storage-option"))
    if catalog is None:
        raise typer.BadParameter("name a table, or a catalog by --catalog")
    check_catalog(catalog, read_pairs(storage_option, "--storage-option"))
    return catalog.tables()


def _sizes(uri: str, storage_option: list[str] | None) -> dict[str, Any]:
    gauges = open_at(uri, storage_option).gauges(disk=True)
    return {
        "rows": int(gauges["rows"]),
        "live_bytes": int(gauges["size_bytes"]),
        "disk_bytes": int(gauges["disk_bytes"]),
        "files": int(gauges["disk_files"]),
    }


def diff(
    uri: Uri,
    before: Annotated[
        int, typer.Argument(min=0, max=INT64_MAX, help="The older version.", show_default=False)
    ],
    after: Annotated[
        int | None,
        typer.Argument(max=INT64_MAX, help="The newer version; the newest unless given."),
    ] = None,
    *,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Compare only rows that match, as SQL.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="How many rows of each kind to show.")] = 10,
    dialect: Dialect = "postgres",
    html: Html = None,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show what turns one version of a table with a key into another, net."""
    table = open_at(uri, storage_option)
    found = table.difference(before, after, where=where, samples=samples, dialect=dialect)
    if html is not None:
        found.save(html)
    if as_json:
        print_json(found.as_dict())
        return
    typer.echo(f"versions {found.before} to {found.after}: {found.summary}")
    if found.columns:
        print_facts({f"updated {name}": count for name, count in found.columns})
    if found.samples:
        names = ["key", "kind", "column", "before", "after"]
        print_table(names, [tuple(cell) for cell in found.samples], wide=wide)


def profile(
    uri: Uri,
    *,
    exact: Annotated[
        bool, typer.Option("--exact", help="Read the rows where statistics are not exact.")
    ] = False,
    html: Html = None,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show the NULLs, bounds and numbers of different values of each column."""
    table = open_at(uri, storage_option)
    found = table.profile(exact=exact)
    if html is not None:
        found.save(html)
    if as_json:
        print_json(found.as_dict())
        return
    typer.echo(f"version {found.version}: {found.summary}")
    rows = [tuple(column) for column in found.columns]
    print_table(list(found.columns[0]._fields) if rows else ["name"], rows, wide=wide)
