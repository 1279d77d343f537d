"""A table is named in two arguments, or in one, and a statement says the same in all its forms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.procedures.bound_call import bound_arguments, named_catalog
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, Procedure
from rowsieve.statements.call_values import Value
from rowsieve.statements.calls import Call
from rowsieve.statements.parse_statement import parse
from rowsieve.table import Table


class Marked(Procedure):
    """Its table is named in the middle."""

    name = "marked"
    parameters = (
        Parameter("mark", ParameterType.TEXT),
        TABLE_NAME,
        SCHEMA,
        Parameter("count", ParameterType.WHOLE),
    )
    columns = pa.schema([])

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Return no rows."""
        del table, arguments
        return self.columns.empty_table()


WANTED = {"mark": "a.b", "schema": "db", "table_name": "t", "count": 5}


def call_of(text: str) -> Call:
    found = parse(text)
    assert isinstance(found, Call)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        "'a.b', 't', 'db', 5",
        "'a.b', 'db.t', 5",
        "'a.b', 'c.db.t', 5",
        "'a.b', '\"db\".`t`', 5",
        "'a.b', 'db.t', count => 5",
        "'a.b', table => 'db.t', count => 5",
        "mark => 'a.b', TABLE => 'db.t', count => 5",
        "'a.b', 't', schema => 'db', count => 5",
    ],
)
def test_one_name_is_the_namespace_and_the_table(arguments: str) -> None:
    assert bound_arguments(Marked(), call_of(f"CALL c.system.marked({arguments})"), "UTC") == WANTED


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("'a.b', 'db.t', schema => 'db'", "give table, or schema and table_name, not both"),
        ("'a.b', 'db.t', table => 'db.t'", "table_name is given twice"),
        ("'a.b', 'd.db.t'", "the table d.db.t is in the catalog d, and the call is for c"),
        ("'a.b', table => 'd.db.t'", "is in the catalog d, and the call is for c"),
        ("'a.b', table => 't'", "table is 't'; give the namespace and the name"),
        ("'a.b', 't'", "needs the argument schema"),
        ("'a.b', 'a.b.c.d'", "needs the argument schema"),
        ("'a.b', 'db.t', 5, 6", "at most 2 arguments after the table .mark, count."),
    ],
)
def test_a_name_that_says_two_things_is_refused(arguments: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        bound_arguments(Marked(), call_of(f"CALL c.system.marked({arguments})"), "UTC")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CALL system.compact('db.t')", None),
        ("CALL system.compact('lake.db.t')", "lake"),
        ("CALL system.compact(table => 'lake.db.t')", "lake"),
        ("CALL other.system.compact('db.t')", "other"),
        ("ALTER TABLE lake.db.t EXECUTE optimize", "lake"),
        ("CALL system.mystery('lake.db.t')", None),
    ],
)
def test_the_catalog_is_that_of_the_call_or_of_its_table(statement: str, name: str | None) -> None:
    assert named_catalog(built_in(), call_of(statement)) == name


FORMS = (
    "CALL {c}.system.rewrite_data_files('db.t')",
    "CALL {c}.system.rewrite_data_files('{c}.db.t')",
    "CALL {c}.system.rewrite_data_files(table => 'db.t', where => 'id >= 0')",
    "CALL {c}.system.rewrite_data_files('db', 't', 'id >= 0')",
    "CALL system.rewrite_data_files('db.t', options => MAP(ARRAY['rewrite-all'], ARRAY['true']))",
    "ALTER TABLE db.t EXECUTE optimize",
    "ALTER TABLE db.t EXECUTE optimize(file_size_threshold => '128MB')",
    "ALTER TABLE {c}.db.t EXECUTE optimize WHERE id >= 0",
)
"""The statements of the source documents; `{c}` is the name of a catalog."""


def five_parts(folder: Path) -> rs.Catalog:
    """A catalog whose table `db.t` has five parts, worth a rewrite."""
    catalog = rs.Catalog(folder)
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), ["id"])
    for i in range(5):
        table.upsert(pa.table({"id": [i]}))
    return catalog


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_rewrite_the_same_files(form: str, tmp_path: Path) -> None:
    (row,) = five_parts(tmp_path).call(form.format(c="lake")).to_pylist()
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (5, 1)


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("optimize_manifests", 5),
        ("expire_snapshots(retention_threshold => '7d')", 5),
        ("remove_orphan_files(retention_threshold => '7d')", 5),
        ("rollback_to_snapshot(2)", 2),
        ("rollback_to_snapshot(snapshot_id => 3)", 3),
    ],
)
def test_commands_of_a_table_run_on_it(command: str, rows: int, tmp_path: Path) -> None:
    catalog = five_parts(tmp_path)
    first = catalog.open_table("db.t").version - 5
    text = command.replace("(2)", f"({first + 2})").replace("=> 3", f"=> {first + 3}")
    assert catalog.call(f"ALTER TABLE db.t EXECUTE {text}").num_rows
    assert catalog.open_table("db.t").count() == rows


@pytest.mark.parametrize(
    ("call", "zone", "count"),
    [
        ("expire_snapshots('db.t', TIMESTAMP '2021-06-30 00:00:00.000', 100)", "UTC", 0),
        ("expire_snapshots(table => 'db.t', older_than => TIMESTAMP '{next}')", "UTC", 5),
        ("expire_snapshots(table => 'db.t', older_than => TIMESTAMP '{next}')", "Asia/Tokyo", 0),
        ("vacuum('db.t', older_than => TIMESTAMP '{next} UTC', dry_run => TRUE)", "Asia/Tokyo", 5),
    ],
)
def test_versions_expire_by_a_time_of_the_session(
    call: str, zone: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = five_parts(tmp_path)
    at = catalog.open_table("db.t").history(1)[0].timestamp.replace(tzinfo=None)
    statement = f"CALL system.{call}".replace("{next}", str(at))
    (row,) = catalog.call(statement, session=rs.Session(zone)).to_pylist()
    assert row["expired_versions_count"] == count


def test_orphans_are_those_of_writes_before_a_time(tmp_path: Path) -> None:
    catalog = five_parts(tmp_path)
    call = "CALL system.remove_orphan_files('db.t', {}, dry_run => TRUE)"
    for given in ("older_than => TIMESTAMP '2021-06-30 00:00:00.000'", "grace_s => 5"):
        assert catalog.call(call.format(given)).to_pylist()[0]["removed_data_files_count"] == 0
    with pytest.raises(InvalidInput, match="give older_than or grace_s, not both"):
        catalog.call(call.format("5, older_than => DATE '2021-06-30'"))


def test_a_table_is_restored_as_of_a_local_time(tmp_path: Path) -> None:
    catalog = five_parts(tmp_path)
    at = catalog.open_table("db.t").history(3)[-1].timestamp.replace(tzinfo=None)
    call = f"CALL system.rollback_to_timestamp('db.t', TIMESTAMP '{at}')"
    catalog.call(call)
    assert catalog.open_table("db.t").scan().to_arrow()["id"].to_pylist() == [0, 1, 2]


def test_explain_shows_the_filter_and_what_the_scan_knows_of_it(tmp_path: Path) -> None:
    catalog = five_parts(tmp_path)
    lines = catalog.explain("CALL c.system.rewrite_data_files('db.t', 'id < 3')").splitlines()
    names: list[Any] = [line.split()[0] for line in lines]
    assert names == ["Output", "TableFinish", "CallDistributedProcedure", "Filter", "TableScan"]
    assert lines[3].strip() == "Filter [id < 3]"
    assert lines[4].strip().endswith(", version 5, id < 3]")
    shown = catalog.explain("CALL system.vacuum('db.t', older_than => DATE '2021-06-30')")
    assert "older_than => TIMESTAMP '2021-06-30 00:00:00+00:00'" in shown
