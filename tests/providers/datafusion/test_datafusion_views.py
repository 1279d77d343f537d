"""Views and prepared statements of our session read the newest versions, and skip parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.query_plan import QueryPlan
from tests.small_tables import fresh_uri


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    made = rs.create_table(tmp_path / "t", numbered(range(100)), key=["id"])
    made.upsert(numbered(range(100, 110)))
    return made


@pytest.fixture
def context(table: rs.Table) -> SessionContext:
    made = SessionContext()
    made.register_table("t", table)
    return made


def numbered(ids: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"v{i}" for i in ids]})


def one(context: SessionContext, query: str, **arguments: Any) -> Any:
    [row] = context.sql(query, **arguments).to_pylist()
    [value] = row.values()
    return value


def explained(context: SessionContext, query: str) -> str:
    plans = {row["plan_type"]: row["plan"] for row in context.sql(f"EXPLAIN {query}").to_pylist()}
    found: str = plans["rowsieve"]
    return found


def test_a_view_reads_the_newest_version(context: SessionContext, table: rs.Table) -> None:
    context.sql("CREATE VIEW v (n, text) AS SELECT id, s FROM t WHERE id >= 50")
    context.sql("CREATE VIEW w AS SELECT n FROM v /* over a view */ WHERE n < 105")
    assert one(context, "SELECT count(*) FROM w") == 55
    rs.open_table(table.uri).delete("id % 2 = 0")
    counts = ", ".join(f"(SELECT count(*) FROM {name}) AS {name}" for name in "tvw")
    [row] = context.sql(f"SELECT {counts}").to_pylist()
    assert row == {"t": 55, "v": 30, "w": 27}
    table.upsert(numbered([60]))
    assert context.table("w").count() == 28
    assert one(context, 'SELECT sum(n) FROM datafusion.public."w" WHERE n = 60') == 60


def test_a_prepared_statement_reads_the_newest_version(
    context: SessionContext, table: rs.Table
) -> None:
    context.sql("CREATE VIEW v AS SELECT * FROM t WHERE id >= 50")
    context.sql("PREPARE p(BIGINT) AS SELECT count(*) FROM v WHERE id < $1")
    context.sql('PREPARE "P" AS SELECT 7')
    assert [one(context, f"EXECUTE p({n})") for n in (60, 105)] == [10, 55]
    rs.open_table(table.uri).delete("id = 55")
    assert [one(context, f" execute P({n});") for n in (60, 105)] == [9, 54]
    assert one(context, 'EXECUTE "P"') == 7
    context.sql("DEALLOCATE p")
    with pytest.raises(Exception, match="does not exist"):
        context.sql("EXECUTE p(60)")


PREPARED = {
    "a list of texts": "SELECT id FROM t WHERE s IN ('v1', 'v2', 'v3', 'v104')",
    "DISTINCT ON": "SELECT DISTINCT ON (id % 5) id % 5 AS m, id FROM t ORDER BY id % 5, id",
}


@pytest.mark.parametrize("query", PREPARED.values(), ids=PREPARED)
def test_a_prepared_statement_is_optimised_when_it_is_executed(
    context: SessionContext, query: str
) -> None:
    context.sql("SET datafusion.optimizer.max_passes = 5")
    context.sql(f"PREPARE p AS {query}")
    passes = "SHOW datafusion.optimizer.max_passes"
    assert sorted(context.sql("EXECUTE p").to_pylist(), key=str) == sorted(
        context.sql(query).to_pylist(), key=str
    )
    context.sql("SET datafusion.catalog.information_schema = true")
    assert context.sql(passes).to_pylist()[0]["value"] == "5"


def test_conditions_skip_parts_through_views_and_prepared_statements(
    context: SessionContext, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.sql("CREATE VIEW v AS SELECT id + 0 AS n, s FROM t WHERE s LIKE 'v10%'")
    assert "leave 1 of 2 parts" in explained(context, "SELECT * FROM v WHERE n > 103")
    assert "leave 2 of 2 parts" in explained(context, "SELECT * FROM t")
    context.sql("PREPARE p AS SELECT s FROM t WHERE id * 1 > $1")
    read: list[frozenset[str]] = []
    chosen_parts = QueryPlan.chosen_parts

    def noted(self: QueryPlan, *given: Any) -> Any:
        chosen = chosen_parts(self, *given)
        read.extend(chosen.values())
        return chosen

    monkeypatch.setattr(QueryPlan, "chosen_parts", noted)
    assert context.sql("EXECUTE p(105)").count() == 4
    assert context.sql("EXECUTE p(98)").count() == 11
    assert [len(parts) for parts in read] == [1, 2]
    assert context.sql("SELECT * FROM v").count() == 11
    assert context.sql("SELECT * FROM t").count() == 110


def test_changes_read_views(context: SessionContext, table: rs.Table) -> None:
    context.sql("CREATE VIEW few AS SELECT id FROM t WHERE id < 10")
    assert one(context, "UPDATE t SET s = 'few' WHERE id IN (SELECT id FROM few)") == 10
    assert one(context, "DELETE FROM t WHERE id IN (SELECT id + 1 FROM few)") == 10
    assert one(context, "INSERT INTO t SELECT id + 1000, 'new' FROM few") == 1
    assert one(context, "SELECT count(*) FROM t WHERE s = 'few'") == 1
    context.sql("CREATE TABLE copy AS SELECT * FROM few")
    table.upsert(numbered([5]))
    assert one(context, "INSERT INTO copy SELECT * FROM few") == 2
    assert one(context, "SELECT count(*) FROM copy") == 3


def test_a_view_that_is_replaced_or_dropped(context: SessionContext, table: rs.Table) -> None:
    context.sql("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(Exception, match="already exists"):
        context.sql("CREATE VIEW v AS SELECT s FROM t")
    for word in ("TEMP", "TEMPORARY"):
        with pytest.raises(Exception, match="Temporary views not supported"):
            context.sql(f"CREATE {word} VIEW x AS SELECT s FROM t")
    context.sql("CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM t")
    table.delete("id = 1")
    assert one(context, "SELECT n FROM v") == 109
    context.sql("CREATE OR REPLACE VIEW v AS SELECT 5 AS n")
    assert one(context, "SELECT n FROM v") == 5
    context.sql("CREATE OR REPLACE VIEW v AS SELECT max(id) AS n FROM t")
    context.sql("DROP VIEW v")
    context.register_view("v", context.sql("SELECT min(id) AS n FROM t"))
    table.delete("id = 0")
    assert one(context, "SELECT n FROM v") == 0, "it keeps its version"
    context.deregister_table("v")
    context.sql("CREATE VIEW v AS SELECT min(id) AS n FROM t")
    context.sql("CREATE OR REPLACE TABLE v AS SELECT 9 AS n")
    assert one(context, "SELECT n FROM v") == 9


def test_a_view_outlives_its_table(context: SessionContext, table: rs.Table) -> None:
    context.sql("CREATE VIEW v AS SELECT count(*) AS n FROM t")
    context.deregister_table("t")
    with pytest.raises(Exception, match=r"datafusion\.public\.t' not found"):
        context.sql("SELECT * FROM v")
    context.register_table("t", table)
    table.delete("id < 10")
    assert one(context, "SELECT * FROM v") == 100
    context.deregister_table("t")
    context.sql("DROP VIEW v")


def test_views_that_cannot_be_planned_anew_are_refused(context: SessionContext) -> None:
    context.sql("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(UnsupportedOperation, match="reads it"):
        context.sql("CREATE OR REPLACE VIEW v AS SELECT id + 1 AS id FROM v")
    assert one(context, "SELECT min(id) FROM v") == 0
    context.sql("CREATE VIEW w AS SELECT id FROM v")
    with pytest.raises(UnsupportedOperation, match="names it, too"):
        context.sql("CREATE OR REPLACE VIEW v AS SELECT id + 1 AS id FROM w")
    context.sql("CREATE VIEW id AS SELECT id FROM t")
    assert one(context, "SELECT count(*) FROM id") == 110
    for text in ("PREPARE p AS INSERT INTO x SELECT id FROM t", "PREPARE p AS DELETE FROM t"):
        with pytest.raises(UnsupportedOperation, match="is a query without INTO"):
            context.sql(text)
    with pytest.raises(UnsupportedOperation, match="is a query without INTO"):
        context.sql("PREPARE p AS SELECT id INTO x FROM t")
    with pytest.raises(UnsupportedOperation, match="takes no values"):
        context.sql("CREATE VIEW x AS SELECT id FROM t WHERE id = $1", param_values={"1": 5})


def test_settings_that_change_what_a_text_means(context: SessionContext, tmp_path: Path) -> None:
    context.sql("CREATE VIEW v AS SELECT count(*) AS n FROM t")
    context.sql("PREPARE p AS SELECT count(*) AS n FROM t")
    context.sql("CREATE SCHEMA other")
    context.register_table("other.t", rs.create_table(tmp_path / "u", numbered([1])))
    context.sql("SET datafusion.catalog.default_schema = 'other'")
    for text in ("SELECT * FROM public.v", "EXECUTE p"):
        with pytest.raises(UnsupportedOperation, match=r"created with .*default_schema = public"):
            context.sql(text)
    context.sql("SET datafusion.catalog.default_schema = 'public'")
    assert [one(context, text) for text in ("SELECT * FROM v", "EXECUTE p")] == [110, 110]


def test_names_that_are_not_folded(table: rs.Table) -> None:
    setting = {"datafusion.sql_parser.enable_ident_normalization": "false"}
    context = SessionContext(datafusion.SessionConfig(setting))
    context.register_table("t", table)
    context.sql("CREATE VIEW Few AS SELECT count(*) AS N FROM t WHERE id < 10")
    context.sql("PREPARE Most AS SELECT count(*) FROM t WHERE id >= 10")
    table.delete("id IN (5, 50)")
    for text, rows in (("SELECT N FROM Few", 9), ("EXECUTE most", 99), ("EXECUTE MOST", 99)):
        assert one(context, text) == rows
    context.sql("CREATE OR REPLACE VIEW Few AS SELECT 5 AS N")
    assert one(context, "SELECT N FROM Few") == 5
    context.sql("DEALLOCATE Most")
    context.sql("DROP VIEW Few")


def test_options_hold_for_views_and_prepared_statements(context: SessionContext) -> None:
    no_ddl = datafusion.SQLOptions().with_allow_ddl(allow=False)
    with pytest.raises(Exception, match="DDL not supported"):
        context.sql("CREATE VIEW v AS SELECT id FROM t", no_ddl)
    context.sql("PREPARE p AS SELECT id FROM t")
    no_statements = datafusion.SQLOptions().with_allow_statements(allow=False)
    with pytest.raises(Exception, match="Statement not supported"):
        context.sql("EXECUTE p", no_statements)
    assert context.sql("EXECUTE p", no_ddl).count() == 110


def test_views_of_a_catalog_follow_it(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", numbered(range(5)), key=["id"])
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    context.sql("CREATE VIEW v AS SELECT count(*) AS n FROM lake.db.t")
    context.sql("PREPARE p AS SELECT sum(n) FROM v, lake.db.t WHERE id = $1")
    table.delete("id = 0")
    assert one(context, "SELECT * FROM v") == 4
    assert one(context, "EXECUTE p(3)") == 4
    context.sql("CREATE VIEW c AS SELECT * FROM changes('lake.db.t', 1)")
    assert context.sql("SELECT * FROM c").count() == 1
    table.delete("id = 1")
    assert context.sql("SELECT * FROM c").count() == 2


@pytest.mark.parametrize("before", [";", " ; -- x\n ;", "/* a */;"])
def test_a_semicolon_in_front_changes_no_statement(before: str) -> None:
    context = SessionContext()
    context.register_table("t", rs.create_table(fresh_uri(), pa.table({"id": [1, 2]}), key=["id"]))
    context.sql(f"{before}CREATE VIEW w AS SELECT count(*) AS n FROM t")
    context.sql(f"{before}DELETE FROM t WHERE id = 1")
    assert context.sql(f"{before}SELECT n FROM w").to_pylist() == [{"n": 1}]
