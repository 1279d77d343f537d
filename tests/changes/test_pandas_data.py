"""pandas DataFrames as data: indexes, types of pandas' own, Python objects, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rowsieve
from rowsieve.errors import InvalidData, InvalidInput, KeyViolation
from tests.small_tables import fresh_uri

BIG = 2**53 + 1  # a float holds no such number


def rows_of(frame: pd.DataFrame, key: list[str] | None = None) -> list[dict[str, Any]]:
    table = rowsieve.create_table(fresh_uri(), frame, key=key)
    return list(table.scan(order_by_key=key is not None).to_arrow().to_pylist())


def test_levels_of_the_index_with_a_name_are_columns_and_others_are_left_out() -> None:
    levels = pd.MultiIndex.from_tuples([(1, "a", 0.5), (2, "b", 1.5)], names=["k", None, "f"])
    frame = pd.DataFrame({"v": [7, 8]}, index=levels)
    assert rows_of(frame, ["k"]) == [{"v": 7, "k": 1, "f": 0.5}, {"v": 8, "k": 2, "f": 1.5}]
    assert list(frame.index.names) == ["k", None, "f"]  # the caller's frame is not changed
    repeated = pd.DataFrame({"k": [1, 2], "v": [3, 4]}, index=[0, 0])
    assert rows_of(repeated, ["k"]) == [{"k": 1, "v": 3}, {"k": 2, "v": 4}]
    with pytest.raises(KeyViolation, match="1 rows repeat the key"):
        rows_of(repeated.set_axis(pd.Index([5, 5], name="id"))[["v"]], ["id"])


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        pytest.param(pd.DataFrame([[1, 2]]), "not 0", id="numbers"),
        pytest.param(pd.DataFrame([[1, 2]], columns=["1", 1]), "not 1", id="a number and its text"),
        pytest.param(pd.DataFrame([[1, 2]], columns=["a", None]), "not", id="none"),
        pytest.param(
            pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "x")])),
            r"not \('a', 'x'\)",
            id="levels",
        ),
        pytest.param(pd.DataFrame({"a": [1]}, index=pd.Index([1], name=0)), "not 0", id="index"),
        pytest.param(
            pd.DataFrame({"k": [1]}, index=pd.Index([1], name="k")),
            "both a column and an index level named 'k'",
            id="a column and a level",
        ),
    ],
)
def test_labels_that_are_not_column_names_are_rejected(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        rows_of(frame)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param([datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)], "zone", id="zones"),
        pytest.param([date(2026, 1, 1), datetime(2026, 1, 1, 5)], "dates and times", id="dates"),
        pytest.param([datetime(2026, 1, 1, 5), None, date(2026, 1, 1)], "dates and", id="times"),
        pytest.param(["a", None, b"b"], "bytes and text", id="bytes"),
        pytest.param([{1, 2}, None], "has a set", id="sets"),
        pytest.param([[{1, 2}], None], "has a set", id="nested sets"),
        pytest.param([float("nan"), date(2026, 1, 1), 3], "numbers and dates", id="numbers"),
    ],
)
@pytest.mark.parametrize("place", ["column", "index"])
def test_python_objects_that_pyarrow_would_change_are_refused(
    values: list[Any], said: str, place: str
) -> None:
    column = pd.Series(values, dtype=object)
    frame = pd.DataFrame({"v": column})
    if place == "index":
        if any(isinstance(value, set | list) for value in values):
            return  # an index holds no such values
        frame = pd.DataFrame({"a": range(len(values))}, index=pd.Index(column, name="v"))
    with pytest.raises(InvalidData, match=f"column 'v' has .*{said}|column 'v' .*{said}"):
        rows_of(frame)


def test_nan_does_not_change_the_type_of_objects() -> None:
    nan = float("nan")
    for value in (BIG, "x", b"x", True, date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)):
        column = pd.Series([nan, None, pd.NaT, pd.NA, value], dtype=object)
        assert [row["v"] for row in rows_of(pd.DataFrame({"v": column}))] == [None] * 4 + [value]


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2026", periods=2, freq="M"),
        pd.interval_range(0, 2),
        pd.Categorical(pd.period_range("2026", periods=2, freq="M")),
    ],
    ids=["periods", "intervals", "categories of periods"],
)
def test_types_that_would_lose_their_meaning_are_refused(values: Any) -> None:
    with pytest.raises(InvalidData, match="column 'v' has the pandas type"):
        rows_of(pd.DataFrame({"v": values}))
    with pytest.raises(InvalidData, match="column 'v' has the pandas type"):
        rowsieve.create_table(fresh_uri(), {"v": pd.Series(values)})


def test_categories_are_their_values() -> None:
    stamp = pd.Timestamp("2026-01-01", tz="UTC")
    for value in ("x", BIG, 1.5, stamp):
        frame = pd.DataFrame({"v": pd.Categorical([value, None])})
        assert rows_of(frame) == [{"v": value}, {"v": None}]


@pytest.mark.parametrize("big", [BIG, -BIG, 2**63 - 1, -(2**63)])
def test_whole_numbers_that_no_float_holds_go_through_pandas_unchanged(big: int) -> None:
    for dtype in ("Int64", pd.ArrowDtype(pa.int64())):
        frame = pd.DataFrame({"k": [1, 2], "v": pd.array([big, None], dtype=dtype)})
        table = rowsieve.create_table(fresh_uri(), frame, key=["k"])
        back = table.to_pandas()
        assert int(back["v"].iloc[0]) == big
        assert back["v"].isna().tolist() == [False, True]
        assert table.upsert(back).rows_written == 2
        assert table.to_arrow().column("v").to_pylist() == [big, None]


def test_integers_stored_as_floats_stay_floats_with_null() -> None:
    table = rowsieve.create_table(fresh_uri(), {"k": [1, 2], "v": [2**53, None], "n": [None, 1]})
    assert [str(dtype) for dtype in table.to_pandas().dtypes] == ["int64", "float64", "float64"]
    unsigned = rowsieve.create_table(
        fresh_uri(), pa.table({"v": pa.array([2**64 - 1, None], "u8")})
    )
    assert unsigned.to_pandas()["v"].iloc[0] == 2**64 - 1


def test_an_empty_frame_of_objects_has_no_rows() -> None:
    table = rowsieve.create_table(fresh_uri(), {"k": [1], "v": ["a"]}, key=["k"])
    empty = pd.DataFrame({"k": pd.Series([], dtype=object), "v": pd.Series([], dtype=float)})
    assert not table.upsert(empty).committed
    assert table.count() == 1


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([[1, None, BIG], [2]], pa.list_(pa.int64())),
        ([[[BIG], [None]], None], pa.list_(pa.list_(pa.int64()))),
        ([{"a": BIG}, {"a": None}], pa.struct([("a", pa.int64())])),
        ([[{"a": BIG}], [{"a": None}]], pa.list_(pa.struct([("a", pa.int64())]))),
        ([[("x", BIG)], [("y", None)]], pa.map_(pa.string(), pa.int64())),
        ([[1, None], [2]], pa.list_(pa.int64())),
        ([[BIG], [2]], pa.list_(pa.int64())),
    ],
)
def test_integers_within_lists_and_structs_keep_their_values(values: Any, type_: Any) -> None:
    rows = pa.table({"k": [1, 2], "v": pa.array(values, type_)})
    frame = rowsieve.create_table(fresh_uri(), rows, key=["k"]).to_pandas()
    again = pa.Table.from_pandas(frame, schema=rows.schema, preserve_index=False)
    assert again.to_pydict() == rows.to_pydict()
    has_null_beside = "None" in str(values) and str(BIG) in str(values)
    assert isinstance(frame.dtypes["v"], pd.ArrowDtype) is has_null_beside
