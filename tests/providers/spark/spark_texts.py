"""Conditions in Spark's SQL whose rows hang on the session, and a table to ask them of.

Every column holds the values at which widths, zones and modes show: the ends of whole numbers,
instants around the changes of clocks, text that is and is not a number. The rows of one upsert lie
close together, so that statistics can prune the parts.
"""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

UTC = datetime.UTC
ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "+05:30",
)
SCHEMA = pa.schema(
    [
        ("k", pa.int32()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("n", pa.int32()),
        ("i64", pa.int64()),
        ("f32", pa.float32()),
        ("f", pa.float64()),
        ("d", pa.decimal128(9, 2)),
        ("w", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("digits", pa.string()),
        ("reals", pa.string()),
        ("days", pa.string()),
        ("moments", pa.string()),
        ("flags", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
    ]
)
DDL = (
    "k int, i8 tinyint, i16 smallint, n int, i64 bigint, f32 float, f double, d decimal(9,2), "
    "w decimal(38,10), s string, digits string, reals string, "
    "days string, moments string, flags string, b boolean, day date, ts timestamp_ntz, tz timestamp"
)
ROWS_PER_PART = 4


def _around(bits: int) -> list[int]:
    top = 2 ** (bits - 1)
    return [-top, -top + 1, -2, -1, 0, 1, 2, 3, 22, 100, top // 2, top - 2, top - 1]


def _moments() -> list[datetime.datetime]:
    texts = (
        "1969-12-31T23:59:59.999999",
        "2011-12-30T09:59:59",
        "2018-11-04T02:59:59",
        "2018-11-04T03:00:00",
        "2024-03-10T06:59:59",
        "2024-03-10T07:00:00",
        "2024-04-06T14:59:00",
        "2024-10-05T15:30:00",
        "2024-10-26T22:30:00",
        "2024-10-27T00:00:00",
        "2024-10-27T00:30:00",
        "2024-10-27T01:30:00",
        "2024-10-27T02:00:00",
        "2024-10-27T04:00:00",
        "2024-11-03T05:30:00",
        "2024-11-03T06:30:00.123456",
    )
    return [datetime.datetime.fromisoformat(text) for text in texts]


_MOMENTS = _moments()
_VALUES: dict[str, list[Any]] = {
    "i8": _around(8),
    "i16": _around(16),
    "n": _around(32),
    "i64": [*_around(64), 2**53 + 1, 2**31, -(2**31) - 1],
    "f32": [-1.5, -0.0, 0.0, 0.5, 1.0, 22.0, 16777216.0, 3.4e38, float("inf"), float("nan")],
    "f": [-1.5, -0.0, 0.0, 0.1, 1.0, 22.0, 2147483648.5, 9.3e18, 1e300, float("nan")],
    "d": [
        decimal.Decimal(t) for t in ("-9999999.99", "-1.50", "0.00", "1.00", "1.25", "9999999.99")
    ],
    "w": [
        decimal.Decimal(t).quantize(decimal.Decimal("1e-10"))
        for t in ("-9.5", "0", "1", "1.25", "2147483648")
    ]
    + [decimal.Decimal("9999999999999999999999999999.9999999999")],
    "s": [
        *("", "1", "22", "-1", "abc", "1.5", "2024-10-27", "true", "2024-10-27 01:30:00"),
        *("1.9", " 2\t", "+3", ".5", "1e2", "100", "0100", "2147483648", "NaN", "-inf", "1.5d"),
        *("9223372036854775808", "-0.0", "0.005", "T", "no", "2024", "2024-10", "2024-11-3 1:30"),
        *("2018-11-04T00:00:00Z", "2024-10-27 02:30:00 Europe/Berlin", "2024-03-10 02:30:00"),
        *("+2011-12-30", "-0001-1-1", "2024-02-30", "2024-10-26T22:30:00+1", "12024-10-27"),
    ],
    "b": [False, True],
    "day": sorted({moment.date() for moment in _MOMENTS}),
    "ts": _MOMENTS,
    "tz": [moment.replace(tzinfo=UTC) for moment in _MOMENTS],
}
# Those whose texts are mostly of one kind.
_TEXTS: dict[str, list[Any]] = {
    "digits": ["0", "1", "-1", "22", " 3", "+100", "127", "128", "300", "2147483647", "-129"],
    "reals": ["0.5", "1", "-1.5", "22.0", "1e0", "NaN", "1.25", " .1 ", "2147483648.5", "1.5d"],
    "days": [
        "2024-10-26",
        "2024-10-27",
        "2024-11-3",
        "2018-11-04 ",
        "2024-03",
        "2011",
        "2024-10-6",
    ],
    "moments": [
        *("2024-10-27 00:00:00", "2024-10-26T22:30:00Z", "2024-11-03 01:30", "2024-03-10 2:30:00"),
        *("2018-11-04", "2024-10-27 02:30:00.5 Europe/Berlin", "2024-10-06 02:15:00", "2024"),
    ],
    "flags": ["true", "F", " yes", "0", "n", "1"],
}


def table_of(seed: int, row_count: int = 64) -> list[dict[str, Any]]:
    """Rows by `k`; near rows have near values, and one value in eight is NULL."""
    rows: list[dict[str, Any]] = [{"k": k} for k in range(row_count)]
    for start, columns in ((seed, _VALUES), (~seed, _TEXTS)):
        source = random.Random(start)
        for k, row in enumerate(rows):
            for name, values in columns.items():
                near = k * len(values) // row_count + source.randint(-1, 1)
                row[name] = None if source.random() < 0.125 else values[near % len(values)]
    return rows


@dataclass(frozen=True, slots=True)
class Triple:
    """A condition in a session."""

    zone: str
    ansi: bool
    text: str


def triples(seed: int, count: int) -> Iterator[Triple]:
    """Random ones; those of one seed are the same in every process."""
    source = random.Random(seed)
    for _ in range(count):
        yield Triple(source.choice(ZONES), source.random() < 0.5, _Texts(source).condition())


_WHOLE_COLUMNS = ("i8", "i16", "n", "n", "i64")
_REAL_COLUMNS = ("f32", "f", "d", "w")
_WHOLE = ("0", "1", "-1", "2", "3", "22", "100", "127", "128", "300", "32767", "2147483647")
_WIDE = ("2147483648", "-2147483648", "1L", "9223372036854775807", "1S", "2Y", "100Y", "3L")
_REAL = ("1.5", "0.5", "1.25", "0.1D", "1e0", "22.0", "1.5F", "0.3BD", "-1.5", "2147483648.0")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_CLOCKS = (
    "2024-10-27 00:00:00",
    "2024-10-26 22:30:00",
    "2024-11-03 01:30:00",
    "2024-03-10 02:30:00",
    "2018-11-04 00:00:00",
    "2024-10-27 02:30:00",
    "2024-10-06 02:15:00",
)
_DAYS = ("2024-10-26", "2024-10-27", "2024-11-03", "2018-11-04", "2024-03-10", "2011-12-30")
_TEXT_COLUMNS = ("s", "digits", "reals", "days", "moments", "flags")
_QUOTED = (
    "'1'",
    "' 22'",
    "'1.9'",
    "'1e2'",
    "'abc'",
    "'2024-10-27'",
    "'2024-11-3 1:30'",
    "'t'",
    "'on'",
)
# Which texts are mostly of a kind, and what makes values of that kind.
_FITTING = {
    "digits": "_whole",
    "reals": "_number",
    "days": "_time",
    "moments": "_time",
    "flags": "_boolean",
}
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9,2)")
_TARGETS = (*_NUMBERS, "DECIMAL(38,10)", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_OF_KIND = {
    "digits": _NUMBERS,
    "reals": _NUMBERS,
    "days": _TIMES,
    "moments": _TIMES,
    "flags": ("BOOLEAN",),
}


class _Texts:
    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._depth = 0

    def condition(self) -> str:
        """One comparison or test, or a few joined."""
        kind = self._source.random()
        if kind < 0.12:
            operator = self._one("AND", "OR")
            return f"({self._test()} {operator} {self._test()})"
        if kind < 0.18:
            return f"NOT ({self._test()})"
        return self._test()

    def _one(self, *items: str) -> str:
        return self._source.choice(items)

    def _test(self) -> str:
        kind = self._source.random()
        if kind < 0.30:
            return self._compared(self._whole, self._whole)
        if kind < 0.45:
            return self._compared(self._number, self._number)
        if kind < 0.72:
            return self._compared(self._time, self._time)
        if kind < 0.80:
            return self._compared(self._field, lambda: self._one(*_WHOLE))
        if kind < 0.85:
            value = self._one("whole", "number", "time")
            make = {"whole": self._whole, "number": self._number, "time": self._time}[value]
            listed = ", ".join(make() for _ in range(self._source.randint(1, 4)))
            return f"{make()} {self._one('', 'NOT ')}IN ({listed})"
        if kind < 0.89:
            make = self._whole if self._source.random() < 0.5 else self._time
            return f"{make()} BETWEEN {make()} AND {make()}"
        if kind < 0.92:
            return self._mixed()
        if kind < 0.97:
            return self._of_text()
        return self._any() + self._one(" IS NULL", " IS NOT NULL")

    def _compared(self, left: Any, right: Any) -> str:
        return f"{left()} {self._one(*_COMPARED)} {right()}"

    def _any(self) -> str:
        return self._source.choice([self._whole, self._number, self._time, self._field])()

    def _whole(self) -> str:
        self._depth += 1
        kind = self._source.random() if self._depth < 3 else 0.1
        try:
            if kind < 0.34:
                return self._one(*_WHOLE_COLUMNS)
            if kind < 0.52:
                return self._one(*_WHOLE, *_WIDE)
            if kind < 0.72:
                return f"({self._whole()} {self._one('+', '-', '*')} {self._whole()})"
            if kind < 0.78:
                return f"({self._whole()} {self._one('%', 'div')} {self._whole()})"
            if kind < 0.84:
                return f"{self._one('-', 'abs')}({self._whole()})"
            if kind < 0.92:
                name = self._one("TINYINT", "SMALLINT", "INT", "BIGINT")
                return f"{self._one('CAST', 'CAST', 'TRY_CAST')}({self._number()} AS {name})"
            name = self._one("coalesce", "greatest", "least", "nullif", "if")
            if name == "if":
                return f"if(b, {self._whole()}, {self._whole()})"
            return f"{name}({self._whole()}, {self._whole()})"
        finally:
            self._depth -= 1

    def _number(self) -> str:
        self._depth += 1
        kind = self._source.random() if self._depth < 3 else 0.1
        try:
            if kind < 0.25:
                return self._one(*_REAL_COLUMNS)
            if kind < 0.40:
                return self._one(*_REAL)
            if kind < 0.55:
                return self._whole()
            if kind < 0.80:
                return f"({self._number()} {self._one('+', '-', '*', '/', '%')} {self._number()})"
            if kind < 0.90:
                name = self._one("DOUBLE", "FLOAT", "DECIMAL(10,2)", "DECIMAL(5,1)")
                return f"CAST({self._number()} AS {name})"
            name = self._one("abs", "-", "coalesce", "greatest", "round", "floor", "ceil")
            if name in ("coalesce", "greatest"):
                return f"{name}({self._number()}, {self._number()})"
            return f"{name}({self._number()})"
        finally:
            self._depth -= 1

    def _time(self) -> str:
        self._depth += 1
        kind = self._source.random() if self._depth < 3 else 0.1
        try:
            if kind < 0.30:
                return self._one("tz", "tz", "ts", "day")
            if kind < 0.40:
                return f"TIMESTAMP '{self._one(*_CLOCKS)}'"
            if kind < 0.45:
                return f"TIMESTAMP_NTZ '{self._one(*_CLOCKS)}'"
            if kind < 0.52:
                return f"DATE '{self._one(*_DAYS)}'"
            if kind < 0.57:
                return f"TIMESTAMP '{self._one(*_CLOCKS)}{self._one('Z', '+01:00', ' UTC')}'"
            if kind < 0.63:
                return f"'{self._one(*_CLOCKS, *_DAYS)}'"
            if kind < 0.78:
                name = self._one("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
                return f"CAST({self._time()} AS {name})"
            if kind < 0.86:
                unit = self._one("'DAY'", "'HOUR'", "'MONTH'", "'week'")
                return f"date_trunc({unit}, {self._time()})"
            if kind < 0.92:
                step = self._one("1 DAY", "1 MONTH", "24 HOURS", "30 MINUTES")
                return f"({self._time()} {self._one('+', '-')} INTERVAL {step})"
            if kind < 0.96:
                return (
                    f"{self._one('date_add', 'date_sub')}({self._time()}, {self._one('1', '30')})"
                )
            name = self._one("coalesce", "greatest", "to_date", "last_day")
            if name in ("coalesce", "greatest"):
                return f"{name}({self._time()}, {self._time()})"
            return f"{name}({self._time()})"
        finally:
            self._depth -= 1

    def _field(self) -> str:
        if self._source.random() < 0.25:
            name = self._one(
                "hour", "minute", "second", "day", "month", "year", "doy", "dow", "week"
            )
            return f"extract({name} FROM {self._time()})"
        name = self._one("hour", "minute", "second", "day", "month", "year", "quarter", "weekday")
        other = self._one("dayofweek", "weekofyear", "dayofyear")
        return f"{self._one(name, name, other)}({self._time()})"

    def _text(self) -> str:
        return self._one(*_TEXT_COLUMNS, *_QUOTED)

    def _of_text(self) -> str:
        """Text beside other types, among them, and cast to them."""
        kind, of = self._source.random(), self._one(*_FITTING)
        text = self._one(of, of, of, of, "s") if self._source.random() < 0.85 else self._text()
        make = getattr(self, _FITTING[of])
        if kind < 0.30:
            sides = [text, make()]
            self._source.shuffle(sides)
            return f" {self._one(*_COMPARED)} ".join(sides)
        if kind < 0.42:
            members = [self._one(make(), make(), self._text()) for _ in range(3)]
            return f"{text} {self._one('', 'NOT ')}IN ({', '.join(members)})"
        if kind < 0.48:
            return f"{make()} IN ({text}, {make()})"
        if kind < 0.56:
            return f"{text} BETWEEN {make()} AND {make()}"
        if kind < 0.66:
            text = self._one("digits", "reals", "'3'", "s")
            sides = [text, self._one(self._number(), self._whole(), "reals")]
            self._source.shuffle(sides)
            value = f" {self._one('+', '-', '*', '/', '%', 'div')} ".join(sides)
            return f"({value}) {self._one('>', '<=', '=')} {self._number()}"
        if kind < 0.74:
            name = self._one("coalesce", "if", "nullif", "nullif", "CASE")
            value = {
                "if": f"if(b, {text}, {make()})",
                "CASE": f"CASE WHEN b THEN {make()} ELSE {text} END",
            }.get(name, f"{name}({text}, {make()})")
            return f"{value} {self._one(*_COMPARED)} {self._one(make(), self._text())}"
        if kind < 0.94:
            target = self._one(*_TARGETS)
            cast = f"{self._one('CAST', 'CAST', 'try_cast')}({text} AS {target})"
            other = make() if target in _OF_KIND[of] else f"CAST({self._text()} AS {target})"
            end = self._one(f" {self._one(*_COMPARED)} {other}", " IS NULL", " IS NOT NULL")
            return cast + end
        name = self._one(
            "-", "abs", "floor", "round", "sqrt", "year", "hour", "last_day", "to_date"
        )
        of = "digits" if name in ("-", "abs", "floor", "round", "sqrt") else "moments"
        return f"{name}({self._one(of, of, 's')}) {self._one('=', '<', '>=')} {self._text()}"

    def _boolean(self) -> str:
        return self._one("b", "true", "false", "(n = 1)")

    def _mixed(self) -> str:
        text = self._one("s", "'1'", "'22'", "'1.5'", "'abc'")
        match self._source.randint(0, 5):
            case 0:
                return f"{self._whole()} {self._one(*_COMPARED)} {text}"
            case 1:
                return f"{self._number()} {self._one(*_COMPARED)} {text}"
            case 2:
                return f"CAST({self._any()} AS STRING) {self._one('=', '<')} {text}"
            case 3:
                name = self._one("INT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN")
                return f"{self._one('CAST', 'TRY_CAST')}(s AS {name}) IS NOT NULL"
            case 4:
                return f"s {self._one('<', '=')} {self._time()}"
            case _:
                test = self._compared(self._whole, self._whole)
                return f"CASE WHEN {test} THEN {self._whole()} ELSE {self._number()} END > 1"
