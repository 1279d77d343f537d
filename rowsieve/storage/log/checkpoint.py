"""Checkpoints: a snapshot in one or two files, so that opening need not replay the whole log.

    _rowsieve/checkpoints/<version, 20 digits>.json      sealed lines, written last
    _rowsieve/checkpoints/<uuid>.arrow                   all parts, with commit_ts filled in, unless
                                                         the list is short: then the lines have it
    _rowsieve/checkpoints/<uuid>.shards                  the same for many parts, by column

Soundness: the log is authoritative; a checkpoint only saves reads. A checkpoint becomes valid after
the file of its parts was read back. Readers skip a damaged checkpoint and use an older one or the
log. A failure to write a checkpoint never fails the commit.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from rowsieve.checksums import checksum
from rowsieve.errors import (
    CorruptData,
    RowsieveError,
    StoreError,
    UnsupportedProtocol,
)
from rowsieve.objects import ObjectStore, put_fresh, put_if_absent, reading_whole
from rowsieve.objects.cached_store import forget_kept
from rowsieve.storage.changes_since import ChangesSince
from rowsieve.storage.log.inline_parts import decode_inline, short_list
from rowsieve.storage.log.log_entry import (
    LOG,
    AddedFile,
    convert,
    info_lines,
    lines_by_kind,
    read_added_file,
    read_info,
    read_schema,
    schema_line,
)
from rowsieve.storage.log.sealed_lines import damaged, seal
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_layout import FORMAT_VERSION, check_columns
from rowsieve.storage.manifests.segments import decode_index, read_range
from rowsieve.storage.manifests.shards import (
    SHARD_PARTS,
    Recover,
    ShardedFile,
    ShardedParts,
    digest_of_ids,
    encode_shards,
)
from rowsieve.storage.manifests.side_file import inline_bytes, large_subjects, with_side_file
from rowsieve.storage.manifests.vector_columns import PREFIX
from rowsieve.storage.snapshot import Snapshot, Token
from rowsieve.storage.versioned_names import new_id

CHECKPOINTS: Final = "_rowsieve/checkpoints"
_NAME = re.compile(rf"{CHECKPOINTS}/(\d{{20}})\.json")
SHARDED_FROM: Final = 8_192  # parts; fewer load faster as one Arrow file
LIST_BYTES: Final = 512 * 1024  # of a compressed list that the lines have
_OF_FILES: Final = ("data.", "deletes.", "dv.", PREFIX)  # columns of a list
_KINDS: Final = ("checkpoint", "protocol", "table", "schema", "tokens", "add", "shards")
_SHARDS_NAME = re.compile(r"[0-9a-f]{32}\.shards")
_log = logging.getLogger(__name__)


class _CheckpointLine(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    commit_id: str
    timestamp_us: int
    table: str


class _ShardsLine(msgspec.Struct, forbid_unknown_fields=True):
    """The file of shards.

    `ids` is the digest of the part ids in order; `format` is the newest format version of a part.
    """

    file: str
    size: int
    parts: int
    format: int
    ids: str
    index_start: int
    index_checksum: str


def checkpoint_path(version: int) -> str:
    """Return the path of a version's checkpoint."""
    return f"{CHECKPOINTS}/{version:020d}.json"


def checkpoint_version_of(path: str) -> int | None:
    """Return the version in a checkpoint's path; None for any other file."""
    match = _NAME.fullmatch(path)
    return int(match[1]) if match else None


def write_due_checkpoint(store: ObjectStore, snapshot: Snapshot) -> None:
    """Write the checkpoint of a new version; log a failure and return."""
    try:
        write_checkpoint(store, snapshot)
    except RowsieveError as error:
        _log.warning("no checkpoint of version %d of %s: %s", snapshot.version, store.uri, error)


def write_checkpoint(store: ObjectStore, snapshot: Snapshot) -> bool:
    """Put the parts, read them back, then put the file that makes the checkpoint valid.

    Checkpoints of few parts are that one file. Its own checksum covers them. False if the version
    has one already: within a log it has the same content.
    """
    file = _put_parts(store, snapshot)
    parts = {"shards": file} if isinstance(file, _ShardsLine) else {"add": file}
    lines = [*checkpoint_lines(snapshot), parts]
    return put_if_absent(store, checkpoint_path(snapshot.version), seal(lines))


def checkpoint_lines(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the lines of a version's checkpoint without its parts."""
    head = _CheckpointLine(
        snapshot.version, snapshot.commit_id, snapshot.timestamp_us, snapshot.table.uuid
    )
    return [
        {"checkpoint": head},
        *info_lines(snapshot.table),
        schema_line(snapshot.schema, snapshot.next_field_id),
        {"tokens": snapshot.tokens},
    ]


def _put_parts(store: ObjectStore, snapshot: Snapshot) -> AddedFile | _ShardsLine:
    """Store the parts in the form that suits their number, and verify them by reading back."""
    parts, most_bytes = snapshot.parts, inline_bytes(snapshot.table.properties)
    sharded = len(parts) >= SHARDED_FROM or bool(large_subjects(parts, most_bytes))
    if parts.unreachable:
        raise StoreError(
            f"checkpoint of version {snapshot.version}: statistics of the parts could not be read "
            f"from {store.uri}; try again"
        )
    if not sharded and (inline := short_list(parts, snapshot.table, LIST_BYTES)) is not None:
        return inline
    name = f"{new_id(snapshot.version)}.{'shards' if sharded else 'arrow'}"
    index_start = 0
    if sharded:
        data, index_start = encode_shards(parts, snapshot.schema, SHARD_PARTS)
    else:
        data = parts.to_ipc()
    path = f"{CHECKPOINTS}/{name}"
    put_fresh(store, path, data)
    if store.get(path) != data:
        raise StoreError(f"{path} in {store.uri} does not read back as it was written")
    if not sharded:
        return AddedFile(name, len(data), checksum(data), len(parts), parts.row_count)
    return _ShardsLine(
        name,
        len(data),
        len(parts),
        int(parts.numbers("format_version").max()),
        digest_of_ids(parts),
        index_start,
        checksum(memoryview(data)[index_start:]),
    )


def read_checkpoint(store: ObjectStore, version: int, recover: Recover | None = None) -> Snapshot:
    """Load and verify a checkpoint.

    If the parts are sharded, their columns are read and verified on demand, and `recover` rebuilds
    the parts of this version from another source if a column is damaged.
    """
    path = checkpoint_path(version)
    where = f"{path} in {store.uri}"
    lines = reading_whole(store, lambda: lines_by_kind(store.get(path), where, _KINDS))
    _head(lines, version, where)
    if _lacks_parts(lines):
        raise damaged(f"{where} lacks a required line")
    if "shards" in lines:
        parts = _open_shards(store, convert(lines["shards"]["shards"], _ShardsLine, where), recover)
    else:
        file = read_added_file(lines, where)
        assert file is not None
        parts = read_parts(store, CHECKPOINTS, file)
    return read_state(lines, version, where, parts)


def read_state(
    lines: Mapping[str, Any],
    version: int,
    where: str,
    parts: PartTable,
    since: ChangesSince | None = None,
) -> Snapshot:
    """Return the version with these parts; the lines have all else, or CorruptData is raised."""
    head = _head(lines, version, where)
    info = read_info(lines, where) if "protocol" in lines or "table" in lines else None
    schema, next_field_id = read_schema(lines, where) if "schema" in lines else (None, None)
    if info is None or schema is None or next_field_id is None:
        raise damaged(f"{where} lacks a required line")
    if info.uuid != head.table:
        raise damaged(f"{where} has two table ids: {info.uuid} and {head.table}")
    tokens = convert(lines.get("tokens", {}).get("tokens", {}), dict[str, Token], where)
    return Snapshot(
        version,
        head.commit_id,
        head.timestamp_us,
        info,
        schema,
        next_field_id,
        parts,
        tokens,
        since=since,
    )


def _lacks_parts(lines: Mapping[str, Any]) -> bool:
    """Return whether the lines have neither, or both, of `add` and `shards`."""
    return ("add" in lines) == ("shards" in lines)


def _open_shards(store: ObjectStore, line: _ShardsLine, recover: Recover | None) -> PartTable:
    """Open a file of shards; reads only its index."""
    path = f"{CHECKPOINTS}/{line.file}"
    where = f"{path} in {store.uri}"
    if _SHARDS_NAME.fullmatch(line.file) is None or not 0 <= line.index_start < line.size:
        raise damaged(f"{where} is not a valid file of shards")
    if line.format > FORMAT_VERSION:
        raise UnsupportedProtocol(
            f"{where} has parts of format version {line.format}, and this version of rowsieve "
            f"knows only up to {FORMAT_VERSION}; upgrade rowsieve to read the table"
        )
    index = read_range(store, path, line.index_start, line.size)
    if checksum(index) != line.index_checksum:
        raise damaged(f"the index of {where} does not match its checksum")
    try:
        schema, shards = decode_index(index)
        check_columns(schema)
    except CorruptData as error:
        raise damaged(f"{where}: {error}") from error
    source = ShardedParts(ShardedFile(store, path, line.ids), schema, shards, recover)
    if source.row_count != line.parts:
        raise damaged(f"{where} has {source.row_count} parts instead of {line.parts}")
    return PartTable(source)


def read_timestamp_us(store: ObjectStore, version: int) -> int:
    """Read only the commit time of the checkpoint's version, in microseconds since 1970."""
    return _read_head(store, version).timestamp_us


def read_commit_id(store: ObjectStore, version: int) -> str:
    """Read only the id of the checkpoint's commit."""
    return _read_head(store, version).commit_id


def checkpoint_file(store: ObjectStore, version: int) -> str | None:
    """Return the name of the file with the checkpoint's parts; None if the checkpoint has them."""
    where = f"{checkpoint_path(version)} in {store.uri}"
    lines = lines_by_kind(store.get(checkpoint_path(version)), where, _KINDS)
    _head(lines, version, where)
    if "shards" in lines:
        return convert(lines["shards"]["shards"], _ShardsLine, where).file
    if (file := read_added_file(lines, where)) is None:
        raise damaged(f"{where} names no file of parts")
    return file.file or None


def read_parts(
    store: ObjectStore, folder: str, file: AddedFile, version: int | None = None
) -> PartTable:
    """Load the Arrow file that a sealed file names; CorruptData if size or checksum differs.

    Parts without commit_ts get `version` (invariant I1).
    """
    path = f"{folder}/{file.file}"
    if file.content is not None:
        return _inline_parts(store, folder, file, version)
    data = reading_whole(store, lambda: _sealed_bytes(store, path, file))
    try:
        parts, metadata = PartTable.from_ipc_with_metadata(data)
    except CorruptData as error:
        raise damaged(f"{path} in {store.uri}: {error}") from error
    if len(parts) != file.parts:
        raise damaged(f"{path} in {store.uri} has {len(parts)} parts instead of {file.parts}")
    if version is not None:
        parts = parts.with_commit_ts(version)
    return with_side_file(store, folder, parts, metadata)


def _inline_parts(
    store: ObjectStore, folder: str, file: AddedFile, version: int | None
) -> PartTable:
    """Decode the parts that are in an entry; CorruptData if they are damaged."""
    assert file.content is not None
    where = f"a file of {folder} in {store.uri}"
    try:
        parts = decode_inline(file.content, file.size, version, where)
    except CorruptData as error:
        raise damaged(str(error)) from error
    if len(parts) != file.parts:
        raise damaged(f"{where} has {len(parts)} parts instead of {file.parts}")
    return parts


def read_files(store: ObjectStore, file: AddedFile) -> PartTable:
    """Load only the columns of a list that name files; the values in them are not checked."""
    path = f"{LOG}/{file.file}"
    if file.content is not None:
        return _inline_parts(store, LOG, file, None)
    data = reading_whole(store, lambda: _sealed_bytes(store, path, file))
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        check_columns(table.schema)
        table = table.select([name for name in table.column_names if name.startswith(_OF_FILES)])
        table.validate(full=True)
    except (pa.ArrowException, OSError, CorruptData) as error:
        raise CorruptData(f"{path} in {store.uri}: {error}") from error
    return PartTable(table)


def _sealed_bytes(store: ObjectStore, path: str, file: AddedFile) -> bytes:
    data = store.get(path)
    if len(data) != file.size or checksum(data) != file.checksum:
        if forget_kept(store, path):  # what was kept may be damaged, not the object
            return _sealed_bytes(store, path, file)
        raise CorruptData(
            f"{path} in {store.uri} does not match its checksum: expected {file.size} bytes with "
            f"{file.checksum}, found {len(data)} with {checksum(data)}; restore it from a copy"
        )
    return data


def _read_head(store: ObjectStore, version: int) -> _CheckpointLine:
    path = checkpoint_path(version)
    where = f"{path} in {store.uri}"
    return _head(lines_by_kind(store.get(path), where, _KINDS), version, where)


def _head(lines: Mapping[str, Mapping[str, Any]], version: int, where: str) -> _CheckpointLine:
    if "checkpoint" not in lines:
        raise damaged(f"{where} has no checkpoint line")
    head = convert(lines["checkpoint"]["checkpoint"], _CheckpointLine, where)
    if head.version != version:
        raise damaged(f"{where} holds version {head.version}: it was renamed or copied")
    return head
