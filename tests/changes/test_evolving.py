"""Columns are added, dropped and renamed by id: old rows read right under every later schema."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    InvalidSchemaChange,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)

ROWS = pa.table({"a": ["x", "y", "z"], "b": pa.array([5, 6, None], pa.int64())})


@pytest.fixture(params=("keyed", "plain"))
def table(request: pytest.FixtureRequest) -> Table:
    key = ["a"] if request.param == "keyed" else None
    return rowsieve.create_table(f"memory:///evolving-{uuid.uuid4().hex}", ROWS, key=key)


def put(table: Table, rows: pa.Table) -> None:
    if table.key:
        table.upsert(rows)
    else:
        table.append(rows)


def rows(table: Table, where: str | None = None, **options: Any) -> list[tuple[Any, ...]]:
    found = table.scan(where, **options).to_arrow()
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def test_a_dropped_column_does_not_answer_for_one_added_under_its_name(table: Table) -> None:
    # trap T19: the story of the issue
    table.drop_column("b")
    table.add_column("b", pa.int64(), default=50)
    assert table.delete("b = 5").committed is False
    assert rows(table) == [("x", 50), ("y", 50), ("z", 50)]
    assert rows(table, "b = 5") == []
    assert rows(table, "b = 5", pruning="off") == []
    assert table.delete("b = 50 and a = 'x'").rows_deleted == 1
    assert rows(table) == [("y", 50), ("z", 50)]


def test_rows_from_before_have_the_default_of_their_time_for_ever(table: Table) -> None:
    table.add_column("c", "int64", default=7)
    put(table, pa.table({"a": ["w"], "b": [1], "c": [8]}))
    assert rows(table) == [("w", 1, 8), ("x", 5, 7), ("y", 6, 7), ("z", None, 7)]
    table.add_column("d", pa.string())
    assert rows(table, "d is null") == rows(table)
    assert rows(table, "d is not null") == []
    assert table.count("c = 7") == 3
    assert table.count("c = 8") == 1


def test_a_new_column_stands_where_it_was_asked_to(table: Table) -> None:
    table.add_column("c", pa.date32(), after="a")
    assert table.schema.names == ["a", "c", "b"]
    assert rows(table)[0] == ("x", None, 5)
    put(table, pa.table({"a": ["w"], "b": [1], "c": pa.array([3], pa.date32())}))
    assert table.scan("a = 'w'").to_arrow().to_pylist()[0]["b"] == 1


def test_a_renamed_column_keeps_its_values_and_statistics(table: Table) -> None:
    table.rename_column("b", "c")
    assert rows(table, "c = 5") == [("x", 5)]
    with pytest.raises(UnknownColumn):
        table.scan("b = 5")
    put(table, pa.table({"a": ["w"], "c": [5]}))
    assert rows(table, "c = 5") == [("w", 5), ("x", 5)]
    assert table.scan("c > 6").plan().splits == ()


def test_names_may_be_exchanged_in_one_commit() -> None:
    uri = f"memory:///evolving-{uuid.uuid4().hex}"
    made = rowsieve.create_table(uri, pa.table({"id": [1], "a": [10], "b": [20]}), key=["id"])
    with made.alter() as change:
        change.rename_column("a", "x")
        change.rename_column("b", "a").rename_column("x", "b")
    assert change.commit is not None
    assert made.version == 1
    assert made.scan().to_arrow().to_pylist() == [{"id": 1, "b": 10, "a": 20}]
    assert made.scan("a = 20").to_arrow().num_rows == 1
    assert made.scan("a = 10").to_arrow().num_rows == 0


def test_an_exception_in_the_block_changes_nothing(table: Table) -> None:
    def fail_in_the_middle() -> None:
        with table.alter() as change:
            change.drop_column("b")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_in_the_middle()
    assert table.refresh() == 0


def test_each_version_has_its_own_columns(table: Table) -> None:
    table.rename_column("b", "c")
    table.add_column("b", pa.string(), default="new")
    table.drop_column("c")
    assert rows(table) == [("x", "new"), ("y", "new"), ("z", "new")]
    names = [table.scan(version=i).to_arrow().schema.names for i in range(4)]
    assert names == [["a", "b"], ["a", "c"], ["a", "c", "b"], ["a", "b"]]
    assert rows(table, "b = 5", version=0) == [("x", 5)]
    assert rows(table, "c = 5 and b = 'new'", version=2) == [("x", 5, "new")]


def test_updates_and_deletes_see_the_default(table: Table) -> None:
    table.add_column("c", pa.int32(), default=1)
    table.update({"c": "c + 1"}, where="a = 'x'")
    assert rows(table, "c = 2") == [("x", 5, 2)]
    assert table.delete("c = 1 and b = 6").rows_deleted == 1
    assert rows(table) == [("x", 5, 2), ("z", None, 1)]


def test_compaction_writes_the_newest_columns(table: Table) -> None:
    table.add_column("c", pa.int64(), default=1)
    put(table, pa.table({"a": ["x2"], "b": [5], "c": [2]}))
    table.drop_column("b")
    before = rows(table)
    assert table.compact().committed
    assert rows(table) == before == [("x", 1), ("x2", 2), ("y", 1), ("z", 1)]
    parts = table.snapshot_for_engines().parts
    assert set(parts.column("schema_id").to_pylist()) == {2}


def test_another_handle_that_does_not_know_the_columns_is_refused(table: Table) -> None:
    other = rowsieve.open_table(table.uri)
    table.drop_column("b")
    table.add_column("b", pa.int64(), default=50)
    with pytest.raises(CommitConflict, match="columns of the table were changed"):
        put(other, ROWS)
    stale = rowsieve.open_table(table.uri)
    table.rename_column("b", "c")
    with pytest.raises(CommitConflict, match="columns of the table were changed"):
        stale.delete("b = 50")
    with pytest.raises(CommitConflict, match="columns of the table were changed"):
        other.update({"b": "1"})
    assert rows(table) == [("x", 50), ("y", 50), ("z", 50)]


def test_two_changes_of_the_columns_at_once_conflict(table: Table) -> None:
    ours = table.alter().add_column("c", pa.int64())
    rowsieve.open_table(table.uri).add_column("d", pa.int64())
    with pytest.raises(CommitConflict, match="changed by another commit"):
        ours.__exit__(None, None, None)
    assert table.refresh() == 1
    assert table.schema.names == ["a", "b", "d"]


def test_appended_rows_that_lack_a_column_get_its_default() -> None:
    made = rowsieve.create_table(f"memory:///evolving-{uuid.uuid4().hex}", ROWS)
    made.add_column("c", pa.int64(), default=3, nullable=False)
    made.append(pa.table({"a": ["w"], "b": [1]}))
    assert rows(made, "c = 3 and a = 'w'") == [("w", 1, 3)]
    with pytest.raises(SchemaMismatch, match="NOT NULL"):
        made.append(pa.table({"a": ["w"], "b": [1], "c": pa.array([None], pa.int64())}))


def test_rows_come_back_with_the_columns_that_there_are_now(table: Table) -> None:
    table.delete("a = 'x'")
    table.add_column("c", pa.int64(), default=1)
    table.restore(0)
    assert rows(table) == [("x", 5, 1), ("y", 6, 1), ("z", None, 1)]
    table.drop_column("b")
    with pytest.raises(UnsupportedOperation, match="dropped b since version 0"):
        table.restore(0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        pytest.param(lambda t: t.drop_column("nope"), UnknownColumn, "nope", id="unknown column"),
        pytest.param(lambda t: t.drop_column("id"), InvalidSchemaChange, "key", id="drop a key"),
        pytest.param(
            lambda t: t.rename_column("id", "key"), InvalidSchemaChange, "key", id="rename a key"
        ),
        pytest.param(
            lambda t: t.add_column("B", pa.int64()), InvalidSchemaChange, "'b' already", id="same"
        ),
        pytest.param(
            lambda t: t.rename_column("b", "id"), InvalidSchemaChange, "'id' already", id="taken"
        ),
        pytest.param(
            lambda t: t.add_column("c", "int8", default=300), SchemaMismatch, "fit", id="overflow"
        ),
        pytest.param(
            lambda t: t.add_column("c", "int8", default="x"), SchemaMismatch, "int8", id="text"
        ),
        pytest.param(
            lambda t: t.add_column("c", "int8", nullable=False),
            InvalidSchemaChange,
            "without a default",
            id="not null without default",
        ),
        pytest.param(
            lambda t: t.add_column("c", pa.list_(pa.int8()), default=[1]),
            InvalidSchemaChange,
            "default NULL",
            id="nested default",
        ),
        pytest.param(
            lambda t: t.add_column("c", "int12"), rowsieve.errors.InvalidInput, "int12", id="type"
        ),
        pytest.param(
            lambda t: t.set_properties({"critical_columns": "b"}) and t.drop_column("b"),
            InvalidSchemaChange,
            "critical_columns",
            id="named by a property",
        ),
    ],
)
def test_a_change_that_is_not_allowed_says_why(
    change: Callable[[Table], Any], error: type[Exception], words: str
) -> None:
    made = rowsieve.create_table(
        f"memory:///evolving-{uuid.uuid4().hex}", pa.table({"id": [1], "b": [2]}), key=["id"]
    )
    with pytest.raises(error, match=words):
        change(made)
    assert made.schema.names == ["id", "b"]


def test_the_last_column_stays() -> None:
    made = rowsieve.create_table(f"memory:///evolving-{uuid.uuid4().hex}", pa.table({"b": [2]}))
    with pytest.raises(InvalidSchemaChange, match="last one"):
        made.drop_column("b")
