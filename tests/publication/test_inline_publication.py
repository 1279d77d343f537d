"""A publication writes the rows of the log into files first, so that all readers see them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
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


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_rows_in_the_log_are_published(kind: str, tmp_path: Path) -> None:
    table = inline(tmp_path / "t")
    assert count_in_memory(table) == 3
    assert table.files().num_rows == 0
    table.publish(kind)  # type: ignore[arg-type]
    assert count_in_memory(table) == 0
    assert table.history(limit=1)[0].operation == "compact"
    assert pairs(table) == [(2, 21), (3, 30)]
    if kind == "delta":
        theirs = pa.table(DeltaTable(str(tmp_path / "t")).to_pyarrow_table()).to_pylist()
        assert sorted((row["k"], row["v"]) for row in theirs) == [(2, 21), (3, 30)]
    with pytest.raises(UnsupportedOperation, match="rows in its log"):
        rs.open_table(table.uri, version=1).publish(kind, str(tmp_path / "other"))  # type: ignore[arg-type]
