"""What PostgreSQL itself says of the text that we read and write in its dialect."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import re
import uuid
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.differences import Difference, Direction, differences
from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.bridges.sql.language import from_text, to_text
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidPredicate, UnreadText, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundOperand, bind, bind_operand
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float, Numeric
from rowsieve.types.numeric_bytes import spelled
from tests.bridges.awkward import rows
from tests.bridges.sql.allow_list import EVERY, conditions
from tests.bridges.sql.postgres import (
    connection,
    databases,
    function_names,
    postgres_rows,
    postgres_values,
)
from tests.strategies import SCHEMA

ROWS = rows(3, 60)
NUMBERS = ("i32", "i64", "f32", "f64", "d", "wide")
MOMENTS = ("day", "ts", "tz")
PARTS = (
    *("year", "quarter", "month", "day", "hour", "minute", "second", "doy", "dow", "isodow"),
    *("isoyear", "week", "epoch", "decade", "century", "millennium", "microsecond"),
)
UNITS = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter"),
    *("year", "decade", "century", "millennium"),
)
TYPES = (
    *("boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric(10, 2)"),
    *("numeric(38, 10)", "text", "date", "time", "timestamp", "timestamptz", "uuid"),
)
OF_NUMBERS = (
    *("-{0}", "abs({0})", "floor({0})", "ceil({0})", "round({0})", "sqrt({0})", "sign({0})"),
    *(
        "{0} IN (0, 1.5, NULL)",
        "{0} > 1.5",
        "{0} < 1e300",
        "{0} > -1e50",
        "{0} BETWEEN -1 AND 1",
        "{0} = 0",
    ),
    *("{0} IS DISTINCT FROM 0", "mod({0}, 2)", "ceiling({0})", "{0} & 3", "round({0}, 1)"),
    *("greatest({0}, 0) > 0.1", "least({0}, 0) = 0", "nullif({0}, 0) > 1", "{0} + '1'"),
    "coalesce({0}, 0) = 0.1",
    *("CASE WHEN {0} > 0 THEN 1 ELSE 0 END", "{0} = 'NaN'", "{0} = 'Infinity'", "{0} % 3"),
)
OF_TEXT = (
    *("length({0})", "char_length({0})", "octet_length({0})", "bit_length({0})", "reverse({0})"),
    *("{0} || 'x'", "{0} || NULL", "concat({0}, 'x', NULL)", "concat_ws('-', {0}, NULL, 'b')"),
    *("substr({0}, -1)", "substr({0}, -1, 3)", "substr({0}, 0, 2)", "substr({0}, 1, -1)"),
    *("substring({0} FROM 2 FOR 1)", "left({0}, -1)", "left({0}, i32)", "right({0}, -1)"),
    *("position('' IN {0})", "strpos({0}, 'b')", "replace({0}, '', 'x')", "trim({0})"),
    *("trim(BOTH 'ab' FROM {0})", "btrim({0}, 'a')", "ltrim({0}, '')", "lpad({0}, 3)"),
    *("rpad({0}, -1, 'x')", "repeat({0}, -1)", "split_part({0}, 'b', -1)", "md5({0})"),
    *("translate({0}, 'ab', 'x')", "starts_with({0}, 'a')", "ascii({0})", "nullif({0}, '')"),
    *("{0} LIKE 'a%'", "{0} LIKE 'a\\_c'", "{0} LIKE '%\\%'", "{0} NOT LIKE '_'", "{0} LIKE ''"),
    *("{0} LIKE 'a!%' ESCAPE '!'", "{0} LIKE 'A%' ESCAPE ''", "{0} IN ('a', 'é', NULL)"),
    *("{0} COLLATE \"C\" < 'b'", "{0} COLLATE \"C\" BETWEEN 'B' AND 'é'", "{0} = 'a'"),
    "greatest({0} COLLATE \"C\", 'b')",
)
OTHERS = (
    *("b IS NOT TRUE", "b = 't'", "NOT b", "b > FALSE", "b::integer", "b AND NULL", "b = 'on'"),
    *("bin = '\\x00'", "bin < '\\xff'", "bin IN ('\\x61')", "greatest(bin, '\\x61')"),
    *("(pair).x", "(pair).y = ''", "(pair).x IS NULL", "time > '10:00'", "tz = ts", "day < ts"),
    *("i64 = 9007199254740993.0", "i64 = 9007199254740993::double precision", "d > 1e30"),
    *("f32 = 0.1", "f32 IN (0.1)", "f32 = 0.1::real", "f64 = i64", "f64 > d", "f32 > i32"),
    *("i64 < 9223372036854775807.5", "f64 IN (9007199254740993, 1)", "d IN (1.499, '7')"),
    *("i32 IS NULL OR i32 = 0", "-7 / 2 = i32", "-7 % 3 = i32", "0.1 + 0.2 = 0.3", "i64 >> 3"),
    *("i64 & i32", "i64 | 5", "i64 # i32", "tz > '2013-01-01 10:30:00+02'", "i64 << 3"),
    *("ts = '2013-01-01T00:00:00'", "tz = '2013-01-01'", "i32 = ' 7 '", "f64 = ' 1.5 '"),
    *("ts - TIMESTAMP '2001-01-01' > INTERVAL '40 days'", "to_timestamp(i32) > tz"),
    *("date_bin(INTERVAL '7 days', ts, TIMESTAMP '2001-01-01')", "CAST(tz AS date) = day"),
    *("s ~~ 'a%'"),
    # what is left now, and would have to mean the same if it were not
    *(
        "degrees(f64)",
        "extract(millisecond FROM ts)",
        "pair IS NULL",
    ),
    *("right(s, i32)", "greatest(f32, i32)", "f32 IN (0.1, 1.5)", "i64 * 1e200"),
    *("f64 = 1e50", "f64 IN (1e50, 1.5)", "f64 > 1e-400", "i64 IN (1e3, 1e50)", "1e50 < 1e51"),
    *("i32 IS DISTINCT FROM 1e-50", "f32 * 1e40 > 1e50", "coalesce(i64, 1e50) = 1e50"),
    *("CASE WHEN f32 = 1.5 THEN TRUE ELSE NULL END", "NOT CASE WHEN b THEN NULL ELSE FALSE END"),
    *("CASE WHEN b THEN f32 ELSE d END = 9999.99", "coalesce(d, f32) = 9999.99"),
    *("ln(f64)", "exp(f64)", "power(f64, 2)", "f64 ^ 0.5", "power(i32, -1)", "pow(f64, i32)"),
    *("-f64 ^ 3 ^ 2", "power(-1.5::float8, f64)", "ln(i64)", "exp(i32)", "i64 ^ i32 ^ 2"),
    *("power(f64, d)", "power(0.5, f64)", "2 * f64 ^ 2"),
    *("make_date(2013, i32, 1)", "date_trunc('day', ts) = day", "date_part('year', ts)"),
)
READ = (
    *(f"CAST({c} AS {type_})" for c in (*NUMBERS, "b", "s", "t", *MOMENTS) for type_ in TYPES),
    *(f"{a} {op} {b}" for a in NUMBERS for op in "+-*" for b in NUMBERS),
    *(form.format(name) for form in OF_NUMBERS for name in NUMBERS),
    *(form.format(name) for form in OF_TEXT for name in "st"),
    *(f"extract({part} FROM {name})" for part in PARTS for name in MOMENTS),
    *(f"date_trunc('{unit}', {name})" for unit in UNITS for name in MOMENTS[1:]),
    *(
        f"{name} {sign} INTERVAL '{length}' > '2000-01-01'"
        for name in MOMENTS
        for sign in "+-"
        for length in ("1 month", "13 months -2 days", "36 hours", "00:00:00.5")
    ),
    *OTHERS,
)
FUNCTIONS = {
    *(
        "abs",
        "age",
        "ascii",
        "bit_length",
        "btrim",
        "cardinality",
        "ceil",
        "ceiling",
        "char_length",
    ),
    *("character_length", "concat", "concat_ws", "degrees", "floor", "greatest", "least", "left"),
    *("length", "lower", "lpad", "ltrim", "make_date", "md5", "mod", "now", "nullif"),
    *("octet_length", "position", "radians", "repeat", "replace", "reverse", "right", "round"),
    *("rpad", "rtrim", "sign", "split_part", "sqrt", "starts_with", "strpos", "substr"),
    *("substring", "to_timestamp", "transaction_timestamp", "translate", "upper"),
    *("array_to_string", "date", "exp", "gcd", "lcm", "ln", "pi", "pow", "power", "trunc"),
    *("json_array_length", "json_typeof", "jsonb_array_length", "jsonb_typeof"),
    "jsonb_eq",
}
OPERATORS = {
    *("+", "-", "*", "/", "%", "<", "<=", "=", "<>", ">=", ">", "&", "|", "#", "<<", ">>", "||"),
    *("^", "~~", "~~*", "->", "->>", "#>", "#>>", "~", "~*", "!~", "!~*", "@>", "<@", "&&"),
    *("?", "?|", "?&"),
}
LACKING = re.compile("does not exist|cannot cast|cannot be matched|out of range")


TABLE = pa.table(ROWS)


@pytest.mark.parametrize("part", range(0, len(READ), 40))
def test_read_conditions_keep_the_rows_of_postgresql(part: int) -> None:
    """On each row the same value; what PostgreSQL has no operator for may be read all the same."""
    judged, texts = 0, READ[part : part + 40]
    for text in texts:
        try:
            parsed = to_operand(text, schema=SCHEMA)
            bound = bind_operand(parsed, SCHEMA, Semantics.POSTGRES)
        except (InvalidPredicate, UnsupportedOperation):
            continue
        if _is_refused(parsed, text):
            continue
        wanted = _computed(bound)
        try:
            found = postgres_values(text, TABLE, [*wanted])
        except psycopg.Error as error:
            if not LACKING.search(str(error)):
                raise
            continue
        pairs = zip(found, wanted.values(), strict=True)
        wrong = [pair for pair in pairs if not same(*pair, bound.type)]
        assert not wrong, (text, wrong)
        judged += bool(wanted)
    assert judged * 4 >= len(texts)  # others are refused, or not in PostgreSQL


def _computed(bound: BoundOperand) -> dict[int, Any]:
    """The value by row, without rows that fail and rows with a text that no rule here reads."""
    try:
        values, failed = compute(bound, ROWS)
    except UnreadText:
        return {
            row: value
            for row in range(ROWS.num_rows)
            for value in _computed_alone(bound, ROWS.slice(row, 1))
        }
    return {row: values[row].as_py() for row, bad in enumerate(failed) if not bad}


def _computed_alone(bound: BoundOperand, row: pa.RecordBatch) -> list[Any]:
    try:
        values, failed = compute(bound, row)
    except UnreadText:
        return []
    return [] if failed[0] else values.to_pylist()


def _is_refused(parsed: ir.Operand, text: str) -> bool:
    """Whether a translation would leave the condition: then it may mean what it likes."""
    condition = text if isinstance(parsed, ir.Condition) else f"({text}) IS NULL"
    return from_text(condition, SCHEMA).residual is not None


def same(found: Any, wanted: Any, type_: Any) -> bool:
    if isinstance(found, uuid.UUID):
        found = found.bytes
    if type_ == Numeric() and wanted is not None:
        wanted = decimal.Decimal(spelled(wanted["exact"]))
    if isinstance(found, datetime.datetime) and isinstance(wanted, datetime.datetime):
        return bool(found == wanted.replace(tzinfo=found.tzinfo))
    if isinstance(found, float) and isinstance(wanted, float):
        if type_ == Float(32):  # its text is short
            found, wanted = (pa.scalar(each, pa.float32()).as_py() for each in (found, wanted))
        return bool(found == wanted) or (math.isnan(found) and math.isnan(wanted))
    return bool(found == wanted)


DIFFERENT = differences("postgres", Direction.READS)


@pytest.mark.parametrize("difference", DIFFERENT, ids=lambda each: each.reason)
def test_conditions_that_postgresql_interprets_differently_are_residual(
    difference: Difference,
) -> None:
    text = difference.example
    made = from_text(f"i64 = 1 AND {text}", SCHEMA)
    assert made.residual == text
    assert difference.text in made.notes[0]
    batch, collation = ROWS, "C"
    if difference.example.startswith("upper"):
        collation = "PG_UNICODE_FAST"
        batch = ROWS.set_column(ROWS.schema.get_field_index("s"), "s", pa.array(["straße"] * 60))
    outcome = evaluate(bind(parse_predicate(text), SCHEMA, Semantics.POSTGRES), batch)
    good = [row for row, bad in enumerate(outcome.failed) if not bad]
    found = postgres_values(text, pa.table(batch), good, collation)
    failed = [row for row, bad in enumerate(outcome.failed) if bad]
    differs = [bool(each) for each in found] != outcome.true[good].tolist()
    assert differs or postgres_values(text, pa.table(batch), failed)


ORDERS = ("s < 'b'", "'b' > s", "s BETWEEN 'B' AND 'é'", "greatest(s, 'b') = s", "NOT s >= t")
BYTES = (
    *("s COLLATE \"C\" < 'b'", "s COLLATE \"C\" BETWEEN 'B' AND 'é'"),
    *("greatest(s COLLATE \"C\", 'b') = s", 'NOT s COLLATE "C" >= t'),
    *('i64 > 5 OR s COLLATE "C" >= t', "s = 'a'", "s LIKE 'A%'", "starts_with(s, 'a')"),
)


@pytest.mark.parametrize("text", ORDERS)
def test_text_in_the_order_of_a_database_is_left(text: str) -> None:
    assert from_text(f"i64 = 1 AND {text}", SCHEMA).residual == text
    assert postgres_rows(text, ROWS) == ours(parse_predicate(text))


@pytest.mark.parametrize("text", BYTES)
def test_text_in_the_order_of_bytes_is_read_and_written(text: str) -> None:
    read = from_text(text, SCHEMA).exact()
    texts = [text]
    if "greatest" not in text:
        texts.append(to_text(read, SCHEMA).exact())
        assert ours(from_text(texts[1], SCHEMA).exact()) == ours(read)
    for each in texts:
        for database in databases():
            assert postgres_rows(each, ROWS, database) == ours(read)


def ours(predicate: ir.Predicate) -> list[int]:
    outcome = evaluate(bind(predicate, SCHEMA, Semantics.POSTGRES), ROWS)
    return [row for row, true in enumerate(outcome.true) if true]


@pytest.mark.parametrize("database", databases()[1:])
def test_functions_of_text_do_not_hang_on_the_database(database: str) -> None:
    for name in EVERY:
        for text, batch, matches in conditions(name, "postgres"):
            if '"s"' in text:
                assert postgres_rows(text, batch, database) == matches, text


OUT_OF_RANGE = (
    *("f64 * f64 > 0", "f64 * 1e-300 > 0", "f32 + f32 > 0", "CAST(f64 AS real) > 0"),
    *("f64 / 1e300 > 0", "f64 - -1e308 > 0", "degrees(f64) > 0", "radians(f64) > 0"),
)


@pytest.mark.parametrize("text", OUT_OF_RANGE)
def test_floats_out_of_range_fail_as_in_postgresql_alone(text: str) -> None:
    column = "f32" if "f32" in text else "f64"
    cells = [3e38, 1.0] if column == "f32" else [1.0 if "real" in text else 1e308, 5e-324]
    type_ = pa.float64() if column == "f64" else pa.float32()
    batch = pa.record_batch({column: pa.array(cells, type_)})
    predicate = from_text(text, SCHEMA).exact()
    assert evaluate(bind(predicate, SCHEMA, Semantics.POSTGRES), batch).failed.any()
    assert postgres_rows(text, batch) is None
    assert not evaluate(bind(parse_predicate(text), SCHEMA, Semantics.SQL), batch).failed.any()
    meant = parse_predicate(text)
    written = rs.translate(meant, source="rowsieve", target="postgres", schema=batch.schema)
    assert written.expression is None


@pytest.mark.parametrize("text", ["greatest(s, t) = s", "lower(s) = 'a'", "pair IS NULL"])
def test_conditions_that_depend_on_the_database_are_not_written(text: str) -> None:
    assert to_text(parse_predicate(text), SCHEMA).expression is None


def test_letters_hang_on_the_database() -> None:
    found = {
        connection(database).execute("SELECT upper('straße')").fetchone()
        for database in ("C", "PG_UNICODE_FAST")
    }
    assert found == {("STRAßE",), ("STRASSE",)}


def test_every_function_is_listed_or_refused_by_its_name() -> None:
    """PostgreSQL's own list: what we read of it stands in `FUNCTIONS`."""
    read = set()
    for name in function_names():
        for count in range(4):
            with contextlib.suppress(InvalidPredicate):
                parsed = parse_expression(f"{name}({', '.join(['s'] * count)})")
                calls = [node.function for node in ir.walk(parsed) if isinstance(node, ir.Call)]
                if {*calls} <= BUILT_IN:
                    read.add(name)
    assert read == FUNCTIONS


def test_every_operator_is_listed_or_refused() -> None:
    """PostgreSQL's own list: what we read of it stands in `OPERATORS`."""
    rows = connection().execute("SELECT DISTINCT oprname FROM pg_operator").fetchall()
    read = set()
    for (name,) in rows:
        for text in (
            *(f"s {name} 's'", f"j {name} '{{a}}'", f"i64 {name} 2", f"{name} i64"),
            f"s {name} array['s']",
        ):
            with contextlib.suppress(InvalidPredicate):
                parse_expression(text)
                read.add(name)
    assert read == OPERATORS
