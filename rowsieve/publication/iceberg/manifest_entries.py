"""Entries of manifests: one data file, or the deletion vector of one data file.

An entry that stays is written again with the bytes that it has, so that statistics are neither
decoded nor computed again. It keeps its sequence number and its first row id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from rowsieve.publication.iceberg.avro_files import (
    NULL,
    PRESENT,
    Cursor,
    data,
    long,
    optional_data,
    optional_long,
    sized_block,
)
from rowsieve.publication.iceberg.file_metrics import FileMetrics

_MAPS: Final = 6  # of column sizes, counts and bounds
_UNUSED: Final = 4 * NULL  # key_metadata, split_offsets, equality_ids, sort_order_id


class Content(IntEnum):
    """What a manifest lists."""

    DATA = 0
    DELETES = 1


class Status(IntEnum):
    """What a manifest says about a file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file of a snapshot: `path` is a data file, or a file with deletion vectors.

    `rows` are its rows, or the rows that the vector hides in the data file `of`: bytes
    [`start`, `start + length`) of `path`. `sequence` and `snapshot_id` are those of the snapshot
    that added it. `body` are its first fields as a manifest has them.
    """

    path: str
    rows: int
    size_bytes: int
    snapshot_id: int
    sequence: int
    body: bytes
    first_row_id: int | None = None
    of: str | None = None
    start: int | None = None
    length: int | None = None

    @property
    def key(self) -> str:
        """The data file that it is about."""
        return self.path if self.of is None else self.of

    def encoded(self, status: Status) -> bytes:
        """The entry as a manifest has it; new ones inherit the numbers of their snapshot."""
        number = None if status is Status.ADDED else self.sequence
        return b"".join(
            (
                long(status),
                PRESENT,
                long(self.snapshot_id),
                2 * optional_long(number),
                self.body,
                optional_long(None if status is Status.ADDED else self.first_row_id),
                optional_data(None if self.of is None else self.of.encode()),
                optional_long(self.start),
                optional_long(self.length),
            )
        )

    def numbered_from(self, first_row_id: int) -> ManifestEntry:
        """Return a new entry with the id of its first row, by which a manifest says it later."""
        return replace(self, first_row_id=first_row_id)

    def of_snapshot(self, snapshot_id: int) -> ManifestEntry:
        """Return the entry with the id of another snapshot, such as the one that removes it."""
        return replace(self, snapshot_id=snapshot_id)


def data_entry(
    path: str, rows: int, size_bytes: int, metrics: FileMetrics, snapshot_id: int, sequence: int
) -> ManifestEntry:
    """Return the new entry of a data file."""
    counts = (metrics.value_counts, metrics.null_value_counts, metrics.nan_value_counts)
    bounds = (metrics.lower_bounds, metrics.upper_bounds)
    maps = [{}, *map(_numbers, counts), *map(_bytes, bounds)]
    body = _body(Content.DATA, path, "PARQUET", rows, size_bytes, maps)
    return ManifestEntry(path, rows, size_bytes, snapshot_id, sequence, body)


def vector_entry(
    path: str,
    rows: int,
    size_bytes: int,
    of: str,
    place: tuple[int, int],
    snapshot_id: int,
    sequence: int,
) -> ManifestEntry:
    """Return the new entry of the deletion vector of the data file `of`; `place` [start, stop)."""
    body = _body(Content.DELETES, path, "PUFFIN", rows, size_bytes, [{}] * _MAPS)
    start, stop = place
    return ManifestEntry(
        path,
        rows,
        size_bytes,
        snapshot_id,
        sequence,
        body,
        of=of,
        start=start,
        length=stop - start,
    )


def live_entries(
    objects: bytes, count: int, sequence: int, first_row_id: int | None
) -> list[ManifestEntry]:
    """Decode the entries of a manifest that are not deleted.

    `sequence` and `first_row_id` are those of the manifest, which new entries inherit. IndexError
    or OverflowError if the bytes are not such entries.
    """
    cursor, live = Cursor(objects), []
    for _ in range(count):
        status, entry = _decoded(cursor, sequence)
        if entry.first_row_id is None and first_row_id is not None:
            entry = entry.numbered_from(first_row_id)
            first_row_id += entry.rows
        if status is not Status.DELETED:
            live.append(entry)
    return live


def _decoded(cursor: Cursor, inherited: int) -> tuple[Status, ManifestEntry]:
    status = Status(cursor.long())
    snapshot_id = cursor.optional_long() or 0
    sequence = cursor.optional_long()
    cursor.optional_long()
    start = cursor.at
    cursor.long()
    path = cursor.data().decode()
    cursor.data()
    rows, size_bytes = cursor.long(), cursor.long()
    for _ in range(_MAPS):
        if cursor.is_present():
            cursor.skip_sized_block()
    if cursor.take(len(_UNUSED)) != _UNUSED:
        raise IndexError("an entry has fields that are not written here")
    body = cursor.since(start)
    row_id = cursor.optional_long()
    of = cursor.optional_data()
    offset, length = cursor.optional_long(), cursor.optional_long()
    return status, ManifestEntry(
        path,
        rows,
        size_bytes,
        snapshot_id,
        inherited if sequence is None else sequence,
        body,
        row_id,
        None if of is None else of.decode(),
        offset,
        length,
    )


def _body(
    content: Content,
    path: str,
    file_format: str,
    rows: int,
    size_bytes: int,
    maps: Sequence[Mapping[int, bytes]],
) -> bytes:
    fields = [
        long(content),
        data(path.encode()),
        data(file_format.encode()),
        long(rows),
        long(size_bytes),
        *(
            PRESENT + sized_block([long(number) + value for number, value in each.items()])
            for each in maps
        ),
        _UNUSED,
    ]
    return b"".join(fields)


def _numbers(counts: Mapping[int, int]) -> dict[int, bytes]:
    return {number: long(count) for number, count in counts.items()}


def _bytes(bounds: Mapping[int, bytes]) -> dict[int, bytes]:
    return {number: data(bound) for number, bound in bounds.items()}
