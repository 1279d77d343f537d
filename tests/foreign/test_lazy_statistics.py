"""Opening files of other writers decodes the statistics of no column; a scan those that it uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import rowsieve as rs
from rowsieve.foreign.file_statistics import FileStatistics
from rowsieve.types import logical
from tests.foreign import iceberg_tables

NAMES = [f"c{number}" for number in range(12)]


def rows(start: int) -> pa.Table:
    return pa.table({name: range(start, start + 5) for name in NAMES})


def parquet(folder: Path) -> rs.Table:
    for start in (0, 100):
        pq.write_table(rows(start), folder / f"{start}.parquet")
    return rs.open_parquet(folder)


def delta(folder: Path) -> rs.Table:
    for start in (0, 100):
        write_deltalake(folder, rows(start), mode="append")
    return rs.from_delta(folder)


def delta_with_vectors(folder: Path) -> rs.Table:
    delta(folder)
    DeltaTable(folder).delete("c0 = 101")
    return rs.from_delta(folder)


def iceberg(folder: Path) -> rs.Table:
    fields = [NestedField(i, name, LongType()) for i, name in enumerate(NAMES, 1)]
    table = iceberg_tables.create(folder, Schema(*fields))
    for start in (0, 100):
        table.append(rows(start))
    return rs.from_iceberg(table)


@pytest.mark.parametrize("opened", [parquet, delta, delta_with_vectors, iceberg])
def test_a_scan_decodes_the_statistics_of_the_columns_that_it_uses(
    opened: Callable[[Path], rs.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    of = FileStatistics.of

    def counted(self: FileStatistics, column: logical.Field) -> dict[str, pa.Array]:
        decoded.append(column.name)
        return of(self, column)

    monkeypatch.setattr(FileStatistics, "of", counted)
    table = opened(tmp_path)
    assert decoded == []
    scan = table.scan("c3 = 102")
    assert scan.to_arrow().num_rows == 1
    assert "skipped by statistics" in str(scan.explain())
    assert set(decoded) == {"c3"}
    assert (table.count("c3 = 3"), table.count("c4 IS NULL")) == (1, 0)
