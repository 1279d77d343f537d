"""The command `changes`: prints the change feed of a table, and follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rowsieve import clock
from rowsieve.cli import completing
from rowsieve.cli.options import (
    INT64_MAX,
    AsJson,
    Dialect,
    Format,
    Limit,
    Output,
    StorageOptions,
    Uri,
    Vertical,
    Wide,
    open_at,
)

if TYPE_CHECKING:
    from rowsieve.table import Table


def changes(
    uri: Uri,
    *,
    from_version: Annotated[
        int, typer.Option("--from", min=0, max=INT64_MAX, help="The first version of the changes.")
    ],
    to_version: Annotated[
        int | None,
        typer.Option(
            "--to", min=0, max=INT64_MAX, help="The last version; the newest unless given."
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Print only rows that match, as SQL.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Print only this column of the table; repeatable.",
            autocompletion=completing.columns,
        ),
    ] = None,
    net: Annotated[
        bool,
        typer.Option(
            "--net", help="Print the difference of the versions, not each commit's changes."
        ),
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for new commits and print their changes too.")
    ] = False,
    poll_s: Annotated[
        float,
        typer.Option(
            "--poll-s", min=0.01, max=3600, help="Seconds between checks for new commits."
        ),
    ] = 1.0,
    limit: Limit = None,
    output: Output = "text",
    dialect: Dialect = "postgres",
    vertical: Vertical = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print the rows that commits inserted, updated and deleted; --json is --output json."""
    from rowsieve.cli.printing.writing import show_rows

    chosen: Format = "json" if as_json else output
    table = open_at(uri, storage_option)
    options: dict[str, Any] = {"columns": column, "where": where, "dialect": dialect}
    if follow:
        if chosen != "json" or net or to_version is not None or limit is not None:
            raise typer.BadParameter("--follow prints --json, and takes no --to, --limit and --net")
        _follow(table, from_version, options, poll_s)
    reader = table.changes(from_version, to_version, net=net, **options)
    first = ("_change_type", "_commit_version", *table.key)
    show_rows(reader.schema, iter(reader), chosen, limit, wide=wide, vertical=vertical, first=first)


def _follow(table: Table, version: int, options: dict[str, Any], poll_s: float) -> NoReturn:
    """Print changes for ever; a version that expired before it was read is an error."""
    from rowsieve.cli.printing.writing import show_rows

    while True:
        if version <= table.refresh():
            reader = table.changes(version, table.version, **options)
            show_rows(reader.schema, iter(reader), "json", None, wide=False)
            version = table.version + 1
        else:
            clock.sleep(poll_s)
