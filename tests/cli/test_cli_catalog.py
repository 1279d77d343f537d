"""Commands that take tables by name: `rowsieve --catalog`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from tests.cli.test_cli import run, run_json, run_rows
from tests.faults.interrupts import interrupting
from tests.faults.vocabulary import Fault
from tests.procedures.test_bound_call import FORMS, five_parts


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), path)
    return path


def test_commands_take_tables_by_name(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create", "db.t", rows, "--key", "id")
    run("--catalog", lake, "delete", "db.t", "id = 2")
    assert [each["version"] for each in run_json("--catalog", lake, "history", "db.t")] == [1, 0]
    assert run_json("--catalog", lake, "inspect", "db.t")["tombstones"] == 1
    counted = "SELECT count(*) AS n FROM db.t"
    assert run_rows("--catalog", lake, "query", counted) == [{"n": 2}]
    before = f"{counted} FOR VERSION AS OF 0"
    assert run_rows("--catalog", lake, "query", before) == [{"n": 3}]
    assert run_rows("--catalog", lake, "query", "SELECT id FROM t", "--table", "t=db.t") == [
        {"id": 1},
        {"id": 3},
    ]
    (called,) = run_rows("--catalog", lake, "call", "CALL system.compact('db', 't')")
    assert called["version"] == 2
    assert run_rows("call", lake, "CALL system.compact('db', 't')")[0]["version"] == 2


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_call_are_read(form: str, lake: Path) -> None:
    five_parts(lake)
    (row,) = run_rows("call", lake, form.format(c="lake"))
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (5, 1)
    (again,) = run_rows("--catalog", lake, "sql", "ALTER TABLE db.t EXECUTE optimize")
    assert again["version"] == row["version"]


@pytest.mark.parametrize(("zone", "count"), [("UTC", 5), ("Asia/Tokyo", 0)])
def test_times_of_a_call_are_in_the_zone_that_is_given(lake: Path, zone: str, count: int) -> None:
    at = five_parts(lake).open_table("db.t").history(1)[0].timestamp.replace(tzinfo=None)
    call = f"CALL system.expire_snapshots('db.t', TIMESTAMP '{at}')"
    (row,) = run_rows("call", lake, call, "--time-zone", zone)
    assert row["expired_versions_count"] == count


def test_name_of_a_dropped_table_is_created_anew(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create", "db.t", rows)
    catalog = rs.Catalog(lake)
    catalog.drop_table("db.t")
    assert "dropped or renamed" in run("--catalog", lake, "history", "db.t", code=3)
    run("--catalog", lake, "create", "db.t", rows, "--schema-only", "--if-exists", "ignore")
    assert catalog.open_table("db.t").scan().count() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("call", "elsewhere", "SHOW PROCEDURES"),
        ("query", "SELECT 1", "--version", "1"),
    ],
)
def test_two_catalogs_or_versions_are_wrong_usage(lake: Path, arguments: tuple[str, ...]) -> None:
    run("--catalog", lake, *arguments, code=2)


def test_namespaces_are_created_listed_and_dropped(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create-namespace", "empty")
    run("--catalog", lake, "create-namespace", "empty", "--if-not-exists")
    run("--catalog", lake, "create-namespace", "empty", code=3)
    run("--catalog", lake, "create-namespace", "shop", "--shared-log")
    run("--catalog", lake, "drop-namespace", "shop")
    run("--catalog", lake, "create", "db.t", rows)
    assert run("--catalog", lake, "namespaces").split() == ["db", "empty"]
    assert "has tables (1" in run("--catalog", lake, "drop-namespace", "db", code=3)
    run("--catalog", lake, "drop-namespace", "db", "--cascade")
    assert (lake / "db/t/data").is_dir()
    run("--catalog", lake, "drop-namespace", "db", code=3)
    absent = run("--catalog", lake, "drop-namespace", "db", "--if-exists")
    assert absent.strip() == "nothing to drop: there is no namespace db"
    run("--catalog", lake, "create", "empty.t", rows)
    dropped = run_json("--catalog", lake, "drop-namespace", "empty", "--purge")
    assert dropped == {"namespace": "empty", "dropped": True}
    assert run_json("--catalog", lake, "namespaces") == []
    assert [path for path in (lake / "empty").rglob("*") if path.is_file()] == []
    created = run_rows("--catalog", lake, "query", "CREATE SCHEMA again")
    assert created == [{"namespace": "again"}]
    run("namespaces", code=2)


def test_tables_are_listed_renamed_registered_and_dropped(
    lake: Path, rows: Path, tmp_path: Path
) -> None:
    run("--catalog", lake, "create", "db.t", rows, "--key", "id")
    run("--catalog", lake, "create", "other.u", rows)
    assert run("--catalog", lake, "tables").split() == ["db.t", "other.u"]
    assert run_json("--catalog", lake, "tables", "other") == ["other.u"]
    assert run_json("--catalog", lake, "tables", "none") == []
    assert "renamed db.t to other.t" in run("--catalog", lake, "rename", "db.t", "other.t")
    assert run_json("--catalog", lake, "inspect", "other.t")["key"] == ["id"]
    run("create", tmp_path / "elsewhere", rows)
    made = run_json("--catalog", lake, "register", "db.t", tmp_path / "elsewhere")
    assert made == {"table": "db.t", "uri": (tmp_path / "elsewhere").as_uri(), "version": 0}
    assert "not the catalog's to delete" in run(
        *("--catalog", lake, "drop", "db.t", "--purge"), code=3
    )
    assert run("--catalog", lake, "drop", "db.t").strip() == "dropped db.t"
    assert (tmp_path / "elsewhere/data").is_dir()
    assert run_json("--catalog", lake, "drop", "other.t", "--purge") == {
        "table": "other.t",
        "dropped": True,
    }
    assert [path for path in (lake / "db/t").rglob("*") if path.is_file()] == []
    assert run("--catalog", lake, "tables").split() == ["other.u"]


def test_names_that_are_missing_taken_or_wrong_are_refused(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create", "db.t", rows)
    assert "TableNotFound" in run("--catalog", lake, "drop", "db.nope", code=3)
    assert "nothing to drop" in run("--catalog", lake, "drop", "db.nope", "--if-exists")
    assert "TableExists" in run("--catalog", lake, "register", "db.t", lake / "db/t", code=3)
    assert "TableNotFound" in run("--catalog", lake, "register", "db.u", lake / "none", code=3)
    assert "has this name already" in run("--catalog", lake, "rename", "db.t", "db.t", code=3)
    assert "no namespace" in run("--catalog", lake, "drop", "t", "--if-exists", code=3)
    run("--catalog", lake, "rename", "db.t", code=2)
    for command in (
        ("tables",),
        ("drop", "db.t"),
        ("rename", "a.b", "a.c"),
        ("register", "a", "b"),
    ):
        assert "--catalog" in run(*command, code=2)
    assert run("--catalog", lake, "tables").split() == ["db.t"]


def test_sql_runs_every_statement_of_a_catalog(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create", "db.t", rows, "--key", "id")
    assert run_rows("--catalog", lake, "sql", "SELECT count(*) AS n FROM db.t") == [{"n": 3}]
    metadata = "SELECT operation FROM db.t$snapshots WHERE parent_id IS NULL"
    assert run_rows("--catalog", lake, "sql", metadata) == [{"operation": "create"}]
    tables = "SELECT table_name FROM information_schema.tables"
    assert run_rows("--catalog", lake, "query", tables) == [{"table_name": "t"}]
    (called,) = run_rows("--catalog", lake, "sql", "CALL system.compact('db', 't')")
    assert called["version"] == 0
    assert run_rows("--catalog", lake, "sql", "ALTER TABLE db.t RENAME TO u") == [{"table": "db.u"}]
    assert run_rows("--catalog", lake, "sql", "SHOW TABLES") == [{"table": "db.u"}]
    assert "did you mean" in run("--catalog", lake, "sql", "CALL compac('db', 'u')", code=3)
    assert run("--catalog", lake, "sql", "DROP TABLE db.u PURGE").split()[0] == "table"
    assert "--catalog" in run("sql", "SHOW TABLES", code=2)


def test_an_interrupted_change_of_names_says_where_to_look(
    lake: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--catalog", lake, "create", "db.t", rows)
    dropped = interrupting(rs.Catalog.drop_table, Fault.INTERRUPTED_AFTER)
    monkeypatch.setattr(rs.Catalog, "drop_table", dropped)
    told = run("--catalog", lake, "drop", "db.t", code=130)
    assert f"see the tables of {lake.as_uri()} and their history" in told
    assert run("--catalog", lake, "tables") == ""


def test_call_without_a_catalog_is_wrong_usage() -> None:
    run("call", "SHOW PROCEDURES", code=2)


def test_analyze_collects_what_parts_lack(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create", "db.t", rows, "--key", "id")
    analyze = ("--catalog", lake, "analyze", "db.t")
    assert "nothing to analyze" in run(*analyze)
    assert "analyzed 1 parts" in run(*analyze, "--rewrite-all")
    made = run_json(*analyze, "--column", "id", "--distinct-counts", "--metadata", "by=me")
    assert (made["operation"], made["metadata"]) == ("analyze", {"by": "me"})
    counts = rs.Catalog(lake).open_table("db.t").distinct_counts()
    assert [name for name, count in counts.items() if count is not None] == ["id"]
    assert "no column 'nope'" in run(*analyze, "--column", "nope", code=3)


def test_maintain_compacts_and_removes_files(lake: Path, rows: Path) -> None:
    run("--catalog", lake, "create", "db.t", rows, "--key", "id")
    run("--catalog", lake, "upsert", "db.t", rows)
    advice = run_json("--catalog", lake, "maintain", "db.t", "--advice")
    assert [each["action"] for each in advice["recommendations"]] == ["compact"]
    assert "compact" in run("--catalog", lake, "maintain", "db.t", "--advice")
    run("--catalog", lake, "maintain", "db.t", "--check", code=3)
    done = run_json("--catalog", lake, "maintain", "db.t", "--retain-last", "1", "--grace", "0")
    assert (done["parts_removed"], done["parts_added"]) == (2, 1)
    assert done["removed_files"] > 0
    assert done["advice"]["recommendations"] == []
    assert "nothing to do" in run("--catalog", lake, "maintain", "db.t", "--check")
    assert done["after"]["files"] < done["before"]["files"] + done["removed_files"]
    assert done["after"]["size_bytes"] > 0
    again = run("--catalog", lake, "maintain", "db.t", "--max-bytes-per-s", "1e9")
    assert "nothing to compact" in again
    assert f"{done['after']['files']} files, " in again


@pytest.mark.parametrize("command", ["tables", "namespaces"])
def test_a_catalog_that_does_not_exist_is_an_error(lake: Path, command: str) -> None:
    assert "no catalog at" in run("--catalog", lake, command, code=3)
    rs.Catalog(str(lake)).create_namespace("empty")
    assert run("--catalog", lake, "tables") == ""


def test_the_environment_names_the_catalog(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rs.Catalog(str(lake)).create_table("db.t", pa.table({"a": [1]}))
    monkeypatch.setenv("ROWSIEVE_CATALOG", str(lake))
    assert run("tables") == "db.t\n"
    assert run_rows("query", "SELECT a FROM db.t") == [{"a": 1}]


def test_a_table_and_a_database_are_no_catalogs(lake: Path) -> None:
    table, database = str(lake / "t"), str(lake / "d")
    rs.create_table(table, pa.table({"a": [1]}))
    rs.Database(database).create_table("t", pa.table({"a": [1]}))
    assert "it is a table" in run("--catalog", table, "tables", code=3)
    assert "--database" in run("--catalog", database, "namespaces", code=3)


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(lake: Path) -> None:
    catalog = rs.Catalog(lake)
    catalog.create_namespace("db")
    catalog.create_table("db.t", {"id": [1]}, ["id"])
    assert "did you mean 'db.t'?" in run("--catalog", lake, "head", "db.tt", code=3)


@pytest.mark.parametrize("name", ["v1", "1"])
def test_a_version_is_no_branch_or_tag(lake: Path, name: str) -> None:
    message = run("--catalog", lake, "--ref", name, "head", "db.t", code=2)
    assert "use --version 1 after the command" in " ".join(message.split())
