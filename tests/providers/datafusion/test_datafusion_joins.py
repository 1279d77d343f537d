"""Joins in our session: the order follows sizes, rows are right, and all readers come to an end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from datafusion import col, functions, lit

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext

JOIN = "SELECT few.v FROM few JOIN many USING (id)"


def numbered(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    return pa.table({"id": ids, "v": ids})


def context(folder: Path, few: int, many: int) -> SessionContext:
    made = SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    for name, rows in (("few", few), ("many", many)):
        made.register_table(name, rs.create_table(folder / name, numbered(0, rows), key=["id"]))
    return made


def plan_of(frame: Any) -> str:
    found: str = frame.execution_plan().display_indent()
    return found


def streams(frame: Any) -> Iterator[int]:
    """The number of rows, read in each of the ways that read partitions one after another."""
    yield pa.table(frame).num_rows
    yield sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(frame))
    parts = frame.execute_stream_partitioned()
    yield sum(batch.to_pyarrow().num_rows for part in parts for batch in part)


@pytest.mark.parametrize("query", [JOIN, "SELECT few.v FROM many JOIN few USING (id)"])
def test_the_smaller_table_is_read_first_whichever_that_is(tmp_path: Path, query: str) -> None:
    made = context(tmp_path, 10, 2_000)
    plan = plan_of(made.sql(query))
    assert plan.index("/few/") < plan.index("/many/")
    rs.open_table(tmp_path / "few").upsert(numbered(10, 9_000))
    plan = plan_of(made.sql(query))
    assert plan.index("/few/") > plan.index("/many/")


@pytest.mark.parametrize("parts", ["clean", "overlapping"])
def test_all_readers_of_a_join_end(tmp_path: Path, parts: str) -> None:
    """DataFusion 55 waits for ever if partitions of a join that filters are read in turn."""
    made = context(tmp_path, 20, 90)
    rs.open_table(tmp_path / "many").upsert(numbered(90, 120))
    if parts == "overlapping":
        rs.open_table(tmp_path / "few").upsert(numbered(10, 20))
        rs.open_table(tmp_path / "many").upsert(numbered(100, 110))
    frame = made.sql(f"{JOIN} WHERE abs(many.v) >= 0")
    for each, rows in ((frame, 20), (frame.filter(col("v") >= lit(10)), 10)):
        plan = plan_of(each)
        assert "DataSourceExec" in plan
        assert "DynamicFilter" not in plan
        assert list(streams(each)) == [rows] * 3


OUTER = {
    "right": "SELECT many.id FROM many RIGHT JOIN few ON many.id = few.id + 3 "
    "WHERE nullif(many.id, 0) > 4",
    "subquery": "SELECT many.v FROM many RIGHT JOIN (SELECT id FROM few) f ON many.id = f.id + 3 "
    "WHERE CASE WHEN many.id > 4 THEN TRUE END",
    "literals": "SELECT CASE WHEN '/*' <> 'a' THEN many.id END AS id FROM (SELECT * FROM many "
    "WHERE abs(id) >= 0) many RIGHT JOIN (SELECT * FROM few WHERE abs(id) >= 0) few "
    "ON many.id = few.id + 3 WHERE nullif(many.id, 0) > 4 AND '*/' <> 'a'",
    "filtered": "SELECT many.id FROM (SELECT * FROM many WHERE abs(id) >= 0) many RIGHT JOIN "
    "(SELECT * FROM few WHERE abs(id) >= 0) few ON many.id = few.id + 3 "
    "WHERE nullif(many.id, 0) > 4",
}
MATCHED = range(5, 43)  # of the ids of `few`, 3 added, those above 4


@pytest.fixture
def joined(tmp_path: Path) -> SessionContext:
    """Ids 0 to 39 of `few`, in two parts, and 0 to 89 of `many`."""
    made = context(tmp_path, 20, 90)
    rs.open_table(tmp_path / "few").upsert(numbered(15, 40))
    return made


@pytest.mark.parametrize("query", OUTER.values(), ids=OUTER)
def test_a_condition_above_an_outer_join_is_about_its_own_table(
    joined: SessionContext, query: str
) -> None:
    """DataFusion 55 pushes it into the scan of the other table, which has a column of its name."""

    def first_column(frame: Any) -> list[int]:
        return sorted(value for row in frame.to_pylist() for value in row.values())

    assert first_column(joined.sql(query)) == list(MATCHED)
    joined.sql(f"PREPARE outer_join AS {query}")
    assert first_column(joined.sql("EXECUTE outer_join")) == list(MATCHED)
    joined.sql(f"CREATE VIEW matched AS {query}")
    frame = joined.sql("SELECT * FROM matched")
    assert first_column(frame) == list(MATCHED)
    assert "DataSourceExec" in plan_of(frame)  # DataFusion reads clean parts itself


@pytest.mark.parametrize("old", ["few FOR VERSION AS OF 1", "few@now"])
def test_a_condition_above_an_outer_join_of_a_version_is_about_its_own_table(
    joined: SessionContext, tmp_path: Path, old: str
) -> None:
    rs.open_table(tmp_path / "few").tag("now")
    query = OUTER["filtered"].replace("FROM few ", f"FROM {old} AS f ")
    assert sorted(row["id"] for row in joined.sql(query).to_pylist()) == list(MATCHED)
    changed = f"DELETE FROM few WHERE id IN ({query})"
    assert joined.sql(changed).to_pylist() == [{"count": len(set(MATCHED) & set(range(40)))}]


@pytest.mark.parametrize("query", OUTER.values(), ids=OUTER)
def test_a_condition_above_an_outer_join_of_tables_of_a_catalog(
    joined: SessionContext, tmp_path: Path, query: str
) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    for name in ("few", "many"):
        catalog.register_table(f"db.{name}", tmp_path / name)
    joined.register_catalog_provider("lake", catalog.to_datafusion())
    plain = query.replace("FROM many", "FROM db.many many").replace("FROM few", "FROM db.few few")
    plain = plain.replace("JOIN few", "JOIN db.few few")
    assert sorted(catalog.sql(plain).column(0).to_pylist()) == list(MATCHED)
    joined.sql("SET datafusion.catalog.default_catalog = 'lake'")
    joined.sql("SET datafusion.catalog.default_schema = 'db'")
    joined.sql(f"PREPARE matched AS {query}")
    joined.sql(f"CREATE VIEW datafusion.public.matched AS {query}")
    for text in (query, "EXECUTE matched", "SELECT * FROM datafusion.public.matched"):
        rows = joined.sql(text).to_pylist()
        assert sorted(value for row in rows for value in row.values()) == list(MATCHED)
    plan = joined.sql(f"EXPLAIN {query}").to_pylist()[-1]["plan"]
    assert plan.count("our dataset reads them, because it is a table of a catalog") == 2
    kept = catalog.create_table("db.kept", pa.schema([("id", pa.int64())]), key=["id"])
    joined.sql(f"INSERT INTO kept {query}")
    kept.refresh()
    assert sorted(kept.to_arrow()["id"].to_pylist()) == list(MATCHED)
    joined.sql(f"DELETE FROM kept WHERE id IN ({query})")
    kept.refresh()
    assert kept.count() == 0


@pytest.mark.parametrize("query", OUTER.values(), ids=OUTER)
def test_rows_that_are_written_come_from_their_own_side(
    joined: SessionContext, tmp_path: Path, query: str
) -> None:
    target = rs.create_table(tmp_path / "kept", pa.schema([("id", pa.int64())]), key=["id"])
    joined.register_table("kept", target)
    joined.sql(f"INSERT INTO kept {query}").collect()
    assert sorted(rs.open_table(tmp_path / "kept").to_arrow()["id"].to_pylist()) == list(MATCHED)
    joined.sql(query.replace(" FROM", " INTO copied FROM", 1)).collect()
    assert joined.sql("SELECT * FROM copied").count() == len(MATCHED)


@pytest.mark.parametrize("kind", ["table", "statement"])
def test_outer_joins_by_methods_of_frames_keep_their_rows(
    joined: SessionContext, kind: str
) -> None:
    def frame(name: str) -> Any:
        found = joined.table(name) if kind == "table" else joined.sql(f"SELECT * FROM {name}")
        return found.filter(functions.abs(col("id")) >= lit(0))

    on = col("many.id") == col("few.id") + lit(3)
    both = frame("many").join_on(frame("few"), on, how="right")
    found = both.filter(functions.nullif(col("many.id"), lit(0)) > lit(4)).select(col("many.id"))
    assert "DataSourceExec" in plan_of(found)
    assert sorted(row["id"] for row in found.to_pylist()) == list(MATCHED)


def test_conditions_of_a_frame_skip_row_groups(joined: SessionContext) -> None:
    for frame in (joined.table("many"), joined.sql("SELECT id, v FROM many")):
        plan = plan_of(frame.filter(col("v") > lit(80)).limit(3))
        assert "pruning_predicate=" in plan
        assert frame.filter(col("v") > lit(80)).count() == 9
        assert frame.count() == 90


def test_the_first_rows_filter_a_scan_but_no_join(tmp_path: Path) -> None:
    made = context(tmp_path, 20, 90)
    top = "ORDER BY few.v LIMIT 3"
    assert "DynamicFilter" in plan_of(made.sql(f"SELECT v FROM few {top}"))
    union = f"SELECT * FROM (SELECT id, v FROM few UNION ALL SELECT v, id FROM few) few {top}"
    for query in (f"{JOIN} {top}", f"SELECT few.v FROM few, many m {top}", union):
        assert "DynamicFilter" not in plan_of(made.sql(query))
