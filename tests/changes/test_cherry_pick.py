"""Commits that a restore has undone are repeated, where that is sound, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import SnapshotExpired, UnsupportedOperation, VersionNotFound
from tests.profiles import examples
from tests.small_tables import fresh_uri


def rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([v] * len(ids), pa.int64())})


def found(table: rs.Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("key", [["id"], None])
def test_undone_commit_is_repeated_once(tmp_path: Path, key: list[str] | None) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(1), key)
    write = table.upsert if key else table.append
    write(rows(2))
    write(rows(3))
    table.restore(0)
    picked = table.cherry_pick(2)
    assert found(table) == [(1, 0), (3, 0)]
    assert (picked.version, picked.metadata) == (4, {"cherry_picked": "2"})
    again = table.cherry_pick(2)
    assert not again.committed
    assert table.refresh() == 4
    table.restore(0)
    assert table.cherry_pick(2).committed  # it was undone again
    assert found(table) == [(1, 0), (3, 0)]


def test_deleted_keys_are_deleted_again(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(1, 2, 3), ["id"])
    table.delete(keys=pa.table({"id": [2]}))
    table.restore(0)
    table.cherry_pick(1)
    assert found(table) == [(1, 0), (3, 0)]


def test_commit_that_is_not_undone_is_refused(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(1))
    table.append(rows(2))
    table.append(rows(3))
    table.compact()
    for version in (0, 1, 2):
        with pytest.raises(UnsupportedOperation, match="in the table already"):
            table.cherry_pick(version)
    assert found(table) == [(1, 0), (2, 0), (3, 0)]


def test_what_depends_on_rows_or_columns_or_is_older_is_refused(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(1, 2), ["id"])
    table.update({"v": "v + 1"}, where="id = 1")
    table.upsert(rows(1, v=5))
    table.restore(0)
    with pytest.raises(UnsupportedOperation, match="by update, which depends on the rows"):
        table.cherry_pick(1)
    table.upsert(rows(1, v=7))
    with pytest.raises(UnsupportedOperation, match="their rows are newer"):
        table.cherry_pick(2)
    table.restore(0)
    table.sql("ALTER TABLE t ADD COLUMN w INT")
    with pytest.raises(UnsupportedOperation, match="columns have changed"):
        table.cherry_pick(2)
    with pytest.raises(VersionNotFound):
        table.cherry_pick(99)
    assert found(table) == [(1, 0), (2, 0)]


def test_expired_version_is_refused(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(1), ["id"])
    table.upsert(rows(2))
    table.restore(0)
    table.expire_versions(retain_last=1)
    with pytest.raises(SnapshotExpired):
        table.cherry_pick(1)


def test_called_by_name(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", rows(1), ["id"])
    table.upsert(rows(2))
    table.restore(0)
    (row,) = catalog.call("CALL system.cherrypick_snapshot('db', 't', 1)").to_pylist()
    assert (row["version"], row["rows_written"]) == (3, 1)
    assert found(catalog.open_table("db.t")) == [(1, 0), (2, 0)]


STEP = st.one_of(
    st.tuples(st.just("write"), st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True)),
    st.tuples(st.just("restore"), st.integers(0, 20)),
    st.tuples(st.just("pick"), st.integers(0, 20)),
    st.tuples(st.just("compact"), st.none()),
)


@examples(30)
@given(steps=st.lists(STEP, min_size=3, max_size=14), key=st.booleans())
def test_a_pick_is_the_same_change_made_again_or_nothing(
    steps: list[tuple[str, Any]], key: bool
) -> None:
    """The model is a list of rows; it knows what each version changed."""
    table = rs.create_table(fresh_uri(), rows(100), ["id"] if key else None)
    states: list[list[tuple[int, int]]] = [[(100, 0)]]
    changes: dict[int, tuple[str, Any]] = {}
    for number, (kind, value) in enumerate(steps, 1):
        now = states[-1]
        change: tuple[str, Any] | None = None
        if kind == "write":
            (table.upsert if key else table.append)(rows(*value, v=number))
            change = ("write", [(i, number) for i in value])
        elif kind == "delete" and key:
            table.delete(keys=pa.table({"id": value}))
            change = ("delete", value)
        elif kind == "restore":
            table.restore(value % len(states))
            now = states[value % len(states)]
        elif kind == "compact":
            table.compact()
        elif kind == "pick":
            version = value % len(states)
            try:
                if table.cherry_pick(version).committed:
                    change = changes[version]
            except UnsupportedOperation:
                pass
        after = made(now, change, key=key)
        states.extend([after] * (table.refresh() - len(states) + 1))
        if change is not None:
            changes[table.version] = change
        assert found(table) == states[-1]


def made(
    state: list[tuple[int, int]], change: tuple[str, Any] | None, *, key: bool
) -> list[tuple[int, int]]:
    if change is None:
        return state
    kind, value = change
    gone = {each if kind == "delete" else each[0] for each in value} if key else set()
    kept = [row for row in state if row[0] not in gone]
    return sorted([*kept, *value] if kind == "write" else kept)
