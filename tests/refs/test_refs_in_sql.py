"""Branches and tags by name in SQL: `flights@audit`, and FOR VERSION AS OF 'tag'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rowsieve
from rowsieve.catalog import Catalog
from rowsieve.errors import InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from rowsieve.statements.versions import with_named_versions
from tests.small_tables import keyed, kv, pairs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t@audit", 'SELECT * FROM "t@audit" AS "t"'),
        ("SELECT * FROM db.T@audit x", 'SELECT * FROM db."t@audit" x'),
        ('SELECT * FROM "T"@audit, u', 'SELECT * FROM "T@audit" AS "T", u'),
        ('SELECT * FROM t@"2026-Q3"', 'SELECT * FROM "t@2026-Q3" AS "t"'),
        ("SELECT * FROM t FOR VERSION AS OF '2026-Q3'", 'SELECT * FROM "t@2026-Q3" AS "t"'),
        ("SELECT * FROM t FOR VERSION AS OF 12", 'SELECT * FROM "t@v12" AS "t"'),
        ("INSERT INTO db.t@audit VALUES (1)", 'INSERT INTO db."t@audit" VALUES (1)'),
        ("SELECT 'a@b', \"c@d\" FROM t -- x@y", "SELECT 'a@b', \"c@d\" FROM t -- x@y"),
        ("SELECT a @ b FROM t", "SELECT a @ b FROM t"),
        ("EXPLAIN SELECT * FROM t@q", 'EXPLAIN SELECT * FROM "t@q" AS "t"'),
    ],
)
def test_names_of_refs_become_names_of_tables(text: str, expected: str) -> None:
    assert with_named_versions(text) == expected


def rows(frame: Any) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in frame.to_arrow_table().to_pylist())


def lake(path: Path) -> Catalog:
    catalog = Catalog(path / "lake")
    table = catalog.create_table("db.flights", kv((1, 1), (2, 2)), key=["k"])
    table.tag("2026-Q3")
    table.branch("audit").upsert(kv((2, 20), (3, 30)))
    table.upsert(kv((1, 10)))
    return catalog


def test_a_catalog_serves_refs(tmp_path: Path) -> None:
    catalog = lake(tmp_path)
    branch = [(1, 1), (2, 20), (3, 30)]
    assert pairs(catalog.open_table("db.flights@audit")) == branch
    assert pairs(catalog.open_table("db.flights", ref="audit")) == branch
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    for text in (
        "SELECT * FROM lake.db.flights@audit",
        'SELECT flights.* FROM lake.db."flights@audit" AS flights',
        "SELECT * FROM lake.db.flights FOR VERSION AS OF 'audit' WHERE flights.k > 0",
    ):
        assert rows(context.sql(text)) == branch
    joined = "SELECT b.k, b.v FROM lake.db.flights@audit b JOIN lake.db.flights t ON b.k = t.k"
    assert rows(context.sql(joined)) == [(1, 1), (2, 20)]
    assert rows(context.sql('SELECT * FROM lake.db.flights@"2026-Q3"')) == [(1, 1), (2, 2)]
    text = "SELECT * FROM db.flights FOR VERSION AS OF '2026-Q3'"
    assert sorted(row["k"] for row in catalog.sql(text).to_pylist()) == [1, 2]
    with pytest.raises(RowsieveError, match="has no branch or tag 'audti'"):
        catalog.open_table("db.flights@audti")
    with pytest.raises(InvalidInput, match="give no ref="):
        catalog.open_table("db.flights@audit", ref="audit")


def test_statements_change_a_branch_and_never_a_tag(tmp_path: Path) -> None:
    catalog = lake(tmp_path)
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    context.sql("INSERT INTO lake.db.flights@audit VALUES (7, 70)")
    context.sql("UPDATE lake.db.flights@audit SET v = v + 1 WHERE k = 7")
    context.sql("DELETE FROM lake.db.flights@audit WHERE k = 1")
    assert rows(context.sql("SELECT * FROM lake.db.flights@audit")) == [(2, 20), (3, 30), (7, 71)]
    assert rows(context.sql("SELECT * FROM lake.db.flights")) == [(1, 10), (2, 2)]
    with pytest.raises(UnsupportedOperation, match="is a tag"):
        context.sql('DELETE FROM lake.db.flights@"2026-Q3" WHERE k = 1')


def test_statements_change_a_branch_of_a_registered_table_and_never_a_tag() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    table.tag("q")
    branch = table.branch("audit")
    context = SessionContext()
    context.register_table("t", table)
    context.sql("INSERT INTO t@audit VALUES (7, 70)")
    context.sql("INSERT INTO t@audit VALUES (7, 1) ON CONFLICT (k) DO UPDATE SET v = excluded.v")
    context.sql('UPDATE "t@audit" SET v = v + 1 WHERE k = 7')
    context.sql("DELETE FROM t@audit AS x WHERE x.k = 1")
    context.sql(
        "MERGE INTO t@audit AS a USING t ON a.k = t.k WHEN MATCHED THEN UPDATE SET v = t.v * 10"
    )
    assert pairs(branch) == [(2, 20), (7, 2)]
    assert rows(context.sql("SELECT * FROM t@audit")) == [(2, 20), (7, 2)]
    assert pairs(table) == [(1, 1), (2, 2)]
    with pytest.raises(UnsupportedOperation, match="is a tag"):
        context.sql("DELETE FROM t@q WHERE k = 1")


def test_refs_of_a_table_that_is_registered_in_a_session() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    table.tag("q")
    branch = table.branch("audit")
    branch.upsert(kv((2, 20)))
    context = SessionContext()
    context.register_table("flights", table)
    assert rows(context.sql("SELECT * FROM flights@audit")) == [(1, 1), (2, 20)]
    branch.upsert(kv((3, 30)))
    assert rows(context.sql("SELECT * FROM flights@audit WHERE v >= 20")) == [(2, 20), (3, 30)]
    assert rows(context.sql("SELECT * FROM flights FOR VERSION AS OF 'q'")) == [(1, 1), (2, 2)]
    assert rows(context.sql("SELECT * FROM flights")) == [(1, 1), (2, 2)]
    assert not context.table_exist("flights@audit")
    with pytest.raises(Exception, match="flights@gone"):
        context.sql("SELECT * FROM flights@gone").collect()


def test_a_branch_is_registered_like_any_table() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    context = SessionContext()
    context.register_table("audit", table.branch("audit"))
    context.sql("INSERT INTO audit VALUES (3, 3)")
    assert rows(context.sql("SELECT * FROM audit WHERE k > 1")) == [(2, 2), (3, 3)]
    assert pairs(table) == [(1, 1), (2, 2)]
    assert pairs(rowsieve.open_table(table.uri, ref="audit")) == [(1, 1), (2, 2), (3, 3)]
