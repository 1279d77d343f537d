"""Which parts of a snapshot a read needs, proved from the manifest's statistics alone.

Before the merge only key columns may prune (trap T1): a part whose keys cannot satisfy the
predicate is irrelevant to every key that can. After that, parts are grouped by overlap. A part
alone in its group is final, so all its statistics may prune it; a group of several goes only when
every source in it is refuted, and its tombstones stay as long as one source does (trap T2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rowsieve.planner.overlap import key_ranges, overlap_groups
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import PartStatistics
from rowsieve.storage.manifest import PartTable
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema

Verdicts = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Group:
    """Overlapping parts (indices into the manifest), and what their rows can give once visible."""

    parts: tuple[int, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Pruning:
    """What is left to read, in key order, and why each of the other parts is not."""

    groups: tuple[Group, ...]
    pruned_by: dict[int, str]


def prune_parts(
    parts: PartTable, schema: Schema, order: KeyOrder | None, predicate: BoundPredicate | None
) -> Pruning:
    """Groups that may hold a matching row. Without a predicate nothing is pruned.

    `order` is None for a table without a key, whose parts never share rows.
    """
    everything = np.full(len(parts), Verdict.SOME, dtype=np.int8)
    if predicate is None:
        return _group(parts, order, everything, everything)
    statistics = PartStatistics(parts, schema)
    rows = interpret(predicate, statistics)
    rows[parts.data_rows() == 0] = Verdict.NONE  # only tombstones: no row of it can match
    if order is None:
        return _group(parts, order, everything, rows)
    key_ids = frozenset(field.id for field in order.fields)
    return _group(parts, order, interpret(predicate, statistics.only(key_ids)), rows)


def _group(
    parts: PartTable, order: KeyOrder | None, by_key: Verdicts, by_rows: Verdicts
) -> Pruning:
    pruned_by = {int(i): "key" for i in np.flatnonzero(by_key == Verdict.NONE)}
    kept = np.flatnonzero(by_key != Verdict.NONE)
    if order is None:
        grouped = [[i] for i in range(len(kept))]
    else:
        grouped = overlap_groups(key_ranges(parts.take(kept).table, order))
    groups = []
    for members in grouped:
        indices = tuple(int(kept[i]) for i in members)
        verdicts = by_rows[list(indices)]
        if np.all(verdicts == Verdict.NONE):
            pruned_by.update(dict.fromkeys(indices, "statistics"))
        else:
            groups.append(Group(indices, tuple(Verdict(verdict) for verdict in verdicts)))
    return Pruning(tuple(groups), pruned_by)
