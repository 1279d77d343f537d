"""Namespaces whose tables share one log: by name, in statements, transactions and engines."""

from __future__ import annotations

from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from rowsieve.objects import open_store
from rowsieve.objects.shared.shared_entry import LOG
from rowsieve.providers.datafusion import SessionContext
from tests.faults.interrupts import interrupted
from tests.faults.vocabulary import Fault
from tests.small_tables import fresh_uri, kv, pairs


@pytest.fixture
def catalog() -> rs.Catalog:
    """`shop` shares a log, `db` does not."""
    catalog = rs.Catalog(fresh_uri())
    catalog.create_namespace("shop", log="shared")
    catalog.create_table("shop.a", kv((1, 100)), ["k"])
    catalog.create_table("shop.b", kv((1, 100)), ["k"])
    catalog.create_table("db.own", kv((1, 1)), ["k"])
    return catalog


def test_tables_of_it_are_created_opened_renamed_and_dropped(catalog: rs.Catalog) -> None:
    again = rs.Catalog(catalog.uri)
    assert again.namespaces() == ["db", "shop"]
    assert again.tables() == ["db.own", "shop.a", "shop.b"]
    assert again.tables("shop") == ["shop.a", "shop.b"]
    entries = len(open_store(f"{catalog.uri}/shop").list(LOG))
    assert entries == 3
    table = again.open_table("shop.a")
    table.upsert(kv((2, 2)))
    assert pairs(catalog.open_table("shop.a")) == [(1, 100), (2, 2)]
    assert pairs(catalog.open_table("shop.a", version=0)) == [(1, 100)]
    assert pairs(catalog.open_table("shop.a@v1")) == [(1, 100), (2, 2)]
    assert catalog.uri_of("shop.a") == table.uri
    assert pairs(rs.open_table(table.uri)) == [(1, 100), (2, 2)]
    with pytest.raises(TableExists):
        catalog.create_table("shop.a", kv())
    assert catalog.create_table("shop.a", kv(), if_exists="ignore").version == 1
    catalog.rename_table("shop.a", "shop.c")
    assert again.tables("shop") == ["shop.b", "shop.c"]
    with pytest.raises(TableNotFound):
        again.open_table("shop.a")
    again.drop_table("shop.c")
    again.drop_table("shop.c", if_absent="ignore")
    with pytest.raises(TableNotFound):
        again.drop_table("shop.c", purge=True)
    assert catalog.tables("shop") == ["shop.b"]


def test_branches_and_tags_are_named(catalog: rs.Catalog) -> None:
    catalog.database("shop").tag("q3")
    catalog.open_table("shop.a").upsert(kv((1, 1)))
    assert pairs(catalog.open_table("shop.a@q3")) == [(1, 100)]
    assert pairs(catalog.open_table("shop.a", ref="q3")) == [(1, 100)]
    assert pairs(catalog.open_table("shop.a", version="q3")) == [(1, 100)]
    assert catalog.sql('SELECT v FROM shop."a@q3"').to_pylist() == [{"v": 100}]


def test_properties_of_the_catalog_are_those_of_new_tables(catalog: rs.Catalog) -> None:
    catalog.set_properties({"checkpoint_interval": 7})
    created = catalog.create_table("shop.c", kv(), properties={"isolation": "snapshot"})
    properties = created.detail()["properties"]
    assert (properties["checkpoint_interval"], properties["isolation"]) == ("7", "snapshot")


def test_its_database_has_transactions(catalog: rs.Catalog) -> None:
    database = catalog.database("shop")
    before = database.version
    with database.transaction() as tx:
        tx.table("a").upsert(kv((1, 70)))
        tx.table("b").upsert(kv((1, 130)))
        tx.create_table("notes", kv((1, 0)), ["k"])
    assert database.version == before + 1
    joined = catalog.sql("SELECT a.v + b.v AS v FROM shop.a JOIN shop.b ON a.k = b.k")
    assert joined.to_pylist() == [{"v": 200}]
    assert catalog.tables("shop") == ["shop.a", "shop.b", "shop.notes"]
    with pytest.raises(UnsupportedOperation, match="logs of their own"):
        catalog.database("db")
    with pytest.raises(NamespaceNotFound):
        catalog.database("none")


def test_a_namespace_is_of_one_kind(catalog: rs.Catalog) -> None:
    with pytest.raises(NamespaceExists, match="with a shared log"):
        catalog.create_namespace("shop")
    catalog.create_namespace("shop", if_exists="ignore")
    with pytest.raises(NamespaceExists, match="with a shared log"):
        catalog.create_namespace("shop", if_exists="ignore", log="own")
    with pytest.raises(NamespaceExists, match="logs of their own"):
        catalog.create_namespace("db", log="shared", if_exists="ignore")
    catalog.create_namespace("shop", log="shared", if_exists="ignore")
    with pytest.raises(InvalidInput):
        catalog.create_namespace("x", log="other")  # type: ignore[arg-type]
    database = rs.Database(f"{catalog.uri}/there")
    database.create_table("t", kv((1, 1)))
    catalog.create_namespace("there", log="shared")
    assert pairs(catalog.open_table("there.t")) == [(1, 1)]


def test_a_second_namespace_of_this_kind_leaves_the_first_as_it_is(catalog: rs.Catalog) -> None:
    catalog.create_namespace("more", log="shared")
    assert catalog.database("shop").tables() == ["a", "b"]
    assert catalog.database("more").tables() == []
    with pytest.raises(NamespaceNotFound):
        catalog.database("none")
    with pytest.raises(UnsupportedOperation, match="logs of their own"):
        catalog.database("db")


def test_a_branch_is_named_once(catalog: rs.Catalog) -> None:
    catalog.open_table("db.own").branch("audit")
    assert catalog.open_table("db.own@audit").count() == 1
    assert catalog.open_table("db.own", ref="audit").count() == 1
    with pytest.raises(InvalidInput, match="give no ref="):
        catalog.open_table("db.own@audit", ref="audit")


def test_a_name_of_a_table_in_its_log_is_changed_in_one_commit(catalog: rs.Catalog) -> None:
    before = catalog.database("shop").version
    uri = catalog.uri_of("shop.a")
    catalog.rename_table("shop.a", "shop.c")
    assert catalog.database("shop").version == before + 1
    assert catalog.uri_of("shop.c") == uri


@pytest.mark.parametrize("purge", [False, True])
def test_it_is_dropped_with_its_tables(catalog: rs.Catalog, purge: bool) -> None:
    with pytest.raises(UnsupportedOperation, match="shop has tables"):
        catalog.drop_namespace("shop")
    catalog.drop_namespace("shop", cascade=True, purge=purge)
    assert catalog.namespaces() == ["db"]
    with pytest.raises(TableNotFound):
        catalog.open_table("shop.a")
    catalog.create_namespace("shop", log="shared")
    assert catalog.tables("shop") == []
    catalog.drop_namespace("shop")
    catalog.create_table("shop.a", kv((7, 7)))
    assert pairs(catalog.open_table("shop.a")) == [(7, 7)]
    assert catalog.uri_of("shop.a").startswith(f"{catalog.uri}/shop/a.")


@pytest.mark.parametrize("others", [False, True])
def test_it_is_not_dropped_before_tables_that_only_its_database_names(
    catalog: rs.Catalog, others: bool
) -> None:
    database = catalog.database("shop")
    database.create_table("old.t", kv((1, 1)), ["k"])
    if not others:
        catalog.drop_table("shop.a")
        catalog.drop_table("shop.b")
    with pytest.raises(UnsupportedOperation, match="shop has tables"):
        catalog.drop_namespace("shop")
    assert "old.t" in database.tables()
    catalog.drop_namespace("shop", cascade=True)
    assert (catalog.namespaces(), database.tables()) == (["db"], [])


def test_statements_name_it(catalog: rs.Catalog) -> None:
    catalog.sql("CREATE SCHEMA IF NOT EXISTS more WITH (log = 'shared')")
    catalog.sql("CREATE TABLE more.t (k bigint PRIMARY KEY, v bigint)")
    assert catalog.database("more").tables() == ["t"]
    assert catalog.sql("SHOW TABLES IN more").to_pylist() == [{"table": "more.t"}]
    catalog.sql("ALTER TABLE more.t RENAME TO u")
    session = SessionContext()
    session.register_catalog_provider("lake", catalog.to_datafusion())
    session.sql("INSERT INTO lake.more.u VALUES (1, 2)").collect()
    assert session.sql("SELECT v FROM lake.more.u").to_pylist() == [{"v": 2}]
    catalog.call("CALL system.compact('more', 'u')")
    catalog.sql("DROP TABLE more.u")
    assert catalog.tables("more") == []


def test_names_take_tables_into_their_log(catalog: rs.Catalog) -> None:
    with pytest.raises(TableExists):
        catalog.rename_table("db.own", "shop.a")
    catalog.rename_table("db.own", "shop.own")
    catalog.rename_table("shop.a", "db.a")
    assert catalog.tables() == ["db.a", "shop.b", "shop.own"]
    catalog.open_table("shop.own").upsert(kv((2, 2)))
    catalog.open_table("db.a").upsert(kv((2, 2)))
    assert pairs(catalog.open_table("shop.own")) == [(1, 1), (2, 2)]
    assert pairs(catalog.open_table("db.a")) == [(1, 100), (2, 2)]
    assert catalog.database("shop").tables() == ["b", "own"]
    elsewhere = rs.create_table(fresh_uri(), kv((7, 7)), ["k"])
    catalog.call(f"CALL system.register_table('shop', 'c', '{elsewhere.uri}')")
    catalog.sql("ALTER TABLE shop.c RENAME TO db.c")
    assert pairs(catalog.open_table("db.c")) == [(7, 7)]
    with pytest.raises(UnsupportedOperation, match="rename it"):
        catalog.call("CALL system.move_out('shop', 'b')")


def test_a_table_back_in_its_place_is_the_catalogs_to_purge(catalog: rs.Catalog) -> None:
    catalog.rename_table("db.own", "shop.own")
    catalog.rename_table("shop.own", "db.own")
    uri = catalog.uri_of("db.own")
    assert pairs(catalog.open_table("db.own")) == [(1, 1)]
    catalog.drop_table("db.own", purge=True)
    assert "db.own" not in catalog.tables()
    with pytest.raises(TableNotFound):
        rs.open_table(uri)


def test_an_interrupted_renaming_into_their_log_is_repeated(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interrupted(catalog._log, "change"):
        catalog.rename_table("db.own", "shop.own")
    assert {"db.own", "shop.own"} <= set(catalog.tables())
    with pytest.raises(TableExists):
        catalog.rename_table("db.own", "shop.a")
    catalog.rename_table("db.own", "shop.own")
    assert catalog.tables() == ["shop.a", "shop.b", "shop.own"]
    assert pairs(catalog.open_table("shop.own")) == [(1, 1)]


@pytest.mark.parametrize("has_left", [False, True])
@pytest.mark.parametrize("name", ["shop.a", "shop.own"], ids=["born there", "moved in"])
def test_an_interrupted_renaming_out_of_their_log_loses_no_name(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch, name: str, *, has_left: bool
) -> None:
    catalog.rename_table("db.own", "shop.own")
    rows = pairs(catalog.open_table(name))
    with interrupted(
        rs.Database, "move_out", Fault.INTERRUPTED_AFTER if has_left else Fault.INTERRUPTED
    ):
        catalog.rename_table(name, "db.new")
    names = {name, "db.new"} & set(catalog.tables())
    assert names == ({"db.new"} if has_left else {name, "db.new"})
    for each in names:
        assert pairs(catalog.open_table(each)) == rows
    if not has_left:
        with pytest.raises(TableExists):
            catalog.rename_table("shop.b", "db.new")
        catalog.rename_table(name, "db.new")
    catalog.open_table("db.new").upsert(kv((5, 5)))
    assert pairs(catalog.open_table("db.new")) == [*rows, (5, 5)]
    assert name not in catalog.tables()


@pytest.mark.parametrize("step", ["move_out", "has left", "move_in", "has come"])
def test_an_interrupted_renaming_into_another_shared_log_loses_no_name(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    catalog.create_namespace("other", log="shared")
    name = "move_out" if step in ("move_out", "has left") else "move_in"
    fault = Fault.INTERRUPTED_AFTER if step.startswith("has") else Fault.INTERRUPTED
    with interrupted(rs.Database, name, fault):
        catalog.rename_table("shop.a", "other.a")
    for again in (catalog, rs.Catalog(catalog.uri)):
        assert pairs(again.open_table("shop.a")) == [(1, 100)]
        assert rs.open_table(again.uri_of("shop.a")).count() == 1
        assert again.sql("SELECT v FROM shop.a").to_pylist() == [{"v": 100}]
        assert "shop.a" in again.tables()
    catalog.rename_table("shop.a", "other.a")
    catalog.open_table("other.a").upsert(kv((2, 2)))
    assert pairs(catalog.open_table("other.a")) == [(1, 100), (2, 2)]
    assert catalog.tables() == ["db.own", "other.a", "shop.b"]
    catalog.create_table("shop.a", kv((9, 9)), ["k"])
    assert pairs(catalog.open_table("shop.a")) == [(9, 9)]


def test_a_table_that_cannot_leave_their_log_has_its_old_name_only(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise UnsupportedOperation("no")

    monkeypatch.setattr(rs.Database, "move_out", refused)
    with pytest.raises(UnsupportedOperation, match="no"):
        catalog.rename_table("shop.a", "db.new")
    assert catalog.tables() == ["db.own", "shop.a", "shop.b"]


def test_a_name_that_is_taken_in_another_log_keeps_the_table_where_it_is(
    catalog: rs.Catalog,
) -> None:
    catalog.create_namespace("other", log="shared")
    catalog.create_table("other.a", kv((5, 5)), ["k"])
    with pytest.raises(TableExists):
        catalog.rename_table("shop.a", "other.a")
    assert catalog.database("shop").tables() == ["a", "b"]
    catalog.rename_table("shop.a", "other.b")
    assert pairs(catalog.open_table("other.b")) == [(1, 100)]


def test_older_versions_refuse_the_catalog(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowsieve.catalog.catalog_log._PROTOCOL", 2)
    with pytest.raises(UnsupportedProtocol, match="has protocol 3"):
        rs.Catalog(catalog.uri).tables()


def _moved(database: rs.Database, by: int) -> None:
    with database.transaction() as tx:
        for name, amount in (("a", -by), ("b", by)):
            tx.table(name).update({"v": f"v + {amount}"})


@pytest.mark.parametrize("kind", ["database", "catalog"])
def test_a_statement_reads_one_version_of_all_tables(  # invariant 40
    catalog: rs.Catalog, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = catalog.database("shop")
    opened = rs.Database._opened_at

    def transferred(self: rs.Database, name: str, *args: Any, **options: Any) -> rs.Table:
        table = opened(self, name, *args, **options)
        monkeypatch.setattr(rs.Database, "_opened_at", opened)
        _moved(database, 30)
        return table

    monkeypatch.setattr(rs.Database, "_opened_at", transferred)
    tables: Any = database if kind == "database" else catalog
    space = "" if kind == "database" else "shop."
    total = f"SELECT (SELECT sum(v) FROM {space}a) + (SELECT sum(v) FROM {space}b) AS v"
    assert tables.sql(total).to_pylist() == [{"v": 200}]
    assert pairs(database.open_table("a")) == [(1, 70)]
