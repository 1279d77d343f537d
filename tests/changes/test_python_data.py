"""Lists of dicts, dicts of lists and DataFrames as data, and batches without rows."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    EmptyData,
    InvalidData,
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    TableNotFound,
)
from tests.small_tables import KV, NoStream, files, fresh_uri, keyed

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int32(), nullable=False),
        pa.field("f", pa.float64()),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("u", pa.uint64()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("s", pa.struct([("x", pa.int8()), ("y", pa.string())])),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
    ]
)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROW = {
    "k": 1,
    "f": 2.5,
    "d": Decimal("1.50"),
    "u": 2**64 - 1,
    "at": AT,
    "s": {"x": 1, "y": "a"},
    "m": {"a": 1},
}
STORED = {**ROW, "m": [("a", 1)]}


def table(schema: pa.Schema = SCHEMA) -> Table:
    return rowsieve.create_table(fresh_uri(), schema, key=["k"])


def test_a_list_of_dicts_becomes_rows_of_the_tables_types() -> None:
    made = table()
    made.upsert([ROW, {**dict.fromkeys(SCHEMA.names), "k": 2, "f": 3}])
    rows = made.to_arrow().to_pylist()
    assert rows == [STORED, {**dict.fromkeys(SCHEMA.names), "k": 2, "f": 3.0}]


def test_a_dict_of_lists_becomes_columns_of_the_tables_types() -> None:
    made = table()
    made.upsert({name: [value] for name, value in ROW.items()})
    assert made.to_arrow().to_pylist() == [STORED]
    nulls: dict[str, Any] = {name: [None] for name in SCHEMA.names}
    made.upsert({**nulls, "k": np.array([9]), "u": pl.Series([7])})
    assert made.to_arrow("k = 9", ["u"]).to_pylist() == [{"u": 7}]


def test_a_table_is_created_from_a_list_of_dicts() -> None:
    rows: list[dict[str, Any]] = [
        {"id": uuid.uuid4(), "tags": ["a"], "day": date(2026, 1, 1)},
        {"id": uuid.uuid4()},
    ]
    made = rowsieve.create_table(fresh_uri(), rows)
    assert made.to_arrow()["id"].to_pylist() == [row["id"].bytes for row in rows]
    assert made.to_arrow()["tags"].to_pylist() == [["a"], None]


@pytest.mark.parametrize("rows", [[{}], [{}, {}], pa.table({"n": [1]}).select([])])
def test_rows_without_columns_are_not_dropped(rows: Any) -> None:
    uri = fresh_uri()
    with pytest.raises(InvalidData, match="rows and no columns"):
        rowsieve.create_table(uri, rows)
    assert rowsieve.create_table(uri, []).count() == 0  # nothing was there


@pytest.mark.parametrize(("rows", "named"), [([(1, 2)], "tuple"), ([1, 2], "int")])
def test_a_list_of_other_things_is_named_by_its_items(rows: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=f"a list of dicts.*, not a list of {named}$"):
        rowsieve.create_table(fresh_uri(), rows)


def test_a_dataset_is_given_by_its_reader() -> None:
    rows = pa.dataset.dataset(pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match=r"not InMemoryDataset; give its scanner\(\)"):
        rowsieve.create_table(fresh_uri(), rows)
    assert rowsieve.create_table(fresh_uri(), rows.scanner().to_reader()).count() == 1


def test_empty_dicts_are_rows_too() -> None:
    made = rowsieve.create_table(fresh_uri(), pa.schema({"id": pa.int64()}))
    made.add_column("n", "int64", default=5)
    assert made.append([{}, {}]).rows_written == 2
    assert made.to_arrow().to_pylist() == [{"id": None, "n": 5}] * 2
    assert made.append([]).version == made.append({}).version == made.version
    for change in (table().upsert, table().overwrite):
        with pytest.raises(SchemaMismatch, match="lacks the key column 'k'"):
            change([{}])


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        pytest.param({"k": 1.5}, SchemaMismatch, "'k' is int32", id="a fraction as a number"),
        pytest.param({"k": 2**40}, SchemaMismatch, "'k'", id="a number that is too large"),
        pytest.param({"k": True}, InvalidData, "'k', row 1: True", id="a truth as a number"),
        pytest.param({"at": datetime(2026, 3, 1)}, InvalidData, "zone", id="a wall clock"),
        pytest.param({"d": 1.5}, InvalidData, "'d', row 1", id="a float as a decimal"),
        pytest.param({"u": -1}, SchemaMismatch, "'u'", id="below zero"),
        pytest.param({"u": 2**64}, SchemaMismatch, "'u'", id="beyond 64 bits"),
        pytest.param({"u": 10**40}, InvalidData, "'u', row 1", id="beyond 38 digits"),
        pytest.param({"s": {"x": 1, "z": "a"}}, SchemaMismatch, "'z'", id="an unknown member"),
        pytest.param({"typo": 1}, SchemaMismatch, "'typo'", id="an unknown column"),
        pytest.param({"f": "2.5"}, InvalidData, "'f', row 1: '2.5'", id="text as a number"),
        pytest.param({"f": object()}, InvalidData, "'f', row 1", id="an object"),
        pytest.param({"k": None}, KeyViolation, "'k' is NULL", id="no key"),
        pytest.param({3: 1}, InvalidInput, "column names must be text", id="a number as a name"),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    change: dict[Any, Any], error: type[Exception], said: str
) -> None:
    made = table()
    with pytest.raises(error, match=said):
        made.upsert([ROW, {**ROW, "k": 2, **change}])
    assert len(made) == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param([datetime(2026, 1, 1), AT], "with and without a zone", id="zones"),
        pytest.param([[datetime(2026, 1, 1)], [AT]], "with and without a zone", id="nested zones"),
        pytest.param([date(2026, 1, 1), datetime(2026, 1, 1, 5)], "dates and times", id="dates"),
        pytest.param([{"a": "x"}, {"a": b"x"}], "bytes and text", id="bytes in a struct"),
        pytest.param([b"x", "x"], "bytes and text", id="bytes"),
        pytest.param(["x", bytearray(b"x")], "bytes and text", id="bytes that change"),
        pytest.param([date(2026, 1, 1), 1], "numbers and dates", id="a number as a date"),
        pytest.param([datetime(2026, 1, 1), 1], "numbers and times", id="a number as a time"),
        pytest.param([time(1), 1], "numbers and times of day", id="a number as a time of day"),
        pytest.param([time(1, tzinfo=UTC)], "times of day with a zone", id="a zoned time of day"),
        pytest.param([{1, 2}], "has a set", id="a set"),
        pytest.param([[{1, 2}], [{3}]], "has a set", id="sets in lists"),
        pytest.param([{"a": {1, 2}}], "has a set", id="a set in a struct"),
        pytest.param([[frozenset([1])]], "has a frozenset", id="a frozenset in a list"),
        pytest.param([{"a": 1}.values()], "has a dict_values", id="a view of a dict"),
        pytest.param([[{"a": 1}.keys()]], "has a dict_keys", id="a view in a list"),
        pytest.param([[iter([1])]], "has a list_iterator", id="an iterator"),
        pytest.param([{"a": (x for x in (1, 2))}], "has a generator", id="a generator in a struct"),
        pytest.param(np.array([{1}], object), "has a set", id="sets in NumPy objects"),
        pytest.param([np.array([{1}], object)], "has a set", id="sets in nested NumPy objects"),
        pytest.param(
            np.array([date(2026, 1, 1), datetime(2026, 1, 1, 5)], object),
            "dates and times",
            id="dates in NumPy objects",
        ),
        pytest.param(pd.Series([{1}]), "has a set", id="sets in a Series"),
        pytest.param(pd.Series(["a", b"b"], dtype=object), "bytes and text", id="a Series"),
        pytest.param("abc", "a list of values, not str", id="text"),
        pytest.param(5, "a list of values, not int", id="a number"),
    ],
)
def test_values_that_pyarrow_would_mix_are_rejected(values: Any, said: str) -> None:
    with pytest.raises(InvalidData, match=said):
        rowsieve.create_table(fresh_uri(), {"v": values})


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidData, match="'a' has 1, 'b' has 2"):
        rowsieve.create_table(fresh_uri(), {"a": [1], "b": [1, 2]})


def test_other_objects_are_rejected_and_accepted_types_named() -> None:
    for wrong in (5, [1, 2], [{"k": 1}, 5], {1, 2}):
        with pytest.raises(InvalidInput, match="a list of dicts, a dict of lists"):
            keyed().upsert(wrong)


def test_a_pandas_frame_brings_its_columns_and_the_index_that_has_a_name() -> None:
    made = keyed()
    frame = pd.DataFrame({"k": [1, 2, 3], "v": [10, 20, 30]})
    made.upsert(frame[frame.v > 10])  # an index of gaps, without a name
    made.upsert(frame.assign(v=7).set_index("k").loc[[1]])
    assert sorted(made.to_arrow().to_pylist(), key=lambda row: row["k"]) == [
        {"k": 1, "v": 7},
        {"k": 2, "v": 20},
        {"k": 3, "v": 30},
    ]


def test_a_polars_frame_is_data() -> None:
    made = keyed()
    made.upsert(pl.DataFrame({"k": [1], "v": [5]}))
    assert made.to_polars().rows() == [(1, 5)]


EMPTY = [
    pytest.param([], id="a list"),
    pytest.param({}, id="a dict"),
    pytest.param({"k": [], "v": []}, id="columns"),
    pytest.param(KV.empty_table(), id="Arrow"),
    pytest.param(pd.DataFrame(), id="pandas"),
    pytest.param(pd.DataFrame({"k": [], "v": []}), id="pandas columns"),
    pytest.param(pl.DataFrame({"k": [], "v": []}), id="polars"),
]


@pytest.mark.parametrize("data", EMPTY)
def test_an_empty_batch_commits_nothing_and_says_so(data: Any) -> None:
    made = keyed({"k": [1], "v": [1]})
    before, stored = made.history(), files(made)
    for commit in (made.upsert(data), made.apply_changes(data, op="op", sequence="lsn")):
        assert not commit.committed
        assert (commit.version, commit.commit_id) == (before[0].version, before[0].commit_id)
        assert commit.rows_written == commit.rows_deleted == commit.parts_added == 0
    assert made.history() == before
    assert files(made) == stored
    assert before[0].committed


def test_an_empty_batch_of_keys_and_of_appended_rows_commits_nothing() -> None:
    plain = rowsieve.create_table(fresh_uri(), {"v": [1]})
    assert not plain.append([]).committed
    made = keyed({"k": [1], "v": [1]})
    assert not made.delete(keys=[]).committed
    assert not made.delete("k = 5").committed
    assert (len(plain), len(made)) == (1, 1)


def test_an_empty_batch_of_wrong_columns_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="'nope'"):
        keyed().upsert({"k": [], "nope": []})


def test_overwriting_with_nothing_is_refused() -> None:
    made = keyed({"k": [1], "v": [1]})
    with pytest.raises(EmptyData, match="Use delete"):
        made.overwrite([])
    assert len(made) == 1


def test_a_table_is_created_from_a_frame_without_rows() -> None:
    frame = pl.DataFrame({"k": [], "v": []}, schema={"k": pl.Int64, "v": pl.String})
    made = rowsieve.create_table(fresh_uri(), frame, key=["k"])
    assert (len(made), made.schema.names, made.detail()["parts"]) == (0, ["k", "v"], 0)


@pytest.mark.parametrize(
    "values",
    [{10, 1, 7}, frozenset({1}), {1: 2}, iter([1]), bytearray(b"a"), list, pl.Series],
    ids=["set", "frozenset", "dict", "iterator", "bytearray", "class", "class of Series"],
)
def test_a_column_without_an_order_or_a_length_is_refused(values: Any) -> None:
    with pytest.raises(InvalidData, match="column 'v' must be a list of values, not "):
        rowsieve.create_table(fresh_uri(), {"v": values})


@pytest.mark.parametrize(
    "values", [np.int64(5), np.float64(1), np.array(5), np.zeros((0, 2)), np.zeros((2, 2))], ids=str
)
def test_numpy_arrays_need_one_dimension(values: Any) -> None:
    with pytest.raises(InvalidData, match="column 'v' must be a list of values, not "):
        rowsieve.create_table(fresh_uri(), {"v": values})


def test_sequences_other_than_lists_are_columns() -> None:
    made = rowsieve.create_table(fresh_uri(), {"a": range(2), "b": (3, 4), "c": deque([5, 6])})
    assert made.to_arrow().to_pylist() == [{"a": 0, "b": 3, "c": 5}, {"a": 1, "b": 4, "c": 6}]


def test_a_column_of_polars_objects_is_refused() -> None:
    with pytest.raises(InvalidData, match="column 'v' holds Python objects"):
        rowsieve.create_table(fresh_uri(), {"v": pl.Series([object()], dtype=pl.Object)})


def test_a_column_whose_stream_is_none_is_refused() -> None:
    with pytest.raises(InvalidData, match="column 'v': the NoStream could not be read"):
        rowsieve.create_table(fresh_uri(), {"v": NoStream()})


MAPS = pa.schema({"k": pa.int64(), "m": pa.map_(pa.string(), pa.timestamp("us"))})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(5, "row 1: a map must be a dict or a list of pairs, not 5", id="a number"),
        pytest.param("ab", "row 1: a map must be", id="text"),
        pytest.param([("a", AT, 1)], "row 1: a map must be", id="a triple"),
        pytest.param({("a", AT)}, "row 1: a map must be", id="a set of pairs"),
        pytest.param({"a": datetime(2026, 1, 1), "b": AT}, "with and without a zone", id="zones"),
    ],
)
def test_a_value_that_is_not_a_map_is_rejected(value: Any, said: str) -> None:
    table = rowsieve.create_table(fresh_uri(), MAPS)
    with pytest.raises(InvalidData, match=said):
        table.append([{"k": 1, "m": {}}, {"k": 2, "m": value}])
    assert table.version == 0


def test_a_structured_numpy_array_is_its_fields() -> None:
    data = np.array([(1, 2.5, "a"), (2, -1.0, "b")], [("k", "i8"), ("f", "f8"), ("s", "U1")])
    table = rowsieve.create_table(fresh_uri(), data[::-1], key=["k"])
    table.upsert(np.rec.array(data))
    rows = [{"k": 1, "f": 2.5, "s": "a"}, {"k": 2, "f": -1.0, "s": "b"}]
    assert table.scan(order_by_key=True).to_arrow().to_pylist() == rows
    nested = np.array([(1, (2,))], [("k", "i8"), ("s", [("x", "i8")])])
    with pytest.raises(InvalidData, match=r"column 's': a ndarray of .* cannot be converted"):
        table.upsert(nested)


@pytest.mark.parametrize("dtype", [">i8", "c16", "g"])
def test_numpy_types_without_an_arrow_form_are_named(dtype: str) -> None:
    with pytest.raises(InvalidData, match=r"column 'v': a ndarray of .* cannot be converted"):
        rowsieve.create_table(fresh_uri(), {"v": np.array([1, 2], dtype)})


ONE = pa.schema({"k": pa.int64(), "v": pa.int64()})


def reader_of(*batches: pa.RecordBatch, error: BaseException | None = None) -> Any:
    def generate() -> Iterator[pa.RecordBatch]:
        yield from batches
        if error is not None:
            raise error

    return pa.RecordBatchReader.from_batches(ONE, generate())


@pytest.mark.parametrize("use", ["create", "upsert", "overwrite", "delete"])
def test_a_generator_of_batches_that_fails_half_way_writes_nothing(use: str) -> None:
    table = rowsieve.create_table(fresh_uri(), ONE, key=["k"])
    uri = fresh_uri()
    calls: dict[str, Callable[[Any], Any]] = {
        "create": lambda data: rowsieve.create_table(uri, data, key=["k"]),
        "upsert": table.upsert,
        "overwrite": table.overwrite,
        "delete": lambda data: table.delete(keys=data),
    }
    batch = pa.record_batch({"k": [1], "v": [1]})
    with pytest.raises(InvalidData, match=r"failed after 1 batches.*RuntimeError: boom"):
        calls[use](reader_of(batch, error=RuntimeError("boom")))
    with pytest.raises(KeyboardInterrupt):
        calls[use](reader_of(batch, error=KeyboardInterrupt()))
    assert table.files().num_rows == table.version == 0
    with pytest.raises(TableNotFound):
        rowsieve.open_table(uri)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"k": [2], "v": [1.5]}, id="another type of the same width"),
        pytest.param({"v": [2], "k": [3]}, id="another order"),
        pytest.param({"k": [2], "w": [3]}, id="another name"),
        pytest.param({"k": [2], "v": [3], "w": [4]}, id="one more"),
        pytest.param({"k": [2]}, id="one less"),
    ],
)
def test_batches_of_another_schema_than_their_reader_are_refused(second: Any) -> None:
    table = rowsieve.create_table(fresh_uri(), ONE, key=["k"])
    first = pa.record_batch({"k": [1], "v": [1]})
    with pytest.raises(InvalidData, match="batch 1 of the RecordBatchReader has the columns"):
        table.upsert(reader_of(first, pa.record_batch(second)))
    assert table.upsert(reader_of(first, first.slice(0, 0))).rows_written == 1
