"""Calls of procedures with the metadata and the token of their commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput

NOTES = "metadata => MAP {'job': 'nightly'}"
TOKEN = "token_app => 'undo', token_sequence => 7"


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    """Version 0 has row 1, version 1 also 2."""
    catalog = rs.Catalog(str(tmp_path))
    table = catalog.create_table("db.t", pa.table({"id": [1]}), key=["id"])
    table.upsert(pa.table({"id": [2]}))
    return catalog


def ids(catalog: rs.Catalog) -> list[int]:
    return sorted(catalog.open_table("db.t").to_arrow().column("id").to_pylist())


def by_arguments(catalog: rs.Catalog, call: str) -> Any:
    return catalog.call(call, metadata={"job": "nightly"}, token=("undo", 7))


def by_statement(catalog: rs.Catalog, call: str) -> Any:
    return catalog.call(f"{call[:-1]}, metadata => map(array['job'], array['nightly']), {TOKEN})")


@pytest.mark.parametrize("run", [by_arguments, by_statement])
@pytest.mark.parametrize("name", ["rollback_to_snapshot", "set_current_snapshot"])
def test_a_repeated_call_restores_once(
    name: str, run: Callable[[rs.Catalog, str], Any], catalog: rs.Catalog
) -> None:
    call = f"CALL system.{name}('db', 't', 0)"
    first = run(catalog, call)
    assert ids(catalog) == [1]
    catalog.open_table("db.t").upsert(pa.table({"id": [3]}))
    assert run(catalog, call).to_pylist() == first.to_pylist()
    assert ids(catalog) == [1, 3]
    commit = catalog.open_table("db.t").history()[1]
    assert (commit.operation, commit.metadata["job"]) == ("restore", "nightly")
    catalog.call(call)
    assert ids(catalog) == [1]


def test_a_restore_to_a_time_and_a_tag_take_tokens(catalog: rs.Catalog) -> None:
    table = catalog.open_table("db.t")
    moment = table.history()[-1].timestamp.isoformat()
    call = f"CALL system.rollback_to_timestamp('db', 't', TIMESTAMP '{moment}')"
    for _ in range(2):
        by_arguments(catalog, call)
        catalog.open_table("db.t").upsert(pa.table({"id": [3]}))
    assert ids(catalog) == [1, 3]
    table.refresh()
    table.tag("first", version=0)
    for _ in range(2):
        assert table.restore("first", token=("tag", 1)).operation == "restore"
        table.upsert(pa.table({"id": [4]}))
    assert ids(catalog) == [1, 4]


def test_a_compaction_keeps_metadata(catalog: rs.Catalog) -> None:
    catalog.open_table("db.t").upsert(pa.table({"id": [1]}))
    catalog.call("CALL system.compact('db', 't')", metadata={"job": "nightly"})
    assert catalog.open_table("db.t").history(1)[0].metadata["job"] == "nightly"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CALL system.compact('db', 't')", "token_app"),
        ("CALL system.expire_snapshots('db', 't')", "token_app|metadata"),
        ("SHOW PROCEDURES", "are of a call"),
        ("CALL system.rollback_to_snapshot('db', 't', 0, token_app => 'x')", "not both"),
    ],
)
def test_other_calls_take_no_token(statement: str, words: str, catalog: rs.Catalog) -> None:
    with pytest.raises(InvalidInput, match=words):
        by_arguments(catalog, statement)
    assert ids(catalog) == [1, 2]


def test_half_a_token_is_refused(catalog: rs.Catalog) -> None:
    with pytest.raises(InvalidInput, match="go together"):
        catalog.call("CALL system.rollback_to_snapshot('db', 't', 0, token_app => 'x')")
