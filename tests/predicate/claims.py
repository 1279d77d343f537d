"""Sample calls for every row of the registry, and the check of what the registry claims of them.

The check draws ranges for the columns of a call, rows between their ends (interior ones and NULLs
included), and holds what the evaluator gives on each row against what the interpreter derives from
the ranges alone. It says nothing of precision, only of soundness.
"""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.abstract import AbstractColumn, AbstractValue
from rowsieve.predicate.arrays import as_mask, null_mask
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import _Evaluator
from rowsieve.predicate.functions.casts import cast_rule
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.interval_bytes import encoded
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    String,
    Time,
    Timestamp,
    Uuid,
    is_ordered,
)
from rowsieve.types.schema import Schema
from tests.strategies import DAY_US, arrow_array

D = decimal.Decimal
NUMBERS = List(Field(11, "element", Int(64)))
NAMED = Map(Field(12, "key", String(), nullable=False), Field(13, "value", Int(64)))


@dataclass(frozen=True)
class Sample:
    """An operand over columns `x` and `y` of these types; `texts`: all it draws, in order."""

    operand: ir.Operand
    x: LogicalType
    y: LogicalType | None = None
    texts: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def columns(self) -> dict[str, LogicalType]:
        return {"x": self.x} if self.y is None else {"x": self.x, "y": self.y}


X, Y = ir.Column("x"), ir.Column("y")
_INTS = (Int(8), Int(64), Int(8, signed=False), Int(64, signed=False))
_NUMBERS: tuple[LogicalType, ...] = (*_INTS, Float(32), Float(64), Decimal(4, 2), Decimal(38, 2))
_TIMES: tuple[LogicalType, ...] = (Date(), Timestamp(), Timestamp(utc=True))
_UNITS = ("hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium")
_FIELDS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "epoch")
_COUNTED_YEARS = ("isoyear", "decade", "century", "millennium")
_CLOCKS = ("hour", "minute", "second", "whole_second", "millisecond", "microsecond")
_SIGNED = (Int(8), Int(64))
_REALS = (Float(64), Int(8))
_INSTANT = Timestamp(utc=True)
ZONES = ("America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "+05:45")
_ORIGIN = ir.Literal(946_684_800_000_000, Timestamp())  # 2000-01-01
_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%Y%j %H:%M:%S", "%H")
_DAYS_FIRST = ("", "01/02/2024", "02/01/2024", "03/12/2023", "30/02/2024", "a")
_ZONED_TEXTS = (
    *("", "2013-01-05", "2013-01-05 01:00:00-09:00", "2013-01-05 02:00:00+09:00"),
    *("2013-01-05 03:00:00Z", "2013-01-06", "2013-02-30", "a"),
)
_SHIFTS = ((0, 1, 0), (0, -30, 3_600_000_000), (1, 0, 0), (-13, 2, -1), (0, 0, 0), (1, 0, 1))


def call(name: str, *arguments: Any) -> ir.Call:
    """A call whose plain values are literals."""
    return ir.Call(
        name,
        tuple(item if isinstance(item, ir.Operand) else ir.Literal(item) for item in arguments),
    )


def _binary(name: str, types: Sequence[LogicalType] = _NUMBERS) -> list[Sample]:
    found = []
    for type_ in types:
        constants: list[Any] = [2, -3, 0, 7]
        if isinstance(type_, Float):
            constants += [math.nan, math.inf, -math.inf]
        if isinstance(type_, Decimal) and type_.precision == 38 and name in _DECIMAL_PRODUCTS:
            constants = []
        if type_ == Int(64, signed=False) and name == "divide":
            constants = [2, 7, 0]
        for constant in constants:
            found += [Sample(call(name, X, constant), type_)]
            found += [Sample(call(name, constant, X), type_)]
        small = Decimal(4, 2) if isinstance(type_, Decimal) else type_
        found += [Sample(call(name, X, Y), small, small)]
        found += [Sample(call(name, X, X), small)]
    return found


_DECIMAL_PRODUCTS = ("multiply", "divide", "modulo")


def _texts(name: str, *arguments: Any) -> list[Sample]:
    return [Sample(call(name, X, *arguments), String())]


def _choices(name: str) -> list[Sample]:
    types: tuple[LogicalType, ...] = (Int(8), Float(64), String(), Decimal(4, 2), Bool())
    return [
        *(Sample(call(name, X, Y), type_, type_) for type_ in types),
        Sample(call(name, X, 3), Int(8)),
        Sample(call(name, X, X), Float(64)),
        Sample(call(name, call("divide", 1, X), Y), Int(8), Int(8)),
    ]


SAMPLES: Mapping[str, Sequence[Sample]] = {
    "add": _binary("add"),
    "subtract": _binary("subtract"),
    "multiply": _binary("multiply"),
    "divide": _binary("divide"),
    "modulo": _binary("modulo"),
    "negate": [Sample(call("negate", X), type_) for type_ in _NUMBERS],
    "abs": [Sample(call("abs", X), type_) for type_ in _NUMBERS],
    "floor": [Sample(call("floor", X), type_) for type_ in _NUMBERS],
    "ceil": [Sample(call("ceil", X), type_) for type_ in _NUMBERS],
    "round": [
        *(Sample(call("round", X), type_) for type_ in (*_NUMBERS, Decimal(38, 38))),
        *(
            Sample(call("round", X, digits), type_)
            for digits in (1, 0, -1, -2)
            for type_ in _NUMBERS
            if not isinstance(type_, Float)
        ),
        *(Sample(call("round", X, digits), Float(64)) for digits in (1, 2, 15)),
    ],
    **{name: [Sample(call(name, X), t) for t in _REALS] for name in ("sqrt", "sign")},
    **{name: [Sample(call(name, X), Float(64))] for name in ("degrees", "radians")},
    "is_nan": [Sample(call("is_nan", X), t) for t in (Float(32), Float(64))],
    **{
        name: [
            *(Sample(call(name, X, ir.Literal(c, t)), t) for t in _INTS for c in (0, 1, 6, 100)),
            *(Sample(call(name, X, Y), t, t) for t in _INTS),
            *(Sample(call(name, X, -3), t) for t in _SIGNED),
        ]
        for name in ("bit_and", "bit_or", "bit_xor")
    },
    "shift_right": [Sample(call("shift_right", X, n), t) for t in _SIGNED for n in (0, 1, 5)],
    "shift_left": [Sample(call("shift_left", X, n), Int(64)) for n in (0, 1, 40, 63)],
    "octet_length": _texts("octet_length"),
    "bit_length": _texts("bit_length"),
    "ascii": _texts("ascii"),
    "md5": _texts("md5"),
    **{name: _texts(name) for name in ("sha1_hex", "sha256_hex", "sha512_hex")},
    "substring_index": [s for n in (1, 2, -1, 0) for s in _texts("substring_index", "b", n)],
    "trunc": [Sample(call("trunc", X), Float(64))],
    "format_time": [
        *(Sample(call("format_time", X, form), Timestamp()) for form in _FORMATS),
        *(Sample(call("format_time", X, form), Date()) for form in _FORMATS[:2]),
    ],
    **{
        name: [
            *(*_texts(name, "%Y-%m-%d"), *_texts(name, "%d/%m/%Y %H:%M:%S.%f")),
            Sample(call(name, X, "%d/%m/%Y"), String(), texts=_DAYS_FIRST),
        ]
        for name in ("parse_timestamp", "try_parse_timestamp", "parse_date", "parse_instant")
    },
    "hex_digits": [Sample(call("hex_digits", X), t) for t in _SIGNED],
    "repeat": [sample for count in (-1, 0, 1, 3) for sample in _texts("repeat", count)],
    "lpad": [*_texts("lpad", 2), *_texts("lpad", 3, "xé"), *_texts("lpad", 0)],
    "rpad": [*_texts("rpad", 2), *_texts("rpad", 3, "xé"), *_texts("rpad", 0)],
    "split_part": [s for n in (1, 2, -1) for d in ("b", "a ") for s in _texts("split_part", d, n)],
    "concat_ws": [
        Sample(call("concat_ws", "-", X, Y), String(), String()),
        Sample(call("concat_ws", "", X), String()),
    ],
    "translate": [*_texts("translate", "abé", "éa"), *_texts("translate", "", "x")],
    "date_bin": [
        Sample(call("date_bin", months, micros, X, _ORIGIN), t)
        for t in _TIMES[1:]
        for months, micros in ((0, 900_000_000), (0, 2 * DAY_US + 1), (1, 0), (5, 0))
    ],
    "last_day": [Sample(call("last_day", X), t) for t in _TIMES],
    "days_between": [
        *(Sample(call("days_between", X, Y), t, t) for t in _TIMES),
        Sample(call("days_between", ir.Literal(19_000, Date()), X), Timestamp()),
    ],
    "epoch_us": [Sample(call("epoch_us", X), t) for t in _TIMES[1:]],
    "epoch_seconds": [Sample(call("epoch_seconds", X), t) for t in _TIMES[1:]],
    "timestamp_seconds": [Sample(call("timestamp_seconds", X), t) for t in _SIGNED],
    "make_date": [
        Sample(call("make_date", 2024, X, Y), Int(8), Int(8)),
        Sample(call("make_date", X, 2, Y), Int(64), Int(8)),
        Sample(call("make_date", X, 2, 28), Int(64)),
        Sample(call("make_date", 2023, 2, X), Int(8)),
        Sample(call("make_date", X, Y, 31), Int(8), Int(8)),
    ],
    "lower": _texts("lower"),
    "upper": _texts("upper"),
    "length": [*_texts("length"), Sample(call("length", X), Binary())],
    "starts_with": [
        *_texts("starts_with", "a"),
        Sample(call("starts_with", X, Y), *[String()] * 2),
    ],
    "substr": [
        *(sample for start in (-1, 0, 1, 2) for sample in _texts("substr", start)),
        *(
            sample
            for start, count in ((1, 1), (0, 2), (1, 0), (2, 1), (1, -1))
            for sample in _texts("substr", start, count)
        ),
        Sample(call("substr", X, 1, Y), String(), Int(8)),
        Sample(call("substr", X, Y), String(), Int(8)),
    ],
    "concat": [
        *_texts("concat", "b"),
        Sample(call("concat", "a", X, Y), String(), String()),
        Sample(call("concat", "a", X), String()),
    ],
    "concat_strict": [
        *_texts("concat_strict", "b"),
        Sample(call("concat_strict", "a", X, Y), String(), String()),
        Sample(call("concat_strict", "a", X), String()),
    ],
    "left": [sample for count in (0, 1, 2, -1) for sample in _texts("left", count)]
    + [Sample(call("left", X, Y), String(), Int(8))],
    "right": [sample for count in (0, 1, 2, -1) for sample in _texts("right", count)],
    "trim": [*_texts("trim"), *_texts("trim", "a")],
    "ltrim": [*_texts("ltrim"), *_texts("ltrim", "a")],
    "rtrim": [*_texts("rtrim"), *_texts("rtrim", "ab")],
    "replace": [*_texts("replace", "a", "b"), *_texts("replace", "a", "")],
    "position": [*_texts("position", "b"), *_texts("position", "")],
    "reverse": _texts("reverse"),
    "ends_with": _texts("ends_with", "b"),
    "contains": _texts("contains", "b"),
    "coalesce": _choices("coalesce"),
    "nullif": _choices("nullif"),
    "greatest": _choices("greatest"),
    "least": _choices("least"),
    "date_trunc": [Sample(call("date_trunc", unit, X), t) for t in _TIMES for unit in _UNITS],
    "extract": [
        *(Sample(call("extract", field, X), t) for t in _TIMES for field in _FIELDS),
        *(Sample(call("extract", field, X), t) for t in _TIMES for field in _COUNTED_YEARS),
        *(Sample(call("extract", field, X), t) for t in (Timestamp(), Time()) for field in _CLOCKS),
    ],
    "add_interval": [Sample(call("add_interval", X, *s), t) for t in _TIMES for s in _SHIFTS]
    + [Sample(call("add_interval", X, Y, 0, 0), Timestamp(), Int(8))]
    + [Sample(call("add_interval", X, 1, Y, 0), Timestamp(), Int(8))]
    + [Sample(call("add_interval", X, 0, Y, 0), Timestamp(), Int(8))],
    "shift": [Sample(call("shift", X, *s), t) for t in _TIMES for s in _SHIFTS]
    + [Sample(call("shift", X, Y, 0, 0), Date(), Int(8))],
    "shift_timestamp": [Sample(call("shift_timestamp", X, *s), Timestamp()) for s in _SHIFTS],
    "local_time": [Sample(call("local_time", zone, X), _INSTANT) for zone in ZONES],
    "instant": [
        Sample(call("instant", zone, X, *rules), Timestamp())
        for zone in ZONES
        for rules in (("later", "shifted"), ("earlier", "first after"), ("fail", "fail"))
    ]
    + [
        Sample(call("instant", "Australia/Lord_Howe", X, "earlier", skipped), Timestamp())
        for skipped in ("back", "last before")
    ],
    "try_instant": [
        Sample(call("try_instant", zone, X, *rules), Timestamp())
        for zone in ZONES[:4]
        for rules in (("later", "shifted"), ("null", "null"), ("earlier", "fail"))
    ],
    **{
        name: [
            *(Sample(call(name, zone, ir.Cast(X, String())), Date()) for zone in ZONES[:3]),
            Sample(call(name, ZONES[0], X), String(), texts=_ZONED_TEXTS),
        ]
        for name in ("text_instant", "try_text_instant")
    },
    **{
        f"{tried}parse_java_{kind}": [
            Sample(call(f"{tried}parse_java_{kind}", *place, X, form), String(), texts=_DAYS_FIRST)
            for place in places
            for form in ("dd/MM/yyyy", "d/M/yyyy")
        ]
        for tried in ("", "try_")
        for kind, places in (("timestamp", [()]), ("instant", [ZONES[:1], ZONES[1:2]]))
    },
    "zoned_trunc": [
        Sample(call("zoned_trunc", unit, zone, X, *rules), _INSTANT)
        for zone in ZONES
        for unit, rules in (
            ("hour", ("kept", "shifted")),
            ("hour", ("same", "shifted")),
            ("day", ("later", "shifted")),
            ("week", ("same", "first after")),
            ("year", ("fail", "back")),
        )
    ],
    "zoned_shift": [
        Sample(call("zoned_shift", zone, X, *shift, *rules), _INSTANT)
        for zone in ZONES[:4]
        for shift in _SHIFTS
        for rules in (("later", "shifted"), ("same", "shifted"), ("fail", "fail"))
    ]
    + [Sample(call("zoned_shift", "Europe/Berlin", X, 0, Y, 0, "later", "back"), _INSTANT, Int(8))],
    "zoned_text": [
        *(Sample(call("zoned_text", zone, X), _INSTANT) for zone in ZONES[:4]),
        Sample(call("zoned_text", "UTC", X, "rfc 3339"), _INSTANT),
        *(Sample(call("zoned_text", zone, X, "offset in minutes"), _INSTANT) for zone in ZONES[:2]),
    ],
    "list_length": [Sample(call("list_length", X), NUMBERS), Sample(call("list_length", X), NAMED)],
    "list_element": [Sample(call("list_element", X, place), NUMBERS) for place in (1, 2)],
    "make_list": [Sample(call("make_list", X), NUMBERS), Sample(call("make_list", X, 3), Int(8))],
    "make_struct": [Sample(call("make_struct", "a", X, "b", Y), NUMBERS, String())],
    "list_contains": [Sample(call("list_contains", X, value), NUMBERS) for value in (0, 1)],
    "equals_any": [Sample(call("equals_any", X, Y), NUMBERS, Int(8))],
    "list_overlaps": [Sample(call("list_overlaps", X, call("make_list", 0, 1)), NUMBERS)],
    "list_contains_all": [Sample(call("list_contains_all", X, Y), NUMBERS, NUMBERS)],
    "regex_matches": [
        Sample(call("regex_matches", X, pattern), String()) for pattern in ("^a", "b$")
    ],
    **{
        name: [*_texts(name, "[ab]+"), *_texts(name, "a(b)?c", *rest)]
        for name, rest in (("regex_count", ()), ("regex_position", ()), ("regex_substr", (1,)))
    },
    "regex_extract": [*_texts("regex_extract", "a(b)?", 1), *_texts("regex_extract", "[ab]", 0)],
    **{
        name: [*_texts(name, "(a)(b?)", r"\2\1"), *_texts(name, "[^b]+", "")]
        for name in ("regex_replace", "regex_replace_first")
    },
    "map_value": [Sample(call("map_value", X, "a"), NAMED)],
    "map_has_key": [Sample(call("map_has_key", X, "a"), NAMED)],
    "list_position": [Sample(call("list_position", X, Y), NUMBERS, Int(8))],
    "lists_share": [Sample(call("lists_share", X, Y), NUMBERS, NUMBERS)],
    **{name: [Sample(call(name, X), NUMBERS)] for name in ("list_min", "list_max")},
    "slice": [Sample(call("slice", X, *places), NUMBERS) for places in ((1, 1), (2, 9), (1, 0))],
    **{name: [Sample(call(name, X), NUMBERS)] for name in ("list_distinct", "list_unique")},
    "map_keys": [Sample(call("map_keys", X), NAMED)],
    **{
        name: [
            *(Sample(call(name, X, Y), type_, Int(8)) for type_ in (Int(8), Int(64))),
            *(Sample(call(name, X, constant), Int(64)) for constant in (0, 6, -(2**63))),
        ]
        for name in ("gcd", "lcm")
    },
    "list_text": [Sample(call("list_text", call("make_list", X, Y), "-"), String(), String())],
    "interval_us": [Sample(call("interval_us", X), Interval())],
    "json_get": [Sample(call("json_get", X, "a"), Json())],
    "json_get_text": [Sample(call("json_get_text", X, "a"), Json())],
    "json_path": [Sample(call("json_path", X, "a", "0"), Json())],
    "json_path_text": [Sample(call("json_path_text", X, "a", "0"), Json())],
}

_MOMENTS = (
    "2023-12-31 23:00",
    "2024-01-01",
    "2024-01-30 23:00",
    "2024-01-31 01:00",
    "2024-02-28 12:00",
    "2024-02-29 00:00",
    "2024-03-01",
    "2024-03-30 10:00",
    "2024-03-31",
    "1969-12-31 23:59:59.999999",
    "1970-01-01",
    "2000-02-29 00:00:00.5",
    "1900-03-01",
    "2024-12-29",
)
ZONE_EDGES = (  # of ZONES, as instants or as local times
    "1883-11-18 17:00:00",  # New York: to standard time
    "2011-12-30 09:59:59.999999",  # Apia: skips a day
    "2011-12-30 10:00",
    "2011-12-30 12:00",
    "2018-11-04 00:30",  # Sao Paulo: no midnight
    "2018-11-04 03:00",
    "2019-02-17 02:00",  # and the hour before it twice
    "2024-03-10 02:30",  # New York: no such time
    "2024-03-10 07:00",
    "2024-11-03 01:30",  # twice
    "2024-11-03 05:30",
    "2024-11-03 06:00",
    "2024-04-06 15:00",  # Lord Howe: half an hour
    "2024-04-07 01:45",
    "2024-10-06 02:15",
    "2150-07-01 04:00",
)
_WORDS = ("", " ", "a", "a b", "aB", "ab", "abA", "abc", "ac", "b", "B", "ba", "é", "éa", "z", "Σ")
_SPELT = ("0", "-1", "10", "9", "1.5", "2013-01-05", "2013-01-06", "10:30", "10:31", "t", "f")
_UUIDS = ("0" * 32, "0" * 31 + "1")
_RARE = ("\x7f", "\ud7ff", "\ue000", "\U0010ffff", "a\U0010ffff", "\U0010ffffb")


def pool(type_: LogicalType) -> list[Any]:
    """Awkward values of a type, in order where it has one."""
    match type_:
        case Bool():
            return [False, True]
        case Int():
            low, high = int_range(type_)
            near = [n for n in (-7, -3, -2, -1, 0, 1, 2, 3, 7, 9, 10, 11, 99, 100, 127) if n >= low]
            return sorted({*near, low, low + 1, high - 1, high} & set(_span(low, high, near)))
        case Float(bits=bits):
            big = 1e300 if bits == 64 else 3e38
            finite = [-big, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 7.0, big]
            return [-math.inf, *finite, math.inf, math.nan]
        case Decimal(precision=precision, scale=scale):
            top = 10**precision - 1
            points = [-top, -250, -100, -50, -1, 0, 1, 49, 50, 99, 100, 150, 200, 300, 995, top]
            with decimal.localcontext(prec=60):
                return [D(point).scaleb(-scale) for point in points]
        case String():
            return sorted((*_WORDS, *_SPELT, *_UUIDS, *_RARE), key=str.encode)
        case Binary():
            return [b"", b"\x00", b"a", b"ab", b"\xff"]
        case Date():
            return sorted({_micros(text) // DAY_US for text in _MOMENTS} | {-(2**31), 2**31 - 1})
        case Time():
            return [0, 1, 37_800_000_000, 37_800_500_000, 37_859_999_999, DAY_US - 1]
        case Timestamp():
            edges = {*map(_micros, _MOMENTS), *map(_micros, ZONE_EDGES)}
            return sorted({*edges, -(2**63), 2**63 - 1})
        case Uuid():
            return [bytes(16), b"\x01" * 16, b"a" * 16, b"\xab" * 16, b"\xff" * 16]
        case Interval():
            ends = (-(2**31), -1, 0, 1, 2**31 - 1)
            return [encoded(part, -part // 2, part * 2**31) for part in ends]
        case Json():
            return ['{"a": 1}', '{"a": [2]}', "[]", "{", '{"a": null}']
        case List():
            return [[], [1], [None, 2], [1, 2, 3]]
        case Map():
            return [[], [("a", 1)], [("a", None), ("b", 2)]]
    raise AssertionError(type_)


def _span(low: int, high: int, near: list[int]) -> set[int]:
    return {n for n in (*near, low, low + 1, high - 1, high) if low <= n <= high}


def _micros(text: str) -> int:
    return int(np.datetime64(text.replace(" ", "T"), "us").astype(np.int64))


def key_of(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def between(low: Any, high: Any, rng: random.Random, type_: LogicalType) -> Any:
    """A value of the range that is likely no end of it."""
    match type_:
        case Int() | Date() | Time() | Timestamp():
            near = rng.choice([low + rng.randint(0, 40), high - rng.randint(0, 40)])
            return near if low <= near <= high else rng.randint(low, high)
        case Decimal(scale=scale):
            with decimal.localcontext(prec=60):
                ends = [int(end.scaleb(scale)) for end in (low, high)]
                return D(rng.randint(*ends)).scaleb(-scale)
        case Float(bits=bits) if math.isfinite(low) and math.isfinite(high):
            value = low / 2 + high / 2 if abs(high) > 1e30 else rng.uniform(low, high)
            narrow = float(np.float32(value)) if bits == 32 else value
            return narrow if low <= narrow <= high else low
        case String():
            longer = low + rng.choice(["\0", "a", "B", "é", "\U0010ffff"])
            return longer if longer.encode() <= high.encode() else low
        case _:
            return low


@dataclass(frozen=True)
class Parts:
    """Rows of several parts in one batch, and what is known of each part."""

    batch: pa.RecordBatch
    part_of_row: Any
    known: dict[str, AbstractColumn]

    @property
    def part_count(self) -> int:
        return int(self.part_of_row[-1]) + 1

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        return self.known.get(column.name)


def schema_of(columns: Mapping[str, LogicalType]) -> Schema:
    """A schema of these columns."""
    fields = (Field(i, name, type_) for i, (name, type_) in enumerate(columns.items(), 1))
    return Schema(0, tuple(fields))


def draw_parts(
    columns: Mapping[str, LogicalType],
    rng: random.Random,
    part_count: int,
    *,
    nans: random.Random | None = None,
    texts: Sequence[str] = (),
) -> Parts:
    """Ranges of these columns, and rows within them; with `nans`, floats of NaN alone, too.

    `texts`: what columns of text draw from, in order, instead of the pool of all.
    """
    rows_per_part = 5
    arrays, known = {}, {}
    for name, type_ in columns.items():
        values, lowers, uppers, nulls, with_nan, empties = [], [], [], [], [], []
        all_nan = []
        for _ in range(part_count):
            cells, low, high = _cells(type_, rng, rows_per_part, texts)
            only_nan = isinstance(type_, Float) and nans is not None and nans.random() < 0.1
            if only_nan:
                cells = [None if cell is None else math.nan for cell in cells]
            all_nan.append(only_nan)
            values += cells
            present = [cell for cell in cells if cell is not None]
            with_nan.append(any(isinstance(cell, float) and math.isnan(cell) for cell in present))
            lowers.append(low if rng.random() > 0.1 else None)
            uppers.append(high if rng.random() > 0.1 else None)
            nulls.append(len(present) < len(cells) or rng.random() < 0.1)
            empties.append(not present)
        arrays[name] = arrow_array(values, type_)
        storage = arrow_type(type_)
        bounds = (
            [arrow_array(lowers, type_), arrow_array(uppers, type_)]
            if is_ordered(type_)
            else [pa.nulls(part_count, storage)] * 2
        )
        known[name] = AbstractColumn(
            *(bounds[0], bounds[1], np.array(empties), np.array(nulls), np.array(with_nan)),
            all_nan=np.array(all_nan),
        )
    batch = pa.record_batch(arrays)
    return Parts(batch, np.repeat(np.arange(part_count), rows_per_part), known)


def _cells(
    type_: LogicalType, rng: random.Random, count: int, texts: Sequence[str]
) -> tuple[list[Any], Any, Any]:
    """Cells of one part and the ends of a range that holds those that are not NaN."""
    everything = texts if texts and type_ == String() else pool(type_)
    if not is_ordered(type_):
        return [None if rng.random() < 0.2 else rng.choice(everything) for _ in range(count)], 0, 0
    ordered = [
        value for value in everything if not (isinstance(value, float) and math.isnan(value))
    ]
    first = rng.randrange(len(ordered))
    last = min(len(ordered) - 1, first + rng.choice([0, 1, 1, 2, 4, len(ordered)]))
    low, high = ordered[first], ordered[last]
    nullable = rng.random() < 0.4
    cells: list[Any] = []
    for place in range(count):
        if nullable and rng.random() < 0.4:
            cells.append(None)
        elif isinstance(type_, Float) and nullable and rng.random() < 0.3:
            cells.append(math.nan)
        elif place < 2:
            cells.append(low if place else high)
        elif rng.random() < 0.5:
            cells.append(rng.choice(ordered[first : last + 1]))
        else:
            cells.append(between(low, high, rng, type_))
    return cells, low, high


def violations(sample: Sample, semantics: Semantics, seed: int, part_count: int = 60) -> list[str]:
    """Rows whose value the interpreter does not allow; those of unread texts have none."""
    columns = sample.columns
    schema = schema_of(columns)
    parts = draw_parts(
        *(columns, random.Random(seed), part_count),
        nans=random.Random(~seed),
        texts=sample.texts,
    )
    bound = bind_operand(sample.operand, schema, semantics)
    evaluator = _Evaluator(parts.batch, semantics)
    computed, _ = evaluator.operand(bound.root)
    none = np.zeros(parts.batch.num_rows, np.bool_)
    failed = none if computed.failed is None else computed.failed
    unread = failed & np.logical_or.reduce([none, *(it.rows for it in evaluator.unread)])
    may = interpret_operand(bound, parts)
    wrong = outside(computed.values, failed, may, parts.part_of_row) & ~unread
    return [
        f"{semantics.name}: {sample.operand} on {shown(parts.batch.columns, row)} gives "
        f"{shown([computed.values], row)} (failed: {failed[row]}), part {parts.part_of_row[row]}"
        for row in np.flatnonzero(wrong)[:3]
    ]


def shown(columns: Sequence[pa.Array], row: int) -> str:
    """Cells as Arrow prints them: Python has no dates beyond the year 9999."""
    return " ".join(str(column.slice(int(row), 1)).replace("\n", "") for column in columns)


def precision(samples: Sequence[Sample], part_count: int = 30) -> list[int]:
    """In how many parts a lower bound, an upper bound, no NULL and no failure is known."""
    known = [0, 0, 0, 0]
    for index, sample in enumerate(samples):
        parts = draw_parts(sample.columns, random.Random(index), part_count, texts=sample.texts)
        may = interpret_operand(bind_operand(sample.operand, schema_of(sample.columns)), parts)
        counts = (
            part_count - may.lower.null_count,
            part_count - may.upper.null_count,
            int((~may.null).sum()),
            int((~may.fails).sum()),
        )
        known = [total + count for total, count in zip(known, counts, strict=True)]
    return known


def outside(values: pa.Array, failed: Any, may: AbstractValue, part: Any) -> Any:
    """(n,) bool: rows that the abstract value of their part excludes."""
    null = null_mask(values) & ~failed
    wrong = failed & ~may.fails[part]
    wrong |= null & ~may.null[part]
    present = ~failed & ~null
    wrong |= present & ~may.present[part]
    if not is_ordered(may.type):
        return wrong
    wrong |= present & ~_within(values, may, part)
    if may.alternatives:
        held = [_within(values, span, part) & span.present[part] for span in may.alternatives]
        wrong |= present & ~np.logical_or.reduce(held)
    return wrong


def _within(values: pa.Array, may: AbstractValue, part: Any) -> Any:
    """(n,) bool: rows whose value is NaN where it may be, or lies between the bounds."""
    lower, upper = may.lower.take(pa.array(part)), may.upper.take(pa.array(part))
    is_nan = np.zeros(len(values), np.bool_)
    inside = as_mask(pc.fill_null(pc.greater_equal(values, lower), True))  # noqa: FBT003
    if isinstance(may.type, Float):
        is_nan = as_mask(pc.is_nan(values))
        inside &= ~as_mask(pc.is_nan(lower))  # no number is above NaN
    inside &= as_mask(pc.fill_null(pc.less_equal(values, upper), True))  # noqa: FBT003
    return np.where(is_nan, may.nan[part], inside)


def cast_samples() -> list[Sample]:
    """A cast between every two types that have one, in several widths."""
    types: list[LogicalType] = [
        Bool(),
        Int(8),
        Int(64),
        Int(64, signed=False),
        Float(32),
        Float(64),
        Decimal(4, 2),
        Decimal(38, 2),
        Decimal(3, 0),
        String(),
        Binary(),
        Date(),
        Time(),
        Timestamp(),
        Timestamp(utc=True),
        Uuid(),
    ]
    return [
        Sample(ir.Cast(X, target, try_), source)
        for source in types
        for target in types
        for try_ in (False, True)
        if source != target and cast_rule(source, target) is not None
    ]
