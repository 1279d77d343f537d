"""Prune the parts of a snapshot by only the manifest's statistics.

Before the merge only key columns may prune (trap T1): a part whose keys cannot satisfy the
predicate has no version of any key that can. The remaining parts are grouped by overlap. All
statistics may prune a part that is alone in its group, because no other part has versions of its
rows. A group of several parts is pruned only if every part is refuted. Tombstones are kept while an
older part whose rows they may hide is kept (trap T2).

All steps are vectorised over parts: a pruned part costs no Python object, and the steps after the
key pruning process only the remaining parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from rowsieve.planner.overlap import Groups
from rowsieve.planner.part_facts import Indices, Mask, PartFacts, Verdicts
from rowsieve.predicate.bind import BoundOperand, BoundPredicate
from rowsieve.predicate.interpret import Verdict
from rowsieve.stats.tabulate import statistics_name
from rowsieve.types.logical import Field, List, Map, Struct
from rowsieve.types.schema import Schema

_NONE: Final = int(Verdict.NONE)  # numpy compares with an int faster than with an enum
_SOME: Final = int(Verdict.SOME)
_ALL: Final = int(Verdict.ALL)


class Reason(IntEnum):
    """The reason why a part is not read."""

    KEPT = 0  # the part is read
    KEY = 1  # none of its keys can satisfy the predicate
    STATISTICS = 2  # none of its rows can match, and it cannot hide a row that can
    VISIBILITY = 3  # it has only tombstones, and no older part is read
    LIMIT = 4  # other parts certainly return enough rows
    CONSTRAINT = 5  # no row of the table can match, by its constraints


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """The parts to read, and the reason for each part that is skipped.

    `groups` hold the kept parts as indices into the manifest: groups in key order, and the parts of
    a group newest first, down to the oldest part that is read. `reads` and `verdicts` are parallel
    to the groups' members: whether rows of the part are returned, and which of its visible rows
    match. `contradicting` counts requested statistics that contradict themselves and are ignored;
    `unreadable` counts requested statistics columns that cannot be read.
    """

    reasons: Verdicts
    groups: Groups
    reads: Mask
    verdicts: Verdicts
    contradicting: int = 0
    unreadable: int = 0


def prune_parts(
    facts: PartFacts, predicate: BoundPredicate | None, *, limit: int | None = None
) -> Pruning:
    """Return the groups that may hold a matching row; without a predicate, nothing is refuted.

    `limit` is a number of rows that is enough; any rows will do.
    """
    parts, key_ids = facts.parts, facts.key_ids
    reasons = np.full(len(parts), int(Reason.KEY), dtype=np.int8)
    places = np.arange(len(parts))
    contradicting = 0
    by_key: Verdicts | None = None
    if predicate is not None and len(parts) and _keys_may_refute(predicate, key_ids):
        by_key, contradicting = facts.judge_by_key(predicate)
        places = (by_key != _NONE).nonzero()[0]
        by_key = by_key[places]
    names = statistics_names(facts.schema, predicate)
    has_rows = facts.rows[places] > 0
    verdicts = np.full(len(places), _SOME, dtype=np.int8)
    if predicate is not None and len(places):
        if by_key is not None and _uses_only(predicate, key_ids):
            verdicts = by_key
        else:
            verdicts, contradictions = facts.judge(predicate, places, names)
            contradicting = max(contradicting, contradictions)
    verdicts[~has_rows] = _NONE  # only tombstones: no row can match
    remaining = _needed(facts, places, facts.groups(places), verdicts)
    reasons[places] = np.where(has_rows, int(Reason.STATISTICS), int(Reason.VISIBILITY))
    reasons[places[remaining.members]] = Reason.KEPT
    verdicts = verdicts[remaining.members]
    remaining = Groups(places[remaining.members], remaining.starts)
    if limit is not None:
        certain = verdicts == _ALL if predicate is not None else verdicts != _NONE
        enough = _enough(facts, remaining, certain, limit)
        reasons[remaining.members[~enough]] = Reason.LIMIT
        remaining, verdicts = remaining.only(enough), verdicts[enough]
    unreadable = parts.unreadable(*names)
    return Pruning(reasons, remaining, verdicts != _NONE, verdicts, contradicting, unreadable)


def pruned_by_constraints(facts: PartFacts) -> Pruning:
    """Skip every part: the table's constraints refute the predicate."""
    reasons = np.full(len(facts.parts), int(Reason.CONSTRAINT), dtype=np.int8)
    nothing = np.zeros(0, dtype=np.int64)
    no_rows = np.zeros(0, dtype=np.bool_)
    groups = Groups(nothing, np.zeros(1, dtype=np.int64))
    return Pruning(reasons, groups, no_rows, nothing.astype(np.int8))


def _keys_may_refute(predicate: BoundPredicate, key_ids: frozenset[int]) -> bool:
    """Return whether keys alone may refute it: it uses a key column, or no column at all."""
    used = {column.field_id for column in predicate.columns}
    return bool(key_ids) and (not used or not used.isdisjoint(key_ids))


def _uses_only(predicate: BoundPredicate, key_ids: frozenset[int]) -> bool:
    """Return whether it uses only key columns, so that no other statistics matter."""
    return all(column.field_id in key_ids for column in predicate.columns)


def statistics_names(
    schema: Schema, predicate: BoundPredicate | BoundOperand | None
) -> tuple[str, ...]:
    """Return the name prefixes of the statistics of the columns that it uses."""
    if predicate is None:
        return ()
    used = {column.field_id for column in predicate.columns}
    fields = [field for field in schema.fields if field.id in used]
    return tuple([statistics_name(id_, "") for field in fields for id_ in _ids(field)])


def _ids(field: Field) -> Iterator[int]:
    """Yield the ids of a column and of the fields nested in it."""
    yield field.id
    match field.type:
        case List(element=element):
            yield from _ids(element)
        case Struct(fields=members):
            for member in members:
                yield from _ids(member)
        case Map(key=key, value=value):
            yield from _ids(key)
            yield from _ids(value)


def _needed(facts: PartFacts, remaining: Indices, groups: Groups, verdicts: Verdicts) -> Groups:
    """Return the parts of each group down to the oldest that is read, newest first.

    Older parts hide no row that is read. Groups without a part to read are dropped. `groups` and
    the result index `remaining`.
    """
    read = verdicts != _NONE
    if len(groups) == len(groups.members):  # each group has one part
        members = groups.members[read[groups.members]]
        return Groups(members, np.arange(len(members) + 1))
    if len(groups) == 1 and read.any():
        members = facts.newest_first(
            remaining, groups.members, np.zeros(len(groups.members), np.int64)
        )
        stop = int(read[members].nonzero()[0][-1]) + 1
        return Groups(members[:stop], np.array([0, stop]))
    number = groups.of_members()
    alive = np.zeros(len(groups), dtype=np.bool_)
    alive[number[read[groups.members]]] = True
    members, number = groups.members[alive[number]], number[alive[number]]
    if len(members) > int(alive.sum()):  # otherwise each group has one part
        members = facts.newest_first(remaining, members, number)
        last_read = np.full(len(groups), -1)
        places = np.flatnonzero(read[members])
        last_read[number[places]] = places  # ascending, so the last one stays
        down_to = np.arange(len(members)) <= last_read[number]
        members, number = members[down_to], number[down_to]
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    return Groups(members, np.append(starts, len(members)))


def _enough(facts: PartFacts, remaining: Groups, certain: Mask, limit: int) -> Mask:
    """(n,) the first members that certainly return `limit` rows; all members if none do.

    A row is certainly returned if all rows of its part match (`certain`), no other part shares its
    keys, and its part has no deletion vector.
    """
    alone = np.repeat(np.diff(remaining.starts) == 1, np.diff(remaining.starts))
    vectors = facts.parts.select("dv.path").take(remaining.members).column("dv.path")
    plain = ~np.asarray(vectors.is_valid().to_numpy())
    sure = np.where(certain & alone & plain, facts.rows[remaining.members], 0)
    before = np.cumsum(sure) - sure
    if sure.sum() < limit:
        return np.ones(len(remaining.members), dtype=np.bool_)
    return (sure > 0) & (before < limit)
