"""Namespaces: created, dropped alone or with their tables, beside others who create tables."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.catalog import named_tables
from rowsieve.errors import (
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    RowsieveError,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.providers.datafusion import SessionContext
from tests.profiles import IS_DEEP
from tests.small_tables import fresh_uri

ONE = pa.table({"id": [1]})


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return rs.Catalog(tmp_path / "lake")


@pytest.mark.parametrize("name", ["information_schema", "Information_Schema"])
def test_a_namespace_never_hides_the_list_of_an_engine(catalog: rs.Catalog, name: str) -> None:
    table = catalog.create_table("db.t", ONE)
    for call in (
        lambda: catalog.create_namespace(name),
        lambda: catalog.create_table(f"{name}.t", ONE),
        lambda: catalog.register_table(f"{name}.t", table.uri),
        lambda: catalog.rename_table("db.t", f"{name}.t"),
    ):
        with pytest.raises(InvalidInput, match="cannot name a namespace"):
            call()
    assert catalog.tables() == ["db.t"]


def test_a_created_namespace_is_listed_until_it_is_dropped(catalog: rs.Catalog) -> None:
    catalog.create_namespace("db")
    assert rs.Catalog(catalog.uri).namespaces() == ["db"]
    with pytest.raises(NamespaceExists, match="namespace db exists already"):
        catalog.create_namespace("db")
    version = catalog._log.read().version
    catalog.create_namespace("db", if_exists="ignore")
    assert catalog._log.read().version == version
    catalog.drop_namespace("db")
    assert catalog.namespaces() == []
    with pytest.raises(NamespaceNotFound, match="no namespace db"):
        catalog.drop_namespace("db")
    catalog.drop_namespace("db", if_absent="ignore")
    catalog.create_namespace("db")
    assert catalog.namespaces() == ["db"]
    with pytest.raises(InvalidInput, match="not a name of a namespace"):
        catalog.create_namespace("a/b")


def test_a_namespace_with_tables_is_dropped_by_cascade_alone(
    catalog: rs.Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("db.t", ONE, ["id"])
    catalog.register_table("db.foreign", rs.create_table(tmp_path / "foreign", ONE).uri)
    kept = catalog.create_table("other.t", ONE)
    with pytest.raises(NamespaceExists):
        catalog.create_namespace("db")  # the table has created it
    with pytest.raises(UnsupportedOperation, match=r"has tables \(2, the first is db\.foreign"):
        catalog.drop_namespace("db")
    catalog.drop_namespace("db", cascade=True)
    assert (catalog.namespaces(), catalog.tables()) == (["other"], ["other.t"])
    assert (table.count(), kept.count()) == (1, 1)  # files stay
    with pytest.raises(TableNotFound, match="dropped or renamed"):
        catalog.open_table("db.t")
    catalog.create_namespace("db")
    assert catalog.tables("db") == []
    new = catalog.create_table("db.t", pa.table({"id": [1, 2]}))
    assert catalog.open_table("db.t").count() == new.count() == 2
    assert table.count() == 1


def test_purge_deletes_the_tables_or_refuses_before_the_first(
    catalog: rs.Catalog, tmp_path: Path
) -> None:
    catalog.create_table("db.a", ONE)
    foreign = rs.create_table(tmp_path / "foreign", ONE)
    catalog.register_table("db.foreign", foreign.uri)
    with pytest.raises(UnsupportedOperation, match="was registered"):
        catalog.drop_namespace("db", purge=True)
    assert catalog.open_table("db.a").count() == 1
    catalog.drop_table("db.foreign")
    catalog.drop_namespace("db", purge=True)
    assert catalog.namespaces() == []
    assert [path for path in (tmp_path / "lake/db").rglob("*") if path.is_file()] == []
    assert foreign.count() == 1


def test_a_purge_passes_over_tables_that_others_drop_meanwhile(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        catalog.create_table(f"db.{name}", ONE)
    other = rs.Catalog(catalog.uri)
    purge = rs.Catalog._purge

    def beside(self: rs.Catalog, name: Any) -> None:
        if name.plain == "db.a":
            other.drop_table("db.b", purge=True)
            other.rename_table("db.c", "kept.c")
        purge(self, name)

    monkeypatch.setattr(rs.Catalog, "_purge", beside)
    catalog.drop_namespace("db", purge=True)
    assert catalog.tables() == ["kept.c"]
    assert catalog.open_table("kept.c").count() == 1


def test_folders_of_a_dropped_namespace_have_no_names(catalog: rs.Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("db")
    catalog.drop_namespace("db")
    beside = rs.create_table(tmp_path / "lake/db/t", ONE)  # without the catalog
    assert (catalog.tables(), catalog.tables("db"), catalog.namespaces()) == ([], [], [])
    for call in (catalog.open_table, catalog.drop_table, catalog.uri_of):
        with pytest.raises(TableNotFound):
            call("db.t")
    catalog.create_table("db.t", pa.table({"id": [1, 2]}))  # brings the namespace back
    assert (catalog.tables(), catalog.namespaces()) == (["db.t"], ["db"])
    assert (catalog.open_table("db.t").count(), beside.count()) == (2, 1)


def test_a_table_brings_back_its_dropped_namespace_with_all_folders(
    catalog: rs.Catalog, tmp_path: Path
) -> None:
    catalog.create_namespace("db")
    catalog.drop_namespace("db")
    rs.create_table(tmp_path / "lake/db/beside", ONE)  # without the catalog
    catalog.create_table("db.t", ONE)
    assert catalog.tables() == ["db.beside", "db.t"]
    assert catalog.open_table("db.beside").count() == 1
    catalog.drop_table("db.t")
    assert (catalog.tables(), catalog.namespaces()) == (["db.beside"], ["db"])


def test_a_name_that_moves_into_a_dropped_namespace_brings_it_back(catalog: rs.Catalog) -> None:
    catalog.create_table("a.t", ONE)
    catalog.create_namespace("b")
    catalog.drop_namespace("b")
    catalog.rename_table("a.t", "b.t")
    assert catalog.tables() == ["b.t"]
    assert catalog.namespaces() == ["a", "b"]  # the folder of `a` is still there
    catalog.drop_namespace("a")
    assert catalog.open_table("b.t").count() == 1
    assert catalog.namespaces() == ["b"]


class Meanwhile:
    """Runs a call before the change at one place in the log, or before the files of a table."""

    def __init__(self, catalog: rs.Catalog, place: int, call: Callable[[], object]) -> None:
        self._catalog, self._left, self._call = catalog, place, call
        self.result: object = None
        self._change = catalog._log.change

    def change(self, operation: str, change: Callable[[Any], Any]) -> Any:
        """The log's own method; the call runs before it, or after the change is computed."""

        def with_call(now: Any) -> Any:
            found = change(now)
            self.step()
            return found

        self.step()
        found = self._change(operation, with_call)
        self.step()
        return found

    def step(self) -> None:
        """Run the call if its time has come."""
        self._left -= 1
        if self._left == 0:
            try:
                self.result = self._call()
            except RowsieveError as error:
                self.result = error


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("was_dropped", [False, True])
@pytest.mark.parametrize("how", [{}, {"cascade": True}, {"purge": True}])
def test_a_drop_meanwhile_comes_before_a_creation_or_after_it(
    monkeypatch: pytest.MonkeyPatch, place: int, how: dict[str, Any], *, was_dropped: bool
) -> None:
    creator, other = (rs.Catalog(uri) for uri in [fresh_uri()] * 2)
    creator.create_namespace("db")
    if was_dropped:
        creator.create_table("db.t", ONE)
        creator.drop_table("db.t")
    meanwhile = Meanwhile(creator, place + 1, lambda: other.drop_namespace("db", **how))

    def create(*args: Any, **kwargs: Any) -> rs.Table:
        meanwhile.step()  # the name was looked up, and no file is there
        return rs.create_table(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(creator._log, "change", meanwhile.change)
        patch.setattr(named_tables, "create_table", create)
        creator.create_table("db.t", pa.table({"id": [1, 2]}))
    is_refused = isinstance(meanwhile.result, UnsupportedOperation)
    assert is_refused or meanwhile.result is None
    tables = other.tables()
    if tables:
        assert other.namespaces() == ["db"]
        assert other.open_table("db.t").count() == 2
    else:
        assert not is_refused
        assert other.namespaces() == []
    if not how or place == 0:  # either refused, or before the creation
        assert tables == ["db.t"]


@pytest.mark.parametrize("place", range(1, 4))
@pytest.mark.parametrize("cascade", [False, True])
def test_a_creation_meanwhile_is_refused_dropped_or_kept_by_a_drop(
    monkeypatch: pytest.MonkeyPatch, place: int, *, cascade: bool
) -> None:
    dropper, other = (rs.Catalog(uri) for uri in [fresh_uri()] * 2)
    dropper.create_namespace("db")
    meanwhile = Meanwhile(dropper, place, lambda: other.create_table("db.t", ONE))
    failure = None
    with monkeypatch.context() as patch:
        patch.setattr(dropper._log, "change", meanwhile.change)
        try:
            dropper.drop_namespace("db", cascade=cascade)
        except UnsupportedOperation as error:
            failure = error
    assert isinstance(meanwhile.result, rs.Table)
    is_kept = other.tables() == ["db.t"]
    assert is_kept == (failure is not None or place == 3)
    assert other.namespaces() == (["db"] if is_kept else [])
    if failure is not None:
        assert not cascade


@pytest.mark.parametrize("attempt", range(20 if IS_DEEP else 2))
def test_no_table_of_many_creators_is_lost_beside_drops(attempt: int) -> None:
    del attempt
    uri = fresh_uri()

    def create(number: int) -> str:
        rs.Catalog(uri).create_table(f"db.t{number}", ONE)
        return f"db.t{number}"

    def drop(number: int) -> None:
        del number
        for _ in range(5):
            try:
                rs.Catalog(uri).drop_namespace("db")
            except (NamespaceNotFound, UnsupportedOperation):
                continue

    with ThreadPoolExecutor(4) as pool:
        drops = [pool.submit(drop, number) for number in range(2)]
        names = list(pool.map(create, range(6)))
        for each in drops:
            each.result()
    assert rs.Catalog(uri).tables() == names
    assert all(rs.Catalog(uri).open_table(name).count() == 1 for name in names)


def test_an_entry_without_namespaces_is_one_of_older_versions(catalog: rs.Catalog) -> None:
    catalog.create_table("db.t", ONE)
    first, second = (f"_catalog/{version:020d}.json" for version in (1, 2))
    assert b'"protocol":1' in catalog._store.get(first)
    assert b"namespaces" not in catalog._store.get(first)
    catalog.create_namespace("new")
    assert b'"protocol":2' in catalog._store.get(second)


@pytest.mark.parametrize("kind", ["SCHEMA", "namespace", "Database"])
def test_namespaces_in_sql(catalog: rs.Catalog, kind: str) -> None:
    created = catalog.sql(f"-- new\nCREATE {kind} db;")
    assert created.to_pylist() == [{"namespace": "db"}]
    with pytest.raises(NamespaceExists):
        catalog.sql(f"CREATE {kind} db")
    catalog.sql(f'CREATE {kind} IF NOT EXISTS "db"')
    catalog.create_table("db.t", ONE)
    assert catalog.sql(f"SHOW {kind}S").to_pylist() == [{"namespace": "db"}]
    assert catalog.sql("SELECT count(*) AS n FROM db.t").to_pylist() == [{"n": 1}]
    with pytest.raises(UnsupportedOperation):
        catalog.sql(f"DROP {kind} db RESTRICT")
    catalog.sql(f"DROP {kind} db CASCADE")
    catalog.sql(f"DROP {kind} IF EXISTS db")
    assert catalog.sql(f"SHOW {kind}S").to_pylist() == []
    with pytest.raises(NamespaceNotFound):
        catalog.sql(f"DROP {kind} db")


def test_tables_in_sql(catalog: rs.Catalog) -> None:
    catalog.create_table("db.t", ONE)
    catalog.create_table("other.u", ONE)
    assert catalog.sql("SHOW TABLES;").to_pylist() == [{"table": "db.t"}, {"table": "other.u"}]
    assert catalog.sql("show tables in other").to_pylist() == [{"table": "other.u"}]
    assert catalog.sql('ALTER TABLE "db"."t" RENAME TO new').to_pylist() == [{"table": "db.new"}]
    for wrong in ('ALTER TABLE db.new RENAME TO "x.y"', "DROP TABLE lake.db.new", "DROP TABLE db"):
        with pytest.raises(InvalidInput, match="name"):
            catalog.sql(wrong)
    catalog.sql("ALTER TABLE db.new RENAME TO other.t")
    assert catalog.tables() == ["other.t", "other.u"]
    folder = catalog.uri_of("other.u")
    assert catalog.sql("DROP TABLE other.u PURGE").to_pylist() == [{"table": "other.u"}]
    with pytest.raises(TableNotFound):
        rs.open_table(folder)
    catalog.sql("DROP TABLE other.t")
    catalog.sql("DROP TABLE IF EXISTS other.t")
    catalog.drop_table("other.t", if_absent="ignore")
    with pytest.raises(TableNotFound):
        catalog.sql("DROP TABLE other.t")
    assert catalog.tables() == []


def test_an_unknown_table_is_told_with_the_nearest_name(catalog: rs.Catalog) -> None:
    catalog.create_table("db.flights", ONE)
    for call in (
        lambda: catalog.open_table("db.flight"),
        lambda: catalog.drop_table("db.flight"),
        lambda: catalog.rename_table("bd.flights", "db.u"),
        lambda: catalog.call("CALL system.compact('db', 'flight')"),
        lambda: catalog.sql("SELECT * FROM db.flight"),
    ):
        with pytest.raises(TableNotFound, match=r"did you mean 'db\.flights'\?"):
            call()
    catalog.drop_table("db.flights")
    with pytest.raises(TableNotFound, match=r"dropped or renamed; see Catalog\.tables\(\)$"):
        catalog.open_table("db.flights")


def test_a_call_takes_a_table_with_its_catalog_in_front(catalog: rs.Catalog) -> None:
    catalog.create_table("db.t", ONE)
    catalog.call("CALL lake.system.compact(table => 'lake.db.t')")
    catalog.call("ALTER TABLE lake.db.t EXECUTE optimize")
    with pytest.raises(InvalidInput, match="give the namespace and the name"):
        catalog.call("CALL system.compact(table => 'a.b.c.d')")


def test_a_call_on_an_old_version_is_refused_before_it_works(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("db.t", ONE)
    monkeypatch.setattr("rowsieve.procedures.engine.LocalEngine.run", None)
    options = "options => map('rewrite-all', 'true')"
    with pytest.raises(UnsupportedOperation, match="opened at version 0 and is read-only"):
        catalog.call(f"CALL system.rewrite_data_files('db', 't@v0', {options})")


@pytest.mark.parametrize(
    "statement",
    ["CREATE SCHEMA", "CREATE SCHEMA a.b", "DROP NAMESPACE a, b", "CREATE SCHEMA a; SELECT 1"],
)
def test_what_cannot_be_read_is_refused(catalog: rs.Catalog, statement: str) -> None:
    with pytest.raises(InvalidInput, match="write CREATE SCHEMA"):
        catalog.sql(statement)
    assert catalog.namespaces() == []


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE db.A",
        "DROP TABLE db.A PURGE -- old",
        "DROP TABLE db . A",
        "DROP TABLE/**/db.A;",
        "; DROP TABLE db.A PURGE /* old */",
        'DROP TABLE db."A" -- old',
    ],
)
def test_a_statement_drops_the_table_of_its_name_and_no_other(statement: str) -> None:
    catalog = rs.Catalog(fresh_uri())
    for name in ("db.a", "db.A"):
        catalog.create_table(name, pa.table({"id": [1]}))
    assert catalog.sql(statement).to_pylist() == [{"table": "db.A"}]
    assert catalog.tables() == ["db.a"]


@pytest.mark.parametrize("rest", [", db.a", " FOR VERSION AS OF 0", " CASCADE"])
def test_a_drop_that_cannot_be_read_drops_nothing(rest: str) -> None:
    catalog = rs.Catalog(fresh_uri())
    for name in ("db.a", "db.A"):
        catalog.create_table(name, pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="cannot be read"):
        catalog.sql(f"DROP TABLE db.A{rest}")
    assert len(catalog.tables()) == 2


@pytest.mark.parametrize("comment", ["/**/", " -- x\n", " /* a /* b */ c */ "])
def test_names_are_shown_and_changed_by_statements_with_comments(comment: str) -> None:
    catalog = rs.Catalog(fresh_uri())
    catalog.create_table("db.a", pa.table({"id": [1]}))
    for statement, rows in (
        ("CREATE SCHEMA s", [{"namespace": "s"}]),
        ("SHOW SCHEMAS", [{"namespace": "db"}, {"namespace": "s"}]),
        ("ALTER TABLE db.a RENAME TO db.c", [{"table": "db.c"}]),
        ("SHOW TABLES IN db", [{"table": "db.c"}]),
    ):
        assert catalog.sql(statement.replace(" ", comment) + comment).to_pylist() == rows


def test_a_session_refuses_schemas_of_our_catalogs() -> None:
    catalog = rs.Catalog(fresh_uri())
    catalog.create_table("db.a", pa.table({"id": [1]}))
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    refused = ["CREATE SCHEMA LAKE.s", "/**/CREATE SCHEMA lake . s", "DROP SCHEMA lake.db CASCADE"]
    for statement in refused:
        with pytest.raises(UnsupportedOperation, match="SCHEMA in a Rowsieve catalog"):
            context.sql(statement)
    context.sql("CREATE SCHEMA own")
    context.sql("SET datafusion.catalog.default_catalog = 'lake'")
    with pytest.raises(UnsupportedOperation, match="SCHEMA in a Rowsieve catalog"):
        context.sql("CREATE SCHEMA own")
