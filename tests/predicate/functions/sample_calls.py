"""Sample calls for every row of the registry, and sample casts."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.casts import cast_rule
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
    Nanos,
    Numeric,
    String,
    Time,
    Timestamp,
    Uuid,
)
from tests.strategies import DAY_US

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
    "rounded_quotient": [
        Sample(call("rounded_quotient", X, Y), Decimal(4, 2), Decimal(4, 2)),
        Sample(call("rounded_quotient", X, 3), Decimal(38, 2)),
        Sample(call("rounded_quotient", X, Y), Numeric(), Int(8)),
    ],
    "truncated_quotient": [
        Sample(call("truncated_quotient", X, Y), Decimal(4, 2), Decimal(4, 2)),
        Sample(call("truncated_quotient", X, Y), Int(64), Decimal(4, 2)),
        *(Sample(call("truncated_quotient", X, c), Decimal(18, 4)) for c in (2, -3, 7)),
    ],
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
    **{name: [Sample(call(name, X), t) for t in _REALS] for name in ("sqrt", "sign", "ln", "exp")},
    "power": [
        *(Sample(call("power", X, n), t) for t in _REALS for n in (2, 0, -1, 3)),
        *(Sample(call("power", X, half), Float(64)) for half in (0.5, -2.5)),
        *(Sample(call("power", X, Y), t, t) for t in _REALS),
        Sample(call("power", 2.0, X), Float(64)),
    ],
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
    "age": [Sample(call("age", X, Y), t, t) for t in _TIMES[1:]],
    "age_us": [Sample(call("age_us", X, Y), t, t) for t in _TIMES[1:]],
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
    "json_number": [Sample(call("json_number", X), Json())],
    **{name: [Sample(call(name, X), Json())] for name in ("json_typeof", "json_array_length")},
    **{name: [Sample(call(name, X, Y), Json(), Json())] for name in ("jsonb_eq", "jsonb_contains")},
    **{name: [Sample(call(name, X), Json())] for name in ("jsonb_text", "jsonb_document")},
    "jsonb_exists": [Sample(call("jsonb_exists", X, Y), Json(), String())],
    "json_boolean": [Sample(call("json_boolean", X), Json())],
    "numeric_bytes": [Sample(call("numeric_bytes", X), Numeric())],
    "numeric_approx": [Sample(call("numeric_approx", X), Numeric())],
    "st_xmin": [Sample(call("st_xmin", X), Binary())],
    "st_ymin": [Sample(call("st_ymin", X), Binary())],
    "st_xmax": [Sample(call("st_xmax", X), Binary())],
    "st_ymax": [Sample(call("st_ymax", X), Binary())],
    "interval_us": [Sample(call("interval_us", X), Interval())],
    "json_get": [Sample(call("json_get", X, "a"), Json())],
    "json_get_text": [Sample(call("json_get_text", X, "a"), Json())],
    "json_path": [Sample(call("json_path", X, "a", "0"), Json())],
    "json_path_text": [Sample(call("json_path_text", X, "a", "0"), Json())],
}


def nanosecond_samples() -> list[Sample]:
    """Calls of timestamps with nanoseconds."""
    local, instant = Nanos(utc=False), Nanos(utc=True)
    times: tuple[LogicalType, ...] = (local, instant)
    fields = (*_FIELDS, *_COUNTED_YEARS, *_CLOCKS)
    return [
        *(Sample(call("date_trunc", unit, X), t) for t in times for unit in _UNITS),
        *(Sample(call("extract", field, X), t) for t in times for field in fields),
        *(Sample(call("add_interval", X, *s), t) for t in times for s in _SHIFTS),
        Sample(call("add_interval", X, Y, 0, 0), local, Int(8)),
        Sample(call("add_interval", X, 1, Y, 0), local, Int(8)),
        Sample(call("shift_timestamp", X, 0, 0, Y), local, Int(64)),
        *(Sample(call("shift", X, *s), local) for s in _SHIFTS),
        *(Sample(call("date_bin", 0, 900_000_000, X, _ORIGIN), t) for t in times),
        *(Sample(call("date_bin", 5, 0, X, _ORIGIN), t) for t in times),
        *(Sample(call("last_day", X), t) for t in times),
        *(Sample(call("days_between", X, Y), t, Timestamp()) for t in times),
        *(Sample(call(name, X, Y), t, t) for name in ("age", "age_us") for t in times),
        *(Sample(call("epoch_seconds", X), t) for t in times),
        Sample(call("epoch_us", X), local),
        *(Sample(call("local_time", zone, X), instant) for zone in ZONES),
        *(Sample(call("instant", zone, X, "later", "shifted"), local) for zone in ZONES),
        *(
            Sample(call("zoned_trunc", unit, zone, X, "same", "first after"), instant)
            for zone in ZONES
            for unit in ("hour", "day", "year")
        ),
        *(
            Sample(call("zoned_shift", zone, X, *shift, "same", "shifted"), instant)
            for zone in ZONES[:3]
            for shift in _SHIFTS
        ),
    ]


def nanosecond_casts() -> list[Sample]:
    """Casts from and to timestamps with nanoseconds."""
    fine: tuple[LogicalType, ...] = (Nanos(utc=False), Nanos(utc=True))
    others: tuple[LogicalType, ...] = (Date(), Timestamp(), Timestamp(utc=True))
    pairs = [(source, target) for source in (*fine, *others) for target in (*fine, *others)]
    return [
        *(
            Sample(ir.Cast(X, target, try_), source)
            for source, target in pairs
            for try_ in (False, True)
            if source != target and (source in fine or target in fine)
        ),
        Sample(ir.Cast(X, String()), Nanos(utc=False)),
    ]


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
