"""Bloom filters of files that are not ours: they skip row groups, never one with a row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.parquet.thrift import I32, I64, encoded_value
from tests.foreign import damaged
from tests.profiles import examples

BLOOM_START, BLOOM_BYTES = 14, 15  # of a column's metadata
TYPES = pa.schema(
    {
        "i": pa.int64(),
        "small": pa.int8(),
        "u": pa.uint32(),
        "s": pa.string(),
        "raw": pa.binary(),
        "d": pa.date32(),
        "t": pa.timestamp("us"),
        "ms": pa.timestamp("ms"),
        "c": pa.decimal128(12, 2),
        "wide": pa.decimal128(30, 3),
        "f": pa.float64(),
    }
)
CONDITIONS = {
    "i": "i = {}",
    "small": "small = {}",
    "u": "u = {}",
    "s": "s IN ('v{0}', 'none')",
    "raw": "raw = '\\x0{}'",
    "d": "d = DATE '2020-01-0{}'",
    "t": "t = TIMESTAMP '2020-01-0{} 00:00:00.000001'",
    "ms": "ms IN (TIMESTAMP '2020-01-0{} 00:00:00', TIMESTAMP '1999-01-01 00:00:00')",
    "c": "c = {}.25",
    "wide": "wide = {}.125",
    "f": "f = {}.5",
}


def rows_of(numbers: list[int]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "i": numbers,
        "small": numbers,
        "u": numbers,
        "s": [f"v{n}" for n in numbers],
        "raw": [bytes([n]) for n in numbers],
        "d": [date(2020, 1, n) for n in numbers],
        "t": [datetime(2020, 1, n, 0, 0, 0, 1) for n in numbers],
        "ms": [datetime(2020, 1, n) for n in numbers],
        "c": [Decimal(n) + Decimal("0.25") for n in numbers],
        "wide": [Decimal(n) + Decimal("0.125") for n in numbers],
        "f": [n + 0.5 for n in numbers],
    }
    return pa.table(columns, schema=TYPES)


def write(path: Path, groups: list[list[int]]) -> None:
    """A row group for each list, with filters and without statistics."""
    filters = {name: {"ndv": 16, "fpp": 0.0001} for name in TYPES.names if name != "f"}
    with pq.ParquetWriter(
        path, TYPES, write_statistics=False, bloom_filter_options=filters
    ) as writer:
        for numbers in groups:
            writer.write_table(rows_of(numbers))


number = st.integers(1, 9)


@examples(40)
@given(
    st.lists(st.lists(number, min_size=1, max_size=3), min_size=1, max_size=4),
    number,
    st.sampled_from(list(CONDITIONS)),
)
def test_a_filter_never_skips_a_row(groups: list[list[int]], wanted: int, column: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        write(path, groups)
        found = rs.open_parquet(path).scan(CONDITIONS[column].format(wanted)).to_arrow()
        assert found.num_rows == sum(numbers.count(wanted) for numbers in groups)


@pytest.mark.parametrize("column", [name for name in CONDITIONS if name not in ("f", "ms")])
def test_a_filter_skips_groups_without_the_value(column: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[1, 9], [2, 8], [3, 7]])
    for table in (
        rs.open_parquet(tmp_path),
        rs.from_parquet(tmp_path, tmp_path / "table"),
    ):
        scan = table.scan(CONDITIONS[column].format(2))
        assert scan.to_arrow().column("i").to_pylist() == [2]
        assert scan.metrics.row_groups_pruned == 2
        full = table.scan(CONDITIONS[column].format(2), pruning="off")
        assert full.to_arrow().num_rows == 1


def test_filters_of_duckdb_are_used(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = "SELECT (i * 7919) % 100003 AS id, 'k' || i // 2 AS s FROM range(40000) r(i)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 10000)")
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    table = rs.open_parquet(path)
    for i in (0, 7, 20_001, 39_999):
        scan = table.scan(f"s = 'k{i // 2}'")
        assert len(scan.to_arrow()) == 2
        assert scan.metrics.row_groups_pruned >= (3 if chunk.bloom_filter_offset else 0)
    assert table.scan("s = 'k5x'").count() == 0


def header(size: int, **members: int) -> bytes:
    kinds = {"algorithm": 1, "hash": 1, "compression": 1, **members}
    fields = {1: I32(size)}
    unions: dict[int, dict[int, dict[int, int]]] = {
        place: {kinds[name]: {}}
        for place, name in ((2, "algorithm"), (3, "hash"), (4, "compression"))
    }
    return bytes(encoded_value({**fields, **unions})[1])


def overwrite_filter(path: Path, data: bytes) -> None:
    """Write bytes over the beginning of the filter of `i` in each row group."""
    metadata, whole = pq.ParquetFile(path).metadata, bytearray(path.read_bytes())
    for group in range(metadata.num_row_groups):
        start = metadata.row_group(group).column(0).bloom_filter_offset
        whole[start : start + len(data)] = data
    path.write_bytes(whole)


def move_filter(path: Path, start: int, size: int) -> None:
    def of_chunk(number: int, chunk: damaged.Fields) -> None:
        if number == 0:
            fields = damaged.fields_of(chunk[damaged.METADATA][1])
            fields[BLOOM_START] = encoded_value(I64(start))
            fields[BLOOM_BYTES] = encoded_value(I32(size))
            chunk[damaged.METADATA] = (chunk[damaged.METADATA][0], damaged.struct_of(fields))

    def of_group(_: int, group: damaged.Fields) -> None:
        kind, chunks = group[damaged.COLUMNS]
        group[damaged.COLUMNS] = (kind, damaged.edit_list(chunks, of_chunk))

    def of_footer(fields: damaged.Fields) -> None:
        kind, groups = fields[damaged.ROW_GROUPS]
        fields[damaged.ROW_GROUPS] = (kind, damaged.edit_list(groups, of_group))

    damaged.edit_footer(path, of_footer)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "no thrift": lambda path: overwrite_filter(path, b"\xff" * 8),
    "zeros": lambda path: overwrite_filter(path, b"\0" * 16),
    "another hash": lambda path: overwrite_filter(path, header(32, hash=2)),
    "compressed": lambda path: overwrite_filter(path, header(32, compression=2)),
    "another algorithm": lambda path: overwrite_filter(path, header(32, algorithm=2)),
    "no whole blocks": lambda path: overwrite_filter(path, header(33)),
    "longer than its bytes": lambda path: overwrite_filter(path, header(1 << 20)),
    "beyond the file": lambda path: move_filter(path, 1 << 40, 64),
    "over the end": lambda path: move_filter(path, 8, 1 << 30),
    "in front of the file": lambda path: move_filter(path, -64, 32),
    "of a negative size": lambda path: move_filter(path, 64, -32),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_malformed_filter_is_ignored(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, [[1, 9], [2, 8], [2, 7]])
    DAMAGE[name](path)
    scan = rs.open_parquet(path).scan("i = 2")
    assert scan.to_arrow().num_rows == 2
    assert scan.metrics.row_groups_pruned == 0
