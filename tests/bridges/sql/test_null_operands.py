"""NULL among the operands, empty lists and long numbers: what the engines at hand answer.

Each text is compared with the engine: the rows that it keeps, and those that it is NULL of.
"""

from __future__ import annotations

from collections.abc import Callable

import datafusion
import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from tests.bridges.sql.postgres import hold
from tests.small_tables import fresh_uri

ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3, 4], pa.int64()),
        "i": pa.array([1, -7, 0, None], pa.int64()),
        "f": pa.array([0.1, 1e300, 2.5, None]),
        "s": pa.array(["a", "", "b c", None]),
        "b": pa.array([True, False, True, None]),
        "t": pa.array([0, 10**15, -(10**14), None], pa.timestamp("us")),
        "l": pa.array([[1], [], [1, None], None], pa.list_(pa.int64())),
    }
)
LONG = "123456789012345678901234567890123456789012345"
EVERYWHERE = [
    *("abs(NULL) = i", "round(abs(NULL)) + 1 < i", "floor(NULL) IN (1, 2)", "sqrt(NULL) > f"),
    *("i & NULL = 0", "t - NULL IS NULL", "repeat(s, NULL) = 'a'", "lpad(s, NULL, 'x') = s"),
    *("NULL IN (1, 2)", "NULL NOT IN (1.5)", "NULL IN (i, 2)", "NULL IN ('a', 'b')"),
    *("s LIKE NULL", "s NOT LIKE NULL", "s ~ NULL", "s SIMILAR TO NULL", "NULL LIKE NULL"),
    *("i = ANY(NULL)", "i <> ALL(NULL)", "coalesce(lower(NULL), s) = 'a'"),
    *("f < 0.1000000000000000055511151231257827021181583404541015625", f"f > 0.{LONG}{LONG}"),
]
OF_ENGINES = {
    "postgres": [
        *("i = ANY(ARRAY[]::bigint[])", "i <> ALL('{}')", "i < ANY(ARRAY[]::int[])"),
        *("l = '{}'", "l = '{1,NULL}'", "'{1}' = l", "l <> '{2}'", "l @> ARRAY[]::bigint[]"),
        *("s = ANY('{a,\"b c\",NULL}')", "s LIKE ANY('{}')", "s LIKE ALL(ARRAY[]::text[])"),
        *(f"i < {LONG}", f"f < {LONG}", f"i IN (1, {LONG})", f"i BETWEEN -{LONG} AND 0"),
        *(f"i + {LONG} > {LONG}", "i < 1e400", "f < 1e300", f"abs(-{LONG}) > i"),
    ],
    "duckdb": [
        *("i = ANY([])", "i <> ALL([]::bigint[])", "i IN []", "l = []", "(NULL + NULL) = i"),
        *("f < 1e400", "f > 1e-400", "f > -1e400", "len([]::int[]) = i"),
    ],
    "datafusion": [
        *("i = ANY([])", "i <> ALL([]::bigint[])", "NULL = ANY([]::bigint[])"),
        *("f < 1e400", "f > 1e-400", f"i < {LONG}", "(NULL + NULL) = i"),
    ],
}
CASES = [(name, text) for name in OF_ENGINES for text in (*EVERYWHERE, *OF_ENGINES[name])]


def _postgres() -> Callable[[str], list[int]]:
    held = hold(ROWS)
    return lambda text: [n for (n,) in held.execute(f"SELECT n FROM t WHERE {text}").fetchall()]


def _duckdb() -> Callable[[str], list[int]]:
    connection = duckdb.connect()
    connection.register("t", ROWS)
    return lambda text: [
        n for (n,) in connection.execute(f"SELECT n FROM t WHERE {text}").fetchall()
    ]


def _datafusion() -> Callable[[str], list[int]]:
    context = datafusion.SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    return lambda text: (
        context.sql(f"SELECT n FROM t WHERE {text}").to_arrow_table()["n"].to_pylist()
    )


ENGINES = {"postgres": _postgres, "duckdb": _duckdb, "datafusion": _datafusion}


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), ROWS)


@pytest.mark.parametrize(("engine", "text"), CASES)
def test_a_text_keeps_the_rows_of_its_engine(table: rs.Table, engine: str, text: str) -> None:
    asked = ENGINES[engine]()
    for condition in (text, f"NOT ({text})", f"({text}) IS NULL"):
        rows = table.scan(condition, ["n"], dialect=engine).to_arrow()["n"].to_pylist()
        assert sorted(rows) == sorted(asked(condition)), condition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coalesce(abs(NULL), 7) / 2 = 3", "type of abs of NULL is not known, which coalesce"),
        ("CASE WHEN b THEN abs(NULL) ELSE 7 END = 7", "which CASE needs; cast the NULL"),
        ("repeat(NULL, s) = s", r"repeat\(NULL, string\) has no meaning"),
        ("abs(missing + NULL) = i", "no column 'missing'"),
        ("missing = ANY('{}')", "no column 'missing'"),
        ("s = ANY('{{a}}')", "write the list as ARRAY"),
        ("i < 1e9999999999999999999999", "needs more than 38 digits"),
    ],
)
def test_what_its_type_decides_is_refused(table: rs.Table, text: str, message: str) -> None:
    with pytest.raises(rs.errors.RowsieveError, match=message):
        table.scan(text)


@pytest.mark.parametrize("dialect", ["datafusion", "spark", "trino"])
def test_an_empty_escape_is_refused_where_the_engine_does(table: rs.Table, dialect: str) -> None:
    with pytest.raises((InvalidPredicate, UnsupportedOperation), match="escape is one character"):
        table.scan("s LIKE 'a%' ESCAPE ''", dialect=dialect)
