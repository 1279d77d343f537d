"""Short lists of parts inside the log entry or checkpoint that names them, without a file.

A change of at most `inline_bytes` is one object: its entry, with the part as compressed Arrow IPC.
The list of a larger change stands in its entry, too, while it is short: a reader then needs one
request a commit. A table whose protocol is older has neither, whatever the flag `inline_bytes` is.

Soundness: entries with parts need reader and writer protocol 7, so an older release refuses the
table instead of missing rows. The entry's checksum covers the bytes. The parts are part of the
version: checkpoints carry them, so an expired entry loses no row (invariant 39).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import CorruptData
from rowsieve.storage.log.log_entry import AddedFile
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_layout import (
    FIXED,
    check_columns,
    check_parts,
    vectors_in_manifest,
)
from rowsieve.storage.manifests.side_file import inline_bytes, large_subjects
from rowsieve.storage.snapshot import INLINE_PROTOCOL, Snapshot, TableInfo

INLINE_BYTES: Final = "inline_bytes"
INLINE_TOTAL_BYTES: Final = "inline_total_bytes"
DEFAULT_TOTAL_BYTES: Final = 1024 * 1024
MAX_ENTRY_BYTES: Final = 8 * 1024 * 1024
"""The longest list of parts in an entry, without compression; a longer one becomes a file."""
LIST_BYTES: Final = 16 * 1024
"""The longest compressed list in an entry whose parts are files: two dozens to a hundred parts."""
_LISTED_PARTS: Final = 2_000  # a longer list is not compressed only to find that it is too long


def inline_limit(info: TableInfo) -> int:
    """The most bytes of a change that its log entry holds; 0 for a table without inline changes."""
    if info.reader_version < INLINE_PROTOCOL:
        return 0
    return int(info.settings.get(INLINE_BYTES, "0"))


def total_limit(properties: Mapping[str, str]) -> int:
    """The bytes of parts in memory from which on a writer folds them into a file."""
    return int(properties.get(INLINE_TOTAL_BYTES, str(DEFAULT_TOTAL_BYTES)))


def bytes_in_memory(parts: PartTable) -> int:
    """The bytes of all parts in memory of a version."""
    total = 0
    for name in ("data.content", "deletes.content"):
        if parts.schema.get_field_index(name) >= 0:
            total += int(pc.sum(pc.binary_length(parts.column(name))).as_py() or 0)
    return total


def bytes_of_vectors(parts: PartTable) -> int:
    """The bytes of all deletion vectors that a version's manifest itself has."""
    paths = parts.column("dv.path")
    if paths.null_count == len(paths):
        return 0
    sizes = parts.column("dv.size_bytes").filter(vectors_in_manifest(paths))
    return int(pc.sum(sizes).as_py() or 0)


def vector_limit(snapshot: Snapshot) -> int:
    """The most bytes of deletion vectors that a change may leave in the manifest.

    Only compaction removes them, so all of a version have at most `inline_total_bytes`.
    """
    most = inline_limit(snapshot.table)
    if most == 0:
        return 0
    return min(most, total_limit(snapshot.table.properties) - bytes_of_vectors(snapshot.parts))


def short_list(parts: PartTable, info: TableInfo, most_bytes: int) -> AddedFile | None:
    """The list as its entry or checkpoint has it; None if it is long and becomes a file.

    `most_bytes`: compressed, of a list with files. Parts in memory alone always stand in the entry.
    """
    if info.reader_version < INLINE_PROTOCOL or len(parts) > _LISTED_PARTS:
        return None
    has_files = not parts.has_no_files
    if has_files and large_subjects(parts, inline_bytes(info.properties)):
        return None  # their statistics have a file of their own
    content, size = encode_inline(parts)
    if size > MAX_ENTRY_BYTES or (has_files and len(content) > most_bytes):
        return None
    return AddedFile("", size, "", len(parts), parts.row_count, content)


def is_full(snapshot: Snapshot) -> bool:
    """Return whether a version has so many parts in memory that a writer folds them."""
    if snapshot.table.reader_version < INLINE_PROTOCOL:
        return False
    return bytes_in_memory(snapshot.parts) > total_limit(snapshot.table.properties)


def with_inline_protocol(info: TableInfo) -> TableInfo:
    """Return the table information with the protocol that parts in memory require."""
    return replace(
        info,
        reader_version=max(info.reader_version, INLINE_PROTOCOL),
        writer_version=max(info.writer_version, INLINE_PROTOCOL),
    )


def encode_inline(parts: PartTable) -> tuple[bytes, int]:
    """Return the compressed list, without fixed columns that are NULL in all parts, and its size.

    The others stay: a manifest that lacks one of them means something else.
    """
    table, fixed = parts.table.combine_chunks(), frozenset(FIXED.names)
    known = [
        name
        for name in table.column_names
        if name not in fixed or table.column(name).null_count < len(table)
    ]
    table = table.select(known).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue()
    return _ZSTD.compress(data, asbytes=True), len(data)


def decode_inline(content: bytes, size: int, version: int | None, where: str) -> PartTable:
    """Decode `encode_inline`; parts without commit_ts get `version` (invariant I1)."""
    if not 0 < size <= MAX_ENTRY_BYTES:
        raise CorruptData(f"{where} has a list of {size} bytes; the limit is {MAX_ENTRY_BYTES}")
    try:
        data = _ZSTD.decompress(content, decompressed_size=size)
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptData(f"{where} has a list of parts that is not readable: {error}") from error
    present = set(table.column_names)
    for field in FIXED:
        if field.name not in present:
            table = table.append_column(field.name, pa.nulls(table.num_rows, field.type))
    check_columns(table.schema)
    check_parts(table)
    parts = PartTable(table)
    return parts if version is None else parts.with_commit_ts(version)


_ZSTD: Final = pa.Codec("zstd")
