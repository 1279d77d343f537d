"""Data that names one of two columns whose names differ in case only."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from rowsieve.providers.datafusion import SessionContext

SCHEMA = pa.schema({"id": pa.int64(), "A": pa.int64(), "a": pa.int64()})
ROWS = pa.table({"id": [1, 2], "A": [10, 20], "a": [5, 6]}, SCHEMA)
STREAM = {"op": "op", "sequence": "lsn", "missing": "keep"}


def table_of(key: list[str] | None = None) -> rs.Table:
    return rs.create_table(f"memory:///{uuid.uuid4().hex}", ROWS, key=key)


def rows_of(table: rs.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def in_session(table: rs.Table, statement: str) -> Any:
    session = SessionContext()
    session.register_table("t", table)
    return session.sql(statement)


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        pytest.param(
            lambda t: t.upsert({"id": [1], "A": [7]}, columns="given"),
            [(1, 7, 5), (2, 20, 6)],
            id="one column is given",
        ),
        pytest.param(
            lambda t: t.upsert([{"id": 1, "A": 7}, {"id": 2, "a": 8}], columns="given"),
            [(1, 7, 5), (2, 20, 8)],
            id="each row gives another column",
        ),
        pytest.param(
            lambda t: t.upsert(
                pa.table({"id": [1], "A": [7], "a": [9], "kept": [["a"]]}),
                columns="given",
                unchanged="kept",
            ),
            [(1, 7, 5), (2, 20, 6)],
            id="a row keeps one column",
        ),
        pytest.param(
            lambda t: t.apply_changes(
                [
                    {"id": 1, "A": 7, "op": "u", "lsn": 1},
                    {"id": 1, "a": 8, "op": "u", "lsn": 2},
                    {"id": 2, "a": 9, "op": "u", "lsn": 2},
                ],
                **STREAM,
            ),
            [(1, 7, 8), (2, 20, 9)],
            id="a stream keeps what it does not name",
        ),
        pytest.param(
            lambda t: in_session(t, 'INSERT INTO t (id, "A") VALUES (3, 7)'),
            [(1, 10, 5), (2, 20, 6), (3, 7, None)],
            id="INSERT of one column",
        ),
        pytest.param(
            lambda t: in_session(t, 'INSERT INTO t BY NAME SELECT 3 AS id, 7 AS "A"'),
            [(1, 10, 5), (2, 20, 6), (3, 7, None)],
            id="INSERT BY NAME",
        ),
        pytest.param(
            lambda t: in_session(
                t,
                "MERGE INTO t USING (VALUES (3, 7)) AS s(k, v) ON t.id = s.k"
                ' WHEN NOT MATCHED THEN INSERT (id, "A") VALUES (s.k, s.v)',
            ),
            [(1, 10, 5), (2, 20, 6), (3, 7, None)],
            id="MERGE inserts one column",
        ),
    ],
)
def test_a_name_means_the_column_that_it_spells(
    change: Callable[[rs.Table], Any], rows: list[tuple[Any, ...]]
) -> None:
    table = table_of(["id"])
    change(table)
    assert rows_of(table) == rows


def test_an_append_fills_the_column_that_its_rows_lack() -> None:
    table = table_of()
    table.append({"id": [3], "a": [7]})
    table.append([{"id": 4, "A": 8}])
    assert rows_of(table)[2:] == [(3, None, 7), (4, 8, None)]


def test_a_row_that_lacks_one_of_the_columns_is_refused() -> None:
    table = table_of(["id"])
    with pytest.raises(SchemaMismatch, match="'a'"):
        table.upsert([{"id": 1, "A": 7, "a": 8}, {"id": 2, "A": 9}])
    assert rows_of(table) == [(1, 10, 5), (2, 20, 6)]
