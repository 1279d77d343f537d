"""Metadata tables and the information schema in our session and in `Catalog.sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, TableNotFound, UnsupportedOperation
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES
from rowsieve.names import qualified_names
from rowsieve.providers.datafusion import SessionContext


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Version 0 has ids 1 and 2, version 1 also 3."""
    table = rs.create_table(
        str(tmp_path / "flights"), pa.table({"id": [1, 2], "s": ["a", "b"]}), key=["id"]
    )
    table.upsert(pa.table({"id": [3], "s": ["c"]}), metadata={"note": "third"})
    return table


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    seen = catalog.create_table("db.seen", pa.table({"id": [0, 1]}), key=["id"])
    seen.upsert(pa.table({"id": [5]}))
    seen.add_constraint("small", "id < 1000")
    return catalog


@pytest.fixture
def session(table: rs.Table, catalog: rs.Catalog) -> SessionContext:
    session = SessionContext()
    session.register_table("flights", table)
    session.register_table('"My Flights"', rs.open_table(table.uri, version=0))
    session.register_catalog_provider("lake", catalog.to_datafusion())
    return session


def rows(session: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.sql(text).to_pylist())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('SELECT snapshot_id FROM "flights$snapshots"', [(0,), (1,)]),
        ("SELECT snapshot_id FROM flights$snapshots", [(0,), (1,)]),
        ("SELECT snapshot_id FROM FLIGHTS$Snapshots WHERE parent_id = 0", [(1,)]),
        ("SELECT snapshot_id FROM public.flights$history AS h LIMIT 1", [(0,)]),
        ('SELECT "h".snapshot_id FROM datafusion.public."flights$history" AS "h"', [(0,), (1,)]),
        ("SELECT record_count FROM flights$files", [(1,), (2,)]),
        ("SELECT sum(record_count) FROM flights$partitions", [(3,)]),
        ("SELECT count(*) FROM flights$properties", [(0,)]),
        ("SELECT summary['note'] FROM flights$snapshots WHERE snapshot_id = 1", [("third",)]),
        ('SELECT max(snapshot_id) FROM "My Flights$snapshots"', [(0,)]),
        ('SELECT count(*) FROM "My Flights$files"', [(1,)]),
        (
            "SELECT id, operation FROM flights JOIN flights$snapshots ON id = snapshot_id + 2",
            [(2, "create"), (3, "upsert")],
        ),
        ("SELECT id FROM flights WHERE id IN (SELECT snapshot_id FROM flights$history)", [(1,)]),
        ("WITH h AS (SELECT * FROM flights$history) SELECT count(*) FROM h", [(2,)]),
        ("SELECT snapshot_id FROM lake.db.seen$snapshots", [(0,), (1,), (2,)]),
        ('SELECT snapshot_id FROM lake.db."seen$snapshots" FOR VERSION AS OF 0', [(0,)]),
        ('SELECT snapshot_id FROM lake.db."seen@v1$snapshots"', [(0,), (1,)]),
        (
            "SELECT s.id FROM lake.db.seen s JOIN lake.db.seen$history h ON s.id = h.snapshot_id",
            [(0,), (1,)],
        ),
        (
            "SELECT id FROM flights, flights$history, lake.db.seen$files WHERE id = snapshot_id",
            [(1,), (1,)],
        ),
    ],
)
def test_a_query_reads_metadata_tables(
    session: SessionContext, text: str, wanted: list[tuple[Any, ...]]
) -> None:
    assert rows(session, text) == wanted


@pytest.mark.parametrize("kind", METADATA_TABLES)
def test_each_kind_is_there_with_its_columns(
    session: SessionContext, table: rs.Table, catalog: rs.Catalog, kind: str
) -> None:
    shown = session.sql(f"SELECT * FROM flights${kind}").to_arrow_table()
    assert shown.to_pylist() == METADATA_TABLES[kind](table).to_pylist()
    seen = METADATA_TABLES[kind](catalog.open_table("db.seen")).to_pylist()
    assert catalog.sql(f"SELECT * FROM db.seen${kind}").to_pylist() == seen
    assert session.sql(f'SELECT * FROM lake.db."seen${kind}"').to_pylist() == seen
    names = [row["column_name"] for row in session.sql(f"DESCRIBE flights${kind}").to_pylist()]
    assert names == shown.column_names
    assert session.table(f"flights${kind}").to_pylist() == shown.to_pylist()


def test_tables_and_metadata_are_of_one_version(
    session: SessionContext, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between the reads of a statement is in neither of them."""
    other = rs.open_table(table.uri)
    history = rs.Table.history

    def overtaken(self: rs.Table, limit: int | None = None) -> Any:
        other.upsert(pa.table({"id": [other.version + 10], "s": ["x"]}))
        return history(self, limit)

    monkeypatch.setattr(rs.Table, "history", overtaken)
    query = (
        "SELECT (SELECT max(snapshot_id) FROM flights$snapshots), "
        "(SELECT max(last_updated_snapshot_id) FROM flights$partitions), count(*) FROM flights"
    )
    before = table.version
    assert rows(session, query) == [(before, before, 3)]
    after = other.version
    assert rows(session, query) == [(after, after, 3 + after - before)]


def test_a_frame_keeps_the_version_of_its_statement(
    session: SessionContext, table: rs.Table
) -> None:
    frame = session.sql("SELECT snapshot_id FROM flights$snapshots")
    table.delete("id = 1")
    assert len(frame.to_pylist()) == 2
    assert len(rows(session, "SELECT snapshot_id FROM flights$snapshots")) == 3


def test_views_and_prepared_statements_read_the_newest_version(
    session: SessionContext, table: rs.Table
) -> None:
    session.sql("CREATE VIEW newest AS SELECT max(snapshot_id) AS v FROM flights$snapshots")
    session.sql("PREPARE newest AS SELECT max(snapshot_id) AS v FROM flights$snapshots")
    table.delete("id = 1")
    assert rows(session, "SELECT v FROM newest") == [(2,)]
    assert rows(session, "EXECUTE newest") == [(2,)]
    assert session.table("newest").to_pylist() == [{"v": 2}]


def test_changes_read_metadata_tables(session: SessionContext, table: rs.Table) -> None:
    insert = "INSERT INTO flights SELECT snapshot_id + 10, operation FROM flights$snapshots"
    assert rows(session, insert) == [(2,)]
    assert rows(session, "SELECT * FROM flights WHERE id > 9") == [(10, "create"), (11, "upsert")]
    delete = "DELETE FROM flights WHERE id IN (SELECT snapshot_id + 10 FROM flights$history)"
    assert rows(session, delete) == [(2,)]
    update = "UPDATE flights SET s = (SELECT max(operation) FROM flights$snapshots) WHERE id = 1"
    assert rows(session, update) == [(1,)]
    assert rows(session, "SELECT s FROM flights WHERE id = 1") == [("upsert",)]
    assert rows(session, "INSERT INTO lake.db.seen SELECT 7 FROM lake.db.seen$partitions") == [(1,)]
    assert rows(session, "SELECT count(*) FROM lake.db.seen") == [(4,)]


def test_metadata_tables_are_not_listed(session: SessionContext) -> None:
    before = rows(session, "SHOW TABLES")
    rows(session, "SELECT * FROM flights$snapshots")
    assert rows(session, "SHOW TABLES") == before
    assert session.catalog().schema().names() == {"flights", "My Flights"}
    assert not any("$" in name for _, _, name, _ in before)


def test_a_table_or_view_with_such_a_name_hides_the_metadata_table(
    session: SessionContext, table: rs.Table
) -> None:
    name = '"flights$history"'
    session.sql(f"CREATE VIEW {name} AS SELECT 7 AS x")
    assert rows(session, f"SELECT * FROM {name}") == [(7,)]
    session.sql(f"DROP VIEW {name}")
    assert len(rows(session, f"SELECT * FROM {name}")) == 2
    session.sql(f"CREATE TABLE {name} AS SELECT 8 AS x")
    assert rows(session, f"SELECT * FROM {name}") == [(8,)]
    session.sql(f"DROP TABLE {name}")
    own = rs.create_table("memory:///hides-a-metadata-table", pa.table({"x": [9]}))
    session.register_table("flights$history", own)
    assert rows(session, f"SELECT * FROM {name}") == [(9,)]
    assert rows(session, f"DELETE FROM {name}") == [(1,)]
    session.deregister_table("flights$history")
    assert len(rows(session, f"SELECT * FROM {name}")) == 2


@pytest.mark.parametrize(
    "text",
    [
        'DELETE FROM "flights$snapshots"',
        "UPDATE flights$snapshots SET operation = 'x'",
        "INSERT INTO flights$files VALUES (1)",
        "TRUNCATE flights$history",
        "DROP TABLE flights$history",
        "DELETE FROM lake.db.seen$snapshots",
        "DROP TABLE lake.db.seen$snapshots",
    ],
)
def test_metadata_tables_are_not_changed(session: SessionContext, text: str) -> None:
    with pytest.raises(UnsupportedOperation, match="only shows what is known"):
        session.sql(text)
    assert rows(session, "SELECT count(*) FROM flights$history") == [(2,)]


def test_names_are_exact_where_the_session_does_not_fold(table: rs.Table) -> None:
    session = SessionContext()
    session.register_table('"Big"', table)
    session.sql("SET datafusion.sql_parser.enable_ident_normalization = false").collect()
    assert len(rows(session, "SELECT * FROM Big$snapshots")) == 2
    with pytest.raises(Exception, match="big"):
        session.sql("SELECT * FROM big$snapshots")


def test_datafusions_own_context_reads_those_of_a_catalog(catalog: rs.Catalog) -> None:
    plain = datafusion.SessionContext()
    plain.register_catalog_provider("lake", catalog.to_datafusion())
    assert rows(plain, "SELECT snapshot_id FROM lake.db.seen$snapshots") == [(0,), (1,), (2,)]


def test_the_catalog_shows_its_information_schema(catalog: rs.Catalog) -> None:
    def of(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in catalog.sql(text).to_pylist()]

    assert of("SELECT table_schema, table_name FROM information_schema.tables") == [("db", "seen")]
    columns = "SELECT column_name, is_nullable FROM information_schema.columns"
    assert of(f"{columns} WHERE table_name = 'seen'") == [("id", "NO")]
    assert of(f"{columns} WHERE table_name = 'other'") == []
    kinds = "SELECT constraint_type FROM rowsieve.information_schema.table_constraints ORDER BY 1"
    assert of(kinds) == [("CHECK",), ("PRIMARY KEY",)]
    with pytest.raises(InvalidInput, match="nothing"):
        catalog.sql("SELECT * FROM information_schema.nothing")


def test_the_information_schema_of_a_session_is_datafusions(session: SessionContext) -> None:
    tables = "SELECT table_catalog, table_name FROM information_schema.tables"
    assert rows(session, f"{tables} WHERE table_schema <> 'information_schema'") == [
        ("datafusion", "My Flights"),
        ("datafusion", "flights"),
        ("lake", "seen"),
    ]
    schemata = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'"
    assert rows(session, schemata) == [("db",)]


def test_a_session_without_one_reads_that_of_the_catalog(catalog: rs.Catalog) -> None:
    session = SessionContext(datafusion.SessionConfig())
    session.register_catalog_provider("lake", catalog.to_datafusion())
    checks = "SELECT constraint_catalog, check_clause FROM lake.information_schema.{}"
    assert rows(session, checks.format("check_constraints")) == [("lake", "id < 1000")]


def test_an_older_namespace_with_that_name_hides_it(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qualified_names, "_RESERVED", "")  # older releases let it be created
    catalog.create_table("information_schema.tables", pa.table({"x": [1]}))
    assert catalog.sql("SELECT x FROM information_schema.tables").to_pylist() == [{"x": 1}]


def test_a_table_that_does_not_exist_has_none(session: SessionContext, catalog: rs.Catalog) -> None:
    with pytest.raises(TableNotFound, match="nosuch"):
        catalog.sql("SELECT * FROM db.nosuch$files")
    with pytest.raises(InvalidInput, match=r"nosuch\$files.*t\$snapshots"):
        session.sql("SELECT * FROM nosuch$files")
    with pytest.raises(InvalidInput, match=r"flights\$nothing' not found; metadata tables of a"):
        session.sql("SELECT * FROM flights$nothing")


def test_an_error_with_a_parameter_does_not_advise_metadata_tables(session: SessionContext) -> None:
    with pytest.raises(InvalidInput, match="zz") as raised:
        session.sql("SELECT zz FROM flights WHERE id = $id", param_values={"id": 1})
    assert "metadata tables" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM nosuch",
        "DELETE FROM nosuch",
        "UPDATE nosuch SET a = 1",
        "INSERT INTO nosuch VALUES (1)",
        "MERGE INTO nosuch USING flights ON nosuch.id = flights.id WHEN MATCHED THEN DELETE",
        "TRUNCATE nosuch",
        "DROP TABLE nosuch",
        "ALTER TABLE nosuch ADD COLUMN x INT",
        "SELECT nosuch FROM flights",
        "nosuch",
    ],
)
def test_errors_about_tables_of_others_are_ours(session: SessionContext, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"(?i)nosuch"):
        session.sql(text)


def test_metadata_tables_of_branches_and_tags(session: SessionContext, table: rs.Table) -> None:
    table.tag("first", version=0)
    branch = table.branch("audit")
    branch.delete("id = 1")
    names = [("audit",), ("first",), ("main",)]
    assert rows(session, "SELECT name FROM flights$refs") == names
    count = "SELECT count(*) FROM flights${} FOR VERSION AS OF '{}'"
    assert rows(session, count.format("files", "first")) == [(1,)]
    assert rows(session, count.format("snapshots", "audit")) == [
        (len(METADATA_TABLES["snapshots"](branch)),)
    ]
    assert rows(session, "SELECT count(*) FROM flights$files") == [(2,)]
