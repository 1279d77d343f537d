"""Changes of columns beside other commits: each row of the conflict matrix, with a real race.

The other commit is published after ours has read the head and before ours is put.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import CommitConflict, InvalidInput
from tests.small_tables import overtake

Do = Callable[[Table], Any]
ROWS = pa.table({"id": [1, 2], "b": [5, 6]})
NEW = pa.table({"id": [2, 3], "b": [7, 8]})


def made(*, keyed: bool = True) -> Table:
    uri = f"memory:///races-{uuid.uuid4().hex}"
    table = rowsieve.create_table(uri, ROWS, key=["id"] if keyed else None)
    other = pa.table({"id": [1], "b": [5]}) if keyed else ROWS
    if keyed:
        table.upsert(other)
    else:
        table.append(other)
    return table


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def drop_and_add(table: Table) -> None:
    table.drop_column("b")
    table.add_column("b", "int64", default=50)


BLIND: list[Any] = [
    pytest.param(lambda t: t.upsert(NEW), [(1, 5), (2, 7), (3, 8)], id="upsert"),
    pytest.param(
        lambda t: t.apply_changes(
            NEW.append_column("op", pa.array(["u", "u"])).append_column("n", pa.array([1, 2])),
            op="op",
            sequence="n",
        ),
        [(1, 5), (2, 7), (3, 8)],
        id="apply",
    ),
    pytest.param(lambda t: t.compact(), [(1, 5), (2, 6)], id="compact"),
    pytest.param(lambda t: t.delete(keys=pa.table({"id": [2]})), [(1, 5)], id="delete_keys"),
    pytest.param(lambda t: t.overwrite(NEW), [(2, 7), (3, 8)], id="overwrite"),
]


@pytest.mark.parametrize(("ours", "expected"), BLIND)
def test_what_was_written_before_a_column_was_added_has_its_default(
    monkeypatch: pytest.MonkeyPatch, ours: Do, expected: list[tuple[int, int]]
) -> None:
    table = made()
    overtake(table, monkeypatch, lambda t: t.add_column("c", "int64", default=1, after="id"))
    ours(table)
    assert rows(table) == [(id_, 1, b) for id_, b in expected]


@pytest.mark.parametrize(("ours", "expected"), BLIND)
def test_what_was_written_before_a_column_was_renamed_is_found(
    monkeypatch: pytest.MonkeyPatch, ours: Do, expected: list[tuple[int, int]]
) -> None:
    table = made()
    overtake(table, monkeypatch, lambda t: t.rename_column("b", "c"))
    ours(table)
    assert table.schema.names == ["id", "c"]
    assert rows(table) == expected


@pytest.mark.parametrize("ours", [param.values[0] for param in BLIND[:2]])
def test_rows_with_a_column_that_was_dropped_are_refused(
    monkeypatch: pytest.MonkeyPatch, ours: Do
) -> None:
    # invariants, rule 14
    table = made()
    overtake(table, monkeypatch, drop_and_add)
    with pytest.raises(CommitConflict, match="column 'b' was dropped"):
        ours(table)
    table.refresh()
    assert rows(table) == [(1, 50), (2, 50)]


def test_a_compaction_starts_again_after_a_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    overtake(table, monkeypatch, drop_and_add)
    table.compact()
    assert rows(table) == [(1, 50), (2, 50)]
    parts = table.handle.pinned.parts
    assert set(parts.column("schema_id").to_pylist()) == {2}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(lambda t: t.delete("b = 5"), id="delete"),
        pytest.param(lambda t: t.update({"b": "b + 1"}, where="b = 5"), id="update"),
        pytest.param(
            lambda t: t.overwrite(pa.table({"id": [1], "b": [5]}), where="b = 5"), id="overwrite"
        ),
    ],
)
def test_a_change_that_read_rows_is_refused(
    monkeypatch: pytest.MonkeyPatch, ours: Do, keyed: bool
) -> None:
    table = made(keyed=keyed)
    count = table.count()
    overtake(table, monkeypatch, drop_and_add)
    with pytest.raises(CommitConflict):
        ours(table)
    table.refresh()
    assert [row[1] for row in rows(table)] == [50] * count


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("stale", [True, False])
@pytest.mark.parametrize(
    ("ours", "after"),
    [
        pytest.param(lambda t: t.delete("b = 5"), [(2, 6, 1)], id="delete"),
        pytest.param(
            lambda t: t.update({"b": "b + 1"}, where="id = 1"), [(1, 6, 1), (2, 6, 1)], id="update"
        ),
    ],
)
def test_a_change_that_read_other_columns_is_computed_again(
    monkeypatch: pytest.MonkeyPatch,
    ours: Do,
    after: list[tuple[int, int, int]],
    stale: bool,
    keyed: bool,
) -> None:
    rows_ = pa.table({"id": [1, 2], "b": [5, 6], "gone": ["x", "y"]})
    uri = f"memory:///races-{uuid.uuid4().hex}"
    table = rowsieve.create_table(uri, rows_, key=["id"] if keyed else None)

    def theirs(other: Table) -> None:
        with other.alter() as change:
            change.add_column("c", "int64", default=1).drop_column("gone")

    if stale:
        theirs(rowsieve.open_table(uri))
    else:
        overtake(table, monkeypatch, theirs)
    ours(table)
    assert rows(table) == after
    assert table.schema.names == ["id", "b", "c"]


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param(lambda t: t.widen_column("n", "int64"), id="widen"),
        pytest.param(lambda t: t.rename_column("n", "m"), id="rename"),
        pytest.param(lambda t: t.drop_column("n"), id="drop"),
        pytest.param(lambda t: t.add_column("s.y", "int64"), id="field"),
    ],
)
@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(lambda t: t.delete("N > 1 AND s IS NOT NULL"), id="delete"),
        pytest.param(lambda t: t.update({"N": "1"}, where="id = 1 AND s IS NULL"), id="assigned"),
        pytest.param(lambda t: t.update({"b": "n + s.x"}, where="id = 1"), id="computed from"),
    ],
)
def test_a_change_that_read_a_changed_column_is_refused(ours: Do, theirs: Do) -> None:
    data = pa.table(
        {"id": [1], "n": pa.array([2], pa.int32()), "s": [{"x": 1}], "b": pa.array([1])}
    )
    table = rowsieve.create_table(f"memory:///races-{uuid.uuid4().hex}", data, key=["id"])
    theirs(rowsieve.open_table(table.uri))
    with pytest.raises(CommitConflict, match="columns of the table were changed"):
        ours(table)
    assert table.refresh() == 1


@pytest.mark.parametrize(("theirs", "expected"), BLIND)
def test_a_column_is_added_over_what_others_commit(
    monkeypatch: pytest.MonkeyPatch, theirs: Do, expected: list[tuple[int, int]]
) -> None:
    table = made()
    overtake(table, monkeypatch, theirs)
    table.add_column("c", "int64", default=1, after="id")
    assert rows(table) == [(id_, 1, b) for id_, b in expected]


def test_two_changes_of_columns_at_once_are_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    overtake(table, monkeypatch, lambda t: t.add_column("c", "int64"))
    with pytest.raises(CommitConflict, match="columns of the table were changed"):
        table.add_column("d", "int64")


def test_a_property_that_names_a_column_that_was_dropped_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made()
    overtake(table, monkeypatch, lambda t: t.drop_column("b"))
    with pytest.raises(InvalidInput, match="critical_columns"):
        table.set_properties({"critical_columns": "b"})


def test_a_change_of_columns_keeps_properties_that_are_set_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made()
    overtake(table, monkeypatch, lambda t: t.set_properties({"checkpoint_interval": "7"}))
    table.add_column("c", "int64")
    assert table.detail()["properties"]["checkpoint_interval"] == "7"
