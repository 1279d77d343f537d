"""Statements of Spark's SQL on tables of a catalog by their names, and on tables at a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    ConstraintViolation,
    InvalidInput,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.providers.spark import sql

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("s", pa.string())])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> rs.Catalog:
    """A catalog with a table that no test changes: version 0 has two rows, version 1 three."""
    catalog = rs.Catalog(str(tmp_path_factory.mktemp("lake")))
    rows = pa.table({"id": [1, 2], "n": [10, 20], "s": ["a", "b"]}, COLUMNS)
    table = catalog.create_table("db.t", rows, key=["id"])
    table.upsert(pa.table({"id": [3], "n": [30], "s": ["c"]}, COLUMNS), metadata={"note": "third"})
    return catalog


@pytest.fixture
def own(tmp_path: Path) -> rs.Catalog:
    """A catalog for one test, with a table with a key and one without."""
    catalog = rs.Catalog(str(tmp_path / "own"))
    rows = pa.table({"id": [1, 2], "n": [10, 20], "s": ["a", "b"]}, COLUMNS)
    catalog.create_table("db.keyed", rows, key=["id"])
    catalog.create_table("db.plain", rows)
    return catalog


@pytest.fixture
def database(spark: Any) -> Iterator[str]:
    """A database of Spark with a table `t`."""
    spark.sql("CREATE DATABASE both")
    spark.sql("CREATE TABLE both.t USING parquet AS SELECT 99L AS id")
    yield "both"
    spark.sql("DROP DATABASE both CASCADE")


def rows_of(spark: Any, text: str, catalog: Any = None) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, sql(spark, text, catalog).collect()))


def content(catalog: rs.Catalog, name: str) -> list[tuple[Any, ...]]:
    rows = catalog.open_table(name).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("SELECT id FROM db.t", [1, 2, 3]),
        ("SELECT id FROM lake.db.t", [1, 2, 3]),
        ("SELECT db.t.id FROM db.t WHERE t.n > 10", [2, 3]),
        ("SELECT lake.db.t.id FROM lake.db.t", [1, 2, 3]),
        ("FROM `db`.`t` x SELECT x.id", [1, 2, 3]),
        ("SELECT id FROM DB.T", [1, 2, 3]),
        ("SELECT id FROM db.t VERSION AS OF 0", [1, 2]),
        ("SELECT id FROM db.t FOR SYSTEM_VERSION AS OF 0 y", [1, 2]),
        ("SELECT id FROM db.t TIMESTAMP AS OF current_timestamp()", [1, 2, 3]),
        ("-- db.u\nSELECT /* lake.x.y */ id FROM db.t WHERE s <> 'db.t' /* ' */", [1, 2, 3]),
        ("WITH t AS (SELECT 7L AS id) SELECT id FROM t", [7]),
        ("WITH t AS (SELECT id FROM db.t) SELECT id FROM t WHERE id > 1", [2, 3]),
        ("SELECT id FROM range(5) WHERE id IN (SELECT id FROM db.t)", [1, 2, 3]),
        ("SELECT (SELECT max(id) FROM db.t) AS id", [3]),
        ("SELECT a.id FROM db.t a JOIN db.t VERSION AS OF 0 b ON a.id = b.id", [1, 2]),
        ("SELECT id FROM db.t WHERE EXISTS (SELECT 1 FROM db.t u WHERE u.id = t.id + 1)", [1, 2]),
        ("SELECT snapshot_id FROM db.t.snapshots", [0, 1]),
        ("SELECT snapshot_id FROM lake.db.t.snapshots WHERE summary['note'] = 'third'", [1]),
        ("SELECT record_count FROM db.t.files", [1, 2]),
        ("SELECT record_count FROM db.t.files VERSION AS OF 0", [2]),
        ("SELECT record_count FROM DB.T.Partitions", [3]),
        ("SELECT snapshot_id FROM db.`t$snapshots` VERSION AS OF 0", [0]),
        ("SELECT h.snapshot_id FROM lake.db.`t$history` h JOIN db.t ON id = snapshot_id", [1]),
        ("SELECT count(*) FROM db.t.properties", [0]),
        ("SELECT id FROM IDENTIFIER('db' || '.t') WHERE id > 1", [2, 3]),
        ("SELECT count(*) FROM IDENTIFIER(concat('db.t', '.history'))", [2]),
        ("SELECT ordinal_position FROM information_schema.columns", [1, 2, 3]),
        ("SELECT id FROM table_changes('db.t', 1)", [3]),
        ("SELECT id FROM table_changes('lake.db.t', 1, 1) WHERE _change_type = 'insert'", [3]),
        ("SELECT snapshot_id FROM (SELECT * FROM db.t.history) LIMIT 5", [0, 1]),
        ("DESCRIBE HISTORY db.t", [0, 1]),
        ("DESC /* of */ HISTORY lake.`db`.t LIMIT 1;", [1]),
    ],
)
def test_a_query_names_tables_of_a_catalog(
    spark: Any, lake: rs.Catalog, text: str, ids: list[int]
) -> None:
    assert sorted(row[0] for row in rows_of(spark, text, lake)) == ids
    if "lake" in text and "/*" not in text:
        assert sorted(row[0] for row in rows_of(spark, text, {"lake": lake})) == ids


def test_a_query_names_a_table_at_a_path(spark: Any, lake: rs.Catalog) -> None:
    place = lake.uri_of("db.t").removeprefix("file://")
    assert rows_of(spark, f"SELECT id FROM rowsieve.`{place}` VERSION AS OF 0") == [(1,), (2,)]
    assert rows_of(spark, f"SELECT id FROM rowsieve.`file://{place}` WHERE n > 20") == [(3,)]
    assert rows_of(spark, f"SELECT max(snapshot_id) FROM rowsieve.`{place}`.history") == [(1,)]
    (detail,) = sql(spark, f"DESCRIBE DETAIL rowsieve.`{place}`").collect()
    assert (detail.version, detail.key, detail.rows_stored) == (1, ["id"], 3)
    assert "Parquet" in str(sql(spark, f"EXPLAIN SELECT * FROM rowsieve.`{place}`").first()[0])


def test_the_rules_of_the_session_hold(spark: Any, lake: rs.Catalog) -> None:
    """A time without an offset is one of the session's zone; so are ANSI mode and case."""
    moment = lake.open_table("db.t").history()[-1].timestamp  # of version 0
    later = lake.open_table("db.t").history()[0].timestamp
    zone, ansi = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
    try:
        spark.conf.set(zone, "America/New_York")
        for at, ids in ((moment, [1, 2]), (later, [1, 2, 3])):
            local = spark.sql(f"SELECT string(timestamp_micros({int(at.timestamp() * 1e6)}L))")
            text = f"SELECT id FROM db.t TIMESTAMP AS OF '{local.first()[0]}'"
            assert [row[0] for row in rows_of(spark, text, lake)] == ids
        spark.conf.set(ansi, "false")
        assert rows_of(spark, "SELECT int(s) FROM db.t WHERE id = 1", lake) == [(None,)]
        spark.conf.set(ansi, "true")
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            rows_of(spark, "SELECT int(s) FROM db.t WHERE id = 1", lake)
        spark.conf.set("spark.sql.caseSensitive", "true")
        with pytest.raises(TableNotFound, match="The namespace has db"):
            sql(spark, "SELECT * FROM db.T", lake)
    finally:
        for name in (zone, ansi, "spark.sql.caseSensitive"):
            spark.conf.unset(name)


def test_neither_of_two_tables_hides_the_other(
    spark: Any, database: str, own: rs.Catalog, lake: rs.Catalog
) -> None:
    rows = pa.table({"id": [1]})
    own.create_table(f"{database}.t", rows)
    for text in ("SELECT id FROM both.t", "INSERT INTO both.t SELECT 5L", "TRUNCATE TABLE both.t"):
        with pytest.raises(
            InvalidInput, match="a Rowsieve table and one of Spark's; nothing was run"
        ):
            sql(spark, text, own)
    assert rows_of(spark, "SELECT id FROM spark_catalog.both.t", own) == [(99,)]
    assert rows_of(spark, "SELECT id FROM lake.both.t", own) == [(1,)]
    assert rows_of(spark, "SELECT id FROM both.t") == [(99,)]
    spark.range(7, 8).createOrReplaceTempView("t")
    assert rows_of(spark, "SELECT t.id, x.id FROM t, lake.db.t x WHERE x.id = 1", lake) == [(7, 1)]
    spark.catalog.dropTempView("t")
    own.create_table("db.t", rows)
    with pytest.raises(InvalidInput, match="several Rowsieve tables"):
        sql(spark, "SELECT * FROM db.t", {"one": own, "other": lake})
    assert rows_of(spark, "SELECT count(*) FROM other.db.t", {"one": own, "other": lake}) == [(3,)]
    with pytest.raises(Exception, match=r"both.*none"):
        sql(spark, "SELECT * FROM both.none", own)
    with pytest.raises(InvalidInput, match="names the catalog 'nope'"):
        sql(spark, "CALL nope.system.compact('db', 't')", {"one": own})


def test_rows_are_inserted(spark: Any, own: rs.Catalog) -> None:
    sql(spark, "INSERT INTO db.keyed VALUES (3, 30, 'c'), (4, NULL, 'd''d')", own)
    sql(
        spark,
        "INSERT INTO lake.db.keyed (s, id) SELECT 'e', id + 4 FROM db.plain WHERE id = 1",
        own,
    )
    sql(spark, "INSERT INTO TABLE db.keyed BY NAME SELECT 'f' AS S, 6 AS n, 6 AS id", own)
    assert content(own, "db.keyed")[2:] == [
        (3, 30, "c"),
        (4, None, "d'd"),
        (5, None, "e"),
        (6, 6, "f"),
    ]
    sql(spark, "INSERT OVERWRITE db.plain SELECT id, n, s FROM db.keyed WHERE id > 4", own)
    sql(spark, "INSERT INTO db.plain REPLACE WHERE id = 5 VALUES (5, 55, 'z')", own)
    sql(spark, "INSERT INTO db.plain VALUES (6, 1, 'twice')", own)
    assert content(own, "db.plain") == [(5, 55, "z"), (6, 1, "twice"), (6, 6, "f")]
    own.open_table("db.keyed").to_spark(spark).createOrReplaceTempView("shown")
    sql(spark, "INSERT INTO shown VALUES (7, 7, 'g')", own)
    assert rows_of(spark, "SELECT count(*) FROM shown") == [(6 + 1,)]
    spark.catalog.dropTempView("shown")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("INSERT INTO db.keyed VALUES (9, 9, 'x'), (2, 1, 'y')", KeyViolation, "key .id. .*: 2"),
        ("INSERT INTO db.keyed VALUES (9, 9, 'x'), (9, 1, 'y')", KeyViolation, "'id': 9"),
        ("INSERT INTO db.keyed VALUES (9, 9)", SchemaMismatch, "2 columns for 3"),
        ("INSERT INTO db.keyed VALUES (9, 3000000000, 'x')", Exception, "CAST_OVERFLOW"),
        ("INSERT INTO db.keyed VALUES (9, 'many', 'x')", RowsieveError, "nothing was"),
        ("INSERT INTO db.keyed (id, x) VALUES (9, 9)", SchemaMismatch, "no column 'x'"),
        ("INSERT INTO db.keyed (id, ID) VALUES (9, 9)", InvalidInput, "twice"),
        ("INSERT INTO db.keyed PARTITION (n = 1) VALUES (9, 'x')", UnsupportedOperation, "PARTIT"),
        ("INSERT INTO db.plain SELECT * FROM db.plain", UnsupportedOperation, "reads the same"),
        (
            "INSERT OVERWRITE db.keyed SELECT * FROM db.plain WHERE 1 IN (SELECT id FROM db.keyed)",
            UnsupportedOperation,
            "reads the same table",
        ),
        ("INSERT INTO db.keyed.history VALUES (1)", UnsupportedOperation, "only shows"),
        ("WITH x AS (SELECT 1) UPDATE db.keyed SET n = 1", UnsupportedOperation, "WITH before"),
        (
            "CREATE TEMPORARY VIEW v AS SELECT * FROM db.keyed",
            UnsupportedOperation,
            "temporary view",
        ),
        ("CREATE OR REPLACE TABLE db.keyed (id INT)", UnsupportedOperation, "other columns"),
        (
            "REPLACE TABLE db.keyed (id BIGINT, n INT, s STRING) OPTIONS (key 'n')",
            UnsupportedOperation,
            "its key is .id.",
        ),
        (
            "CREATE OR REPLACE TABLE db.plain AS SELECT * FROM db.plain",
            UnsupportedOperation,
            "reads the same table",
        ),
        (
            "REPLACE TABLE db.plain OPTIONS (property.isolation 'snapshot') AS TABLE db.keyed",
            UnsupportedOperation,
            "another property isolation",
        ),
        ("CREATE TABLE db.keyed (id INT)", TableExists, "there is a table"),
        ("CREATE TABLE db.w (id INT) OPTIONS (path '/x')", InvalidInput, "places its tables"),
        (
            "CREATE TABLE db.w (id INT) OPTIONS (colour 'x')",
            InvalidInput,
            "unknown option 'colour'",
        ),
        ("CREATE TABLE db.w (id INT) PARTITIONED BY (id)", UnsupportedOperation, "PARTITIONED BY"),
        ("CREATE TABLE db.w (id INT UNIQUE)", UnsupportedOperation, "one key"),
        ("CREATE TABLE db.w (id INT, CHECK (nothing > 0))", RowsieveError, "nothing"),
        (
            "CREATE TABLE db.w OPTIONS (key 'id', sequence 'n') AS SELECT 1 AS id, 2 AS n",
            UnsupportedOperation,
            "event order and AS query",
        ),
        ("SELECT * FROM db.keyed VERSION AS OF 'x'", RowsieveError, "no branch or tag 'x'"),
        ("SELECT * FROM db.keyed TIMESTAMP AS OF 'soon'", InvalidInput, "TIMESTAMP AS OF"),
        ("SELECT * FROM db.keyed WITH (a 'b')", UnsupportedOperation, "WITH"),
        ("SELECT * FROM STREAM db.keyed", UnsupportedOperation, "readChangeFeed"),
        ("SELECT * FROM table_changes('db.keyed')", InvalidInput, "table_changes takes"),
        ("SELECT * FROM table_changes('db.keyed', 'soon')", InvalidInput, "whole numbers"),
        ("ALTER TABLE db.keyed RENAME TO db.plain", TableExists, "plain"),
        ("ALTER TABLE lake.db.keyed RENAME TO pond.db.other", InvalidInput, "keeps its catalog"),
        ("ALTER TABLE db.keyed DROP COLUMN id", RowsieveError, "id"),
        ("ANALYZE TABLE db.keyed COMPUTE STATISTICS", RowsieveError, "not available"),
        ("OPTIMIZE db.keyed FULL", UnsupportedOperation, "'FULL' is not available"),
        ("VACUUM db.keyed RETAIN many HOURS", InvalidInput, "whole number"),
        ("RESTORE db.keyed TO VERSION AS OF 5", RowsieveError, "5"),
    ],
)
def test_what_is_refused_changes_nothing(
    spark: Any, own: rs.Catalog, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sql(spark, text, own).collect()
    assert [own.open_table(f"db.{name}").version for name in ("keyed", "plain")] == [0, 0]
    assert own.tables() == ["db.keyed", "db.plain"]


def test_rows_are_changed(spark: Any, own: rs.Catalog) -> None:
    for name in ("keyed", "plain"):
        table = f"lake.db.{name}"
        added = f"(SELECT int(max(id)) FROM db.{name})"
        sql(spark, f"UPDATE {table} SET n = n + {added} WHERE id = 1", own)
        sql(spark, f"DELETE FROM {table} t WHERE t.s IN (SELECT s FROM {table} WHERE id = 2)", own)
        assert content(own, f"db.{name}") == [(1, 12, "a")]
        source = f"SELECT r.id + 1 AS id, k.n FROM range(2) r CROSS JOIN db.{name} k"
        sql(
            spark,
            f"""MERGE INTO {table} t USING ({source}) new ON t.id = new.id
            WHEN MATCHED THEN UPDATE SET n = new.n + t.n
            WHEN NOT MATCHED THEN INSERT (id, n) VALUES (new.id, 5)""",
            own,
        )
        assert content(own, f"db.{name}") == [(1, 24, "a"), (2, 5, None)]
        sql(spark, f"TRUNCATE TABLE db.{name}", own)
        assert content(own, f"db.{name}") == []
    assert [view.name for view in spark.catalog.listTables() if "named" in view.name] == []


def test_a_statement_begins_a_namespace_that_spark_does_not_have(
    spark: Any, own: rs.Catalog
) -> None:
    sql(spark, "CREATE TABLE begun.t (id INT) USING rowsieve OPTIONS (key 'id')", own)
    assert own.open_table("begun.t").key == ("id",)
    with pytest.raises(InvalidInput, match="is not named"):
        sql(spark, "CREATE TABLE default.t (id INT) USING rowsieve OPTIONS (key 'id')", own)
    assert own.tables("default") == []


def test_a_table_has_a_life_in_statements(spark: Any, own: rs.Catalog) -> None:
    options = "USING rowsieve OPTIONS (key 'id', property.checkpoint_interval '7')"
    sql(spark, f"CREATE TABLE lake.new.made (id BIGINT NOT NULL, v DECIMAL(9, 2)) {options}", own)
    table = own.open_table("new.made")
    assert (table.key, table.schema.field("id").nullable) == (("id",), False)
    sql(spark, f"CREATE TABLE IF NOT EXISTS lake.new.made (id INT) {options}", own)
    query = "SELECT id, n AS v FROM db.plain"
    sql(spark, f"CREATE TABLE db.filled USING rowsieve OPTIONS (key 'id') AS {query}", own)
    assert content(own, "db.filled") == [(1, 10), (2, 20)]
    with pytest.raises(KeyViolation):
        sql(spark, "CREATE TABLE db.broken OPTIONS (key 'v') AS SELECT 1 AS v FROM db.plain", own)
    assert "db.broken" not in own.tables()
    (statement,) = sql(spark, "SHOW CREATE TABLE new.made", own).first()
    sql(spark, "ALTER TABLE new.made ADD COLUMNS (w INT)", own)
    sql(spark, "CREATE TABLE db.primary (id INT, `a,b` INT, PRIMARY KEY (id, `a,b`))", own)
    assert own.open_table("db.primary").key == ("id", "a,b")
    sql(spark, "ALTER TABLE new.made SET TBLPROPERTIES ('expire_rows_when' = \"v > 5\")", own)
    assert rows_of(spark, "SELECT value FROM new.made.properties WHERE key LIKE 'e%'", own) == [
        ("v > 5",)
    ]
    sql(spark, "ALTER TABLE new.made UNSET TBLPROPERTIES (expire_rows_when)", own)
    assert "expire_rows_when" not in own.open_table("new.made").handle.pinned.table.properties
    sql(spark, "INSERT INTO new.made VALUES (1, 2.5, 3)", own)
    assert [row[:2] for row in rows_of(spark, "DESCRIBE new.made", own)] == [
        ("id", "bigint"),
        ("v", "decimal(9,2)"),
        ("w", "int"),
    ]
    restored = sql(spark, "RESTORE TABLE new.made TO VERSION AS OF 0", own).first()
    assert (restored.version, content(own, "new.made")) == (5, [])
    assert sql(spark, "OPTIMIZE db.plain WHERE id > 0 ZORDER BY (id, n)", own).collect()
    assert sql(spark, "VACUUM db.plain RETAIN 1000 HOURS DRY RUN", own).first().files == 0
    sql(spark, "DROP TABLE new.made PURGE", own)
    assert "new.made" not in own.tables()
    sql(spark, statement, own)
    again = own.open_table("new.made")
    assert (again.key, again.handle.pinned.table.properties["checkpoint_interval"]) == (
        ("id",),
        "7",
    )


def test_a_table_is_created_with_an_order_and_constraints(spark: Any, own: rs.Catalog) -> None:
    sql(
        spark,
        """CREATE TABLE db.made (
            id BIGINT CHECK (id > 0), n INT, lsn BIGINT,
            CONSTRAINT half CHECK (n / 2 < 1.75), PRIMARY KEY (id)
        ) TBLPROPERTIES ('sequence' = 'lsn', 'late_horizon' = '30 days')""",
        own,
    )
    table = own.open_table("db.made")
    assert (table.key, table.sequence, len(table.constraints)) == (("id",), ("lsn",), 2)
    (statement,) = sql(spark, "SHOW CREATE TABLE db.made", own).first()
    sql(spark, "DROP TABLE db.made PURGE", own)
    sql(spark, statement, own)
    table = own.open_table("db.made")
    assert (table.key, table.sequence, len(table.constraints)) == (("id",), ("lsn",), 2)
    assert table.handle.pinned.table.properties["late_horizon"] == "30 days"
    table.upsert(pa.table({"id": [1], "n": pa.array([3], pa.int32()), "lsn": [9]}))
    for rows in ({"id": [0], "n": [1], "lsn": [9]}, {"id": [1], "n": [4], "lsn": [10]}):
        with pytest.raises(ConstraintViolation):
            table.upsert(pa.table(rows, pa.schema(table.schema)))


def test_a_name_of_sparks_catalog_is_not_altered(
    spark: Any, database: str, lake: rs.Catalog
) -> None:
    place = lake.uri_of("db.t")
    spark.sql(f"CREATE TABLE {database}.named USING rowsieve OPTIONS (path '{place}')")
    for actions in ("ADD COLUMNS (w INT)", "RENAME COLUMN s TO x", "SET LOCATION '/x'"):
        with pytest.raises(
            UnsupportedOperation, match="no longer be readable; nothing was changed"
        ):
            sql(spark, f"ALTER TABLE {database}.named {actions}", lake)
    assert rows_of(spark, f"SELECT id FROM {database}.named", lake) == [(1,), (2,), (3,)]
    sql(spark, f"ALTER TABLE {database}.named SET TBLPROPERTIES (a = 'b')")
    sql(spark, f"ALTER TABLE {database}.t ADD COLUMNS (w INT)", lake)  # of Spark alone
    sql(spark, f"INSERT INTO {database}.t SELECT id, n FROM db.t WHERE id = 1", lake)
    sql(spark, f"CREATE TABLE {database}.copy USING parquet AS SELECT * FROM db.t", lake)
    assert rows_of(spark, f"SELECT id, w FROM {database}.t") == [(1, 10), (99, None)]
    assert rows_of(spark, f"SELECT id FROM {database}.copy") == [(1,), (2,), (3,)]


def test_rows_are_replaced_by_create_or_replace(
    spark: Any, own: rs.Catalog, tmp_path: Path
) -> None:
    path = f"rowsieve.`{tmp_path / 'placed'}`"
    for name in ("db.made", "lake.db.made", path):
        query = "SELECT id, n FROM db.plain"
        replace = f"CREATE OR REPLACE TABLE {name} OPTIONS (key 'id') AS"
        sql(spark, f"{replace} {query} WHERE id = 1", own)
        sql(spark, f"{replace} {query} WHERE id = 2", own)
        assert rows_of(spark, f"SELECT * FROM {name}", own) == [(2, 20)]
        sql(spark, f"REPLACE TABLE {name} (id BIGINT, n INT)", own)
        assert rows_of(spark, f"SELECT * FROM {name}", own) == []
        first = 0 if name == path else 1  # a write creates the table at a path with its rows
        assert rows_of(spark, f"SELECT * FROM {name} VERSION AS OF {first}", own) == [(1, 10)]
    with pytest.raises(TableNotFound, match="no such table"):
        sql(spark, "REPLACE TABLE db.nothing (id BIGINT)", own)


def test_a_table_is_created_at_a_path(spark: Any, own: rs.Catalog, tmp_path: Path) -> None:
    name = f"rowsieve.`{tmp_path / 'placed'}`"
    sql(spark, f"CREATE TABLE {name} (id BIGINT, n INT) OPTIONS (key 'id')")
    sql(spark, f"CREATE TABLE IF NOT EXISTS {name} (id BIGINT, n INT) OPTIONS (key 'id')")
    with pytest.raises(TableExists):
        sql(spark, f"CREATE TABLE {name} (id BIGINT)")
    sql(spark, f"INSERT INTO {name} SELECT id, n FROM db.plain", own)
    table = rs.open_table(tmp_path / "placed")
    assert (table.key, table.count()) == (("id",), 2)
    placed = tmp_path / "placed"
    assert len(rows_of(spark, f"DESCRIBE HISTORY '{placed}'", own)) == 2
    sql(spark, f"OPTIMIZE '{placed}'", own)
    sql(spark, f"VACUUM '{placed}' RETAIN 168 HOURS", own)
    with pytest.raises(UnsupportedOperation, match="named by its path"):
        sql(spark, f"ALTER TABLE {name} RENAME TO db.x", own)
    other = f"rowsieve.`{tmp_path / 'filled'}`"
    sql(spark, f"CREATE TABLE {other} USING rowsieve AS SELECT * FROM {name}")
    assert rows_of(spark, f"SELECT * FROM {other}") == [(1, 10), (2, 20)]


def test_spellings_of_delta_and_iceberg(spark: Any, own: rs.Catalog) -> None:
    sql(spark, "ALTER TABLE db.plain ADD COLUMNS (a INT, b INT, c INT, d INT)", own)
    sql(spark, "ALTER TABLE db.plain DROP COLUMNS (a, `b`)", own)
    sql(spark, "ALTER TABLE db.plain DROP COLUMNS IF EXISTS (c, nope)", own)
    sql(spark, "ALTER TABLE db.plain DROP COLUMN d", own)
    assert own.open_table("db.plain").columns == ["id", "n", "s"]
    sql(spark, "OPTIMIZE db.plain ZORDER BY (s)", own)
    sql(spark, "ALTER TABLE db.plain SET TBLPROPERTIES (isolation = 'snapshot')", own)
    assert rows_of(spark, "SHOW TBLPROPERTIES db.plain", own) == [("isolation", "snapshot")]
    sql(spark, "REFRESH TABLE db.plain", own)
    sql(spark, "ALTER TABLE lake.db.plain RENAME TO lake.db.other", own)
    sql(spark, "ALTER TABLE db.other RENAME TO third", own)
    assert own.tables() == ["db.keyed", "db.third"]
    assert rows_of(spark, "SELECT count(*) FROM db.third", own) == [(2,)]


def test_changes_between_times(spark: Any, own: rs.Catalog) -> None:
    table = own.open_table("db.keyed")
    table.delete("id = 1")
    changes = "SELECT id, _change_type FROM table_changes('db.keyed', {})"
    rows = [(1, "delete"), (1, "insert"), (2, "insert")]
    assert rows_of(spark, changes.format("'2020-01-01'"), own) == rows
    assert rows_of(spark, changes.format("0, '2999-01-01 00:00:00+00:00'"), own) == rows
    with pytest.raises(RowsieveError):
        sql(spark, changes.format("'2999-01-01'"), own)
