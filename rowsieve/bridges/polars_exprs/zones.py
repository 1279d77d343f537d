"""polars' time zones: `dt.convert_time_zone` and `dt.replace_time_zone`, both ways.

In polars a zone is part of a type. Our instants have none, so a conversion is read together with
the operation around it: a part of the time, its date, or the removal of the zone.

Soundness: any other operation on a value in a zone other than UTC is refused. polars' zones have no
rules after 2100 (chrono-tz).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rowsieve.bridges.base import TreeReader
from rowsieve.bridges.constant_values import text_at
from rowsieve.bridges.polars_exprs import constants
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.ir import Call, Cast, Operand
from rowsieve.types.logical import Timestamp
from rowsieve.types.time_zones import (
    UNTIL_2100,
    RepeatedTime,
    SkippedTime,
    fixed_offset,
    given_zone,
    name_in,
    shown_zone,
    zone,
)

_AMBIGUOUS = {
    "earliest": RepeatedTime.EARLIER,
    "latest": RepeatedTime.LATER,
    "raise": RepeatedTime.FAIL,
    "null": RepeatedTime.NULL,
}
_NON_EXISTENT = {"Raise": SkippedTime.FAIL, "Null": SkippedTime.NULL}


def local_argument(reader: TreeReader[Any], node: Any) -> Operand:
    """Read the argument of a part of a time: the local time of a conversion, or the value."""
    return _local_time(reader, node) or reader.operand(node)


def converted(reader: TreeReader[Any], options: Any, inputs: Sequence[Any]) -> Operand:
    """Read `convert_time_zone("UTC")`, also after `replace_time_zone(zone)`."""
    if _name(options) != "UTC":
        raise UnsupportedOperation(
            "convert_time_zone to another zone than UTC is read before a part of the time, dt.date "
            "or replace_time_zone(None) only"
        )
    function, replacement, below = constants.called(inputs[0])
    if function != "TemporalExpr.ReplaceTimeZone" or replacement[0] is None:
        return _moment(reader, inputs[0], utc=True)
    (name, non_existent), (inner, ambiguous) = replacement, below
    rule = constants.literal_of(constants.single(ambiguous)[1]).value
    repeated, skipped = _AMBIGUOUS.get(str(rule)), _NON_EXISTENT[non_existent]
    if repeated is None:
        raise UnsupportedOperation("ReplaceTimeZone with a column that says which of two it is")
    if {repeated.value, skipped.value} == {"null", "fail"}:
        raise UnsupportedOperation("ReplaceTimeZone that is NULL in one case and fails in another")
    return zoned.instant(_name(name), _moment(reader, inner, utc=False), repeated, skipped)


def replaced(reader: TreeReader[Any], options: Any, inputs: Sequence[Any]) -> Operand:
    """Read `replace_time_zone(None)`, also after `convert_time_zone(zone)`."""
    if options[0] is not None:
        raise UnsupportedOperation(
            "ReplaceTimeZone gives a type with a zone; put convert_time_zone('UTC') behind it"
        )
    return _local_time(reader, inputs[0]) or _moment(reader, inputs[0], utc=False)


def written(node: Call, value: Any) -> Any:
    """Write `local_time`, `instant` and `try_instant` of a value that is already written."""
    name = text_at(node, 0)
    plain = name_in(name, UNTIL_2100)
    if plain is None:
        raise UnsupportedOperation(
            f"polars changes clocks of {shown_zone(name)} at other times; use UTC"
        )
    if fixed_offset(name) is not None:
        raise UnsupportedOperation(f"polars does not accept the offset {name} as a time zone")
    if node.function == "local_time":
        return value.dt.convert_time_zone(plain).dt.replace_time_zone(None)
    rules = text_at(node, 2), text_at(node, 3)
    ambiguous = {rule.value: theirs for theirs, rule in _AMBIGUOUS.items()}.get(rules[0])
    missing = {rule.value: theirs for theirs, rule in _NON_EXISTENT.items()}.get(rules[1])
    if not ambiguous or not missing or (node.function == "try_instant" and "fail" in rules):
        raise UnsupportedOperation(
            f"polars has no local times that are {rules[0]!r} if repeated, {rules[1]!r} if skipped"
        )
    zoned = value.dt.replace_time_zone(plain, ambiguous=ambiguous, non_existent=missing.lower())
    return zoned.dt.convert_time_zone("UTC")


def _local_time(reader: TreeReader[Any], node: Any) -> Operand | None:
    """Read the local time of a conversion to a zone; None for other nodes."""
    function, name, inputs = constants.called(node)
    if function != "TemporalExpr.ConvertTimeZone":
        return None
    return zoned.local_time(_name(name), _moment(reader, inputs[0], utc=True))


def _name(value: Any) -> str:
    name = value.get("inner") if isinstance(value, dict) else value
    if not isinstance(name, str) or fixed_offset(name) is not None:
        raise UnsupportedOperation(
            f"the time zone {name!r} is not read; write Area/City, as Europe/Berlin"
        )
    return zone(given_zone(name).name + UNTIL_2100).name if name != "UTC" else name


def _moment(reader: TreeReader[Any], node: Any, *, utc: bool) -> Operand:
    """Read a time as an instant or as a local time; one without a zone is in UTC."""
    operand = reader.operand(node)
    type_ = reader.type_of(operand)
    if not isinstance(type_, Timestamp):
        raise UnsupportedOperation("a time zone of a value that is not a timestamp")
    return operand if type_.utc is utc else Cast(operand, Timestamp(utc=utc))
