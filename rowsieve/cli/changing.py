"""The commands that change a table, from create to compact.

Each command registers the table that it changes with `progress`, so that Ctrl-C reports what was
committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast

import typer

import rowsieve
from rowsieve.cli import completing
from rowsieve.cli.bundles import (
    CommitOptions,
    FileOptions,
    MeaningOptions,
    OnceOptions,
    StoreOptions,
    expanded,
)
from rowsieve.cli.named import catalog_of, located
from rowsieve.cli.options import INT64_MAX, InputFile, Uri, existing_file, read_pairs
from rowsieve.cli.output import bar, messages, print_commit, print_json
from rowsieve.cli.progress import Change, begin
from rowsieve.errors import TableExists, TableNotFound

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.envelopes.applying import AppliedEvents
    from rowsieve.envelopes.event_formats import EventFormat
    from rowsieve.input_files.files import Input
    from rowsieve.storage.log.log_entry import Commit
    from rowsieve.table import Table
    from rowsieve.writer.acknowledgements import Acknowledgement

INGEST_IN_FLIGHT: Final = 8
"""Batches that `ingest` has read and not acknowledged yet."""


@expanded
def create(
    uri: Uri,
    file: InputFile,
    *,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A key column; repeatable. Without a key, rows are only appended."),
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(help="A column that orders the changes of a key, however late; repeatable."),
    ] = None,
    schema_only: Annotated[
        bool, typer.Option("--schema-only", help="Take the columns of the file, not its rows.")
    ] = False,
    if_exists: Annotated[
        Literal["error", "ignore"], typer.Option(help="What to do if the table exists.")
    ] = "error",
    table_property: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME=VALUE",
            help="A table property; repeatable.",
            autocompletion=completing.settings,
        ),
    ] = None,
    column_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME=TYPE",
            help="The type of a column, such as uint64, text or decimal(38,0); repeatable.",
        ),
    ] = None,
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
    begin(Change(uri, None, options) if catalog is None else None)
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


def _read_whole(
    source: Input, table: Table, *, appends: bool = False, op: str | None = None
) -> pa.Table:
    """Read rows to write; a row of JSON that lacks a column does not set it to NULL."""
    from rowsieve.changes.data.ingest import required_names
    from rowsieve.input_files.files import read_rows

    schema = table.handle.pinned.schema
    required = required_names(schema, source.name, appends=appends, op=op)
    return read_rows(replace(source, check=required.check_rows), table.schema)


def _open_if_exists(uri: str, options: Mapping[str, str] | None) -> Table | None:
    try:
        return rowsieve.open_table(located(uri, options), storage_options=options)
    except TableNotFound:
        return None


_Unchanged: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="A column that lists the columns which a row keeps."),
]
_Combine: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=RULE", help="Combine a value with the row's, such as hits=sum."),
]


@expanded
def upsert(
    uri: Uri,
    file: InputFile,
    *,
    on_duplicate: Annotated[
        Literal["error", "last"], typer.Option(help="What to do if a key occurs twice.")
    ] = "error",
    columns: Annotated[
        Literal["all", "given"],
        typer.Option(help="given: columns that the file lacks keep their values."),
    ] = "all",
    unchanged: _Unchanged = None,
    combine: _Combine = None,
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    """Insert the rows of a file, or replace rows with the same key. Without a key, append."""
    table = commit.table(uri)
    rows = _read_whole(reading.input(file), table, appends=not table.key)
    notes, once = commit.notes, commit.once
    with messages().status(f"writing {rows.num_rows:,} rows"):
        if table.key or columns == "given" or unchanged or combine:
            made = table.upsert(
                rows,
                on_duplicate=on_duplicate,
                columns=columns,
                unchanged=unchanged,
                combine=read_pairs(combine, "--combine") or None,
                metadata=notes,
                token=once,
            )
        else:
            made = table.append(rows, metadata=notes, token=once)
    commit.show(made)


@expanded
def apply(
    uri: Uri,
    file: InputFile,
    *,
    op: Annotated[
        str | None, typer.Option(help="The column that says insert, update or delete.")
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(help="A column that orders changes of one key; by default the table's."),
    ] = None,
    missing: Annotated[
        Literal["error", "keep"],
        typer.Option(help="keep: columns that the file lacks keep their values."),
    ] = "error",
    unchanged: _Unchanged = None,
    combine: _Combine = None,
    history: Annotated[
        str | None,
        typer.Option(metavar="FROM,TO", help="Keep all versions, with their times here."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="The source's table that events must be of.")
    ] = None,
    times: Annotated[
        list[str] | None,
        typer.Option(metavar="[COLUMN=]ms|us|ns", help="The unit of numbers in times of events."),
    ] = None,
    decimals: Annotated[
        Literal["string", "base64"] | None,
        typer.Option(help="What text in columns of numbers of events is."),
    ] = None,
    bad: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="A table that takes bad events; others are applied."),
    ] = None,
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    """Apply a file of changes (CDC) in one commit; the last change of each key wins.

    With --format debezium, debezium-unwrapped, maxwell, canal, dms, dms-files or wal2json the file
    has the events of that tool.
    """
    from rowsieve.envelopes.event_formats import FORMATS
    from rowsieve.input_files.files import read_messages

    table = commit.table(uri)
    of_rows = {"--missing": missing == "keep", "--unchanged": unchanged, "--combine": combine}
    of_rows["--history"] = history
    if reading.file_format in FORMATS:
        if given := [name for name, value in of_rows.items() if value]:
            raise typer.BadParameter(f"{given[0]} is not for events; leave it or --format out")
        events = read_messages(replace(reading, file_format=None).input(file), table.schema)
        with messages().status("applying events"):
            applied = table.apply_events(
                events,
                format=cast("EventFormat", reading.file_format),
                source=source,
                times=_units(times or []),
                decimals=decimals,
                on_bad="error" if bad is None else "collect",
                bad=None if bad is None else commit.table(bad),
                metadata=commit.notes,
                token=commit.once,
            )
        _show_events(applied, commit)
        return
    if op is None:
        raise typer.BadParameter(
            f"give --op COLUMN, or for events --format with one of {', '.join(FORMATS)}"
        )
    rows = _read_whole(reading.input(file), table, op=op)
    with messages().status(f"applying {rows.num_rows:,} changes"):
        made = table.apply_changes(
            rows,
            op=op,
            sequence=sequence,
            missing=missing,
            unchanged=unchanged,
            combine=read_pairs(combine, "--combine") or None,
            history=_interval(history),
            metadata=commit.notes,
            token=commit.once,
        )
    commit.show(made)


def _interval(columns: str | None) -> tuple[str, str] | None:
    """The columns in which a version begins and ends."""
    if columns is None:
        return None
    from rowsieve.statements.name_lists import names_of

    names = names_of(columns, "--history")
    if len(names) != 2:
        raise typer.BadParameter("--history takes two columns: --history valid_from,valid_to")
    return names[0], names[1]


@expanded
def ingest(
    uri: Uri,
    file: Annotated[
        Path, typer.Argument(help="A file or pipe of JSON lines; by default stdin.")
    ] = Path("-"),
    *,
    wal_dir: Annotated[
        Path | None,
        typer.Option(help="A local directory of a log; without it, lines wait for their commit."),
    ] = None,
    commit: StoreOptions,
) -> None:
    """Upsert JSON lines as they come, durably; in a table without a key, append them.

    What was acknowledged stays if a later line is refused, or if the process dies: with --wal-dir,
    the next ingest with this directory commits it.
    """
    from rowsieve.input_files.files import read_batches

    table = commit.table(uri)
    lines = 0
    waiting: deque[tuple[int, Acknowledgement]] = deque()
    durability: Literal["wal", "commit"] = "commit" if wal_dir is None else "wal"
    with table.writer(durability=durability, wal_dir=wal_dir) as writer:
        write = writer.upsert if table.key else writer.append
        read = partial(_read_whole, table=table, appends=not table.key)
        for last_line, rows in read_batches(file, read):
            waiting.append((last_line, write(rows)))
            while waiting and (len(waiting) > INGEST_IN_FLIGHT or waiting[0][1].done()):
                lines = _acknowledged(waiting)
        while waiting:
            lines = _acknowledged(waiting)
        version = writer.flush()
    if commit.as_json:
        print_json({"lines": lines, "version": version})
    else:
        typer.echo(f"version {version}: {lines:,} lines")


def _acknowledged(waiting: deque[tuple[int, Acknowledgement]]) -> int:
    """Wait for the first of these batches, and return its last line."""
    last_line, acknowledgement = waiting.popleft()
    acknowledgement.result()
    return last_line


def _units(times: list[str]) -> Any:
    """The unit of all columns, or of each column that is named."""
    if len(times) == 1 and "=" not in times[0]:
        return times[0]
    return read_pairs(times, "--times") or None


def _show_events(applied: AppliedEvents, commit: CommitOptions) -> None:
    counts = {"changes": applied.changes, "skipped": dict(applied.skipped)}
    if commit.as_json:
        print_json({**asdict(applied.commit), **counts, "bad": applied.bad.num_rows})
        return
    commit.show(applied.commit)
    others = {**applied.skipped, **({"bad events": n} if (n := applied.bad.num_rows) else {})}
    if others:
        shown = ", ".join(f"{count:,} {kind}" for kind, count in others.items())
        typer.echo(f"{applied.changes:,} changes; not applied: {shown}")


@expanded
def delete(
    uri: Uri,
    where: Annotated[
        str | None, typer.Argument(help="The condition of the rows, as SQL: \"carrier = 'AA'\".")
    ] = None,
    *,
    keys: Annotated[
        Path | None,
        typer.Option(help="A file with the keys to delete; - is stdin.", callback=existing_file),
    ] = None,
    meaning: MeaningOptions,
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    """Delete rows by condition or by key."""
    from rowsieve.input_files.files import read_rows

    if (where is None) == (keys is None):
        raise typer.BadParameter("give either a condition or --keys FILE; all rows are 'TRUE'")
    table = commit.table(uri)
    source = None if keys is None else reading.input(keys)
    made = table.delete(
        where,
        keys=None if source is None else read_rows(source, table.schema),
        dialect=meaning.dialect,
        session=meaning.session,
        metadata=commit.notes,
        token=commit.once,
    )
    commit.show(made)


@expanded
def set_properties(
    uri: Uri,
    properties: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help="Table properties.",
            show_default=False,
            autocompletion=completing.settings,
        ),
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Set table properties, from the next version on."""
    made = commit.table(uri).set_properties(read_pairs(properties, "set"), metadata=commit.notes)
    _print_settings(made, as_json=commit.as_json)


@expanded
def unset_properties(
    uri: Uri,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Table properties.",
            show_default=False,
            autocompletion=completing.properties,
        ),
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Reset table properties to their defaults, from the next version on."""
    made = commit.table(uri).unset_properties(names, metadata=commit.notes)
    _print_settings(made, as_json=commit.as_json)


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


@expanded
def update(
    uri: Uri,
    where: Annotated[
        str, typer.Argument(help="The condition of the rows, as SQL; TRUE for all rows.")
    ],
    *,
    assignments: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=SQL",
            help="A column's new value; repeatable.",
            autocompletion=completing.assignments,
        ),
    ],
    meaning: MeaningOptions,
    commit: OnceOptions,
) -> None:
    """Set columns of the rows that match: --set "delay = delay + 5"."""
    table = commit.table(uri)
    made = table.update(
        _by_column(read_pairs(assignments, "--set"), table.schema.names),
        where=where,
        dialect=meaning.dialect,
        session=meaning.session,
        metadata=commit.notes,
        token=commit.once,
    )
    commit.show(made)


def _by_column(assignments: dict[str, str], names: list[str]) -> dict[str, str]:
    """Name the columns without the spaces around them, unless a name has these itself."""
    by_name: dict[str, str] = {}
    for given, value in assignments.items():
        name = given if given in names else given.strip()
        if name in by_name:
            raise typer.BadParameter(f"--set names {name!r} twice; give it once")
        by_name[name] = value.strip()  # offsets in messages count from here
    return by_name


@expanded
def overwrite(
    uri: Uri,
    file: InputFile,
    where: Annotated[
        str, typer.Argument(help="The condition of the rows to replace, as SQL; TRUE for all rows.")
    ],
    *,
    meaning: MeaningOptions,
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    """Replace the rows that match, or all rows, by the rows of a file."""
    table = commit.table(uri)
    rows = _read_whole(reading.input(file), table, appends=not table.key)
    with messages().status(f"writing {rows.num_rows:,} rows"):
        made = table.overwrite(
            rows,
            where=None if where.strip().upper() == "TRUE" else where,
            dialect=meaning.dialect,
            session=meaning.session,
            metadata=commit.notes,
            token=commit.once,
        )
    commit.show(made)


@expanded
def alter(
    uri: Uri,
    actions: Annotated[
        list[str],
        typer.Argument(
            metavar="ACTION...",
            help="The actions of ALTER TABLE, such as 'ADD COLUMN b bigint DEFAULT 50'.",
            show_default=False,
        ),
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Add, drop, rename or widen columns, in one commit; no file is rewritten."""
    table = commit.table(uri)
    with table.alter(metadata=commit.notes) as alteration:
        for action in actions:
            alteration.sql(action)
    assert alteration.commit is not None
    if commit.as_json:
        commit.show(alteration.commit)
        return
    columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
    typer.echo(f"version {alteration.commit.version}: {columns}")


@expanded
def restore(
    uri: Uri,
    version: Annotated[
        int, typer.Argument(min=0, max=INT64_MAX, help="The version to go back to.")
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Restore the table to an earlier version, as a new commit."""
    table = commit.table(uri)
    made = table.restore(version, metadata=commit.notes)
    commit.show(made)


@expanded
def compact(
    uri: Uri,
    *,
    commit: CommitOptions,
) -> None:
    """Rewrite overlapping and small parts into parts that store each row once."""
    table = commit.table(uri)
    with bar("rows rewritten") as progress:
        made = table.compact(metadata=commit.notes, progress=progress)
    if not (made.parts_added or made.parts_removed) and not commit.as_json:
        typer.echo(f"version {made.version}: nothing to compact")
        return
    commit.show(made)
