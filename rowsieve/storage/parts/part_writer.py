"""Write sorted rows and tombstones into parts: immutable, self-describing Parquet files.

A part is a file of rows, a file of tombstones (key columns only), or both. Files are plain Parquet:
row groups of 65,536 rows, zstd, page index, page checksums, field ids, bloom filters on the key.

Soundness: the parts of one writer have disjoint key ranges (rule 10), and a part's bounds and
statistics cover its tombstones (trap T4). Native readers prune with the file's own statistics, so
float columns that contain NaN and items of lists and maps have none; floats have neither bloom
filters nor dictionaries (invariants 25 and 32). A file is put before anything refers to it and is
never overwritten; its name contains the version that it was based on (rule 15).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.objects import ObjectStore, Uploads
from rowsieve.parquet.codec_columns import CodecColumns
from rowsieve.parquet.shredded_columns import Shredding
from rowsieve.parquet.stored_forms import STRUCTURED_FORMAT
from rowsieve.progress_bars import ROWS_WRITTEN
from rowsieve.stats.bounds import LIMIT_BYTES
from rowsieve.stats.collect import Collecting, StatisticsCollector
from rowsieve.stats.values import without_nan
from rowsieve.storage.constraints import RowChecks
from rowsieve.storage.manifests.key_bounds import KeyBound, separated_bounds
from rowsieve.storage.manifests.manifest import FileRef, NewPart, PartEntry, PartTable
from rowsieve.storage.manifests.part_sketches import PartSketches
from rowsieve.storage.parts.clustered_rows import ClusteredRows
from rowsieve.storage.parts.file_forms import FileForms, float_paths
from rowsieve.storage.parts.memory_parts import memory_parts
from rowsieve.storage.parts.memory_rows import fits_in_memory
from rowsieve.storage.parts.part_file import (
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS,
    FileOptions,
    PartFile,
)
from rowsieve.storage.parts.tombstones import DELETED_AT, oldest_delete, tombstone_schema
from rowsieve.storage.versioned_names import data_path
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import Key, KeyOrder
from rowsieve.types.ordering.sequences import greatest
from rowsieve.types.ordering.sort_order import SortOrder
from rowsieve.types.schema import Schema

_NAME: Final = attrgetter("name")
_NBYTES: Final = attrgetter("nbytes")

__all__ = ["ROW_GROUP_ROWS", "PartWriter", "write_parts"]


class PartWriter:
    """Stream rows in key order into parts of about `target_part_bytes`.

    `write` takes rows in the schema's storage types that follow all earlier rows in key order.
    `write_deletes` takes keys in key order that differ from the keys of all rows. Calls may
    alternate. Each part's rows leave memory when the part is complete. Tombstones stay in memory
    until `finish`, which assigns each part those up to its last key, and the rest to the last part,
    so that key ranges stay disjoint. Nothing refers to the files until the returned entries are
    committed.

    Rows of a table without a key may come in any order: the property `cluster_by` sorts them in
    runs. With `sorted_by` they come in that order already. Parts record the order of their rows.
    Bounds of keys are truncated to `bound_bytes`, but longer where parts would seem to overlap.
    Parts get sketches of the columns `sketched`: those that the rewritten ones have. With
    `sequence`, the columns of an event order, tombstones have these too, and parts the greatest
    sequence. `checked`: the rows were read from the table, so they need not be checked by its
    constraints again.
    """

    def __init__(
        self,
        store: ObjectStore,
        schema: Schema,
        key: Sequence[Field],
        properties: Mapping[str, str],
        base_version: int,
        collecting: Collecting | None = None,
        uploads: Uploads | None = None,
        sorted_by: SortOrder | None = None,
        bound_bytes: int = LIMIT_BYTES,
        sketched: Iterable[Field] = (),
        sequence: Sequence[Field] = (),
        *,
        checked: bool = False,
    ) -> None:
        self._forms = forms = FileForms.of(properties, schema, key, sequence)
        must_check = forms.has_checks and not checked
        self._checks = RowChecks(properties, schema, key) if must_check else None
        self._sketched = tuple(sketched)
        self._bound_bytes = bound_bytes
        must_sort = forms.is_clustered and sorted_by is None
        self._clustered = ClusteredRows.of(properties, schema, key) if must_sort else None
        order = sorted_by if self._clustered is None else self._clustered.order
        self._sort_order = None if order is None else order.to_text(schema)
        self._uploads = Uploads(store) if uploads is None else uploads
        self._waits = uploads is None
        self._schema = schema
        self._key = tuple(key)
        self._key_names = list(map(_NAME, self._key))
        self._order = KeyOrder(self._key) if self._key else None
        self._sequence = KeyOrder(tuple(sequence)) if sequence else None
        self._base_version = base_version
        self._collecting = Collecting() if collecting is None else collecting
        self._collector = partial(
            StatisticsCollector, forms.collected, forms.statistics, self._collecting
        )
        self._nan_columns: frozenset[str] = frozenset()  # by their names in files
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = self._run_count = 0
        self._open: _OpenPart | None = None
        self._finished: list[_FinishedRows] = []
        self._deletes: list[pa.Table] = []

    def write(self, rows: Any) -> None:
        """Add rows (a table or a batch) that follow all rows added so far."""
        if not rows.num_rows:
            return
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._collecting.metrics.arrow_bytes += table.nbytes
        if self._checks is not None:
            self._checks.check(table)
        if self._clustered is None:
            self._add(table)
            return
        self._clustered.add(table)
        if self._clustered.is_full:
            self._write_run()

    def forget_order(self) -> None:
        """Record no order for the parts: the rows were changed after they were sorted."""
        self._sort_order = None

    def _write_run(self) -> None:
        """Write the run of clustered rows, with row groups of its own."""
        assert self._clustered is not None
        if (rows := self._clustered.take()) is not None:
            self._add(rows)
            self._flush(everything=True)
            self._run_count += 1

    def _add(self, table: pa.Table) -> None:
        if self._forms.floats:
            self._note_nan(self._forms.rows(table))
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self._pending_bytes += _varying_bytes(table)
        if self._pending_rows >= ROW_GROUP_ROWS or self._pending_bytes >= ROW_GROUP_BYTES:
            self._flush(everything=False)

    def write_deletes(self, keys: Any) -> None:
        """Add tombstones: keys of deleted rows in key order, see `tombstone_schema`."""
        if keys.num_rows:
            table = pa.Table.from_batches([keys]) if isinstance(keys, pa.RecordBatch) else keys
            deletes = table.select(self._delete_schema(keys).names)
            self._collecting.metrics.arrow_bytes += deletes.nbytes
            self._deletes.append(deletes)

    def finish(self) -> PartTable:
        """Put the remaining rows and tombstones; return the manifest entries in key order.

        The files are durable, unless `uploads` was given: then its owner waits for them.
        """
        if self._clustered is not None:
            self._write_run()
        self._flush(everything=True)
        self._close()
        rows: list[_FinishedRows | None] = [*self._finished]
        deletes: list[pa.Table | None] = [None] * len(rows)
        if self._deletes and self._order is not None:
            deletes = self._split_deletes(self._order)
            rows = rows or [None]
        ends = list(map(self._ends, rows, deletes))
        bounds = separated_bounds(self._key, ends, self._bound_bytes)
        parts = list(map(self._part, rows, deletes, bounds))
        if self._waits:
            self._uploads.wait()
        if not parts:
            return PartTable.empty()
        self._collecting.metrics.parts_written += len(parts)
        sequence = () if self._sequence is None else self._sequence.fields
        return PartTable.of(parts, self._schema, self._key, sequence)

    def _note_nan(self, table: pa.Table) -> None:
        """Start a new file at the first NaN of a column: an open file's settings are fixed."""
        seen = _nan_columns(self._forms.floats, table)
        if not seen <= self._nan_columns:
            self._flush(everything=True)
            self._close()
            self._nan_columns |= seen

    def _flush(self, *, everything: bool) -> None:
        if not self._pending_rows:
            return
        rows = pa.concat_tables(self._pending) if len(self._pending) > 1 else self._pending[0]
        rest = rows
        while rest.num_rows:
            group = rest.slice(0, ROW_GROUP_ROWS)
            if self._pending_bytes > ROW_GROUP_BYTES:
                group = _within_bytes(group)
            is_cut = group.num_rows < min(rest.num_rows, ROW_GROUP_ROWS)
            if not (everything or is_cut or group.num_rows == ROW_GROUP_ROWS):
                break
            self._write_row_group(group)
            if is_cut:  # only the last row group of a file may be shorter than the others
                self._close(is_full=True)
            rest = rest.slice(group.num_rows)
        self._pending = [rest] if rest.num_rows else []
        self._pending_rows, self._pending_bytes = rest.num_rows, _varying_bytes(rest)

    def _write_row_group(self, rows: pa.Table) -> None:
        forms = self._forms
        stored, shredding, codec = (rows, None, None) if forms.is_plain else forms.row_group(rows)
        if self._open is None:
            self._open = self._begun(rows, stored, shredding, codec)
        self._open.in_one_run &= self._open.run == self._run_count
        self._open.file.write(stored)
        self._open.statistics.add(rows)
        if self._open.sketches is not None:
            self._open.sketches.add(rows)
        if self._sequence is not None:
            self._open.upper = _raised(self._open.upper, rows, self._sequence)
        self._open.last = self._end(rows, rows.num_rows - 1)
        if codec is not None:
            self._count_forms(self._open, stored, codec)
        if self._open.limited_bytes >= self._forms.target_bytes:
            self._close()

    def _begun(
        self,
        rows: pa.Table,
        stored: pa.Table,
        shredding: Shredding | None,
        codec: CodecColumns | None,
    ) -> _OpenPart:
        """A part whose first row group has these rows."""
        forms, first = self._forms, self._end(rows, 0)
        options = FileOptions.choose(
            forms.schema, forms.key, stored, self._nan_columns, shredding, codec
        )
        options = replace(options, format_version=forms.format_version)
        part_id = uuid.uuid4().hex
        path = data_path(self._uploads.store, self._base_version, "parquet", part_id)
        file = PartFile(forms.schema, options, self._uploads, path)
        sketches = PartSketches(self._sketched) if self._sketched else None
        return _OpenPart(part_id, file, self._collector(), sketches, first, first, self._run_count)

    def _count_forms(self, part: _OpenPart, stored: pa.Table, codec: CodecColumns) -> None:
        """Count the bytes of both forms of a row group."""
        codec_bytes = int(stored.select(list(codec.columns)).nbytes)
        column_bytes = int(stored.nbytes) - codec_bytes
        part.codec_bytes += codec_bytes
        part.column_bytes += column_bytes
        self._collecting.metrics.codec_bytes += codec_bytes
        self._collecting.metrics.column_bytes += column_bytes

    def _close(self, *, is_full: bool = False) -> None:
        if self._open is None:
            return
        ref = replace(self._open.file.put(is_full=is_full), encoding=self._forms.encoding)
        ends = (self._open.first, self._open.last)
        self._count(ref)
        self._finished.append(
            _FinishedRows(
                self._open.part_id,
                ref,
                self._open.statistics,
                {} if self._open.sketches is None else self._open.sketches.finish(),
                ends,
                self._sort_order if self._open.in_one_run else None,
                self._open.upper,
            )
        )
        self._open = None

    def _end(self, rows: pa.Table, index: int) -> pa.Table:
        """Copy the key of one row, so that it does not keep the row group in memory."""
        return rows.select(self._key_names).take([index])

    def _split_deletes(self, order: KeyOrder) -> list[pa.Table | None]:
        """Split tombstones by part: each takes those up to its last key, the last one the rest."""
        keys = pa.concat_tables(self._deletes)
        forms = order.columns(keys)
        cuts = [forms.count_up_to(self._key_of(part.ends[1])) for part in self._finished[:-1]]
        pieces = [
            keys.slice(start, stop - start) for start, stop in pairwise([0, *cuts, keys.num_rows])
        ]
        return [piece if piece.num_rows else None for piece in pieces]

    def _ends(
        self, rows: _FinishedRows | None, deletes: pa.Table | None
    ) -> tuple[pa.Table, pa.Table]:
        """The first and the last key of a part, its tombstones included."""
        ends = [rows.ends] if rows else []
        if deletes is None:
            return ends[0]
        ends.append((self._end(deletes, 0), self._end(deletes, deletes.num_rows - 1)))
        first, last = zip(*ends, strict=True)
        return min(first, key=self._key_of), max(last, key=self._key_of)

    def _part(
        self,
        rows: _FinishedRows | None,
        deletes: pa.Table | None,
        bounds: tuple[KeyBound, KeyBound],
    ) -> NewPart:
        part_id = rows.part_id if rows else uuid.uuid4().hex
        statistics = rows.statistics if rows else self._collector()
        ref = None
        if deletes is not None:
            ref = self._put_deletes(part_id, deletes)
            statistics.add_tombstones(deletes.select(self._key_names))
        entry = PartEntry(
            part_id=part_id,
            base_version=self._base_version,
            schema_id=self._schema.id,
            native_safe=self._forms.format_version == STRUCTURED_FORMAT,
            data=rows.ref if rows else None,
            deletes=ref,
            format_version=self._forms.format_version if rows else STRUCTURED_FORMAT,
            sort_order=rows.sort_order if rows else None,
            key_lower=bounds[0],
            key_upper=bounds[1],
        )
        sketches = rows.sketches if rows else {}
        if self._sequence is None:
            return NewPart(entry, statistics.finish(), sketches)
        greatest_row = _raised(rows.upper if rows else None, deletes, self._sequence)
        assert greatest_row is not None
        upper = tuple(greatest_row.column(name)[0] for name in self._sequence.names)
        return NewPart(entry, statistics.finish(), sketches, upper, oldest_delete(deletes))

    def _put_deletes(self, part_id: str, keys: pa.Table) -> FileRef:
        columns = self._delete_schema(keys)
        schema, keys = self._forms.named_schema(columns), self._forms.named(keys, columns)
        key = self._forms.key
        nan_columns = _nan_columns(float_paths(schema), keys)
        options = FileOptions.choose(schema, key, keys, nan_columns)
        path = data_path(self._uploads.store, self._base_version, "deletes.parquet", part_id)
        file = PartFile(schema, options, self._uploads, path)
        while keys.num_rows:
            group = _within_bytes(keys.slice(0, ROW_GROUP_ROWS))
            file.write(group)
            keys = keys.slice(group.num_rows)
        ref = file.put()
        self._count(ref)
        return ref

    def _delete_schema(self, keys: Any) -> Schema:
        sequence = () if self._sequence is None else self._sequence.fields
        dated = DELETED_AT.name in keys.schema.names
        return tombstone_schema(self._schema, self._key, sequence, dated=dated)

    def _count(self, ref: FileRef) -> None:
        """Add a written file to the metrics."""
        metrics = self._collecting.metrics
        metrics.rows_written += ref.rows
        metrics.bytes_written += ref.size_bytes

    def _key_of(self, row: pa.Table) -> Key:
        return self._order.columns(row).key(0) if self._order else ()


def write_parts(
    store: ObjectStore,
    schema: Schema,
    key: Sequence[Field],
    rows: pa.Table | None,
    deletes: pa.Table | None,
    *,
    base_version: int,
    properties: Mapping[str, str],
    collecting: Collecting | None = None,
    uploads: Uploads | None = None,
    sequence: Sequence[Field] = (),
    in_memory_up_to: int = 0,
) -> PartTable:
    """Write in-memory rows and tombstones, both in key order and with disjoint keys.

    A change of at most `in_memory_up_to` bytes is in the entries themselves, and its commit stores
    them; one of columns that are nested too deep for that has files. The files of a larger one are
    durable when this returns, unless `uploads` is given: then its owner waits.
    """
    size_bytes = sum(map(_NBYTES, filter(None, (rows, deletes))))
    if size_bytes <= in_memory_up_to and in_memory_up_to and fits_in_memory(schema):
        return memory_parts(
            schema,
            key,
            rows,
            deletes,
            base_version=base_version,
            properties=properties,
            sequence=sequence,
            collecting=collecting,
        )
    writer = PartWriter(
        store, schema, key, properties, base_version, collecting, uploads, sequence=sequence
    )
    if (show := ROWS_WRITTEN.get()) is not None:
        _write_shown(writer, rows, deletes, show)
        return writer.finish()
    if rows is not None:
        writer.write(rows)
    if deletes is not None:
        writer.write_deletes(deletes)
    return writer.finish()


def _write_shown(
    writer: PartWriter,
    rows: pa.Table | None,
    deletes: pa.Table | None,
    show: Callable[[int, int], None],
) -> None:
    """Write rows by row groups; `show` gets the number written so far, and that of all."""
    total = sum(each.num_rows for each in (rows, deletes) if each is not None)
    if rows is not None:
        for start in range(0, rows.num_rows, ROW_GROUP_ROWS):
            writer.write(rows.slice(start, ROW_GROUP_ROWS))
            show(min(start + ROW_GROUP_ROWS, rows.num_rows), total)
    if deletes is not None:
        writer.write_deletes(deletes)
        show(total, total)


@dataclass(slots=True)
class _OpenPart:
    """A part being written; `first` and `last` are its first and last key so far.

    `run` is the run of its first row; rows of several runs together have no order.
    """

    part_id: str
    file: PartFile
    statistics: StatisticsCollector
    sketches: PartSketches | None
    first: pa.Table
    last: pa.Table
    run: int
    in_one_run: bool = True
    upper: pa.Table | None = None
    codec_bytes: int = 0
    column_bytes: int = 0

    @property
    def limited_bytes(self) -> int:
        """The stored bytes that a target limits: of two forms of rows, about those of the codec."""
        share = 1.0
        if self.codec_bytes:
            share = self.codec_bytes / (self.codec_bytes + self.column_bytes)
        return int(self.file.draft.size_bytes * share)


@dataclass(frozen=True, slots=True)
class _FinishedRows:
    """The rows of a part, already put; its tombstones are not assigned yet."""

    part_id: str
    ref: FileRef
    statistics: StatisticsCollector
    sketches: Mapping[str, bytes]
    ends: tuple[pa.Table, pa.Table]
    sort_order: str | None
    upper: pa.Table | None = None


def _raised(upper: pa.Table | None, rows: pa.Table | None, sequence: KeyOrder) -> pa.Table | None:
    """The greatest sequence so far, and of these rows or tombstones."""
    if rows is None:
        return upper
    ours = greatest(rows, sequence)
    return ours if upper is None else greatest(pa.concat_tables([upper, ours]), sequence)


def _nan_columns(floats: Iterable[tuple[str, ...]], rows: pa.Table) -> frozenset[str]:
    """Return the columns, and members of structs by path, that contain NaN among these paths."""
    paths: list[str] = []
    for path in floats:
        values = rows.column(path[0])
        for step in path[1:]:
            values = pc.struct_field(values, [step])
        if without_nan(values)[1]:
            paths.append(".".join(path))
    return frozenset(paths)


def _varying_bytes(rows: pa.Table) -> int:
    """The bytes of the columns whose values have no fixed width."""
    size_bytes = 0
    for column in rows.columns:
        if not (pa.types.is_primitive(column.type) or pa.types.is_fixed_size_binary(column.type)):
            size_bytes += int(column.nbytes)
    return size_bytes


def _within_bytes(rows: pa.Table) -> pa.Table:
    """The first rows, as many as have at most `ROW_GROUP_BYTES` of varying width; at least one."""
    while rows.num_rows > 1 and (size_bytes := _varying_bytes(rows)) > ROW_GROUP_BYTES:
        share = rows.num_rows * ROW_GROUP_BYTES // size_bytes
        rows = rows.slice(0, max(1, min(share, rows.num_rows - 1)))
    return rows
