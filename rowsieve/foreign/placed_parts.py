"""Builds the parts of foreign files: column mappings, and statistics of whole files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowsieve.foreign.file_statistics import FileStatistics, StatisticsOnDemand
from rowsieve.foreign.footers import Footer
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.parquet.file_mapping import FileMapping
from rowsieve.storage.manifests.manifest import DeletionVectorRef, FileRef, PartTable, placed_parts
from rowsieve.types.schema import schema_to_json


def parts_of(
    footers: Sequence[Footer],
    joined: JoinedColumns,
    partitions: Partitions,
    *,
    vectors: Mapping[str, DeletionVectorRef] | None = None,
    instants: bool = False,
    base_version: int = 0,
    on_demand: bool = False,
) -> PartTable:
    """Return a part per file that has rows, in the order of the files.

    `vectors`: deletion vectors by URI. `instants`: that of `FileMapping`. `base_version`: the
    version of the table that the parts are added to. `on_demand`: whether the statistics of a
    column are decoded at their first use; the parts are then of version 0.
    """
    refs = _file_refs(footers, joined, partitions, instants=instants)
    some = [i for i, ref in enumerate(refs) if ref.rows]
    statistics = FileStatistics([footers[i] for i in some], joined, partitions, some)
    placed = [refs[i] for i in some]
    hidden = [(vectors or {}).get(ref.path) for ref in placed]
    schemas = [joined.schema_of(footers[i]) for i in some]
    if not on_demand:
        return placed_parts(placed, statistics.all(), schemas, hidden, base_version)
    fixed = placed_parts(placed, {}, schemas, hidden, base_version).with_commit_ts(0)
    return PartTable(StatisticsOnDemand(fixed.table, statistics))


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
            joined.names_of(footer), constants, joined.schema_of(footer), nested[shape], instants
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
