"""Names of our session: each stands for one table, and all names of it for one version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries
from rowsieve.providers.datafusion.query_plan import QueryPlan

COUNT = "SELECT count(*) AS n FROM {}"


def numbered(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Ids 0 to 19 in four parts."""
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(5)), key=["id"])
    for start in (5, 10, 15):
        made.upsert(numbered(*range(start, start + 5)))
    return made


def session(**tables: rs.Table) -> SessionContext:
    context = SessionContext()
    for name, table in tables.items():
        context.register_table(name, table)
    return context


def count(context: SessionContext, name: str = "t") -> int:
    return int(context.sql(COUNT.format(name)).to_pylist()[0]["n"])


def test_a_name_keeps_its_place_if_the_default_schema_changes(table: rs.Table) -> None:
    context = session(t=table)
    context.sql("CREATE SCHEMA other").collect()
    context.sql("SET datafusion.catalog.default_schema = 'other'").collect()
    rs.open_table(table.uri).upsert(numbered(500))
    assert count(context, "public.t") == 21
    assert context.sql("DELETE FROM public.t WHERE id = 500").to_pylist() == [{"count": 1}]
    assert count(context, "public.t") == 20
    assert context.catalog().schema("other").names() == set()
    context.register_table("t", rs.open_table(table.uri, version=0))
    assert (count(context), count(context, "public.t")) == (5, 20)


def test_a_name_is_removed_however_it_is_written(table: rs.Table) -> None:
    context = session(t=table)
    context.deregister_table("public.T")
    context.from_arrow(numbered(7), "t")
    table.upsert(numbered(500))
    assert count(context) == 1
    assert context.sql("SELECT id FROM t WHERE id > 3").to_pylist() == [{"id": 7}]


def test_a_name_that_went_with_its_schema_is_forgotten(table: rs.Table) -> None:
    context = session(t=table)
    context.sql("CREATE SCHEMA other").collect()
    context.register_table("other.t", rs.open_table(table.uri))
    assert count(context, "other.t") == 20
    context.sql("DROP SCHEMA other CASCADE").collect()
    rs.open_table(table.uri).delete("id = 3")
    assert count(context) == 19


@pytest.mark.parametrize("name", ["My Table", "my-table", "1t", "a.b-c", "é t", "t@v1"])
def test_a_name_that_is_no_identifier_is_taken_as_it_is(table: rs.Table, name: str) -> None:
    context = session(**{name: table})
    written = '"' + name + '"'
    rs.open_table(table.uri).upsert(numbered(500))
    assert count(context, written) == 21
    assert context.sql(f"DELETE FROM {written} WHERE id < 5").to_pylist() == [{"count": 5}]
    assert count(context, written) == 16
    context.deregister_table(name)
    assert context.catalog().schema().names() == set()


def test_two_names_of_a_table_are_read_at_one_version(table: rs.Table, tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path / "catalog"))
    catalog.register_table("default.t", table.uri)
    other = rs.open_table(table.uri)
    context = session(t=table, u=other)
    context.register_catalog_provider("lake", catalog.to_datafusion())
    writer = rs.open_table(table.uri)
    after = other.refresh

    def meanwhile() -> int:
        writer.upsert(numbered(*range(1000, 1000 + writer.version)))
        return after()

    other.refresh = meanwhile  # type: ignore[method-assign]
    names = ("t", "u", "lake.default.t", "changes('lake.default.t', 0)", "changes('u', 0)")
    texts = [f"({COUNT.format(name)}) AS n{place}" for place, name in enumerate(names)]
    found = context.sql(f"SELECT {', '.join(texts)}").to_pylist()[0]
    assert found["n0"] == found["n1"] == found["n2"]
    assert found["n3"] == found["n4"]


def test_a_change_reads_its_table_at_one_version_by_any_name(
    table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = rs.Catalog(str(tmp_path / "catalog"))
    catalog.register_table("default.t", table.uri)
    context = session(t=table)
    context.register_catalog_provider("lake", catalog.to_datafusion())
    other = rs.open_table(table.uri)
    rows = StatementQueries.run
    left = [1]

    def meanwhile(*arguments: Any, **options: Any) -> pa.Table:
        found = rows(*arguments, **options)
        if left:
            left.pop()
            other.upsert(pa.table({"id": [100], "v": [10_000]}))
        return found

    monkeypatch.setattr(StatementQueries, "run", meanwhile)
    query = "UPDATE t SET v = (SELECT max(v) FROM lake.default.t) + 1 WHERE id = 1"
    assert context.sql(query).to_pylist() == [{"count": 1}]
    assert context.sql("SELECT v FROM t WHERE id = 1").to_pylist() == [{"v": 10_001}]


def test_sessions_that_share_a_provider_do_not_see_each_others_statements(
    table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = rs.Catalog(str(tmp_path / "catalog"))
    catalog.register_table("default.t", table.uri)
    provider = catalog.to_datafusion()
    context, other = SessionContext(), SessionContext()
    plain = datafusion.SessionContext()
    for each in (context, other, plain):
        each.register_catalog_provider("lake", provider)
    seen = []
    chosen = QueryPlan.chosen_parts

    def meanwhile(self: QueryPlan, *given: Any) -> Any:
        if self.session is context:
            seen.append(plain.sql(COUNT.format("lake.default.t")).to_pylist()[0]["n"])
            seen.append(count(other, "lake.default.t"))
        return chosen(self, *given)

    monkeypatch.setattr(QueryPlan, "chosen_parts", meanwhile)
    context.sql(
        "MERGE INTO lake.default.t AS t USING (SELECT 3 AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE"
    )
    assert set(seen) == {20}
    assert count(context, "lake.default.t") == 19
