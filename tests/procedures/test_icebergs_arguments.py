"""Procedures take the arguments that Iceberg's pages name: snapshot_id, ref, use_caching."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rowsieve import Catalog
from rowsieve.errors import InvalidInput


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    lake = Catalog(tmp_path)
    table = lake.create_table("db.t", pa.table({"k": [1]}), key=["k"])
    table.tag("first")
    table.upsert(pa.table({"k": [2]}))
    return lake


@pytest.mark.parametrize(
    "call",
    [
        "rollback_to_snapshot(table => 'db.t', snapshot_id => 0)",
        "set_current_snapshot(table => 'db.t', snapshot_id => 0)",
        "set_current_snapshot(table => 'db.t', ref => 'first')",
        "set_current_snapshot('db.t', 0)",
    ],
)
def test_a_version_is_given_by_the_names_of_iceberg(lake: Catalog, call: str) -> None:
    lake.sql(f"CALL system.{call}")
    assert lake.sql("SELECT k FROM db.t").to_pylist() == [{"k": 1}]


@pytest.mark.parametrize("rest", [", false", ", use_caching => true"])
def test_rewrite_manifests_takes_use_caching(lake: Catalog, rest: str) -> None:
    assert lake.sql(f"CALL system.rewrite_manifests('db.t'{rest})").to_pylist()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("rewrite_manifests('db.t', false, 3)", "at most 1 arguments after the table"),
        ("set_current_snapshot('db.t')", "give version or ref"),
        ("set_current_snapshot('db.t', 0, ref => 'first')", "give version or ref"),
        ("rollback_to_snapshot('db.t', 0, snapshot_id => 0)", "version is given twice"),
    ],
)
def test_what_does_not_fit_is_named(lake: Catalog, call: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        lake.sql(f"CALL system.{call}")
