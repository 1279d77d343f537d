"""Which parts of a differential table have updates that a rewrite would advance to `since`."""

from __future__ import annotations

import numpy as np

from rowsieve.planner.part_facts import part_facts
from rowsieve.planner.prune_parts import prune_parts
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.storage.differential import TIME, as_updates, frontiers_of, is_differential
from rowsieve.storage.snapshot import Snapshot


def parts_before_since(snapshot: Snapshot) -> frozenset[int]:
    """The parts that may have a time before `since`, by index; none of another table."""
    if not is_differential(snapshot.table) or not len(snapshot.parts):
        return frozenset()
    since = ir.Literal(frontiers_of(snapshot.table).since, snapshot.schema.field(TIME).type)
    before = ir.Comparison(ComparisonOp.LT, ir.Column(TIME), since)
    pruned = prune_parts(part_facts(as_updates(snapshot)), bind(before, snapshot.schema, now_us=0))
    return frozenset(np.asarray(pruned.groups.members[pruned.reads]).tolist())
