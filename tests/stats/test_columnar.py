"""Statistics from a manifest's columns: the interpreter never assumes more than they say."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.ir import BoundColumn
from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.tabulate import statistics_columns
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import (
    Decimal,
    Field,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.small_tables import apply, fresh_uri, keyed, kv, pairs

SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "x", Float()),
        Field(3, "s", String()),
        Field(4, "j", Json()),
    ),
)


def parts_of(
    *parts: tuple[int, int, dict[Subject, ColumnStatistics]], schema: Schema = SCHEMA
) -> PartTable:
    rows, deletes, statistics = zip(*parts, strict=True)
    counts = {
        "data.rows": pa.array(rows, pa.int64()),
        "deletes.rows": pa.array(deletes, pa.int64()),
        "key.1.lower": pa.nulls(len(rows), pa.int64()),
    }
    return PartTable(pa.table({**counts, **statistics_columns(list(statistics), schema)}))


def known(parts: PartTable, name: str, schema: Schema = SCHEMA) -> AbstractColumn:
    field = schema.field(name)
    found = PartStatistics(parts, schema).column(BoundColumn(field.id, field.name, field.type))
    assert found is not None
    return found


def bounds(column: AbstractColumn) -> list[tuple[Any, Any]]:
    return list(zip(column.lower.to_pylist(), column.upper.to_pylist(), strict=True))


def scalar(value: float | None) -> pa.Scalar | None:
    return None if value is None else pa.scalar(value)


def ints(null_count: int | None, lower: int | None, upper: int | None) -> ColumnStatistics:
    return ColumnStatistics(null_count, None, scalar(lower), scalar(upper))


def floats(
    null_count: int | None, nan_count: int | None, lower: float | None, upper: float | None
) -> ColumnStatistics:
    return ColumnStatistics(null_count, nan_count, scalar(lower), scalar(upper))


def test_known_bounds_and_counts_are_passed_on() -> None:
    found = known(parts_of((5, 0, {1: ints(0, 3, 9)}), (5, 0, {1: ints(0, 4, None)})), "id")
    assert bounds(found) == [(3, 9), (4, None)]
    assert found.empty.tolist() == [False, False]
    assert found.may_be_null.tolist() == [False, False]


def test_t21_absent_is_not_empty() -> None:
    found = known(parts_of((5, 0, {}), (5, 0, {2: floats(5, 0, None, None)})), "x")
    assert found.empty.tolist() == [False, True]
    assert found.may_be_null.tolist() == [True, True]
    assert found.may_be_nan is not None
    assert found.may_be_nan.tolist() == [True, False]
    assert bounds(found) == [(None, None), (None, None)]


def test_t13_possible_nan_has_no_upper_bound() -> None:
    found = known(
        parts_of(
            (5, 0, {2: floats(0, 0, 1.0, 2.0)}),
            (5, 0, {2: floats(0, 1, 1.0, 2.0)}),
            (5, 0, {2: floats(0, None, 1.0, 2.0)}),
        ),
        "x",
    )
    assert bounds(found) == [(1.0, 2.0), (1.0, None), (1.0, None)]
    assert found.may_be_nan is not None
    assert found.may_be_nan.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "contradiction",
    [
        floats(0, 0, 2.0, 1.0),
        floats(0, 0, math.nan, 1.0),
        floats(6, 0, 1.0, 2.0),
        floats(3, 3, 1.0, 2.0),
        floats(0, 6, 1.0, 2.0),
    ],
)
def test_facts_that_contradict_each_other_are_not_believed(contradiction: ColumnStatistics) -> None:
    found = known(parts_of((5, 0, {2: contradiction}), (5, 0, {2: floats(0, 0, 1.0, 2.0)})), "x")
    assert bounds(found) == [(None, None), (1.0, 2.0)]
    assert found.empty.tolist() == [False, False]


def test_contradictions_are_counted_once() -> None:
    parts = parts_of(
        (5, 0, {1: ints(0, 3, 9), 2: floats(0, 0, 2.0, 1.0)}),
        (5, 0, {1: ints(6, 3, 9), 2: floats(3, 3, 2.0, 1.0)}),
        (5, 0, {}),
    )
    statistics = PartStatistics(parts, SCHEMA)
    for _ in range(2):
        for field in SCHEMA.fields[:2]:
            statistics.column(BoundColumn(field.id, field.name, field.type))
    assert statistics.contradictions == 3


def of_type(type_: pa.DataType, lower: Any, upper: Any) -> ColumnStatistics:
    return ColumnStatistics(0, None, pa.scalar(lower, type_), pa.scalar(upper, type_))


@pytest.mark.parametrize(
    ("type_", "inverted"),
    [
        pytest.param(Int(64), of_type(pa.int64(), 9, 3), id="int64"),
        pytest.param(
            Decimal(5, 2),
            of_type(pa.decimal128(5, 2), decimal.Decimal("1.01"), decimal.Decimal(1)),
            id="decimal",
        ),
        pytest.param(String(), of_type(pa.string(), "b", "a"), id="string"),
        pytest.param(Uuid(), of_type(pa.binary(16), b"b" * 16, b"a" * 16), id="uuid"),
        pytest.param(Timestamp(), of_type(pa.timestamp("us"), 2, 1), id="timestamp"),
    ],
)
def test_inverted_bounds_of_any_type_are_ignored(
    type_: LogicalType, inverted: ColumnStatistics
) -> None:
    schema = Schema(0, (Field(1, "c", type_),))
    statistics = PartStatistics(parts_of((5, 0, {1: inverted}), schema=schema), schema)
    found = statistics.column(BoundColumn(1, "c", type_))
    assert found is not None
    assert bounds(found) == [(None, None)]
    assert statistics.contradictions == 1


@pytest.mark.parametrize(("lower", "upper"), [(math.nan, 1.0), (1.0, math.nan)])
def test_a_nan_bound_is_ignored(lower: float, upper: float) -> None:
    found = known(parts_of((5, 0, {2: floats(0, 0, lower, upper)})), "x")
    assert all(value is None or not math.isnan(value) for value in bounds(found)[0])


def test_negative_counts_are_unknown() -> None:
    found = known(parts_of((5, 0, {2: floats(-1, -1, 1.0, 2.0)})), "x")
    assert found.may_be_null.tolist() == [True]
    assert found.may_be_nan is not None
    assert found.may_be_nan.tolist() == [True]
    assert bounds(found) == [(1.0, None)]


def test_t4_a_part_of_tombstones_is_not_empty_on_its_key() -> None:
    parts = parts_of((0, 2, {1: ints(0, 3, 9)}))
    assert known(parts, "id").empty.tolist() == [False]
    assert bounds(known(parts, "id")) == [(3, 9)]


def test_t1_only_requested_columns_are_known() -> None:
    parts = parts_of((5, 0, {1: ints(0, 3, 9), 2: floats(0, 0, 1.0, 2.0)}))
    view = PartStatistics(parts, SCHEMA).only({1})
    assert view.part_count == 1
    assert view.column(BoundColumn(1, "id", Int())) is not None
    assert view.column(BoundColumn(2, "x", Float())) is None


def test_a_column_that_the_schema_lacks_is_unknown() -> None:
    parts = parts_of((5, 0, {}))
    assert PartStatistics(parts, SCHEMA).column(BoundColumn(99, "gone", Int())) is None


def test_t19_bounds_of_another_type_are_not_believed() -> None:
    parts = parts_of((5, 0, {1: ints(0, 3, 9)}))
    changed = Schema(1, (Field(1, "id", Timestamp()),))
    found = known(parts, "id", changed)
    assert found.lower.type == pa.timestamp("us")
    assert bounds(found) == [(None, None)]


def test_types_without_an_order_have_no_bounds() -> None:
    found = known(parts_of((5, 0, {4: ColumnStatistics(5)}), (5, 0, {4: ColumnStatistics(0)})), "j")
    assert bounds(found) == [(None, None)] * 2
    assert found.empty.tolist() == [True, False]
    assert found.may_be_null.tolist() == [True, False]


def test_no_parts_and_parts_in_chunks() -> None:
    none = parts_of((5, 0, {1: ints(0, 3, 9)})).table.slice(0, 0)
    assert bounds(known(PartTable(none), "id")) == []
    one = parts_of((5, 0, {1: ints(0, 3, 9)})).table
    found = known(PartTable(pa.concat_tables([one, one])), "id")
    assert bounds(found) == [(3, 9), (3, 9)]


cells = st.fixed_dictionaries(
    {
        "id": st.integers(-3, 3),
        "x": st.none() | st.sampled_from([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan]),
        "s": st.none() | st.text(max_size=3) | st.just("\U0010ffff" * 60),
        "j": st.none() | st.just("{}"),
    }
)


@given(st.lists(st.lists(cells, max_size=5), min_size=1, max_size=4))
@examples(200)
def test_statistics_hold_for_the_rows_they_were_collected_from(
    parts: list[list[dict[str, Any]]],
) -> None:
    collected = []
    for rows in parts:
        collector = StatisticsCollector(SCHEMA)
        collector.add(pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA)))
        collected.append((len(rows), 0, collector.finish()))
    for field in SCHEMA:
        found = known(parts_of(*collected), field.name)
        for i, rows in enumerate(parts):
            values = [row[field.name] for row in rows]
            present = [value for value in values if value is not None]
            assert found.empty[i] == (not present)
            assert found.may_be_null[i] == (len(present) < len(values))
            is_nan = np.array([isinstance(v, float) and math.isnan(v) for v in present], dtype=bool)
            assert found.may_be_nan is not None
            if isinstance(field.type, Float):
                assert found.may_be_nan[i] == is_nan.any()
            lower, upper = found.lower[i].as_py(), found.upper[i].as_py()
            assert lower is None or all(
                lower <= v for v, nan in zip(present, is_nan, strict=True) if not nan
            )
            assert upper is None or all(v <= upper for v in present)
            if is_nan.any():
                assert upper is None


NAN = float("nan")


@pytest.mark.parametrize(
    ("type_", "keys", "where"),
    [
        (pa.int64(), [[-5, 5], [7, 9], [20, 21]], ["k = 7", "k < -5", "k >= 20", "k <> 5"]),
        (pa.string(), [["a", "b"], ["x" * 150, "x" * 151], ["\U0010ffff" * 60]], ["k > 'x'"]),
        (pa.string(), [["a", "b"], ["m"], ["x" * 150]], ["k = 'm'", f"k = '{'x' * 150}'"]),
        (pa.float64(), [[-0.0, 1.0], [2.0, NAN], [3.0, 4.0]], ["k = 0", "k > 2", "k = 'NaN'"]),
    ],
    ids=["int64", "long text", "text", "float64"],
)
def test_first_and_last_keys_bound_a_column_without_statistics(
    type_: pa.DataType, keys: list[list[object]], where: list[str]
) -> None:
    schema = pa.schema([pa.field("k", type_, nullable=False), pa.field("v", pa.int64())])
    table = keyed(schema=schema, properties={"statistics": "off"})
    for part in keys:
        table.upsert(pa.table({"k": part, "v": [1] * len(part)}, schema=schema))
    for text in where:
        found = table.scan(text).to_arrow()["k"].to_pylist()
        assert repr(found) == repr(table.scan(text, pruning="soft").to_arrow()["k"].to_pylist())
    explained = table.scan(where[0]).explain()
    assert explained.parts_read < 3
    assert "[?, ?]" not in str(explained)


def test_t4_first_and_last_keys_include_tombstones() -> None:
    table = keyed({"k": [1, 50, 100], "v": [1, 1, 1]}, properties={"statistics": "off"})
    apply(table, ("u", 60, 1), ("d", 1, None), ("d", 100, None))
    table.upsert(kv((200, 1)))
    assert pairs(table, "k = 1 OR k = 100") == []
    assert table.scan("k < 50").explain().parts_read == 2
    assert table.scan("v = 5").explain().parts_read == 3


def test_later_key_columns_are_not_in_order() -> None:
    rows = pa.table({"a": [1, 2, 3], "b": [9, 5, 9]})
    properties = {"statistics": "off"}
    table = rowsieve.create_table(fresh_uri(), rows, key=["a", "b"], properties=properties)
    assert table.scan("b = 5").to_arrow()["a"].to_pylist() == [2]
    assert table.scan("a = 4").explain().parts_read == 0


def test_a_column_is_nan_alone_only_where_all_rows_are_counted() -> None:
    counts = [(0, 3), (1, 2), (0, 2), (None, 3), (0, None), (3, 0), (0, 4)]
    parts: list[tuple[int, int, dict[Subject, ColumnStatistics]]] = [
        (3, 0, {2: ColumnStatistics(nulls, nans)}) for nulls, nans in counts
    ]
    column = known(parts_of(*parts), "x")
    assert column.all_nan is not None
    assert column.all_nan.tolist() == [True, True, False, False, False, False, False]
