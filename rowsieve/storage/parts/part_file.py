"""Write a part's Parquet file; its column settings are chosen from its first row group.

Soundness for readers that prune with the file's own statistics: a float column that contains NaN
has no statistics, because writers omit NaN from the bounds and readers cannot tell. Float columns
have no bloom filter and no dictionary, because equal floats may differ in their bits (invariants 25
and 32).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowsieve.checksums import checksum, checksum_text
from rowsieve.objects import Draft, ObjectStore, Uploads
from rowsieve.parquet.codec_columns import CODEC_KEY, CodecColumns
from rowsieve.parquet.footer import read_metadata
from rowsieve.parquet.leaf_columns import leaf_count, member_paths
from rowsieve.parquet.sealing import blank_seals, sealed_tail
from rowsieve.parquet.shredded_columns import SHREDDED_KEY, Shredding
from rowsieve.parquet.stored_forms import STRUCTURED_FORMAT
from rowsieve.stats.json_shredding import FIELDS
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.types.aliases import is_opaque
from rowsieve.types.encodings import arrow_schema, sizes_of
from rowsieve.types.logical import (
    Bool,
    Date,
    Field,
    Float,
    Int,
    Time,
    Timestamp,
    is_ordered,
)
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema

ROW_GROUP_ROWS: Final = 65_536
ROW_GROUP_BYTES: Final = 512 * 1024 * 1024  # of values without fixed width, decoded
PAGE_ROWS: Final = 8_192  # divides ROW_GROUP_ROWS, so that the pages of all columns align

_PAGE_BYTES: Final = 64 * 1024 * 1024  # larger pages are split; then pages are not sealed
_PAGE_BYTES_OF_LARGE_ROWS: Final = 4 * 1024 * 1024  # if pages are split anyway
_BATCH_ROWS: Final = 1_024  # after so many rows, pyarrow compares the size of a page with the limit

_COMPRESSION: Final = "zstd"
_COMPRESSION_LEVEL: Final = (
    3  # flights: 6% smaller than level 1 for the same CPU; level 6 costs 60% more
)
_NAME: Final = attrgetter("name")
_FULL_KEY: Final = b"rowsieve.full"
_FALSE_POSITIVES: Final = 0.03  # 64 KiB for a full row group of distinct keys; 2% takes 128 KiB
_SAMPLE_ROWS: Final = 4_096
_SAMPLE_BYTES: Final = 16 * 1024 * 1024  # counting distinct values holds a copy of each
_MIN_COMPRESSED_BYTES: Final = 1_024  # of a column, to justify setting up zstd for each
# Decoding zstd pages costs about as much as all other decoding together. Numbers with random low
# bits do not shrink, so they are stored uncompressed.
_WORTH_COMPRESSING: Final = 0.9  # largest ratio of compressed to encoded bytes
# Largest ratio of distinct values to rows of a row group. At 5% the dictionary of a text column is
# about as long as one plain page, so that reading one page costs no more with it than without.
_DICTIONARY_RATIO: Final = 0.05
_DISTINCT_SAMPLE: Final = 0.6  # largest ratio in an even sample of such a row group


@dataclass(frozen=True, slots=True)
class FileOptions:
    """The settings of one file.

    `leaves`: their number. `codecs`: codec by leaf; if empty, all leaves use `codec`. `blooms`: the
    options of Bloom filters, by column. `page_bytes`: the limit of a page, which may end after each
    `batch_rows`.
    """

    schema_id: int
    statistics: tuple[str, ...]
    dictionaries: tuple[str, ...]
    deltas: tuple[str, ...]
    codecs: Mapping[str, str]
    blooms: Mapping[str, Mapping[str, float]]
    leaves: int
    sorted_by: tuple[int, ...]
    codec: str = _COMPRESSION
    page_bytes: int = _PAGE_BYTES
    batch_rows: int = _BATCH_ROWS
    format_version: int = STRUCTURED_FORMAT
    shredding: Shredding | None = None
    encoded: CodecColumns | None = None

    @classmethod
    def choose(
        cls,
        schema: Schema,
        key: Sequence[Field],
        rows: pa.Table,
        nan_columns: Collection[str],
        shredding: Shredding | None = None,
        encoded: CodecColumns | None = None,
    ) -> FileOptions:
        """Choose the settings of a file whose first row group is `rows`.

        The hidden columns of `shredding` and `encoded` are the last ones of the rows.
        """
        allowed = _allowed(schema, tuple(key))
        dictionaries: list[str] = []
        if _DICTIONARY_RATIO * rows.num_rows >= 1:
            dictionaries = [name for name in allowed.repeating if _repeats(rows.column(name))]
        largest_bytes = max(sizes_of(rows), default=0)
        page_bytes, batch_rows = _page_limits(largest_bytes // max(rows.num_rows, 1))
        leaves, blooms = allowed.leaves, map(_bloom_of, map(rows.column, allowed.blooms))
        for hidden in rows.schema.types[len(schema) :]:
            leaves += leaf_count(hidden)
        options = cls(
            schema_id=schema.id,
            leaves=leaves,
            codecs={},
            statistics=tuple(filterfalse(nan_columns.__contains__, allowed.statistics)),
            dictionaries=tuple(dictionaries),
            deltas=tuple(filterfalse(dictionaries.__contains__, allowed.deltas)),
            blooms=dict(zip(allowed.blooms, blooms, strict=True)),
            sorted_by=allowed.sorted_by,
            page_bytes=page_bytes,
            batch_rows=batch_rows,
            # For a small file, write time matters more than size.
            codec=_COMPRESSION if largest_bytes >= _MIN_COMPRESSED_BYTES else "none",
            encoded=encoded,
        )
        if shredding is not None:
            options = options._with_shredding(shredding, rows.column(shredding.column))
        if rows.num_rows < ROW_GROUP_ROWS:
            return options
        options = replace(options, codec=_COMPRESSION)
        return replace(options, codecs=options.tried(rows.slice(0, 2 * PAGE_ROWS), schema))

    def _with_shredding(self, shredding: Shredding, values: pa.ChunkedArray) -> FileOptions:
        """Add the hidden columns; strings that repeat get a dictionary."""
        strings = [
            leaf
            for place, leaf in enumerate(shredding.leaves("string"))
            if _repeats(pc.struct_field(values, [place, "string"]).drop_null())
        ]
        return replace(
            self,
            shredding=shredding,
            statistics=(*self.statistics, *shredding.leaves(*FIELDS)),
            dictionaries=(*self.dictionaries, *strings),
            deltas=(*self.deltas, *shredding.leaves("int")),
        )

    def file_schema(self, schema: Schema) -> pa.Schema:
        """The columns of the file, hidden ones included."""
        hidden = [] if self.shredding is None else [self.shredding.field]
        hidden += [] if self.encoded is None else self.encoded.arrow_fields()
        stored = arrow_schema(schema)
        return pa.schema([*stored, *hidden]) if hidden else stored

    def tried(self, sample: pa.Table, schema: Schema) -> dict[str, str]:
        """Choose the codec of each leaf: "none" where zstd hardly shrinks an encoded sample."""
        sink = pa.BufferOutputStream()
        with self.open(sink, self.file_schema(schema)) as writer:
            writer.write_table(sample)
        group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
        chunks = [group.column(i) for i in range(group.num_columns)]
        return {
            chunk.path_in_schema: _COMPRESSION
            if chunk.total_compressed_size <= _WORTH_COMPRESSING * chunk.total_uncompressed_size
            else "none"
            for chunk in chunks
        }

    def open(self, sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
        """Open a Parquet writer for the columns of `file_schema`."""
        level: Any = _COMPRESSION_LEVEL if self.codec == _COMPRESSION else None
        if self.codecs:
            compressed = [leaf for leaf, codec in self.codecs.items() if codec == _COMPRESSION]
            level = dict.fromkeys(compressed, _COMPRESSION_LEVEL) or None
        writer = pq.ParquetWriter(
            sink,
            schema,
            compression=self.codecs or self.codec,
            compression_level=level,
            use_dictionary=list(self.dictionaries),
            column_encoding=dict.fromkeys(self.deltas, "DELTA_BINARY_PACKED"),
            write_statistics=list(self.statistics),
            write_page_index=True,
            write_page_checksum=True,
            max_rows_per_page=PAGE_ROWS,
            data_page_size=self.page_bytes,
            write_batch_size=self.batch_rows,
            bloom_filter_options=dict(self.blooms),
            sorting_columns=list(map(pq.SortingColumn, self.sorted_by)) or None,
        )
        writer.add_key_value_metadata(
            {
                "rowsieve.format": str(self.format_version),
                "rowsieve.schema": str(self.schema_id),
            }
        )
        if self.encoded is not None:
            writer.add_key_value_metadata({CODEC_KEY.decode(): self.encoded.to_text()})
        if self.shredding is not None:
            writer.add_key_value_metadata({SHREDDED_KEY.decode(): self.shredding.to_text()})
        return writer


class PartFile:
    """A Parquet file, written by whole row groups until `put`."""

    def __init__(self, schema: Schema, options: FileOptions, uploads: Uploads, path: str) -> None:
        self._uploads = uploads
        self.draft = Draft(uploads.store, path)
        self._writer = options.open(self.draft, options.file_schema(schema))
        self._blooms_per_group = len(options.blooms)
        self._leaves = options.leaves
        self._groups: list[int] = []  # row count of each row group

    def write(self, rows: pa.Table) -> None:
        """Write at most `ROW_GROUP_ROWS` rows as one row group."""
        self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        self._groups.append(rows.num_rows)

    def put(self, *, is_full: bool = False) -> FileRef:
        """Finish the file and put it; durable after `uploads.wait`.

        `is_full`: more rows would not have fit, whatever its size (see `is_full_file`).
        """
        if is_full:
            self._writer.add_key_value_metadata({_FULL_KEY.decode(): "1"})
        self._writer.add_key_value_metadata(
            blank_seals(self._groups, self._leaves, self._blooms_per_group, PAGE_ROWS)
        )
        draft, rows_end = self.draft, self.draft.size_bytes
        hashed = draft.hash_so_far()
        self._writer.close()
        start, tail = sealed_tail(draft.size_bytes, draft.read_span, PAGE_ROWS)
        draft.replace(start, tail)
        hashed.update(draft.read_span(rows_end, draft.size_bytes))
        self._uploads.publish(draft)
        return FileRef(
            path=draft.path,
            rows=sum(self._groups),
            size_bytes=draft.size_bytes,
            checksum=checksum_text(hashed),
            tail_start=start,
            tail_checksum=checksum(tail),
        )


def is_full_file(store: ObjectStore, ref: FileRef) -> bool:
    """Return whether the file ends where its decoded row group was full; reads its footer.

    Such a file may be small, because its values compress well: nothing is gained by writing its
    rows again.
    """
    return not ref.in_memory and _FULL_KEY in (read_metadata(store, ref).metadata or {})


def _bloom_of(values: pa.ChunkedArray) -> dict[str, float]:
    """The options of a Bloom filter of these values."""
    distinct_count = pc.count_distinct(values).as_py()
    return {"ndv": max(1, distinct_count), "fpp": _FALSE_POSITIVES}


def _page_limits(row_bytes: int) -> tuple[int, int]:
    """`page_bytes` and `batch_rows` for rows whose largest column has so many bytes in each.

    No page is much longer than its limit.
    """
    is_split = row_bytes * PAGE_ROWS > _PAGE_BYTES
    page_bytes = _PAGE_BYTES_OF_LARGE_ROWS if is_split else _PAGE_BYTES
    fitting = max(1, page_bytes // max(row_bytes, 1))
    return page_bytes, min(_BATCH_ROWS, fitting)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What a file may have for its columns, whatever its rows are; leaves by their paths.

    `repeating`: columns that get a dictionary where values repeat; `deltas`: those that are encoded
    by differences otherwise. `sorted_by`: the places of the key's columns.
    """

    statistics: tuple[str, ...]
    repeating: tuple[str, ...]
    deltas: tuple[str, ...]
    blooms: tuple[str, ...]
    sorted_by: tuple[int, ...]
    leaves: int


@cached_by_schema
def _allowed(schema: Schema, key: tuple[Field, ...]) -> _Allowed:
    ordered = [column for column in schema if _is_ordered(column, schema, key)]
    hashed = [column for column in ordered if not isinstance(column.type, Float | Bool)]
    deltas = [each for each in hashed if isinstance(each.type, Int | Date | Time | Timestamp)]
    return _Allowed(
        statistics=(*map(_NAME, ordered), *map(".".join, _bounded_members(schema))),
        repeating=tuple(map(_NAME, hashed)),
        deltas=tuple(map(_NAME, deltas)),
        blooms=tuple(each.name for each in key if not isinstance(each.type, Float | Bool)),
        sorted_by=tuple(map(schema.names.index, map(_NAME, key))),
        leaves=sum(map(leaf_count, arrow_schema(schema).types)),
    )


def _is_ordered(column: Field, schema: Schema, key: Sequence[Field]) -> bool:
    """Return whether a column may have statistics, a dictionary and deltas."""
    if not is_ordered(column.type) or ("." in column.name and _is_unclear(column.name, schema)):
        return False
    return column.alias is None or column in key or not is_opaque(column.alias)


def _is_unclear(name: str, schema: Schema) -> bool:
    """Return whether a column may be named like a leaf of another, which would get its settings."""
    return any(name.startswith(f"{other}.") for other in schema.names)


def _bounded_members(schema: Schema) -> Iterator[tuple[str, ...]]:
    """Yield the fields that get statistics: ordered ones, with an unambiguous path."""
    columns = frozenset(schema.names)
    for path, type_ in member_paths(schema):
        unclear = ".".join(path) in columns or any("." in step for step in path)
        if is_ordered(type_) and not unclear:
            yield path


def _repeats(values: pa.ChunkedArray) -> bool:
    """Return whether a dictionary pays; first tests an even sample: sorted rows cluster repeats."""
    if _DICTIONARY_RATIO * len(values) < 1:
        return False
    step = max(len(values) // _SAMPLE_ROWS, values.nbytes // _SAMPLE_BYTES)
    if step > 1:
        sample = _every(values, step)
        if pc.count_distinct(sample).as_py() > _DISTINCT_SAMPLE * len(sample):
            return False
    return bool(pc.count_distinct(values).as_py() <= _DICTIONARY_RATIO * len(values))


def _every(values: pa.ChunkedArray, step: int) -> pa.ChunkedArray:
    """Return each `step`-th value; `take` of all chunks would copy them into one first."""
    pieces, before = [], 0
    for chunk in values.chunks:
        pieces.append(chunk.take(pa.array(np.arange(-before % step, len(chunk), step))))
        before += len(chunk)
    return pa.chunked_array(pieces, values.type)
