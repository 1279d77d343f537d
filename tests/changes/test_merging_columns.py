"""Columns that come with the data, or from another schema."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    InvalidSchemaChange,
    KeyViolation,
    SchemaMismatch,
)
from tests.small_tables import overtake

ROWS = pa.table({"id": [1, 2], "b": pa.array([5, 6], pa.int32())})


@pytest.fixture(params=("keyed", "plain"))
def table(request: pytest.FixtureRequest) -> Table:
    key = ["id"] if request.param == "keyed" else None
    return rowsieve.create_table(f"memory:///merging-{uuid.uuid4().hex}", ROWS, key=key)


def put(table: Table, rows: Any, **options: Any) -> Any:
    return table.upsert(rows, **options) if table.key else table.append(rows, **options)


def rows(table: Table, where: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(where).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"c": ["x"], "ID": [3], "b": [7]}),
        [{"id": 3, "b": 7, "c": "x"}],
        {"id": [3], "c": ["x"], "b": [7]},
    ],
    ids=("arrow", "rows", "columns"),
)
def test_columns_of_the_data_are_added_with_its_rows(table: Table, data: Any) -> None:
    with pytest.raises(SchemaMismatch, match="'c'"):
        put(table, data)
    commit = put(table, data, schema_mode="merge")
    assert (commit.version, commit.rows_written, commit.operation) == (
        1,
        1,
        "upsert" if table.key else "append",
    )
    assert rows(table) == [
        {"id": 1, "b": 5, "c": None},
        {"id": 2, "b": 6, "c": None},
        {"id": 3, "b": 7, "c": "x"},
    ]
    assert rows(table, "c = 'x'") == [{"id": 3, "b": 7, "c": "x"}]
    assert rows(table, "c IS NULL AND b = 5") == [{"id": 1, "b": 5, "c": None}]


def test_columns_that_the_data_lacks_keep_their_values(table: Table) -> None:
    """Merging adds columns; it does not replace what the data does not have by NULL."""
    partial = pa.table({"id": [1], "c": ["x"]})
    if table.key:
        for data in (partial, partial.to_pylist(), pa.table({"id": [1]})):
            refusal = "lacks column 'b'.*columns=\"given\" keeps"
            with pytest.raises(SchemaMismatch, match=refusal):
                table.upsert(data, schema_mode="merge")
        assert rows(table) == ROWS.to_pylist()
        table.upsert(partial, schema_mode="merge", columns="given")  # as the refusal says
        assert rows(table) == [{"id": 1, "b": 5, "c": "x"}, {"id": 2, "b": 6, "c": None}]
    else:
        table.append(partial, schema_mode="merge")
        assert table.scan("c = 'x'").to_arrow().to_pylist() == [{"id": 1, "b": None, "c": "x"}]


def test_columns_that_are_there_stay_as_they_are(table: Table) -> None:
    put(table, pa.table({"id": [3], "b": [7]}), schema_mode="merge")
    assert table.schema.field("b").type == pa.int32()
    with pytest.raises(SchemaMismatch, match="int32"):
        put(table, pa.table({"id": [3], "b": ["7"]}), schema_mode="merge")
    put(table, pa.table({"id": pa.array([], pa.int64()), "q": [1][:0]}), schema_mode="merge")
    assert table.schema.names == ["id", "b"]


def test_a_column_is_widened_for_a_value_that_does_not_fit(table: Table) -> None:
    put(table, pa.table({"id": [3], "b": [2**40]}), schema_mode="merge")
    assert table.schema.field("b").type == pa.int64()
    assert [row["b"] for row in rows(table)] == [5, 6, 2**40]
    assert rows(table, "b > 2147483647") == [{"id": 3, "b": 2**40}]


def test_nothing_is_changed_if_the_rows_are_refused() -> None:
    made = rowsieve.create_table(f"memory:///merging-{uuid.uuid4().hex}", ROWS, key=["id"])
    with pytest.raises(KeyViolation):
        made.upsert(pa.table({"id": [3, 3], "b": [1, 1], "c": [1, 2]}), schema_mode="merge")
    assert made.refresh() == 0


def test_another_change_of_columns_meanwhile_is_a_conflict(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtake(table, monkeypatch, lambda t: t.add_column("c", "int64", default=1))
    with pytest.raises(CommitConflict):
        put(
            table,
            pa.table({"id": [3], "b": pa.array([1], pa.int32()), "c": ["x"]}),
            schema_mode="merge",
        )
    assert rowsieve.open_table(table.uri).count() == 2


def test_rows_of_others_meanwhile_do_not_matter(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtake(table, monkeypatch, lambda t: put(t, pa.table({"id": [9], "b": [9]})))
    put(table, pa.table({"id": [3], "b": [1], "c": ["x"]}), schema_mode="merge")
    assert [row["c"] for row in rows(table)] == [None, None, "x", None]


def test_a_change_that_read_rows_is_computed_again_beside_new_columns(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pa.table({"id": [7], "b": [5], "c": ["x"]})
    overtake(table, monkeypatch, lambda t: put(t, other, schema_mode="merge"))
    assert table.delete("b = 5").committed
    assert 7 not in [row["id"] for row in rows(table)]
    assert "c" in table.schema.names


def test_a_table_evolves_towards_a_schema(table: Table) -> None:
    wanted = pa.schema(
        [
            pa.field("c", pa.list_(pa.int8())),
            pa.field("B", pa.int64()),
            pa.field("d", pa.decimal128(5, 2)),
        ]
    )
    table.evolve(wanted)
    assert [(f.name, str(f.type)) for f in table.schema.remove_metadata()][1:] == [
        ("b", "int64"),
        ("c", "list<item: int8>"),
        ("d", "decimal128(5, 2)"),
    ]
    assert table.evolve(wanted).committed is False
    assert table.evolve(pa.schema([("b", pa.int8())])).committed is False
    assert rows(table, "b = 5 AND d IS NULL")[0]["id"] == 1
    for type_ in (pa.string(), pa.float64()):
        with pytest.raises(InvalidSchemaChange, match="'b'"):
            table.evolve(pa.schema([("e", pa.int64()), ("b", type_)]))
    with pytest.raises(InvalidSchemaChange, match="'c"):
        table.evolve(pa.schema([("c", pa.list_(pa.string()))]))
    assert "e" not in table.schema.names


def test_a_schema_does_not_disallow_null(table: Table) -> None:
    required = pa.field("n", pa.int64(), nullable=False)
    for wanted in (required, pa.field("s", pa.struct([pa.field("a", pa.int8()), required]))):
        table.add_column("s", pa.struct([("a", pa.int8())])) if "s" in wanted.name else None
        with pytest.raises(InvalidSchemaChange, match="NOT NULL without a default"):
            table.evolve(pa.schema([wanted]))
    with pytest.raises(InvalidSchemaChange, match="'b' may be NULL"):
        table.evolve(pa.schema([pa.field("b", pa.int64(), nullable=False)]))
    assert table.evolve(table.schema).committed is False
    assert table.evolve(pa.schema([("id", pa.int64())])).committed is False
    assert not table.schema.field("id").nullable or not table.key
