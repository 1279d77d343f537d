"""A change that a feed delivers twice counts once; two different ones of one sequence do not."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import KeyViolation

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.float64()),
        ("s", pa.string()),
        ("l", pa.list_(pa.struct([("x", pa.int64())]))),
    ]
)
FEED = pa.schema([*COLUMNS, ("op", pa.string()), ("seq", pa.int64())])
NAN = float("nan")
ROW = (1, 2.0, "a", [{"x": 1}, None])


def applied(*changes: Sequence[Any]) -> list[dict[str, Any]]:
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", COLUMNS, key=["id"])
    feed = [dict(zip(FEED.names, change, strict=True)) for change in changes]
    table.apply_changes(pa.Table.from_pylist(feed, FEED), op="op", sequence="seq")
    rows: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize(
    "changes",
    [
        [(*ROW, "u", 5), (*ROW, "u", 5)],
        [(*ROW, "c", 5), (*ROW, "U", 5), (*ROW, "r", 5)],  # the words differ, the effect does not
        [(*ROW, "u", 5), (1, 9.0, "z", None, "u", 4), (*ROW, "u", 5)],
        [(1, NAN, None, [], "u", 5), (1, NAN, None, [], "u", 5), (*ROW, "u", 6), (*ROW, "u", 6)],
        [(1, None, None, None, "d", 4), (1, 7.0, "q", None, "d", 4), (*ROW, "c", 5)],
    ],
)
def test_a_change_that_occurs_again_counts_once(changes: list[Sequence[Any]]) -> None:
    assert applied(*changes) == [dict(zip(COLUMNS.names, ROW, strict=True))]


def test_a_delete_that_occurs_again_deletes() -> None:
    assert applied((*ROW, "c", 1), (1, None, None, None, "d", 2), (*ROW, "d", 2)) == []


@pytest.mark.parametrize(
    "other",
    [
        (1, 2.5, "a", [{"x": 1}, None]),
        (1, None, "a", [{"x": 1}, None]),
        (1, NAN, "a", [{"x": 1}, None]),
        (1, 2.0, "A", [{"x": 1}, None]),
        (1, 2.0, "a", [{"x": 2}, None]),
        (1, 2.0, "a", [None, {"x": 1}]),
        (1, 2.0, "a", []),
        (1, 2.0, "a", None),
    ],
)
def test_changes_that_differ_under_one_sequence_are_refused(other: Sequence[Any]) -> None:
    for changes in (
        [(*ROW, "u", 5), (*other, "u", 5)],
        [(*ROW, "u", 5), (*ROW, "u", 5), (*other, "u", 5), (2, None, None, None, "u", 5)],
    ):
        with pytest.raises(KeyViolation, match="two different changes of one key"):
            applied(*changes)


def test_a_write_and_a_delete_of_one_sequence_are_refused() -> None:
    with pytest.raises(KeyViolation, match="two different changes of one key"):
        applied((*ROW, "u", 5), (*ROW, "d", 5))


def test_a_partial_change_that_occurs_again_counts_once() -> None:
    """A sum would count twice otherwise."""
    table = rs.create_table(
        f"memory:///{uuid.uuid4().hex}", pa.table({"id": [1], "n": [2]}), key=["id"]
    )
    feed = pa.table({"id": [1] * 3, "n": [3, 3, 4], "op": ["u", "c", "u"], "seq": [5, 5, 6]})
    table.apply_changes(feed, op="op", sequence="seq", missing="keep", combine={"n": "sum"})
    assert table.to_arrow().column("n").to_pylist() == [9]
    other = feed.set_column(1, "n", pa.array([3, 0, 4]))
    with pytest.raises(KeyViolation, match="two different changes"):
        table.apply_changes(other, op="op", sequence="seq", missing="keep")
