"""Reads one part: its rows, the keys of its tombstones, and the rows that pruning keeps.

Reads one row group (65,536 rows) at a time: only the requested columns, and only the pages with a
wanted row where these are few.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.config import DEFAULT
from rowsieve.executor.codec_file import CodecFile
from rowsieve.executor.decode_row_group import RowGroup, as_stored, in_slices
from rowsieve.executor.generated_keys import generated_keys, generates
from rowsieve.executor.memory_file import MemoryFile
from rowsieve.executor.merging.windows import Numbered
from rowsieve.executor.open_file import OpenFile
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore, Place
from rowsieve.parquet.footer import read_metadata
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.leaf_columns import names_by_id
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics
from rowsieve.planner.candidates import Candidates, find_candidates
from rowsieve.planner.split import ContiguousKeys, PlannedPart
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.ir import BoundColumn
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.deletion_vectors import read_deletion_vector
from rowsieve.storage.parts.memory_rows import read_memory
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.parts.reading_views import check_readable, needs_codec
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.ordering.keys import Key, KeyOrder, sort_form
from rowsieve.types.schema import Schema

_SAMPLED_GROUPS = 8  # row groups of a file used to estimate the decoded size of a row group
_MAX_SIZES = 16  # sets of columns of a file whose sizes are kept
_NOTHING = Candidates(RowSet.empty(0))  # of a file that a part lacks


class PartSource:
    """One part, read through one store; `schema` is the table's.

    `memory_bytes`, that of the whole read, decides which row groups are decoded in slices.
    """

    __slots__ = (
        "_known", "_memory_bytes", "_mostly_match", "_schema", "_store", "_undeleted", "metrics",
        "part",
    )  # fmt: skip

    def __init__(
        self,
        store: ObjectStore,
        part: PlannedPart,
        schema: Schema,
        metrics: ScanMetrics | None = None,
        memory_bytes: int = DEFAULT.memory_bytes,
    ) -> None:
        self.part = part
        self._memory_bytes = memory_bytes
        self._known: dict[tuple[str, frozenset[int] | None], tuple[BoundPredicate, Candidates]] = {}
        self._undeleted: RowSet | None = None  # once its vector was read
        self._mostly_match = False  # the hint of `RowGroup`, once candidates are known
        self._store = store
        self._schema = schema
        self.metrics = ScanMetrics() if metrics is None else metrics

    @property
    def row_count(self) -> int:
        """Rows of the file, hidden rows included."""
        return self.part.row_count

    @property
    def tombstone_count(self) -> int:
        """The number of deleted keys."""
        return self.part.tombstone_count

    def undeleted_rows(self) -> RowSet | None:
        """The rows that the deletion vector does not hide; None without a deletion vector."""
        if self.part.dv is None:
            return None
        if self._undeleted is None:
            hidden = read_deletion_vector(self._store, self.part.dv, self.row_count)
            self._undeleted = hidden.complement()
        return self._undeleted

    def columns_of(self, predicate: BoundPredicate) -> Schema:
        """The columns that the predicate reads."""
        return self._schema.select(tuple(column.name for column in predicate.columns))

    def rows(
        self,
        columns: Schema,
        wanted: RowSet | None = None,
        batch_rows: int = ROW_GROUP_ROWS,
        *,
        cast: Schema | None = None,
    ) -> Iterator[Numbered]:
        """All rows of each page or row group with a wanted row, in file order.

        Batches have at most `batch_rows` rows and storage types; with `cast`, only the columns
        named there are cast to storage types.
        """
        if (keys := self._generated(columns)) is not None:
            return generated_keys(keys, columns, self.row_count, wanted, batch_rows)
        stored = columns if cast is None else cast
        return _decoded(self.row_groups(columns, wanted, batch_rows), columns, stored, batch_rows)

    def tombstones(
        self, key: Schema, wanted: RowSet | None = None, batch_rows: int = ROW_GROUP_ROWS
    ) -> Iterator[Numbered]:
        """The deleted keys in key order, of each page or row group with a wanted tombstone."""
        groups = self.row_groups(key, wanted, batch_rows, deletes=True)
        return _decoded(groups, key, key, batch_rows)

    def rows_ahead(self, columns: Schema, wanted: RowSet | None) -> Iterator[Numbered]:
        """`rows`, whose byte ranges are announced before this returns, where the store prefetches.

        The file is opened once, so that its footer stays in memory until the rows are read.
        """
        row_groups = self.row_groups(columns, wanted)
        groups = list(row_groups) if self._store.overlaps else row_groups
        if isinstance(groups, list):
            for group in groups:
                self._store.expect(group.places_of_runs(columns))
        return _decoded(iter(groups), columns, columns, ROW_GROUP_ROWS)

    def places(
        self, columns: Schema, wanted: RowSet | None, *, deletes: bool = False
    ) -> Iterator[Iterator[Place]]:
        """The byte ranges that `rows` or `tombstones` request from the store, by row group."""
        if not deletes and self._generated(columns) is not None:
            return iter(())
        groups = self.row_groups(columns, wanted, deletes=deletes)
        return (group.places_of_runs(columns) for group in groups)

    def key_bounds(self, order: KeyOrder, *, deletes: bool = False) -> tuple[Key, Key] | None:
        """Bounds of the first key column of the rows or tombstones; None if unknown."""
        ref = self.part.deletes if deletes else self.part.data
        if ref is None:
            return None
        if not deletes and (keys := self.part.contiguous) is not None:
            return (keys.first,), (keys.first + self.row_count - 1,)
        if ref.in_memory:  # sorted by key
            first = read_memory(ref).column(order.fields[0])
            assert isinstance(first, pa.ChunkedArray)
            forms = sort_form(first.take(pa.array([0, ref.rows - 1])), order.fields[0].type)
            return (forms[0].as_py(),), (forms[1].as_py(),)
        field = order.fields[0]
        statistics = RowGroupStatistics(read_metadata(self._store, ref), self._schema, {field.id})
        known = statistics.column(BoundColumn(field.id, field.name, field.type))
        if known is None or known.lower.null_count or known.upper.null_count:
            return None
        lower, upper = sort_form(known.lower, field.type), sort_form(known.upper, field.type)
        return (lower[0].as_py(),), (upper[-1].as_py(),)

    def largest_batch(self, columns: Schema, *, deletes: bool = False) -> tuple[int, int]:
        """Row count and estimated decoded bytes of the largest row group; from the footer."""
        ref = self.part.deletes if deletes else self.part.data
        if ref is None:
            return 0, 0
        if ref.in_memory:
            return min(ref.rows, ROW_GROUP_ROWS), ref.size_bytes
        if not deletes and self._generated(columns) is not None:
            rows = min(ref.rows, ROW_GROUP_ROWS)
            return rows, rows * arrow_schema(columns).types[0].byte_width
        metadata = read_metadata(self._store, ref)
        known = _largest_batches(metadata)
        if (size := known.get(columns)) is None:
            if len(known) >= _MAX_SIZES:
                known.clear()
            size = known[columns] = _largest_batch(metadata, columns)
        return size

    def row_groups(
        self,
        columns: Schema,
        wanted: RowSet | None = None,
        batch_rows: int = ROW_GROUP_ROWS,
        *,
        deletes: bool = False,
    ) -> Iterator[RowGroup]:
        """The row groups with a wanted row or tombstone, in file order, to read these columns.

        Large row groups are cut into slices of at most `batch_rows`.
        """
        ref = self.part.deletes if deletes else self.part.data
        if ref is None or (wanted is not None and wanted.is_empty):
            return
        file = self._opened(ref)
        first, last = (0, ref.rows) if wanted is None else wanted.span
        starts = file.starts
        for number in range(bisect_right(starts, first) - 1, bisect_left(starts, last)):
            whole = self._row_group(file, number, starts[number], starts[number + 1], wanted)
            if whole is None:
                continue
            if whole.page_rows:
                yield whole
                continue
            cuts = file.cuts(number, batch_rows, columns, self._memory_bytes)
            if len(cuts) == 1:
                yield whole
                continue
            for start, stop in cuts:
                if (part := self._row_group(file, number, start, stop, wanted)) is not None:
                    yield replace(part, group_start=starts[number])

    def _generated(self, columns: Schema) -> ContiguousKeys | None:
        """The keys of the part, if these columns are nothing else, and no file needs to be read."""
        keys = self.part.contiguous
        return keys if generates(keys, columns) else None

    def _opened(self, ref: FileRef) -> OpenFile | MemoryFile:
        """Open a file, or a part in memory; UnsupportedOperation if it cannot be read as asked."""
        age = self.part.commit_ts
        if ref.in_memory:
            return MemoryFile(ref, age)
        if ref.encoding is not None:
            check_readable(ref)
        if ref.encoding is not None and needs_codec(ref):
            return CodecFile(self._store, ref, age, self.metrics)
        return OpenFile(self._store, ref, age)

    def _row_group(
        self,
        file: OpenFile | MemoryFile,
        number: int,
        start: int,
        stop: int,
        wanted: RowSet | None,
    ) -> RowGroup | None:
        """Rows [start, stop) of a file; None if none of them is wanted."""
        here = None if wanted is None else wanted.slice(start, stop)
        if start >= stop if here is None else here.is_empty:
            return None
        return RowGroup(
            self.part.part_id, file, number, start, stop - start, here, self.metrics,
            self._mostly_match,
        )  # fmt: skip


def candidates_of(
    sources: Sequence[PartSource],
    predicate: BoundPredicate,
    only: frozenset[int] | None = None,
    *,
    tombstones: bool = False,
) -> list[tuple[Candidates, Candidates]]:
    """The candidate tombstones and rows of each part, in one interpretation.

    `only`: the ids of the columns that may prune. While other parts may have newer versions, these
    are the key columns (trap T1). Unless `tombstones`, those are not asked for. Calls for the same
    predicate return the same results.
    """
    if only is not None and only.issuperset([each.field_id for each in predicate.columns]):
        only = None
    fresh: list[tuple[PartSource, FileRef]] = []
    for source in sources:
        for ref in (source.part.data, source.part.deletes if tombstones else None):
            if ref is not None:
                known = source._known.get((ref.path, only))
                if known is None or known[0] is not predicate:
                    fresh.append((source, ref))
    if fresh:
        owners, refs = zip(*fresh, strict=True)
        new = find_candidates(owners[0]._store, refs, predicate, owners[0]._schema, only)
        for (source, ref), each in zip(fresh, new, strict=True):
            refuted = each.by_statistics + each.by_bloom
            source.metrics.note_pruned(each.row_groups, refuted, each.pages, each.by_page_index)
            source._known[ref.path, only] = (predicate, each)
            if only is None and ref is source.part.data:
                source._mostly_match = each.mostly_match
    both = []
    for source in sources:
        data, deletes = source.part.data, source.part.deletes if tombstones else None
        deleted = _NOTHING if deletes is None else source._known[deletes.path, only][1]
        rows = _NOTHING if data is None else source._known[data.path, only][1]
        both.append((deleted, rows))
    return both


def _decoded(
    groups: Iterator[RowGroup], columns: Schema, stored: Schema, batch_rows: int
) -> Iterator[Numbered]:
    target = arrow_schema(stored)
    for group in groups:
        for first, read in group.runs(columns):
            for start, batch in in_slices(read, batch_rows):
                yield group.start + first + start, as_stored(batch, target)


@cached_per_footer
def _largest_batches(_: pq.FileMetaData) -> dict[Schema, tuple[int, int]]:
    """The sizes of the largest row group of a file, by columns."""
    return {}


def _largest_batch(metadata: pq.FileMetaData, columns: Schema) -> tuple[int, int]:
    count = metadata.num_row_groups
    some = range(0, count, max(1, count // _SAMPLED_GROUPS))
    names = names_by_id(metadata)
    return max(
        (_decoded_size(metadata.row_group(i), columns, names) for i in some),
        key=lambda size: size[1],
        default=(0, 0),
    )


def _decoded_size(group: Any, columns: Schema, names: Mapping[int, str]) -> tuple[int, int]:
    """Rows and bytes; the size of variable-width columns is estimated from their stored size.

    `names` are the names in the file, by field id; other columns have their fill default.
    """
    schema = arrow_schema(columns)
    rows = int(group.num_rows)
    fixed = sum(int(field.type.bit_width) for field in schema if _is_fixed(field.type))
    both = zip(columns, schema, strict=True)
    varying = [column for column, field in both if not _is_fixed(field.type)]
    size_bytes = fixed // 8 * rows
    if varying:
        stored = frozenset(names[column.id] for column in varying if column.id in names)
        encoded = sum(chunk.total_uncompressed_size for chunk in _chunks(group, stored))
        filled = [column.fill or "" for column in varying if column.id not in names]
        size_bytes += rows * sum(len(fill.encode()) for fill in filled)
        size_bytes += 8 * rows * len(varying) + 2 * int(encoded)
    return rows, size_bytes


def _is_fixed(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) or pa.types.is_fixed_size_binary(type_))


def _chunks(group: Any, names: frozenset[str]) -> Iterator[Any]:
    columns = (group.column(i) for i in range(group.num_columns))
    return (
        column
        for column in columns
        if column.path_in_schema.split(".", 1)[0] in names or column.path_in_schema in names
    )
