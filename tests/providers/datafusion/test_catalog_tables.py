"""All tables of a catalog in DataFusion: names, versions, and one version for each statement."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    EvaluationError,
    InvalidInput,
    NotFound,
    StoreError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.catalog_tables import CatalogTables
from rowsieve.providers.datafusion.query_plan import QueryPlan

PATIENCE_S = 120  # only a failing test waits this long

IDS = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", IDS, ["id"])
    for i in range(3):
        table.upsert(pa.table({"id": [i]}))
    catalog.create_table("other.Mixed", pa.table({"id": [7, 8]}))
    return catalog


def rows(table: pa.Table) -> list[list[Any]]:
    return sorted(list(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT id FROM db.t", [[0], [1], [2]]),
        ("SELECT t.id FROM db.t FOR VERSION AS OF 2 WHERE t.id > 0", [[1]]),
        ('SELECT id FROM db."t@v1"', [[0]]),
        (
            'SELECT a.id, b.id AS other FROM db.t AS a JOIN other."Mixed" b ON b.id = a.id + 6',
            [[1, 7], [2, 8]],
        ),
        (
            "SELECT n.id FROM db.t n LEFT ANTI JOIN db.t FOR VERSION AS OF 2 o ON o.id = n.id",
            [[2]],
        ),
        ("CALL system.compact('db', 't')", [[4, 3, 0, 1, 3]]),
    ],
)
def test_queries_name_tables_and_versions(
    catalog: rs.Catalog, statement: str, expected: list[list[Any]]
) -> None:
    assert rows(catalog.sql(statement)) == expected


@pytest.mark.parametrize(
    ("statement", "error", "reason"),
    [
        ("SELECT * FROM db.nope", TableNotFound, "nope"),
        ("SELECT * FROM none.t", TableNotFound, "no table at .*none/t"),
        ("SELECT * FROM absent", TableNotFound, "no table at .*default/absent"),
        ("SELECT * FROM other.none.t", InvalidInput, "not found"),
        ("SELECT * FROM db.t FOR VERSION AS OF 9", NotFound, "version 9"),
        ("SELECT nope FROM db.t", InvalidInput, "nope"),
        ("SELEC", InvalidInput, "sql:"),
        ("CREATE VIEW db.v AS SELECT 1", UnsupportedOperation, "does not run CREATE VIEW"),
        ("PREPARE p AS SELECT 1", UnsupportedOperation, "does not run PREPARE"),
        ("INSERT INTO db.nope VALUES (1)", TableNotFound, "nope"),
        ("DELETE FROM absent", TableNotFound, "no table at .*default/absent"),
        ("UPDATE db.t SET nope = 1", InvalidInput, "nope"),
        ("CREATE TABLE db.t AS SELECT 1 AS id", TableExists, "db.t"),
        ("CREATE EXTERNAL TABLE db.x STORED AS CSV LOCATION '/x.csv'", TableNotFound, "db/x"),
        ("COPY db.t TO '/nowhere/x.csv'", InvalidInput, "DML"),
    ],
)
def test_wrong_queries_are_refused(
    catalog: rs.Catalog, statement: str, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason) as failure:
        catalog.sql(statement)
    assert failure.value.__cause__ is not failure.value
    assert catalog.tables() == ["db.t", "other.Mixed"]


@pytest.mark.parametrize("kind", ["catalog", "database"])
def test_statements_that_change_rows_are_one_commit(tmp_path: Path, kind: str) -> None:
    names = (rs.Catalog if kind == "catalog" else rs.Database)(tmp_path / "names")
    table = names.create_table("db.t", pa.table({"id": [1, 2], "v": [1, 2]}), ["id"])
    for statement, count, expected in (
        ("INSERT INTO db.t VALUES (3, 3)", 1, [[1, 1], [2, 2], [3, 3]]),
        ("INSERT INTO db.t SELECT id + $n, v FROM db.t", 3, 6),
        ("UPDATE db.t SET v = v + $n WHERE id = 2", 1, 6),
        ("DELETE FROM db.t WHERE id > $n", 3, [[1, 1], [2, 12], [3, 3]]),
        (
            "MERGE INTO db.t USING (SELECT 1 AS id) s ON s.id = t.id WHEN MATCHED THEN DELETE",
            1,
            [[2, 12], [3, 3]],
        ),
        ("TRUNCATE TABLE db.t", 2, []),
    ):
        before = names.open_table("db.t").version
        params = {"n": 10 if "+" in statement else 3} if "$n" in statement else None
        assert names.sql(statement, params=params).to_pylist() == [{"count": count}]
        assert names.open_table("db.t").version == before + 1
        left = rows(names.open_table("db.t").scan().to_arrow())
        assert left == expected if isinstance(expected, list) else len(left) == expected
    assert names.sql("CREATE TABLE db.u AS SELECT 1 AS x").to_pylist() == [{"count": 1}]
    assert names.sql("SELECT x FROM db.u").to_pylist() == [{"x": 1}]
    assert table.uri == names.open_table("db.t").uri


def test_error_of_a_read_is_ours(catalog: rs.Catalog, tmp_path: Path) -> None:
    for part in (tmp_path / "lake/db/t/data").iterdir():
        part.write_bytes(b"damaged")
    with pytest.raises((EvaluationError, StoreError, rs.errors.CorruptData)):
        catalog.sql("SELECT * FROM db.t")


def test_provider_keeps_its_versions_until_it_is_refreshed(catalog: rs.Catalog) -> None:  # rule 23
    provider = catalog.to_datafusion()
    context = datafusion.SessionContext()
    context.register_catalog_provider("lake", provider)

    def counted(name: str) -> int:
        found = context.sql(f"SELECT count(*) FROM {name}").to_arrow_table()
        return int(found.column(0)[0].as_py())

    assert counted("lake.db.t") == 3
    catalog.open_table("db.t").upsert(pa.table({"id": [50]}))
    assert counted("lake.db.t") == 3
    assert counted('lake.db."t@v2"') == 2
    provider.refresh()
    assert counted("lake.db.t") == 4
    assert provider.schema_names() == {"db", "other"}
    assert provider.schema("db").table_names() == {"t"}
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'db'"
    context.sql("SET datafusion.catalog.information_schema = true")
    assert context.sql(listed).to_pylist() == [{"table_name": "t"}]
    assert provider.schema("none") is None


class HeldBack:
    """A catalog that opens one of its tables only after `go` is set."""

    def __init__(self, catalog: rs.Catalog, slow: str) -> None:
        self._catalog, self._slow = catalog, slow
        self.asked, self.go = threading.Event(), threading.Event()

    def open_table(self, name: str) -> Any:
        """Open a table, once it may be opened."""
        if name == self._slow:
            self.asked.set()
            assert self.go.wait(PATIENCE_S)
        return self._catalog.open_table(name)

    def opener(self) -> Any:
        """Return what opens tables."""
        return self.open_table


def test_a_table_that_opens_slowly_holds_up_no_other(catalog: rs.Catalog) -> None:
    """Invariant 21; and a refresh while a table opens leaves its version to earlier statements."""
    held = HeldBack(catalog, "db.t")
    tables = CatalogTables(held)
    slow: list[Any] = []
    thread = threading.Thread(target=lambda: slow.append(tables.registered("db.t")), daemon=True)
    thread.start()
    assert held.asked.wait(PATIENCE_S)
    fast: list[Any] = []
    other = threading.Thread(target=lambda: fast.append(tables.registered("other.Mixed")))
    other.daemon = True
    other.start()
    other.join(PATIENCE_S)
    found = len(fast)
    tables.refresh()
    held.go.set()
    thread.join(PATIENCE_S)
    assert found == 1
    assert tables.registered("db.t") is not slow[0]
    assert tables.registered("db.t") is tables.registered("db.t")


def test_conditions_and_subqueries_choose_parts_of_tables_of_a_catalog(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("parts")
    for name in ("a", "b"):
        table = catalog.create_table(f"parts.{name}", pa.table({"id": range(100)}), key=["id"])
        table.upsert(pa.table({"id": range(100, 200)}))
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    read: list[int] = []
    chosen_parts = QueryPlan.chosen_parts

    def noted(self: QueryPlan, *given: Any) -> dict[str, frozenset[str]]:
        chosen = chosen_parts(self, *given)
        read.extend(len(parts) for parts in chosen.values())
        return chosen

    monkeypatch.setattr(QueryPlan, "chosen_parts", noted)

    def ids(condition: str) -> list[int]:
        read.clear()
        query = f"SELECT id FROM lake.parts.a WHERE {condition}"
        return sorted(row["id"] for row in context.sql(query).to_pylist())

    assert ids("CAST(id AS text) LIKE '19%' AND id * 1 > 150") == list(range(190, 200))
    assert read == [1]
    assert ids("id IN (SELECT id FROM lake.parts.b WHERE id * 1 < 3)") == [0, 1, 2]
    assert read == [1, 1]
    assert ids("id > (SELECT max(id) - 2 FROM lake.parts.b)") == [198, 199]
    assert read == [1]
    assert ids("EXISTS (SELECT 1 FROM lake.parts.b b WHERE b.id = a.id + 198)") == [0, 1]
    version = "SELECT count(*) AS n FROM lake.parts.a FOR VERSION AS OF 0 WHERE id * 1 >= 50"
    assert context.sql(version).to_pylist() == [{"n": 50}]


def test_a_statement_reads_one_version_of_a_table_by_two_names(catalog: rs.Catalog) -> None:
    catalog.create_namespace("two")
    table = catalog.create_table("two.t", pa.table({"id": range(100)}), key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    context.register_catalog_provider("lake", catalog.to_datafusion())
    for start in (100, 200):
        rs.open_table(table.uri).upsert(pa.table({"id": range(start, start + 100)}))
        both = "SELECT count(*) AS n FROM t JOIN lake.two.t u ON t.id = u.id WHERE t.id * 1 >= 50"
        assert context.sql(both).to_pylist() == [{"n": start + 50}]
