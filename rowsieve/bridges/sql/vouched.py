"""What each engine's SQL is known to mean as we do: what may be written as EXACT.

`to_sql` writes whatever reads back as the same tree; an engine may still mean something else by it.
Here is a row per function, with the dialects in which it gives the same values and under which
condition, and per dialect the casts that do. Soundness: what no row vouches for is refused, and
takes its whole condition with it; a row stands for rows of awkward data that came out the same in
that engine (trino was not at hand: for its documents, its own tests, and Velox's functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rowsieve.bridges.sql.regexes import Flavour, from_re2
from rowsieve.bridges.sql.zones import is_proved
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    List,
    LogicalType,
    String,
    Timestamp,
)

EVERY = frozenset({"postgres", "spark", "datafusion", "duckdb", "trino"})
UNITS = frozenset({"second", "minute", "hour", "day", "week", "month", "quarter", "year"})
MORE_PARTS = frozenset({"dow", "isodow", "isoyear", "whole_second"})
PARTS = frozenset({"year", "quarter", "month", "day", "hour", "minute", "doy", "week"})
_LARGEST = 2**31
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Use:
    """One call, the types of its arguments and of its result."""

    call: Call
    types: Sequence[LogicalType]
    result: LogicalType

    @property
    def constants(self) -> list[object]:
        """The arguments after the first; what is no constant is None."""
        rest = self.call.arguments[1:]
        return [item.value if isinstance(item, Literal) else None for item in rest]

    @property
    def numbers(self) -> list[int]:
        """The same as whole numbers; what is none is far below 0."""
        return [value if type(value) is int else -(10**30) for value in self.constants]

    @property
    def is_even(self) -> bool:
        """Whether all arguments have the type of the result."""
        return all(type_ == self.result for type_ in self.types)


@dataclass(frozen=True, slots=True)
class Vouched:
    """A function, the dialects that mean the same by it, and the arguments for which they do."""

    name: str
    dialects: frozenset[str]
    note: str
    holds: Callable[[Use], bool]


def _text(use: Use) -> bool:
    return all(isinstance(type_, String) for type_ in use.types)


def _constant_text(use: Use) -> bool:
    return _text(use) and all(isinstance(value, str) and value for value in use.constants)


def _given_text(use: Use) -> bool:
    return _text(use) and all(isinstance(value, str) for value in use.constants)


def _replacement(use: Use) -> bool:
    return _text(use) and isinstance(use.constants[0], str) and bool(use.constants[0])


def _counted(use: Use) -> bool:
    return isinstance(use.types[0], String) and all(0 <= n < _LARGEST for n in use.numbers)


def _from_one(use: Use) -> bool:
    return _counted(use) and use.numbers[0] >= 1


def _same(use: Use) -> bool:
    return use.is_even


def _not_floats(use: Use) -> bool:
    return use.is_even and not isinstance(use.result, Float)


def _neither(use: Use) -> bool:
    return _not_floats(use) and not isinstance(use.result, String)


def _sum(use: Use) -> bool:
    if isinstance(use.result, Decimal):
        numbers = all(isinstance(type_, Int | Decimal) for type_ in use.types)
        return numbers and use.result.precision < _MOST_DIGITS
    return isinstance(use.result, Int | Float) and use.is_even


def _steady_sum(use: Use) -> bool:
    if not isinstance(use.result, Float):
        return _sum(use)
    values = [item.value for item in use.call.arguments if isinstance(item, Literal)]
    steady = any(isinstance(v, float) and v != 0 and math.isfinite(v) for v in values)
    return steady and use.is_even


def _no_float_sum(use: Use) -> bool:
    return not isinstance(use.result, Float) and _sum(use)


def _constant_divisor(use: Use) -> bool:
    divisor = use.constants[0]
    whole = isinstance(use.result, Int) and type(divisor) is int and divisor not in (0, -1)
    return whole and use.is_even


def _floats(use: Use) -> bool:
    return len(use.types) == 1 and isinstance(use.types[0], Float)


def _signed(use: Use) -> bool:
    return isinstance(use.result, Int | Float | Decimal) and use.is_even


def _signed_short(use: Use) -> bool:
    """Spark keeps 34 digits of a decimal whose sign it changes."""
    type_ = use.types[0]
    return _signed(use) and not (isinstance(type_, Decimal) and type_.precision > 34)


def _whole(use: Use) -> bool:
    return isinstance(use.result, Int | Decimal) and use.is_even


def _whole_not_bits(use: Use) -> bool:
    """DataFusion's optimiser makes `-(a & b)` into `-a | -b`, as if it were NOT of bits."""
    of = use.call.arguments[0]
    return _whole(use) and not (isinstance(of, Call) and of.function in ("bit_and", "bit_or"))


def _moment(type_: LogicalType) -> bool:
    return isinstance(type_, Timestamp) and not type_.utc


def _named(use: Use) -> str:
    unit = use.call.arguments[0]
    return str(unit.value).lower() if isinstance(unit, Literal) else ""


def _cut(use: Use) -> bool:
    return _named(use) in UNITS and _moment(use.types[1])


def _part(use: Use) -> bool:
    return _named(use) in PARTS and _dated(use)


def _more_parts(use: Use) -> bool:
    return _named(use) in MORE_PARTS and _dated(use)


def _seconds(use: Use) -> bool:
    return _named(use) == "whole_second" and _dated(use)


def _dated(use: Use) -> bool:
    clock = _named(use) in ("hour", "minute", "whole_second")
    return _moment(use.types[1]) or (isinstance(use.types[1], Date) and not clock)


def _moved(use: Use) -> bool:
    return _moment(use.types[0]) and all(abs(n) < _LARGEST * 10**6 for n in use.numbers)


def _days(use: Use) -> bool:
    return all(isinstance(type_, Date) or _moment(type_) for type_ in use.types)


def _clock(use: Use) -> bool:
    return all(map(_moment, use.types))


def _in_zone(dialect: str) -> Callable[[Use], bool]:
    return lambda use: is_proved(use.call, dialect)


def _filled(use: Use) -> bool:
    return isinstance(use.types[0], String) and None not in use.constants


def _bits(use: Use) -> bool:
    return all(type_ in (Int(32), Int(64)) for type_ in use.types)


def _shifted(use: Use) -> bool:
    return use.types[0] == Int(64) and all(0 <= n < 64 for n in use.numbers)


def _list(use: Use) -> bool:
    return isinstance(use.types[0], List)


def _place(use: Use) -> bool:
    return _list(use) and 1 <= use.numbers[0] < _LARGEST


def _reads_back(flavour: Flavour) -> Callable[[Use], bool]:
    """A pattern that the dialect's own flavour writes."""

    def holds(use: Use) -> bool:
        try:
            from_re2(str(use.constants[0]), flavour)
        except ValueError:
            return False
        return len(use.constants) == 1

    return holds


_PATTERN = "a pattern of constructs that its flavour shares with RE2"
_SAME = "arguments of one type"
_SUM = "numbers of one type; decimals of fewer than 38 digits in the result"
_STEADY = f"{_SUM}; floats beside a finite constant other than 0, because NaN keeps its sign"
_NO_FLOATS = f"{_SUM}; not of floats, which overflow in another way there"
_OWN = frozenset({"duckdb", "datafusion", "spark"})
_PROVED = _OWN | {"postgres"}
_IEEE = frozenset({"duckdb", "trino"})
_FAIL = frozenset({"spark", "postgres"})

_AREA = "Area/City or UTC"
_ZONED = (
    *(("local_time", dialect, _AREA) for dialect in ("postgres", "duckdb", "datafusion")),
    *(("instant", dialect, f"{_AREA}, the later of two") for dialect in ("postgres", "duckdb")),
    *(("zoned_trunc", dialect, f"{_AREA}, its own rules") for dialect in ("postgres", "duckdb")),
    ("local_time", "spark", "as part of convert_timezone"),
    ("instant", "spark", "as part of from_utc_timestamp and to_utc_timestamp"),
)

CALLS: tuple[Vouched, ...] = (
    *(Vouched(name, _IEEE, _SUM, _sum) for name in ("add", "subtract", "multiply")),
    *(
        Vouched(name, frozenset({"datafusion"}), _STEADY, _steady_sum)
        for name in ("add", "subtract", "multiply")
    ),
    *(Vouched(name, _FAIL, _NO_FLOATS, _no_float_sum) for name in ("add", "subtract", "multiply")),
    Vouched(
        "divide",
        frozenset({"postgres", "trino"}),
        "of whole numbers by a constant other than 0 and -1",
        _constant_divisor,
    ),
    Vouched(
        "modulo",
        EVERY,
        "of whole numbers by a constant other than 0 and -1",
        _constant_divisor,
    ),
    Vouched("negate", EVERY - {"datafusion", "spark"}, "of numbers", _signed),
    Vouched("negate", frozenset({"spark"}), "of numbers, decimals up to 34 digits", _signed_short),
    Vouched(
        "negate",
        frozenset({"datafusion"}),
        "of whole numbers and decimals, not of bits",
        _whole_not_bits,
    ),
    Vouched("abs", EVERY - {"datafusion", "spark"}, "of numbers", _signed),
    Vouched("abs", frozenset({"spark"}), "of numbers, decimals up to 34 digits", _signed_short),
    Vouched("abs", frozenset({"datafusion"}), "of floats", _floats),
    *(Vouched(name, EVERY, "of floats", _floats) for name in ("floor", "ceil")),
    Vouched("round", _PROVED, "of floats, without digits; trino's end at 2^63", _floats),
    Vouched("length", EVERY, "of text", _text),
    *(
        Vouched(name, _OWN, "of text; postgres has the letters of a locale", _text)
        for name in ("lower", "upper")
    ),
    *(Vouched(name, _PROVED, "of text", _text) for name in ("bit_length", "ascii")),
    *(Vouched(name, EVERY, "of text", _text) for name in ("octet_length", "md5", "sha256_hex")),
    *(Vouched(name, EVERY, "with constants", _filled) for name in ("lpad", "rpad")),
    Vouched("repeat", _PROVED, "with constants", _filled),
    *(Vouched(name, _PROVED, "with constants", _filled) for name in ("split_part", "translate")),
    Vouched("concat_ws", _PROVED, "of text", _text),
    *(Vouched(name, EVERY, "of floats", _floats) for name in ("sqrt", "sign", "is_nan")),
    *(
        Vouched(name, EVERY - {"postgres"}, "of floats; postgres has other digits", _floats)
        for name in ("degrees", "radians")
    ),
    *(Vouched(f"bit_{name}", EVERY, "of signed numbers", _bits) for name in ("and", "or", "xor")),
    *(Vouched(f"shift_{name}", _PROVED, "by a constant", _shifted) for name in ("left", "right")),
    Vouched("hex_digits", _PROVED, "of signed numbers of 32 or 64 bits", _bits),
    Vouched("last_day", EVERY, "of dates and timestamps without a time zone", _days),
    Vouched("days_between", EVERY, "of dates and timestamps without a time zone", _days),
    Vouched("epoch_us", _PROVED, "of timestamps without a time zone", _clock),
    Vouched("concat_strict", EVERY, "of text", _text),
    Vouched("concat", _PROVED - {"spark"}, "of text", _text),
    Vouched("replace", EVERY, "of text, by a constant that is not empty", _replacement),
    *(
        Vouched(name, EVERY - {"trino"}, "of text; trino trims other spaces, too", _constant_text)
        for name in ("trim", "ltrim", "rtrim")
    ),
    Vouched("left", EVERY, "a constant count of 0 or more", _counted),
    Vouched("right", EVERY - {"trino"}, "a constant count of 0 or more", _counted),
    Vouched("substr", EVERY, "a constant start of 1 or more, a constant count", _from_one),
    Vouched("position", EVERY, "of a constant that is not empty", _constant_text),
    Vouched("starts_with", EVERY, "with a constant", _given_text),
    *(Vouched(name, EVERY, "with a constant", _given_text) for name in ("ends_with", "contains")),
    *(
        Vouched("regex_matches", frozenset({each.value}), _PATTERN, _reads_back(each))
        for each in Flavour
    ),
    Vouched("reverse", EVERY - {"duckdb"}, "of text; duckdb keeps marks with letters", _text),
    Vouched("coalesce", EVERY, _SAME, _same),
    Vouched("nullif", EVERY, f"{_SAME}, not floats", _not_floats),
    *(
        Vouched(name, _OWN, f"{_SAME}, not floats; trino's are NULL", _not_floats)
        for name in ("greatest", "least")
    ),
    *(
        Vouched(name, frozenset({"postgres"}), f"{_SAME}, not floats or text", _neither)
        for name in ("greatest", "least")
    ),
    *(
        Vouched(name, frozenset({dialect}), note, _in_zone(dialect))
        for name, dialect, note in _ZONED
    ),
    Vouched("date_trunc", EVERY, "of timestamps without a time zone; the units in UNITS", _cut),
    Vouched("extract", EVERY, "of dates and timestamps without a time zone; see PARTS", _part),
    Vouched("extract", _PROVED, "of dates and timestamps without a time zone", _more_parts),
    Vouched("extract", frozenset({"trino"}), "whole seconds of timestamps", _seconds),
    *(
        Vouched(name, _PROVED, "of timestamps without a time zone", _moved)
        for name in ("add_interval", "shift", "shift_timestamp")
    ),
    Vouched("list_length", EVERY, "of a list", _list),
    Vouched("list_element", EVERY - {"trino"}, "a constant place from 1", _place),
)

_EXACT_CASTS = frozenset(
    {
        ("Int", "Int"),
        ("Int", "Float"),
        ("Int", "Decimal"),
        ("Int", "String"),
        ("Float", "Float"),
        ("Date", "Timestamp"),
        ("Timestamp", "Date"),
    }
)
CASTS: Mapping[str, frozenset[tuple[str, str]]] = {
    name: _EXACT_CASTS | ({("Date", "String")} if name in ("duckdb", "datafusion") else set())
    for name in EVERY
}


def doubt(use: Use, dialect: str) -> str:
    """Why the dialect may mean something else by the call; empty if it means the same."""
    name = use.call.function
    rows = [row for row in CALLS if row.name == name]
    spoken = [row for row in rows if dialect in row.dialects]
    if any(row.holds(use) for row in spoken):
        return ""
    if spoken:
        return f"{name} means the same in {dialect} only {spoken[0].note}"
    note = f" ({rows[0].note})" if rows else ""
    return f"{name} may mean something else in {dialect}{note}"


_NARROW = frozenset(
    {
        "extract",
        "length",
        "octet_length",
        "bit_length",
        "ascii",
        "position",
        "list_length",
        "days_between",
        "floor",
        "ceil",
    }
)


def is_narrow(operand: Operand) -> bool:
    """Whether engines give this function, a 64-bit number here, 32 bits."""
    return isinstance(operand, Call) and operand.function in _NARROW
