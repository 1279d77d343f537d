"""What is read from the statistics of row groups: the right bounds in every type, or nothing."""

from __future__ import annotations

import decimal
import gc
import io
import math
from typing import Any
from weakref import ref

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.leaf_columns import file_columns
from rowsieve.parquet.statistics.row_groups import (
    _JOINED,
    RowGroupStatistics,
    joined_row_groups,
)
from rowsieve.parquet.stored_forms import FORMAT_KEY
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.ir import BoundColumn
from rowsieve.types.encodings import arrow_schema, arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    Map,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.parquet.files import written
from tests.strategies import arrow_array, as_decimal

LIMIT_38 = 10**38 - 1
EXTREMES: tuple[tuple[LogicalType, list[Any]], ...] = (
    (Bool(), [False, True]),
    (Int(8), [-128, -1, 0, 127]),
    (Int(16), [-32768, 0, 32767]),
    (Int(32), [-(2**31), -1, 2**31 - 1]),
    (Int(64), [-(2**63), 0, 2**63 - 1]),
    (Int(8, signed=False), [0, 127, 128, 255]),
    (Int(16, signed=False), [0, 32768, 65535]),
    (Int(32, signed=False), [0, 2**31 - 1, 2**31, 2**32 - 1]),
    (Int(64, signed=False), [0, 2**63 - 1, 2**63, 2**64 - 1]),
    (Float(32), [-math.inf, -1.5, 2.5]),
    (Float(64), [-1e300, 5e-324, math.inf]),
    (Decimal(1, 0), [as_decimal(-9, 0), as_decimal(9, 0)]),
    (Decimal(6, 2), [as_decimal(-999_999, 2), as_decimal(1, 2)]),
    (Decimal(18, 4), [as_decimal(-1, 4), as_decimal(10**18 - 1, 4)]),
    (Decimal(38, 10), [as_decimal(-LIMIT_38, 10), as_decimal(LIMIT_38, 10)]),
    (String(), ["", "Z", "a", "é", "\ue000", "\U0010ffff"]),
    (Binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff\xff"]),
    (Date(), [-719_162, -1, 0, 2_932_896]),
    (Time(), [0, 86_399_999_999]),
    (Timestamp(), [-62_135_596_800_000_000, -1, 253_402_300_799_999_999]),
    (Timestamp(utc=True), [-1, 0, 1]),
    (Uuid(), [bytes(16), b"\x7f" * 16, b"\x80" * 16, b"\xff" * 16]),
)
named = pytest.mark.parametrize(("type_", "values"), EXTREMES, ids=lambda it: str(it)[:40])


def schema_of_one(type_: LogicalType) -> Schema:
    return Schema(1, (Field(3, "c", type_),))


def batch(values: list[Any], type_: LogicalType) -> pa.RecordBatch:
    return pa.record_batch({"c": arrow_array(values, type_)})


def known(metadata: pq.FileMetaData, schema: Schema, **options: Any) -> AbstractColumn | None:
    field = schema.fields[0]
    statistics = RowGroupStatistics(metadata, schema, **options)
    return statistics.column(BoundColumn(field.id, field.name, field.type))


def footer_of(type_: LogicalType, groups: list[list[Any]]) -> pq.FileMetaData:
    return read_footer(written(schema_of_one(type_), [batch(group, type_) for group in groups]))


@named
def test_bounds_are_the_least_and_the_greatest_value(type_: LogicalType, values: list[Any]) -> None:
    """`values` ascend."""
    groups = [values, values[:1], [values[-1], None], [None, None], values[::-1]]
    found = known(footer_of(type_, groups), schema_of_one(type_))
    assert found is not None
    first, last = values[0], values[-1]
    assert found.lower.equals(arrow_array([first, first, last, None, first], type_))
    assert found.upper.equals(arrow_array([last, first, last, None, last], type_))
    assert found.empty.tolist() == [False, False, False, True, False]
    assert found.may_be_null.tolist() == [False, False, True, True, False]
    if isinstance(type_, Float):
        assert found.may_be_nan is not None
        assert not found.may_be_nan.any()


@pytest.mark.parametrize("precision", [5, 9, 10, 18])
def test_decimals_stored_as_integers(precision: int) -> None:
    schema = schema_of_one(Decimal(precision, 2))
    values = [as_decimal(-(10**precision) + 1, 2), as_decimal(7, 2), None]
    table = pa.table([pa.array(values, pa.decimal128(precision, 2))], arrow_schema(schema))
    metadata = foreign(table, store_decimal_as_integer=True)
    assert metadata.row_group(0).column(0).physical_type in ("INT32", "INT64")
    found = known(metadata, schema)
    assert found is not None
    assert (found.lower[0].as_py(), found.upper[0].as_py()) == (values[0], values[1])


def foreign(
    table: pa.Table, *, marks: dict[bytes, bytes] | None = None, **options: Any
) -> pq.FileMetaData:
    """The footer of a file that another writer made, marked as one of ours unless told."""
    sink = io.BytesIO()
    marked = table.replace_schema_metadata({FORMAT_KEY: b"1"} if marks is None else marks)
    pq.write_table(marked, sink, **options)
    return read_footer(sink.getvalue())


def test_statistics_of_a_file_without_our_mark_are_unknown() -> None:
    schema = schema_of_one(Int())
    table = pa.table([pa.array([1, 2])], arrow_schema(schema))
    assert known(foreign(table), schema) is not None
    assert known(foreign(table, marks={}), schema) is None
    assert known(foreign(table, marks={FORMAT_KEY: b"4"}), schema) is None


def test_a_float_column_with_nan_in_any_group_may_be_nan_in_all() -> None:
    found = known(footer_of(Float(), [[1.0, 2.0], [math.nan, 1.0]]), schema_of_one(Float()))
    assert found is not None
    assert found.may_be_nan is not None
    assert found.may_be_nan.all()
    assert found.upper.null_count == 2


def test_signed_zeros_are_one_value() -> None:
    found = known(footer_of(Float(), [[0.0], [-0.0]]), schema_of_one(Float()))
    assert found is not None
    assert found.lower.to_pylist() == [0.0, 0.0]
    assert found.upper.to_pylist() == [0.0, 0.0]


def test_values_too_long_for_statistics_have_no_bounds() -> None:
    found = known(footer_of(String(), [["x" * 5000, "y"], ["a", "b"]]), schema_of_one(String()))
    assert found is not None
    assert found.lower.to_pylist() == [None, "a"]
    assert found.upper.to_pylist() == [None, "b"]
    assert found.empty.tolist() == [False, False]


def test_missing_statistics_are_unknown() -> None:
    schema = schema_of_one(Int())
    table = pa.table([pa.array([1, None])], arrow_schema(schema))
    found = known(foreign(table, write_statistics=False), schema)
    assert found is not None
    assert found.lower.null_count == found.upper.null_count == 1
    assert found.may_be_null.all()
    assert not found.empty.any()


def test_a_column_is_found_by_its_id_whatever_its_name() -> None:
    metadata = footer_of(Int(), [[1, 2]])
    assert known(metadata, Schema(2, (Field(3, "renamed", Int()),))) is not None
    assert known(metadata, Schema(2, (Field(4, "c", Int()),))) is None


def test_only_known_columns_are_known() -> None:
    metadata = footer_of(Int(), [[1, 2]])
    assert known(metadata, schema_of_one(Int()), known=[3]) is not None
    assert known(metadata, schema_of_one(Int()), known=[4]) is None


@pytest.mark.parametrize(
    ("old", "values", "new"),
    [
        (Int(32), [-5, 7], Int(64)),
        (Int(8, signed=False), [200, 255], Int(16)),
        (Float(32), [-1.5, 2.5], Float(64)),
        (Decimal(6, 2), [as_decimal(-150, 2), as_decimal(99, 2)], Decimal(9, 4)),
    ],
)
def test_bounds_follow_a_widened_type(
    old: LogicalType, values: list[Any], new: LogicalType
) -> None:
    found = known(footer_of(old, [values]), schema_of_one(new))
    assert found is not None
    assert found.lower.type == arrow_type(new)
    assert (found.lower[0].as_py(), found.upper[0].as_py()) == tuple(values)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Int(64), Int(32)),
        (Int(8), Int(8, signed=False)),
        (Int(8, signed=False), Int(8)),
        (Decimal(6, 2), Decimal(7, 4)),
        (Decimal(6, 2), Decimal(9, 1)),
        (Timestamp(), Timestamp(utc=True)),
        (String(), Binary()),
        (Date(), Int(32)),
    ],
)
def test_a_type_that_does_not_hold_the_old_one_is_unknown(
    old: LogicalType, new: LogicalType
) -> None:
    values: dict[LogicalType, Any] = {String(): "a", Decimal(6, 2): decimal.Decimal(1)}
    assert known(footer_of(old, [[values.get(old, 1)]]), schema_of_one(new)) is None


def test_lists_and_maps_are_unknown_and_do_not_shift_the_others() -> None:
    schema = Schema(
        1,
        (
            Field(1, "l", List(Field(2, "element", Int()))),
            Field(3, "m", Map(Field(4, "key", String(), nullable=False), Field(5, "value", Int()))),
            Field(6, "s.x", Int()),
            Field(7, "s", Struct((Field(8, "x", Int()), Field(9, "y", Json())))),
            Field(10, "j", Json()),
            Field(11, "last", Int()),
        ),
    )
    row = {"l": [1], "m": [("k", 2)], "s.x": 60, "s": {"x": 70, "y": "{}"}, "j": "1", "last": 110}
    table = pa.Table.from_pylist([row], schema=arrow_schema(schema))
    metadata = read_footer(written(schema, [table]))
    assert {field_id: column.name for field_id, column in file_columns(metadata).items()} == {
        6: "s.x",
        8: "x",
        9: "y",
        10: "j",
        11: "last",
    }
    statistics = RowGroupStatistics(metadata, schema)
    bounds = {}
    for field in schema:
        found = statistics.column(BoundColumn(field.id, field.name, field.type))
        bounds[field.name] = found and (found.lower[0].as_py(), found.upper[0].as_py())
    nothing = dict.fromkeys(("l", "m", "s", "j"))
    # The file has no statistics of s.x, whose path is that of the member x of s, too.
    assert bounds == {**nothing, "s.x": (None, None), "last": (110, 110)}


def test_a_file_without_columns_or_groups() -> None:
    empty = Schema(1, ())
    metadata = foreign(pa.table({}))
    assert RowGroupStatistics(metadata, empty).column(BoundColumn(1, "a", Int())) is None
    found = known(footer_of(Int(), []), schema_of_one(Int()))
    assert found is not None
    assert len(found.lower) == len(found.empty) == 0


def test_counts_beyond_the_rows_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A footer that contradicts itself: more NULLs than rows."""
    from rowsieve.parquet.statistics import row_groups

    read = row_groups.read_chunks

    def lying(metadata: Any, column: Any) -> Any:
        chunks = read(metadata, column)
        chunks.nulls[:] = 99
        return chunks

    monkeypatch.setattr(row_groups, "read_chunks", lying)
    found = known(footer_of(Int(), [[1, 2]]), schema_of_one(Int()))
    assert found is not None
    assert found.lower.null_count == 1
    assert found.may_be_null.all()
    assert not found.empty.any()


def test_a_column_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowsieve.parquet.statistics import row_groups

    calls = []
    read = row_groups.read_chunks

    def counting(metadata: Any, column: Any) -> Any:
        calls.append(column)
        return read(metadata, column)

    monkeypatch.setattr(row_groups, "read_chunks", counting)
    statistics = RowGroupStatistics(footer_of(Int(), [[1]]), schema_of_one(Int()))
    column = BoundColumn(3, "c", Int())
    assert statistics.column(column) is statistics.column(column)
    assert len(calls) == 1


def test_joined_statistics_are_kept_for_the_same_footers_schema_and_columns() -> None:
    schema, wider = schema_of_one(Int(32)), schema_of_one(Int(64))
    footers = [footer_of(Int(32), [[i], [i + 1]]) for i in range(3)]
    kept, _ = joined_row_groups(footers[:2], schema)
    assert joined_row_groups(footers[:2], schema)[0] is kept

    def lower(files: list[pq.FileMetaData], schema: Schema, **options: Any) -> Any:
        found = joined_row_groups(files, schema, **options)[0].subject(3)
        return None if found is None else found.lower

    assert lower(footers[:2], schema).to_pylist() == [0, 1, 1, 2]
    assert lower(footers[1:], schema).to_pylist() == [1, 2, 2, 3]
    assert lower(footers[1::-1], schema).to_pylist() == [1, 2, 0, 1]
    assert lower(footers[:2], wider).type == pa.int64()
    assert lower(footers[:2], schema, known=frozenset()) is None  # trap T1
    assert lower(footers[:2], schema, known=frozenset({3})).to_pylist() == [0, 1, 1, 2]


def test_no_footer_takes_the_place_of_one_that_is_gone() -> None:
    schema = schema_of_one(Int(32))
    for i in range(50):  # a new footer often gets the identity of the last one
        found, _ = joined_row_groups([footer_of(Int(32), [[i]])], schema)
        known = found.subject(3)
        assert known is not None
        assert known.lower.to_pylist() == [i]


def test_statistics_that_are_not_used_again_keep_few_footers() -> None:
    """Each version of a table and each folder has other files; their statistics are not needed."""
    schema = schema_of_one(Int(32))
    _JOINED.clear()
    used = footer_of(Int(32), [[1]])
    statistics = [joined_row_groups([used], schema)[0] for _ in range(2)]
    footers: list[ref[pq.FileMetaData]] = []
    for i in range(1_000):
        footer = footer_of(Int(32), [[i]])
        joined_row_groups([footer], schema)
        footers.append(ref(footer))
    del footer
    gc.collect()  # statistics refer to themselves
    assert 0 < sum(each() is not None for each in footers) < 900
    assert _JOINED.usage().size_bytes < 17 * 2**20
    assert joined_row_groups([used], schema)[0] is statistics[0] is statistics[1]
