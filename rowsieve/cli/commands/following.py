"""The command `changes`: prints the change feed of a table, and follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from rowsieve import clock
from rowsieve.cli import completing
from rowsieve.cli.bundles import MeaningOptions, RowsOptions, expanded
from rowsieve.cli.options import INT64_MAX, Limit, StorageOptions, Uri, open_at

if TYPE_CHECKING:
    from rowsieve.table import Table


_From: TypeAlias = Annotated[
    int, typer.Option("--from", min=0, max=INT64_MAX, help="The first version of the changes.")
]
_To: TypeAlias = Annotated[
    int | None,
    typer.Option("--to", min=0, max=INT64_MAX, help="The last version; the newest unless given."),
]
_Where: TypeAlias = Annotated[
    str | None, typer.Option(metavar="CONDITION", help="Print only rows that match, as SQL.")
]
_Columns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Print only this column of the table; repeatable.",
        autocompletion=completing.columns,
    ),
]
_Net: TypeAlias = Annotated[
    bool,
    typer.Option("--net", help="Print the difference of the versions, not each commit's changes."),
]
_Follow: TypeAlias = Annotated[
    bool, typer.Option("--follow", help="Wait for new commits and print their changes too.")
]
_PollSeconds: TypeAlias = Annotated[
    float,
    typer.Option("--poll-s", min=0.01, max=3600, help="Seconds between checks for new commits."),
]


@expanded
def changes(
    uri: Uri,
    *,
    from_version: _From,
    to_version: _To = None,
    where: _Where = None,
    column: _Columns = None,
    net: _Net = False,
    follow: _Follow = False,
    poll_s: _PollSeconds = 1.0,
    limit: Limit = None,
    meaning: MeaningOptions,
    storage_option: StorageOptions = None,
    rows: RowsOptions,
) -> None:
    """Print the rows that commits inserted, updated and deleted; --json is --output json."""
    table = open_at(uri, storage_option)
    options: dict[str, Any] = {
        "columns": column,
        "where": where,
        "dialect": meaning.dialect,
        "session": meaning.session,
    }
    if follow:
        if rows.format != "json" or net or to_version is not None or limit is not None:
            raise typer.BadParameter("--follow prints --json, and takes no --to, --limit and --net")
        _follow(table, from_version, options, poll_s, rows)
    reader = table.changes(from_version, to_version, net=net, **options)
    first = ("_change_type", "_commit_version", *table.key)
    rows.show(reader.schema, reader, limit, first)


def _follow(
    table: Table, version: int, options: dict[str, Any], poll_s: float, rows: RowsOptions
) -> NoReturn:
    """Print changes for ever; a version that expired before it was read is an error."""
    while True:
        if version <= table.refresh():
            reader = table.changes(version, table.version, **options)
            rows.show(reader.schema, reader, None)
            version = table.version + 1
        else:
            clock.sleep(poll_s)
