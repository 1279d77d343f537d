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
    has_rules,
    zone,
)

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)
_AMBIGUOUS = {
    "earliest": RepeatedTime.EARLIER,
    "latest": RepeatedTime.LATER,
    "raise": RepeatedTime.FAIL,
    "null": RepeatedTime.NULL,
}
_NON_EXISTENT = {"Raise": SkippedTime.FAIL, "Null": SkippedTime.NULL}
_CONVERT, _REPLACE = "ConvertTimeZone", "ReplaceTimeZone"


def local_argument(reader: TreeReader[Any], node: Any) -> Operand:
    """Read the argument of a part of a time: the local time of a conversion, or the value."""
    found = _temporal(node, _CONVERT)
    if found is None:
        return reader.operand(node)
    name, (inner, *_) = found
    return zoned.local_time(_name(name), _instant(reader, inner))


def converted(reader: TreeReader[Any], options: Any, inputs: Sequence[Any]) -> Operand:
    """Read `convert_time_zone("UTC")`, also after `replace_time_zone(zone)`."""
    if _name(options) != "UTC":
        raise UnsupportedOperation(
            "convert_time_zone to another zone than UTC is read before a part of the time, dt.date "
            "or replace_time_zone(None) only"
        )
    found = _temporal(inputs[0], _REPLACE)
    if found is None or found[0][0] is None:
        return _instant(reader, inputs[0])
    (name, non_existent), (inner, ambiguous) = found
    rule = constants.literal_of(constants.single(ambiguous)[1]).value
    repeated, skipped = _AMBIGUOUS.get(str(rule)), _NON_EXISTENT[non_existent]
    if repeated is None:
        raise UnsupportedOperation("ReplaceTimeZone with a column that says which of two it is")
    if {repeated.value, skipped.value} == {"null", "fail"}:
        raise UnsupportedOperation("ReplaceTimeZone that is NULL in one case and fails in another")
    return zoned.instant(_name(name), _local(reader, inner), repeated, skipped)


def replaced(reader: TreeReader[Any], options: Any, inputs: Sequence[Any]) -> Operand:
    """Read `replace_time_zone(None)`, also after `convert_time_zone(zone)`."""
    if options[0] is not None:
        raise UnsupportedOperation(
            "ReplaceTimeZone gives a type with a zone; put convert_time_zone('UTC') behind it"
        )
    found = _temporal(inputs[0], _CONVERT)
    if found is None:
        return _local(reader, inputs[0])
    name, (inner, *_) = found
    return zoned.local_time(_name(name), _instant(reader, inner))


def written(node: Call, value: Any) -> Any:
    """Write `local_time`, `instant` and `try_instant` of a value that is already written."""
    name = text_at(node, 0)
    if has_rules(zone(name)):
        raise UnsupportedOperation(f"{name} has no rules after 2100 in polars")
    if fixed_offset(name) is not None:
        raise UnsupportedOperation(f"polars does not accept the offset {name} as a time zone")
    plain = name.removesuffix(UNTIL_2100)
    if node.function == "local_time":
        return value.dt.convert_time_zone(plain).dt.replace_time_zone(None)
    rules = text_at(node, 2), text_at(node, 3)
    ambiguous = [theirs for theirs, ours in _AMBIGUOUS.items() if ours.value == rules[0]]
    missing = [theirs for theirs, ours in _NON_EXISTENT.items() if ours.value == rules[1]]
    quiet = node.function == "try_instant"
    if not ambiguous or not missing or (quiet and "fail" in rules):
        raise UnsupportedOperation(f"a local time by the rules {rules[0]!r} and {rules[1]!r}")
    made = value.dt.replace_time_zone(
        plain, ambiguous=ambiguous[0], non_existent=missing[0].lower()
    )
    return made.dt.convert_time_zone("UTC")


def _temporal(node: Any, name: str) -> tuple[Any, Sequence[Any]] | None:
    """Return options and arguments of a call of this time function; None for other nodes."""
    kind, content = constants.single(node)
    if kind != "Function":
        return None
    family, detail = constants.single(content["function"])
    if family != "TemporalExpr" or constants.single(detail)[0] != name:
        return None
    return constants.single(detail)[1], content["input"]


def _name(given: Any) -> str:
    name = given.get("inner") if isinstance(given, dict) else given
    if not isinstance(name, str) or fixed_offset(name) is not None:
        raise UnsupportedOperation(f"the time zone {name!r}")
    return zone(name + UNTIL_2100).name if name != "UTC" else name


def _instant(reader: TreeReader[Any], node: Any) -> Operand:
    """Read the argument of a conversion, where a time without a zone is in UTC."""
    operand = reader.operand(node)
    return _typed(reader, operand, _LOCAL, _INSTANT)


def _local(reader: TreeReader[Any], node: Any) -> Operand:
    operand = reader.operand(node)
    return _typed(reader, operand, _INSTANT, _LOCAL)


def _typed(
    reader: TreeReader[Any], operand: Operand, other: Timestamp, wanted: Timestamp
) -> Operand:
    type_ = reader.type_of(operand)
    if type_ == wanted:
        return operand
    if type_ != other:
        raise UnsupportedOperation("a time zone of a value that is not a timestamp")
    return Cast(operand, wanted)
