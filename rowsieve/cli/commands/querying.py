"""The commands that print rows of tables: query, head, show.

The command `changes` prints rows of the change feed: `following.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from rowsieve.cli.bundles import MeaningOptions, RowsOptions, VersionOptions, expanded
from rowsieve.cli.named import catalog_of, check_catalog
from rowsieve.cli.options import (
    INT64_MAX,
    Columns,
    Limit,
    Params,
    Uri,
    read_pairs,
    read_params,
)
from rowsieve.cli.progress import CatalogChange, begin


@expanded
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
    at: VersionOptions,
    param: Params = None,
    limit: Limit = None,
    rows: RowsOptions,
) -> None:
    """Run SQL through DataFusion; --json is --output json."""
    from rowsieve.cli.commands.run_query import run_query

    named = _by_name(tables or [], read_pairs(table, "--table"))
    values = read_params(param)
    options = read_pairs(at.storage_option, "--storage-option")
    catalog = None if named else catalog_of(options)
    if catalog is not None:
        if at.version is not None or at.as_of is not None:
            raise typer.BadParameter("write db.t FOR VERSION AS OF 12 in the query instead")
        check_catalog(catalog, options)
        begin(CatalogChange(catalog.uri))  # it may be a statement that changes something
        answer = catalog.sql(sql, params=values)
        rows.show(answer.schema, answer.to_batches(), limit)
    elif named:
        opened = {name: at.table(uri) for name, uri in named.items()}
        rows.show(*run_query(sql, opened, values), limit)
    else:
        raise typer.BadParameter("name the tables that the query reads, or use --table NAME=TABLE")


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


@expanded
def head(
    uri: Uri,
    count: Annotated[
        int, typer.Option("--rows", "-n", min=0, max=INT64_MAX, help="How many rows.")
    ] = 10,
    *,
    column: Columns = None,
    at: VersionOptions,
    rows: RowsOptions,
) -> None:
    """Show the first rows: in the order of the key, if there is one."""
    table = at.table(uri)
    first = table.scan(columns=column, limit=count, order_by_key=bool(table.key)).to_arrow()
    rows.show(first.schema, first.to_batches(), count)


@expanded
def show(
    uri: Uri,
    where: Annotated[
        str | None,
        typer.Argument(help='The condition of the rows, as SQL: "n > 5".', show_default=False),
    ] = None,
    *,
    column: Columns = None,
    at: VersionOptions,
    meaning: MeaningOptions,
    limit: Limit = None,
    rows: RowsOptions,
) -> None:
    """Show rows that match a condition."""
    scan = at.table(uri).scan(
        where, columns=column, dialect=meaning.dialect, session=meaning.session
    )
    rows.show(scan.schema, scan.to_batches(), limit)
