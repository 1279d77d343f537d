"""Statements of our session that create, change and drop the tables of a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    ConstraintViolation,
    RowsieveError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.providers.datafusion import SessionContext
from tests.providers.datafusion.test_datafusion_changes import run


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    made = rs.Catalog(str(tmp_path / "lake"))
    made.create_table("db.t", pa.table({"id": [1, 2]}), key=["id"])
    return made


@pytest.fixture
def context(catalog: rs.Catalog) -> SessionContext:
    made = SessionContext()
    made.register_catalog_provider("lake", catalog.to_datafusion())
    return made


def test_tables_of_a_catalog(tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    catalog.create_table("db.t", pa.table({"id": [1, 2], "s": ["a", "b"]}), key=["id"])
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    assert run(context, "INSERT INTO lake.db.t VALUES (3, 'c')") == 1
    assert run(context, "UPDATE lake.db.t SET s = (SELECT max(s) FROM lake.db.t) WHERE id = 1") == 1
    text = (
        "CREATE TABLE lake.db.copy (PRIMARY KEY (k)) AS SELECT id AS k, s FROM lake.db.t "
        "WHERE id > $low"
    )
    assert run(context, text, param_values={"low": 1}) == 2
    assert catalog.open_table("db.copy").key == ("k",)
    text = (
        "MERGE INTO lake.db.copy AS c USING lake.db.t AS t ON c.k = t.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (t.id, t.s)"
    )
    assert run(context, text) == 3
    assert context.sql("SELECT * FROM lake.db.copy").to_pylist() == [{"k": 1, "s": "c"}]
    with pytest.raises(TableExists):
        context.sql("CREATE TABLE lake.db.copy AS SELECT 1 AS a")
    assert run(context, "CREATE TABLE IF NOT EXISTS lake.db.copy AS SELECT 1 AS a") == 0
    assert run(context, "TRUNCATE TABLE lake.db.copy") == 1
    run(context, "DROP TABLE lake.db.copy")
    with pytest.raises(TableNotFound):
        context.sql("DROP TABLE lake.db.copy")
    run(context, "DROP TABLE IF EXISTS lake.db.copy")
    assert catalog.tables() == ["db.t"]
    with pytest.raises(UnsupportedOperation, match="read-only"):
        run(context, 'DELETE FROM lake.db."t@v0"')
    with pytest.raises(Exception, match="nosuch"):
        context.sql("DELETE FROM lake.db.nosuch")


def test_a_default_catalog_may_be_ours(tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    catalog.create_table("db.t", pa.table({"id": [1, 2]}), key=["id"])
    config = datafusion.SessionConfig().with_create_default_catalog_and_schema(enabled=False)
    context = SessionContext(config.with_default_catalog_and_schema("lake", "db"))
    context.register_catalog_provider("lake", catalog.to_datafusion())
    assert run(context, "DELETE FROM t WHERE id = 2") == 1
    assert run(context, "CREATE TABLE u AS SELECT * FROM t") == 1
    assert context.sql("SELECT * FROM u").to_pylist() == [{"id": 1}]


CREATED = "lake.db.u", "lake.db.u (PRIMARY KEY (id))"


@pytest.mark.parametrize("name", CREATED)
@pytest.mark.parametrize("create", ["CREATE TABLE", "CREATE OR REPLACE TABLE"])
@pytest.mark.parametrize("using", ["", "USING rowsieve ", "using ROWSIEVE "])
def test_a_table_is_created_from_a_query(
    name: str, create: str, using: str, catalog: rs.Catalog, context: SessionContext
) -> None:
    assert run(context, f"{create} {name} {using}AS SELECT id FROM lake.db.t WHERE id > 1") == 1
    table = catalog.open_table("db.u")
    assert table.scan().to_arrow().to_pylist() == [{"id": 2}]
    assert table.key == (("id",) if "KEY" in name else ())
    for create_again in ("CREATE TABLE IF NOT EXISTS", "CREATE TABLE if not exists"):
        assert run(context, f"{create_again} lake.db.u {using}AS SELECT 1 AS other") == 0
    assert table.refresh() == 0


DEFINED = (
    "(Id BIGINT PRIMARY KEY, n INT DEFAULT 5 CHECK (n > 0), lsn BIGINT, CONSTRAINT c CHECK (n < 9))"
    " USING rowsieve WITH (sequence = 'lsn', late_horizon = '30 days', target_part_bytes = 1000000)"
)


@pytest.mark.parametrize("by_catalog", [False, True])
def test_a_table_is_created_from_its_definition(
    catalog: rs.Catalog, context: SessionContext, *, by_catalog: bool
) -> None:
    if by_catalog:
        assert catalog.sql(f"CREATE TABLE db.u {DEFINED}").to_pylist() == [{"table": "db.u"}]
    else:
        assert run(context, f"CREATE TABLE lake.db.u {DEFINED}") == 0
    table = catalog.open_table("db.u")
    assert (table.schema.names, table.key, table.sequence) == (
        ["id", "n", "lsn"],
        ("id",),
        ("lsn",),
    )
    assert table.constraints == {"n_check": "n > 0", "c": "n < 9"}
    assert table.detail()["properties"]["late_horizon"] == "30 days"
    assert run(context, "INSERT INTO lake.db.u (id, lsn) VALUES (1, 20)") == 1
    assert context.sql("SELECT * FROM lake.db.u").to_pylist() == [{"id": 1, "n": 5, "lsn": 20}]
    assert table.upsert(pa.table({"id": [1], "n": [7], "lsn": [10]})).rows_late == 1
    with pytest.raises(ConstraintViolation, match="n_check"):
        context.sql("INSERT INTO lake.db.u VALUES (2, 0, 1)")
    again = "CREATE TABLE IF NOT EXISTS {} (x INT)"
    assert run(context, again.format("lake.db.u")) == 0
    assert catalog.sql(again.format("db.u")).to_pylist() == [{"table": "db.u"}]
    with pytest.raises(TableExists):
        catalog.sql("CREATE TABLE db.u (x INT)")


def test_a_query_with_a_definition(catalog: rs.Catalog, context: SessionContext) -> None:
    text = "(PRIMARY KEY (a), CHECK (a > 0)) WITH (sequence = ARRAY['b']) AS SELECT {} AS a, 2 AS b"
    assert run(context, "CREATE TABLE lake.db.u " + text.format(1)) == 1
    table = catalog.open_table("db.u")
    assert (table.key, table.sequence, table.constraints) == (("a",), ("b",), {"check": "a > 0"})
    before = catalog.tables()
    with pytest.raises(ConstraintViolation):
        context.sql("CREATE TABLE lake.db.w " + text.format(-1))
    assert catalog.tables() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(id INT) WITH (nothing = 1)", "unknown table property 'nothing'"),
        ("(id INT) WITH (sequence = 'x')", "no column 'x'"),
        ("(id INT PRIMARY KEY) WITH (key = 'id')", "not both"),
        ("(id INT) WITH (key)", "the value of key is ''"),
        ("(id INT) WITH (sequence = f(1))", "give a text, a number"),
        ("(id INT) WITH (key = 'id', key = 'id')", "twice"),
        ("(id INT, CHECK (nothing > 1))", "nothing"),
        ("", "needs columns"),
        ("()", "needs columns"),
    ],
)
def test_a_definition_that_cannot_be_kept_creates_nothing(
    text: str, words: str, catalog: rs.Catalog, context: SessionContext
) -> None:
    before = catalog.tables()
    with pytest.raises(RowsieveError, match=words):
        context.sql(f"CREATE TABLE lake.db.x {text}")
    with pytest.raises(RowsieveError, match=words):
        catalog.sql(f"CREATE TABLE db.x {text}")
    assert catalog.tables() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE lake.db.x (a INT) AS SELECT 1 AS a", "leave the types out"),
        ("CREATE TABLE lake.db.x (a INT UNIQUE)", "no other unique columns"),
        ("CREATE TABLE lake.db.x (a INT) PARTITIONED BY (a)", "PARTITIONED BY"),
        ("CREATE TABLE lake.db.x USING parquet AS SELECT 1 AS a", "no tables USING parquet"),
        ("CREATE OR REPLACE TABLE lake.db.t AS SELECT 1 AS a", "would lose its history"),
        ("CREATE OR REPLACE TABLE lake.db.t USING rowsieve AS SELECT 1 AS a", "table.overwrite"),
        ("SELECT 1 AS a INTO lake.db.x", "create a table or view db.x"),
        ("SELECT id INTO lake.db.x FROM lake.db.t", "create a table or view db.x"),
        ("CREATE VIEW lake.db.x AS SELECT 1 AS a", "create a table or view db.x"),
        ("CREATE OR REPLACE VIEW lake.db.x AS SELECT id FROM lake.db.t", "table or view db.x"),
    ],
)
def test_what_a_catalog_cannot_hold_is_refused(
    text: str, message: str, catalog: rs.Catalog, context: SessionContext
) -> None:
    with pytest.raises(UnsupportedOperation, match=message):
        context.sql(text)
    assert catalog.tables() == ["db.t"]
    assert catalog.open_table("db.t").version == 0


def test_datafusion_alone_does_not_create_tables_in_a_catalog(catalog: rs.Catalog) -> None:
    plain: Any = datafusion.SessionContext()
    plain.register_catalog_provider("lake", catalog.to_datafusion())
    for text in ("CREATE TABLE lake.db.x AS SELECT 1 AS a", "CREATE VIEW lake.db.x AS SELECT 1"):
        with pytest.raises(Exception, match=r"write CREATE TABLE … AS"):
            plain.sql(text)
    assert catalog.tables() == ["db.t"]
