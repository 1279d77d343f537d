"""Changes of rows by `sql` of a catalog and of a database: one commit, as in a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation

Named: TypeAlias = rs.Catalog | rs.Database


@pytest.fixture(params=[rs.Catalog, rs.Database])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Named:
    make: Callable[[str], Named] = request.param
    lake = make(str(tmp_path / "lake"))
    if isinstance(lake, rs.Catalog):
        lake.create_namespace("db")
    lake.create_table("db.t", pa.table({"k": range(4), "v": range(4)}), key=["k"])
    lake.create_table("db.u", pa.table({"k": [1, 9], "v": [50, 90]}), key=["k"])
    return lake


CHANGES = {
    "INSERT INTO db.t VALUES (7, 70)": (1, {0: 0, 1: 1, 2: 2, 3: 3, 7: 70}),
    "UPDATE db.t SET v = v + 10 WHERE k IN (SELECT k FROM db.u)": (1, {0: 0, 1: 11, 2: 2, 3: 3}),
    "DELETE FROM db.t WHERE v >= 2": (2, {0: 0, 1: 1}),
    "MERGE INTO db.t AS t USING db.u AS u ON t.k = u.k WHEN MATCHED THEN UPDATE SET v = u.v "
    "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (u.k, u.v)": (
        2,
        {0: 0, 1: 50, 2: 2, 3: 3, 9: 90},
    ),
}


@pytest.mark.parametrize("statement", CHANGES)
def test_a_change_of_rows_is_one_commit(lake: Named, statement: str) -> None:
    count, rows = CHANGES[statement]
    before = lake.open_table("db.t").version
    assert lake.sql(statement).to_pylist() == [{"count": count}]
    table = lake.open_table("db.t")
    assert dict(zip(*table.to_arrow().sort_by("k").to_pydict().values(), strict=True)) == rows
    assert len(table.history()) == 2
    assert table.version > before


def test_values_of_a_change_are_bound(lake: Named) -> None:
    text = "UPDATE db.t SET v = $v WHERE k IN $ids"
    assert lake.sql(text, params={"v": -1, "ids": [0, 3]}).to_pylist() == [{"count": 2}]
    assert lake.sql("SELECT k FROM db.t WHERE v = -1 ORDER BY k")["k"].to_pylist() == [0, 3]
    with pytest.raises(InvalidInput, match="has no value"):
        lake.sql("DELETE FROM db.t WHERE k = $k", params={"nope": 1})


def test_a_change_that_fails_changes_nothing(lake: Named) -> None:
    with pytest.raises(rs.errors.RowsieveError, match="nothing was changed"):
        lake.sql("UPDATE db.t SET v = 1 / v")
    assert len(lake.open_table("db.t").history()) == 1


def test_a_table_is_created_from_a_query(lake: Named) -> None:
    text = "CREATE TABLE IF NOT EXISTS db.few USING rowsieve TBLPROPERTIES ('key' = 'k') AS "
    for count in (2, 0):
        created = lake.sql(f"{text} SELECT k, v * 2 AS v FROM db.t WHERE k < $k", params={"k": 2})
        assert created.to_pylist() == [{"count": count}]
    assert lake.sql("SELECT * FROM db.few ORDER BY k")["v"].to_pylist() == [0, 2]
    assert lake.open_table("db.few").key == ("k",)


@pytest.mark.parametrize("statement", ["CREATE VIEW db.w AS SELECT 1", "PREPARE p AS SELECT 1"])
def test_statements_of_a_session_are_refused_with_the_way_out(lake: Named, statement: str) -> None:
    with pytest.raises(UnsupportedOperation, match=r"keeps nothing; use .*SessionContext"):
        lake.sql(statement)
