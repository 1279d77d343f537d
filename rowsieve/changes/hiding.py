"""Changing rows of a table without a key: hide them by deletion vectors, append what replaces them.

Here the vector is the truth (invariant I3). It only grows: a part's new vector holds the old one,
and a commit that replaced the part meanwhile makes the work stale (invariant 13).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowsieve.changes.change import Change, Question
from rowsieve.changes.mutation import Mutation, TouchesParts
from rowsieve.executor.sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.pieces import planned_part
from rowsieve.planner.prune_parts import prune_parts
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.deletion_vectors import read_deletion_vector, write_deletion_vector
from rowsieve.storage.manifest import PartEntry, PartTable
from rowsieve.storage.part_writer import write_parts
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema


def hide_and_append(
    change: Change, snapshot: Snapshot, question: Question, rows: pa.Table | None
) -> Mutation | None:
    """Hide the matching rows of a table without a key, and append others."""
    parts = snapshot.parts
    bound = bind(question.predicate, snapshot.schema, question.semantics, now_us=question.now_us)
    pruning = prune_parts(parts, snapshot.schema, None, bound)
    touched, replaced, hidden_count = [], PartTable.empty(snapshot.schema), 0
    for (index,) in pruning.groups:  # a table without a key: each part alone
        entry = parts.entry(index)
        hidden_before = _hidden(change.store, entry)
        matched = _match(change.store, snapshot.schema, entry, hidden_before, bound)
        if matched.is_empty:
            continue
        touched.append(entry.part_id)
        hidden_count += len(matched)
        hidden = matched.union(hidden_before)
        if not hidden.is_full:
            ref = write_deletion_vector(change.store, hidden, snapshot.version)
            replaced = replaced.append(parts.take([index]).with_deletion_vector(ref))
    if not touched and rows is None:
        return None
    if rows is not None:
        replaced = replaced.append(
            write_parts(
                change.store,
                snapshot.schema,
                (),
                rows,
                None,
                base_version=snapshot.version,
                properties=snapshot.table.properties,
            )
        )
    request = change.request(
        replaced,
        tuple(touched),
        rows_written=0 if rows is None else rows.num_rows,
        rows_deleted=hidden_count,
    )
    return Mutation(request, TouchesParts(frozenset(touched)))


def _hidden(store: ObjectStore, entry: PartEntry) -> RowSet:
    rows = 0 if entry.data is None else entry.data.rows
    if entry.dv is None:
        return RowSet.empty(rows)
    return read_deletion_vector(store, entry.dv, rows)


def _match(
    store: ObjectStore, schema: Schema, entry: PartEntry, hidden: RowSet, predicate: BoundPredicate
) -> RowSet:
    """The visible rows that match; hidden ones are not even asked, so they cannot fail."""
    source = PartSource(store, planned_part(entry), schema, threads=True)
    wanted = source.candidates(predicate).difference(hidden)
    columns = schema.select(tuple(column.name for column in predicate.columns))
    matched = np.zeros(source.row_count, dtype=bool)
    for start, batch in source.rows(columns, wanted):
        mask = wanted.slice(start, start + batch.num_rows).to_mask()
        mask[mask] = matching(predicate, batch.filter(pa.array(mask)))
        matched[start : start + batch.num_rows] = mask
    return RowSet.from_mask(matched)
