"""Delete the rows of the property `expire_rows_when`, a condition that may depend on the time.

Parts of which every row is proved to have expired leave the table without being read; of the other
parts, matching rows are deleted as by `delete`. A row for which the condition is NULL stays.

Soundness: in a table with a key a part leaves only if no other part of the version overlaps its
keys, because its rows and tombstones may hide older rows (trap T2), and never in a table with an
event order, whose tombstones keep sequences (invariant 37).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from rowsieve.changes.change import Change, Question
from rowsieve.changes.expiry_condition import question_of
from rowsieve.changes.mutation import AddsMatches, AnyOf, Mutation, TouchesParts
from rowsieve.changes.operations import delete_where
from rowsieve.planner.overlap import overlap_groups
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import PartStatistics
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def expire_rows(change: Change, snapshot: Snapshot) -> Mutation | None:
    """Delete the rows that have expired; None if there are none, or the property is not set."""
    question = question_of(snapshot)
    if question is None:
        return None
    gone = np.flatnonzero(whole_parts(snapshot, question))
    if not len(gone):
        return delete_where(change, snapshot, question)
    leaving = snapshot.parts.take(gone)
    rest = dataclasses.replace(snapshot, parts=snapshot.parts.without(leaving.part_ids))
    others = delete_where(change, rest, question)
    request = change.request(None) if others is None else others.request
    request = dataclasses.replace(
        request,
        removed=(*request.removed, *leaving.part_ids),
        rows_deleted=request.rows_deleted + int(leaving.data_rows().sum()),
    )
    touched = TouchesParts(frozenset(leaving.part_ids))
    return Mutation(
        request,
        Kind.READING,
        touched_by=touched if others is None else AnyOf((touched, others.touched_by)),
        matched_by=AddsMatches(change.store, snapshot, question),
    )


def verdicts_of(snapshot: Snapshot, question: Question) -> np.ndarray:
    """(n,) what the statistics of each part prove about the condition."""
    bound: BoundPredicate = bind(
        question.predicate, snapshot.schema, question.semantics, now_us=question.now_us
    )
    return interpret(bound, PartStatistics(snapshot.parts, snapshot.schema))


def whole_parts(snapshot: Snapshot, question: Question) -> Mask:
    """(n,) the parts that may leave the table unread: all their rows expire, and they hide none."""
    parts = snapshot.parts
    whole: Mask = (verdicts_of(snapshot, question) == Verdict.ALL) & (parts.data_rows() > 0)
    if snapshot.table.sequence:
        return np.zeros(len(parts), dtype=np.bool_)
    if snapshot.table.key and whole.any():
        order = KeyOrder.of(snapshot.schema, snapshot.table.key)
        for members in overlap_groups(parts.table, order):
            group = np.asarray(members)
            if len(group) > 1:
                whole[group] = False
    return whole
