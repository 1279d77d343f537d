"""Functions give what the engines give whose dialect they are read in, row by row.

The engines read Arrow tables in memory. Where ours fails on a row, the engine must fail on it too.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.sql import parse_expression
from rowsieve.bridges.sql.spark.types.typer import spark_typed
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.postgres import postgres_values
from tests.cases import cases_in
from tests.duckdb_sessions import duckdb_session

D = decimal.Decimal
MOMENTS = [
    datetime.datetime(2024, 1, 31, 23, 30),
    datetime.datetime(2024, 2, 29, 0, 0, 0, 250_000),
    datetime.datetime(2023, 12, 31, 12, 0, 1),
    datetime.datetime(1969, 12, 30, 1, 2, 3),
    datetime.datetime(2013, 6, 3),
    None,
]
MAP = pa.map_(pa.string(), pa.int32())
TABLE = pa.table(
    {
        "i": pa.array([1, -7, 0, 12, 2**29, None], pa.int32()),
        "k": pa.array([5, -25, 1250, 0, 7, None], pa.int64()),
        "f": pa.array([2.5, -2.5, 0.4, -0.5, 1e15, None], pa.float64()),
        "d": pa.array([D("2.50"), D("-2.55"), D("0.00"), D("99.99"), D("7.45"), None]),
        "s": ["abcabc", "  x ", "", "Éa b", "xxaxx", None],
        "ts": pa.array(MOMENTS, pa.timestamp("us")),
        "day": pa.array([at and at.date() for at in MOMENTS], pa.date32()),
        "l": pa.array([[1, 2, 3], [None], [], [9, 9, None], [4, 5], None], pa.list_(pa.int64())),
        "m": pa.array(
            [[("a", 1), ("b", 2)], [("b", None)], [], [("", 3)], [("a", None)], None], MAP
        ),
    }
).cast(
    pa.schema(
        [
            ("i", pa.int32()),
            ("k", pa.int64()),
            ("f", pa.float64()),
            ("d", pa.decimal128(8, 2)),
            ("s", pa.string()),
            ("ts", pa.timestamp("us")),
            ("day", pa.date32()),
            ("l", pa.list_(pa.int64())),
            ("m", MAP),
        ]
    )
)
COMMON = cases_in(__file__, "common.txt")
OF_DAYS = [
    "3 + day",
    "day + (i % 100)",
    "day - (i % 100)",
    "day - CAST(ts AS date)",
    "day - day + 1",
]
OWN: dict[str, list[str]] = {
    "duckdb": [
        *(
            "len(l[1:2])",
            "l[2:][1]",
            "len(l[:2])",
            "list_slice(l, 2, 3)[1]",
            "array_slice(l, 1, 1)[1]",
        ),
        *("list_unique(l)", "len(list_distinct(l))", "gcd(i, 6)", "lcm(i, k)"),
        *("greatest_common_divisor(k, i)", "len(map_keys(m))", "map_keys(m)[1]"),
        *("map_extract(m, 'a')[1]", "element_at(m, 'b')[1]", "map_extract_value(m, 'b')"),
        *("CASE WHEN map_contains(m, 'b') THEN 1 END", "len(l[3:2])"),
        "CAST(i AS varchar)",
        "CAST(day AS varchar)",
        "starts_with(s, 'ab')",
        "ends_with(s, 'x')",
        "contains(s, 'b')",
        "strpos(s, 'b')",
        "left(s, -2)",
        "right(s, -1)",
        "len(l)",
        "l[1]",
        "l[2]",
        "array_length(l)",
        *("array_length(l, 1)", "l[-1]", "l[i]", "list_extract(l, 2)", "array_extract(l, -2)"),
        *("list_position(l, 2)", "array_position(l, 9)", "list_max(l)", "list_min(l)"),
        "day + INTERVAL '5 hours'",
        "concat(s, 'x')",
        "i % 0",
        *OF_DAYS,
        "date(ts)",
        "week(day)",
        "epoch(ts)",
        "extract(epoch FROM ts)",
        "datepart('year', day)",
        *("trim(s)", "ltrim(s)", "rtrim(s)"),
        *("prefix(s, 'a')", "suffix(s, 'x')", "sha1(s)", "trunc(f)"),
        *(
            "strftime(ts, '%Y-%m-%d %H:%M:%S')",
            "strftime(day, '%d.%m.%Y')",
            "strftime(day, '%Y%j')",
            "strftime(ts, '%a %A, %d %b %B %y, %I %p')",
        ),
    ],
    "datafusion": [
        *("array_length(l[1:2])", "array_slice(l, 2, 3)[1]", "array_slice(l, 2, 9)[2]"),
        *("array_distinct(l)[1]", "cardinality(array_distinct(l))", "gcd(i, 6)", "lcm(i, k)"),
        *("map_keys(m)[1]", "map_extract(m, 'a')[1]", "element_at(m, 'b')[1]"),
        "CAST(i AS varchar)",
        "CAST(day AS varchar)",
        "starts_with(s, 'ab')",
        "ends_with(s, 'x')",
        "contains(s, 'b')",
        "strpos(s, 'b')",
        "left(s, -2)",
        "right(s, -1)",
        "reverse(s)",
        "cardinality(l)",
        "l[1]",
        "l[2]",
        *("array_length(l, 1)", "l[-1]", "l[i]", "list_extract(l, 2)", "array_element(l, -2)"),
        *("array_position(l, 9)", "array_max(l)", "array_min(l)"),
        "concat(s, 'x')",
        "i / 5",
        "f / 0",
        "10 / i",
        *OF_DAYS,
        *("extract(epoch FROM ts)", "encode(sha512(s), 'hex')", "substring_index(s, 'b', -1)"),
        *("to_char(ts, '%Y-%m-%d %H:%M:%S')", "to_char(day, '%d.%m.%Y')", "trunc(f)"),
        *("to_char(ts, '%a %A, %d %b %B %y, %I %p')", "to_char(day, '%b %y')"),
    ],
    "spark": [
        *("size(slice(l, 1, 2))", "get(slice(l, 2, 9), 1)", "size(slice(l, 3, 0))"),
        *("size(array_distinct(l))", "get(array_distinct(l), 1)", "get(map_keys(m), 0)"),
        "CASE WHEN map_contains_key(m, 'b') THEN 1 WHEN arrays_overlap(l, array(9, 4)) THEN 2 END",
        *("date_format(ts, 'yyyy-MM-dd HH:mm:ss')", "date_format(day, \"DDD'/'yyyy\")"),
        "CAST(i AS string)",
        "CAST(day AS string)",
        "startswith(s, 'ab')",
        "endswith(s, 'x')",
        "contains(s, 'b')",
        "instr(s, 'b')",
        "reverse(s)",
        "size(l)",
        "cardinality(l)",
        "get(l, 0)",
        "get(l, 1)",
        "btrim(s)",
        "day + INTERVAL '5' HOUR",
        "CAST(f AS double) / 2",
    ],
}
OF_DUCKDB = (
    *("ends_with", "contains", "len", "ar", "date", "week", "epoch", "extract", "trim", "ltrim"),
    *(
        "len(",
        "gr",
        "map",
        "element",
        "CASE WHEN map",
        "l[2:]",
        "list",
        "l[-",
        "rtrim",
        "prefix",
        "suffix",
        "sha1",
        "trunc",
        "strf",
    ),
)
OWN["postgres"] = [
    *(text for text in OWN["duckdb"] if not text.startswith(OF_DUCKDB) and text not in OF_DAYS),
    *OF_DAYS,
    *("array_length(l[1:2], 1)", "(l[2:])[1]", "array_length(l[:2], 1)"),
    *("array_length(l, 1)", "array_length(l, 1) + 1", "array_position(l, 5)", "l[i]"),
    *("date(ts)", "trunc(f)", "encode(sha512(convert_to(s, 'UTF8')), 'hex')"),
    *("to_char(ts, 'YYYY-MM-DD\"T\"HH24:MI:SS')", "to_char(day, 'DD/MM YYYY')"),
    *("reverse(s)", "i / 5", "10 / i", "i / 0", "f / 0", "length(s)", "char_length(s)", "btrim(s)"),
    *("cardinality(l)", "octet_length(s)", "md5(s)", "ascii(s)", "repeat(s, 2)", "s || NULL"),
    *("substr(s, -1)", "substr(s, -1, 3)", "substr(s, 0, 2)", "substr(s, 2, -1)", "left(s, i)"),
    *("position('' IN s)", "strpos(s, 'b')", "replace(s, '', 'x')", "split_part(s, 'b', -1)"),
    *("concat(s, NULL, 'x')", "concat_ws('-', s, NULL, 'b')", "lpad(s, 3)", "rpad(s, -1, 'x')"),
    *("translate(s, 'ab', 'x')", "k + 1", "k * 2", "k << 3", "i # 5", "i & k"),
    *("CAST(d AS text)", "CAST(ts AS text)", "CAST(k AS integer)", "CAST(f AS bigint)", "sign(f)"),
    *("CAST(k AS smallint)", "CAST(d AS integer)", "CAST(k AS numeric(5, 0))", "sqrt(f)"),
    *("CAST(f AS numeric(20, 10))", "CAST(d AS double precision)", "day + INTERVAL '1 month'"),
    *(f"extract({part} FROM ts)" for part in ("second", "epoch", "century", "microsecond")),
    *(f"date_trunc('{unit}', ts)" for unit in ("millennium", "decade", "second", "millisecond")),
]
Ask = Callable[[str, pa.Table], list[Any]]


def _duckdb() -> Ask:
    connection = duckdb_session()

    def ask(text: str, table: pa.Table) -> list[Any]:
        connection.register("t", table)
        found: list[Any] = [row[0] for row in connection.sql(f"SELECT {text} FROM t").fetchall()]
        return found

    return ask


def _datafusion() -> Ask:
    import datafusion

    def ask(text: str, table: pa.Table) -> list[Any]:
        context = datafusion.SessionContext()
        context.register_record_batches("t", [table.to_batches()])
        batches = context.sql(f"SELECT {text} AS x FROM t").collect()
        return [cell for batch in batches for cell in batch.column(0).to_pylist()]

    return ask


ENGINES: dict[str, Callable[[], Ask]] = {
    "duckdb": _duckdb,
    "datafusion": _datafusion,
    "postgres": lambda: postgres_values,
}


def test_a_row_of_text_is_refused_that_has_no_counterpart() -> None:
    for text, why in (("sin(f)", "last digits"), ("initcap(s)", "everything but letters")):
        with pytest.raises(InvalidPredicate, match=why):
            parse_expression(text, "datafusion")


def ours(text: str, engine: str, table: pa.Table) -> tuple[list[Any], list[bool]]:
    schema, _ = schema_of(table.schema)
    semantics = Semantics.named(engine)
    parsed = parse_expression(text, engine)
    try:
        operand = bind_operand(parsed, schema, semantics)
    except InvalidPredicate:  # what Spark makes of it hangs on its types
        operand = bind_operand(spark_typed(parsed, schema, ansi=True), schema, semantics)
    values, failed = compute(operand, table.combine_chunks().to_batches()[0])
    return values.to_pylist(), failed.tolist()


def alike(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) or isinstance(wanted, float):
        if found is None or wanted is None:
            return found is wanted
        both_nan = math.isnan(found) and math.isnan(wanted)
        return both_nan or float(found) == float(wanted)
    if isinstance(found, datetime.datetime) != isinstance(wanted, datetime.datetime):
        return False
    return bool(found == wanted)


@pytest.mark.parametrize(
    ("engine", "text"),
    [(engine, text) for engine in ENGINES for text in (*COMMON, *OWN[engine])],
)
def test_a_function_returns_the_values_of_the_engine(engine: str, text: str) -> None:
    check(text, engine, ENGINES[engine]())


def check(text: str, engine: str, ask: Ask) -> None:
    values, failed = ours(text, engine, TABLE)
    good = [row for row, bad in enumerate(failed) if not bad]
    found = ask(text, TABLE.take(good))
    wanted = [values[row] for row in good]
    assert len(found) == len(wanted)
    assert all(map(alike, found, wanted)), (found, wanted)
    for row, bad in enumerate(failed):
        if bad:
            with pytest.raises(Exception):  # noqa: B017, PT011 - each engine has its own
                ask(text, TABLE.take([row]))
