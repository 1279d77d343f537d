"""Tags and branches of a whole database: one entry for all tables, or nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    TableNotFound,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.objects import open_store
from rowsieve.objects.shared.shared_entry import LOG
from tests.small_tables import fresh_uri, kv, pairs


@pytest.fixture
def database() -> rs.Database:
    """Three tables with a row each."""
    database = rs.Database(fresh_uri())
    for name in ("a", "b", "shop.c"):
        database.create_table(name, kv((1, 10)), ["k"])
    return database


def entries(database: rs.Database) -> int:
    return len(open_store(database.uri).list(LOG))


def rows(database: rs.Database, ref: str | None = None) -> dict[str, list[tuple[int, int]]]:
    return {name: pairs(database.open_table(name, ref=ref)) for name in database.tables()}


def test_a_tag_keeps_a_version_of_all_tables_in_one_entry(database: rs.Database) -> None:
    before = entries(database)
    commits = database.tag("q3", metadata={"why": "audit"})
    assert entries(database) == before + 1
    assert sorted(commits) == ["a", "b", "shop.c"]
    database.open_table("a").upsert(kv((1, 11), (2, 20)))
    database.open_table("b").delete("k = 1")
    for name in ("a", "b"):
        database.open_table(name).maintain(retain_last=1, grace_s=0)
    database.vacuum(retain_s=0)
    assert rows(database, "q3") == {name: [(1, 10)] for name in ("a", "b", "shop.c")}
    assert rows(rs.Database(database.uri)) == {
        "a": [(1, 11), (2, 20)],
        "b": [],
        "shop.c": [(1, 10)],
    }
    listed = database.refs().select(["table", "name", "kind"]).to_pylist()
    assert listed == [{"table": t, "name": "q3", "kind": "tag"} for t in ("a", "b", "shop.c")]
    with pytest.raises(InvalidInput, match="'q3' already"):
        database.tag("q3")
    assert database.open_table("b").refs().num_rows == 1


def test_a_tag_of_an_earlier_version_has_the_tables_of_that_version(
    database: rs.Database,
) -> None:
    version = database.version
    with database.transaction() as tx:
        tx.table("a").upsert(kv((1, 77)))
        tx.table("b").upsert(kv((1, 77)))
    database.create_table("later", kv((1, 1)), ["k"])
    assert sorted(database.tag("before", version=version)) == ["a", "b", "shop.c"]
    assert pairs(database.open_table("b@before")) == [(1, 10)]
    with pytest.raises(VersionNotFound):
        database.open_table("later", ref="before")
    with pytest.raises(VersionNotFound):
        database.tag("never", version=99)


def test_a_branch_is_published_in_one_entry(database: rs.Database) -> None:
    database.branch("audit")
    for name in ("a", "shop.c"):
        database.open_table(name, ref="audit").upsert(kv((2, 22)))
    assert rows(database) == {name: [(1, 10)] for name in ("a", "b", "shop.c")}
    before, version = entries(database), database.version
    assert sorted(database.fast_forward("audit")) == ["a", "shop.c"]
    assert (entries(database), database.version) == (before + 1, version + 1)
    changed = [(1, 10), (2, 22)]
    assert rows(database) == {"a": changed, "b": [(1, 10)], "shop.c": changed}
    assert pairs(database.open_table("a", version=version)) == [(1, 10)]
    assert database.fast_forward("audit") == {}
    assert sorted(database.drop_ref("audit")) == ["a", "b", "shop.c"]
    assert database.refs().num_rows == 0
    assert rows(database)["a"] == changed
    with pytest.raises(VersionNotFound, match="there are: none"):
        database.drop_ref("audit")


def test_a_branch_that_one_table_has_left_behind_publishes_nothing(
    database: rs.Database,
) -> None:
    database.branch("audit")
    for name in ("a", "b"):
        database.open_table(name, ref="audit").upsert(kv((2, 22)))
    database.open_table("b").upsert(kv((5, 5)))
    before = entries(database)
    with pytest.raises(CommitConflict, match="has moved since"):
        database.fast_forward("audit")
    assert entries(database) == before
    assert rows(database) == {"a": [(1, 10)], "b": [(1, 10), (5, 5)], "shop.c": [(1, 10)]}


def test_a_name_that_one_table_has_makes_nothing(database: rs.Database) -> None:
    database.open_table("b").tag("q3")
    before = entries(database)
    with pytest.raises(InvalidInput, match="'q3' already"):
        database.tag("q3")
    assert entries(database) == before
    assert database.open_table("a").refs().num_rows == 0
    with pytest.raises(UnsupportedOperation, match="has no table"):
        empty().tag("q3")


def empty() -> rs.Database:
    database = rs.Database(fresh_uri())
    database.create_table("t", kv((1, 1)), ["k"])
    database.drop_table("t")
    return database


def test_errors_of_refs_name_the_table(database: rs.Database) -> None:
    database.branch("late")
    for ref in (None, "late"):
        database.open_table("shop.c", ref=ref).upsert(kv((5, 5)))
    named = r"table 'shop\.c' of memory:"
    with pytest.raises(CommitConflict, match=rf"{named}\S+ has moved since"):
        database.fast_forward("late")
    with pytest.raises(VersionNotFound, match=rf"{named}\S+ has no branch or tag 'other'"):
        database.open_table("shop.c", ref="other")
    with pytest.raises(InvalidInput, match=rf"{named}\S+ has a branch 'late' already"):
        database.open_table("shop.c").tag("late")


def test_a_table_whose_branch_has_not_changed_stays_as_it_is(database: rs.Database) -> None:
    columns = pa.schema([("x", pa.int64())])
    database.create_table("updates", columns, mode="differential", time="uint64")
    database.branch("b")
    database.open_table("a", ref="b").upsert(kv((7, 7)))
    assert sorted(database.fast_forward("b")) == ["a"]
    database.open_table("updates", ref="b").append_updates(
        [{"x": 1, "time": 0, "diff": 1}], upper=1
    )
    with pytest.raises(UnsupportedOperation, match="differential"):
        database.fast_forward("b")
    assert database.open_table("updates").version == 1


def test_a_missing_database_is_created_by_its_first_table() -> None:
    with pytest.raises(TableNotFound, match="its first table makes one"):
        rs.Database(fresh_uri()).tag("x")
