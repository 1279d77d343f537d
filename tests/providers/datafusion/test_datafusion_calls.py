"""Statements on procedures, and on versions of tables, in our session of DataFusion."""

from __future__ import annotations

from pathlib import Path

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, NotFound
from rowsieve.providers.datafusion import SessionContext
from tests.procedures.test_bound_call import FORMS, five_parts


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.table({"id": [1, 2], "v": [1, 2]}), ["id"])
    table.upsert(pa.table({"id": [2, 3], "v": [20, 30]}))
    return catalog


@pytest.fixture
def context(catalog: rs.Catalog) -> SessionContext:
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    return context


def test_procedures_are_called_in_the_session(catalog: rs.Catalog, context: SessionContext) -> None:
    counted = "SELECT count(*) AS n, sum(v) AS v FROM lake.db.t"
    before = context.sql(counted).to_pylist()
    rewrite = "rewrite_data_files('db', 't', options => map('rewrite-all', 'true'))"
    plan = context.sql(f"EXPLAIN CALL lake.system.{rewrite}").to_pylist()
    assert "TableFinish [one commit]" in plan[1]["plan"]
    (row,) = context.sql(f"-- all of it\nCALL lake.system.{rewrite};").to_pylist()
    assert (row["rewritten_data_files_count"], row["version"]) == (2, 2)
    assert context.sql(counted).to_pylist() == before
    assert catalog.open_table("db.t").history(1)[0].operation == "rewrite_data_files"
    context.sql("ALTER TABLE lake.db.t EXECUTE optimize(rewrite_all => true)")
    assert catalog.open_table("db.t").version == 3
    shown = [each["procedure"] for each in context.sql("SHOW PROCEDURES").to_pylist()]
    assert "vacuum" in shown
    described = context.sql("DESCRIBE PROCEDURE vacuum").to_pylist()
    assert described[0]["parameter"] == "schema"


def test_calls_find_their_catalog(tmp_path: Path, context: SessionContext) -> None:
    call = "system.compact('db', 't')"
    assert context.sql(f"CALL {call}").to_pylist()[0]["version"] == 2  # the only catalog
    other = rs.Catalog(tmp_path / "other")
    other.create_table("db.t", pa.table({"id": [1]}), ["id"])
    context.register_catalog_provider("other", other.to_datafusion())
    assert context.sql(f"CALL OTHER.{call}").to_pylist()[0]["version"] == 0
    with pytest.raises(InvalidInput, match="name the catalog, one of lake, other"):
        context.sql(f"CALL {call}")
    with pytest.raises(InvalidInput, match="no Rowsieve catalog 'third', but lake, other"):
        context.sql(f"CALL third.{call}")
    context.sql("SET datafusion.catalog.default_catalog = 'other'")
    assert context.sql(f"CALL {call}").to_pylist()[0]["version"] == 0
    with pytest.raises(InvalidInput, match="the session has none of Rowsieve"):
        SessionContext().sql(f"CALL {call}")


def test_calls_that_cannot_run_say_why(context: SessionContext) -> None:
    with pytest.raises(NotFound, match="did you mean 'compact'"):
        context.sql("CALL lake.system.compat('db', 't')")
    with pytest.raises(InvalidInput, match="takes no options and no values"):
        context.sql("CALL lake.system.compact('db', 't')", datafusion.SQLOptions())
    with pytest.raises(InvalidInput, match="takes no options and no values"):
        context.sql("CALL lake.system.compact('db', 't')", param_values={"a": 1})
    context.from_pydict({"call": ["EXECUTE"]}, name="words")
    assert context.sql("SELECT call FROM words WHERE call = 'EXECUTE'").to_pylist() == [
        {"call": "EXECUTE"}
    ]


def test_versions_are_read_by_their_numbers(context: SessionContext) -> None:
    query = "SELECT sum(v) AS v FROM lake.db.t"
    assert context.sql(query).to_pylist() == [{"v": 51}]
    assert context.sql(f"{query} FOR VERSION AS OF 0").to_pylist() == [{"v": 3}]
    joined = context.sql(
        "SELECT now.v - t.v AS more FROM lake.db.t now JOIN lake.db.t FOR VERSION AS OF 0 "
        "ON now.id = t.id WHERE now.v > t.v AND 'FOR VERSION AS OF 9' <> ''"
    )
    assert joined.to_pylist() == [{"more": 18}]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_called_in_the_session(form: str, tmp_path: Path) -> None:
    context = SessionContext()
    context.register_catalog_provider("lake", five_parts(tmp_path / "five").to_datafusion())
    (row,) = context.sql(form.format(c="lake")).to_pylist()
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (5, 1)


def test_a_table_is_found_in_the_catalog_that_its_name_begins_with(
    tmp_path: Path, context: SessionContext
) -> None:
    context.register_catalog_provider("other", five_parts(tmp_path / "five").to_datafusion())
    for call in ("compact('other.db.t')", "compact(table => 'other.db.t')"):
        (plan, _) = context.sql(f"EXPLAIN CALL system.{call}").to_pylist()
        assert plan["plan"].startswith("Output [version")
    assert context.sql("CALL system.compact('other.db.t')").to_pylist()[0]["version"] == 6
    assert context.sql("CALL system.compact('lake.db.t')").to_pylist()[0]["version"] == 2
    with pytest.raises(InvalidInput, match="no Rowsieve catalog 'third'"):
        context.sql("CALL system.compact('third.db.t')")
    with pytest.raises(InvalidInput, match="is in the catalog other, and the call is for lake"):
        context.sql("CALL lake.system.compact('other.db.t')")


@pytest.mark.parametrize(("zone", "count"), [("+00:00", 1), ("+09:00", 0)])
def test_times_are_in_the_zone_of_the_session(
    catalog: rs.Catalog, context: SessionContext, zone: str, count: int
) -> None:
    at = catalog.open_table("db.t").history(1)[0].timestamp.replace(tzinfo=None)
    context.sql(f"SET datafusion.execution.time_zone = '{zone}'")
    call = f"expire_snapshots('db.t', older_than => TIMESTAMP '{at}')"
    (row,) = context.sql(f"CALL lake.system.{call}").to_pylist()
    assert row["expired_versions_count"] == count
