"""The table property `combine`: rules that hold for every upsert and change stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.data.ingest import Changes
from rowsieve.errors import InvalidInput, InvalidSchemaChange, UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from rowsieve.storage.snapshot import ORDER_WRITER
from tests.small_tables import fresh_uri, overtake

SCHEMA = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("day", pa.date32())]
)
RULES = "n: sum, day: max"


def combining(**properties: str) -> Table:
    properties = properties or {"combine": RULES}
    return rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"], properties=properties)


def rows(table: Table) -> list[tuple[Any, ...]]:
    found = table.scan(columns=["k", "n"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_rules_hold_for_upserts_and_streams() -> None:
    table = combining()
    assert table.handle.newest.table.writer_version >= ORDER_WRITER
    table.upsert({"k": [1, 2], "n": [1, 2], "day": [None, None]})
    table.upsert({"k": [1], "n": [5], "day": [None]})
    table.upsert([{"k": 2, "n": 5}], columns="given")
    table.apply_changes([{"k": 1, "n": 1, "day": None, "op": "u", "l": 1}], op="op", sequence="l")
    assert rows(table) == [(1, 7), (2, 7)]
    table.upsert({"k": [1], "n": [3], "day": [None]}, combine={"N": "last"})
    assert rows(table)[0] == (1, 3)
    table.update({"n": "100"}, where="k = 1")
    table.overwrite({"k": [2], "n": [0], "day": [None]}, where="k = 2")
    assert rows(table) == [(1, 100), (2, 0)]
    table.upsert([{"k": 1, "n": 1, "new": "x"}], columns="given", schema_mode="merge")
    changes = [{"k": 2, "n": 4, "other": 1, "op": "u", "l": 1}]
    table.apply_changes(changes, op="op", sequence="l", schema_mode="merge")
    assert rows(table) == [(1, 101), (2, 4)]
    table.unset_properties(["combine"])
    table.upsert([{"k": 1, "n": 9}], columns="given")
    assert rows(table)[0] == (1, 9)


def test_ways_that_replace_rows_are_refused() -> None:
    table = combining()
    table.upsert({"k": [1], "n": [1], "day": [None]})
    context = SessionContext()
    context.register_table("t", table)
    with pytest.raises(UnsupportedOperation, match="property combine"):
        context.sql("INSERT OR REPLACE INTO t VALUES (1, 5, NULL)")
    change = table.handle.change("upsert")
    data = pa.table({"k": [1], "n": [5], "day": [None]}, schema=table.schema)
    with pytest.raises(UnsupportedOperation, match="n: sum, day: max"):
        table.handle.commit_blind(change, Changes(data, None))
    assert rows(table) == [(1, 1)]


def test_a_property_that_is_set_meanwhile_is_obeyed_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = combining(isolation="serializable")
    table.upsert({"k": [1], "n": [1], "day": [None]})
    overtake(table, monkeypatch, lambda other: other.set_properties({"combine": RULES}))
    with pytest.raises(UnsupportedOperation, match="property combine"):
        table.upsert({"k": [1], "n": [5], "day": [None]})
    table.refresh()
    table.upsert({"k": [1], "n": [5], "day": [None]})
    assert rows(table) == [(1, 6)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("n", "must name columns"),
        ("n: sum, n: max", "each once"),
        ("nope: sum", "must name columns"),
        ("n: add", "is not a rule; known are"),
        ("day: sum", "sum takes"),
        ("k: max", "identifies its row"),
        ("", "must name columns"),
    ],
)
def test_bad_rules_are_refused(text: str, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        combining(combine=text)
    with pytest.raises(InvalidInput, match=match):
        combining(isolation="snapshot").set_properties({"combine": text})


def test_columns_with_a_rule_are_not_dropped_or_renamed() -> None:
    table = combining()
    with pytest.raises(InvalidSchemaChange, match="combine"):
        table.drop_column("n")
    with pytest.raises(InvalidSchemaChange, match="combine"):
        table.rename_column("n", "m")
    assert table.schema.names == ["k", "n", "day"]
