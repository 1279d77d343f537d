"""Arguments for which text that is read gives the engine's values, beyond those translated to it.

A translation to an engine needs its failures too, and an instant the session's zone; a text of
`where=` needs the values, in the session that it names. Each row agreed on edge values of its types
in `tests/bridges/against_engines`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rowsieve.bridges.differences.quotients import is_short_quotient
from rowsieve.bridges.functions.arguments import (
    COMMON_PARTS,
    MORE_PARTS,
    UNITS,
    Arguments,
    TypedCall,
    of_text,
    one_type,
    whole_numbers,
)
from rowsieve.predicate.functions.numbers.decimals import int_as_decimal
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
)

_TIMES = (Date, Timestamp, Nanos)
_ROUNDED = (Int, Decimal, Float)
_OF_DAYS = frozenset({"day", "week", "month", "quarter", "year"})


def _when(text: str, holds: Callable[[TypedCall], bool]) -> Arguments:
    return Arguments(text, holds)


def _share_decimal(types: Sequence[LogicalType]) -> bool:
    """Whether one decimal type holds all values; the engine computes in float64 otherwise."""
    numbers = [int_as_decimal(each) if isinstance(each, Int) else each for each in types]
    decimals = [each for each in numbers if isinstance(each, Decimal)]
    if len(decimals) < len(numbers) or not any(isinstance(each, Decimal) for each in types):
        return True
    whole = max(each.precision - each.scale for each in decimals)
    return whole + max(each.scale for each in decimals) <= 38


_any = _when("any arguments", lambda _call: True)
_decimals = _when(
    "decimals", lambda call: all(isinstance(type_, Decimal | Int) for type_ in call.types)
)
_numbers = _when("numbers", lambda call: isinstance(call.types[0], _ROUNDED))
_counted_text = _when(
    "text and a whole number",
    lambda call: isinstance(call.types[0], String) and isinstance(call.types[1], Int),
)
_moved = _when("times that keep their type", lambda call: call.types[0] == call.result)
_short_units = _when(
    "times and units from microsecond to year",
    lambda call: (
        isinstance(call.types[1], _TIMES)
        and call.field in UNITS | {"microsecond", "millisecond"}
        and not (isinstance(call.types[1], Date) and call.field not in _OF_DAYS)
    ),
)
_parts = _when(
    "times and the fields that it has",
    lambda call: (
        isinstance(call.types[1], (*_TIMES, Time)) and call.field in COMMON_PARTS | MORE_PARTS
    ),
)
_instant = _when("instants", lambda call: isinstance(call.types[0], Timestamp | Nanos))
_of_38_digits = _when(
    "numbers whose decimals share a type of 38 digits", lambda call: _share_decimal(call.types)
)
_short = _when(
    "a decimal by a constant such as 2, 10 or 1.25",
    lambda call: isinstance(call.result, Decimal) and is_short_quotient(call.call),
)

_SHARED: Mapping[str, tuple[Arguments, ...]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "modulo", "floor", "ceil"), (_decimals,)),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), (whole_numbers,)),
    **dict.fromkeys(("shift_left", "shift_right"), (whole_numbers,)),
    **dict.fromkeys(("greatest", "least", "nullif"), (one_type,)),
    **dict.fromkeys(("add_interval", "shift", "shift_timestamp"), (_moved,)),
    **dict.fromkeys(("left", "right"), (_counted_text,)),
    **dict.fromkeys(
        ("make_date", "timestamp_seconds", "parse_timestamp", "try_parse_timestamp", "parse_date"),
        (_any,),
    ),
    **dict.fromkeys(("repeat", "list_position", "list_element", "slice", "substr"), (_any,)),
    "round": (_numbers,),
    "date_trunc": (_short_units,),
    "extract": (_parts,),
}
ANSWERS: Mapping[str, Mapping[str, tuple[Arguments, ...]]] = {
    "duckdb": {
        **_SHARED,
        **dict.fromkeys(("starts_with", "ends_with", "contains", "position"), (of_text,)),
        **dict.fromkeys(("trim", "ltrim", "rtrim", "replace"), (of_text,)),
        "divide": (
            _when(
                "whole numbers or float64",
                lambda call: (
                    call.is_of_one_type
                    and (call.result == Float(64) or isinstance(call.result, Int))
                ),
            ),
        ),
        "modulo": (_of_38_digits,),
        **dict.fromkeys(("epoch_us", "last_day"), (_instant,)),
    },
    "datafusion": {**_SHARED, "abs": (_numbers,), "epoch_us": (_instant,), "divide": (_short,)},
}
