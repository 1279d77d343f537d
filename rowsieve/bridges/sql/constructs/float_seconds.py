"""Seconds with a fraction that an engine computes in floats, by its own formula.

Each formula rounds at the same places as the engine, so the last digit is the engine's. Soundness:
the seconds since 1970 are not the nearest float of the exact number everywhere: PostgreSQL and
DataFusion round the microseconds first, and DuckDB adds an instant's microseconds to its
milliseconds.

Source: `timestamp_part_common` of PostgreSQL 18, `ICUDatePart::ExtractEpoch` of DuckDB 2.0,
`epoch` of DataFusion 55; all of it run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal as Digits
from typing import Final

from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Decimal, Float, Int

_FLOAT64: Final = Float(64)
_MICROS_US: Final = Literal(1_000_000, Int(64))
_MILLIS_US: Final = Literal(1_000, Int(64))
_MILLION: Final = Literal(1e6, _FLOAT64)
_THOUSAND: Final = Literal(1e3, _FLOAT64)


def epoch(moment: Operand) -> Operand:
    """Return the seconds since 1970: the microseconds as a float, divided."""
    return Call("divide", (_as_float(Call("epoch_us", (moment,))), _MILLION))


def epoch_by_milliseconds(moment: Operand) -> Operand:
    """Return the seconds since 1970: those of the whole milliseconds, then the microseconds."""
    micros = Call("epoch_us", (moment,))
    rest: Operand = Call("modulo", (micros, _MILLIS_US))  # below 0 before 1970
    rest = Call("modulo", (Call("add", (rest, _MILLIS_US)), _MILLIS_US))
    whole = Call("subtract", (micros, rest))
    millis = _as_float(Call("divide", (whole, _MILLIS_US)))
    return Call(
        "add",
        (Call("divide", (millis, _THOUSAND)), Call("divide", (_as_float(rest), _MILLION))),
    )


def _epoch_of_any(moment: Operand) -> Operand:
    """Return the seconds since 1970 of a date, a time or a timestamp, as `epoch`."""
    factor = Literal(Digits(1_000_000), Decimal(7, 0))
    return Call(
        "divide",
        (_as_float(Call("multiply", (Call("extract_epoch", (moment,)), factor))), _MILLION),
    )


def _second(moment: Operand) -> Operand:
    return Call("add", (_whole(moment), Call("divide", (_fraction(moment), _MILLION))))


def _millisecond(moment: Operand) -> Operand:
    whole = Call("multiply", (_whole(moment), _THOUSAND))
    return Call("add", (whole, Call("divide", (_fraction(moment), _THOUSAND))))


def _whole(moment: Operand) -> Operand:
    return _as_float(Call("extract_whole_second", (moment,)))


def _fraction(moment: Operand) -> Operand:
    """Return the microseconds of the second."""
    return _as_float(Call("modulo", (Call("extract_microsecond", (moment,)), _MICROS_US)))


def _as_float(operand: Operand) -> Operand:
    return Cast(operand, _FLOAT64)


DATE_PARTS: Final[Mapping[str, Callable[[Operand], Operand]]] = {
    "second": _second,
    "millisecond": _millisecond,
    "epoch": _epoch_of_any,
}
"""Fields that are a numeric in PostgreSQL's EXTRACT and a float in its date_part."""
