"""New tables keep small changes in their log, and whoever looks at files knows of those rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.config import Config, current
from rowsieve.metadata_tables.table_facts import partitions_of
from tests.parts_in_memory import count_in_memory
from tests.small_tables import KV, fresh_uri, kv, pairs

pytestmark = pytest.mark.usefixtures("former_config")

ROWS = pa.table({"id": [1, 2], "salary": [10, 20], "notes": [[{"secret": 1}], None]})


def protocol(table: rs.Table) -> int:
    return table.handle.newest.table.reader_version


def test_new_tables_of_every_kind_keep_small_changes_in_the_log(tmp_path: Path) -> None:
    alone = rs.create_table(str(tmp_path / "alone"), kv((1, 10)), key=["k"])
    catalog = rs.Catalog(str(tmp_path / "lake"))
    tables = [
        alone,
        rs.create_table(str(tmp_path / "appended"), kv((1, 10))),
        catalog.create_table("db.t", kv((1, 10)), ["k"]),
        rs.Database(str(tmp_path / "shared")).create_table("t", kv((1, 10)), ["k"]),
        alone.clone(str(tmp_path / "clone")),
    ]
    for table in tables:
        assert protocol(table) == 7
        assert count_in_memory(table) == 1
        assert not table.files().num_rows
        assert "inline_bytes" not in table.detail()["properties"]
        assert pairs(table) == [(1, 10)]
    assert "inline_bytes" not in str(alone.scan().explain())


def test_rows_that_are_larger_have_a_file() -> None:
    table = rs.create_table(fresh_uri(), kv(*((k, k) for k in range(2_000))), key=["k"])
    assert table.files()["kind"].to_pylist() == ["data"]
    table.upsert(kv((1, -1)))
    assert table.files()["kind"].to_pylist() == ["data"]
    assert count_in_memory(table) == 1


@pytest.mark.parametrize("way", ["property", "process"])
def test_a_table_for_older_releases_has_files_in_every_process(way: str) -> None:
    properties = {"inline_bytes": 0} if way == "property" else None
    rs.configure(replace(current(), inline_bytes=0 if way == "process" else 16_384))
    table = rs.create_table(fresh_uri(), kv((1, 10)), key=["k"], properties=properties)
    rs.configure(Config())
    table.upsert(kv((2, 20)))
    clone = table.clone(fresh_uri())
    for each in (table, clone):
        assert protocol(each) == 1
        assert count_in_memory(each) == 0
    flag = table.detail()["flags"]["inline_bytes"]
    assert flag["value"] == 0
    assert ("needs 7" in flag.get("detail", "")) == (way == "process")
    assert "inline_bytes" not in str(table.scan().explain())


@pytest.mark.parametrize("key", [["id"], None])
def test_rows_in_the_log_have_tags_where_files_have_them(key: list[str] | None) -> None:
    table = rs.create_table(fresh_uri(), ROWS, key=key, properties={"column_names": "tag"})
    table.delete("id = 1")
    table.rename_column("salary", "pay")
    parts = table.handle.newest.parts
    names = [name for name in ("data.content", "deletes.content") if name in parts.schema.names]
    contents = [each for name in names for each in parts.column(name).to_pylist() if each]
    assert contents
    for content in contents:
        assert not any(name in content for name in (b"salary", b"secret", b"notes"))
    assert table.scan("pay > 5").to_arrow().to_pylist() == [{"id": 2, "pay": 20, "notes": None}]


def rows_of_file(table: rs.Table, file: Any) -> pa.Table:
    """What an engine reads that knows Parquet and Arrow alone."""
    if file.content is not None:
        rows = pa.ipc.open_stream(file.content).read_all()
    else:
        rows = pq.read_table(pa.BufferReader(table.handle.store.get(file.path)))
    return rows.take(pa.array(file.rows.to_ids())).replace_schema_metadata(None).cast(KV)


def test_a_resolved_plan_has_the_rows_that_no_file_has() -> None:
    table = rs.create_table(fresh_uri(), kv(*((k, k) for k in range(2_000))), key=["k"])
    table.upsert(kv((1, -1), (5_000, 1)))
    table.delete(keys={"k": [2]})
    plan = rs.ScanPlan.from_bytes(table.scan().plan(resolve=True).to_bytes())
    files = list(plan.files())
    assert [file.content is None for file in files].count(False) == 1
    rows = pa.concat_tables([rows_of_file(table, file) for file in files]).sort_by("k")
    expected = table.scan(order_by_key=True).to_arrow()
    assert rows.to_pylist() == expected.to_pylist()


def test_advice_and_metadata_know_rows_in_the_log() -> None:
    table = rs.create_table(fresh_uri(), kv((1, 10), (2, 20)), key=["k"])
    (only,) = table.maintenance_advice().recommendations
    assert (only.action.value, only.parts) == ("compact", 1)
    assert "in the log" in only.reason
    table.upsert(kv((3, 30)))
    (partition,) = partitions_of(table).to_pylist()
    assert (partition["record_count"], partition["file_count"]) == (3, 0)
    done = table.maintain(retain_last=1)
    assert done.analyzed is None
    assert done.advice.is_healthy
    assert table.files()["rows"].to_pylist() == [3]
