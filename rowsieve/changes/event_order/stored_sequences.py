"""The sequences that a version of a table has for some keys: of rows and of tombstones.

The parts' bounds of sequences prove for most batches that nothing newer is stored; then no file is
read. Otherwise only parts that may hold a newer sequence of one of the keys are read, with all
parts that were committed after the oldest of these: the version of a key that was committed last
counts (invariant 36 is kept by what is committed, so that it also has the greatest sequence).

Soundness: a part without bounds may hold any sequence. Every version of a key that is newer than
one that is read is read as well, so that what a commit has replaced is never taken for the newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.current_rows import near_keys
from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.errors import CorruptData
from rowsieve.executor.part_sources import PartSource, candidates_of
from rowsieve.objects import ObjectStore
from rowsieve.planner.part_facts import part_facts
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.interpret import Verdict
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.tombstones import tombstone_schema
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema, arrow_type
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder
from rowsieve.types.ordering.sequences import greatest, is_above, least

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """The newest stored version of keys: their columns and sequences, and which are tombstones."""

    versions: pa.Table
    is_deleted: Mask


def may_be_above(parts: PartTable, order: KeyOrder, bound: KeyColumns) -> Mask:
    """(n,) whether each part may hold a sequence above the bound, which has one row."""
    uppers = sequence_bounds(parts, order)
    if uppers is None:
        return np.ones(len(parts), dtype=bool)
    return is_above(order.columns(uppers), bound)


def sequence_bounds(parts: PartTable, order: KeyOrder) -> pa.Table | None:
    """The bounds of the parts in the types of the columns; None if no part has one."""
    names = [f"order.{field.id}.upper" for field in order.fields]
    if any(parts.schema.get_field_index(name) < 0 for name in names):
        return None
    columns = [parts.column(name) for name in names]
    wide = [
        column.cast(arrow_type(field.type))  # it may have been widened since
        for column, field in zip(columns, order.fields, strict=True)
    ]
    return pa.table(wide, list(order.names)).combine_chunks()


def newer_versions(store: ObjectStore, snapshot: Snapshot, changes: pa.Table) -> StoredVersions:
    """The stored versions of keys that may be newer than the changes of them.

    `changes` has the columns of the key and of the sequence, in the table's types; keys are unique.
    """
    sequences = order_of(snapshot)
    parts = snapshot.parts
    above = may_be_above(parts, sequences, sequences.columns(least(changes, sequences)))
    if not above.any():
        return _nothing(snapshot)
    uppers = sequence_bounds(parts.take(np.flatnonzero(above)), sequences)
    if uppers is not None and not any(column.null_count for column in uppers.columns):
        most = sequences.columns(greatest(uppers, sequences))
        changes = changes.filter(pa.array(~_is_at_least(sequences.columns(changes), most)))
    return _read(store, snapshot, changes, above)


def stored_versions(store: ObjectStore, snapshot: Snapshot, keys: pa.Table) -> StoredVersions:
    """The stored versions of all of these keys; a key that is not stored is absent."""
    if snapshot.on_read is not None:
        order = KeyOrder.of(snapshot.schema, snapshot.table.key)
        snapshot.on_read(near_keys(keys, order), Semantics.SQL, 0)
    return _read(store, snapshot, keys, np.ones(len(snapshot.parts), dtype=bool))


def _is_at_least(ours: KeyColumns, most: KeyColumns) -> Mask:
    """(n,) whether a sequence is not below `most`, which has one row."""
    above = is_above(ours, most)
    same = np.ones(len(ours), dtype=bool)
    for left, right in zip(ours.arrays, most.arrays, strict=True):
        same &= np.asarray(pc.equal(left, right[0]).to_numpy(zero_copy_only=False), dtype=bool)
    return above | same


def _nothing(snapshot: Snapshot) -> StoredVersions:
    columns = snapshot.schema.select((*snapshot.table.key, *snapshot.table.sequence))
    return StoredVersions(arrow_schema(columns).empty_table(), np.zeros(0, dtype=bool))


def _read(store: ObjectStore, snapshot: Snapshot, keys: pa.Table, above: Mask) -> StoredVersions:
    if not keys.num_rows or not above.any():
        return _nothing(snapshot)
    parts = snapshot.parts
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    predicate = bind(near_keys(keys, order), snapshot.schema, Semantics.SQL, now_us=0)
    facts = part_facts(snapshot)
    verdicts, _ = facts.judge_by_key(predicate)
    near = verdicts != Verdict.NONE
    if not (near & above).any():
        return _nothing(snapshot)
    first = parts.numbers("commit_ts_min")[near & above].min()
    commits = parts.numbers("commit_ts_max")
    places = np.flatnonzero(near & (commits >= first))
    newest_first = places[np.argsort(-commits[places], kind="stable")]
    sources = [PartSource(store, part, snapshot.schema) for part in facts.planned(newest_first)]
    return _newest(snapshot, order, list(_versions(snapshot, sources, predicate)), keys)


def _versions(
    snapshot: Snapshot, sources: list[PartSource], predicate: BoundPredicate
) -> Iterator[tuple[bool, pa.Table]]:
    """Rows and tombstones near the keys, newest first, as pairs (are they tombstones, versions)."""
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    columns = tombstone_schema(snapshot.schema, order.fields, snapshot.sequence_fields)
    ids = frozenset(field.id for field in order.fields)
    candidates = candidates_of(sources, predicate, ids, tombstones=True)
    for source, (deleted, rows) in zip(sources, candidates, strict=True):
        for is_deleted, batches in (
            (True, source.tombstones(columns, deleted.rows)),
            (False, source.rows(columns, rows.rows)),
        ):
            for _, batch in batches:
                near = batch.filter(pa.array(matching(predicate, batch)))
                if near.num_rows:
                    yield is_deleted, pa.Table.from_batches([near])


def _newest(
    snapshot: Snapshot, order: KeyOrder, versions: list[tuple[bool, pa.Table]], keys: pa.Table
) -> StoredVersions:
    """The first version of each of the keys."""
    if not versions:
        return _nothing(snapshot)
    tables = pa.concat_tables([table for _, table in versions])
    flags = np.repeat(
        np.array([deleted for deleted, _ in versions], dtype=bool),
        [table.num_rows for _, table in versions],
    )
    names = list(order.names)
    both = pa.concat_tables(
        [tables.select(names), keys.select(names).cast(tables.select(names).schema)]
    )
    columns = order.columns(both)
    positions = columns.sort()  # stable: the newest version of a key is first, the key itself last
    is_first = ~columns.repeats(positions)
    group = np.cumsum(is_first) - 1
    is_asked = np.zeros(int(group[-1]) + 1, dtype=bool)
    is_asked[group[positions >= tables.num_rows]] = True
    chosen = positions[is_first & is_asked[group]]
    chosen = chosen[chosen < tables.num_rows]
    newest = tables.take(pa.array(chosen)).combine_chunks()
    for name in snapshot.table.sequence:
        if newest.column(name).null_count:
            raise CorruptData(
                f"a row or a tombstone of the table has no value in {name!r}, by which its "
                "versions are ordered; the table is not changed: restore the file from a copy"
            )
    return StoredVersions(newest, flags[chosen])
