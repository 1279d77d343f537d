"""Pruning by the conditions of a whole query: the same rows from fewer files, or no change."""

from __future__ import annotations

import gc
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import NumberFormatException
from pyspark.sql import functions

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.providers.spark import explain_prune, plans, prune, read, sql
from rowsieve.providers.spark.plans import class_of, items
from rowsieve.providers.spark.reads import pruning
from rowsieve.providers.spark.reads.prune_report import Refusal
from tests.profiles import IS_DEEP, examples

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=UTC)


def rows(start: int, stop: int, salt: int = 0) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([None if i % 5 == 0 else (i + salt) % 7 for i in ids], pa.int32()),
            "s": pa.array([f"p{i // 100}-{(i + salt) % 3}" for i in ids], pa.string()),
            "f": pa.array([float(i) if i % 9 else float("nan") for i in ids], pa.float64()),
            "d": pa.array([date(2026, 1, 1) + timedelta(days=i // 10) for i in ids], pa.date32()),
            "at": pa.array([START + timedelta(hours=i) for i in ids], pa.timestamp("us", "UTC")),
            "m": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(10, 2)),
        }
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[dict[str, rs.Table]]:
    """Views `t`, of six parts with hidden rows, and `u`, of three parts."""
    folder = tmp_path_factory.mktemp("pruned")
    t = rs.create_table(str(folder / "t"), rows(0, 100), key=["id"])
    for start in range(100, 500, 100):
        t.upsert(rows(start, start + 100))
    t.upsert(rows(95, 105, salt=1))
    t.delete(keys=pa.table({"id": [7, 250]}))
    u = rs.create_table(str(folder / "u"), rows(0, 20), key=["id"])
    u.upsert(rows(200, 220))
    u.upsert(rows(480, 520))
    found = {"t": t, "u": u}
    for name, table in found.items():
        table.to_spark(spark).createOrReplaceTempView(name)
    yield found
    for name in found:
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def memory() -> Iterator[Any]:
    """The same rows in DuckDB's memory."""
    kept = [i for i in range(500) if i not in {7, 250}]
    plain, changed = rows(0, 500), rows(0, 500, salt=1)
    t = pa.concat_tables([(changed if 95 <= i < 105 else plain).slice(i, 1) for i in kept])
    u = pa.concat_tables([rows(0, 20), rows(200, 220), rows(480, 520)])
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in {"t": t, "u": u}.items():
        connection.register("arrow", table).execute(f"CREATE TABLE {name} AS FROM arrow")
    yield connection
    connection.close()


def counted(found: pa.Table) -> Counter[str]:
    columns = [column.to_pylist() for column in found.columns]
    return Counter(map(repr, zip(*columns, strict=True)))


def ids(frame: Any) -> list[int]:
    return sorted(frame.toArrow()["id"].to_pylist())


def files(frame: Any) -> int:
    """Files that the plan reads, one for each time."""
    leaves = items(frame._jdf.queryExecution().optimizedPlan().collectLeaves())
    relations = [leaf for leaf in leaves if class_of(leaf).endswith(".LogicalRelation")]
    return sum(len(leaf.relation().inputFiles()) for leaf in relations)


# Query, and whether it reads fewer files.
SHAPES = (
    ("SELECT id, v FROM t WHERE id < 50", True),
    ("SELECT id FROM t WHERE 50 > id AND v = 3", True),
    ("SELECT count(*) FROM t WHERE id BETWEEN 130 AND 170", True),
    ("SELECT id FROM t WHERE id IN (3, 301, 1000)", True),
    ("SELECT id FROM t WHERE s LIKE 'p3%'", True),
    ("SELECT id FROM t WHERE s = 'p2-1' OR s = 'p2-2'", True),
    ("SELECT id FROM t WHERE NOT (id >= 100)", True),
    ("SELECT id FROM t WHERE id = -1", True),
    ("SELECT count(*), sum(v) FROM t WHERE id > 10000", True),
    ("SELECT id FROM t WHERE f > 480.0", False),
    ("SELECT id FROM t WHERE d = DATE '2026-01-15' AND v IS NOT NULL", True),
    ("SELECT id FROM t WHERE m < 3.5", True),
    ("SELECT id FROM t WHERE v IS NULL", False),
    ("SELECT * FROM (SELECT id AS k, v AS w FROM t) AS q WHERE k < 20", True),
    ("SELECT s, max(v) FROM t WHERE id < 90 GROUP BY s HAVING max(v) > 1", True),
    ("SELECT * FROM (SELECT id, count(*) AS n FROM t GROUP BY id) AS q WHERE id < 9", True),
    ("SELECT a.id, b.v FROM t a JOIN u b ON a.id = b.id WHERE b.id < 20", True),
    ("SELECT a.id FROM t a JOIN t b ON a.id = b.id + 100 WHERE a.id < 150", True),
    ("SELECT a.id, b.v FROM t a LEFT JOIN u b ON a.id = b.id WHERE a.id < 30", True),
    ("SELECT a.id, b.v FROM t a LEFT JOIN u b ON a.id = b.id AND b.id < 10", True),
    ("SELECT a.id, b.v FROM t a LEFT JOIN u b ON a.id = b.id AND a.id < 10", True),
    ("SELECT a.id, b.id FROM t a FULL JOIN u b ON a.id = b.id AND a.id < 10", False),
    ("SELECT a.id, b.id FROM t a LEFT JOIN u b ON a.id = b.id WHERE b.id IS NULL", False),
    ("SELECT count(*) FROM t a RIGHT JOIN u b ON a.id = b.id WHERE b.id > 490", True),
    ("SELECT id FROM t WHERE id < 30 AND id IN (SELECT id FROM u WHERE v > 1)", True),
    ("SELECT id FROM t WHERE id > 470 AND NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id)", True),
    ("SELECT id FROM t WHERE id < 9 AND v < (SELECT max(v) FROM u)", True),
    ("SELECT id FROM t WHERE id < 9 UNION ALL SELECT id FROM t WHERE id > 480", True),
    ("SELECT id FROM t WHERE id < 9 UNION SELECT id FROM t", True),
    ("SELECT id FROM t WHERE id < 220 EXCEPT SELECT id FROM u WHERE id > 100", True),
    ("SELECT id FROM t INTERSECT SELECT id FROM u WHERE id < 10", True),
    ("WITH c AS (SELECT * FROM t) SELECT a.id FROM c a, c b WHERE a.id = 3 AND b.id = 420", True),
    ("WITH c AS (SELECT * FROM t) SELECT id FROM c WHERE id < 5 UNION ALL SELECT id FROM c", False),
    ("SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM t) q WHERE id > 490", False),
    ("SELECT * FROM (SELECT id, max(v) OVER (PARTITION BY d) n FROM t) q WHERE id > 490", False),
    ("SELECT * FROM (SELECT id FROM t ORDER BY id DESC LIMIT 5) q WHERE id < 50", False),
    ("SELECT id FROM t WHERE id < 50 ORDER BY id DESC LIMIT 3", True),
    ("SELECT count(*) FROM (SELECT DISTINCT s FROM t WHERE id < 99) q", True),
    ("SELECT id FROM t WHERE CASE WHEN id > 10 THEN id ELSE 1 END = 1", True),
    ("SELECT id FROM t WHERE id < 200 OR v = 1", False),
    ("SELECT id FROM t WHERE year(d) = 2026 AND month(d) = 2", True),
    ("SELECT a.id FROM t a JOIN u b ON a.id + 1 = b.id WHERE b.id - 1 > 470", True),
    ("SELECT id FROM t WHERE substring(s, 1, 2) = 'p3' AND coalesce(v, 9) < 9", True),
    ("SELECT (SELECT count(*) FROM t WHERE id < 5), (SELECT count(*) FROM t WHERE id > 5)", False),
)


@pytest.mark.parametrize(("query", "is_pruned"), SHAPES if IS_DEEP else SHAPES[::5])
def test_pruned_queries_have_the_same_rows(
    spark: Any, tables: dict[str, rs.Table], memory: Any, query: str, is_pruned: bool
) -> None:
    assert set(tables) == {"t", "u"}
    plain = spark.sql(query)
    found = sql(spark, query)
    assert found.columns == plain.columns
    assert [f.dataType for f in found.schema] == [f.dataType for f in plain.schema]
    expected = Counter(map(repr, memory.execute(query).fetchall()))
    assert counted(found.toArrow()) == expected
    if IS_DEEP:
        assert counted(plain.toArrow()) == expected
    assert (files(found) < files(plain)) == is_pruned


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("1 / (id - 150) > 0 AND id < 50", id="fails_before"),
        pytest.param("rand(1) < 2 AND id < 50", id="not_deterministic"),
        pytest.param("lower(s) = 'p0-1'", id="unknown_function"),
        pytest.param("s COLLATE UTF8_LCASE = 'P0-1'", id="collation"),
        pytest.param("s = CAST(X'FF' AS STRING)", id="not_unicode"),
    ],
)
def test_conditions_that_are_not_read_change_nothing(
    spark: Any, tables: dict[str, rs.Table], condition: str
) -> None:
    assert tables
    plain = spark.sql(f"SELECT id FROM t WHERE {condition}")
    assert prune(plain) is plain


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("at > 'now'", id="special_text"),
        pytest.param("d > to_date(concat('to', 'day'))", id="function_of_special_text"),
        pytest.param("id IN (SELECT id FROM u WHERE s = current_user())", id="subquery"),
        pytest.param("s = current_user()", id="user"),
    ],
)
def test_queries_that_depend_on_the_time_are_left(
    spark: Any, tables: dict[str, rs.Table], condition: str
) -> None:
    assert tables
    plain = spark.sql(f"SELECT id FROM t WHERE {condition}")
    assert prune(plain) is plain  # it may run later than it is pruned
    assert files(sql(spark, "SELECT id FROM t WHERE d < '2026-01-03'")) < 6


def test_an_error_before_a_condition_is_kept(spark: Any, tables: dict[str, rs.Table]) -> None:
    whole = read(spark, tables["t"].uri, routes=["source"])
    fails = whole.filter("v IS NOT NULL AND 1 / (id - 451) > 0 AND id < 50")
    assert prune(fails) is fails
    assert sql(spark, "SELECT id FROM t WHERE id < 3 AND 1 / (id - 451) < 0").count() == 3


def test_an_error_of_the_read_itself_is_kept(spark: Any, tables: dict[str, rs.Table]) -> None:
    frame = tables["t"].to_spark(spark, where="1 / (id - 451) < 9").filter("id < 50")
    assert prune(frame) is frame


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "true"},
        {"spark.sql.parser.escapedStringLiterals": "true"},
        {"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
        {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
        {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "Asia/Tokyo"},
        {"spark.sql.optimizer.maxIterations": "1"},
        {"spark.sql.optimizer.inSetConversionThreshold": "0"},
    ],
    ids=lambda conf: next(iter(conf)).rpartition(".")[2],
)
def test_settings_of_the_session_lose_no_row(
    spark: Any, tables: dict[str, rs.Table], conf: dict[str, str]
) -> None:
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        tables["t"].to_spark(spark).createOrReplaceTempView("t2")
        query = (
            "SELECT id FROM t2 WHERE s LIKE 'p4%' AND s <> 'p''x' AND s <> \"p\" AND id IN (1, 450)"
            " AND at > TIMESTAMP '2026-01-03 05:00:00'"
        )
        if "spark.sql.ansi.doubleQuotedIdentifiers" in conf:
            query = query.replace('"p"', "'p'")
        if "spark.sql.legacy.consecutiveStringLiterals.enabled" in conf:
            query = query.replace("'p4%'", "'p''4%'")
        found = sql(spark, query)
        assert found.toArrow()["id"].to_pylist() == [450]
        assert files(found) < files(spark.sql("SELECT * FROM t2"))
    finally:
        for name in conf:
            spark.conf.unset(name)
        spark.catalog.dropTempView("t2")


def test_functions_and_variables_of_the_user_are_resolved_by_spark(
    spark: Any, tables: dict[str, rs.Table]
) -> None:
    assert tables
    spark.sql("CREATE TEMPORARY FUNCTION startswith(a STRING, b STRING) RETURNS INT RETURN 1")
    spark.conf.set("prune.id", "42")
    try:
        found = sql(spark, "SELECT id FROM t WHERE id = ${prune.id} OR id = ${prune.id} + 100")
        assert sorted(found.toArrow()["id"].to_pylist()) == [42, 142]
        assert files(found) < 6
        assert sql(spark, "SELECT id FROM t WHERE session.startswith(s, 'p9') = 1").count() == 498
    finally:
        spark.conf.unset("prune.id")
        spark.sql("DROP TEMPORARY FUNCTION startswith")


def test_a_function_in_python_does_not_replace_that_of_spark(
    spark: Any, tables: dict[str, rs.Table]
) -> None:
    for name in ("lower", "contains"):
        spark.udf.register(name, lambda *_: True, "boolean")
    where = "contains(lower(s), 'p4-1')"
    try:
        source = read(spark, tables["t"].uri, routes=["source"], where=where)
        native = read(spark, tables["t"].uri, where=functions.expr(where))
        for frame in (source, native, native.filter(where)):
            assert ids(prune(frame)) == list(range(400, 500, 3))
    finally:
        for name in ("lower", "contains"):
            spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def test_a_cached_frame_is_used_as_it_is(spark: Any, tables: dict[str, rs.Table]) -> None:
    cached = tables["t"].to_spark(spark).cache()
    try:
        frame = cached.filter("id < 50")
        assert prune(frame) is frame
    finally:
        cached.unpersist()


def test_a_frame_is_pruned_twice_and_at_its_version(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(0, 100), key=["id"])
    table.upsert(rows(100, 200))
    frame = read(spark, table.uri)
    table.upsert(rows(0, 1, salt=3))
    once = prune(frame.filter("id < 50"))
    twice = prune(once.filter("id >= 100"))
    assert files(once) == 1
    assert once.filter("id = 0").collect()[0].v is None
    assert files(twice) == 0
    assert twice.count() == 0
    assert twice.schema == frame.schema


@pytest.mark.parametrize("as_column", [False, True], ids=["text", "column"])
def test_the_condition_of_a_read_keeps_its_settings(
    spark: Any, tables: dict[str, rs.Table], as_column: bool
) -> None:
    where = functions.expr("hour(at) < 3") if as_column else "hour(at) < 3"
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        frame = tables["t"].to_spark(spark, where=where).filter("id < 50")
        assert files(prune(frame)) < files(frame)
        assert ids(prune(frame)) == [0, 1, 2, 24, 25, 26, 48, 49]
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        assert ids(prune(frame)) == ids(frame) == [0, 1, 2, 24, 25, 26, 48, 49]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")  # as the session began


def test_other_frames_are_returned_as_they_are(
    spark: Any, client: Any, tables: dict[str, rs.Table]
) -> None:
    plain = spark.range(5).filter("id < 3")
    assert prune(plain) is plain
    remote = tables["t"].to_spark(client).filter("id < 3")
    assert prune(remote) is remote
    sample = tables["t"].to_spark(spark).filter("id < 50").sample(0.5, seed=1)
    assert prune(sample) is sample


@pytest.mark.parametrize("call", [prune, explain_prune])
def test_only_frames_are_pruned(spark: Any, call: Callable[[Any], Any]) -> None:
    for wrong in (None, "SELECT 1", spark, spark.sql("SELECT 1 AS a").a):
        with pytest.raises(InvalidInput, match="must be a Spark DataFrame, not"):
            call(wrong)
    with pytest.raises(InvalidInput, match="must be a SparkSession, not NoneType"):
        sql(None, "SELECT 1")
    with pytest.raises(InvalidInput, match="a statement is text, not int"):
        sql(spark, 1)  # type: ignore[arg-type]


def test_a_frame_of_a_table_that_is_gone_is_left(spark: Any, tmp_path: Path) -> None:
    frame = read(spark, rs.create_table(str(tmp_path / "t"), rows(0, 10), key=["id"]).uri)
    shutil.rmtree(tmp_path / "t")
    gc.collect()
    query = frame.filter("id < 5")
    assert prune(query) is query  # it reports its error when it runs


def test_a_report_tells_conditions_and_parts(spark: Any, tables: dict[str, rs.Table]) -> None:
    query = "SELECT a.id FROM t a JOIN u b ON a.id = b.id WHERE a.id < 30 AND lower(a.s) = 'x'"
    report = explain_prune(spark.sql(query))
    (a, b) = report.reads
    assert report.refusal is None
    assert (a.uri, a.version, a.parts, a.parts_read) == (tables["t"].uri, 6, 6, 1)
    assert (b.uri, b.parts, b.parts_read) == (tables["u"].uri, 3, 1)
    (use,) = a.uses
    assert use.used[-1] == "(a.id < 30L)"  # Spark adds conditions that columns are not NULL
    assert "lower" in use.unused[0]
    assert "1 of 6 parts" in str(report)
    assert f"{use.unused[0]}: {use.reason}" in str(report)


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("SELECT id FROM t WHERE id < 50 AND at < 'now'", Refusal.TIME),
        ("SELECT id FROM t WHERE rand() < id", Refusal.RANDOM),
        ("SELECT 1", Refusal.NO_READS),
    ],
)
def test_a_report_tells_why_a_query_is_left(
    spark: Any, tables: dict[str, rs.Table], query: str, refusal: Refusal
) -> None:
    assert tables
    report = explain_prune(spark.sql(query))
    assert report.refusal is refusal
    assert all(each.parts == each.parts_read for each in report.reads)
    assert refusal.value in str(report)


@pytest.mark.parametrize("fault", ["class", "constructor", "depth"])
def test_unknown_internals_are_warned_of_once(
    spark: Any,
    tables: dict[str, rs.Table],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
) -> None:
    def too_deep(*_: Any) -> Any:
        raise RecursionError(fault)

    assert tables
    monkeypatch.setattr(pruning, "_WARNED", set())
    frame = spark.sql("SELECT id FROM t WHERE id < 50")
    assert prune(frame) is not frame
    if fault == "class":
        monkeypatch.setattr(plans, "internal_class", partial(renamed_class, plans.internal_class))
    elif fault == "constructor":
        monkeypatch.setattr(plans, "sequence", lambda *_: None)
    else:
        monkeypatch.setattr("rowsieve.providers.spark.reads.pruning.replaced", too_deep)
    report = explain_prune(frame)
    assert prune(frame) is frame
    assert report.refusal is Refusal.UNKNOWN
    (warning,) = [record for record in caplog.records if record.name == "rowsieve"]
    assert report.detail in warning.getMessage()


def test_errors_of_one_kind_are_warned_of_once_whatever_their_text(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "_WARNED", set())
    for kind, text in [("null", "null: x is null"), ("null", "null"), ("other", "other")]:
        pruning._warn("4.3.0", kind, text)
    assert [record.args for record in caplog.records] == [
        ("4.3.0", "null: x is null"),
        ("4.3.0", "other"),
    ]


def renamed_class(found: Callable[[Any, str], Any], session: Any, name: str) -> Any:
    """The class of Spark's in a version that calls leaves otherwise."""
    return found(session, name.replace("LogicalRDD", "RDDLeaf"))


def test_a_query_that_spark_cannot_plan_fails_as_before(
    spark: Any, tables: dict[str, rs.Table], caplog: pytest.LogCaptureFixture
) -> None:
    assert tables
    frame = spark.sql("SELECT id FROM t WHERE id < 50 AND v = CAST('x' AS INT)")
    assert explain_prune(frame).refusal is Refusal.FAILS
    assert not [record for record in caplog.records if record.name == "rowsieve"]
    with pytest.raises(NumberFormatException):
        prune(frame).collect()


def test_statements_that_are_not_queries_run_once(spark: Any, tables: dict[str, rs.Table]) -> None:
    assert tables
    assert sql(spark, "SHOW VIEWS LIKE 't'").count() == 1
    sql(spark, "CREATE TEMPORARY VIEW t3 AS SELECT * FROM t WHERE id < 50")
    try:
        assert files(sql(spark, "SELECT * FROM t3 WHERE id > 10")) == 1
    finally:
        sql(spark, "DROP VIEW t3")


def conditions(alias: str) -> st.SearchStrategy[str]:
    """Conditions of one table of a query, some of which are not read."""
    number = st.integers(-20, 520)
    operator = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    leaf = st.one_of(
        st.builds(f"{alias}.id {{}} {{}}".format, operator, number),
        st.builds(f"{{}} {{}} {alias}.id".format, number, operator),
        st.builds(f"{alias}.m {{}} {{}}.25".format, operator, number),
        st.builds(f"{alias}.f {{}} CAST({{}} AS double)".format, operator, number),
        st.builds(f"{alias}.v {{}} {{}}".format, operator, st.integers(-1, 8)),
        st.builds(f"{alias}.id IN ({{}}, {{}})".format, number, number),
        st.builds(f"{alias}.s {{}} 'p{{}}-1'".format, operator, st.integers(0, 5)),
        st.builds(f"{alias}.s LIKE 'p{{}}%'".format, st.integers(0, 5)),
        st.builds(f"{alias}.d {{}} DATE '2026-01-{{:02d}}'".format, operator, st.integers(1, 31)),
        st.sampled_from(
            [f"{alias}.v IS NULL", f"{alias}.id + 1 > 300", f"lower({alias}.s) > 'p3'"]
        ),
    )
    return st.recursive(
        leaf,
        lambda terms: st.one_of(
            st.builds("({} AND {})".format, terms, terms),
            st.builds("({} OR {})".format, terms, terms),
            st.builds("NOT ({})".format, terms),
        ),
        max_leaves=4,
    )


RANDOM_SHAPES = (
    "SELECT a.id, a.v FROM t a WHERE {p} AND {p2}",
    "SELECT a.id, b.id FROM t a JOIN u b ON a.id = b.id AND {p} WHERE {q}",
    "SELECT a.id, b.id FROM t a LEFT JOIN u b ON a.id = b.id AND {p} AND {q} WHERE {p2}",
    "SELECT a.id, b.id FROM u a RIGHT JOIN t b ON a.id = b.id AND {p} WHERE {q}",
    "SELECT a.id, b.id FROM t a FULL JOIN u b ON a.id = b.id AND {p} WHERE {q} OR a.id IS NULL",
    "WITH c AS (FROM t) SELECT a.id FROM c a WHERE {p} UNION ALL SELECT b.id FROM c b WHERE {q}",
    "SELECT id, n FROM (SELECT a.id, count(*) OVER (PARTITION BY a.s) n FROM t a WHERE {p}) b",
    "SELECT a.id FROM t a WHERE {p} AND EXISTS (SELECT 1 FROM u b WHERE a.id = b.id AND {q})",
    "SELECT a.id FROM t a WHERE {p} AND a.id NOT IN (SELECT b.id FROM u b WHERE {q})",
    "SELECT a.id FROM t a WHERE {p} EXCEPT SELECT b.id FROM t b WHERE {q}",
    "SELECT a.s, count(*), max(a.v) FROM t a WHERE {p} GROUP BY a.s HAVING max(a.v) > 2",
)


@examples(24)
@given(st.data())
def test_random_queries_have_the_same_rows(
    spark: Any, tables: dict[str, rs.Table], memory: Any, data: st.DataObject
) -> None:
    assert tables
    mine, theirs = conditions("a"), conditions("b")
    query = data.draw(st.sampled_from(RANDOM_SHAPES)).format(
        p=data.draw(mine), q=data.draw(theirs), p2=data.draw(mine)
    )
    expected = Counter(map(repr, memory.execute(query).fetchall()))
    plain = spark.sql(query)
    pruned = prune(plain)
    assert counted(pruned.toArrow()) == expected, query
    if IS_DEEP:
        assert counted(plain.toArrow()) == expected, query
