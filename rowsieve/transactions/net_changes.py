"""Reduces the layers of a transaction to the parts of one commit: one final action for each key.

A single layer is committed as it is. Of several, those parts that share keys are merged, as
compaction merges parts: the newest action of each key survives, a row or a tombstone (invariants 9
and 10). Without a key nothing is merged; a part whose rows a later layer hides is written again.

Soundness: files of layers are new parts without a commit_ts, so their rows get that of the commit
(invariant I1). Rows are merged as they were written: they obey the constraints and the event order
that they were checked by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change import Change
from rowsieve.executor.execute import Execution
from rowsieve.executor.newest_actions import newest_actions
from rowsieve.planner.overlap import overlap_groups
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.inline_parts import inline_limit
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import PartWriter
from rowsieve.storage.parts.tombstones import DELETED_AT
from rowsieve.storage.snapshot import Snapshot
from rowsieve.transactions.layers import TableLayers
from rowsieve.types.ordering.keys import KeyOrder

MERGE_BYTES: Final = 128 * 1024 * 1024
_AT_ONCE_BYTES: Final = 16 * 1024 * 1024  # stored bytes of layers that are sorted in memory


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts to commit: `new` ones, and known ones with more hidden rows."""

    new: PartTable
    hiding: PartTable


def net_request(change: Change, layers: TableLayers) -> CommitRequest | None:
    """Return the request that commits all layers at once; None if they change nothing."""
    if not layers.layers:
        return None
    before, after = layers.pinned.parts, layers.head.parts
    unchanged = _unchanged(before, after)
    removed = before.without(unchanged).part_ids
    if layers.pinned.table.key:
        parts = _Parts(_merged(change, layers), PartTable.empty())
    else:
        hiding = after.chosen(frozenset(removed))
        parts = _Parts(_without_hidden_rows(change, layers), hiding)
    added = parts.hiding.append(parts.new)
    if not len(added) and not removed:
        return None
    replaces = any(layer.kind is Kind.REPLACING for layer in layers.layers)
    request = change.request(
        added,
        removed,
        rows_written=_total(parts.new, "data.rows"),
        rows_deleted=_total(parts.new, "deletes.rows")
        + _newly_hidden(before, parts.hiding, removed),
    )
    head, info = layers.head.table, layers.pinned.table
    return dataclasses.replace(
        request,
        operation="overwrite" if replaces else "transaction",
        metadata={**layers.metadata(), **change.metadata},
        rows_late=sum(layer.request.rows_late for layer in layers.layers),
        info=None if head == info else head,
        keeps_order=True,
        keeps_rules=True,
        keeps_history=True,
    )


def own_parts(layers: TableLayers) -> PartTable:
    """The parts of layers that the transaction still reads; they have the versions of layers."""
    return layers.head.parts.without(layers.pinned.parts.part_ids)


def _unchanged(before: PartTable, after: PartTable) -> frozenset[str]:
    """The ids of parts that are in both versions with the same deletion vector."""
    both = [
        set(zip(parts.part_ids, parts.column("dv.path").to_pylist(), strict=True))
        for parts in (before, after)
    ]
    return frozenset(part_id for part_id, _ in both[0] & both[1])


def _total(parts: PartTable, column: str) -> int:
    return int(pc.sum(parts.column(column)).as_py() or 0) if len(parts) else 0


def _newly_hidden(before: PartTable, hiding: PartTable, removed: Iterable[str]) -> int:
    """The rows of committed parts that the transaction hides by vectors, or removes."""
    removed = frozenset(removed)
    gone = before.chosen(removed)
    visible = _total(gone, "data.rows") - _total(gone, "dv.rows")
    return visible - (_total(hiding, "data.rows") - _total(hiding, "dv.rows"))


def _written(layers: TableLayers, wanted: frozenset[str]) -> PartTable:
    """These parts as their layers wrote them, without a commit_ts."""
    parts = PartTable.empty()
    for layer in layers.layers:
        if layer.request.added is not None:
            mine = layer.request.added.chosen(wanted)
            parts = parts.without(mine.part_ids).append(mine)
    return parts


def _must_be_file(parts: PartTable, pinned: Snapshot) -> np.ndarray:
    """(n,) which parts are in memory, and the table's log has none."""
    if inline_limit(pinned.table):
        return np.zeros(len(parts), dtype=bool)
    return parts.held_in_memory()


# Tables with a key


def _merged(change: Change, layers: TableLayers) -> PartTable:
    """The parts of all layers, merged where they overlap in keys."""
    parts = own_parts(layers)
    if not len(parts):
        return PartTable.empty()
    pinned = layers.pinned
    order = KeyOrder.of(pinned.schema, pinned.table.key)
    alone: list[str] = []
    merged = PartTable.empty()
    ages, must_be_file = parts.numbers("commit_ts_max"), _must_be_file(parts, pinned)
    if must_be_file.any() and parts.stored_bytes <= _AT_ONCE_BYTES:  # one file instead of many
        return _rewritten(change, pinned, parts, np.argsort(-ages, kind="stable"))
    for group in overlap_groups(parts.select("key.").table, order):
        members = np.array(group)
        is_alone = len(np.unique(ages[members])) == 1  # parts of one layer have disjoint keys
        if is_alone and not must_be_file[members].any():
            alone += parts.take(members).part_ids
        else:
            newest_first = members[np.argsort(-ages[members], kind="stable")]
            merged = merged.append(_rewritten(change, pinned, parts, newest_first))
    return _written(layers, frozenset(alone)).append(merged)


def _rewritten(change: Change, pinned: Snapshot, parts: PartTable, places: np.ndarray) -> PartTable:
    order = KeyOrder.of(pinned.schema, pinned.table.key)
    at_once = parts.take(places).stored_bytes <= _AT_ONCE_BYTES
    actions = newest_actions(
        change.store,
        planned_parts(parts, places),
        pinned.schema,
        order,
        MERGE_BYTES,
        at_once=at_once,
        sequence=pinned.sequence_fields,
    )
    if at_once:
        ((rows, deletes),) = actions
        return change.new_parts(
            pinned,
            rows if rows.num_rows else None,
            _undated(deletes) if deletes.num_rows else None,
        )
    return _write(change, pinned, actions)


def _write(
    change: Change, pinned: Snapshot, actions: Iterable[tuple[pa.Table, pa.Table | None]]
) -> PartTable:
    """Write rows and tombstones as new parts, based on the committed version."""
    writer = PartWriter(
        change.store,
        pinned.schema,
        tuple(pinned.schema.field(name) for name in pinned.table.key),
        pinned.table.settings,
        pinned.version,
        change.collecting,
        change.uploads,
        sequence=pinned.sequence_fields,
        checked=True,
    )
    for rows, deletes in actions:
        if rows.num_rows:
            writer.write(rows)
        if deletes is not None and deletes.num_rows:
            writer.write_deletes(_undated(deletes))
    return writer.finish()


def _undated(deletes: pa.Table) -> pa.Table:
    """Tombstones without the version of their layer: they get that of the commit (I1)."""
    names = [name for name in deletes.column_names if name != DELETED_AT.name]
    return deletes.select(names)


# Tables without a key


def _without_hidden_rows(change: Change, layers: TableLayers) -> PartTable:
    """The parts of all layers; those with hidden rows are written again without them."""
    own_layer = own_parts(layers)
    if not len(own_layer):
        return PartTable.empty()
    has_vector = np.asarray(own_layer.column("dv.path").is_valid()) | _must_be_file(
        own_layer, layers.pinned
    )
    whole = own_layer.take(np.flatnonzero(~has_vector))
    parts = _written(layers, frozenset(whole.part_ids))
    holed = own_layer.take(np.flatnonzero(has_vector))
    if not len(holed):
        return parts
    return parts.append(_write(change, layers.pinned, _visible(change, layers, holed)))


def _visible(
    change: Change, layers: TableLayers, parts: PartTable
) -> Iterator[tuple[pa.Table, pa.Table | None]]:
    only = dataclasses.replace(layers.pinned, parts=parts)
    plan = plan_scan(only, change.store.uri, predicate=TRUE, semantics=Semantics.SQL, now_us=0)
    for batch in Execution(plan, change.store, memory_bytes=MERGE_BYTES).read():
        yield pa.Table.from_batches([batch]), None
