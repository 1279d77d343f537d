"""The commands that change rows by a file, a condition or a version, and `compact`.

Each registers the table that it changes with `progress`, so that Ctrl-C reports what was committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rowsieve.cli import completing
from rowsieve.cli.bundles import CommitOptions, FileOptions, MeaningOptions, OnceOptions, expanded
from rowsieve.cli.commands.input_rows import rows_to_write
from rowsieve.cli.options import (
    Combine,
    InputFile,
    SchemaMode,
    Unchanged,
    Uri,
    existing_file,
    read_pairs,
    read_version,
)
from rowsieve.cli.output import bar


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
    unchanged: Unchanged = None,
    combine: Combine = None,
    schema_mode: SchemaMode = "strict",
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    """Insert the rows of a file, or replace rows with the same key. Without a key, append."""
    table = commit.table(uri)
    rows = rows_to_write(reading.input(file), table, appends=not table.key)
    notes, once = commit.notes, commit.once
    with bar("rows written") as progress:
        if table.key or columns == "given" or unchanged or combine:
            done = table.upsert(
                rows,
                on_duplicate=on_duplicate,
                columns=columns,
                unchanged=unchanged,
                combine=read_pairs(combine, "--combine") or None,
                schema_mode=schema_mode,
                metadata=notes,
                token=once,
                progress=progress,
            )
        else:
            done = table.append(
                rows, schema_mode=schema_mode, metadata=notes, token=once, progress=progress
            )
    commit.show(done)


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
    done = table.delete(
        where,
        keys=None if source is None else read_rows(source, table.schema),
        dialect=meaning.dialect,
        session=meaning.session,
        metadata=commit.notes,
        token=commit.once,
    )
    commit.show(done)


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
    done = table.update(
        _by_column(read_pairs(assignments, "--set"), table.schema.names),
        where=where,
        dialect=meaning.dialect,
        session=meaning.session,
        metadata=commit.notes,
        token=commit.once,
    )
    commit.show(done)


def _by_column(assignments: dict[str, str], names: list[str]) -> dict[str, str]:
    """Name the columns without the spaces around them, unless a name has these itself."""
    by_name: dict[str, str] = {}
    for column, value in assignments.items():
        name = column if column in names else column.strip()
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
    rows = rows_to_write(reading.input(file), table, appends=not table.key)
    with bar("rows written") as progress:
        done = table.overwrite(
            rows,
            where=None if where.strip().upper() == "TRUE" else where,
            dialect=meaning.dialect,
            session=meaning.session,
            metadata=commit.notes,
            token=commit.once,
            progress=progress,
        )
    commit.show(done)


@expanded
def restore(
    uri: Uri,
    version: Annotated[
        str | None, typer.Argument(help="The version to go back to: a number, or a tag.")
    ] = None,
    *,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="Go back to this ISO-8601 time instead."),
    ] = None,
    commit: CommitOptions,
) -> None:
    """Restore the table to an earlier version, as a new commit."""
    if (version is None) == (as_of is None):
        raise typer.BadParameter("give either a version or --as-of TIME")
    table = commit.table(uri)
    wanted = None if version is None else read_version(version)
    done = table.restore(wanted, as_of=as_of, metadata=commit.notes)
    commit.show(done)


@expanded
def compact(
    uri: Uri,
    *,
    commit: CommitOptions,
) -> None:
    """Rewrite overlapping and small parts into parts that store each row once."""
    table = commit.table(uri)
    with bar("rows rewritten") as progress:
        done = table.compact(metadata=commit.notes, progress=progress)
    if not (done.parts_added or done.parts_removed) and not commit.as_json:
        typer.echo(f"version {done.version}: nothing to compact")
        return
    commit.show(done)
