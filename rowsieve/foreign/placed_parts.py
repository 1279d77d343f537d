"""Builds the parts of foreign files: column mappings, and statistics of whole files.

The statistics of all row groups of all files are decoded together, column by column, and joined by
file. Soundness: that of `rowsieve.parquet.statistics.foreign_statistics`; a file has a bound only
if each of its row groups has one, or only NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.foreign.footers import Footer
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.parquet.file_mapping import FileMapping
from rowsieve.parquet.foreign_footer.footer_fields import PHYSICAL
from rowsieve.parquet.leaf_columns import FileColumn, leaves_by_name
from rowsieve.parquet.statistics.foreign_chunks import stored_chunks
from rowsieve.parquet.statistics.foreign_statistics import foreign_column
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, joined_bounds
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.manifests.manifest import DeletionVectorRef, FileRef, PartTable, placed_parts
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_type
from rowsieve.types.schema import Schema, schema_to_json
from rowsieve.types.stored_defaults import constant, is_nan

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Statistics of one column, by row group, of files that store it in one physical form.

    `files`, shape (n,): the place of the row group's file.
    """

    column: FileColumn
    files: Counts
    stored: StoredBounds


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
                footer.checked.row_count,
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
    columns = _flat_columns(footers, joined)
    counts = np.array([footer.checked.row_count for footer in footers], np.int64)
    for column in joined.schema:
        if logical.is_ordered(column.type):
            held = [column.id in joined.names_of(footer) for footer in footers]
            chunks = _gathered(footers, [each.get(column.id) for each in columns])
            found.update(_of_column(column, chunks, counts, np.array(held, np.bool_)))
    return found


def _gathered(footers: Sequence[Footer], columns: Sequence[FileColumn | None]) -> Sequence[_Chunks]:
    """The statistics of a column in all files that have it, by physical form."""
    forms: dict[Any, list[tuple[int, FileColumn, StoredBounds]]] = {}
    for number, (footer, column) in enumerate(zip(footers, columns, strict=True)):
        if column is not None:
            form = column.physical, column.type, column.width
            stored = stored_chunks(footer.checked, column.index)
            forms.setdefault(form, []).append((number, column, stored))
    return [
        _Chunks(
            found[0][1],
            np.repeat([number for number, *_ in found], [len(each.rows) for *_, each in found]),
            joined_bounds([each for *_, each in found]),
        )
        for found in forms.values()
    ]


def _flat_columns(
    footers: Sequence[Footer], joined: JoinedColumns
) -> list[Mapping[int, FileColumn]]:
    """The flat columns of each file by field id; files of one schema share the mapping."""
    types = {column.id: column.type for column in joined.schema}
    known: dict[int, dict[int, FileColumn]] = {}
    for footer in footers:
        if id(footer.schema) in known:
            continue
        leaves = leaves_by_name(footer.schema)
        found = known[id(footer.schema)] = {}
        for field_id, name in joined.names_of(footer).items():
            if logical.is_ordered(types[field_id]) and len(leaves[name]) == 1:
                index = leaves[name][0]
                leaf, type_ = footer.checked.leaves[index], footer.schema.field(name).type
                if leaf.path == (name,) and not leaf.repetitions and not type_.num_fields:
                    physical = PHYSICAL[leaf.physical]
                    found[field_id] = FileColumn(index, name, type_, physical, leaf.width)
    return [known[id(footer.schema)] for footer in footers]


def _of_column(
    column: logical.Field, chunks: Sequence[_Chunks], counts: Counts, held: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, pa.Array]]:
    """The facts of one column: joined over the row groups of each file; NULL means unknown."""
    count = len(counts)
    nulls = np.where(held, np.int64(-1), counts)  # a column that a file lacks is NULL
    type_ = arrow_type(column.type)
    bounds = {"lower": pa.nulls(count, type_), "upper": pa.nulls(count, type_)}
    for each in chunks:
        stored, files = each.stored, each.files
        known = foreign_column(stored, each.column, column.type)
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
