"""Columns of the manifest in a file of segments, each read and verified separately.

A segment is one group of columns of one run of parts (a shard): a compressed Arrow record batch
without its schema. The index has the columns' schema and a table with one row per shard: `parts`,
its number of parts, and `<group>.start`, `<group>.stop` and `<group>.digest` (xxh3_128) of its
segments. The groups are `id`, `sizes` (columns that every plan sums), `keys`, `files` (columns that
a read needs), `order` (of an event order), and one group per subject of statistics.

Soundness: the file that names this one has the checksum of the index, and the index has the digests
of the segments.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from rowsieve.errors import CorruptData, StoreError
from rowsieve.objects import ObjectStore
from rowsieve.storage.manifests.manifest_columns import Indices
from rowsieve.types.encodings import sizes_of

STATISTICS: Final = "stats."
ORDER: Final = "order."  # columns that commits of an event order read
SEGMENT_FACTS: Final = {"start": pa.int64(), "stop": pa.int64(), "digest": pa.binary(16)}
_SIZES: Final = ("data.rows", "deletes.rows", "data.size_bytes", "deletes.size_bytes")
_MIN_COMPRESSED_BYTES: Final = 2048
"""For fewer bytes, setting up the compressor costs more than it saves."""
_FIRST_GROUPS: Final = ("sizes", "keys", "id", "files")


def group_of(name: str) -> str:
    """Return the group of a manifest column."""
    if name.startswith(STATISTICS):
        return name.rpartition(".")[0]
    if name == "part_id":
        return "id"
    if name in _SIZES:
        return "sizes"
    if name.startswith(ORDER):
        return "order"
    return "keys" if name.startswith("key.") else "files"


def groups_of(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the columns of each group; groups that plans read first come first."""
    groups: dict[str, list[str]] = {group: [] for group in _FIRST_GROUPS}
    for name in schema.names:
        group = group_of(name)
        if (names := groups.get(group)) is None:
            names = groups[group] = []
        names.append(name)
    return {group: names for group, names in groups.items() if names}


def encode_segments(
    table: pa.Table, starts: Indices, shard_parts: int
) -> tuple[bytes, dict[str, pa.Array]]:
    """Encode a one-chunk table; return its concatenated segments and the columns of the index."""
    index: dict[str, pa.Array] = {"parts": pa.array(np.diff(starts, append=table.num_rows))}
    groups = groups_of(table.schema)
    index_of = {name: i for i, name in enumerate(table.schema.names)}
    sizes = sizes_of(table)
    batches = [table.slice(start, shard_parts).to_batches()[0] for start in starts.tolist()]
    segments: list[memoryview] = []
    for names in groups.values():
        columns = [index_of[name] for name in names]
        size = sum(sizes[i] for i in columns)
        segments += _segments([batch.select(columns) for batch in batches], size)
    stops = np.cumsum([len(segment) for segment in segments], dtype=np.int64)
    facts = {
        "start": pa.array(stops - [len(segment) for segment in segments], pa.int64()),
        "stop": pa.array(stops),
        "digest": pa.array(map(xxhash.xxh3_128_digest, segments), pa.binary(16)),
    }
    shards = len(starts)
    for i, group in enumerate(groups):
        for fact, values in facts.items():  # slices, because thousands of small arrays are slow
            index[f"{group}.{fact}"] = values.slice(i * shards, shards)
    return b"".join(segments), index


def encode_index(schema: pa.Schema, index: dict[str, pa.Array]) -> bytes:
    """Encode the schema of the columns, then the table with one row per shard."""
    sink = pa.BufferOutputStream()
    sink.write(schema.serialize())
    shards = pa.table(index)
    with pa.ipc.new_stream(sink, shards.schema) as writer:
        writer.write_table(shards)
    return bytes(sink.getvalue())


def read_range(store: ObjectStore, path: str, start: int, stop: int) -> bytes:
    """Read bytes `[start, stop)`; CorruptData if the object is shorter, for any store error."""
    try:
        return store.get_range(path, start, stop)
    except StoreError as error:
        if store.size(path) >= stop:
            raise
        raise CorruptData(f"{path} in {store.uri} ends before byte {stop}") from error


def _segments(batches: Sequence[pa.RecordBatch], size_bytes: int) -> Iterator[memoryview]:
    """Yield the batches without their schema, compressed if they are large enough."""
    if size_bytes < _MIN_COMPRESSED_BYTES:
        for batch in batches:
            yield memoryview(batch.serialize())
        return
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        writer.write_batch(batches[0].slice(0, 0))  # writes the schema
        offsets = [sink.tell()]
        for batch in batches:
            writer.write_batch(batch)
            offsets.append(sink.tell())
    data = memoryview(sink.getvalue())
    for begin, end in itertools.pairwise(offsets):
        yield data[begin:end]


def decode_index(data: bytes) -> tuple[pa.Schema, pa.Table]:
    """Decode the columns' schema and the table of shards; CorruptData if they are not valid."""
    try:
        reader = pa.BufferReader(data)
        columns = pa.ipc.read_schema(reader)
        with pa.ipc.open_stream(reader) as stream:
            shards = stream.read_all()
        shards.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise CorruptData(f"the index is not readable: {error}") from error
    expected = {f"{group}.{fact}" for group in groups_of(columns) for fact in SEGMENT_FACTS}
    expected.add("parts")
    for name in expected:
        index = shards.schema.get_field_index(name)
        type_ = SEGMENT_FACTS.get(name.rpartition(".")[2], pa.int64())
        if index < 0 or shards.schema.field(index).type != type_ or shards.column(index).null_count:
            raise CorruptData(f"the index has no valid column {name!r}")
    return columns, shards
