"""Conditions that do not bind: the error has the offset, the part of the text and its columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import InvalidPredicate, UnknownColumn
from tests.small_tables import fresh_uri

DATA = pa.table(
    {
        "a": pa.array([1], pa.int64()),
        "name": ["x"],
        "day": pa.array([0], pa.date32()),
        "at": pa.array([0], pa.timestamp("us", "UTC")),
        "ok": [True],
        "f": [0.5],
        "raw": [b"x"],
        "l": [[1]],
        "s": [{"x": 1, "y": "b"}],
        "größe": pa.array([1], pa.int32()),
    }
)
WRONG = [
    # text, offset, part of the text, what the message says
    ("a = 5 AND name > 3", 10, "name > 3", ["string > int64", "name is string"]),
    ("3 < name OR a = 1", 0, "3 < name", ["name is string"]),
    ("nosuch = 1", 0, "nosuch", ["nosuch"]),
    ("a = 1 AND (a = 2 OR nosuch > 3)", 20, "nosuch", ["nosuch"]),
    ("a = 1 AND NOT upper(a) = 'X'", 14, "upper(a)", ["a is int64"]),
    ("name LIKE 'x%' AND a LIKE '5%'", 19, "a LIKE '5%'", ["a is int64"]),
    ("a IN ('x', 'y')", 0, "a IN ('x', 'y'", ["a is int64"]),
    ("a = 1 AND name IN (1, 2)", 10, "name IN (1, 2", ["name is string"]),
    ("ok > 3", 0, "ok > 3", ["ok is bool"]),
    ("a = 1 AND name", 10, "name", ["name is string"]),
    ("a = 1 AND name + 1 > 2", 10, "name + 1", ["name is string"]),
    ("a BETWEEN 'x' AND 'y'", 0, "a BETWEEN 'x' AND 'y'", ["a is int64"]),
    ("day = 'no day'", 0, "day = 'no day'", ["no day", "day is date"]),
    ("a = 1 AND at > 'noon'", 10, "at > 'noon'", ["noon", "at is timestamptz"]),
    ("day > 5", 0, "day > 5", ["day is date"]),
    ("raw = 5", 0, "raw = 5", ["raw is binary"]),
    ("a = 1 AND l > 2", 10, "l > 2", ["l is list"]),
    ("s = 4", 0, "s = 4", ["s is struct"]),
    ("a = 1 AND s.z = 4", 10, "s.z", ["z"]),
    ("a.x = 4", 0, "a.x", ["a is int64"]),
    ("extract(hour FROM name) = 3", 0, "extract", ["name is string"]),
    ("CASE WHEN ok THEN a ELSE name END = 1", 10, "a ELSE name", ["a is int64", "name is string"]),
    ("a = 1 AND coalesce(a, name) = 1", 10, "coalesce(a, name)", ["a is int64"]),
    ("a = 1\n  AND größe = name", 12, "größe = name", ["größe is int32", "name is string"]),
    ("CAST(l AS BIGINT) = 1", 5, "l", ["l is list"]),
    ("a = 1 AND nofunction(a) = 2", 10, "nofunction(a)", ["nofunction"]),
]


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), DATA, key=["a"])


@pytest.mark.parametrize(("text", "offset", "part", "said"), WRONG)
@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "datafusion"])
def test_the_message_names_place_and_columns(
    table: rs.Table, text: str, offset: int, part: str, said: list[str], dialect: str
) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        table.scan(text, dialect=dialect)
    assert caught.value.position == offset
    assert f"offset {offset}, " in str(caught.value)
    assert part in str(caught.value)
    for each in said:
        assert each in str(caught.value)


def test_changes_name_the_place_too(table: rs.Table) -> None:
    where = "a = 1 AND nosuch = 2"
    with pytest.raises(UnknownColumn, match=r"offset 10, 'nosuch'") as caught:
        table.delete(where)
    assert (caught.value.name, caught.value.position) == ("nosuch", 10)
    with pytest.raises(UnknownColumn, match=r"offset 10, 'nosuch'"):
        table.update({"f": 1.0}, where=where)
    assert table.count() == 1


def test_trees_have_no_place(table: rs.Table) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        table.scan(parse_predicate("name > 3"))
    assert caught.value.position is None
    assert "offset" not in str(caught.value)
