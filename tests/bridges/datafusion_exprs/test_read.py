"""Expressions that are read keep the rows that DataFusion keeps; others are named and left out."""

from __future__ import annotations

import decimal
import math
import re
import threading
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest
from datafusion import col, lit
from datafusion import functions as f

import rowsieve as rs
from rowsieve.bridges.datafusion_exprs import (
    from_datafusion,
    is_datafusion_expression,
    to_datafusion,
)
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs.engine import frame, theirs

D = decimal.Decimal
BATCH = pa.record_batch(
    {
        "i": pa.array([1, -7, 0, 12, -(2**31), 2**31 - 1, None], pa.int32()),
        "k": pa.array([5, -25, 2**53 + 1, 0, -(2**63), 2**63 - 1, None], pa.int64()),
        "u": pa.array([5, 0, 2**64 - 1, 7, 2**63, 1, None], pa.uint64()),
        "f": pa.array([2.5, math.nan, -0.0, 0.0, math.inf, -math.inf, None], pa.float64()),
        "g": pa.array([16777216.0, math.nan, -0.0, 0.1, math.inf, -math.inf, None], pa.float32()),
        "d": pa.array(
            [D("2.50"), D("-2.55"), D("0.00"), D("99.99"), D("1.40"), D("0.10"), None],
            pa.decimal128(8, 2),
        ),
        "s": pa.array(["abcabc", "  x ", "", "Éa b", "a\nb", "A%_\\", None]),
        "t": pa.array(["abc", "x", None, "", "é", "a", None]),
        "b": pa.array([True, False, None, True, False, None, True]),
        "day": pa.array([0, -1, 15706, 19782, 2932896, -719162, None], pa.int32()).cast(
            pa.date32()
        ),
        "ts": pa.array(
            [0, -1, 1356998400000000, 1709164800250000, 951782400000000, 1, None], pa.int64()
        ).cast(pa.timestamp("us")),
        "tz": pa.array(
            [0, -1, 1356998400000000, 1709164800250000, 951782400000000, 1, None], pa.int64()
        ).cast(pa.timestamp("us", "UTC")),
        "l": pa.array([[1, 2, 3], [None], [], [9], [4, 5], [0], None], pa.list_(pa.int64())),
        "p": pa.StructArray.from_arrays(
            [
                pa.array([1, None, 0, None, 2, 1, None], pa.int32()),
                pa.array(["a", "", None, None, "b", "c", None]),
            ],
            ["x", "y"],
            mask=pa.array([False, False, False, True, False, False, True]),
        ),
    }
)

SCHEMA = schema_of(BATCH.schema)[0]
FRAME = frame(BATCH)
EXACT = [
    "try_cast(i as bigint) > 5",
    "not (try_cast(i as bigint) = 5)",
    "try_cast(u as decimal(20, 0)) > 7",
    "try_cast(i as decimal(12, 2)) <= 12",
    "try_cast(ts as date) = date '2013-01-01'",
    "try_cast(tz as date) <> date '2013-01-01'",
    "try_cast(s as int) is null",
    "not (try_cast(s as boolean))",
    "cast(s as int) = 1",
    "i = 1",
    "i <> 1",
    "k > 9007199254740992",
    "k = 9007199254740993",
    "k = 9007199254740992.0",
    "u > 9223372036854775807",
    "u = k",
    "u > -1",
    "g = 16777217",
    "g = 0.1",
    "g > i",
    "g < k",
    "k = g",
    "f = g",
    "f > 5",
    "f = 'NaN'::double",
    "f <> 0",
    "f in (0,1,2,3)",
    "f in (0.0)",
    "f in (0.0,1.0,2.0,3.0)",
    "f not in (0.0,1.0,2.0,3.0)",
    "i in (1,2)",
    "i not in (1,null)",
    "i not in (1,2,3,4,null)",
    "s in ('abcabc','')",
    "s not in ('','x',null,'y')",
    "d > 1.4",
    "d = 1.4",
    "d = 1.40",
    "d > 1",
    "d = 0.1",
    "d = 2.505",
    "d >= 99.989",
    "s like 'a%'",
    "s like 'a_b'",
    "s not like '%b%'",
    "s ilike 'a%'",
    "s not ilike 'É%'",
    "s like 'A\\%%'",
    "i between 0 and 5",
    "i not between 0 and 5",
    "f between 0 and 5",
    "g between 0.05 and 0.2",
    "b",
    "not b",
    "b is true",
    "b is not true",
    "b is false",
    "b is not false",
    "b is unknown",
    "b is not unknown",
    "i is null",
    "i is not null",
    "f is not null and i > 0",
    "i is distinct from 1",
    "i is not distinct from null",
    "f is distinct from 'NaN'::double",
    "b = (i > 0)",
    "(i > 0) is null",
    "-i > 0",
    "-k > 0",
    "-d > 0",
    "- 5 < i",
    "i + 1 > 0",
    "i - 1 < 0",
    "k + 1 > 0",
    "k * 2 > 0",
    "i * 2 > 0",
    "i + i > 0",
    "k - 1 > 0",
    "i / 5 = 0",
    "k / 5 = -5",
    "i % 5 = 2",
    "10 / i > 0",
    "k / -1 > 0",
    "k % -1 = 0",
    "f * 2 > 5",
    "f / 2 > 5",
    "1 / f > 0",
    "1.0 / f > 0",
    "g * 2 > 5",
    "d + 1 > 2",
    "d * 2 > 2",
    "d + i > 0",
    "d * d > 1",
    "cast(i as decimal(18,0)) = 16777217.0",
    "abs(f) > 1",
    "floor(f) > 1",
    "ceil(g) > 1",
    "round(f) = 3",
    "i & 1 = 1",
    "k | i > 5",
    "k ^ 6 > 0",
    "sqrt(abs(f)) > 1.5",
    "degrees(f) > 100",
    "radians(f) < 0",
    "signum(f) = 1",
    "isnan(f)",
    "not isnan(g)",
    "octet_length(s) > 4",
    "bit_length(s) = 48",
    "ascii(s) = 97",
    "md5(s) = md5('abcabc')",
    "translate(s, 'abé', 'xy') = 'xycxyc'",
    "repeat(s, 2) = 'abcabcabcabc'",
    "lpad(s, 8) = '  abcabc'",
    "lpad(s, 8, 'xy') = 'xyabcabc'",
    "rpad(s, 2, 'x') = 'ab'",
    "split_part(s, 'b', 2) = 'ca'",
    "concat_ws('-', s, t) = 'abcabc-abc'",
    "extract(dow from ts) = 1",
    "extract(isodow from day) = 2",
    "extract(isoyear from ts) = 2013",
    "lower(s) = 'abcabc'",
    "upper(s) = 'ÉA B'",
    "length(s) > 3",
    "char_length(s) = 0",
    "starts_with(s,'a')",
    "ends_with(s,'c')",
    "contains(s,'b')",
    "concat(s,'x') = 'x'",
    "concat(s,t) = 'abcabcabc'",
    "s || t = 'abcabcabc'",
    "s || 'x' = 'x'",
    "replace(s,'abc','') = ''",
    "replace(s,'','x') = s",
    "strpos(s,'b') = 2",
    "strpos(s,'') = 1",
    "position('b' in s) = 2",
    "reverse(s) = 'cbacba'",
    "substr(s,1,2) = 'ab'",
    "substr(s,2) = 'bcabc'",
    "left(s,2) = 'ab'",
    "left(s,-2) = 'abca'",
    "right(s,2) = 'bc'",
    "right(s,-2) = 'cabc'",
    "trim(s) = 'x'",
    "btrim(s,'a') = 'bcabc'",
    "ltrim(s) = 'x '",
    "rtrim(s,'c') = 'abcab'",
    "ltrim(s,'ab') = 'cabc'",
    "coalesce(i,0) = 0",
    "coalesce(s,'z') = 'z'",
    "coalesce(f,0.0) = 0",
    "nullif(k,0) is null",
    "greatest(k,0) > 0",
    "least(k,0) < 0",
    "greatest(s,'b') = 'b'",
    "cardinality(l) = 1",
    "array_length(l) = 1",
    "cardinality(l) = 0",
    "l[1] = 1",
    "l[2] = 2",
    "p['x'] = 1",
    "p['y'] = ''",
    "p.y is null",
    "p is null",
    "day = date '2013-01-01'",
    "ts > timestamp '2013-01-01 00:00:00'",
    "ts = timestamp '2013-01-01'",
    "tz > timestamp '2013-01-01'",
    "day < ts",
    "ts < tz",
    "day < tz",
    "day = ts",
    "date_trunc('month', ts) = timestamp '2000-02-01'",
    "date_trunc('WEEK', ts) < ts",
    "date_trunc('day', tz) = tz",
    "extract(year from ts) = 2013",
    "extract(year from day) > 2000",
    "extract(doy from ts) = 1",
    "extract(week from ts) = 1",
    "extract(hour from tz) = 23",
    "extract(quarter from day) = 1",
    "day + interval '1 month' > day",
    "day + interval '1 day' > date '2013-01-01'",
    "ts + interval '1 month' > timestamp '2013-02-01'",
    "ts - interval '36 hours' < timestamp '2013-01-01'",
    "interval '1 day' + ts > ts",
    "day - interval '1 month' < ts",
    "cast(i as bigint) = 1",
    "cast(k as int) = 5",
    "cast(i as double) = 1",
    "cast(k as double) = 9007199254740992",
    "cast(k as float) = 5",
    "cast(g as double) > 0.1",
    "cast(i as varchar) = '-7'",
    "cast(i as decimal(12,2)) = 1.00",
    "cast(day as varchar) = '2013-01-01'",
    "cast(ts as date) = date '2013-01-01'",
    "cast('5' as int) = k",
    "case when i > 0 then 'a' else 'b' end = 'a'",
    "case i when 1 then 'a' when 0 then 'b' end = 'a'",
    "case when b then true else false end",
    "i = 1 or s like 'a%'",
    "true",
    "false",
    "null",
    "i = null",
    "u in (5, 7, 18446744073709551615)",
    "day in (date '2013-01-01')",
    "ts in (timestamp '2013-01-01')",
    *(
        "k >> 1 = 1",
        "signum(i) > 0",
        "coalesce(k,u) > 0",
        "day > '2013-01-01'",
        "ts > '2013-01-01'",
        "date_trunc('day', day) = day",
        "extract(second from ts) = 0",
        "cast(day as timestamp) = ts",
        "arrow_cast(day,'Timestamp(Microsecond, None)') = ts",
        "case when i > 0 then f else k end > 0",
        "i in (1, k)",
        "i = '1'",
        "d in (2.50, 1)",
        "s ~ 'a'",
    ),
    "s !~ 'a'",
    "k in (5.0, -0.0, 2.5, 7.0)",
    "k in (5.0, 0.0, 2.5, 7.0)",
    "f / 2.5 in (0.0, 1.0, 2.0, -3.0)",
    "f / 2.5 in (-0.0, 1.0, 2.0, -3.0)",
    "g in (-0.0, 1.0, 2.0, -3.0)",
    "g not in (0.0, 1.0, null, -3.0)",
    "s ~* 'B'",
    "s !~* '^A'",
    "k << 2 = 20",
    "to_local_time(tz at time zone 'UTC') = timestamp '2013-01-01'",
    "arrow_cast(ts,'Timestamp(s, None)') = timestamp '2013-01-01 00:00:00.7'",
    "arrow_cast(tz,'Timestamp(Second, Some(\"UTC\"))') <= tz",
    "encode(sha256(s), 'hex') <> 'x'",
]
REFUSED = [
    "coalesce(arrow_cast(ts,'Timestamp(s, None)'), ts) = ts",
    "arrow_cast(ts,'Timestamp(s, \"Asia/Tokyo\")') = tz",
    "try_cast(k as int) > 5",  # the optimiser compares k, be it NULL as an int
    "try_cast(i as smallint) = 1",
    "not (try_cast(i as bigint unsigned) = 5)",
    "try_cast(d as decimal(3, 1)) = 2.5",
    "try_cast(day as timestamp(6)) is null",  # written, it would be one of nanoseconds
    "g in (0.0, 1.0)",
    "d < f",
    "case f when 0.0 then 1 end = 1",
    "d - 0.5 > 1",
    "f / 2.5 in (0.0, 1.5)",
    "k in (-0.0, 2.0)",
    "try_cast(f as float) is null",
    "cast(f as float) = 2.5",
    "try_cast(k as int) = 5",
    "k < arrow_cast(1.5, 'Float16')",
    "d in (1.4,2.5)",
    "s similar to 'a'",
    "-f > 0",
    "f - f > 1",
    "f / 0 > 1",
    "f % 2 = 0.5",
    "d / 2 > 1",
    "u + 1 > 0",
    "u - k > 0",
    "u & 1 = 1",
    "sqrt(g) > 1",
    "lpad(s, 5, '') = s",
    "repeat(s, i) = s",
    "split_part(s, 'b', 0) = 'a'",
    "translate(s, 'aa', 'x') = s",
    "abs(i) > 1",
    "round(f, 1) = 3",
    "floor(d) > 1",
    "round(d,1) > 1",
    "substr(s,0,2) = 'a'",
    "substr(s,-1) = 'a'",
    "nullif(f,0.0) is null",
    "greatest(f,0.0) > 0",
    "l[0] = 1",
    "l[-1] = 3",
    "date_trunc('decade', ts) < ts",
    "day + interval '5 hours' > day",
    "ts - ts > interval '1 day'",
    "cast(f as int) = 2",
    "cast(d as varchar) = '2.50'",
    "cast(d as int) = 2",
    "cast(ts as varchar) = 'x'",
    "cast(b as int) = 1",
    "cast(d as decimal(10,1)) = 1.4",
    "not (i = 1 and levenshtein(s, t) = 1)",
    "i = 1 or levenshtein(s, t) = 1",
    "null in (1,2)",
    "s = 5",
    "b = 1",
    "levenshtein(s, t) = 1",
    "random() < 0.5",
    "k in (5, 2.5)",
]


def parsed(text: str) -> datafusion.Expr:
    return FRAME.parse_sql_expr(text)


@pytest.mark.parametrize("text", EXACT)
def test_rows_are_those_of_the_engine(text: str) -> None:
    expression = parsed(text)
    read = from_datafusion(expression, SCHEMA)
    assert read.exactness is Exactness.EXACT, read.notes
    mine = ours(read.exact(), SCHEMA, BATCH, Semantics.DATAFUSION)
    found = theirs(expression, BATCH)
    assert mine is None or found is None or mine == found
    written = to_datafusion(read.exact(), SCHEMA)
    if written.exactness is Exactness.EXACT and mine is not None and found is not None:
        assert theirs(written.exact(), BATCH) == mine


@pytest.mark.parametrize("text", REFUSED)
def test_constructs_without_a_counterpart_are_named(text: str) -> None:
    read = from_datafusion(parsed(text), SCHEMA)
    assert read.exactness is Exactness.UNSUPPORTED
    assert read.expression is None
    assert read.residual is not None
    assert read.notes[0].startswith("condition 1 of 1 (")


def test_an_unknown_condition_goes_to_the_residual_as_a_whole() -> None:
    read = from_datafusion(parsed("i > 0 AND levenshtein(s, 'b') = 2 AND k < 9"), SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert read.notes[0].startswith("condition 2 of 3")
    assert read.expression is not None
    assert read.residual is not None
    rows = theirs(parsed("i > 0 AND levenshtein(s, 'b') = 2 AND k < 9"), BATCH)
    wider = ours(read.expression, SCHEMA, BATCH, Semantics.DATAFUSION)
    checked = theirs(read.residual, BATCH)
    assert wider is not None
    assert checked is not None
    assert sorted(set(wider) & set(checked)) == rows
    with pytest.raises(UnsupportedOperation, match=r"condition 2 of 3 .*LEVENSHTEIN"):
        from_datafusion(parsed("i > 0 AND levenshtein(s, 'b') = 2 AND k < 9"), SCHEMA, strict=True)


@pytest.mark.parametrize(
    "text", ["i > 0 OR levenshtein(s, 'b') = 2", "NOT (i > 0 AND levenshtein(s, 'b') = 2)"]
)
def test_nothing_is_dropped_under_or_and_not(text: str) -> None:
    assert from_datafusion(parsed(text), SCHEMA).expression is None


@pytest.mark.parametrize(
    "text",
    [
        "f = 0.0 OR f = 1.0 OR f = 2.0 OR f = 3.0",
        "NOT (f <> 0.0 AND f <> 1.0 AND f <> 2.0 AND f <> 3.0)",
        "g = 0 OR g = 1 OR g = 2 OR g = 3",
        "f = 0.0 OR i = 1 OR f = 1.0 OR f IN (2.0, 3.0)",
        "f = 7.0 OR f IN (2.0, 0.0, 3.0)",
        "NOT (f <> 7.0 AND f NOT IN (2.0, 0.0, 3.0))",
    ],
)
def test_equals_that_become_a_list_of_bits_are_refused(text: str) -> None:
    for source in (text, parsed(text)):
        name = "datafusion" if isinstance(source, str) else None
        read = rs.translate(source, name, target="rowsieve", schema=BATCH.schema)
        assert read.expression is None
        assert re.search(r"-0\.0|one zero", read.notes[0])


def test_expressions_that_datafusion_cannot_write_are_residual() -> None:
    day = pa.array([-(2**63)]).view(pa.date64())[0]  # DataFusion panics
    read = from_datafusion(f.initcap(col("s")) == lit(day), SCHEMA)
    assert read.expression is None
    assert "a BinaryExpr that DataFusion cannot write" in read.notes[0]


def test_the_time_of_the_statement_is_one_node() -> None:
    read = from_datafusion(parsed("ts < now() - INTERVAL '1 day' OR day < current_date"), SCHEMA)
    bound = bind(read.exact(), SCHEMA, Semantics.DATAFUSION, now_us=0)
    assert bound.columns


def test_aggregates_windows_and_parameters_are_refused() -> None:
    for expression in (f.count(col("i")) > lit(1), f.row_number() > lit(1)):
        with pytest.raises(UnsupportedOperation, match=r"a value for each row|unknown to Rowsieve"):
            from_datafusion(expression, SCHEMA, strict=True)


def test_an_unknown_column_is_an_error_and_no_residual() -> None:
    with pytest.raises(UnknownColumn, match="nowhere"):
        from_datafusion(col("nowhere") > lit(1), SCHEMA)


def test_an_expression_is_told_from_other_values() -> None:
    assert is_datafusion_expression(col("i") > lit(1))
    assert not is_datafusion_expression("i > 1")


def test_scans_and_deletes_take_expressions(tmp_path: Path) -> None:
    table = rs.create_table(
        str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("x", pa.float64())]), key=["id"]
    )
    table.upsert(pa.table({"id": [1, 2, 3, 4], "x": [1.0, math.nan, -0.0, None]}))
    assert table.scan(where=col("x") > lit(0.5)).to_arrow().num_rows == 2
    listed = f.in_list(col("x"), [lit(value) for value in (0.0, 5.0, 6.0, 7.0)])
    assert table.scan(where=listed).count() == 0  # bit by bit
    table.delete(where=col("x").is_null())
    assert table.scan().count() == 3
    with pytest.raises(UnsupportedOperation, match="sin"):
        table.scan(where=f.sin(col("x")) == lit(0.0))


def deep(levels: int) -> datafusion.Expr:
    """AND, OR and NOT in turn, each about the one before."""
    whole = col("i") > lit(0)
    for level in range(levels):
        match level % 3:
            case 0:
                whole = ~whole
            case 1:
                whole = whole & (col("k") != lit(level))
            case _:
                whole = whole | (col("i") == lit(level))
    return ~whole


@pytest.mark.parametrize("levels", [10, 11, 12, 13, 24, 25, 40, 100, 190])
def test_deep_conditions_are_read(levels: int) -> None:
    expression = deep(levels)
    read = from_datafusion(expression, SCHEMA, strict=True).exact()
    assert ours(read, SCHEMA, BATCH, Semantics.DATAFUSION) == theirs(expression, BATCH)


def test_deep_conditions_are_read_where_a_stack_is_short() -> None:
    found: list[object] = []
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(
            target=lambda: found.append(from_datafusion(deep(190), SCHEMA, strict=True).exact())
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [from_datafusion(deep(190), SCHEMA).exact()]


@pytest.mark.parametrize("levels", [199, 250, 400])
def test_expressions_deeper_than_a_predicate_are_rejected(levels: int) -> None:
    assert "deeper" in from_datafusion(deep(levels), SCHEMA).notes[0]


@pytest.mark.parametrize("levels", [40, 100, 250])
def test_deep_values_are_refused(levels: int) -> None:
    chosen, sums = lit(1), col("i")
    for level in range(levels):
        chosen = f.case(col("i")).when(lit(level), chosen).otherwise(lit(2))
        sums = (sums + lit(1)) if level % 2 else (sums * lit(1))
    for value in (chosen, sums):
        assert "deep" in from_datafusion(value == lit(2), SCHEMA).notes[0]
