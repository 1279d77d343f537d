"""A repeated call finds nothing to do, and commits nothing."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from tests.profiles import some

CALLS = (
    "ALTER TABLE db.t EXECUTE optimize",
    "ALTER TABLE db.t EXECUTE optimize(file_size_threshold => '128MB')",
    "ALTER TABLE db.t EXECUTE optimize(file_size_threshold => '128MB') WHERE id IS NOT NULL",
    "CALL system.rewrite_data_files('db.t', options => map('min-input-files', '1'))",
    """CALL system.rewrite_data_files('db.t', options => map('min-input-files', '2',
        'max-file-group-size-bytes', '1000'))""",
    "CALL system.rewrite_data_files('db.t', options => map('delete-file-threshold', '1'))",
    """CALL system.rewrite_data_files('db.t', options => map('min-input-files', '1',
        'partial-progress.enabled', 'true'))""",
    "CALL system.rewrite_data_files('db.t', strategy => 'sort', sort_order => 'id')",
    "CALL system.compact('db.t')",
    "CALL system.build_deletion_vectors('db.t')",
    "CALL system.rewrite_position_delete_files('db.t')",
)
LONG = "x" * 120
"""A prefix that is longer than a bound, so that parts seem to overlap."""


def table_of(catalog: rs.Catalog, kind: str) -> rs.Table:
    """A table of six parts, or of one: with or without a key, of short or long texts."""
    prefix = LONG if "long" in kind else ""
    key = None if "append" in kind else ["id"]
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    table = catalog.create_table("db.t", schema, key)
    for i in range(1 if "lone" in kind else 6):
        ids = [f"{prefix}{i * 5 + j:03d}" for j in range(10)]
        rows = pa.table({"id": ids, "v": range(10)})
        (table.upsert if key else table.append)(rows)
    if "deletes" in kind:
        table.delete("v = 3")
    return table


KINDS = ("lone", "keyed", "keyed deletes", "long", "long deletes", "append lone", "append deletes")


@pytest.mark.parametrize(("kind", "call"), some([*itertools.product(KINDS, CALLS)], 3))
def test_a_second_call_commits_nothing(kind: str, call: str, tmp_path: Path) -> None:
    if "append" in kind and "build_deletion_vectors" in call:
        pytest.skip("is for tables with a key")
    catalog = rs.Catalog(tmp_path)
    table = table_of(catalog, kind)
    before = sorted(map(str, table.scan().to_arrow().to_pylist()))
    (first,) = catalog.call(call).to_pylist()
    (second,) = catalog.call(call).to_pylist()
    assert second["version"] == first["version"] == catalog.open_table("db.t").version
    assert sorted(map(str, catalog.open_table("db.t").scan().to_arrow().to_pylist())) == before


def test_parts_of_one_commit_are_merged_though_their_bounds_overlap(tmp_path: Path) -> None:
    """Concurrent tasks of one write: no key is in two of the parts, and all are small."""
    catalog = rs.Catalog(tmp_path)
    schema = pa.schema([("id", pa.string())])
    table = catalog.create_table("db.t", schema, ["id"], properties={"target_part_bytes": "1000"})
    call = "CALL system.rewrite_data_files('db.t', options => map({}))"
    for i in range(2):
        ids = [f"{LONG}{j * 2 + i:06d}" for j in range(200_000)]
        table.upsert(pa.table({"id": ids}))
    catalog.call(call.format("'rewrite-all', 'true'"))
    parts = catalog.open_table("db.t").detail()["parts"]
    assert parts > 4
    (row,) = catalog.call(call.format("'target-file-size-bytes', '100MB'")).to_pylist()
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (parts, 1)


def test_only_rewrite_all_writes_a_lone_file_of_vectors_again(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]), ["id"])
    for i in range(3):
        table.upsert(pa.table({"id": range(1000), "v": [i] * 1000}))
    catalog.call("CALL system.build_deletion_vectors('db.t')")
    call = "CALL c.system.rewrite_position_delete_files({})"
    counts = []
    for arguments in (
        "'db.t'",
        "table => 'db.t', options => map('rewrite-all', 'true')",
        "'db.t', options => map('min-input-files', '1')",
    ):
        (row,) = catalog.call(call.format(arguments)).to_pylist()
        counts.append((row["rewritten_delete_files_count"], row["added_delete_files_count"]))
    assert counts == [(0, 0), (1, 1), (0, 0)]
    assert catalog.open_table("db.t").scan("v < 2").to_arrow().num_rows == 0
    with pytest.raises(InvalidInput, match="rewrite_position_delete_files has no option"):
        catalog.call(call.format("'db.t', options => map('rewrite-al', 'true')"))
