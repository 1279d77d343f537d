"""One pass merges the few rows that a predicate on the key keeps: the same rows and failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError
from rowsieve.executor import execute, live_rows
from tests import random_tables
from tests.small_tables import fresh_uri


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each single pass gave."""
    found: list[int] = []
    whole = live_rows.LiveRows.matching_by_key

    def noted(self: live_rows.LiveRows, *arguments: Any) -> Any:
        rows = whole(self, *arguments)
        found.append(0 if rows is None else rows.num_rows)
        return rows

    monkeypatch.setattr(live_rows.LiveRows, "matching_by_key", noted)
    return found


def made(*changes: dict[str, list[Any]], key: str = "k") -> rs.Table:
    first, *others = changes
    table = rs.create_table(fresh_uri(), pa.table(first), key=[key])
    for change in others:
        table.upsert(pa.table(change))
    return table


def test_the_newest_versions_are_found_in_one_pass(passes: list[int]) -> None:
    table = made({"k": [*range(20)], "v": [0] * 20}, {"k": [3, 5, 30], "v": [1, 1, 1]})
    table.delete(keys=pa.table({"k": [4]}))
    found = table.scan("k BETWEEN 2 AND 6").to_arrow().sort_by("k").to_pylist()
    assert found == [{"k": k, "v": int(k in (3, 5))} for k in (2, 3, 5, 6)]
    assert passes == [4]


def test_other_columns_do_not_decide_before_the_merge(passes: list[int]) -> None:
    table = made({"k": [1, 2], "v": [0, 0]}, {"k": [1], "v": [7]})
    assert table.scan("k < 5 AND v = 0", columns=["k"]).to_arrow().to_pylist() == [{"k": 2}]
    assert passes == []


@pytest.mark.parametrize("pruning", ["on", "off"])
def test_a_row_that_is_seen_fails_and_one_that_is_hidden_does_not(
    passes: list[int], pruning: Literal["on", "off"]
) -> None:
    table = made({"k": [0, 1, 2], "v": [0, 0, 0]}, {"k": [0, 2], "v": [1, 1]})
    with pytest.raises(EvaluationError):
        table.scan("10 / k > 4", pruning=pruning).to_arrow()
    table.delete(keys=pa.table({"k": [0]}))
    found = table.scan("10 / k > 4", pruning=pruning).to_arrow()
    assert sorted(found.column("k").to_pylist()) == [1, 2]
    assert passes == ([1 + 2, 2] if pruning == "on" else [])


def test_zeros_of_both_signs_are_one_key_with_two_answers(passes: list[int]) -> None:
    table = made({"k": [-0.0, -2.0], "v": [1, 1]}, {"k": [0.0, 3.0], "v": [2, 2]})
    found = table.scan("1 / k < 0", dialect="datafusion").to_arrow()
    assert found.to_pylist() == [{"k": -2.0, "v": 1}]
    assert passes == []


def test_a_table_too_wide_for_the_memory_is_not_read_at_once(passes: list[int]) -> None:
    table = made({"k": [1, 2], "v": [0, 0]}, {"k": [1, 3], "v": [7, 7]})
    assert table.scan("k < 3", memory_bytes=1).to_arrow().num_rows == 2
    assert passes == []


def test_many_rows_come_in_batches(monkeypatch: pytest.MonkeyPatch, passes: list[int]) -> None:
    monkeypatch.setattr(execute, "ROW_GROUP_ROWS", 4)
    table = made({"k": [*range(10)], "v": [0] * 10}, {"k": [8, 9], "v": [1, 1]})
    batches = list(table.scan("k >= 0 AND k < 9").to_batches())
    assert [batch.num_rows for batch in batches] == [4, 4, 1]
    assert passes == [9]


@pytest.fixture
def tiny_row_groups() -> Iterator[None]:
    yield from random_tables.tiny_row_groups()


@pytest.mark.usefixtures("tiny_row_groups")
def test_rows_visible_among_a_few_keys_are_not_all_visible_rows(passes: list[int]) -> None:
    """Visibility is resolved among the keys of a condition, and cached for that condition."""
    table = made({"k": [*range(64)], "v": [0] * 64}, {"k": [3, 5, 70], "v": [1, 1, 1]})
    assert table.scan("k < 6 AND v = 0").to_arrow().num_rows == 4
    assert table.scan("v >= 0").to_arrow().num_rows == 65
    assert passes == []
