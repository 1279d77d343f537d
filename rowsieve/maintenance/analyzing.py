"""Collect the statistics of parts that were written without them, from their rows.

On request, also collect sketches of the distinct values of some columns
(`rowsieve.stats.distinct`), which only rewrites collect; once a column has some, parts that are
written later lack them. They are columns of the manifest as statistics are, `stats.<field
id>.distinct.sketch`, and stay with the entry of their part, whose rows never change.

Soundness: statistics cover every row and tombstone of a part, hidden ones included (trap T4). A
part keeps its commit_ts (invariant I1). Parts with older columns are skipped: their statistics
would have other types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.mutation import Mutation, never
from rowsieve.errors import InvalidInput
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.pieces import planned_part
from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.selection import StatisticsOptions, statistics_options
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.manifests.manifest import NewPart, PartEntry, PartTable
from rowsieve.storage.manifests.part_sketches import (
    PartSketches,
    can_have_sketches,
    is_sketch,
    lacks_sketches,
    sketch_name,
    sketched_fields,
)
from rowsieve.storage.manifests.segments import STATISTICS
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field, Json, type_name
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class Analysis:
    """The request of a call: statistics of all columns, and sketches of `sketched`.

    The statistics of `columns` are trimmed last. A part that has all of this is read only with
    `rewrite_all`.
    """

    columns: tuple[str, ...] = ()
    sketched: tuple[Field, ...] = ()
    rewrite_all: bool = False

    @classmethod
    def of(
        cls, schema: Schema, columns: Sequence[str], *, rewrite_all: bool, distinct_counts: bool
    ) -> Analysis:
        """The analysis that a call asks for; without columns it sketches all that can be.

        UnknownColumn for a name that the table does not have; InvalidInput for a column without
        distinct counts.
        """
        fields = [schema.field(name) for name in columns]
        without = [field for field in fields if not can_have_sketches(field)]
        if distinct_counts and without:
            raise InvalidInput(
                f"analyze: the column {without[0].name} has the type "
                f"{type_name(without[0].type)}, which has no distinct counts; leave it out of "
                "columns"
            )
        sketched = [field for field in fields or schema if can_have_sketches(field)]
        names = dict.fromkeys(field.name for field in fields)
        return cls(tuple(names), tuple(sketched) if distinct_counts else (), rewrite_all)

    def chosen(self, parts: PartTable, schema: Schema) -> npt.NDArray[np.bool_]:
        """(n,) whether to read a part: it has rows, and lacks some of the requested statistics."""
        if self.rewrite_all:
            return np.asarray(np.asarray(parts.numbers("data.rows")) > 0)
        return lacks_statistics(parts, schema, self.columns) | lacks_sketches(parts, self.sketched)


def lacks_statistics(
    parts: PartTable, schema: Schema, columns: Sequence[str] = ()
) -> npt.NDArray[np.bool_]:
    """(n,) whether a part with rows lacks statistics of a named column; without names, of all."""
    known = set(parts.schema.names)
    ids = [schema.field(name).id for name in columns] or [field.id for field in schema]
    masks = [
        np.asarray(parts.column(name).is_valid().to_numpy(), dtype=bool)
        if (name := f"stats.{field_id}.null_count") in known
        else np.zeros(len(parts), dtype=bool)
        for field_id in ids
    ]
    combined = np.logical_and if columns else np.logical_or
    has_rows = np.asarray(parts.numbers("data.rows")) > 0
    return np.asarray(has_rows & ~np.asarray(combined.reduce(masks), dtype=bool))


def of_current_columns(parts: PartTable, schema: Schema) -> npt.NDArray[np.bool_]:
    """(n,) whether a part was written with the current columns."""
    return np.asarray(np.asarray(parts.numbers("schema_id")) == schema.id)


def lacks_newer_sketches(parts: PartTable, schema: Schema) -> npt.NDArray[np.bool_]:
    """(n,) whether a part has rows, and lacks a sketch that another part has."""
    return lacks_sketches(parts, sketched_fields(parts, schema))


def plan_missing(
    store: ObjectStore, snapshot: Snapshot, metadata: Mapping[str, str]
) -> Mutation | None:
    """Collect the statistics that parts lack; None if they lack none, or statistics are off.

    Also collects sketches of columns that other parts have sketches of. Parts in memory are left
    out: their rows are read anyway, and a compaction gives them a file with statistics.
    """
    if snapshot.table.settings.get("statistics", "on") != "on":
        return None
    sketched = tuple(sketched_fields(snapshot.parts, snapshot.schema))
    in_files = ~snapshot.parts.held_in_memory()
    files = replace(snapshot, parts=snapshot.parts.take(np.flatnonzero(in_files)))
    return plan_analysis(store, files, Analysis(sketched=sketched), metadata)


def plan_analysis(
    store: ObjectStore, snapshot: Snapshot, analysis: Analysis, metadata: Mapping[str, str]
) -> Mutation | None:
    """Collect what the analysis asks for; None if no part of the current columns lacks it."""
    parts, schema = snapshot.parts, snapshot.schema
    chosen = np.flatnonzero(analysis.chosen(parts, schema) & of_current_columns(parts, schema))
    if not len(chosen):
        return None
    asked = parts.take(chosen)
    table = snapshot.table
    entries = with_statistics(store, asked, schema, table.key, table.properties, analysis)
    request = CommitRequest(
        "analyze", removed=tuple(asked.part_ids), restored=entries, metadata=metadata
    )
    return Mutation(request, Kind.REWRITING, touched_by=never)


def with_statistics(
    store: ObjectStore,
    parts: PartTable,
    schema: Schema,
    key: Sequence[str],
    properties: Mapping[str, str],
    analysis: Analysis,
) -> PartTable:
    """Read the parts; return their entries with statistics, and with the sketches that are asked.

    Sketches of other columns stay.
    """
    fields = KeyOrder.of(schema, key).fields if key else ()
    options = _options(schema, (*key, *analysis.columns), properties)
    plain = without_statistics(parts)
    sketches = [PartSketches(analysis.sketched) for _ in range(len(plain))]
    entries = [
        _analyzed(store, entry, schema, Schema(schema.id, fields), options, its_sketches)
        for entry, its_sketches in zip(plain.entries(range(len(plain))), sketches, strict=True)
    ]
    return _with_other_sketches(
        PartTable.of(entries, schema, fields), parts, {sketch_name(f) for f in analysis.sketched}
    )


def _with_other_sketches(entries: PartTable, old: PartTable, new: Collection[str]) -> PartTable:
    """The entries with the sketches that the same parts had, except for the columns `new`."""
    table = entries.table
    for name in filter(is_sketch, old.schema.names):
        if name not in new:
            table = table.append_column(name, old.column(name))
    return PartTable(table)


def without_statistics(parts: PartTable) -> PartTable:
    """Return the parts without the columns of their statistics, but with their sketches."""
    return parts.only(lambda name: is_sketch(name) or not name.startswith(STATISTICS))


def _options(
    schema: Schema, first: Sequence[str], properties: Mapping[str, str]
) -> StatisticsOptions:
    """The table's options with statistics on; the columns `first` are trimmed last."""
    fields = tuple(schema.field(name) for name in first)
    options = statistics_options({**properties, "statistics": "on"}, schema, fields)
    json_paths = {field.id: ((),) for field in schema if isinstance(field.type, Json)}
    return replace(options, json={**json_paths, **options.json})


def _analyzed(
    store: ObjectStore,
    entry: PartEntry,
    schema: Schema,
    key: Schema,
    options: StatisticsOptions,
    sketches: PartSketches,
) -> NewPart:
    """The entry with the statistics of all its rows and tombstones; adds rows to the sketches."""
    source = PartSource(store, planned_part(entry), schema)
    collector = StatisticsCollector(schema, options)
    for _, batch in source.rows(schema):
        collector.add(pa.Table.from_batches([batch]))
        sketches.add(batch)
    if entry.deletes is not None:
        for _, batch in source.tombstones(key):
            collector.add_tombstones(pa.Table.from_batches([batch]))
    return NewPart(entry, collector.finish(), sketches.finish())
