"""Builds the parts of foreign files: column mappings, and statistics of whole files.

The statistics of all row groups of all files are decoded together, column by column, and joined by
file. Soundness: that of `rowsieve.parquet.statistics.foreign_statistics`; a file has a bound only
if each of its row groups has one, or only NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowsieve.foreign.footers import Footer
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.parquet.file_mapping import FileMapping
from rowsieve.parquet.leaf_columns import FileColumn, leaves_by_name
from rowsieve.parquet.statistics.footer_statistics import (
    ChunkStatistics,
    Leaf,
    leaves_in,
    row_group_statistics,
    value_in,
)
from rowsieve.parquet.statistics.foreign_statistics import foreign_column
from rowsieve.parquet.statistics.stored_bounds import StoredBounds
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.manifests.manifest import DeletionVectorRef, FileRef, PartTable, placed_parts
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_type
from rowsieve.types.schema import Schema, schema_to_json
from rowsieve.types.stored_defaults import constant, is_nan

Counts = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Chunks:
    """Statistics of one column of files of one physical form: lists by row group."""

    column: FileColumn
    leaf: Leaf
    file: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    bounded: list[bool] = field(default_factory=list)
    lower: list[Any] = field(default_factory=list)
    upper: list[Any] = field(default_factory=list)

    def add(self, file: int, rows: int, found: ChunkStatistics) -> None:
        """Add the statistics of one row group."""
        self.file.append(file)
        self.rows.append(rows)
        self.nulls.append(-1 if found.nulls is None else found.nulls)
        self.bounded.append(found.lower is not None)
        self.lower.append(None if found.lower is None else value_in(found.lower, self.leaf))
        self.upper.append(None if found.upper is None else value_in(found.upper, self.leaf))

    def stored(self) -> StoredBounds:
        """Return all statistics in the form that `foreign_column` takes."""
        rows, nulls = np.array(self.rows, np.int64), np.array(self.nulls, np.int64)
        return StoredBounds(rows, nulls, np.array(self.bounded, np.bool_), self.lower, self.upper)


def parts_of(
    footers: Sequence[Footer],
    joined: JoinedColumns,
    partitions: Partitions,
    *,
    vectors: Mapping[str, DeletionVectorRef] | None = None,
    instants: bool = False,
    base_version: int = 0,
) -> PartTable:
    """Return a part per file that has rows, in the order of the files.

    `vectors`: deletion vectors by URI. `instants`: that of `FileMapping`. `base_version`: the
    version of the table that the parts are added to.
    """
    refs = _file_refs(footers, joined, partitions, instants=instants)
    some = [i for i, ref in enumerate(refs) if ref.rows]
    statistics = statistics_of([footers[i] for i in some], joined)
    rows = [partitions.values[i] for i in some]
    counts = np.array([refs[i].rows for i in some], np.int64)
    for column, name, values in _of_constants(joined.schema, partitions, rows, counts):
        here = np.array([column.name in row for row in rows], np.bool_)
        others = statistics.get(name, pa.nulls(len(rows), values.type))
        statistics[name] = pc.if_else(pa.array(here), values, others)
    placed = [refs[i] for i in some]
    hidden = [(vectors or {}).get(ref.path) for ref in placed]
    return placed_parts(placed, statistics, joined.schema.id, hidden, base_version)


def _file_refs(
    footers: Sequence[Footer], joined: JoinedColumns, partitions: Partitions, *, instants: bool
) -> list[FileRef]:
    """Return a reference to each file, with the mapping of its columns."""
    ids = {column.name: column.id for column in joined.schema}
    refs: list[FileRef] = []
    nested: dict[int, dict[str, Any] | None] = {}
    for footer, values in zip(footers, partitions.values, strict=True):
        constants = {ids[name]: value for name, value in values.items() if name in ids}
        shape = id(footer.schema)
        if shape not in nested:
            with_fields = joined.nested_in(footer)
            nested[shape] = schema_to_json(with_fields) if with_fields.fields else None
        mapping = FileMapping(
            joined.names_of(footer), constants, joined.schema.id, nested[shape], instants
        )
        refs.append(
            FileRef(
                footer.uri,
                int(footer.metadata.num_rows),
                footer.size_bytes,
                "",
                footer.tail_start,
                footer.tail_checksum,
                mapping.to_text(),
            )
        )
    return refs


def statistics_of(footers: Sequence[Footer], joined: JoinedColumns) -> dict[str, pa.Array]:
    """Return the columns of the manifest with the statistics of these files."""
    found: dict[str, pa.Array] = {}
    gathered = _gathered(footers, joined)
    for column in joined.schema:
        if not logical.is_ordered(column.type):
            continue
        chunks = [each for (field_id, *_), each in gathered.items() if field_id == column.id]
        counts = np.array([footer.metadata.num_rows for footer in footers], np.int64)
        held = [column.id in joined.names_of(footer) for footer in footers]
        found.update(_of_column(column, chunks, counts, np.array(held, np.bool_)))
    return found


def _gathered(footers: Sequence[Footer], joined: JoinedColumns) -> Mapping[Any, _Chunks]:
    """The statistics of flat columns, by field id and physical form."""
    found: dict[Any, _Chunks] = {}
    known: dict[int, list[tuple[int, FileColumn]]] = {}
    for number, footer in enumerate(footers):
        metadata = footer.metadata
        shape = id(footer.schema)
        if (columns := known.get(shape)) is None:
            columns = known[shape] = list(_flat_columns(footer, metadata, joined))
        targets = []
        leaves = leaves_in(footer.data) if columns else []
        for field_id, column in columns:
            leaf = leaves[column.index]
            key = field_id, column.physical, column.type, column.width, leaf
            if (chunks := found.get(key)) is None:
                chunks = found[key] = _Chunks(column, leaf)
            targets.append((column.index, chunks))
        for rows, statistics in row_group_statistics(footer.data, leaves) if columns else ():
            for index, chunks in targets:
                chunks.add(number, rows, statistics[index])
    return found


def _flat_columns(
    footer: Footer, metadata: pq.FileMetaData, joined: JoinedColumns
) -> Iterator[tuple[int, FileColumn]]:
    leaves = leaves_by_name(footer.schema)
    types = {column.id: column.type for column in joined.schema}
    for field_id, name in joined.names_of(footer).items():
        if logical.is_ordered(types[field_id]) and len(leaves[name]) == 1:
            leaf = metadata.schema.column(leaves[name][0])
            type_ = footer.schema.field(name).type
            if leaf.path == name and not type_.num_fields:
                physical, width = str(leaf.physical_type), int(leaf.length)
                yield field_id, FileColumn(leaves[name][0], name, type_, physical, width)


def _of_column(
    column: logical.Field, chunks: Sequence[_Chunks], counts: Counts, held: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, pa.Array]]:
    """The facts of one column: joined over the row groups of each file; NULL means unknown."""
    count = len(counts)
    nulls = np.where(held, np.int64(-1), counts)  # a column that a file lacks is NULL
    type_ = arrow_type(column.type)
    bounds = {"lower": pa.nulls(count, type_), "upper": pa.nulls(count, type_)}
    for each in chunks:
        stored = each.stored()
        known = foreign_column(stored, each.column, column.type)
        files = np.array(each.file, np.int64)
        sane = (stored.nulls >= 0) & (stored.nulls <= stored.rows)
        unsure = np.bincount(files[~sane], minlength=count) > 0
        summed = np.bincount(files, weights=np.where(sane, stored.nulls, 0), minlength=count)
        here = np.zeros(count, np.bool_)
        here[files] = True
        nulls = np.where(here, np.where(unsure, np.int64(-1), summed.astype(np.int64)), nulls)
        for side, values, least in (
            ("lower", known.lower, "min"),
            ("upper", known.upper, "max"),
        ):
            open_ = np.asarray(values.is_null()) & ~known.empty & (stored.rows > 0)
            file_bounds = _by_file(files, values, least, open_, count)
            bounds[side] = pc.if_else(pa.array(here), file_bounds, bounds[side])
    yield statistics_name(column.id, "null_count"), pa.array(nulls, mask=nulls < 0)
    if isinstance(column.type, logical.Float):
        yield statistics_name(column.id, "nan_count"), pa.nulls(count, pa.int64())
    for side, values in bounds.items():
        yield statistics_name(column.id, side), values
        yield statistics_name(column.id, f"{side}_exact"), pa.array(np.zeros(count, np.bool_))


def _by_file(
    files: Counts, values: pa.Array, least: str, open_: npt.NDArray[np.bool_], count: int
) -> pa.Array:
    """(count,) the least or greatest value of each file; NULL where a row group is unbounded."""
    unbounded = np.bincount(files[open_], minlength=count) > 0
    grouped = _grouped(files, values, least)
    places = np.full(count, -1, np.int64)
    places[np.asarray(grouped.column("file"))] = np.arange(grouped.num_rows)
    places[unbounded] = -1
    indices = pa.array(places, mask=places < 0)
    found = grouped.column(f"value_{least}").combine_chunks().take(indices)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _grouped(files: Counts, values: pa.Array, least: str) -> pa.Table:
    if len(np.unique(files)) == len(files):  # also for types that Arrow cannot group
        return pa.table({"file": files, f"value_{least}": values})
    table = pa.table({"file": files, "value": values})
    try:
        return table.group_by("file").aggregate([("value", least)])
    except pa.ArrowException:  # no order in Arrow: unknown
        kept = np.unique(files)
        return pa.table({"file": kept, f"value_{least}": pa.nulls(len(kept), values.type)})


def _of_constants(
    schema: Schema,
    partitions: Partitions,
    rows: Sequence[Mapping[str, str | None]],
    counts: Counts,
) -> Iterator[tuple[logical.Field, str, pa.Array]]:
    """The facts of the constant columns, which are exact; of files where they are constant."""
    for column in schema:
        if column.name not in partitions.types or not logical.is_ordered(column.type):
            continue
        type_ = arrow_type(column.type)
        scalars = [constant(each.get(column.name), column.type) for each in rows]
        nan = np.array([is_nan(each) for each in scalars], np.bool_)
        null = np.array([not each.is_valid for each in scalars], np.bool_)
        values = pa.array([None if is_nan(each) else each.as_py() for each in scalars], type_)
        facts: dict[str, Any] = {"null_count": pa.array(np.where(null, counts, 0))}
        if isinstance(column.type, logical.Float):
            facts["nan_count"] = pa.array(np.where(nan, counts, 0))
        for side in ("lower", "upper"):
            facts |= {side: values, f"{side}_exact": pa.array(~(null | nan))}
        for fact, found in facts.items():
            yield column, statistics_name(column.id, fact), found
