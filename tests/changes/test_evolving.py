"""Columns are added, dropped and renamed by id: old rows read right under every later schema."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Commit, Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    InvalidSchemaChange,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from rowsieve.scan import Scan
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.values import Values
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.replay import replay
from rowsieve.types.logical import Field, Int
from rowsieve.types.schema import Schema

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
    parts = table.handle.pinned.parts
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


def test_a_token_counts_once_even_if_the_columns_changed_since(table: Table) -> None:
    data, token = pa.table({"a": ["w"], "b": [1]}), ("loader", 3)
    write = table.upsert if table.key else table.append
    first = write(data, token=token)
    with table.alter() as change:
        change.drop_column("b").add_column("c", "int64")
    written: dict[str, Callable[[], Commit]] = {
        "plain": lambda: write(data, token=token),
        "merging": lambda: write(data, token=token, schema_mode="merge"),
        "overwrite": lambda: table.overwrite(data, token=token),
        "overwrite some": lambda: table.overwrite(data, where="b = 1", token=token),
        "delete": lambda: table.delete("b = 1", token=token),
        "update": lambda: table.update({"b": "b + 1"}, token=token),
    }
    for name, again in written.items():
        assert again() == first, name
    assert table.version == 2
    with pytest.raises(SchemaMismatch):
        write(data, token=("loader", 4))
    with pytest.raises(UnknownColumn):
        table.delete("b = 1", token=("loader", 4))


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


NARROW = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "i": pa.array([2**31 - 1, None], pa.int32()),
        "u": pa.array([2**32 - 1, 0], pa.uint32()),
        "f": pa.array([0.5, None], pa.float32()),
        "d": pa.array(["1.25", "-9.99"]).cast(pa.decimal128(3, 2)),
    }
)
WIDER = {"i": pa.int64(), "u": pa.int64(), "f": pa.float64(), "d": pa.decimal128(10, 4)}


@pytest.mark.parametrize("keyed", [True, False])
def test_old_and_new_rows_of_a_widened_column_are_read_and_pruned_alike(keyed: bool) -> None:
    made = rowsieve.create_table(
        f"memory:///evolving-{uuid.uuid4().hex}", NARROW, key=["id"] if keyed else None
    )
    with made.alter() as change:
        for name, type_ in WIDER.items():
            change.widen_column(name, type_)
    assert [made.schema.field(name).type for name in WIDER] == list(WIDER.values())
    read = made.scan().to_arrow()
    assert read.column("i").to_pylist() == [2**31 - 1, None]
    assert [str(value) for value in read.column("d").to_pylist()] == ["1.2500", "-9.9900"]
    big = {"id": 3, "i": 2**40, "u": -1, "f": 0.1, "d": 123456}
    put(made, pa.Table.from_pylist([{**big, "d": None}], schema=read.schema.remove_metadata()))
    for where, ids in (
        ("i > 2147483647", [3]),
        ("i = 2147483647", [1]),
        ("u < 0", [3]),
        ("u > 0", [1]),
        ("f = 0.1", [3]),
        ("f = 0.5", [1]),
        ("d < 0.0001", [2]),
        ("d IS NULL", [3]),
    ):
        for pruning in ("on", "off", "soft"):
            found = made.scan(where, pruning=pruning).to_arrow()
            assert found.column("id").to_pylist() == ids, (where, pruning)
    for where in ("i > 2147483647", "u < 0", "d IS NULL"):
        plan = made.scan(where).plan()
        assert sum(len(piece.parts) for split in plan.splits for piece in split.pieces) == 1, where
    before = rows(made)
    assert made.compact().committed
    assert rows(made) == before
    assert made.scan(version=0).to_arrow().schema.field("i").type == pa.int32()
    made.restore(0)
    assert rows(made) == before[:2]


def test_columns_are_put_in_an_order(table: Table) -> None:
    table.add_column("c", pa.int64(), default=1)
    table.reorder_columns(["c", "b"])
    assert table.schema.names == ["c", "b", "a"]
    assert rows(table, "a = 'x'") == [(1, 5, "x")]
    put(table, pa.table({"a": ["w"], "b": [2], "c": [3]}))
    assert rows(table, "c = 3") == [(3, 2, "w")]


def test_null_may_be_allowed_and_a_default_changed() -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("b", pa.int64(), nullable=False)])
    made = rowsieve.create_table(f"memory:///evolving-{uuid.uuid4().hex}", schema)
    made.append(pa.table({"id": [1], "b": [1]}))
    with pytest.raises(SchemaMismatch):
        made.append(pa.table({"id": [2]}))
    made.relax_not_null("b")
    made.append(pa.table({"id": [2]}))
    made.set_default("b", 9)
    made.append(pa.table({"id": [3]}))
    made.add_column("c", "int64", default=1)
    made.set_default("c", 2)
    made.append(pa.table({"id": [4]}))
    made.set_default("c", None)
    made.append(pa.table({"id": [5], "b": [0]}))
    assert rows(made) == [(1, 1, 1), (2, None, 1), (3, 9, 1), (4, 9, 2), (5, 0, None)]
    assert rows(made, "b IS NULL") == [(2, None, 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda t: t.widen_column("i", pa.int16()), "not every value", id="narrower"),
        pytest.param(lambda t: t.widen_column("i", pa.uint64()), "not every value", id="sign"),
        pytest.param(lambda t: t.widen_column("i", pa.float32()), "not every value", id="float"),
        pytest.param(lambda t: t.widen_column("i", pa.string()), "not every value", id="text"),
        pytest.param(
            lambda t: t.widen_column("d", pa.decimal128(3, 3)), "not every value", id="digits"
        ),
        pytest.param(lambda t: t.widen_column("i", "int32"), "this type already", id="same"),
        pytest.param(lambda t: t.widen_column("id", "int64"), "already", id="key"),
        pytest.param(lambda t: t.relax_not_null("id"), "key", id="null in a key"),
        pytest.param(lambda t: t.relax_not_null("i"), "may be NULL already", id="nullable"),
        pytest.param(lambda t: t.reorder_columns(["i", "I"]), "twice", id="twice"),
        pytest.param(lambda t: t.reorder_columns(["id"]), "already", id="same order"),
        pytest.param(lambda t: t.set_default("i", None), "already", id="same default"),
    ],
)
def test_a_wider_change_that_is_not_allowed_says_why(
    change: Callable[[Table], Any], words: str
) -> None:
    made = rowsieve.create_table(
        f"memory:///evolving-{uuid.uuid4().hex}", NARROW.slice(0, 0).schema, key=["id"]
    )
    with pytest.raises(InvalidSchemaChange, match=words):
        change(made)
    assert made.refresh() == 0


def test_an_older_reader_refuses_the_table_from_that_version_on(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.add_column("c", pa.int64(), default=1)
    monkeypatch.setattr("rowsieve.storage.log.log_entry.FEATURES", frozenset())
    assert rowsieve.open_table(table.uri, version=0).count() == 3
    with pytest.raises(UnsupportedProtocol, match="schema_changes"):
        rowsieve.open_table(table.uri)


def test_a_file_that_lacks_a_column_of_its_schema_is_damaged(table: Table) -> None:
    snapshot = table.handle.pinned
    field = Field(99, "lost", Int(64))
    schema = Schema(snapshot.schema.id, (*snapshot.schema.fields, field))
    wrong = dataclasses.replace(snapshot, schema=schema)
    with pytest.raises(CorruptData, match="lacks column 'lost'"):
        Scan(table.handle.store, wrong).to_arrow()


def test_ids_never_go_back(table: Table) -> None:
    for _ in range(3):
        table.add_column("c", pa.int64())
        table.drop_column("c")
    snapshot = table.handle.pinned
    assert (snapshot.schema.id, snapshot.next_field_id) == (6, 6)
    entry = LogEntry(7, "x", snapshot.commit_id, snapshot.table.uuid, 0, "alter")
    for schema_id, next_id in ((6, 6), (7, 5)):
        schema = Schema(schema_id, snapshot.schema.fields)
        with pytest.raises(CorruptData, match="never go back"):
            replay(snapshot, [dataclasses.replace(entry, schema=schema, next_field_id=next_id)])


def test_a_collector_stays_with_its_column(table: Table) -> None:
    asked = []

    class NoStatistics:
        def __init__(self, field: Field) -> None:
            asked.append(field.name)

        def add(self, values: Values) -> None:
            pass

        def finish(self) -> list[tuple[Subject, ColumnStatistics]]:
            return []

    table.collect_with("b", NoStatistics)
    table.rename_column("b", "c")
    table.add_column("b", pa.int64())
    put(table, pa.table({"a": ["w"], "c": [1], "b": [2]}))
    assert asked == ["c"]


def test_a_key_column_is_renamed_with_its_key() -> None:
    made = rowsieve.create_table(
        f"memory:///evolving-{uuid.uuid4().hex}",
        pa.table({"a": [1, 1], "b": ["x", "y"], "v": [1, 2]}),
        key=["a", "b"],
        properties={"checkpoint_interval": "3"},
    )
    other = rowsieve.open_table(made.uri)
    made.rename_column("b", "c")
    assert made.key == ("a", "c")
    made.upsert(pa.table({"a": [1, 2], "c": ["y", "z"], "v": [3, 4]}))
    assert rows(made, "c = 'y'") == [(1, "y", 3)]
    assert made.delete(keys=pa.table({"a": [1], "c": ["x"]})).committed
    made.update({"v": "v + 1"}, where="c = 'z'")
    assert made.compact().committed
    assert rows(made) == [(1, "y", 3), (2, "z", 5)]
    assert made.head(1).column("c").to_pylist() == ["y"]
    with pytest.raises(CommitConflict):
        other.upsert(pa.table({"a": [1], "b": ["y"], "v": [9]}))
    other.upsert(pa.table({"a": [1], "c": ["y"], "v": [9]}))
    made.refresh()
    made.set_properties({"checkpoint_interval": "2"})
    made.restore(0)
    assert rowsieve.open_table(made.uri).key == ("a", "c")
    assert rowsieve.open_table(made.uri, version=0).key == ("a", "b")
    assert rows(made) == [(1, "x", 1), (1, "y", 2)]
    with made.alter() as change:
        change.rename_column("a", "x").rename_column("c", "a").rename_column("x", "c")
    assert made.key == ("c", "a")
    made.upsert(pa.table({"a": ["y"], "c": [1], "v": [7]}))
    assert rows(made, "a = 'y' AND c = 1") == [(1, "y", 7)]
    with pytest.raises(InvalidSchemaChange, match="key"):
        made.drop_column("a")


def test_an_entry_that_gives_the_table_another_key_is_damage() -> None:
    made = rowsieve.create_table(
        f"memory:///evolving-{uuid.uuid4().hex}", pa.table({"a": [1], "b": [1]}), key=["a"]
    )
    snapshot = made.handle.pinned
    swapped = tuple(
        dataclasses.replace(field, name={"a": "b", "b": "a"}[field.name])
        for field in snapshot.schema
    )
    entry = LogEntry(
        1,
        "x",
        snapshot.commit_id,
        snapshot.table.uuid,
        0,
        "alter",
        schema=Schema(1, swapped),
        next_field_id=3,
    )
    with pytest.raises(CorruptData, match="immutable"):
        replay(snapshot, [entry])
