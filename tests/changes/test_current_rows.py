"""The current rows of some keys are those that a scan of the whole version has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve import Table
from rowsieve.changes import current_rows as module
from rowsieve.changes.current_rows import CurrentRows, current_rows
from rowsieve.changes.data.ingest import prepare_keys
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import LogicalType, is_ordered
from rowsieve.types.ordering.keys import Key, KeyOrder
from tests.profiles import examples
from tests.small_tables import fresh_uri, keyed, kv
from tests.table_strategies import POOLS

KEY_TYPES = tuple(type_ for type_ in POOLS if is_ordered(type_))


def looked_up(table: Table, keys: pa.Table, columns: tuple[str, ...]) -> tuple[CurrentRows, Any]:
    """The current rows, and the keys in the table's types."""
    snapshot = table.handle.newest
    order = table.handle.order("test")
    keys = prepare_keys(keys, snapshot.schema, order, "test")
    return current_rows(table.handle.store, snapshot, order, keys, columns), keys


def comparable(rows: pa.Table, order: KeyOrder) -> list[Key]:
    """The key of each row as values that are equal where the keys are."""
    columns = order.columns(rows)
    return [columns.key(i) for i in range(len(columns))]


def by_place(current: CurrentRows) -> list[dict[str, Any]]:
    """The row of each key; NULL in all columns where there is none."""
    places = pa.array(current.places, mask=~current.is_present)
    rows: list[dict[str, Any]] = current.rows.take(places).to_pylist()
    return rows


def check(table: Table, keys: pa.Table) -> None:
    """Compare the rows of the keys with those of a scan, by key."""
    order = table.handle.order("test")
    stored = table.scan(pruning="off").to_arrow()
    expected = dict(zip(comparable(stored, order), stored.to_pylist(), strict=True))
    current, prepared = looked_up(table, keys, tuple(stored.column_names))
    by_key = by_place(current)
    for i, key in enumerate(comparable(prepared, order)):
        assert current.is_present[i] == (key in expected)
        if key in expected:
            assert repr(by_key[i]) == repr(expected[key])
        else:
            assert set(by_key[i].values()) == {None}
    assert current.rows.num_rows == int(current.is_present.sum())


@examples(160)
@given(st.data())
def test_rows_are_those_of_a_scan_for_every_type_of_key(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=2))
    names = [f"k{i}" for i in range(len(types))]
    fields = [pa.field(n, _stored(t), nullable=False) for n, t in zip(names, types, strict=True)]
    schema = pa.schema([*fields, pa.field("v", pa.int64())])
    table = rowsieve.create_table(fresh_uri(), schema, key=names)

    def keys() -> dict[str, list[Any]]:
        rows = data.draw(
            st.lists(st.tuples(*[st.sampled_from(POOLS[t]) for t in types]), max_size=6)
        )
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    for number in range(data.draw(st.integers(1, 3))):
        values = keys()
        count = len(values["k0"])
        rows = pa.table({**values, "v": [number * 10 + i for i in range(count)]}, schema=schema)
        table.upsert(rows, on_duplicate="last")
    table.delete(keys=pa.table(keys(), schema=pa.schema(fields)))
    check(table, pa.table(keys(), schema=pa.schema(fields)))


def _stored(type_: LogicalType) -> pa.DataType:
    return arrow_type(type_)


def test_slices_of_keys_and_of_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("a", pa.int64()), ("f", pa.float64()), ("v", pa.int64())])
    table = rowsieve.create_table(fresh_uri(), schema, key=["a", "f"])
    numbers = np.arange(60)
    rows = {"a": numbers % 3, "f": np.where(numbers % 20 == 7, np.nan, numbers / 2), "v": numbers}
    table.upsert(pa.table(rows), on_duplicate="last")
    keys = pa.table({"a": numbers % 4, "f": np.where(numbers % 20 == 8, np.nan, numbers / 2)})
    monkeypatch.setattr(module, "KEYS_AT_ONCE", 7)
    monkeypatch.setattr(module, "_ROWS_BEFORE_FILTER", 2)
    check(table, keys)


def test_keys_may_come_in_any_order_and_columns_be_chosen() -> None:
    table = keyed({"k": [1, 2, 3, 4], "v": [10, 20, 30, 40]}, {"k": [2], "v": [21]})
    handle = table.handle
    keys = pa.table({"k": [4, 9, 2, 1]})
    order = handle.order("test")
    current = current_rows(handle.store, handle.newest, order, keys, ["v"])
    assert current.rows.column_names == ["v"]
    assert by_place(current) == [{"v": 40}, {"v": None}, {"v": 21}, {"v": 10}]
    none = current_rows(handle.store, handle.newest, order, keys.slice(0, 0), ["v"])
    assert (none.rows.num_rows, len(none.places)) == (0, 0)


def test_only_the_parts_and_row_groups_of_the_keys_are_read() -> None:
    table = keyed(*({"k": [n * 10, n * 10 + 9], "v": [n, n]} for n in range(8)))
    snapshot = table.handle.newest
    order = table.handle.order("test")
    condition = module.near_keys(kv((10, 0), (19, 0)), order)
    plan = table.scan(condition).plan()
    assert len(snapshot.parts) == 8
    assert sum(len(piece.reads) for split in plan.splits for piece in split.pieces) == 1


def test_a_range_narrows_float_keys_on_both_sides() -> None:
    schema = pa.schema([pa.field("k", pa.float64(), nullable=False), ("v", pa.int64())])
    table = keyed(schema=schema)
    for n in range(-3, 4):
        table.upsert(pa.table({"k": [float(n), n + 0.5], "v": [n, n]}))
    order = table.handle.order("test")

    def parts_read(*keys: float) -> int:
        condition = module.near_keys(pa.table({"k": list(keys)}), order)
        plan = table.scan(condition).plan()
        return sum(len(piece.reads) for split in plan.splits for piece in split.pieces)

    assert parts_read(1.0, 1.5) == 1
    assert parts_read(0.0) == 1
    assert parts_read(-0.0) == 1
    assert parts_read(float("nan")) == 7
