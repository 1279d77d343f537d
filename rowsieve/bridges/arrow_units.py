"""Timestamps of seconds, milliseconds and nanoseconds in a caller's Arrow schema.

Here a timestamp without a name of its own has microseconds. Some engines compare those of two units
in the coarser one (`Bridge.cut_units`): a constant of microseconds is cut next to a column of
milliseconds, and a column of nanoseconds is cut next to the constant.

Soundness: a condition is refused for such an engine unless the coarser unit holds every timestamp
in it, so that nothing is cut. Intervals and `now()` count as times that it may not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Interval, Nanos, Timestamp

_MICROS: Mapping[str, int] = {"s": 1_000_000, "ms": 1_000}
_CHOOSING = frozenset({"coalesce", "greatest", "least", "nullif"})


def cut_columns(schema: Any, cut: frozenset[str]) -> Mapping[str, str]:
    """Return the units of an Arrow schema's columns that are among those that an engine cuts.

    Of a nested column it is the finest of its members' units.
    """
    if not cut:
        return {}
    arrow = schema if isinstance(schema, pa.Schema) else getattr(schema, "schema", None)
    if not isinstance(arrow, pa.Schema):
        return {}
    units: dict[str, str] = {}
    for field in arrow:
        within: set[str] = set()
        if pa.types.is_timestamp(field.type):
            within.add(field.type.unit)
        elif field.type.num_fields:
            within.update(_units(field.type))
        for unit in ("s", "ms", "ns"):
            if unit in within & cut:
                units[field.name] = unit
    return units


def _units(type_: pa.DataType) -> Iterator[str]:
    """Yield the units of a nested type's members."""
    for place in range(type_.num_fields):
        member = type_.field(place).type
        yield from [member.unit] if pa.types.is_timestamp(member) else _units(member)


def check_units(condition: ir.Predicate, cut: Mapping[str, str]) -> None:
    """Raise if an engine cuts a time of the condition; `cut`: the units of such columns."""
    nodes = list(ir.walk(condition))
    columns = [node for node in nodes if isinstance(node, ir.BoundColumn)]
    differing = {
        column.name: cut[column.name]
        for column in columns
        if column.name in cut and not isinstance(column.type, Nanos)
    }
    if not differing or not any(map(_meets_times, nodes)):
        return
    name, unit = next(iter(differing.items()))
    times = [column for column in columns if isinstance(column.type, Timestamp)]
    is_one_unit = all(differing.get(column.name) == unit for column in times)
    if not is_one_unit or not all(_fits(node, unit) for node in nodes):
        raise UnsupportedOperation(
            f"the schema has {name!r} as timestamp[{unit}], and the engine compares times of two "
            "units in the coarser one; cast the column to microseconds, and say so in the schema"
        )


def _meets_times(node: ir.Node) -> bool:
    """Whether timestamps meet in a node."""
    match node:
        case ir.Comparison(left=left):
            return isinstance(type_of(left), Timestamp)
        case ir.InList(operand=operand):
            return isinstance(type_of(operand), Timestamp)
        case ir.Call(function=name) if name in _CHOOSING:
            return isinstance(type_of(node), Timestamp)
        case ir.Case():
            return isinstance(type_of(node), Timestamp)
    return False


def _fits(node: ir.Node, unit: str) -> bool:
    """Whether the unit holds the times of a node; of nanoseconds only columns are known to be."""
    match node:
        case ir.Literal(value=None) | ir.BoundColumn():
            return True
        case ir.Literal(type=Interval()) | ir.Now():
            return False
        case ir.Literal(value=int() as value, type=Timestamp()) if unit in _MICROS:
            return value % _MICROS[unit] == 0
        case ir.InList(values=values) if isinstance(values.type, Timestamp):
            ticks = pc.cast(values.array.drop_null(), pa.int64()).to_numpy()
            return unit in _MICROS and not np.any(ticks % _MICROS[unit])
        case ir.Literal() | ir.Call() | ir.Cast() | ir.Case():
            return unit in _MICROS or not isinstance(type_of(node), Timestamp)
    return True
