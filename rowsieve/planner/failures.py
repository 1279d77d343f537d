"""Decides whether an expression may fail on a row of a version, by the statistics of its parts.

Soundness: missing or unreadable statistics mean that it may. Rows that are hidden count.
"""

from __future__ import annotations

from rowsieve.planner.part_facts import OF_PARTS, part_facts
from rowsieve.planner.prune_parts import statistics_names
from rowsieve.predicate.bind import BoundOperand
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.stats.columnar import PartStatistics
from rowsieve.storage.snapshot import Snapshot


def may_fail(snapshot: Snapshot, operand: BoundOperand) -> bool:
    """Return whether the operand may fail on a row of a part; reads no files. O(parts)."""
    names = statistics_names(snapshot.schema, operand)
    parts = part_facts(snapshot).parts.select("key.", *names, *OF_PARTS)
    statistics = PartStatistics(parts, snapshot.schema)
    return bool(interpret_operand(operand, statistics).fails.any())
