"""The command `create`: makes a table of a file's columns and rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

import rowsieve
from rowsieve.cli import completing
from rowsieve.cli.bundles import CommitOptions, FileOptions, expanded
from rowsieve.cli.named import catalog_of, located
from rowsieve.cli.options import InputFile, Uri, read_pairs
from rowsieve.cli.output import messages, print_json
from rowsieve.cli.progress import ChangeInProgress, begin
from rowsieve.errors import TableExists, TableNotFound

if TYPE_CHECKING:
    from rowsieve.table import Table

_Key: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="A key column; repeatable. Without a key, rows are only appended."),
]
_Sequence: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="A column that orders the changes of a key, however late; repeatable."),
]
_SchemaOnly: TypeAlias = Annotated[
    bool, typer.Option("--schema-only", help="Take the columns of the file, not its rows.")
]
_IfExists: TypeAlias = Annotated[
    Literal["error", "ignore"], typer.Option(help="What to do if the table exists.")
]
_Properties: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="NAME=VALUE",
        help="A table property; repeatable.",
        autocompletion=completing.settings,
    ),
]
_ColumnTypes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="NAME=TYPE",
        help="The type of a column, such as uint64, text or decimal(38,0); repeatable.",
    ),
]


@expanded
def create(
    uri: Uri,
    file: InputFile,
    *,
    key: _Key = None,
    sequence: _Sequence = None,
    schema_only: _SchemaOnly = False,
    if_exists: _IfExists = "error",
    table_property: _Properties = None,
    column_type: _ColumnTypes = None,
    reading: FileOptions,
    commit: CommitOptions,
) -> None:
    """Create a table from a file."""
    from rowsieve.input_files.column_types import read_types, with_types
    from rowsieve.input_files.files import read_rows

    types = read_types(read_pairs(column_type, "--type"))
    options = commit.storage
    if if_exists == "ignore" and (existing := _open_if_exists(uri, options)) is not None:
        message = f"version {existing.version} exists already; nothing was written"
        typer.echo(message) if not commit.as_json else print_json({"version": existing.version})
        return
    source = reading.input(file)
    rows = with_types(read_rows(source, types), types, source.name)
    table = _created(
        uri,
        options,
        rows.schema if schema_only else rows,
        key,
        if_exists=if_exists,
        properties=read_pairs(table_property, "--property"),
        metadata=commit.notes,
        sequence=sequence,
    )
    commit.show(table.history(limit=1)[0])


def _created(uri: str, options: Mapping[str, str], *arguments: Any, **named: Any) -> Table:
    """Create a table at the URI, or of this name in the catalog of --catalog."""
    catalog = catalog_of(options)
    begin(ChangeInProgress(uri, None, options) if catalog is None else None)
    make = (
        partial(rowsieve.create_table, uri, storage_options=options)
        if catalog is None
        else partial(catalog.create_table, uri)
    )
    try:
        with messages().status(f"creating {uri}"):
            return make(*arguments, **named)
    except TableExists as error:
        raise TableExists(
            f"a table exists at {uri} already; use --if-exists ignore to keep it unchanged, or "
            "rowsieve upsert to add rows to it"
        ) from error


def _open_if_exists(uri: str, options: Mapping[str, str] | None) -> Table | None:
    try:
        return rowsieve.open_table(located(uri, options), storage_options=options)
    except TableNotFound:
        return None
