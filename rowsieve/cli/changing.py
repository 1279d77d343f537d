"""The commands that change a table, from create to compact.

Each tells `progress` which table it changes, so that Ctrl-C is answered by what was committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rowsieve.cli.files import Input, read_rows
from rowsieve.cli.options import (
    MOST,
    Ansi,
    AsJson,
    Delimiter,
    Dialect,
    FileFormat,
    InputFile,
    Notes,
    Nulls,
    StorageOptions,
    TimeZone,
    TokenText,
    Uri,
    existing_file,
    open_at,
    read_pairs,
    read_token,
    session_of,
)
from rowsieve.cli.output import messages, print_commit, print_json
from rowsieve.cli.progress import Change, begin, watch
from rowsieve.cli.types import read_types, with_types
from rowsieve.errors import TableExists, TableNotFound
from rowsieve.opening import create_table, open_table
from rowsieve.storage.log_entry import Commit
from rowsieve.table import Table


def create(
    uri: Uri,
    file: InputFile,
    *,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A key column; repeatable. Without a key, rows are only appended."),
    ] = None,
    schema_only: Annotated[
        bool, typer.Option("--schema-only", help="Take the columns of the file, not its rows.")
    ] = False,
    if_exists: Annotated[
        Literal["error", "ignore"], typer.Option(help="What to do where a table stands.")
    ] = "error",
    table_property: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="NAME=VALUE", help="A table property; repeatable."),
    ] = None,
    column_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME=TYPE",
            help="The type of a column, such as uint64, text or decimal(38,0); repeatable.",
        ),
    ] = None,
    file_format: FileFormat = None,
    delimiter: Delimiter = None,
    null: Nulls = None,
    metadata: Notes = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Create a table from a file."""
    types = read_types(read_pairs(column_type, "--type"))
    options = read_pairs(storage_option, "--storage-option")
    if if_exists == "ignore" and (standing := _standing(uri, options)) is not None:
        message = f"version {standing.version} stands already; nothing was written"
        typer.echo(message) if not as_json else print_json({"version": standing.version})
        return
    source = Input(file, file_format, delimiter, null or ())
    rows = with_types(read_rows(source, types), types, source.name)
    begin(Change(uri, None, options))
    try:
        with messages().status(f"creating {uri}"):
            table = create_table(
                uri,
                rows.schema if schema_only else rows,
                key=key,
                if_exists=if_exists,
                properties=read_pairs(table_property, "--property"),
                storage_options=options,
                metadata=read_pairs(metadata, "--metadata"),
            )
    except TableExists as error:
        raise TableExists(
            f"a table stands at {uri} already; --if-exists ignore leaves it as it is, and "
            "rowsieve upsert adds rows to it"
        ) from error
    print_commit(table.history(limit=1)[0], as_json=as_json)


def _standing(uri: str, options: Mapping[str, str] | None) -> Table | None:
    try:
        return open_table(uri, storage_options=options)
    except TableNotFound:
        return None


def upsert(
    uri: Uri,
    file: InputFile,
    *,
    on_duplicate: Annotated[
        Literal["error", "last"], typer.Option(help="What to do about a key that comes twice.")
    ] = "error",
    file_format: FileFormat = None,
    delimiter: Delimiter = None,
    null: Nulls = None,
    metadata: Notes = None,
    token: TokenText = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows of a file: each becomes the row of its key. Without a key, append them."""
    table = watch(open_at(uri, storage_option))
    rows = read_rows(Input(file, file_format, delimiter, null or ()), table.schema)
    notes, once = read_pairs(metadata, "--metadata"), read_token(token)
    with messages().status(f"writing {rows.num_rows:,} rows"):
        if table.key:
            commit = table.upsert(rows, on_duplicate=on_duplicate, metadata=notes, token=once)
        else:
            commit = table.append(rows, metadata=notes, token=once)
    print_commit(commit, as_json=as_json)


def apply(
    uri: Uri,
    file: InputFile,
    *,
    op: Annotated[str, typer.Option(help="The column that says insert, update or delete.")],
    sequence: Annotated[str, typer.Option(help="The column that orders changes of one key.")],
    file_format: FileFormat = None,
    delimiter: Delimiter = None,
    null: Nulls = None,
    metadata: Notes = None,
    token: TokenText = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Apply a file of changes (CDC) in one commit: per key the last one counts."""
    table = watch(open_at(uri, storage_option))
    rows = read_rows(Input(file, file_format, delimiter, null or ()), table.schema)
    with messages().status(f"applying {rows.num_rows:,} changes"):
        commit = table.apply_changes(
            rows,
            op=op,
            sequence=sequence,
            metadata=read_pairs(metadata, "--metadata"),
            token=read_token(token),
        )
    print_commit(commit, as_json=as_json)


def delete(
    uri: Uri,
    where: Annotated[
        str | None, typer.Argument(help="Which rows, as SQL: \"carrier = 'AA'\".")
    ] = None,
    *,
    keys: Annotated[
        Path | None,
        typer.Option(help="A file with the keys to delete; - is stdin.", callback=existing_file),
    ] = None,
    dialect: Dialect = "postgres",
    time_zone: TimeZone = None,
    ansi: Ansi = None,
    file_format: FileFormat = None,
    delimiter: Delimiter = None,
    null: Nulls = None,
    metadata: Notes = None,
    token: TokenText = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Delete rows by condition or by key."""
    if (where is None) == (keys is None):
        raise typer.BadParameter("give either a condition or --keys FILE; all rows are 'TRUE'")
    table = watch(open_at(uri, storage_option))
    source = None if keys is None else Input(keys, file_format, delimiter, null or ())
    commit = table.delete(
        where,
        keys=None if source is None else read_rows(source, table.schema),
        dialect=dialect,
        session=session_of(time_zone, ansi),
        metadata=read_pairs(metadata, "--metadata"),
        token=read_token(token),
    )
    print_commit(commit, as_json=as_json)


def set_properties(
    uri: Uri,
    properties: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="Table properties.", show_default=False),
    ],
    *,
    metadata: Notes = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Set table properties, from the next version on."""
    commit = watch(open_at(uri, storage_option)).set_properties(
        read_pairs(properties, "set"), metadata=read_pairs(metadata, "--metadata")
    )
    _print_settings(commit, as_json=as_json)


def unset_properties(
    uri: Uri,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Table properties.", show_default=False),
    ],
    *,
    metadata: Notes = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Give table properties their defaults again, from the next version on."""
    commit = watch(open_at(uri, storage_option)).unset_properties(
        names, metadata=read_pairs(metadata, "--metadata")
    )
    _print_settings(commit, as_json=as_json)


def _print_settings(commit: Commit, *, as_json: bool) -> None:
    if as_json:
        print_commit(commit, as_json=True)
    elif not commit.committed:
        typer.echo(f"version {commit.version}: nothing to change")
    else:
        changed = ", ".join(
            name if value is None else f"{name}={value}"
            for name, value in commit.metadata["properties"].items()
        )
        typer.echo(f"version {commit.version}: {commit.operation} {changed}")


def update(
    uri: Uri,
    where: Annotated[str, typer.Argument(help="Which rows, as SQL; all of them: TRUE.")],
    *,
    assignments: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=SQL", help="A column's new value; repeatable."),
    ],
    dialect: Dialect = "postgres",
    time_zone: TimeZone = None,
    ansi: Ansi = None,
    metadata: Notes = None,
    token: TokenText = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Assign columns of the rows that match: --set "delay=delay + 5"."""
    table = watch(open_at(uri, storage_option))
    commit = table.update(
        read_pairs(assignments, "--set"),
        where=where,
        dialect=dialect,
        session=session_of(time_zone, ansi),
        metadata=read_pairs(metadata, "--metadata"),
        token=read_token(token),
    )
    print_commit(commit, as_json=as_json)


def overwrite(
    uri: Uri,
    file: InputFile,
    where: Annotated[str, typer.Argument(help="Which rows to replace, as SQL; all of them: TRUE.")],
    *,
    dialect: Dialect = "postgres",
    time_zone: TimeZone = None,
    ansi: Ansi = None,
    file_format: FileFormat = None,
    delimiter: Delimiter = None,
    null: Nulls = None,
    metadata: Notes = None,
    token: TokenText = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Put the rows of a file in the place of the rows that match, or of all."""
    table = watch(open_at(uri, storage_option))
    rows = read_rows(Input(file, file_format, delimiter, null or ()), table.schema)
    with messages().status(f"writing {rows.num_rows:,} rows"):
        commit = table.overwrite(
            rows,
            where=None if where.strip().upper() == "TRUE" else where,
            dialect=dialect,
            session=session_of(time_zone, ansi),
            metadata=read_pairs(metadata, "--metadata"),
            token=read_token(token),
        )
    print_commit(commit, as_json=as_json)


def restore(
    uri: Uri,
    version: Annotated[int, typer.Argument(min=0, max=MOST, help="The version to go back to.")],
    *,
    metadata: Notes = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make the table what it was at a version, as a new commit."""
    table = watch(open_at(uri, storage_option))
    commit = table.restore(version, metadata=read_pairs(metadata, "--metadata"))
    print_commit(commit, as_json=as_json)


def compact(
    uri: Uri,
    *,
    metadata: Notes = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite what is merged on every read, or small, into parts that hold each row once."""
    table = watch(open_at(uri, storage_option))
    columns = (
        TextColumn("rows rewritten"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    out = messages()
    shown = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
    with shown as progress:
        task = progress.add_task("compact", total=None)
        commit = table.compact(
            metadata=read_pairs(metadata, "--metadata"),
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if not (commit.parts_added or commit.parts_removed) and not as_json:
        typer.echo(f"version {commit.version}: nothing to compact")
        return
    print_commit(commit, as_json=as_json)
