"""Truncations of times: `date_trunc('month', x)`, with a zone where the dialect takes one."""

from __future__ import annotations

from typing import Any

from rowsieve.bridges.sql.constructs.named_zones import zone_argument
from rowsieve.bridges.sql.constructs.time_fields import TRUNCATIONS
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.ir import Call, Literal, Operand


def truncation(reader: Reads, node: Any) -> Operand:
    """Read a truncation by the grammar's name of its unit."""
    unit = node.args.get("unit")
    return truncated(reader, node, str(unit.name if unit is not None else "").lower())


def truncated(reader: Reads, node: Any, unit: str) -> Operand:
    """Read a truncation to the unit."""
    reader.only(node, "this", "unit", "zone", input_type_preserved=True)
    if unit not in TRUNCATIONS or reader.source.quoted_argument(node, 0) is None:
        raise reader.source.refusal(
            node, f"date_trunc takes one of {', '.join(sorted(TRUNCATIONS))}, in quotes"
        )
    operand, in_zone = reader.operand(node.this), node.args.get("zone")
    if in_zone is not None and reader.dialect.times.truncates_in_zone:
        return Call("date_trunc", (Literal(unit), operand, zone_argument(reader, in_zone)))
    if in_zone is not None or reader.source.argument_count(node) > 2:  # some grammars drop it
        raise reader.source.refusal(node, "date_trunc takes a time zone in postgres only")
    return Call("date_trunc", (Literal(unit), operand))
