"""Soft pruning: silent where statistics are right, loud where they lie; its rows are right."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, UnsoundPruning
from rowsieve.storage.manifest import PartTable

ROWS = pa.table({"id": list(range(8)), "v": [i * 10 for i in range(8)]})


def build(name: str) -> rs.Table:
    table = rs.create_table(f"memory:///audit/{name}/{uuid.uuid4().hex}", ROWS, key=["id"])
    table.upsert(pa.table({"id": [3, 20], "v": [-1, 200]}))
    table.upsert(pa.table({"id": [50], "v": [500]}))
    table.delete("id = 5")
    return table


def lie(table: rs.Table, fact: str, value: Any) -> rs.Table:
    """The same table with one statistic of every part changed."""
    parts = table._pinned.parts.table
    place = parts.column_names.index(fact)
    column = pa.array([value] * parts.num_rows, parts.schema.field(fact).type)
    changed = PartTable(parts.set_column(place, parts.schema.field(fact), column))

    table._pinned = dataclasses.replace(table._pinned, parts=changed)
    table._read_only = True  # so that it reads what is pinned
    return table


@pytest.mark.parametrize(
    "where", ["v = 30", "v = -1", "id = 3", "v > 100", "id < 2 OR v = 500", "v IS NULL", "TRUE"]
)
@pytest.mark.parametrize("order_by_key", [False, True])
def test_on_soft_and_off_give_the_same_rows(where: str, order_by_key: bool) -> None:
    table = build("same")
    found = [
        sorted(
            table.scan(where, pruning=pruning, order_by_key=order_by_key).to_arrow().to_pylist(),
            key=str,
        )
        for pruning in ("on", "soft", "off")
    ]
    assert found[0] == found[1] == found[2]
    assert table.scan(where, pruning="soft").count() == len(found[0])


def test_a_bound_that_is_too_narrow_is_found() -> None:
    table = lie(lie(build("narrow"), "stats.2.upper", 100), "stats.2.lower", 0)
    assert table.scan("v = 500").count() == 0  # the silently wrong answer
    with pytest.raises(UnsoundPruning, match=r"row 0 of part \w+ was skipped, but it matches"):
        table.scan("v = 500", pruning="soft").to_arrow()
    assert table.scan("v = 500", pruning="off").count() == 1


def test_a_claim_that_all_rows_match_is_checked() -> None:
    table = lie(lie(build("all"), "stats.2.lower", 500), "stats.2.upper", 500)
    with pytest.raises(UnsoundPruning, match="was taken to match, but it does not"):
        table.scan("v = 500", pruning="soft").count()


def test_an_error_that_pruning_would_hide_is_found() -> None:
    table = lie(build("error"), "stats.2.lower", 1)
    with pytest.raises(EvaluationError):
        table.scan("10 / v = 7", pruning="off").count()
    with pytest.raises((UnsoundPruning, EvaluationError)):
        table.scan("10 / v = 7", pruning="soft").count()


def test_hidden_rows_are_not_judged() -> None:
    """A stale version matches, but nobody can see it: pruning its part is right."""
    table = build("hidden")
    assert table.scan("v = 50", pruning="soft").count() == 0  # id 5 is deleted
    assert table.scan("v = 30", pruning="soft").count() == 0  # id 3 has a newer version
