"""How often DataFusion plans a statement, and that the parts it chose are those of it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from datafusion import col, lit

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.final_frame import FinalFrame


def numbered(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop), "v": [i % 7 for i in range(start, stop)]})


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Ids 0 to 299 in three clean parts."""
    table = rs.create_table(tmp_path / "t", numbered(0, 100), key=["id"])
    table.upsert(numbered(100, 200))
    table.upsert(numbered(200, 300))
    return table


@pytest.fixture
def catalog(tmp_path: Path, table: rs.Table) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.register_table("db.t", table.uri)
    return catalog


@contextmanager
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that DataFusion plans in the block, without settings."""
    texts: list[str] = []
    plain: Callable[..., Any] = datafusion.SessionContext.sql

    def noted(session: Any, text: str, *given: Any, **more: Any) -> Any:
        if not text.startswith("SET "):
            texts.append(text)
        return plain(session, text, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(datafusion.SessionContext, "sql", noted)
        yield texts


SKIPPING = "SELECT id FROM {} WHERE id * 1 > 250"


@pytest.mark.parametrize(
    ("query", "native", "times"),
    [
        ("SELECT id FROM t", False, 1),
        (SKIPPING.format("t"), False, 1),
        (SKIPPING.format("t"), True, 2),
        ("SELECT t.id FROM t LEFT JOIN t u ON t.id = u.id + 1 WHERE t.id * 1 > 250", True, 2),
        (SKIPPING.format("lake.db.t"), True, 1),
    ],
)
def test_a_statement_is_planned_once_or_twice(
    table: rs.Table,
    catalog: rs.Catalog,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    native: bool,
    times: int,
) -> None:
    context = SessionContext(native=native)
    context.register_catalog_provider("lake", catalog.to_datafusion())
    if "lake" not in query:
        context.register_table("t", table)
    for hidden in (False, True):
        if hidden:
            table.delete("v = 3")
        with planned(monkeypatch) as texts:
            frame = context.sql(query)
        assert 1 <= texts.count(query) <= times
        assert hidden or texts.count(query) == times
        ids = range(251, 300) if "250" in query else range(300)
        left = [i for i in ids if not (hidden and i % 7 == 3)]
        assert sorted(row["id"] for row in frame.to_pylist()) == left


@pytest.mark.parametrize("native", [True, False])
def test_parts_that_a_statement_chose_are_read_by_it_alone(
    table: rs.Table, catalog: rs.Catalog, native: bool
) -> None:
    context = SessionContext(native=native)
    context.register_table("t", table)
    context.register_catalog_provider("lake", catalog.to_datafusion())
    for name in ("t", "lake.db.t"):
        few = context.sql(SKIPPING.format(name))
        assert few.count() == len(few.to_pylist()) == 49
        assert context.table(name).count() == 300
        assert few.filter(col("id") > lit(290)).count() == 9
        both = f"SELECT id FROM {name} WHERE id NOT IN (SELECT id FROM {name} WHERE id * 1 > 250)"
        assert context.sql(both).count() == 251
        assert few.count() == 49
    context.sql(SKIPPING.format("lake.db.t"))
    provider = context.catalog("lake").schema("db").table("t")
    assert context.read_table(provider).count() == 300


def test_conditions_that_leave_only_parts_with_hidden_rows(table: rs.Table) -> None:
    """Our dataset reads some files of the table, and DataFusion the others."""
    table.delete("id = 250")
    context = SessionContext()
    context.register_table("t", table)
    query = "SELECT id FROM t WHERE id > 199 AND 10 / (id + 1) >= 0"  # it may fail on hidden rows
    lines = context.sql(f"EXPLAIN {query}").to_pylist()[-1]["plan"]
    assert "conditions leave 1 of 3 parts; our dataset reads them" in lines
    frame = context.sql(query)
    assert isinstance(frame, FinalFrame)
    assert "DataSourceExec" not in frame.execution_plan().display_indent()
    assert len(frame.to_pylist()) == frame.count() == 99


def test_an_outer_join_reads_the_parts_that_its_conditions_leave(table: rs.Table) -> None:
    context = SessionContext()
    context.register_table("t", table)
    context.register_table("u", rs.open_table(table.uri, version=1))
    query = "SELECT t.id FROM u RIGHT JOIN t ON u.id = t.id WHERE t.id * 1 >= 200"
    (line, _) = sorted(context.sql(f"EXPLAIN {query}").to_pylist()[-1]["plan"].splitlines())
    assert line == "t: version 2, conditions leave 1 of 3 parts; DataFusion's own reader reads 1"
    assert context.sql(query).count() == 100


def test_a_prepared_statement_runs_by_a_closed_plan(table: rs.Table) -> None:
    table.delete("v = 3")
    context = SessionContext()
    context.register_table("t", table)
    context.sql("PREPARE p AS SELECT id FROM t WHERE v + 0 = $1")
    for value, count in ((3, 0), (2, 43), (3, 0)):
        frame = context.sql(f"EXECUTE p({value})")
        assert isinstance(frame, FinalFrame)
        assert len(frame.to_pylist()) == frame.count() == count
