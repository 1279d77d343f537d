"""Calls of every function that SQL engines share, over awkward rows, and what the engines give.

`CALLS` has calls by the name of the function; a part of `extract` is a function of its own, as it
is in the engines. Operators of arithmetic and comparison are not among them.
"""

from __future__ import annotations

import datetime
import decimal
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.sql import parse_expression, to_sql
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Decimal, Timestamp

D = decimal.Decimal
SHARED = ("spark", "datafusion", "duckdb")
ORIGIN = ir.Literal(978_307_200_000_000, Timestamp())  # 2001-01-01


def call(name: str, *arguments: Any) -> ir.Call:
    """A call; names of one or two letters are columns, other plain values are literals."""
    return ir.Call(
        name,
        tuple(
            item
            if isinstance(item, ir.Operand)
            else ir.Column(item[1:])
            if isinstance(item, str) and item.startswith("$")
            else ir.Literal(item)
            for item in arguments
        ),
    )


def _texts(name: str, *options: Sequence[Any]) -> list[ir.Operand]:
    return [call(name, "$s", *each) for each in options or [()]]


_PARTS = ("year", "quarter", "month", "day", "week", "doy", "dow", "isodow", "isoyear")
_CLOCK = ("hour", "minute", "whole_second")
CALLS: Mapping[str, list[ir.Operand]] = {
    "abs": [call("abs", f"${c}") for c in ("i", "f", "d")],
    "floor": [call("floor", "$f")],
    "ceil": [call("ceil", "$f")],
    "round": [
        *(call("round", "$f"), call("round", "$d")),
        *(call("round", "$f", n) for n in (1, 2, 3, 6)),
        *(call("round", "$d", n) for n in (1, 0)),
    ],
    "sign": [call("sign", "$f"), call("sign", "$i")],
    "sqrt": [call("sqrt", "$f"), call("sqrt", "$i")],
    "degrees": [call("degrees", "$f")],
    "radians": [call("radians", "$f")],
    "is_nan": [call("is_nan", "$f"), call("is_nan", "$g")],
    "bit_and": [call("bit_and", "$i", "$k"), call("bit_and", "$k", 6), call("bit_and", "$k", -2)],
    "bit_or": [call("bit_or", "$i", "$k"), call("bit_or", "$k", 6)],
    "bit_xor": [call("bit_xor", "$i", "$k"), call("bit_xor", "$k", 6)],
    "shift_left": [call("shift_left", "$k", n) for n in (0, 1, 40, 63)],
    "shift_right": [call("shift_right", c, n) for c in ("$i", "$k") for n in (0, 1, 7)],
    "lower": _texts("lower"),
    "upper": _texts("upper"),
    "length": _texts("length"),
    "octet_length": _texts("octet_length"),
    "bit_length": _texts("bit_length"),
    "ascii": _texts("ascii"),
    "md5": _texts("md5"),
    "sha256_hex": _texts("sha256_hex"),
    "format_time": [
        *(call("format_time", c, form) for c in ("$ts", "$day") for form in ("%Y-%m-%d", "%j/%Y")),
        call("format_time", "$ts", "%Y%m%d %H:%M:%S"),
    ],
    "hex_digits": [call("hex_digits", "$i"), call("hex_digits", "$k")],
    "left": _texts("left", (0,), (2,), (50,)),
    "right": _texts("right", (0,), (2,), (50,)),
    "substr": _texts("substr", (1, 2), (2,), (3, 0)),
    "trim": _texts("trim", (), ("xa",)),
    "ltrim": _texts("ltrim", (), ("xa",)),
    "rtrim": _texts("rtrim", (), ("xa",)),
    "replace": _texts("replace", ("x", "yz"), ("a", "")),
    "position": _texts("position", ("a",), ("é",)),
    "starts_with": _texts("starts_with", ("a",), ("",)),
    "ends_with": _texts("ends_with", ("x",), ("c",), ("",)),
    "contains": _texts("contains", ("b",), ("",)),
    "repeat": _texts("repeat", (0,), (1,), (3,)),
    "lpad": _texts("lpad", (5,), (5, "xy"), (2, "é"), (0, "x")),
    "rpad": _texts("rpad", (5,), (5, "xy"), (2, "é"), (0, "x")),
    "split_part": _texts("split_part", ("a", 1), ("a", 2), ("x", -1), ("aa", 2), (".", 3)),
    "concat_ws": [call("concat_ws", "-", "$s", "$t"), call("concat_ws", "", "$s", "x", "$t")],
    "translate": _texts("translate", ("abx", "xé"), ("é", "e"), ("\N{GRINNING FACE}", "a")),
    "concat_strict": [call("concat_strict", "$s", "$t")],
    "coalesce": [call("coalesce", "$i", 0), call("coalesce", "$s", "$t")],
    "nullif": [call("nullif", "$i", 12), call("nullif", "$s", "")],
    "greatest": [call("greatest", "$i", 2), call("greatest", "$s", "$t")],
    "least": [call("least", "$i", 2), call("least", "$s", "$t")],
    "list_length": [call("list_length", "$l")],
    "list_min": [call("list_min", "$l")],
    "list_max": [call("list_max", "$l")],
    "list_element": [call("list_element", "$l", 1), call("list_element", "$l", 2)],
    "slice": [
        *(call("list_length", call("slice", "$l", a, n)) for a, n in ((1, 2), (2, 9), (3, 0))),
        *(call("list_element", call("slice", "$l", 2, 2), 1), call("slice", "$l", 2, 1)),
    ],
    "map_keys": [call("map_keys", "$p"), call("list_length", call("map_keys", "$p"))],
    "regex_matches": [
        call("regex_matches", "$s", pattern) for pattern in ("^a[bc]*", "(x|aa)b?", "^[^a]")
    ],
    "regex_replace": _texts("regex_replace", ("[a-c]", "-"), ("(a)([a-x])", r"\2\1"), ("x+", "")),
    "date_trunc": [call("date_trunc", u, "$ts") for u in ("hour", "week", "quarter", "year")],
    "last_day": [call("last_day", "$ts"), call("last_day", "$day")],
    "make_date": [call("make_date", "$y", "$m", "$n"), call("make_date", 2024, 2, "$n")],
    "days_between": [call("days_between", "$day", "$ts"), call("days_between", "$ts", "$day")],
    "epoch_us": [call("epoch_us", "$ts")],
    "timestamp_seconds": [call("epoch_us", call("timestamp_seconds", "$i"))],
    "modulo": [call("modulo", "$k", 7), call("modulo", "$i", -4)],
    **{f"extract_{part}": [call(f"extract_{part}", c) for c in ("$ts", "$day")] for part in _PARTS},
    **{f"extract_{part}": [call(f"extract_{part}", "$ts")] for part in _CLOCK},
}
OTHERS: Mapping[str, list[ir.Operand]] = {  # not in all three
    "date_bin": [
        *(call("date_bin", 0, micros, "$ts", ORIGIN) for micros in (900_000_000, 172_800_000_000)),
        *(call("date_bin", months, 0, "$ts", ORIGIN) for months in (1, 5)),
    ],
    "regex_replace_first": _texts("regex_replace_first", ("[a-c]", "-"), ("(a)([a-x])", r"\2\1")),
    "regex_extract": _texts("regex_extract", ("[a-c]+", 0), ("(a+)([bx])", 2)),
    "regex_substr": _texts("regex_substr", ("[a-c]+",), ("(a)b",)),
    "regex_count": _texts("regex_count", ("[a-c]",), ("^a",)),
    "regex_position": _texts("regex_position", ("[b-c]",), ("b+",)),
    "gcd": [call("gcd", "$i", "$k"), call("gcd", "$k", 12), call("gcd", "$y", "$n")],
    "lcm": [call("lcm", "$i", "$k"), call("lcm", "$k", 12), call("lcm", "$y", "$n")],
    "list_distinct": [
        call("list_distinct", "$l"),
        call("list_length", call("list_distinct", "$l")),
    ],
    "list_unique": [call("list_unique", "$l")],
    "sha1_hex": _texts("sha1_hex"),
    "list_position": [call("list_position", "$l", 2)],
    "lists_share": [call("lists_share", "$l", call("make_list", 9, 4))],
    "sha512_hex": _texts("sha512_hex"),
    "substring_index": _texts("substring_index", ("a", 1), (".", 2), ("x", -1), ("b", 0)),
    "trunc": [call("trunc", "$f")],
    "epoch_seconds": [call("epoch_seconds", "$ts")],
    "reverse": _texts("reverse"),
    "concat": [call("concat", "$s", "$t")],
    "cast": [
        ir.Cast(ir.Column(name), Decimal(precision, scale))
        for name in ("f", "g")
        for precision, scale in ((38, 38), (38, 20), (38, 37), (20, 10), (10, 2), (5, 5))
    ],
}

_TEXTS = [
    *(
        "abcabc",
        "  x ",
        "",
        "Éa b",
        "xxaxx",
        "a",
        "aaa",
        "a.b..c",
        "\N{GRINNING FACE}xa",
        "e\u0301a",
    ),
    *("ΑΣ", "x" * 12, "Straße", "a\tb\n", "ǅ", "\x7f", "0", "é", " ", "aXa", "ba"),
]
_FLOATS = [
    *(0.0, -0.0, 2.5, -2.5, 0.4, -0.5, 1.005, 2.675, -0.125, 0.285, 1e15, 1e16, 1e300, 1e308),
    *(5e-324, 1e-7, 1 / 3, 4503599627370497.5, 123456.7895, 8.35, 77.7, -1e308, 0.1 + 0.2),
    *(math.nan, math.inf, -math.inf, 9007199254740993.0, 1.15, 2.345),
]
_MOMENTS = [
    *(datetime.datetime(2024, 1, 31, 23, 30), datetime.datetime(2024, 2, 29, 0, 0, 0, 250_000)),
    *(datetime.datetime(2023, 12, 31, 12, 0, 1), datetime.datetime(1969, 12, 30, 1, 2, 3)),
    *(datetime.datetime(2013, 6, 3), datetime.datetime(2000, 2, 28, 23, 59, 59, 999_999)),
    *(datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000), datetime.datetime(2024, 12, 30)),
    *(
        datetime.datetime(2021, 1, 3),
        datetime.datetime(1899, 12, 31, 6),
        datetime.datetime(2101, 3, 1),
    ),
]
_INTS = [1, -7, 0, 12, 2**29, -(2**31), 2**31 - 1, 255, -1]
_LISTS = [[1, 2, 3], [None], [], [9], [4, 5], [2, None, 2, None, 7, 2], [3, 1, 3]]
_PAIRS = [[("b", 1), ("a", None)], [], [("é", 2)], [("x", 0), ("", 1), ("a", -1)]]
_LONGS = [5, -25, 1250, 0, 7, 2**62, -(2**63), 2**63 - 1, -1, 255, 2**31]


def table(seed: int = 0) -> pa.Table:
    """Rows of every awkward value, each column in an order of its own."""
    rng = random.Random(seed)
    row_count = len(_FLOATS) + 1

    def column(values: Sequence[Any]) -> list[Any]:
        found = [*values, *(rng.choice(values) for _ in range(row_count - len(values) - 1)), None]
        rng.shuffle(found)
        return found

    moments = column(_MOMENTS)
    columns = {
        "i": pa.array(column(_INTS), pa.int32()),
        "k": pa.array(column(_LONGS), pa.int64()),
        "f": pa.array(column(_FLOATS), pa.float64()),
        "g": pa.array(column([0.5, math.nan, -math.inf, 3.0]), pa.float32()),
        "d": pa.array(column([D("2.50"), D("-2.55"), D("0.00"), D("99.99")]), pa.decimal128(8, 2)),
        "s": pa.array(column(_TEXTS)),
        "t": pa.array(column(["", "b", "é", "xa"])),
        "ts": pa.array(moments, pa.timestamp("us")),
        "day": pa.array([at and at.date() for at in column(_MOMENTS)], pa.date32()),
        "y": pa.array(column([2024, 2023, 1, 1900, 9999]), pa.int32()),
        "m": pa.array(column([1, 2, 12, 4, 13, 0]), pa.int32()),
        "n": pa.array(column([1, 28, 29, 31, 0]), pa.int32()),
        "l": pa.array(column(_LISTS), pa.list_(pa.int64())),
        "p": pa.array(column(_PAIRS), pa.map_(pa.string(), pa.int32())),
    }
    return pa.table(columns)


def ours(operand: ir.Operand, engine: str, rows: pa.Table) -> tuple[list[Any], list[bool]]:
    """What we give under the engine's semantics, and where we fail."""
    schema, _ = schema_of(rows.schema)
    bound = bind_operand(operand, schema, Semantics.named(engine))
    values, failed = compute(bound, rows.combine_chunks().to_batches()[0])
    return values.to_pylist(), failed.tolist()


def written(operand: ir.Operand, engine: str) -> str:
    """The call in the engine's SQL."""
    return to_sql(operand, engine)


def read_back(operand: ir.Operand, engine: str) -> ir.Operand:
    """The call after a way to the engine's SQL and back."""
    return parse_expression(to_sql(operand, engine), engine)
