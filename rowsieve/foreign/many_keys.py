"""Reads the key columns of many small foreign files with one call of the decoder.

Opening a file costs far more than decoding some thousand keys. So the column chunks of the keys of
several files, whose schemas are equal byte by byte, are copied to one Parquet file in memory, with
one row group for each of theirs.

Soundness: for anything unexpected the result is None, and the caller reads the files one by one.
Keys are converted as a read of the table converts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import RowsieveError
from rowsieve.foreign.footers import Footer
from rowsieve.objects import ObjectStore, together
from rowsieve.parquet.file_mapping import FileMapping
from rowsieve.parquet.foreign_footer.footer_fields import PHYSICAL
from rowsieve.parquet.foreign_footer.schema_tree import INT96
from rowsieve.parquet.foreign_values import conform_foreign
from rowsieve.parquet.leaf_columns import leaves_by_name
from rowsieve.parquet.mini_file import ColumnPages, FileSchema, GroupPages, mini_file
from rowsieve.parquet.pages import ChunkPages
from rowsieve.parquet.spans import Span, requests
from rowsieve.parquet.thrift import MalformedThrift
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.types.encodings import arrow_type
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.stored_defaults import constant

_READ_TOGETHER_UP_TO_ROWS: Final = 65_536  # rows; larger files are read one by one
_MAX_ROWS: Final = 262_144  # of the files that are decoded together
_MAX_BYTES: Final = 32 * 2**20  # of their column chunks


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A file in place: its own footer, and its entry in the manifest."""

    footer: Footer
    ref: FileRef

    @property
    def mapping(self) -> FileMapping:
        """The mapping of its columns to the table's."""
        assert self.ref.columns is not None
        return FileMapping.from_text(self.ref.columns)


class Batch(NamedTuple):
    """Small files with equal schemas; `leaves` are the stored key columns, by field id.

    `numbers` are the places of the files in the list that was given.
    """

    numbers: list[int]
    files: list[PlacedFile]
    leaves: dict[int, tuple[str, int]]


def small_batches(files: Sequence[PlacedFile], order: KeyOrder) -> Iterator[Batch]:
    """The small files with flat key columns, in batches that are decoded together."""
    schemas: dict[bytes, dict[str, list[int]]] = {}
    waiting: dict[Any, tuple[Batch, int, int]] = {}
    for number, file in enumerate(files):
        mapping = file.mapping
        if (
            file.ref.rows > _READ_TOGETHER_UP_TO_ROWS
            or mapping.instants
            or not len(file.footer.checked.rows)
        ):
            continue
        prefix = next((each for each in schemas if file.footer.checked.data.startswith(each)), None)
        if prefix is None:
            try:
                prefix = file.footer.checked.data[: FileSchema(file.footer.checked.data).stop]
            except (MalformedThrift, KeyError, IndexError, UnicodeDecodeError):
                continue
            schemas[prefix] = leaves_by_name(file.footer.schema)
        leaves = _leaves_of(order, mapping, schemas[prefix])
        if (
            leaves is None
            or _has_int96(file, leaves)
            or (size_bytes := _size_bytes(file, leaves)) > _MAX_BYTES
        ):
            continue
        key = prefix, tuple(leaves.items())
        batch, rows, total = waiting.get(key) or (Batch([], [], leaves), 0, 0)
        batch.numbers.append(number)
        batch.files.append(file)
        waiting[key] = batch, rows + file.ref.rows, total + size_bytes
        if rows + file.ref.rows >= _MAX_ROWS or total + size_bytes >= _MAX_BYTES:
            yield waiting.pop(key)[0]
    yield from (batch for batch, _, _ in waiting.values())


def _leaves_of(
    order: KeyOrder, mapping: FileMapping, leaves: dict[str, list[int]]
) -> dict[int, tuple[str, int]] | None:
    """The stored key columns by field id; None if one is nested, or neither stored nor constant."""
    columns: dict[int, tuple[str, int]] = {}
    for field in order.fields:
        if (name := mapping.names.get(field.id)) is None:
            if field.id not in mapping.constants:
                return None
        elif len(leaves.get(name, [])) == 1:
            columns[field.id] = name, leaves[name][0]
        else:
            return None
    return columns or None


def _has_int96(file: PlacedFile, leaves: dict[int, tuple[str, int]]) -> bool:
    """Return whether a key has INT96, which only adapted footers convert."""
    stored = file.footer.checked.leaves
    return any(stored[leaf].physical == INT96 for _, leaf in leaves.values())


def _size_bytes(file: PlacedFile, leaves: dict[int, tuple[str, int]]) -> int:
    return sum(stop - start for spans in _spans(file, leaves) for start, stop in spans)


def _spans(file: PlacedFile, leaves: dict[int, tuple[str, int]]) -> list[list[Span]]:
    """The byte ranges of the key chunks, by row group."""
    checked = file.footer.checked
    return [
        [checked.span(group, leaf) for _, leaf in leaves.values()]
        for group in range(len(checked.rows))
    ]


def read_keys(store: ObjectStore, batch: Batch, order: KeyOrder) -> pa.RecordBatch | None:
    """The keys of these files, one after another; None if they must be read one by one."""
    try:
        fetched = together(store, [partial(_fetched, store, each, batch) for each in batch.files])
        groups = [group for file_groups in fetched for group in file_groups]
        names = [name for name, _ in batch.leaves.values()]
        file = mini_file(FileSchema(batch.files[0].footer.checked.data).begin(names), groups)
        opened = pq.ParquetFile(
            pa.BufferReader(file),
            pre_buffer=False,
            page_checksum_verification=True,
        )
        table = opened.read(use_threads=False)
        if table.num_rows != sum(each.ref.rows for each in batch.files):
            return None
        return _in_order(batch, table, order)
    except (RowsieveError, pa.ArrowException, OSError, KeyError):
        return None  # the caller reads the files one by one, which reports the error


def _fetched(store: ObjectStore, file: PlacedFile, batch: Batch) -> list[GroupPages]:
    """The key chunks of a file, by row group."""
    checked = file.footer.checked
    by_group = _spans(file, batch.leaves)
    read = [
        (start, memoryview(store.get_range(file.ref.path, start, stop)))
        for start, stop in requests(span for spans in by_group for span in spans)
    ]
    groups = []
    for number, spans in enumerate(by_group):
        columns = []
        for (_, leaf), (start, stop) in zip(batch.leaves.values(), spans, strict=True):
            first, data = next(each for each in reversed(read) if each[0] <= start)
            page_bytes, page = (
                data[start - first : stop - first],
                checked.data_start(number, leaf) - start,
            )
            pages = ChunkPages(
                starts=(),
                digests=(),
                index_start=None,
                path=".".join(checked.leaves[leaf].path),
                physical=PHYSICAL[checked.leaves[leaf].physical],
                codec=checked.codec(number, leaf),
                repeats=False,
            )
            columns.append(ColumnPages(pages, page_bytes[:page], [page_bytes[page:]]))
        groups.append(GroupPages(columns, int(checked.rows[number])))
    return groups


def _in_order(batch: Batch, table: pa.Table, order: KeyOrder) -> pa.RecordBatch:
    """The key columns in key order and in the types of the table, constants included."""
    rows = np.array([each.ref.rows for each in batch.files], np.int64)
    arrays = []
    for field in order.fields:
        if field.id in batch.leaves:
            column = table.column(batch.leaves[field.id][0]).combine_chunks()
            arrays.append(conform_foreign(_flat(column), field.type, field.name))
        else:
            values = [
                constant(each.mapping.constants[field.id], field.type) for each in batch.files
            ]
            repeated = pa.array(np.repeat(np.arange(len(rows)), rows))
            arrays.append(pa.array(values, arrow_type(field.type)).take(repeated))
    return pa.RecordBatch.from_arrays(arrays, names=list(order.names))


def _flat(column: Any) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
