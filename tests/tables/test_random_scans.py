"""Random predicates over every type, through scan, against the row-at-a-time oracle and DuckDB."""

from __future__ import annotations

import contextlib
import functools
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import duckdb
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve import Session, Table
from rowsieve.bridges.sql import to_sql
from rowsieve.errors import EvaluationError, InvalidPredicate, UnreadText, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date
from tests.oracle import Answer, Oracle
from tests.oracle_table import Row, bag, to_rows
from tests.profiles import examples
from tests.random_tables import EVERYTHING, build, everything, memory_table
from tests.strategies import COLUMN_TYPES, DAY_US, PAIR, as_decimal, predicates
from tests.table_strategies import TableShape, shape_of
from tests.table_strategies import predicates as simple_predicates
from tests.zoned_strategies import MOMENTS as EDGES
from tests.zoned_strategies import conditions

DIALECTS = {
    "postgres": Semantics.POSTGRES,
    "spark": Semantics.SPARK,
    "datafusion": Semantics.DATAFUSION,
    "duckdb": Semantics.DUCKDB,
}
KEYS = (("i32", "s"), ("f64",), ("d", "tz", "b"), ("uid", "bin"), ("day", "u64", "f32"), ())
DAYS = (-25_567, -1, 0, 1, 15_706, 15_765, 19_782, 2_932_896)
MOMENTS = tuple(day * DAY_US + more for day in DAYS[:-1] for more in (0, 1, -1, 37_800_500_000))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1.5, 7.0, -2.5, math.nan, math.inf, -math.inf)
VALUES: dict[str, tuple[Any, ...]] = {
    "b": (False, True),
    "i8": (-128, -7, -1, 0, 1, 2, 7, 100, 127),
    "i32": (-(2**31), -7, -1, 0, 1, 2, 3, 7, 2**31 - 1),
    "i64": (-(2**63), -7, -1, 0, 1, 2, 3, 7, 2**53 + 1, 2**63 - 1),
    "u8": (0, 1, 2, 3, 7, 254, 255),
    "u64": (0, 1, 2, 3, 7, 2**63, 2**64 - 1),
    "f32": (*FLOATS, 3.0000000054977558e38),
    "f64": (*FLOATS, 0.1, 1e300, 5e-324),
    "d": tuple(as_decimal(point, 2) for point in (0, 1, -1, 50, 100, 150, 700, -250, 999999)),
    "wide": tuple(as_decimal(point, 10) for point in (0, 1, 10**10, -(10**10), 10**38 - 1)),
    "s": ("", "a", "ab", "abc", "b", "B", "Ab%", "a_c", "\u00e9", "\ud7ff", "\U0010ffff", "\n"),
    "t": ("0", "7", " -12 ", "1e3", "2.5", "nan", "true", "2013-01-01", "2013-01-01 10:30"),
    "bin": (b"", b"\x00", b"a", b"ab", b"\xff", b"\xff\xff"),
    "day": DAYS,
    "time": (0, 1, 37_800_000_000, DAY_US - 1),
    "ts": (*MOMENTS, *EDGES),
    "tz": (*MOMENTS, *EDGES),
    "uid": (bytes(16), b"\x01" * 16, b"a" * 16, b"\xff" * 16),
    "pair": tuple({"x": x, "y": y} for x in (None, -1, 0, 2) for y in (None, "", "a", "ab")),
}


pytestmark = pytest.mark.usefixtures("tiny_row_groups")


@functools.cache
def table(number: int) -> tuple[Table, TableShape, list[Row]]:
    key = KEYS[number]
    shape = shape_of({**COLUMN_TYPES, "pair": PAIR}, key)

    def draw(chance: random.Random, name: str) -> Any:
        if name not in key and chance.random() < 0.2:
            return None
        return chance.choice(VALUES[name])

    made, rows = build(shape, draw, seed=number)
    return made, shape, rows


def expected(rows: list[Row], shape: TableShape, where: ir.Predicate, semantics: Semantics) -> Any:
    """The rows that match, or None if one that survives fails."""
    oracle = Oracle(shape.schema, semantics)
    answers = [oracle.judge(where, row) for row in rows]
    if Answer.FAILED in answers:
        return None
    return [row for row, answer in zip(rows, answers, strict=True) if answer is Answer.TRUE]


@contextlib.contextmanager
def refusing_texts() -> Iterator[None]:
    """Leave out conditions that cast a text which its engine reads by rules of its own."""
    try:
        yield
    except UnreadText:
        reject()


@examples(2000)
@given(
    number=st.integers(0, len(KEYS) - 1),
    where=predicates(),
    dialect=st.sampled_from(sorted(DIALECTS)),
    pruning=st.sampled_from(("on", "on", "on", "on", "off", "off", "soft")),
    count=st.sampled_from((False, False, True)),
)
def test_a_scan_gives_the_rows_of_the_oracle(
    number: int, where: ir.Predicate, dialect: str, pruning: Any, count: bool
) -> None:
    made, shape, rows = table(number)
    with refusing_texts():
        matching = expected(rows, shape, where, DIALECTS[dialect])
    scan = made.scan(where, dialect=dialect, pruning=pruning)
    if matching is None:
        with pytest.raises((EvaluationError, UnsupportedOperation)):
            scan.to_arrow()
        return
    with refusing_texts():
        if count:
            assert scan.count() == len(matching)
        else:
            assert bag(to_rows(scan.to_arrow(), shape.schema)) == bag(matching)


@examples(250)
@given(
    number=st.integers(0, len(KEYS) - 1),
    where=conditions(),
    dialect=st.sampled_from(("postgres", "duckdb", "spark")),  # DataFusion names zones in text
    name=st.sampled_from(("America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Tokyo")),
    pruning=st.sampled_from(("on", "on", "off", "soft")),
)
def test_a_scan_in_a_time_zone_gives_the_rows_of_the_oracle(
    number: int, where: ir.Predicate, dialect: str, name: str, pruning: Any
) -> None:
    made, shape, rows = table(number)
    semantics = replace(DIALECTS[dialect], time_zone=name)
    try:
        scan = made.scan(where, dialect=dialect, session=Session(name), pruning=pruning)
        scan.explain()
    except InvalidPredicate:
        reject()  # an instant as text, where an engine has no one spelling
    matching = expected(rows, shape, where, semantics)
    if matching is None:
        with pytest.raises((EvaluationError, UnsupportedOperation)):
            scan.to_arrow()
        return
    with refusing_texts():
        assert bag(to_rows(scan.to_arrow(), shape.schema)) == bag(matching)


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_the_random_tables_are_worth_asking(number: int) -> None:
    made, shape, rows = table(number)
    assert bag(to_rows(made.scan().to_arrow(), shape.schema)) == bag(rows)
    plan = made.scan().explain()
    assert plan.parts_read > 3
    assert plan.merged_groups > 0 or not shape.key
    assert made.detail()["rows_stored"] > len(rows)


# DuckDB answers from memory, never from our files: its Parquet reader prunes NaN wrongly.


@functools.cache
def in_duckdb(number: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("arrow_rows", memory_table(everything(number)[1], EVERYTHING))
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow_rows")
    return connection


def cuts_dates_below_a_day(where: ir.Predicate) -> bool:
    """`date_trunc('hour', day) = …`: DuckDB 2.0 folds it to FALSE, though its own value equals."""
    return any(
        isinstance(node, ir.Call)
        and node.function == "date_trunc"
        and isinstance(node.arguments[0], ir.Literal)
        and node.arguments[0].value in ("hour", "minute", "second")
        and isinstance(node.arguments[1], ir.Column)
        and isinstance(EVERYTHING.schema.field(node.arguments[1].name).type, Date)
        for node in ir.walk(where)
    )


def test_duckdb_folds_dates_cut_below_a_day() -> None:
    """Fails when DuckDB is mended: then `cuts_dates_below_a_day` can go."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT DATE '1970-01-01' AS d")
    cut = "date_trunc('hour', d)"
    assert connection.execute(f"SELECT {cut} FROM t").fetchall() == [(datetime(1970, 1, 1),)]
    wrong = f"SELECT d FROM t WHERE {cut} = TIMESTAMP '1970-01-01 00:00:00'"
    assert connection.execute(wrong).fetchall() == []


@examples(300)
@given(number=st.integers(0, 1), where=simple_predicates(EVERYTHING))
def test_duckdb_gives_the_same_rows(number: int, where: ir.Predicate) -> None:
    if cuts_dates_below_a_day(where):
        reject()
    made, rows = everything(number)
    matching = expected(rows, EVERYTHING, where, Semantics.DUCKDB)
    if matching is None:
        return  # DuckDB may rewrite the failing expression into one that does not fail
    try:
        text = to_sql(where, "duckdb")
    except UnsupportedOperation:
        reject()
    try:
        found = in_duckdb(number).execute(f"SELECT k FROM t WHERE {text}").fetchall()
    except duckdb.Error:
        return  # it evaluates all conjuncts on every row, and may fail where we do not
    ours = made.scan(where, ["k"], dialect="duckdb").to_arrow()["k"].to_pylist()
    assert sorted(ours) == sorted(row["k"] for row in matching)
    assert sorted(ours) == sorted(key for (key,) in found), text
