"""Rows that only the log has are published, too: in files beside the metadata."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import rowsieve as rs
from rowsieve.retention.published_files import Format
from tests.parts_in_memory import count_in_memory
from tests.small_tables import KV, kv, pairs


def inline(folder: Path) -> rs.Table:
    table = rs.create_table(
        str(folder), KV, key=["k"], properties={"inline_bytes": 9_000, "compaction": "tiered"}
    )
    table.upsert(kv((1, 10), (2, 20)))
    table.upsert(kv((2, 21), (3, 30)))
    table.delete("k = 1")
    return table


def theirs(kind: str, folder: Path) -> list[tuple[int, int]]:
    """The rows by a reader of the format."""
    if kind == "delta":
        builder = QueryBuilder().register("t", DeltaTable(str(folder)))
        rows = pa.table(builder.execute("SELECT k, v FROM t").read_all())
    else:
        number = (folder / "metadata/version-hint.text").read_text()
        metadata = f"{folder}/metadata/v{number}.metadata.json"
        rows = StaticTable.from_metadata(metadata).scan(selected_fields=("k", "v")).to_arrow()
    return sorted(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_rows_in_the_log_are_written_beside_the_metadata(kind: Format, tmp_path: Path) -> None:
    table, folder = inline(tmp_path / "t"), tmp_path / "t"
    published = table.publish(kind)
    assert count_in_memory(table) == 3
    assert table.files().num_rows == 0
    assert theirs(kind, folder) == pairs(table) == [(2, 21), (3, 30)]
    table.rename_column("v", "w")
    table.add_column("v", "int64", default=9)
    table.upsert({"k": [5], "w": [1], "v": [2]})
    table.publish(kind)
    assert theirs(kind, folder) == pairs(table) == [(2, 9), (3, 9), (5, 2)]
    older = rs.open_table(table.uri, version=1).publish(kind, str(tmp_path / "other"))
    assert (older.version, published.version) == (1, 3)
    assert theirs(kind, tmp_path / "other") == [(1, 10), (2, 20)]
    table.compact()
    table.publish(kind)
    assert theirs(kind, folder) == pairs(table)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_part_that_loses_the_same_rows_as_another_is_published_again(
    kind: Format, tmp_path: Path
) -> None:
    """Vectors in the manifest have no path but their bytes, which several parts may share."""
    table = rs.create_table(str(tmp_path / "t"), KV, properties={"inline_bytes": 9_000})
    table.append(kv((1, 0), (2, 5)))
    table.append(kv((3, 0), (4, 5)))
    table.delete("k = 1")
    table.publish(kind)
    table.delete("k = 3")
    table.publish(kind)
    assert theirs(kind, tmp_path / "t") == pairs(table) == [(2, 5), (4, 5)]
