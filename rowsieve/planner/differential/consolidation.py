"""How the updates of a plan become rows: which updates are read, up to which time.

Soundness: a conjunct over data columns may drop updates before they are summed, in parts, row
groups, pages and rows: all updates of one sum have the same values in these columns, so it keeps
all of them or none. It may not if it can fail, because an update that fails may be cancelled by
another; nor if it reads the multiplicity, which only the sum has (invariant 33). Times prune as
any column does: an update after `at` is in no sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from rowsieve.planner.failures import may_fail
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.codec import predicate_from_json, predicate_to_json
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.differential import DIFF, TIME, as_updates
from rowsieve.storage.snapshot import Reading, Snapshot
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json


class Consolidation(msgspec.Struct, frozen=True):
    """`stored`: the columns of the updates. `updates`: the condition on those that are summed.

    `expanded`: a row of multiplicity n is n rows of the result.
    """

    stored: Schema
    updates: ir.Predicate
    expanded: bool


def consolidation_of(
    snapshot: Snapshot, reading: Reading, predicate: ir.Predicate, semantics: Semantics, now_us: int
) -> Consolidation:
    """Return which updates a read with this condition, in normal form, must sum."""
    if reading.at is None:
        return Consolidation(reading.stored, ir.FALSE, reading.expanded)
    updates = updates_of(snapshot, reading)
    terms = [
        term
        for term in ir.conjuncts(predicate)
        if DIFF not in ir.column_names(term)
        and not may_fail(
            updates, bind_operand(ir.Condition(term), reading.stored, semantics, now_us=now_us)
        )
    ]
    until = ir.Literal(reading.at, reading.stored.field(TIME).type)
    terms.append(ir.Comparison(ComparisonOp.LE, ir.Column(TIME), until))
    return Consolidation(reading.stored, ir.conjoin(terms), reading.expanded)


def updates_of(snapshot: Snapshot, reading: Reading) -> Snapshot:
    """Return the version that a reading is of, as a table of its updates."""
    return as_updates(replace(snapshot, schema=reading.stored, reading=None))


def consolidation_to_json(consolidation: Consolidation | None) -> Any:
    """Encode for a plan that another process reads."""
    if consolidation is None:
        return None
    return {
        "stored": schema_to_json(consolidation.stored),
        "updates": predicate_to_json(consolidation.updates),
        "expanded": consolidation.expanded,
    }


def consolidation_from_json(value: Mapping[str, Any] | None) -> Consolidation | None:
    """Decode `consolidation_to_json`."""
    if value is None:
        return None
    return Consolidation(
        schema_from_json(value["stored"]),
        predicate_from_json(value["updates"]),
        bool(value["expanded"]),
    )
