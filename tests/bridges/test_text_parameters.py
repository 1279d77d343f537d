"""Parameters of conditions: values are constants with types, whatever they contain."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, InvalidPredicate, RowsieveError
from rowsieve.table import Table

DIALECTS = ("postgres", "spark", "duckdb", "datafusion", "trino")
UIDS = [uuid.UUID(int=number) for number in range(4)]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "s": ["a", "it's", "$x", None],
        "d": [dt.date(2020, 1, day) for day in range(1, 5)],
        "m": pa.array([Decimal(n) / 4 for n in range(4)], pa.decimal128(9, 2)),
        "b": [b"\x00", b"\xff", b"'", b""],
        "f": [0.5, float("nan"), -0.0, None],
        "at": pa.array([dt.datetime(2020, 1, day) for day in range(1, 5)], pa.timestamp("us")),
        "uid": pa.array([uid.bytes for uid in UIDS], pa.uuid()),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return rs.create_table(tmp_path_factory.mktemp("t") / "t", ROWS, key=["id"])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("where", "params", "ids"),
    [
        ("id = $x", {"x": 2}, [2]),
        ("id = :x AND id = $x", {"x": 2}, [2]),
        ("s = $name", {"name": "it's"}, [2]),
        ("s = $name", {"name": "' OR TRUE --"}, []),
        ("s = '$x' OR id = $id", {"id": 1}, [1, 3]),
        ("s = $x", {"x": "$x"}, [3]),
        ("s = $x", {"x": None}, []),
        ("s IS NULL OR id = $x -- :y", {"x": 1}, [1, 4]),
        ("d >= $day", {"day": dt.date(2020, 1, 3)}, [3, 4]),
        ("m = $m", {"m": Decimal("0.25")}, [2]),
        ("b = $b", {"b": b"'"}, [3]),
        ("f = $f", {"f": 0.5}, [1]),
        ("at < $at", {"at": dt.datetime(2020, 1, 2)}, [1]),
        ("id = $x", {"x": pa.scalar(3, pa.int16())}, [3]),
        ("id IN ($ids)", {"ids": [1, 3]}, [1, 3]),
        ("id NOT IN :ids", {"ids": (1, 3)}, [2, 4]),
        ("id in ( $ids )", {"ids": []}, []),
        ("s NOT IN ($names)", {"names": []}, [1, 2, 3, 4]),  # not even NULL is in no list
        ("id = 4 AND NOT (s IN ($names))", {"names": []}, [4]),
        ("(s IN :names) IS NULL", {"names": set()}, []),
        ("id < $x", {"x": 2**63}, [1, 2, 3, 4]),
        ("id > $x", {"x": 1 - 10**38}, [1, 2, 3, 4]),
        ("id IN ($ids)", {"ids": [2, 2**64 - 1, None]}, [2]),
        ("id IN ($ids)", {"ids": [2, -(2**70)]}, [2]),
        ("s IN ($names)", {"names": ["a", None]}, [1]),
        ("d IN ($days) OR id IN ($ids)", {"days": [dt.date(2020, 1, 4)], "ids": {1}}, [1, 4]),
        ("id = 1", {}, [1]),
    ],
)
def test_a_value_stands_for_its_parameter(
    dialect: str, where: str, params: dict[str, Any], ids: list[int], table: Table
) -> None:
    found = table.scan(where, params=params, dialect=dialect).to_arrow()["id"].to_pylist()
    assert sorted(found) == ids
    assert table.count(where, params=params, dialect=dialect) == len(ids)


def test_a_uuid_is_a_value_where_the_dialect_has_its_type(table: Table) -> None:
    assert table.count("uid = $u", params={"u": UIDS[2]}) == 1


def test_thousands_of_values_are_one_list(table: Table) -> None:
    assert table.count("id IN ($ids)", params={"ids": range(2, 20_000)}) == 3


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("where", "params", "message"),
    [
        ("id = $x", {}, r"'x' at offset 5 of the condition has no value; give it as"),
        ("id = $day", {"dya": 1}, "did you mean \\$dya"),
        ("id = $x", {"x": 1, "y": 2}, "has no parameter 'y'"),
        ("id = '$x'", {"x": 1}, "has no parameter 'x'"),
        ("id = ?", {"x": 1}, "has no parameter 'x'"),
        ("id = $x", {"x": [1]}, "stands after IN only"),
        ("id IN ($x, 2)", {"x": [1]}, "stands after IN only"),
        ("id IN ($x)", {"x": [1, "a"]}, "values of several types"),
        ("id = $x", {"x": object()}, "cannot be given as a constant"),
    ],
)
def test_a_name_or_value_that_does_not_fit_is_told(
    dialect: str, where: str, params: dict[str, Any], message: str, table: Table
) -> None:
    with pytest.raises(InvalidInput, match=message):
        table.scan(where, params=params, dialect=dialect)


def test_values_of_another_type_are_refused_as_constants_are(table: Table) -> None:
    for where, value in (("id = $x", "abc"), ("d = $x", 5), ("b = $x", 1.5)):
        with pytest.raises((InvalidPredicate, RowsieveError)):
            table.scan(where, params={"x": value})


def test_params_need_text_and_names(table: Table) -> None:
    given: Any = ["x"]
    with pytest.raises(InvalidInput, match="params"):
        table.scan("id = $x", params=given)
    with pytest.raises(InvalidInput, match="the condition is NoneType"):
        table.count(params={"x": 1})
    with pytest.raises(InvalidInput, match="params= are the values"):
        table.delete(keys=pa.table({"id": [1]}), params={"x": 1})


def test_settings_of_a_session_are_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="a setting of spark's session"):
        table.scan("s = '${x}' OR id = $x", params={"x": 1}, dialect="spark")


def test_changes_take_params(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.update({"s": rs.lit("new")}, where="d = :day", params={"day": dt.date(2020, 1, 1)})
    table.delete("id IN ($ids)", params={"ids": [2, 3]})
    rows = table.to_arrow("id < $most", ["id", "s"], params={"most": 9}).to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 1, "s": "new"}, {"id": 4, "s": None}]
    assert table.to_pandas("id = :x", params={"x": 1}).shape[0] == 1
    assert table.to_polars("id = :x", params={"x": 1}).height == 1


def test_a_condition_with_values_skips_parts(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS.slice(0, 2), key=["id"])
    table.upsert(ROWS.slice(2, 2))
    plan = table.scan("id = $x", params={"x": 4}).plan(resolve=True)
    assert len(list(plan.files())) == 1


def test_unsigned_numbers_and_those_of_no_type(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "u": pa.array([2**64 - 1], pa.uint64())})
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    assert table.count("u = $x", params={"x": 2**64 - 1}) == 1
    assert table.count("u IN ($x)", params={"x": [2**64 - 1, -1]}) == 1
    with pytest.raises(InvalidInput, match="the list 'x' is not of one type"):
        table.count("u IN ($x)", params={"x": [10**39]})


def test_an_array_of_another_library_is_a_list(table: Table) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrays = (np.array([2, 3, 9]), pandas.Series([2, 3, 9]), polars.Series([2, 3, 9]))
    for ids in arrays:
        assert table.count("id IN ($ids)", params={"ids": ids}) == 2
        assert table.count("id NOT IN ($ids)", params={"ids": ids[:0]}) == 4
    days = np.array(["2020-01-02", "2020-01-04"], "datetime64[D]")
    assert table.count("d IN ($days)", params={"days": days}) == 2
    assert table.count("id = $id", params={"id": np.int64(2)}) == 1
