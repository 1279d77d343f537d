"""Tables by name in one log: versions of the whole database, names, SQL, and what a call costs."""

from __future__ import annotations

import multiprocessing
import re
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import rowsieve as rs
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    NamespaceNotFound,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
    UnsupportedProtocol,
    VersionNotFound,
)
from rowsieve.objects import Draft, open_store
from rowsieve.objects.drafts import SPILL_BYTES
from rowsieve.objects.shared import shared_tables as opening
from rowsieve.objects.shared.shared_entry import LOG, entry_path, listed_versions
from rowsieve.objects.shared.shared_log import ROOT_INTERVAL
from rowsieve.objects.shared.table_pages import PAGES
from tests.small_tables import fresh_uri, kv, pairs


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> rs.Database:
    return rs.Database(fresh_uri() if request.param == "memory" else tmp_path / "database")


def elsewhere(database: rs.Database) -> rs.Database:
    """The database as another process opens it: nothing of it is in memory."""
    opening._open.clear()
    return rs.Database(database.uri)


def test_a_version_is_one_of_all_tables(database: rs.Database) -> None:
    first = database.create_table("a", kv((1, 1)), ["k"])
    second = database.create_table("ns.b", kv((1, 10)), ["k"])
    first.upsert(kv((1, 2)))
    second.upsert(kv((2, 20)))
    assert database.version == 4
    at_3 = database.open_table("a", version=3), database.open_table("ns.b", version=3)
    assert [pairs(table) for table in at_3] == [[(1, 2)], [(1, 10)]]
    assert pairs(database.open_table("a", version=1)) == [(1, 1)]
    with pytest.raises(TableNotFound, match=r"no table 'ns\.b'"):
        database.open_table("ns.b", version=1)
    for version in (-1, 5):
        with pytest.raises(VersionNotFound, match="the newest is 4"):
            database.open_table("a", version=version)
    assert database.tables(version=1) == ["a"]
    again = elsewhere(database)
    assert again.tables() == ["a", "ns.b"]
    assert pairs(again.open_table("ns.b")) == [(1, 10), (2, 20)]


def test_a_table_opens_by_its_uri_and_sees_commits_of_others(database: rs.Database) -> None:
    table = database.create_table("a", kv((1, 1)), ["k"])
    other = rs.open_table(table.uri)
    other.upsert(kv((2, 2)))
    table.upsert(kv((3, 3)))
    assert pairs(other) == pairs(table) == [(1, 1), (2, 2), (3, 3)]
    assert [commit.operation for commit in table.history()] == ["upsert", "upsert", "create"]
    table.compact()
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rs.open_table(elsewhere(database).open_table("a").uri)) == pairs(table)


def test_names_are_taken_changed_and_given_back(database: rs.Database) -> None:
    table = database.create_table("a", kv((1, 1)), ["k"])
    with pytest.raises(TableExists, match="a table 'a' already"):
        database.create_table("default.a", kv())
    assert database.create_table("a", kv(), if_exists="ignore").uri == table.uri
    database.rename_table("a", "b")
    database.create_table("a", kv((2, 2)), ["k"])
    with pytest.raises(TableExists, match="a table 'a' already"):
        database.rename_table("b", "a")
    table.upsert(kv((1, 5)))
    database.drop_table("b")
    with pytest.raises(TableNotFound, match="was dropped"):
        table.upsert(kv((1, 6)))
    with pytest.raises(TableNotFound, match="no table 'b'"):
        database.open_table("b")
    database.drop_table("b", if_absent="ignore")
    fresh = database.create_table("b", kv((9, 9)), ["k"])
    assert fresh.uri != table.uri
    assert database.tables() == elsewhere(database).tables() == ["a", "b"]
    assert pairs(database.open_table("default.b")) == [(9, 9)]


def test_a_dropped_table_is_gone_after_the_vacuum(database: rs.Database) -> None:
    table = database.create_table("a", kv((1, 1)), ["k"], properties={"inline_bytes": 0})
    kept = database.create_table("b", kv((1, 1)), ["k"])
    store = open_store(database.uri)
    folder = table.uri.removeprefix(f"{database.uri}/")
    database.drop_table("a")
    assert database.vacuum().tables == 0
    assert store.list(folder)
    assert pairs(table) == [(1, 1)]
    with kept.lease():
        assert database.vacuum(retain_s=0).tables == 1
    assert not store.list(folder)
    assert database.vacuum(retain_s=0).tables == 0
    again = database.create_table("c", kv((1, 1)), ["k"])
    with again.lease():
        database.drop_table("c", purge=True)
        assert pairs(again) == [(1, 1)]
    database.vacuum(retain_s=0)
    assert elsewhere(database).tables() == ["b"]


def test_a_small_table_has_no_file_until_it_grows(database: rs.Database) -> None:
    store = open_store(database.uri)
    database.create_table("a", kv((1, 1)), ["k"], properties={"inline_total_bytes": 2_000})
    with database.transaction() as tx:
        tx.create_table("b", kv((1, 1)), ["k"])
        tx.create_table("c", kv((1, 1)), ["k"], properties={"inline_bytes": 0})
    folders = {name: database.uri_of(name).removeprefix(f"{database.uri}/") for name in "abc"}
    stored = {name: [*store.list(f"{folder}/data")] for name, folder in folders.items()}
    assert [bool(stored[name]) for name in "abc"] == [False, False, True]
    table = database.open_table("a")
    for turn in range(12):
        table.upsert(kv(*((turn * 10 + i, i) for i in range(10))))
    assert [*store.list(f"{folders['a']}/data")]
    assert elsewhere(database).open_table("a").count() == 120


def test_a_table_with_branches_is_not_dropped(database: rs.Database) -> None:
    table = database.create_table("ns.a", kv((1, 1)), ["k"])
    table.tag("first")
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    assert pairs(database.open_table("ns.a@audit")) == [(1, 1), (2, 2)]
    rows = database.sql("SELECT count(*) AS n FROM ns.a FOR VERSION AS OF 'first'")
    assert rows["n"].to_pylist() == [1]
    for drop in (
        partial(database.drop_table, "ns.a"),
        partial(database.drop_table, "ns.a", purge=True),
        partial(database.drop_namespace, "ns", cascade=True),
    ):
        with pytest.raises(UnsupportedOperation, match=r"branches or tags \(audit, first\)"):
            drop()
    assert pairs(branch) == [(1, 1), (2, 2)]
    table.drop_ref("audit")
    table.drop_ref("first")
    database.drop_table("ns.a", purge=True)
    assert database.tables() == []


def test_a_database_is_created_again_where_one_was_deleted(tmp_path: Path) -> None:
    for number in range(3):
        database = rs.Database(tmp_path / "database")
        for name in "abc"[number:]:
            database.create_table(name, kv((number, number)), ["k"])
        assert database.tables() == [*"abc"[number:]]
        assert pairs(database.open_table("c")) == [(number, number)]
        shutil.rmtree(tmp_path / "database")
    with pytest.raises(TableNotFound, match="there is no database"):
        database.tables()


@pytest.mark.parametrize("retain_s", [float("nan"), float("inf"), -1])
def test_a_time_that_is_none_is_refused(retain_s: float) -> None:
    database = rs.Database(fresh_uri())
    database.create_table("a", kv())
    with pytest.raises(InvalidInput, match="retain_s is "):
        database.vacuum(retain_s=retain_s)


@pytest.mark.parametrize("name", ["", "a.b.c", "a b", ".a", "a.", "a/b", "a@v1", "x" * 129])
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        rs.Database(fresh_uri()).create_table(name, kv())


def test_what_is_no_database_says_so() -> None:
    database = rs.Database(fresh_uri())
    with pytest.raises(TableNotFound, match="there is no database at memory:"):
        database.tables()
    table = database.create_table("a", kv())
    nearby = table.uri[:-4] + ("0000" if table.uri[-4:] != "0000" else "1111")
    with pytest.raises(InvalidInput, match="create tables by the database's create_table"):
        rs.create_table(nearby, kv())
    with pytest.raises(TableNotFound):
        rs.open_table(nearby)
    with pytest.raises(UnsupportedOperation, match="is in the database"):
        database.register_table("b", table.uri)


def test_sql_and_procedures_run_on_the_tables(database: rs.Database) -> None:
    database.create_table("a", kv((1, 1), (2, 2)), ["k"])
    table = database.create_table("ns.b", kv((1, 10)), ["k"])
    table.upsert(kv((2, 20)))
    joined = database.sql("SELECT a.v, b.v AS w FROM a JOIN ns.b b ON a.k = b.k ORDER BY 1")
    assert joined.to_pylist() == [{"v": 1, "w": 10}, {"v": 2, "w": 20}]
    assert database.sql("SHOW SCHEMAS")["namespace"].to_pylist() == ["default", "ns"]
    assert database.sql("SHOW TABLES")["table"].to_pylist() == ["a", "ns.b"]
    done = database.sql(
        "CALL system.rewrite_data_files('ns', 'b', options => map('min-input-files', '2'))"
    )
    assert done["rewritten_data_files_count"].to_pylist() == [2]
    old = database.sql("SELECT count(*) AS n FROM ns.b FOR VERSION AS OF 2")
    assert old["n"].to_pylist() == [1]
    database.sql("ALTER TABLE ns.b RENAME TO ns.c")
    database.sql("DROP TABLE a")
    assert database.tables("ns") == ["ns.c"]
    assert database.tables("default") == []
    with pytest.raises(UnsupportedOperation, match="cascade"):
        database.drop_namespace("ns")
    database.drop_namespace("ns", cascade=True)
    with pytest.raises(NamespaceNotFound):
        database.drop_namespace("ns")


def test_many_threads_change_many_tables(database: rs.Database) -> None:
    tables = [database.create_table(f"t{number}", kv(), ["k"]) for number in range(3)]

    def work(thread: int) -> None:
        for i in range(8):
            rs.open_table(tables[(thread + i) % 3].uri).upsert(kv((100 * thread + i, i)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    rows = [
        row for name in elsewhere(database).tables() for row in pairs(database.open_table(name))
    ]
    assert sorted(rows) == sorted((100 * thread + i, i) for thread in range(6) for i in range(8))
    assert database.version <= 3 + 48  # several commits may be one entry


def _work(uri: str, process: int) -> None:
    database = rs.Database(uri)
    for i in range(6):
        database.open_table(f"t{i % 2}").upsert(kv((100 * process + i, i)))
        if i == 3:
            database.create_table(f"of{process}", kv((i, i)), ["k"])


def test_several_processes_change_one_database(tmp_path: Path) -> None:
    database = rs.Database(tmp_path)
    for number in range(2):
        database.create_table(f"t{number}", kv(), ["k"])
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_work, args=(database.uri, each)) for each in (1, 2)]
    for process in processes:
        process.start()
    _work(database.uri, 3)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert database.tables() == ["of1", "of2", "of3", "t0", "t1"]
    assert database.version == 2 + 3 * 7
    rows = [row for number in range(2) for row in pairs(database.open_table(f"t{number}"))]
    assert sorted(rows) == sorted((100 * p + i, i) for p in (1, 2, 3) for i in range(6))


def test_pages_hold_what_old_entries_said(database: rs.Database) -> None:
    for number in range(ROOT_INTERVAL + 3):
        database.create_table(f"t{number}", kv((number, number)), ["k"])
    store = open_store(database.uri)
    assert listed_versions(store.list(LOG))[1] == [ROOT_INTERVAL]
    old = database.open_table("t1")
    assert database.vacuum(retain_s=0).entries >= ROOT_INTERVAL
    database.create_table("last", kv((0, 0)), ["k"])
    assert database.vacuum(retain_s=0).entries == 3
    assert len(listed_versions(store.list(LOG))[1]) == 2
    assert len(store.list(LOG)) < 8
    again = elsewhere(database)
    assert len(again.tables()) == ROOT_INTERVAL + 4
    for number in (0, 1, 40, ROOT_INTERVAL + 2):
        assert pairs(again.open_table(f"t{number}")) == [(number, number)]
    assert pairs(old) == [(1, 1)]
    old.upsert(kv((2, 2)))
    assert pairs(elsewhere(database).open_table("t1")) == [(1, 1), (2, 2)]
    with pytest.raises(VersionNotFound, match="can no longer be read"):
        again.open_table("t0", version=3)


def test_newer_entries_push_no_older_one_out_of_its_page(database: rs.Database) -> None:
    table = database.create_table("t", kv((1, 1)), ["k"])

    def vacuum(name: str) -> None:
        """Vacuum twice: the first root stays as a fallback, and keeps the entries before it."""
        for part in ("a", "b"):
            database.vacuum(retain_s=0)
            database.create_table(name + part, kv(), ["k"])

    vacuum("first")
    assert entry_path(1) not in open_store(database.uri).list(LOG)
    for number in range(2, 31):
        table.upsert(kv((number, number)))
    vacuum("second")
    again = elsewhere(database).open_table("t")
    assert pairs(again) == [(number, number) for number in range(1, 31)]
    assert len(again.history()) == 30


def test_an_entry_that_is_too_large_for_a_page_stays(database: rs.Database) -> None:
    notes = {"note": "n" * 20_000}
    database.create_table("large", kv((1, 1)), ["k"], metadata=notes)
    for _ in range(2):
        small = database.create_table("small", kv(), ["k"], if_exists="ignore")
        for number in range(ROOT_INTERVAL):
            small.set_properties({"audit_percent": str(number % 100)})
        small.vacuum(retain_last=1, grace_s=0)
        database.vacuum(retain_s=0)
    again = elsewhere(database).open_table("large")
    assert again.history()[0].metadata == notes
    assert len(open_store(database.uri).list(LOG)) < ROOT_INTERVAL


def test_many_tables_are_over_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowsieve.objects.shared import table_pages as pages

    monkeypatch.setattr(pages, "_TABLES_PER_PAGE", 2)
    database = rs.Database(fresh_uri())
    for number in range(2 * ROOT_INTERVAL + 1):
        database.create_table(f"t{number}", kv((number, number)), ["k"])
        if number % 10 == 3:
            database.rename_table(f"t{number}", f"renamed.t{number}")
        if number % 10 == 5:
            database.drop_table(f"t{number}")
    again = elsewhere(database)
    wanted = {
        f"renamed.t{n}" if n % 10 == 3 else f"t{n}"
        for n in range(2 * ROOT_INTERVAL + 1)
        if n % 10 != 5
    }
    assert {*again.tables()} == wanted
    assert len(open_store(database.uri).list(PAGES)) > 30
    for name in sorted(wanted)[::7]:
        number = int(re.sub(r"\D", "", name))
        assert pairs(again.open_table(name)) == [(number, number)]


@pytest.mark.parametrize("damage", ["cut", "flipped", "renamed", "newer", "foreign"])
def test_a_damaged_entry_is_named(tmp_path: Path, damage: str) -> None:
    database = rs.Database(tmp_path)
    database.create_table("a", kv((1, 1)), ["k"])
    database.create_table("b", kv((1, 1)), ["k"])
    path = tmp_path / entry_path(2)
    data = path.read_bytes()
    changed = {
        "cut": data[:-3],
        "flipped": data[:100] + bytes([data[100] ^ 1]) + data[101:],
        "renamed": (tmp_path / entry_path(1)).read_bytes(),
        "newer": data.replace(b"entry 1\n", b"entry 9\n", 1),
        "foreign": b"PAR1" + uuid.uuid4().bytes,
    }
    path.write_bytes(changed[damage])
    wanted = UnsupportedProtocol if damage == "newer" else CorruptData
    with pytest.raises(wanted, match=f"{LOG}/0+2 in file:"):
        elsewhere(database).tables()


def test_large_files_of_a_table_are_drafted_on_disk(tmp_path: Path) -> None:
    table = rs.Database(tmp_path).create_table("a", kv((1, 1)), ["k"])
    for place in (table, table.branch("audit")):
        draft = Draft(place.handle.store, "data/x")
        draft.write(bytes(SPILL_BYTES + 1))
        assert draft.file is not None


def test_a_commit_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    database = rs.Database(fresh_uri())
    table = database.create_table("a", kv((1, 1)), ["k"])
    store = open_store(database.uri)
    before = store.list("")
    table.set_properties({"audit_percent": "1"})
    assert len(store.list("")) == len(before) + 1
