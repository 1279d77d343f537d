"""Procedures that call one method of a table, where they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

import pyarrow as pa

from rowsieve.arguments.annotations import Progress
from rowsieve.errors import InvalidInput
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import (
    SCHEMA,
    TABLE_NAME,
    TOKEN_APP,
    TOKEN_SEQUENCE,
    Procedure,
)
from rowsieve.statements.call_values import Value
from rowsieve.storage.log.checkpoint import write_checkpoint
from rowsieve.storage.log.log_entry import Commit
from rowsieve.table import Table

COMMIT_COLUMNS: Final = pa.schema(
    [
        ("version", pa.int64()),
        ("rows_written", pa.int64()),
        ("rows_deleted", pa.int64()),
        ("parts_added", pa.int64()),
        ("parts_removed", pa.int64()),
    ]
)


def commit_row(commit: Commit) -> pa.Table:
    """The row with the counts of a commit."""
    row = {name: getattr(commit, name) for name in COMMIT_COLUMNS.names}
    return pa.Table.from_pylist([row], schema=COMMIT_COLUMNS)


class RewriteManifests(Procedure):
    """Writes the list of parts of the newest version into one checkpoint."""

    name = "rewrite_manifests"
    meaning = "write the list of parts of the newest version into a checkpoint"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter(
            "use_caching",
            ParameterType.FLAG,
            meaning="accepted and without effect, as Iceberg's procedure has it",
        ),
    )
    columns = pa.schema([("parts", pa.int64()), ("version", pa.int64())])

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Write the checkpoint; nothing if the version has one."""
        del arguments
        table.refresh()
        snapshot = table.handle.pinned
        write_checkpoint(table.handle.store, snapshot)
        row = {"parts": len(snapshot.parts), "version": snapshot.version}
        return pa.Table.from_pylist([row], schema=self.columns)


class Clone(Procedure):
    """Copies one version of a table into a table of its own."""

    name = "clone"
    meaning = "copy one version with its data files into a new table, under a lease"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter("uri", ParameterType.TEXT, required=True, meaning="the place of the new table"),
        Parameter("version", ParameterType.WHOLE, meaning="instead of the newest"),
    )
    columns = pa.schema([("version", pa.int64()), ("parts", pa.int64()), ("rows", pa.int64())])

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Copy it, with the table's own storage options."""
        table.refresh()
        version = arguments.get("version")
        copy = table.clone(
            str(arguments["uri"]),
            version=None if version is None else _whole(version),
            storage_options=table.handle.storage_options,
        )
        parts = len(copy.handle.pinned.parts)
        row = {"version": copy.version, "parts": parts, "rows": len(copy)}
        return pa.Table.from_pylist([row], schema=self.columns)


class _CommitProcedure(Procedure):
    """Calls a method that returns a commit; its result is one row with the commit's counts."""

    columns = COMMIT_COLUMNS

    def __init__(
        self,
        name: str,
        meaning: str,
        parameters: tuple[Parameter, ...],
        commit: Callable[[Table, Mapping[str, Value]], Commit],
        commit_with_progress: Callable[[Table, Mapping[str, Value], Progress], Commit]
        | None = None,
    ) -> None:
        self.name, self.meaning = name, meaning
        self.parameters = (SCHEMA, TABLE_NAME, *parameters)
        self._commit, self._commit_with_progress = commit, commit_with_progress

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Call the method."""
        return commit_row(self._commit(table, arguments))

    def run(self, table: Table, arguments: Mapping[str, Value], progress: Progress) -> pa.Table:
        """Call the method, with the progress if it takes it."""
        if self._commit_with_progress is None:
            return self.call(table, arguments)
        return commit_row(self._commit_with_progress(table, arguments, progress))


_VERSION = Parameter(
    "version",
    ParameterType.WHOLE,
    required=True,
    meaning="the version to restore",
    also=("snapshot_id",),
)
_TIMESTAMP = Parameter(
    "timestamp",
    ParameterType.INSTANT,
    required=True,
    meaning="restore the version of this time",
)


METADATA: Final = Parameter(
    "metadata", ParameterType.OPTIONS, meaning="texts that the commit keeps, by their names"
)
_TOKEN: Final = (TOKEN_APP, TOKEN_SEQUENCE)


def _restored(table: Table, arguments: Mapping[str, Value]) -> Commit:
    version = _whole(arguments["version"])
    return table.restore(version, metadata=_notes(arguments), token=_token(arguments))


def _set_current(table: Table, arguments: Mapping[str, Value]) -> Commit:
    version, ref = arguments["version"], arguments["ref"]
    if (version is None) == (ref is None):
        raise InvalidInput("set_current_snapshot: give version or ref, one of the two")
    chosen = _whole(version) if ref is None else str(ref)
    return table.restore(chosen, metadata=_notes(arguments), token=_token(arguments))


def _notes(arguments: Mapping[str, Value]) -> Mapping[str, str] | None:
    notes = arguments.get(METADATA.name)
    assert notes is None or isinstance(notes, Mapping)
    return notes


def _token(arguments: Mapping[str, Value]) -> tuple[str, int] | None:
    """The token of a call; InvalidInput for a half."""
    application, sequence = (arguments.get(parameter.name) for parameter in _TOKEN)
    if application is None and sequence is None:
        return None
    if application is None or sequence is None:
        raise InvalidInput("token_app and token_sequence go together; one is missing")
    return str(application), _whole(sequence)


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _restored_as_of(table: Table, arguments: Mapping[str, Value]) -> Commit:
    moment = arguments["timestamp"]
    assert isinstance(moment, datetime)
    return table.restore(as_of=moment, metadata=_notes(arguments), token=_token(arguments))


TABLE_PROCEDURES: Final[tuple[Procedure, ...]] = (
    RewriteManifests(),
    Clone(),
    _CommitProcedure(
        "compact",
        "rewrite small parts and parts with hidden rows, in this process",
        (METADATA,),
        lambda table, arguments: table.compact(metadata=_notes(arguments)),
        lambda table, arguments, progress: table.compact(
            metadata=_notes(arguments), progress=progress
        ),
    ),
    _CommitProcedure(
        "rollback_to_snapshot",
        "restore the rows of a version in a new commit",
        (_VERSION, METADATA, *_TOKEN),
        _restored,
    ),
    _CommitProcedure(
        "set_current_snapshot",
        "the same as rollback_to_snapshot, for any version, or for a tag",
        (
            replace(_VERSION, required=False),
            METADATA,
            *_TOKEN,
            Parameter("ref", ParameterType.TEXT, meaning="a tag, instead of a version"),
        ),
        _set_current,
    ),
    _CommitProcedure(
        "cherrypick_snapshot",
        "repeat the changes of a commit that a restore has undone",
        (
            Parameter(
                "version",
                ParameterType.WHOLE,
                required=True,
                meaning="the version to repeat",
                also=("snapshot_id",),
            ),
        ),
        lambda table, arguments: table.cherry_pick(_whole(arguments["version"])),
    ),
    _CommitProcedure(
        "rollback_to_timestamp",
        "restore the rows of the version of a time in a new commit",
        (_TIMESTAMP, METADATA, *_TOKEN),
        _restored_as_of,
    ),
)
