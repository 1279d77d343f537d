"""Columns of parts in a file that is read piece by piece, each piece with a digest.

A segment is one group of columns of one run of parts (a shard): an Arrow record batch without its
schema, compressed. The index has the columns' schema and a table with a row a shard: `parts`, the
number of its parts, and `<group>.start`, `<group>.stop` and `<group>.digest` (xxh3_128) of its
segments. Groups are `id`, `sizes` (what every plan adds up), `keys`, `files` (what a read needs to
know of a part), and one a subject of statistics.

Soundness: whoever names the file seals the index, and the index seals the segments.
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
from rowsieve.storage.columns import Indices

STATISTICS: Final = "stats."
SEGMENT_FACTS: Final = {"start": pa.int64(), "stop": pa.int64(), "digest": pa.binary(16)}
_SIZES: Final = ("data.rows", "deletes.rows", "data.size_bytes", "deletes.size_bytes")
_LEAST_COMPRESSED_BYTES: Final = 2048
"""Of fewer bytes, setting up the compressor costs more than the bytes it saves."""
_FIRST_GROUPS: Final = ("sizes", "keys", "id", "files")


def group_of(name: str) -> str:
    """The group that a column of the manifest lies in."""
    if name.startswith(STATISTICS):
        return name.rpartition(".")[0]
    if name == "part_id":
        return "id"
    if name in _SIZES:
        return "sizes"
    return "keys" if name.startswith("key.") else "files"


def groups_of(schema: pa.Schema) -> dict[str, list[str]]:
    """The columns of each group; the ones that plans read first come first."""
    found: dict[str, list[str]] = {group: [] for group in _FIRST_GROUPS}
    for name in schema.names:
        group = group_of(name)
        if (names := found.get(group)) is None:
            names = found[group] = []
        names.append(name)
    return {group: names for group, names in found.items() if names}


def encode_segments(
    table: pa.Table, starts: Indices, shard_parts: int
) -> tuple[bytes, dict[str, pa.Array]]:
    """The segments of a table in one chunk, one after another, and the columns of their index."""
    index: dict[str, pa.Array] = {"parts": pa.array(np.diff(starts, append=table.num_rows))}
    groups = groups_of(table.schema)
    places = {name: place for place, name in enumerate(table.schema.names)}
    sizes = sizes_of(table)
    batches = [table.slice(start, shard_parts).to_batches()[0] for start in starts.tolist()]
    segments: list[memoryview] = []
    for names in groups.values():
        columns = [places[name] for name in names]
        size = sum(sizes[place] for place in columns)
        segments += _segments([batch.select(columns) for batch in batches], size)
    stops = np.cumsum([len(segment) for segment in segments], dtype=np.int64)
    facts = {
        "start": pa.array(stops - [len(segment) for segment in segments], pa.int64()),
        "stop": pa.array(stops),
        "digest": pa.array(map(xxhash.xxh3_128_digest, segments), pa.binary(16)),
    }
    shards = len(starts)
    for place, group in enumerate(groups):
        for fact, values in facts.items():  # thousands of groups: a slice each, not an array
            index[f"{group}.{fact}"] = values.slice(place * shards, shards)
    return b"".join(segments), index


def sizes_of(table: pa.Table) -> list[int]:
    """About how many bytes each column takes: of numbers by their width, without a look at them.

    Wide tables have tens of thousands of columns, and a look at each takes longer than the rest.
    """
    rows = table.num_rows
    widths: dict[pa.DataType, int] = {}
    found = []
    for place, type_ in enumerate(table.schema.types):
        if (size := widths.get(type_)) is None:
            size = widths[type_] = -(-type_.bit_width * rows // 8) if _is_plain(type_) else -1
        found.append(int(table.column(place).nbytes) if size < 0 else size)
    return found


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) or pa.types.is_decimal(type_))


def encode_index(schema: pa.Schema, index: dict[str, pa.Array]) -> bytes:
    """The schema of the columns, then a row a shard."""
    sink = pa.BufferOutputStream()
    sink.write(schema.serialize())
    shards = pa.table(index)
    with pa.ipc.new_stream(sink, shards.schema) as writer:
        writer.write_table(shards)
    return bytes(sink.getvalue())


def read_range(store: ObjectStore, path: str, start: int, stop: int) -> bytes:
    """Bytes `[start, stop)`; CorruptData if the object is shorter, whatever the store says."""
    try:
        return store.get_range(path, start, stop)
    except StoreError as error:
        if store.size(path) >= stop:
            raise
        raise CorruptData(f"{path} in {store.uri} ends before byte {stop}") from error


def _segments(batches: Sequence[pa.RecordBatch], size_bytes: int) -> Iterator[memoryview]:
    """The batches without their schema, compressed where that saves anything."""
    if size_bytes < _LEAST_COMPRESSED_BYTES:
        for batch in batches:
            yield memoryview(batch.serialize())
        return
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        writer.write_batch(batches[0].slice(0, 0))  # so that the schema is written
        offsets = [sink.tell()]
        for batch in batches:
            writer.write_batch(batch)
            offsets.append(sink.tell())
    data = memoryview(sink.getvalue())
    for begin, end in itertools.pairwise(offsets):
        yield data[begin:end]


def decode_index(data: bytes) -> tuple[pa.Schema, pa.Table]:
    """The columns' schema and the table of shards; CorruptData for anything else."""
    try:
        reader = pa.BufferReader(data)
        columns = pa.ipc.read_schema(reader)
        with pa.ipc.open_stream(reader) as stream:
            shards = stream.read_all()
        shards.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise CorruptData(f"its index is not readable: {error}") from error
    expected = {f"{group}.{fact}" for group in groups_of(columns) for fact in SEGMENT_FACTS}
    expected.add("parts")
    for name in expected:
        index = shards.schema.get_field_index(name)
        type_ = SEGMENT_FACTS.get(name.rpartition(".")[2], pa.int64())
        if index < 0 or shards.schema.field(index).type != type_ or shards.column(index).null_count:
            raise CorruptData(f"its index has no {name!r}")
    return columns, shards
