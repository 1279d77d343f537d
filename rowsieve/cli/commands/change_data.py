"""The commands that apply changes as they happened: apply and ingest.

Each registers the table that it changes with `progress`, so that Ctrl-C reports what was committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

import typer

from rowsieve.cli.bundles import CommitOptions, FileOptions, OnceOptions, StoreOptions, expanded
from rowsieve.cli.commands.input_rows import rows_to_write
from rowsieve.cli.options import Combine, InputFile, SchemaMode, Unchanged, Uri, read_pairs
from rowsieve.cli.output import messages, print_json

if TYPE_CHECKING:
    from rowsieve.envelopes.applying import AppliedEvents
    from rowsieve.envelopes.event_formats import EventFormat
    from rowsieve.input_files.files import Input
    from rowsieve.writer.acknowledgements import Acknowledgement

INGEST_IN_FLIGHT: Final = 8
"""Batches that `ingest` has read and not acknowledged yet."""


@dataclass(frozen=True, kw_only=True)
class _ChangeOptions:
    """Options for a file whose rows are changes."""

    op: Annotated[
        str | None, typer.Option(help="The column that says insert, update or delete.")
    ] = None
    sequence: Annotated[
        list[str] | None,
        typer.Option(help="A column that orders changes of one key; by default the table's."),
    ] = None
    missing: Annotated[
        Literal["error", "keep"],
        typer.Option(help="keep: columns that the file lacks keep their values."),
    ] = "error"
    unchanged: Unchanged = None
    combine: Combine = None
    schema_mode: SchemaMode = "strict"
    history: Annotated[
        str | None,
        typer.Option(metavar="FROM,TO", help="Keep all versions, with their times here."),
    ] = None

    @property
    def only_for_rows(self) -> list[str]:
        """The given options that events of a tool do not take."""
        of_rows = {
            "--missing": self.missing == "keep",
            "--unchanged": self.unchanged,
            "--combine": self.combine,
            "--history": self.history,
        }
        return [name for name, value in of_rows.items() if value]


@dataclass(frozen=True, kw_only=True)
class _EventOptions:
    """Options for a file of the events of a tool."""

    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="The source's table that events must be of.")
    ] = None
    times: Annotated[
        list[str] | None,
        typer.Option(metavar="[COLUMN=]ms|us|ns", help="The unit of numbers in times of events."),
    ] = None
    decimals: Annotated[
        Literal["string", "base64"] | None,
        typer.Option(help="What text in columns of numbers of events is."),
    ] = None
    bad: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="A table that takes bad events; others are applied."),
    ] = None


@expanded
def apply(
    uri: Uri,
    file: InputFile,
    *,
    changes: _ChangeOptions,
    events: _EventOptions,
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    """Apply a file of changes (CDC) in one commit; the last change of each key wins.

    With --format debezium, debezium-unwrapped, maxwell, canal, dms, dms-files or wal2json the file
    has the events of that tool.
    """
    from rowsieve.envelopes.event_formats import FORMATS

    if reading.file_format in FORMATS:
        if named := changes.only_for_rows:
            raise typer.BadParameter(f"{named[0]} is not for events; leave it or --format out")
        _apply_events(uri, file, changes.schema_mode, events, reading, commit)
    elif changes.op is None:
        raise typer.BadParameter(
            f"give --op COLUMN, or for events --format with one of {', '.join(FORMATS)}"
        )
    else:
        _apply_changes(uri, reading.input(file), changes.op, changes, commit)


def _apply_events(
    uri: str,
    file: Path,
    schema_mode: SchemaMode,
    events: _EventOptions,
    reading: FileOptions,
    commit: OnceOptions,
) -> None:
    from rowsieve.input_files.files import read_messages

    table = commit.table(uri)
    rows = read_messages(replace(reading, file_format=None).input(file), table.schema)
    with messages().status("applying events"):
        applied = table.apply_events(
            rows,
            format=cast("EventFormat", reading.file_format),
            source=events.source,
            times=_units(events.times or []),
            decimals=events.decimals,
            on_bad="error" if events.bad is None else "collect",
            bad=None if events.bad is None else commit.table(events.bad),
            schema_mode=schema_mode,
            metadata=commit.notes,
            token=commit.once,
        )
    _show_events(applied, commit)


def _apply_changes(
    uri: str, source: Input, op: str, changes: _ChangeOptions, commit: OnceOptions
) -> None:
    table = commit.table(uri)
    rows = rows_to_write(source, table, op=op)
    with messages().status(f"applying {rows.num_rows:,} changes"):
        applied = table.apply_changes(
            rows,
            op=op,
            sequence=changes.sequence,
            missing=changes.missing,
            unchanged=changes.unchanged,
            combine=read_pairs(changes.combine, "--combine") or None,
            schema_mode=changes.schema_mode,
            history=_interval(changes.history),
            metadata=commit.notes,
            token=commit.once,
        )
    commit.show(applied)


def _interval(columns: str | None) -> tuple[str, str] | None:
    """The columns in which a version begins and ends."""
    if columns is None:
        return None
    from rowsieve.statements.name_lists import names_of

    names = names_of(columns, "--history")
    if len(names) != 2:
        raise typer.BadParameter("--history takes two columns: --history valid_from,valid_to")
    return names[0], names[1]


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
    waiting: deque[tuple[int, int, Acknowledgement]] = deque()
    durability: Literal["wal", "commit"] = "commit" if wal_dir is None else "wal"
    with table.writer(durability=durability, wal_dir=wal_dir) as writer:
        write = writer.upsert if table.key else writer.append
        read = partial(rows_to_write, table=table, appends=not table.key)
        before = 0
        for last_line, rows in read_batches(file, read):
            with _naming_lines(before + 1, last_line):
                waiting.append((before + 1, last_line, write(rows)))
            before = last_line
            while waiting and (len(waiting) > INGEST_IN_FLIGHT or waiting[0][-1].done()):
                lines = _acknowledged(waiting)
        while waiting:
            lines = _acknowledged(waiting)
        version = writer.flush()
    if commit.as_json:
        print_json({"lines": lines, "version": version})
    else:
        typer.echo(f"version {version}: {lines:,} lines")


def _acknowledged(waiting: deque[tuple[int, int, Acknowledgement]]) -> int:
    """Wait for the first of these batches, and return its last line."""
    first_line, last_line, acknowledgement = waiting.popleft()
    with _naming_lines(first_line, last_line, waiting):
        acknowledgement.result()
    return last_line


@contextmanager
def _naming_lines(
    first: int, last: int, following: Iterable[tuple[int, int, Acknowledgement]] = ()
) -> Iterator[None]:
    """Name the lines, from 1, whose rows the table refuses, and following ones that it took."""
    from rowsieve.errors import InvalidData

    try:
        yield
    except InvalidData as error:
        taken = [_lines(*each) for *each, done in following if _is_taken(done)]
        after = f". Already written: {', '.join(taken)}" if taken else ""
        raise type(error)(f"{_lines(first, last)}: {error}{after}") from error


def _is_taken(acknowledgement: Acknowledgement) -> bool:
    from rowsieve.errors import RowsieveError

    try:
        acknowledgement.result()
    except RowsieveError:
        return False
    return True


def _lines(first: int, last: int) -> str:
    return f"line {last}" if first == last else f"lines {first} to {last}"
