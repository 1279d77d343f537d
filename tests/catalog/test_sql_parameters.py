"""Parameters of statements: values are bound with their types, whatever they contain."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput

UTC = dt.UTC
BIG = 2**63
UIDS = [uuid.UUID(int=number) for number in range(5)]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "s": ["a", "it's", "$x", None, "' OR TRUE --"],
        "n": pa.array([-BIG, BIG - 1, 0, 7, None], pa.int64()),
        "u": pa.array([0, BIG, 2**64 - 1, 7, None], pa.uint64()),
        "f": [0.5, float("nan"), -0.0, None, float("inf")],
        "m": pa.array([Decimal(n) / 4 for n in range(5)], pa.decimal128(9, 2)),
        "d": [dt.date(2020, 1, day) for day in range(1, 6)],
        "at": pa.array([dt.datetime(2020, 1, day) for day in range(1, 6)], pa.timestamp("us")),
        "z": pa.array(
            [dt.datetime(2020, 1, day, tzinfo=UTC) for day in range(1, 6)],
            pa.timestamp("us", tz="UTC"),
        ),
        "t": pa.array([dt.time(hour) for hour in range(5)], pa.time64("us")),
        "b": [b"\x00", b"\xff", b"'", b"", None],
        "k": pa.array([True, False, None, True, False]),
    }
)
DAY = dt.date(2020, 1, 3)
SHIFTED = dt.datetime(2020, 1, 3, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))

QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("id = $x", {"x": 2}),
    ("id = :x OR id = $x + 1", {"x": 2}),
    ("id < $x", {"x": BIG - 1}),
    ("n = $x", {"x": -BIG}),
    ("n < $x", {"x": BIG}),
    ("n < $x", {"x": 10**30}),
    ("n > $x", {"x": -(10**30)}),
    ("u >= $x", {"x": BIG}),
    ("u = $x", {"x": 2**64 - 1}),
    ("s = $x", {"x": "it's"}),
    ("s = $x", {"x": "' OR TRUE --"}),
    ("s = $x", {"x": "$x"}),
    ("s = '$x' OR id = $y", {"y": 1}),
    ("s IS NULL OR id = $x /* :y */", {"x": 1}),
    ("s = $x", {"x": None}),
    ("s IS NOT DISTINCT FROM $x", {"x": pa.scalar(None, pa.string())}),
    ("f = $x", {"x": 0.0}),
    ("f > $x", {"x": 1e308}),
    ("m = $x", {"x": Decimal("0.25")}),
    ("m > $x", {"x": Decimal("0.4999999999")}),
    ("d >= $x", {"x": DAY}),
    ('"at" < $x', {"x": dt.datetime(2020, 1, 2)}),
    ("z >= $x", {"x": SHIFTED}),
    ("t > $x", {"x": dt.time(2, 30)}),
    ("b = $x", {"x": b"'"}),
    ("b = $x", {"x": b""}),
    ("k = $x", {"x": True}),
    ("id = $x", {"x": pa.scalar(3, pa.int8())}),
    ("id IN ($x)", {"x": [1, 3]}),
    ("id NOT IN :x", {"x": (1, 3)}),
    ("s IN ($x)", {"x": ["it's", "' OR TRUE --"]}),
    ("s NOT IN ($x)", {"x": ["a", None]}),
    ("s NOT IN ($x)", {"x": []}),
    ("s IN ( :x ) AND d IN ($y)", {"x": {"a"}, "y": [dt.date(2020, 1, 1), DAY]}),
    ("n IN ($x)", {"x": pa.array([BIG - 1, 7])}),
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path_factory.mktemp("lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.slice(0, 2), ["id"])
    table.upsert(ROWS.slice(2))
    return catalog


def judged(where: str, params: dict[str, Any]) -> list[int]:
    """The ids that DuckDB finds in memory; a list is a list there, too."""
    judge = duckdb.connect()
    judge.execute("SET timezone = 'UTC'")
    judge.register("t", ROWS)
    values: dict[str, Any] = {}
    for name, value in params.items():
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
        if isinstance(value, list | tuple | set | pa.Array):
            plain = value.to_pylist() if isinstance(value, pa.Array) else list(value)
            for form in (f"(${name})", f"( :{name} )", f":{name}"):
                where = where.replace(form, f"(SELECT unnest(${name}))")
        values[name] = plain
        where = where.replace(f":{name} ", f"${name} ")
    rows = judge.execute(f"SELECT id FROM t WHERE {where} ORDER BY id", values).fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize(("where", "params"), QUERIES)
def test_queries_find_what_duckdb_finds(
    catalog: rs.Catalog, where: str, params: dict[str, Any]
) -> None:
    rows = catalog.sql(f"SELECT id FROM db.t WHERE {where} ORDER BY id", params=params)
    assert rows["id"].to_pylist() == judged(where, params)


def test_values_of_types_that_duckdb_binds_otherwise(catalog: rs.Catalog) -> None:
    kinds = pa.table({"id": [1, 2], "uid": pa.array([each.bytes for each in UIDS[:2]], pa.uuid())})
    catalog.create_table("db.uids", kinds)
    for where, value in [("uid = $x", UIDS[1]), ("uid IN ($x)", [UIDS[1], UIDS[4]])]:
        rows = catalog.sql(f"SELECT id FROM db.uids WHERE {where}", params={"x": value})
        assert rows["id"].to_pylist() == [2]
    nan = catalog.sql("SELECT id FROM db.t WHERE f = $x", params={"x": float("nan")})
    assert (
        nan["id"].to_pylist() == catalog.sql("SELECT id FROM db.t WHERE isnan(f)")["id"].to_pylist()
    )


def test_members_of_two_lists_never_share_a_name(catalog: rs.Catalog) -> None:
    for names in (("x", "x_"), ("x_", "x"), ("x", "x__0"), ("x", "x")):
        first, second = names
        statement = f"SELECT id FROM db.t WHERE id IN (${first}) OR n IN (${second}) ORDER BY id"
        values = {first: [1, 7], second: [7, 2]}
        rows = catalog.sql(statement, params=values)
        assert rows["id"].to_pylist() == ([1, 4] if first != second else [2, 4]), names


def test_a_parameter_keeps_name_and_type(catalog: rs.Catalog) -> None:
    params = {"x": 1.5, "x_0": "it's $y", "y": [1, 2]}
    rows = catalog.sql("SELECT $x, :x_0 AS s, '$x' AS t FROM db.t WHERE id IN ($y)", params=params)
    assert rows.column_names == ["$x", "s", "t"]
    assert rows.to_pylist() == [{"$x": 1.5, "s": "it's $y", "t": "$x"}] * 2


@pytest.mark.parametrize(
    ("statement", "params", "message"),
    [
        ("SELECT $dya", {"day": 1}, r"'dya' at offset 7 of the statement has no value; .*\$day\?"),
        ("SELECT $x", {}, r"'x' at offset 7 of the statement has no value; give it as"),
        ("SELECT 1", {"x": 1}, "the statement has no parameter 'x'"),
        ("SELECT '$x'", {"x": 1}, "the statement has no parameter 'x'"),
        ("SELECT $x", {"x": [1]}, "stands after IN only"),
        ("SELECT 1 IN ($x)", {"x": [1, "a"]}, "values of several types"),
        ("SELECT $x", {"x": object()}, "cannot be given as a constant"),
        ("SELECT $x", {"x": 10**76}, "more than 76 digits"),
        ("SELECT $x", {"x": dt.timedelta(1)}, "DataFusion has no values of"),
        ("SELECT 1", {1: 2}, "params"),
        ("SELECT 1", 5, "params"),
        ("SHOW TABLES", {"x": 1}, "a statement on names takes none"),
        ("CREATE TABLE db.n (x int)", {"x": 1}, "CREATE TABLE takes none"),
        ("CALL system.compact('db.t')", {"x": 1}, "a call takes none"),
        ("SELECT * FROM db.$x", {"x": "t"}, "identifier"),
    ],
)
def test_wrong_values_are_refused(
    catalog: rs.Catalog, statement: str, params: Any, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        catalog.sql(statement, params=params)


def test_transactions_of_databases_take_values(tmp_path: Path) -> None:
    database = rs.Database(tmp_path / "db")
    database.create_table("t", ROWS, ["id"])
    with database.transaction() as tx:
        text = "UPDATE t SET s = $s, d = :d WHERE id IN ($ids)"
        tx.sql(text, params={"s": "'; --", "d": None, "ids": [1, 2]})
        tx.sql(
            "INSERT INTO t (id, s, z) VALUES ($id, $s, $z)",
            params={"id": 9, "s": "$id", "z": SHIFTED},
        )
        tx.sql("DELETE FROM t WHERE s = :s OR f = $f", params={"s": "$x", "f": float("inf")})
        seen = tx.sql("SELECT count(*) AS n FROM t WHERE s = $s", params={"s": "'; --"})
        assert seen["n"].to_pylist() == [2]
        with pytest.raises(InvalidInput, match="did you mean \\$day"):
            tx.sql("DELETE FROM t WHERE d = $dya", params={"day": DAY})
    rows = database.sql("SELECT id, s, d, z FROM t WHERE id <> $x ORDER BY id", params={"x": 4})
    found = [(row["id"], row["s"], row["d"]) for row in rows.to_pylist()]
    assert found == [(1, "'; --", None), (2, "'; --", None), (9, "$id", None)]
    assert rows["z"].to_pylist()[-1] == SHIFTED


@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_subqueries_that_are_read_before_the_parts_are_chosen(
    catalog: rs.Catalog, word: str
) -> None:
    text = f"SELECT id FROM {{0}} WHERE id {word} (SELECT id FROM {{0}} WHERE id > 3) ORDER BY id"
    judge = duckdb.connect()
    judge.register("t", ROWS)
    expected = [row[0] for row in judge.execute(text.format("t")).fetchall()]
    assert catalog.sql(text.format("db.t"))["id"].to_pylist() == expected
    with_value = text.replace("> 3", "> $x").format("db.t")
    assert catalog.sql(with_value, params={"x": 3})["id"].to_pylist() == expected
