"""Streams whose columns change in the middle: new ones, wider types, and some that are gone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import CommitConflict, SchemaMismatch
from tests.small_tables import files, fresh_uri, overtake

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("gone", pa.string()),
    ]
)


@pytest.fixture
def table() -> Table:
    table = rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"])
    table.upsert({"k": [1, 2], "n": [10, 20], "gone": ["x", "y"]})
    return table


def merge(table: Table, rows: Any, **options: Any) -> Any:
    return table.apply_changes(rows, op="op", sequence="lsn", schema_mode="merge", **options)


def stored(table: Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["k"])


BEFORE_AND_AFTER = [
    {"op": "u", "lsn": 1, "k": 1, "n": 11, "gone": "z"},
    {"op": "u", "lsn": 2, "k": 2, "n": 2**40, "new": {"a": 1.5}},
    {"op": "c", "lsn": 3, "k": 3, "n": 30, "new": None},
    {"op": "d", "lsn": 4, "k": 9},
]


def test_events_of_before_and_after_a_change_are_one_commit(table: Table) -> None:
    commit = merge(table, BEFORE_AND_AFTER)
    assert (commit.version, commit.operation, commit.rows_written) == (2, "apply", 3)
    assert table.schema.names == ["k", "n", "gone", "new"]
    assert table.schema.field("n").type == pa.int64()
    assert stored(table) == [
        {"k": 1, "n": 11, "gone": "z", "new": None},
        {"k": 2, "n": 2**40, "gone": None, "new": {"a": 1.5}},
        {"k": 3, "n": 30, "gone": None, "new": None},
    ]
    assert table.scan("n > 2000000000").count() == 1


def test_cutting_at_the_change_gives_the_same_rows(table: Table) -> None:
    other = rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"])
    other.upsert(table.scan().to_arrow())
    merge(table, BEFORE_AND_AFTER)
    for event in BEFORE_AND_AFTER:
        merge(other, [event])
    assert stored(other) == stored(table)


def test_kept_values_meet_new_and_wider_columns(table: Table) -> None:
    rows = [
        {"op": "u", "lsn": 1, "k": 1, "n": 2**31},
        {"op": "u", "lsn": 2, "k": 2, "new": "a"},
        {"op": "u", "lsn": 3, "k": 2, "n": 1},
    ]
    commit = merge(table, rows, missing="keep", combine={"n": "sum"})
    assert commit.version == 2
    assert stored(table) == [
        {"k": 1, "n": 2**31 + 10, "gone": "x", "new": None},
        {"k": 2, "n": 21, "gone": "y", "new": "a"},
    ]
    table.upsert([{"k": 1, "more": Decimal("1.5")}], columns="given", schema_mode="merge")
    assert stored(table)[0] == {
        "k": 1,
        "n": 2**31 + 10,
        "gone": "x",
        "new": None,
        "more": Decimal("1.5"),
    }


def test_a_wider_key_finds_the_rows_of_narrow_keys() -> None:
    schema = pa.schema(
        [pa.field("k", pa.int32(), nullable=False), ("a", pa.int64()), ("b", pa.int64())]
    )
    table = rowsieve.create_table(fresh_uri(), schema, key=["k"])
    table.upsert({"k": [1, 2], "a": [10, 20], "b": [1, 2]})
    rows = [{"op": "u", "lsn": i, "k": k, "a": 5} for i, k in enumerate((1, 2**35))]
    merge(table, rows, missing="keep")
    assert [tuple(row.values()) for row in stored(table)] == [
        (1, 5, 1),
        (2, 20, 2),
        (2**35, 5, None),
    ]


def test_what_is_lacking_gets_its_default(table: Table) -> None:
    table.set_default("n", 7)
    table.set_default("gone", "none")
    merge(
        table,
        [
            {"op": "u", "lsn": 1, "k": 1, "new": 1},
            {"op": "u", "lsn": 2, "k": 2, "n": None, "gone": "z"},
        ],
    )
    merge(table, pa.table({"op": ["u"], "lsn": [3], "k": [4]}))
    assert stored(table) == [
        {"k": 1, "n": 7, "gone": "none", "new": 1},
        {"k": 2, "n": None, "gone": "z", "new": None},
        {"k": 4, "n": 7, "gone": "none", "new": None},
    ]


def test_unchanged_values_stay_where_others_are_filled(table: Table) -> None:
    merge(table, [{"op": "u", "lsn": 1, "k": 1, "u": ["gone"], "new": 1}], unchanged="u")
    assert stored(table)[0] == {"k": 1, "n": None, "gone": "x", "new": 1}
    assert "u" not in table.schema.names


def test_types_are_widened_only_for_values_that_do_not_fit(table: Table) -> None:
    merge(table, pa.table({"op": ["u"], "lsn": [1], "k": [1], "n": pa.array([5], pa.int64())}))
    assert table.schema.field("n").type == pa.int32()
    for call in (
        lambda: table.upsert({"k": [1], "n": [2**35], "gone": ["q"]}, schema_mode="merge"),
        lambda: merge(table, [{"op": "u", "lsn": 1, "k": 1, "n": -(2**35)}]),
    ):
        call()
        assert table.schema.field("n").type == pa.int64()


def test_unrelated_types_and_missing_columns_are_refused(table: Table) -> None:
    before = files(table)
    with pytest.raises(SchemaMismatch, match="'n' is int32 in the table, but string"):
        merge(table, [{"op": "u", "lsn": 1, "k": 1, "n": "text", "new": 1}])
    with pytest.raises(SchemaMismatch, match="lacks columns 'n', 'gone'"):
        table.upsert({"k": [1], "new": [1]}, schema_mode="merge")
    assert files(table) == before
    table.add_column("need", pa.int64(), nullable=False, default=0)
    table.set_default("need", None)
    with pytest.raises(SchemaMismatch, match="'need'"):
        merge(table, [{"op": "u", "lsn": 1, "k": 1, "new": 1}])
    assert "new" not in table.schema.names


def test_columns_that_another_commit_changes_meanwhile_are_a_conflict(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtake(table, monkeypatch, lambda other: other.add_column("q", pa.int64()))
    with pytest.raises(CommitConflict):
        merge(table, BEFORE_AND_AFTER, missing="keep")
    assert [row["n"] for row in stored(rowsieve.open_table(table.uri))] == [10, 20]


def test_rows_of_another_commit_meanwhile_are_read_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtake(
        table,
        monkeypatch,
        lambda other: other.upsert([{"k": 1, "n": 1}], columns="given", combine={"n": "sum"}),
    )
    merge(
        table,
        [{"op": "u", "lsn": 1, "k": 1, "n": 2**33, "new": 1}],
        missing="keep",
        combine={"n": "sum"},
    )
    assert stored(table)[0] == {"k": 1, "n": 2**33 + 11, "gone": "x", "new": 1}
