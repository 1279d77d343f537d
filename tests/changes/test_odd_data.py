"""Data of awkward shapes: what is taken as other layouts are, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData, RowsieveError, SchemaMismatch
from rowsieve.types.encodings import DEEPEST_LEVELS
from tests.small_tables import fresh_uri

ONCE = pa.schema({"id": pa.int64(), "c": pa.string()})


def rows(data: Any, key: list[str] | None) -> list[dict[str, Any]]:
    return list(rs.create_table(fresh_uri(), data, key=key).scan().to_arrow().to_pylist())


def coded(values: pa.DataType, *texts: str | bytes) -> pa.Array:
    indices = pa.array([*range(len(texts)), None], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, values))


@pytest.mark.parametrize("key", [None, ["id"]])
@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["b", "a", None], dtype=pl.Categorical),
        pl.Series(["b", "a", None], dtype=pl.Enum(["b", "a"])),
        pl.Series(["b", "a", None], dtype=pl.String),
    ],
    ids=["categorical", "enum", "string"],
)
def test_categories_of_polars_are_text(column: pl.Series, key: list[str] | None) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "c": column})
    table = rs.create_table(fresh_uri(), frame, key=key)
    assert table.schema.field("c").type == pa.string()
    assert table.scan("c = 'a'").to_arrow().to_pylist() == [{"id": 2, "c": "a"}]
    assert table.scan("c IS NULL").to_arrow().to_pylist() == [{"id": 3, "c": None}]


def test_categories_of_polars_can_be_the_key_and_are_sorted_as_text() -> None:
    for kind in (pl.Categorical, pl.Enum(["b", "a"])):
        frame = pl.DataFrame({"c": pl.Series(["b", "a"], dtype=kind)})
        table = rs.create_table(fresh_uri(), frame, key=["c"])
        assert table.scan(order_by_key=True).to_arrow().to_pylist() == [{"c": "a"}, {"c": "b"}]
        assert table.upsert(frame).rows_written == 2
        assert table.delete(keys=frame).rows_deleted == 2


@pytest.mark.parametrize(
    "values", [pa.string(), pa.large_string(), pa.string_view()], ids=["small", "large", "view"]
)
def test_dictionaries_of_text_in_any_layout_are_text(values: pa.DataType) -> None:
    data = pa.table({"id": [1, 2, 3], "c": coded(values, "x", "y")})
    expected = [{"id": 1, "c": "x"}, {"id": 2, "c": "y"}, {"id": 3, "c": None}]
    assert rows(data, ["id"]) == rows(data, None) == expected
    table = rs.create_table(fresh_uri(), ONCE, key=["id"])
    table.upsert(pa.concat_tables([data.slice(0, 1), data.slice(1)]))
    assert table.scan().to_arrow().to_pylist() == expected


def test_dictionaries_of_bytes_in_views_are_bytes() -> None:
    data = pa.table({"id": [1, 2], "c": coded(pa.binary_view(), b"x")})
    assert rows(data, ["id"]) == [{"id": 1, "c": b"x"}, {"id": 2, "c": None}]


def test_an_empty_dictionary_column_has_no_rows() -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "c": coded(pa.string_view()).slice(1)})
    table = rs.create_table(fresh_uri(), ONCE, key=["id"])
    assert table.upsert(empty).rows_written == 0


def repeated(*names: str) -> pa.Table:
    return pa.table([pa.array([1])] * len(names), names=list(names))


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.upsert(repeated("id", "c", "c")),
        lambda t: t.upsert(repeated("id", "id", "c")),
        lambda t: t.overwrite(repeated("id", "c", "c")),
        lambda t: t.delete(keys=repeated("id", "id")),
        lambda t: t.apply_changes(repeated("id", "c", "op", "op", "n"), op="op", sequence="n"),
        lambda t: rs.create_table(fresh_uri(), repeated("id", "c", "c"), key=["id"]),
        lambda t: rs.create_table(fresh_uri(), ONCE).append(repeated("id", "c", "c")),
    ],
)
def test_a_column_twice_in_the_data_is_named(use: Callable[[rs.Table], object]) -> None:
    table = rs.create_table(fresh_uri(), ONCE, key=["id"])
    with pytest.raises(SchemaMismatch, match=r"'(id|c|op)' more than once"):
        use(table)
    assert table.refresh() == 0


def nested(levels: int, wrap: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    type_ = pa.int64()
    for _ in range(levels):
        type_ = wrap(type_)
    return type_


WRAPS = {
    "struct": (lambda type_: pa.struct([("f", type_)]), 1),
    "list": (pa.list_, 2),
    "map": (lambda type_: pa.map_(pa.string(), type_), 2),
}


@pytest.mark.parametrize("kind", WRAPS)
def test_the_deepest_columns_can_be_written_and_read(kind: str) -> None:
    wrap, levels = WRAPS[kind]
    type_ = nested(DEEPEST_LEVELS // levels, wrap)
    table = rs.create_table(fresh_uri(), pa.schema({"id": pa.int64(), "c": type_}), key=["id"])
    table.upsert(pa.table({"id": [1], "c": pa.nulls(1, type_)}))
    assert rs.open_table(table.uri).scan().to_arrow().to_pylist() == [{"id": 1, "c": None}]


@pytest.mark.parametrize("kind", WRAPS)
@pytest.mark.parametrize("more", [1, 200, 800])
def test_deeper_columns_are_refused_by_name_before_anything_is_written(
    kind: str, more: int
) -> None:
    wrap, levels = WRAPS[kind]
    type_ = nested(DEEPEST_LEVELS // levels + more, wrap)
    schema = pa.schema({"id": pa.int64(), "c": type_})
    empty = pa.table([pa.nulls(0, type_) for type_ in schema.types], schema=schema)
    table = rs.create_table(fresh_uri(), ONCE, key=["id"])
    for use in (
        lambda: rs.create_table(fresh_uri(), schema, key=["id"]),
        lambda: rs.create_table(fresh_uri(), empty, key=["id"]),  # `empty_table()` takes seconds
        lambda: table.upsert(pa.table({"id": [1], "c": pa.nulls(1, type_)})),
        lambda: rs.register_function("deep", [type_], len, returns=pa.int64()),
    ):
        with pytest.raises(SchemaMismatch, match="nested too deep"):
            use()
    assert table.refresh() == 0


def test_deep_python_values_are_refused_by_name() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    with pytest.raises(SchemaMismatch, match="'c' is nested too deep"):
        rs.create_table(fresh_uri(), {"id": [1], "c": [value]}, key=["id"])


@pytest.mark.parametrize(
    "data", [{"\ud800": [1]}, [{"id": 1, "\ud800": 1}], {"id": ["\ud800"]}, [{"id": "a\ud800"}]]
)
def test_lone_surrogates_in_names_and_values_are_refused(data: Any) -> None:
    with pytest.raises(RowsieveError) as raised:
        rs.create_table(fresh_uri(), data)
    str(raised.value).encode()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a.b", '"', "`", "x" * 5000])
def test_odd_names_of_columns_are_columns(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    for key in ([name], None):
        table = rs.create_table(fresh_uri(), pa.table({name: [1, 2]}), key=key)
        assert table.scan(f"{quoted} = 2").to_arrow().to_pylist() == [{name: 2}]
    with pytest.raises(RowsieveError):
        rs.create_table(fresh_uri(), pa.table({name: [1]}), key=[name + "\ud800"])


@pytest.mark.parametrize("name", ["\0", "a\0b"])
def test_names_with_a_zero_byte_are_refused(name: str) -> None:
    with pytest.raises(SchemaMismatch, match="zero byte"):
        rs.create_table(fresh_uri(), pa.table({name: [1, 2]}))


@pytest.mark.parametrize("value", ["\0", "a\0b", "\0a", "\ufffe"])
def test_odd_text_is_a_key_and_a_value(value: str) -> None:
    table = rs.create_table(
        fresh_uri(), pa.table({"k": [value, "a"], "v": [value, "x"]}), key=["k"]
    )
    assert table.scan(f"k = '{value}' AND v = '{value}'").count() == 1
    assert table.delete(keys=pa.table({"k": [value]})).rows_deleted == 1
    assert table.scan().to_arrow().to_pylist() == [{"k": "a", "v": "x"}]


@pytest.mark.spark
def test_dataframes_of_spark_are_data_with_their_instants_and_clocks(
    spark: Any, client: Any
) -> None:
    """The session's zone decides which instant text is; the table holds that instant."""
    text = (
        "SELECT 1L AS id, timestamp '2024-10-27 01:30:00' AS at, "
        "timestamp_ntz '2024-10-27 01:30:00' AS clock, array(timestamp '2024-01-01 00:00:00') AS l"
    )
    hour = {"UTC": 1, "America/New_York": 5, "Asia/Kolkata": 20}
    for session in (spark, client):
        before = session.conf.get("spark.sql.session.timeZone")
        for zone, hour_utc in hour.items():
            session.conf.set("spark.sql.session.timeZone", zone)
            try:
                table = rs.create_table(fresh_uri(), session.sql(text), key=["id"])
                table.upsert(session.sql(text))
            finally:
                session.conf.set("spark.sql.session.timeZone", before)
            (row,) = table.scan().to_arrow().to_pylist()
            assert table.schema.field("at").type == pa.timestamp("us", "UTC")
            assert table.schema.field("clock").type == pa.timestamp("us")
            assert row["at"].hour == hour_utc
            assert row["l"][0].tzinfo is not None
            assert row["clock"] == datetime(2024, 10, 27, 1, 30)


def test_a_stream_without_rows_is_rejected() -> None:
    with pytest.raises(InvalidData, match="the ChunkedArray could not be read"):
        rs.create_table(fresh_uri(), pa.chunked_array([[1]]))


def _array(type_: pa.DataType, *buffers: bytes, children: list[pa.Array] | None = None) -> pa.Array:
    """An array of one value whose buffers nobody has checked."""
    made = [None, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(type_, 1, made, children=children or [])


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        pytest.param(
            _array(pa.decimal128(5, 2), (10**30).to_bytes(16, "little")), "fit in precision",
            id="digits",
        ),
        pytest.param(
            _array(pa.struct([("d", pa.decimal128(5, 2))]), children=[
                _array(pa.decimal128(5, 2), (10**6).to_bytes(16, "little"))
            ]),
            "fit in precision", id="digits in a struct",
        ),
        pytest.param(
            pa.DictionaryArray.from_arrays(pa.array([5], pa.int32()), pa.array(["a"]), safe=False),
            "out of bounds: 5", id="dictionary",
        ),
    ],
)  # fmt: skip
def test_arrays_with_impossible_values_are_refused(column: pa.Array, reason: str) -> None:
    """Parquet would cut a decimal of too many digits, and read another number."""
    plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    schema = pa.schema([("id", pa.int64()), ("c", plain)])
    table = rs.create_table(fresh_uri(), schema, key=["id"])
    data = pa.table([pa.array([1]), column], names=["id", "c"])
    with pytest.raises(InvalidData, match=f"'c'.*{reason}"):
        table.upsert(data)
    assert table.refresh() == 0


LONE = "a\ud800b"


@pytest.mark.parametrize(
    "data",
    [
        [{"id": 1, "s": LONE}],
        {"id": [1], "s": [LONE]},
        {"id": [1], "s": pd.Series([LONE], dtype=object)},
        pd.DataFrame({"id": [1], "s": pd.Series([LONE], dtype=object)}),
        pd.DataFrame({"id": [1], "s": pd.Series([[LONE]], dtype=object)}),
        pd.DataFrame({"s": ["x"]}, index=pd.Index([LONE], name="id", dtype=object)),
        pd.DataFrame([[1, "x"]], columns=pd.Index(["id", LONE], dtype=object)),
        pd.DataFrame({"id": [1], "s": pd.Series([LONE], dtype=pd.StringDtype("python"))}),
    ],
)
def test_text_with_a_lone_surrogate_is_refused(data: Any) -> None:
    made = rs.create_table(fresh_uri(), pa.table({"id": [1], "s": ["a"]}), key=["id"])
    for write in (made.upsert, made.overwrite, lambda d: rs.create_table(fresh_uri(), d)):
        with pytest.raises(InvalidData, match=r"surrogate"):
            write(data)
    assert made.refresh() == 0
