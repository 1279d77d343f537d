"""Branches and tags by procedures and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowsieve.catalog import Catalog
from rowsieve.errors import CommitConflict, InvalidInput
from tests.cli.test_cli import run, run_json, run_rows
from tests.small_tables import kv, pairs


def test_procedures_create_publish_and_drop(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", kv((1, 1)), key=["k"])
    table.upsert(kv((1, 2)))
    (row,) = catalog.call("CALL system.create_tag('db', 't', 'q', version => 0)").to_pylist()
    assert row == {"name": "q", "version": 0}
    catalog.call("CALL system.create_branch('db.t', 'old', of => 'q')")
    catalog.call("CALL system.create_branch('db.t', branch => 'audit')")
    assert pairs(catalog.open_table("db.t@old")) == [(1, 1)]
    catalog.open_table("db.t@audit").upsert(kv((2, 2)))
    with pytest.raises(InvalidInput, match="only 'main'"):
        catalog.call("CALL system.fast_forward('db.t', 'audit', 'old')")
    (row,) = catalog.call("CALL system.fast_forward('db.t', 'main', 'audit')").to_pylist()
    assert row["rows_written"] == 1
    assert pairs(catalog.open_table("db.t")) == [(1, 2), (2, 2)]
    catalog.open_table("db.t@old").upsert(kv((3, 3)))
    with pytest.raises(CommitConflict):
        catalog.call("CALL system.fast_forward('db.t', to => 'old')")
    for kind, name in (("branch", "audit"), ("branch", "old"), ("tag", "q")):
        catalog.call(f"CALL system.drop_{kind}('db.t', '{name}')")
    assert catalog.open_table("db.t").refs().num_rows == 0


def test_commands_write_audit_and_publish(tmp_path: Path) -> None:
    place = tmp_path / "t"
    (tmp_path / "r.csv").write_text("k,v\n1,1\n2,2\n")
    (tmp_path / "s.csv").write_text("k,v\n3,3\n")
    run("create", place, tmp_path / "r.csv", "--key", "k")
    assert "created q3 at version 0" in run("tag", place, "q3")
    assert run_json("branch", place, "audit")["version"] == 1
    run("--ref", "audit", "upsert", place, tmp_path / "s.csv")
    count = "SELECT count(*) AS n FROM t"
    assert run_json("--ref", "audit", "query", count, place) == {"n": 3}
    assert run_json("query", count, place) == {"n": 2}
    assert run_json("fast-forward", place, "audit")["rows_written"] == 1
    assert run_json("query", count, place) == {"n": 3}
    assert run_json("--ref", "q3", "query", count, place) == {"n": 2}
    assert [each["name"] for each in run_rows("refs", place)] == ["audit", "q3"]
    assert "audit  branch" in run("refs", place)
    run("drop-ref", place, "audit")
    run("branch", place, "again", "--version", "q3")
    assert [each["name"] for each in run_rows("refs", place)] == ["again", "q3"]
