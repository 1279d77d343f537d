"""Small files as our writer makes them, in memory: what tests of pruning read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowsieve.checksums import checksum
from rowsieve.objects import ObjectStore
from rowsieve.parquet.bloom_reader import BloomReader
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.sealing import ReadSpan, blank, sealed_tail
from rowsieve.parquet.seals import BLOOMS_KEY
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts import part_file
from rowsieve.storage.parts.part_file import FileOptions
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Float
from rowsieve.types.schema import Schema


def written(
    schema: Schema,
    groups: Sequence[Any],
    blooms: Collection[str] = (),
    *,
    seal: bool = True,
    sure: bool = False,
) -> memoryview:
    """A file of these row groups (batches or tables) with our settings, NaN noticed.

    `sure`: its filters are so large that none of a test's values is a false positive.
    """
    tables = [as_table(group, schema) for group in groups]
    rows = pa.concat_tables(tables) if tables else arrow_schema(schema).empty_table()
    nan_columns = {
        field.name
        for field in schema
        if isinstance(field.type, Float) and pc.any(pc.is_nan(rows.column(field.name))).as_py()
    }
    key = [schema.field(name) for name in blooms]
    false_positives = 1e-9 if sure else part_file._FALSE_POSITIVES
    with mock.patch.object(part_file, "_FALSE_POSITIVES", false_positives):
        options = FileOptions.choose(schema, key, rows, nan_columns)
    sink = pa.BufferOutputStream()
    writer = options.open(sink, options.file_schema(schema))
    for table in tables:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
    written_groups = sum(table.num_rows > 0 for table in tables)
    if seal:
        writer.add_key_value_metadata(blank(BLOOMS_KEY, written_groups * len(options.blooms)))
    writer.close()
    data = bytearray(sink.getvalue())
    if seal:
        seal_file(data)
    return memoryview(bytes(data))


def seal_file(data: bytearray) -> None:
    """Fill the blanks of a finished file, in place."""
    start, data[start:] = sealed_tail(len(data), span_of(data), part_file.PAGE_ROWS)


def tail_start(metadata: pq.FileMetaData) -> int:
    """Where data and bloom filters of a file end."""
    ends = [4]  # the magic number
    for number in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            chunk = metadata.row_group(number).column(leaf)
            starts = chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset
            ends.append(min(starts) + chunk.total_compressed_size)
            if chunk.bloom_filter_offset:
                ends.append(chunk.bloom_filter_offset + chunk.bloom_filter_length)
    return max(ends)


def span_of(data: bytearray) -> ReadSpan:
    """Reads spans of these bytes, as they are."""
    whole = bytes(data)
    return lambda start, stop: memoryview(whole)[start:stop]


def as_table(rows: Any, schema: Schema) -> pa.Table:
    """The schema's columns of a batch or table, in storage types with ids."""
    columns = [rows.column(name) for name in schema.names]
    return pa.table(columns, schema=arrow_schema(schema))


class OneFile:
    """A store that has nothing but one file, whatever it is called; notes the reads."""

    def __init__(self, data: memoryview) -> None:
        self.uri = "memory:///one-file"
        self.overlaps = False
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        self.reads.append((start, stop))
        return bytes(self.data[start:stop])


def opened(data: memoryview) -> tuple[pq.FileMetaData, BloomReader, OneFile]:
    """The footer of a file in memory, its filters, and the store that they are read from."""
    store, metadata = OneFile(data), read_footer(data)
    return metadata, BloomReader(cast("ObjectStore", store), reference(data), metadata), store


def reference(data: memoryview, path: str = "data/a.parquet") -> FileRef:
    """What a manifest says of the file."""
    metadata = read_footer(data)
    start = tail_start(metadata)
    return FileRef(
        path, metadata.num_rows, len(data), checksum(data), start, checksum(data[start:])
    )
