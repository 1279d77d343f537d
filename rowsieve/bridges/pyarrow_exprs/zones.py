"""Time zones in pyarrow: `local_timestamp`, `assume_timezone` and casts between zones.

In pyarrow a zone is part of a type, and decides the results of `local_timestamp` and time fields.
The type is known for a column and for a cast, so the zone is read there.

Soundness: zones are those of Arrow's kernels (`IN_ARROW`). So a condition is written only in zones
for which Arrow has the same changes, or that were read from Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.constant_values import text_at
from rowsieve.bridges.python_text import recorded
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding import zoned
from rowsieve.types.logical import LogicalType, Timestamp, type_name
from rowsieve.types.time_zones import (
    IN_ARROW,
    RepeatedTime,
    SkippedTime,
    fixed_offset,
    given_zone,
    name_in,
    shown_zone,
    zone,
)

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)
# Indexed by AssumeTimezoneOptions: raise, earliest, latest.
_AMBIGUOUS = (RepeatedTime.FAIL, RepeatedTime.EARLIER, RepeatedTime.LATER)
_NONEXISTENT = (SkippedTime.FAIL, SkippedTime.LAST_BEFORE, SkippedTime.FIRST_AFTER)
_NAMES = ("raise", "earliest", "latest")
_RULES: Mapping[str, str] = {
    rule.value: name
    for rules in (_AMBIGUOUS, _NONEXISTENT)
    for rule, name in zip(rules, _NAMES, strict=True)
}


def local_time(operand: ir.Operand, type_: LogicalType | None) -> ir.Operand:
    """Return the local time of an instant in the zone of its type."""
    if type_ != _INSTANT or not isinstance(operand, ir.Column | ir.Cast):
        shown = "NULL" if type_ is None else type_name(type_)
        raise UnsupportedOperation(
            f"the local time of {shown} is read of columns and casts, whose zone is known"
        )
    assert isinstance(type_, Timestamp)
    return zoned.local_time(_in_arrow(type_.zone), operand)


def instant(operand: ir.Operand, name: str, ambiguous: int, nonexistent: int) -> ir.Operand:
    """Read `assume_timezone` of a local time; its unit must be the microsecond."""
    rules = _AMBIGUOUS[ambiguous], _NONEXISTENT[nonexistent]
    return zoned.instant(_in_arrow(name), operand, *rules)


def relabelled(
    operand: ir.Operand, source: LogicalType | None, storage: pa.DataType
) -> ir.Operand | None:
    """Read a cast that keeps the ticks, between zones or to or from no zone; None for others."""
    if not isinstance(source, Timestamp) or not pa.types.is_timestamp(storage):
        return None
    if storage.unit != "us" or (not source.utc and storage.tz is None):
        return None
    if storage.tz is None:
        return ir.Cast(operand, _LOCAL)
    _in_arrow(storage.tz)
    return ir.Cast(operand, Timestamp(utc=True, zone=storage.tz))


def written(node: ir.Call, value: Any) -> Any:
    """Write `local_time` and `instant` of a value that is already written."""
    name = text_at(node, 0)
    plain = name_in(name, IN_ARROW)
    if plain is None or _in_arrow(plain) != name:
        raise UnsupportedOperation(
            f"Arrow changes clocks of {shown_zone(name)} at other times on this machine; use UTC"
        )
    if node.function == "local_time":
        return _pc().local_timestamp(value.cast(pa.timestamp("us", plain)))
    ambiguous, nonexistent = (_RULES.get(text_at(node, place)) for place in (2, 3))
    if ambiguous is None or nonexistent is None:
        raise UnsupportedOperation(
            f"pyarrow has no local times that are {text_at(node, 2)!r} if repeated and "
            f"{text_at(node, 3)!r} if skipped"
        )
    zoned = _pc().assume_timezone(value, plain, ambiguous=ambiguous, nonexistent=nonexistent)
    return zoned.cast(pa.timestamp("us", "UTC"))


def _pc() -> Any:
    return recorded(pc, "pc", "import pyarrow.compute as pc")


def _in_arrow(name: str) -> str:
    if fixed_offset(name) is None and name != "UTC" and "/" not in name:
        raise UnsupportedOperation(f"the time zone {name!r}; write Area/City")
    return zone(given_zone(name).name + IN_ARROW).name
