"""Values of the oracle: how they compare, convert, add up and are spelled, in plain Python."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate.ir import ValueSet
from rowsieve.predicate.semantics import (
    DigitRounding,
    FarYears,
    Semantics,
    TextReading,
    TimestampText,
)
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from tests.oracle_texts import named, reads_one

DAY_US = 86_400_000_000
EPOCH = datetime.datetime(1970, 1, 1)


class Failed(Exception):
    """An operand has no value on this row."""


@dataclass(frozen=True)
class Cell:
    """A value with its type; the type of bare text and NULL is None."""

    type: LogicalType | None
    value: Any


def adapted(cell: Cell, type_: LogicalType | None) -> Cell:
    """Bare text beside a value of the type, read as one; numbers keep all their digits."""
    if cell.type is not None or type_ is None or cell.value is None or isinstance(type_, String):
        return cell
    if isinstance(type_, Int | Decimal):
        return Cell(Decimal(38, 0), decimal.Decimal(cell.value))
    return Cell(type_, cast_text(cell.value, type_))


def nan_ordered(value: float, *, signed: bool) -> tuple[int, float]:
    """NaN above all numbers, or with `signed` on the side that its sign bit says."""
    if not math.isnan(value):
        return 0, value
    return (-1 if signed and math.copysign(1, value) < 0 else 1), 0.0


def comparable(a: Cell, b: Cell) -> tuple[Any, Any]:
    """Two values that Python compares as SQL does."""
    types = (a.type, b.type)
    if any(isinstance(type_, Float) for type_ in types):
        return float(a.value), float(b.value)
    if any(isinstance(type_, Int | Decimal) for type_ in types):
        return Fraction(a.value), Fraction(b.value)
    if Date() in types and any(isinstance(type_, Timestamp) for type_ in types):
        days = [isinstance(type_, Date) for type_ in types]
        x, y = (v * DAY_US if day else v for v, day in zip((a.value, b.value), days, strict=True))
        return x, y
    if isinstance(a.value, str):
        return a.value.encode(), b.value.encode()
    return a.value, b.value


def member_cell(member: pa.Scalar, values: ValueSet) -> Cell:
    """A member of an IN list with the type that its array says; bare text has none."""
    type_ = member.type
    value = member.value if pa.types.is_temporal(type_) and member.is_valid else member.as_py()
    if pa.types.is_string(type_):
        return Cell(values.type, value)
    if pa.types.is_boolean(type_):
        return Cell(Bool(), value)
    if pa.types.is_integer(type_):
        return Cell(Int(64), value)
    if pa.types.is_floating(type_):
        return Cell(Float(64), value)
    if pa.types.is_decimal(type_):
        return Cell(Decimal(type_.precision, type_.scale), value)
    if pa.types.is_date(type_):
        return Cell(Date(), value)
    if pa.types.is_timestamp(type_):
        return Cell(Timestamp(type_.tz is not None), value)
    if pa.types.is_time(type_):
        return Cell(Time(), value)
    return Cell(Binary(), value)


def limits(type_: LogicalType) -> tuple[int, int]:
    assert isinstance(type_, Int)
    if type_.signed:
        return -(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1
    return 0, 2**type_.bits - 1


def half_away(value: Fraction) -> int:
    """The nearest whole number, halves away from zero."""
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


def fitted_decimal(value: Fraction, type_: Decimal) -> decimal.Decimal:
    point = half_away(value * 10**type_.scale)
    if abs(point) >= 10**type_.precision:
        raise Failed
    with decimal.localcontext(prec=80):
        return decimal.Decimal(point).scaleb(-type_.scale)


def rounded_float(value: float, bits: int, *, overflow: bool = False) -> float:
    """The value in the width; a cast that overflows fails."""
    if bits == 64:
        return value
    with np.errstate(over="ignore"):
        narrow = float(np.float32(value))
    if overflow and math.isinf(narrow) and not math.isinf(value):
        raise Failed
    return narrow


def is_out_of_range(function: str, values: list[float], result: float) -> bool:
    """Whether a result of finite numbers is infinite, or 0 although none of them is."""
    if math.isinf(result):
        return all(map(math.isfinite, values))
    if result != 0 or 0 in values:
        return False
    return function == "multiply" or (function == "divide" and math.isfinite(values[1]))


def float_arithmetic(function: str, values: list[float]) -> float:
    a, b = np.float64(values[0]), np.float64(values[-1])
    results: dict[str, Callable[[], Any]] = {
        "add": lambda: a + b,
        "subtract": lambda: a - b,
        "multiply": lambda: a * b,
        "divide": lambda: a / b,
        "modulo": lambda: np.fmod(a, b),
        "negate": lambda: -a,
        "abs": lambda: abs(a),
    }
    with np.errstate(all="ignore"):
        return float(results[function]())


def exact_arithmetic(function: str, values: list[Fraction], type_: LogicalType) -> Fraction:
    a, b = values[0], values[-1]
    match function:
        case "add":
            return a + b
        case "subtract":
            return a - b
        case "multiply":
            return a * b
        case "divide":
            return a / b if isinstance(type_, Decimal) else Fraction(math.trunc(a / b))
        case "modulo":
            return a - math.trunc(a / b) * b
        case "negate":
            return -a
        case _:
            return abs(a)


def whole_number(function: str, value: Any, type_: LogicalType) -> Any:
    """The floor or the ceiling, in the result type."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        return float(math.floor(value) if function == "floor" else math.ceil(value))
    exact = math.floor(value) if function == "floor" else math.ceil(value)
    return fitted_decimal(Fraction(exact), type_) if isinstance(type_, Decimal) else exact


def float_as_decimal(
    value: float, source: LogicalType, target: Decimal, semantics: Semantics
) -> decimal.Decimal:
    """The decimal of a float: of its text, or of the float times a power of ten."""
    match semantics.digit_rounding:
        case DigitRounding.DECIMAL:
            return fitted_decimal(Fraction(shortest(value, source)), target)
        case DigitRounding.WIDE_DECIMAL:
            return fitted_decimal(Fraction(shortest(value, Float(64))), target)
        case DigitRounding.SHORT_DECIMAL:
            digits = 6 if source == Float(32) else 15
            return fitted_decimal(Fraction(f"{value:.{digits}g}"), target)
        case DigitRounding.SCALED_FINITE:
            factor = float(10**target.scale)
        case _:
            factor = math.prod(_squares(target.scale))
    scaled = value * factor
    if math.isinf(scaled):
        raise Failed
    return fitted_decimal(half_away(Fraction(scaled)) / Fraction(10) ** target.scale, target)


def _squares(exponent: int) -> list[float]:
    """The powers of ten that are multiplied for a power of ten, from the smallest on."""
    powers = [float(10 ** (1 << place)) for place in range(5)]
    powers.append(powers[4] * powers[4])
    return [1.0, *(power for place, power in enumerate(powers) if exponent >> place & 1)]


def shortest(value: float, type_: LogicalType) -> str:
    """The shortest text that reads back as the same float of its width."""
    if type_ == Float(32):
        return str(np.float32(value))
    return repr(value)


def like(text: str, pattern: str, escape: str | None, *, ignore_case: bool) -> bool:
    """By recursion over the pattern."""
    if ignore_case:
        lowered = escape.lower() if escape else escape
        return like(text.lower(), pattern.lower(), lowered, ignore_case=False)

    def matches(text: str, pattern: str) -> bool:
        if not pattern:
            return not text
        head, rest = pattern[0], pattern[1:]
        if head == escape:
            return bool(text) and text[0] == rest[0] and matches(text[1:], rest[1:])
        if head == "%":
            return any(matches(text[i:], rest) for i in range(len(text) + 1))
        return bool(text) and head in ("_", text[0]) and matches(text[1:], rest)

    return matches(text, pattern)


def substr(text: str, start: int, count: int | None = None) -> str:
    if count is not None and count < 0:
        raise Failed
    stop = len(text) + 1 if count is None else start + count
    return "".join(c for i, c in enumerate(text, 1) if start <= i < stop)


TEXT_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "starts_with": str.startswith,
    "substr": substr,
    "concat_strict": lambda *parts: "".join(parts),
}


def moment(micros: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=micros)


def truncated(unit: str, micros: int) -> int:
    """The start of the unit that the moment lies in; years 1 to 9999."""
    at = moment(micros)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "millisecond":
            start = at.replace(microsecond=at.microsecond // 1000 * 1000)
        case "second":
            start = at.replace(microsecond=0)
        case "minute":
            start = at.replace(second=0, microsecond=0)
        case "hour":
            start = at.replace(minute=0, second=0, microsecond=0)
        case "day":
            start = midnight
        case "week":
            start = midnight - datetime.timedelta(days=midnight.weekday())
        case "month":
            start = midnight.replace(day=1)
        case "quarter":
            start = midnight.replace(month=(at.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            start = midnight.replace(month=1, day=1)
        case "decade":
            start = midnight.replace(year=at.year // 10 * 10, month=1, day=1)
        case "century":
            start = midnight.replace(year=(at.year - 1) // 100 * 100 + 1, month=1, day=1)
        case "millennium":
            start = midnight.replace(year=(at.year - 1) // 1000 * 1000 + 1, month=1, day=1)
        case _:
            start = at
    return (start - EPOCH) // datetime.timedelta(microseconds=1)


def extracted(field: str, type_: LogicalType, value: int) -> Any:
    at = moment(value * DAY_US if isinstance(type_, Date) else value)
    first = at.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    micros = at.second * 1_000_000 + at.microsecond
    seconds = decimal.Decimal(value * 86_400 if isinstance(type_, Date) else value)
    return {
        "year": at.year,
        "quarter": (at.month + 2) // 3,
        "month": at.month,
        "week": at.isocalendar().week,
        "day": at.day,
        "dow": at.isoweekday() % 7,
        "isodow": at.isoweekday(),
        "doy": (at - first).days + 1,
        "hour": at.hour,
        "minute": at.minute,
        "second": decimal.Decimal(micros).scaleb(-6),
        "millisecond": micros // 1000,
        "microsecond": micros,
        "epoch": seconds if isinstance(type_, Date) else seconds.scaleb(-6),
    }[field]


def spelled(
    value: Any,
    type_: LogicalType,
    style: TimestampText,
    years: FarYears = FarYears.FAIL,
    suffix: str = "",
) -> str:
    """The value as text, and what stands behind it."""
    if isinstance(type_, Date | Timestamp) and years is not FarYears.FAIL:
        day = value if isinstance(type_, Date) else value // DAY_US
        if not -719_162 <= day <= 2_932_896:
            return _far(value, type_, style, years, suffix)
    return _spelled(value, type_, style) + suffix


def _far(
    value: int, type_: Date | Timestamp, style: TimestampText, years: FarYears, suffix: str
) -> str:
    """A value of a far year: its text 400 years at a time nearer, with the year put right."""
    dated = isinstance(type_, Date)
    infinite = 2**31 - 1 if dated else 2**63 - 1
    if years is FarYears.BC_BRACKETS and abs(value) == infinite:
        return "infinity" if value > 0 else "-infinity"
    if years is FarYears.BC_BRACKETS and not dated and value < -106_751_991 * DAY_US:
        raise Failed
    cycle = 146_097 * (1 if dated else DAY_US)
    cycles = (value - (10_957 if dated else 10_957 * DAY_US)) // cycle
    near = _spelled(value - cycles * cycle, type_, style)
    year = int(near[:4]) + 400 * cycles
    rest = near[4:10], near[10:] + suffix
    if years is FarYears.SIGNED_SHORT and not -262_143 <= year <= 262_142:
        raise Failed
    if years in (FarYears.SIGNED, FarYears.SIGNED_SHORT):
        sign = "+" if year > 9999 else "-" if year < 0 else ""
        return f"{sign}{abs(year):04}{''.join(rest)}"
    if years is FarYears.BC_SUFFIX:
        day = value if dated else value // DAY_US
        if day < -2_440_588 or year > 5_874_897:
            raise Failed
        return f"{year if year > 0 else 1 - year:04}{''.join(rest)}{' BC' if year < 1 else ''}"
    return f"{year if year > 0 else 1 - year:04}{rest[0]}{' (BC)' if year < 1 else ''}{rest[1]}"


def _spelled(value: Any, type_: LogicalType, style: TimestampText) -> str:
    match type_:
        case Bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case Date():
            return str(_in_calendar(value * DAY_US).date())
        case Time():
            text = str(moment(value).time())
            return text.rstrip("0") if "." in text else text
        case Uuid():
            return str(uuid.UUID(bytes=value))
        case Timestamp(utc=utc):
            at = _in_calendar(value)
            if style is TimestampText.RFC_3339:
                digits = "auto" if not at.microsecond or at.microsecond % 1000 else "milliseconds"
                return at.isoformat("T", digits) + ("Z" if utc else "")
            text = str(at)
            short = text.rstrip("0") if "." in text else text
            return short + ("+00" if utc and style is not TimestampText.LOCAL else "")
        case _:
            return str(value)


def _in_calendar(micros: int) -> datetime.datetime:
    try:
        return moment(micros)
    except OverflowError:
        raise Failed from None


def cast_text(text: str, type_: LogicalType, reading: TextReading = TextReading.STRICT) -> Any:
    """The value that text spells, or `Failed`."""
    if (name := named(type_, reading)) is not None:
        found = reads_one(text, name, reading)
        if found is None:
            raise Failed
        return found
    bare = text.strip(" \t\n\r\f\v")
    number = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,6})?", bare, re.I)
    match type_:
        case String():
            return text
        case Bool() if bare.lower() in ("t", "true", "y", "yes", "on", "1"):
            return True
        case Bool() if bare.lower() in ("f", "false", "n", "no", "off", "0"):
            return False
        case Int() if re.fullmatch(r"[+-]?[0-9]+", bare):
            low, high = limits(type_)
            if low <= int(bare) <= high:
                return int(bare)
        case Float() if number or re.fullmatch(r"[+-]?(nan|inf|infinity)", bare, re.I):
            value = rounded_float(float(bare), type_.bits)
            if not number or not math.isinf(value):
                return value
        case Decimal() if number and not number[3]:
            return fitted_decimal(Fraction(bare), type_)
        case Date() if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", bare):
            try:
                day = datetime.date.fromisoformat(bare)
            except ValueError:
                raise Failed from None
            return (day - EPOCH.date()).days
        case Timestamp():
            return _cast_timestamp(bare, type_)
        case Time() if re.fullmatch(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?", bare):
            whole, _, fraction = bare.partition(".")
            hour, minute, second = (*map(int, whole.split(":")), 0)[:3]
            if hour < 24 and minute < 60 and second < 60:
                clock = ((hour * 60 + minute) * 60 + second) * 1_000_000
                return clock + int(fraction.ljust(6, "0"))
        case Uuid():
            plain = bare[1:-1] if bare.startswith("{") and bare.endswith("}") else bare
            groups = [len(group) for group in plain.split("-")]
            if groups in ([8, 4, 4, 4, 12], [32]) and re.fullmatch("[0-9a-fA-F-]+", plain):
                return uuid.UUID(plain).bytes
        case Binary():
            return bytes.fromhex(text[2:]) if text.startswith("\\x") else text.encode()
    raise Failed


def _cast_timestamp(bare: str, type_: Timestamp) -> int:
    zone = r"\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)?" if type_.utc else ""
    clock = r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + clock + zone, bare):
        raise Failed
    offset = re.search(r"\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$", bare[10:]) if type_.utc else None
    plain = bare[: 10 + offset.start()] if offset else bare
    if "." in plain:
        plain = plain.partition(".")[0] + "." + plain.partition(".")[2].ljust(6, "0")
    try:
        at = datetime.datetime.fromisoformat(plain)
    except ValueError:
        raise Failed from None
    micros = (at - EPOCH) // datetime.timedelta(microseconds=1)
    if offset and offset[1] != "Z":
        digits = offset[1][1:].replace(":", "").ljust(4, "0")
        if int(digits[:2]) > 15 or int(digits[2:]) > 59:
            raise Failed
        east = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000_000
        micros += east if offset[1][0] == "-" else -east
    return micros


def python_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrow scalars of a row as physical values."""
    row = {}
    for name, scalar in values.items():
        temporal = pa.types.is_temporal(scalar.type) and scalar.is_valid
        row[name] = scalar.value if temporal else scalar.as_py()
    return row
