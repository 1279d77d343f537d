"""Finds the rows that are visible in exactly one of two consecutive versions.

A row of a part never changes, so a row that both versions show is unchanged, and a row that only
one version shows has changed. Both versions are planned and resolved as for a read, and their row
sets are subtracted. Only parts that can contribute are planned (`commit_parts.py`). If the touched
parts have few keys, the plans read only these keys.

Soundness: the visible row of a key changes only if a part with this key was added, removed, or
given another deletion vector. The plans' predicate is a superset of the keys of such parts, or a
part of the reader's condition; a row that it refutes is missing on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.change_feed.commit_parts import CommitParts
from rowsieve.executor.execute import resolve
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.part_rows import PartRows
from rowsieve.planner.pieces import planned_part
from rowsieve.planner.plan import ScanPlan, table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.resolved import rows_by_part, with_rows
from rowsieve.predicate.ir import TRUE, Column, InList, Predicate, ValueSet, conjoin
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Float
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

KEYS_LOOKED_UP_AT_MOST: Final = 10_000
"""Up to this many rows and tombstones of touched parts, their keys select what is read."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Conditions of the reader that may exclude rows, under the semantics and time of its text.

    `on_rows` may exclude single rows, `on_keys` all rows of a key.
    """

    on_rows: Predicate = TRUE
    on_keys: Predicate = TRUE
    semantics: Semantics = Semantics.SQL
    now_us: int = 0


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The plans of the rows that only the version before shows, and only the version after."""

    before: ScanPlan
    after: ScanPlan

    @property
    def row_count(self) -> int:
        """The rows of both plans."""
        return sum(
            len(part.rows) for plan in (self.before, self.after) for part in plan.resolved or ()
        )


def changed_rows(
    store: ObjectStore,
    target: Snapshot,
    commit: CommitParts,
    names: tuple[str, ...],
    by: Narrowing,
) -> ChangedRows | None:
    """Plan the changed rows of a commit with these columns; None if there are none.

    `target` has the schema to read with, and `names` include the key. The plans of a table with a
    key are in key order.
    """
    before, after = (
        replace(target, version=version, parts=parts)
        for version, parts in (
            (commit.before_version, commit.before),
            (commit.version, commit.after),
        )
    )
    keys = _keys_of(store, before, after, commit.touched)
    has_key = bool(target.table.key)
    asked = conjoin([keys, by.on_keys if has_key else by.on_rows])
    changes = _differences(store, before, after, names, asked, by)
    if not changes.row_count:
        return None
    if has_key and by.on_rows != by.on_keys:
        matching = _differences(store, before, after, names, conjoin([keys, by.on_rows]), by)
        if not matching.row_count:
            return None
    return ChangedRows(_with_keys(changes.before, keys), _with_keys(changes.after, keys))


def _keys_of(
    store: ObjectStore, before: Snapshot, after: Snapshot, touched: frozenset[str]
) -> Predicate:
    """The condition of the first key column of the touched parts.

    TRUE if they have many rows, or if no other part exists, so that it would exclude nothing.
    """
    if not after.table.key or touched >= {*before.parts.part_ids, *after.parts.part_ids}:
        return TRUE
    first = KeyOrder.of(after.schema, after.table.key).fields[0]
    if isinstance(first.type, Float):  # NaN and -0.0: equal as keys, but not in a condition
        return TRUE
    added = after.parts.chosen(touched)
    gone = before.parts.chosen(touched).without(added.part_ids)
    both = added.append(gone) if len(gone) else added
    rows = int((both.numbers("data.rows") + both.numbers("deletes.rows")).sum())
    if rows > KEYS_LOOKED_UP_AT_MOST:
        return TRUE
    key = Schema(after.schema.id, (first,))
    chunks = [pa.array([], arrow_type(first.type))]
    for entry in both.entries(range(len(both))):
        source = PartSource(store, planned_part(entry), after.schema)
        for _, batch in _rows_and_tombstones(source, key):
            chunks.append(batch.column(0))
    values = pc.unique(pa.chunked_array(chunks))
    return InList(Column(first.name), ValueSet(values, first.type))


def _rows_and_tombstones(source: PartSource, key: Schema) -> Iterator[tuple[int, pa.RecordBatch]]:
    yield from source.rows(key)
    yield from source.tombstones(key)


def _differences(
    store: ObjectStore,
    before: Snapshot,
    after: Snapshot,
    names: tuple[str, ...],
    asked: Predicate,
    by: Narrowing,
) -> ChangedRows:
    plans = [
        resolve(
            plan_scan(
                snapshot,
                store.uri,
                predicate=asked,
                columns=table_columns(names),
                ordered=bool(snapshot.table.key),
                semantics=by.semantics,
                now_us=by.now_us,
            ),
            store,
        )
        for snapshot in (before, after)
    ]
    return ChangedRows(_without(plans[0], plans[1]), _without(plans[1], plans[0]))


def _with_keys(plan: ScanPlan, keys: Predicate) -> ScanPlan:
    """The plan with only the condition on the touched keys, which cannot fail on a row.

    The reader's condition is evaluated on the rows of the feed, as a whole: a row that one of its
    terms excludes must not fail by another term (invariant 27).
    """
    return plan.with_predicate(normalize(keys, Semantics.SQL), Semantics.SQL)


def _without(plan: ScanPlan, other: ScanPlan) -> ScanPlan:
    """The resolved plan without the rows of the other one."""
    known = rows_by_part(other.resolved or ())
    return with_rows(
        plan,
        [
            PartRows(
                part.part_id,
                part.rows.difference(known[part.part_id]) if part.part_id in known else part.rows,
                page_rows=part.page_rows,
            )
            for part in plan.resolved or ()
        ],
    )
