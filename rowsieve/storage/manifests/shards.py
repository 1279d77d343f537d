"""The parts of a version in one file; columns are read on demand, by shard.

    <segment> <segment> ... <index>                      see `rowsieve.storage.manifests.segments`

A shard is a run of up to `SHARD_PARTS` parts. The index also has the union of the statistics of
each shard (`rowsieve.stats.shard_unions`).

Soundness: the file that names this one has the offset and the checksum of the index, and the index
has those of the segments, so every change after writing is detected. If a segment is damaged, all
parts are rebuilt from the log instead; the digest of their ids proves that they are the same parts
in the same order. If the rebuild fails, damaged statistics are unknown, and any other damage is
CorruptData.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from rowsieve.checksums import checksum_of_buffers
from rowsieve.errors import CorruptData, RowsieveError, SnapshotExpired, StoreError
from rowsieve.objects import ObjectNotFound, ObjectStore
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.shard_unions import unions_of
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_columns import Indices, at_places
from rowsieve.storage.manifests.manifest_layout import check_values
from rowsieve.storage.manifests.segments import (
    SEGMENT_FACTS,
    STATISTICS,
    encode_index,
    encode_segments,
    group_of,
    groups_of,
    read_range,
)
from rowsieve.types.schema import Schema

SHARD_PARTS: Final = 16_384
_LARGEST_GAP_BYTES: Final = 64 * 1024  # between two segments read in one request
_log = logging.getLogger(__name__)

Recover: TypeAlias = Callable[[], PartTable]


def digest_of_ids(parts: PartTable) -> str:
    """Return a digest of the part ids and their order."""
    ids = parts.column("part_id")
    lengths = [pc.binary_length(chunk).to_numpy() for chunk in ids.chunks]
    return checksum_of_buffers([*lengths, *map(_text_bytes, ids.chunks)])


def _text_bytes(chunk: pa.StringArray) -> memoryview:
    """Return the concatenated bytes of all values."""
    if not len(chunk):
        return memoryview(b"")
    offsets = np.frombuffer(chunk.buffers()[1], np.int32)
    start, stop = offsets[chunk.offset], offsets[chunk.offset + len(chunk)]
    return memoryview(chunk.buffers()[2])[start:stop]


def encode_shards(parts: PartTable, schema: Schema, shard_parts: int) -> tuple[bytes, int]:
    """Encode at least one part; return the file's bytes and the offset of its index."""
    starts = np.arange(0, len(parts), shard_parts)
    table = parts.table.combine_chunks()
    segments, index = encode_segments(table, starts, shard_parts)
    statistics = PartStatistics(parts, schema)
    names = [name for name in groups_of(table.schema) if name.startswith(STATISTICS)]
    index.update(unions_of(statistics, map(_subject, names), starts))
    return segments + encode_index(table.schema, index), len(segments)


@dataclass(frozen=True, slots=True)
class ShardedFile:
    """The location of a file of shards, and the digest of its part ids (`digest_of_ids`)."""

    store: ObjectStore
    path: str
    ids: str

    @property
    def name(self) -> str:
        """The file's name in error messages."""
        return f"{self.path} in {self.store.uri}"


class ShardedParts:
    """A `ColumnSource` of manifest columns in a file of shards; caches the segments that it read.

    `recover` rebuilds the same parts from another source. `unreadable` counts the parts whose
    statistics were lost, by group.
    """

    def __init__(
        self, file: ShardedFile, schema: pa.Schema, shards: pa.Table, recover: Recover | None
    ) -> None:
        self._file = file
        self._schema = schema
        self._recover = recover
        self._recovered: pa.Table | None = None
        self._segments: dict[tuple[str, int], pa.RecordBatch] = {}
        self._groups = {
            group: pa.schema([schema.field(name) for name in names])
            for group, names in groups_of(schema).items()
        }
        self._places = {
            group: tuple(shards.column(f"{group}.{fact}").to_pylist() for fact in SEGMENT_FACTS)
            for group in self._groups
        }
        self._stops = np.cumsum(shards.column("parts").to_numpy())
        self.unions = shards
        self.unreadable: dict[str, int] = {}
        self.unreachable = False  # whether the store failed for some of them

    @property
    def row_count(self) -> int:
        """Number of parts."""
        return int(self._stops[-1]) if len(self._stops) else 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of the manifest."""
        return self._schema

    def shards_of(self, rows: Indices | None) -> Indices:
        """Return, shape (n,), the shard of each part, or of the parts at these indices."""
        return np.repeat(np.arange(len(self._stops)), self._counts(rows))

    def _counts(self, rows: Indices | None) -> Indices:
        """Count each shard's parts, or only those at ascending indices."""
        stops = self._stops if rows is None else np.searchsorted(rows, self._stops)
        return np.diff(stops, prepend=0)

    def read(self, names: Sequence[str], rows: Indices | None) -> pa.Table:
        """Read columns of all parts, or of those at ascending indices; reads only their shards."""
        schema = pa.schema([self._schema.field(name) for name in names])
        requested = self._counts(rows)
        chosen = np.arange(len(requested)) if rows is None else np.flatnonzero(requested)
        self._load(dict.fromkeys(map(group_of, names)), chosen.tolist())
        if self._recovered is not None:
            table = _as_schema(self._recovered, schema)
            return table if rows is None else at_places(table, rows)
        table = pa.table([self._column(field, chosen.tolist()) for field in schema], schema=schema)
        if rows is None:
            return table
        counts = self._counts(None)[chosen]
        if len(rows) == int(counts.sum()):
            return table
        before = np.cumsum(counts) - counts
        shifts = self._stops[chosen] - counts - before
        return at_places(table, rows - np.repeat(shifts, requested[chosen]))

    def _column(self, field: pa.Field, shards: Sequence[int]) -> pa.ChunkedArray:
        group = group_of(field.name)
        chunks = [self._segments[group, i].column(field.name) for i in shards]
        return pa.chunked_array(chunks, field.type)

    def _load(self, groups: Iterable[str], shards: Sequence[int]) -> None:
        if self._recovered is not None:
            return
        wanted = [
            (group, i) for group in groups for i in shards if (group, i) not in self._segments
        ]
        for run in self._runs(wanted):
            if not self._load_run(run):
                return

    def _runs(self, wanted: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
        """Group segments that are adjacent in the file, or nearly so."""
        run: list[tuple[str, int]] = []
        end = 0
        for group, i in sorted(wanted, key=lambda each: self._places[each[0]][0][each[1]]):
            start, stop = (self._places[group][fact][i] for fact in (0, 1))
            if run and not 0 <= start - end <= _LARGEST_GAP_BYTES:
                yield run
                run = []
            run.append((group, i))
            end = stop
        if run:
            yield run

    def _load_run(self, run: Sequence[tuple[str, int]]) -> bool:
        """Read adjacent segments; False if all parts were recovered from another source."""
        begin, end = self._places[run[0][0]][0][run[0][1]], self._places[run[-1][0]][1][run[-1][1]]
        try:
            data = memoryview(read_range(self._file.store, self._file.path, begin, end))
        except (CorruptData, ObjectNotFound) as error:
            return self._recover_or_drop(run, error)
        except StoreError as error:
            if self._recover is not None or not all(g.startswith(STATISTICS) for g, _ in run):
                raise
            self.unreachable = True
            return self._recover_or_drop(run, error)
        for group, i in run:
            start, stop, digest = (facts[i] for facts in self._places[group])
            segment = data[start - begin : stop - begin]
            if xxhash.xxh3_128_digest(segment) != digest:
                what = f"bytes [{start}, {stop}) of {self._file.name} differ from their checksum"
                if not self._recover_or_drop([(group, i)], CorruptData(what)):
                    return False
                continue
            try:
                batch = pa.ipc.read_record_batch(pa.py_buffer(segment), self._groups[group])
                batch.validate(full=True)
                if not group.startswith(STATISTICS):
                    check_values(pa.Table.from_batches([batch]))
            except (pa.ArrowException, OSError, CorruptData) as error:
                damage = CorruptData(f"{group} of {self._file.name}: {error}")
                if not self._recover_or_drop([(group, i)], damage):
                    return False
                continue
            self._segments[group, i] = batch
        return True

    def _recover_or_drop(self, segments: Sequence[tuple[str, int]], error: RowsieveError) -> bool:
        """Recover all parts and return False; or mark the segments as unknown and return True.

        If recovery fails and a segment is not statistics, which must not be unknown:
        SnapshotExpired if the file is gone, else CorruptData.
        """
        if self._recover is not None:
            try:
                parts = self._recover()
                if digest_of_ids(parts) == self._file.ids:
                    _log.warning("%s: the parts are rebuilt from the log instead", error)
                    self._recovered = parts.table
                    return False
            except (CorruptData, ObjectNotFound, StoreError) as cause:
                _log.warning("%s: rebuilding the parts from the log also failed: %s", error, cause)
        for group, i in segments:
            if not group.startswith(STATISTICS):
                if isinstance(error, ObjectNotFound):
                    raise SnapshotExpired(
                        f"{error}: the checkpoint by which the table was opened has been removed; "
                        "refresh the table, or open it again",
                        path=error.path,
                    ) from error
                raise CorruptData(f"{error}; restore it from a copy of the table") from error
            count = int(np.diff(self._stops, prepend=0)[i])
            schema = self._groups[group]
            self._segments[group, i] = pa.RecordBatch.from_arrays(
                [pa.nulls(count, field.type) for field in schema], schema=schema
            )
            self.unreadable[group] = self.unreadable.get(group, 0) + count
            _log.warning("%s: %s of %d parts are unknown", error, group, count)
        return True


def _subject(group: str) -> Subject:
    field_id, _, what = group.removeprefix(STATISTICS).partition(".")
    return Derived(int(field_id), what) if what else int(field_id)


def _as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table(
        [
            table.column(field.name)
            if field.name in table.column_names
            else pa.chunked_array([pa.nulls(table.num_rows, field.type)], field.type)
            for field in schema
        ],
        schema=schema,
    )
