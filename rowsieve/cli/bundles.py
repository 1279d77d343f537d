"""Options that commands share, a dataclass of each group of them.

A command takes a group as one parameter, and `expanded` shows typer its fields as options of their
own. Soundness: two options of one name are an error when the command is defined.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from rowsieve.cli.options import (
    Ansi,
    AsJson,
    AsOf,
    Delimiter,
    Dialect,
    FileFormat,
    Format,
    Html,
    Notes,
    Nulls,
    Output,
    StorageOptions,
    TimeZone,
    TokenText,
    Version,
    Vertical,
    Wide,
    open_at,
    read_pairs,
    read_token,
    session_of,
)
from rowsieve.cli.output import print_commit
from rowsieve.cli.progress import watch

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.bridges.session import Session
    from rowsieve.input_files.files import Input
    from rowsieve.storage.log.log_entry import Commit
    from rowsieve.table import Table


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options for reading a file."""

    file_format: FileFormat = None
    delimiter: Delimiter = None
    null: Nulls = None

    def input(self, path: Path) -> Input:
        """The file with these options."""
        from rowsieve.input_files.files import Input

        return Input(path, self.file_format, self.delimiter, self.null or ())


@dataclass(frozen=True, kw_only=True)
class VersionOptions:
    """Options of a read: the version, and the table's store."""

    version: Version = None
    as_of: AsOf = None
    storage_option: StorageOptions = None

    def table(self, uri: str) -> Table:
        """Open the table at the version."""
        return open_at(uri, self.storage_option, self.version, self.as_of)


@dataclass(frozen=True, kw_only=True)
class RowsOptions:
    """Options for printing rows."""

    output: Output = "text"
    vertical: Vertical = False
    wide: Wide = False
    as_json: AsJson = False

    def __post_init__(self) -> None:
        if self.as_json and self.output not in ("text", "json"):
            raise typer.BadParameter(f"--json and --output {self.output} exclude each other")

    @property
    def format(self) -> Format:
        """The format of the rows; --json is --output json."""
        return "json" if self.as_json else self.output

    def show(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        limit: int | None,
        first: Sequence[str] = (),
    ) -> None:
        """Print the first `limit` rows; a narrow terminal shows the columns `first`."""
        from rowsieve.cli.printing.writing import show_rows

        show_rows(
            schema,
            iter(batches),
            self.format,
            limit,
            wide=self.wide,
            vertical=self.vertical,
            first=first,
        )


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of the commands that describe a table: as text, as JSON or as a picture."""

    html: Html = None
    wide: Wide = False
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class MeaningOptions:
    """Options that decide the meaning of a condition."""

    dialect: Dialect = "postgres"
    time_zone: TimeZone = None
    ansi: Ansi = None

    @property
    def session(self) -> Session | None:
        """The session of the condition, None if no option names one."""
        return session_of(self.time_zone, self.ansi)


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Options of a change: the table's store, and the output."""

    storage_option: StorageOptions = None
    as_json: AsJson = False

    @property
    def storage(self) -> dict[str, str]:
        """The settings of the object store."""
        return read_pairs(self.storage_option, "--storage-option")

    def table(self, uri: str) -> Table:
        """Open the table to change, and track its commits in `progress`."""
        return watch(open_at(uri, self.storage_option))


@dataclass(frozen=True, kw_only=True)
class CommitOptions(StoreOptions):
    """Options of a commit: those of a change, and metadata."""

    metadata: Notes = None

    @property
    def notes(self) -> dict[str, str]:
        """The metadata of the commit."""
        return read_pairs(self.metadata, "--metadata")

    def show(self, commit: Commit) -> None:
        """Print the commit."""
        print_commit(commit, as_json=self.as_json)


@dataclass(frozen=True, kw_only=True)
class OnceOptions(CommitOptions):
    """Options of a commit that is made at most once."""

    token: TokenText = None

    @property
    def once(self) -> tuple[str, int] | None:
        """The application and its sequence."""
        return read_token(self.token)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its groups."""
    hints = get_type_hints(command, include_extras=True)
    shown: list[Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(hints[name]):
            shown.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = hints[name]
        types = get_type_hints(hints[name], include_extras=True)
        shown += [
            Parameter(
                each.name,
                Parameter.KEYWORD_ONLY,
                default=each.default,
                annotation=types[each.name],
            )
            for each in fields(hints[name])
        ]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{each.name: options.pop(each.name) for each in fields(group)})
        command(**options)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run
