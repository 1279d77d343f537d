"""The state of a Delta log that publications of one table wrote.

Soundness: each version must name us as its writer, because another writer's changes would be lost
with the next one. Other writers keep the properties of a table, so these alone prove nothing.
"""

from __future__ import annotations

import itertools
import re
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.publication.delta.checkpoints import LAST, LOG, last_checkpoint
from rowsieve.publication.places import stored_file

TABLE: Final = "rowsieve.table"
VERSION: Final = "rowsieve.version"
COMMIT: Final = "rowsieve.commit"
FILES: Final = "rowsieve.files"
"""The folder of the table's own files, as paths in the log begin; empty if it is the log's."""
ENGINE: Final = "rowsieve"  # the engine that our commits name; others keep our table's properties
DOMAIN: Final = "rowsieve"
_ENTRY: Final = re.compile(rf"{LOG}/(\d{{20}})\.json", re.ASCII)
_CHECKPOINT: Final = re.compile(rf"{LOG}/\d{{20}}\.checkpoint\.parquet", re.ASCII)


class _DeltaFile(msgspec.Struct):
    path: str


class _Info(msgspec.Struct):
    engine: str | None = msgspec.field(name="engineInfo", default=None)
    timestamp_ms: int | None = msgspec.field(name="inCommitTimestamp", default=None)


class _Metadata(msgspec.Struct):
    id: str
    schema: str = msgspec.field(name="schemaString", default="")
    created_ms: int | None = msgspec.field(name="createdTime", default=None)
    configuration: dict[str, str | None] = {}


class _Protocol(msgspec.Struct):
    features: list[str] = msgspec.field(name="readerFeatures", default_factory=list)
    writer_features: list[str] = msgspec.field(name="writerFeatures", default_factory=list)


class _Domain(msgspec.Struct):
    domain: str
    configuration: str = ""


class _Action(msgspec.Struct):
    """The fields that we read of a line of the log."""

    add: dict[str, Any] | None = None
    remove: _DeltaFile | None = None
    metadata: _Metadata | None = msgspec.field(name="metaData", default=None)
    info: _Info | None = msgspec.field(name="commitInfo", default=None)
    protocol: _Protocol | None = None
    domain: _Domain | None = msgspec.field(name="domainMetadata", default=None)


@dataclass(slots=True)
class LogState:
    """The newest version of a log: its files, its schema and its features.

    `files` are the actions that added them, by path, and `others` the newest other actions, by
    their names. `number` is the next version. `version` and `commit_id` are those of the table, -1
    and empty without any. `folder` is that of the table's own files, None if the log does not say.
    """

    number: int = 0
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    schema: str = ""
    configuration: dict[str, str | None] = field(default_factory=dict)
    created_ms: int | None = None
    features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()
    timestamp_ms: int = 0
    version: int = -1
    commit_id: str = ""
    folder: str | None = None


def read_log(store: ObjectStore, table_uuid: str) -> LogState:
    """Replay the log; UnsupportedOperation unless publications of this table wrote all of it."""
    state, after = LogState(), None
    if (checkpoint := last_checkpoint(store)) is not None:
        state.number, stored = checkpoint
        _applied(store, state, [msgspec.json.encode(action) for action in stored])
        after = f"{LOG}/{state.number:020}"  # before the entry of that version, which has the time
    names = [name for name in store.list(LOG, after) if name != LAST]
    numbers = [number for number in map(_number_of, names) if number is not None]
    if len(numbers) < len([name for name in names if not _is_checkpoint(name)]):
        raise _not_ours(store)
    for number, wanted in zip(numbers, itertools.count(state.number), strict=False):
        if number != wanted:
            raise CorruptData(
                f"publish: {store.uri} lacks version {wanted} of its Delta log; "
                "restore it from a copy, or publish into another folder"
            )
        lines = stored_file(store, f"{LOG}/{number:020}.json").splitlines()
        actions = _applied(store, state, lines)
        engines = {action.info.engine for action in actions if action.info is not None}
        if engines != {ENGINE} or state.configuration.get(TABLE) != table_uuid:
            raise _not_ours(store)
        state.number = number + 1
    return state


def _number_of(name: str) -> int | None:
    match = _ENTRY.fullmatch(name)
    return None if match is None else int(match[1])


def _is_checkpoint(name: str) -> bool:
    return _CHECKPOINT.fullmatch(name) is not None


def _applied(store: ObjectStore, state: LogState, lines: list[bytes]) -> list[_Action]:
    actions = [_decoded(line, store) for line in lines]
    for line in lines:
        for name, action in msgspec.json.decode(line).items():
            if name in ("protocol", "metaData", "domainMetadata"):
                state.others[name] = action
    for action in actions:
        if (info := action.info) is not None:
            state.timestamp_ms = info.timestamp_ms or state.timestamp_ms
        if (metadata := action.metadata) is not None:
            state.table_id, state.schema = metadata.id, metadata.schema
            state.configuration, state.created_ms = metadata.configuration, metadata.created_ms
            version = metadata.configuration.get(VERSION)  # as earlier releases wrote it
            state.version = state.version if version is None else int(version)
        if (protocol := action.protocol) is not None:
            state.features = frozenset(protocol.features)
            state.writer_features = frozenset(protocol.writer_features)
        if (domain := action.domain) is not None and domain.domain == DOMAIN:
            domain_values = msgspec.json.decode(domain.configuration, type=dict[str, str])
            state.version, state.commit_id = int(domain_values[VERSION]), domain_values[COMMIT]
            state.folder = domain_values.get(FILES)
        if (remove := action.remove) is not None:
            state.files.pop(remove.path, None)
    for action in actions:
        if (add := action.add) is not None:
            state.files[_path(add, store)] = add
    return actions


def _path(add: dict[str, Any], store: ObjectStore) -> str:
    if not isinstance(path := add.get("path"), str):
        raise _not_ours(store)
    return path


def _decoded(line: bytes, store: ObjectStore) -> _Action:
    try:
        return msgspec.json.decode(line, type=described(_Action))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_ours(store) from error


def _not_ours(store: ObjectStore) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"publish: {store.uri}/{LOG} has a Delta table of another writer or of another table; "
        "publish into a folder without a Delta table"
    )
