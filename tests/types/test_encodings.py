"""Logical types as Arrow types and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import SchemaMismatch
from rowsieve.types.encodings import (
    EXTENSION_KEY,
    UUID_EXTENSION,
    arrow_schema,
    arrow_type,
    schema_of,
    schema_of_arrow,
)
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples

FLAT: list[LogicalType] = [
    Bool(),
    *(Int(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    Float(32),
    Float(64),
    Decimal(38, 0),
    Decimal(10, 2),
    Decimal(5, 5),
    String(),
    Binary(),
    Date(),
    Time(),
    Timestamp(utc=False),
    Timestamp(utc=True),
    Uuid(),
    Json(),
    Interval(),
    Numeric(),
]


def _nested(inner: st.SearchStrategy[LogicalType]) -> st.SearchStrategy[LogicalType]:
    field = st.builds(lambda type_, null: Field(0, "item", type_, null), inner, st.booleans())
    key = st.builds(lambda type_: Field(0, "key", type_, nullable=False), st.sampled_from(FLAT))
    value = st.builds(lambda type_, null: Field(0, "value", type_, null), inner, st.booleans())
    members = st.lists(inner, min_size=1, max_size=3).map(
        lambda types: tuple(Field(0, f"m{i}", type_) for i, type_ in enumerate(types))
    )
    return st.builds(List, field) | st.builds(Struct, members) | st.builds(Map, key, value)


types = st.recursive(st.sampled_from(FLAT), _nested, max_leaves=6)


@given(st.lists(st.tuples(types, st.booleans()), min_size=1, max_size=4))
@examples(200)
def test_a_schema_survives_arrow(columns: list[tuple[LogicalType, bool]]) -> None:
    fields = [Field(0, f"c{i}", type_, null) for i, (type_, null) in enumerate(columns)]
    numbered, next_id = schema_of(arrow_schema(Schema(0, tuple(fields))))
    again, again_next_id = schema_of(arrow_schema(numbered))
    assert again == numbered
    assert again_next_id == next_id
    assert [arrow_type(field.type) for field in numbered] == [
        arrow_type(field.type) for field in fields
    ]


def test_ids_count_from_one_depth_first() -> None:
    schema, next_id = schema_of(
        pa.schema(
            [
                ("a", pa.int8()),
                ("l", pa.list_(pa.struct([("x", pa.float16()), ("y", pa.decimal256(20, 3))]))),
                ("m", pa.map_(pa.string(), pa.list_(pa.int64()))),
            ]
        ),
        not_null=["a"],
    )
    assert schema.fields == (
        Field(1, "a", Int(8), nullable=False),
        Field(
            2,
            "l",
            List(
                Field(3, "item", Struct((Field(4, "x", Float(32)), Field(5, "y", Decimal(20, 3)))))
            ),
        ),
        Field(
            6,
            "m",
            Map(
                Field(7, "key", String(), nullable=False),
                Field(8, "value", List(Field(9, "item", Int()))),
            ),
        ),
    )
    assert next_id == 10


@pytest.mark.parametrize(
    ("arrow", "logical"),
    [
        (pa.large_string(), String()),
        (pa.string_view(), String()),
        (pa.dictionary(pa.int8(), pa.string()), String()),
        (pa.large_binary(), Binary()),
        (pa.binary_view(), Binary()),
        (pa.binary(7), Binary()),
        (pa.binary(16), Binary()),
        (pa.uuid(), Uuid()),
        (pa.json_(), Json()),
        (pa.date64(), Date()),
        (pa.time32("s"), Time()),
        (pa.time64("ns"), Time()),
        (pa.timestamp("s"), Timestamp()),
        (pa.timestamp("ns", "Asia/Tokyo"), Timestamp(utc=True)),
        (pa.decimal32(5, 2), Decimal(5, 2)),
        (pa.decimal256(38, 2), Decimal(38, 2)),
        (pa.large_list(pa.int8()), List(Field(2, "item", Int(8)))),
        (pa.list_(pa.int8(), 3), List(Field(2, "item", Int(8)))),
        (pa.list_view(pa.int8()), List(Field(2, "item", Int(8)))),
        (pa.month_day_nano_interval(), Interval()),
        (pa.decimal256(39, 0), Numeric()),
        (pa.decimal128(10, -2), Numeric()),
        (pa.duration("ns"), Interval()),
    ],
)
def test_other_layouts_have_the_same_logical_type(arrow: Any, logical: LogicalType) -> None:
    schema, _ = schema_of(pa.schema([("c", arrow)]))
    assert schema.field("c").type == logical


@pytest.mark.parametrize(
    "arrow",
    [
        pa.null(),
        pa.struct([]),
    ],
)
def test_a_type_that_no_column_can_have_is_refused_by_name(arrow: Any) -> None:
    with pytest.raises(SchemaMismatch, match="column 'odd' has the type"):
        schema_of(pa.schema([("odd", arrow)]))


def test_a_name_used_twice_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="more than one column has the name 'a'"):
        schema_of(pa.schema([("a", pa.int8()), ("a", pa.int8())]))
    with pytest.raises(SchemaMismatch, match="of struct 's'"):
        schema_of(pa.schema([("s", pa.struct([("a", pa.int8()), ("a", pa.int8())]))]))


def test_extensions_are_metadata_on_plain_storage() -> None:
    schema, _ = schema_of(pa.schema([("u", pa.uuid()), ("j", pa.json_())]))
    u, j = arrow_schema(schema)
    assert (u.type, j.type) == (pa.binary(16), pa.string())
    assert u.metadata == {
        b"PARQUET:field_id": b"1",
        b"ARROW:extension:name": b"rowsieve.uuid.1",
    }
    assert j.metadata[b"ARROW:extension:name"] == b"rowsieve.json.1"


def test_schemas_that_differ_in_metadata_alone_are_not_taken_for_one_another() -> None:
    """The cache of `schema_of_arrow` has their serialized form as its key."""
    plain = pa.schema([pa.field("u", pa.binary(16))])
    uuids = pa.schema([pa.field("u", pa.binary(16), metadata={EXTENSION_KEY: UUID_EXTENSION})])
    assert plain == uuids
    for _ in range(2):
        assert schema_of_arrow(plain).field("u").type == Binary()
        assert schema_of_arrow(uuids).field("u").type == Uuid()
        assert schema_of_arrow(uuids) == schema_of(uuids)[0]
