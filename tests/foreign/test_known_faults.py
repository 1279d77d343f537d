"""Invariant 45: known faults of writers are a table, and what it lists is not believed."""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.parquet.statistics.known_faults import FAULTS, Claim, Fault, LeafKind, doubted
from rowsieve.parquet.thrift import encoded_value
from tests.foreign import damaged
from tests.foreign.damaged import MAX, MIN, NULLS, nulls

DAY = datetime.datetime(2024, 6, 1)
ROWS = pa.table(
    {
        "text": ["a", None, "b", "longer than 16 bytes, by far"],
        "amount": pa.array([1, None, -2, 3], pa.int64()).cast(pa.decimal128(38, 0)),
        "at": pa.array([DAY, None, DAY, DAY], pa.timestamp("us")),
        "number": pa.array([5, None, 7, 9], pa.int64()),
    }
)
DICTIONARY = ROWS.set_column(0, "text", ROWS["text"].dictionary_encode())
CONDITIONS = (
    *("text IS NULL", "text IS NOT NULL", "text = 'a'", "text >= 'longer than 16 bytes, by'"),
    *("amount = -2", "amount > 2", "amount IS NULL", "number = 9", "number IS NULL"),
    *("at = timestamp '2024-06-01'", "at IS NOT NULL"),
)
LIES: dict[str, Mapping[int, Any]] = {
    "text": {NULLS: nulls(0), MIN: b"b", MAX: b"longer than 16 b"},
    "amount": {
        NULLS: nulls(0),
        MIN: (5).to_bytes(16, "big", signed=True),
        MAX: (6).to_bytes(16, "big", signed=True),
    },
    "at": {NULLS: nulls(0), MIN: struct.pack("<q", 1), MAX: struct.pack("<q", 2)},
    "number": {NULLS: nulls(0), MIN: struct.pack("<q", 5), MAX: struct.pack("<q", 9)},
}
"""Statistics that writers with a fault make: no NULLs, and bounds of other values."""

COLUMNS = {
    LeafKind.BYTES: "text",
    LeafKind.DICTIONARY: "text",
    LeafKind.DECIMAL_BYTES: "amount",
    LeafKind.TIME: "at",
    LeafKind.OTHER: "number",
}


def affected(fault: Fault) -> str:
    """What a file of the last version with the fault names as its writer."""
    name = fault.writer
    if fault.fixed is None:
        return name
    major, minor, patch = fault.fixed
    return f"{name} version {major}.{minor}.{patch}-SNAPSHOT (build 1)"


CASES = [
    pytest.param(fault, kind, id=f"{fault.writer}-{fault.source[:24]}-{kind.name}")
    for fault in FAULTS
    for kind in COLUMNS
    if fault.kinds & kind and fault.claims & (Claim.NULLS | Claim.BOUNDS)
]


@pytest.mark.parametrize(("fault", "kind"), CASES)
def test_no_row_is_lost_to_a_known_fault(fault: Fault, kind: LeafKind, tmp_path: Path) -> None:
    path, column = tmp_path / "a.parquet", COLUMNS[kind]
    pq.write_table(DICTIONARY if kind is LeafKind.DICTIONARY else ROWS, path)
    truth = pq.read_metadata(path).row_group(0).column(ROWS.column_names.index(column)).statistics
    claimed = dict(LIES[column])
    if not fault.claims & Claim.BOUNDS:
        claimed = {NULLS: nulls(0)}
    elif not fault.claims & Claim.NULLS:
        claimed[NULLS] = nulls(truth.null_count)
    damaged.set_statistics(path, ROWS.column_names.index(column), claimed)
    damaged.set_created_by(path, affected(fault))
    for table in (rs.open_parquet(path), rs.from_parquet(path, tmp_path / "table")):
        for condition in CONDITIONS:
            full = table.scan(condition, pruning="off").to_arrow()
            assert table.scan(condition).to_arrow().equals(full), condition
            assert table.count(condition) == len(full), condition


@pytest.mark.parametrize("stored", [True, False], ids=["with Arrow's schema", "without"])
@pytest.mark.parametrize(
    ("created_by", "believed"),
    [
        ("parquet-cpp version 1.5.1-SNAPSHOT", False),
        ("parquet-cpp-arrow version 4.0.1", False),
        ("parquet-cpp-arrow version 5.0.0", True),
        ("parquet-cpp-arrow version 26.0.1", True),
    ],
)
def test_counts_of_plain_arrays_are_believed_where_the_file_says_that_they_are_plain(
    created_by: str, *, believed: bool, stored: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"]}), path, store_schema=stored)
    damaged.set_created_by(path, created_by)
    scan = rs.open_parquet(path).scan("text IS NULL")
    assert scan.to_arrow().num_rows == 0
    assert scan.metrics.parts_pruned == int(believed or stored)


@pytest.mark.parametrize(
    ("created_by", "claims"),
    [
        ("parquet-mr version 1.8.3 (build aef7)", Claim.NULLS | Claim.BOUNDS | Claim.PAGE_BOUNDS),
        ("parquet-mr version 1.10.0 (build 031a)", Claim.NOTHING),
        ("parquet-mr version 1.10.0-SNAPSHOT", Claim.NULLS | Claim.BOUNDS | Claim.PAGE_BOUNDS),
        ("parquet-mr", Claim.NULLS | Claim.BOUNDS | Claim.PAGE_BOUNDS),
        ("parquet-go version latest", Claim.NULLS | Claim.BLOOMS),
        ("parquet-go version 18.4.0", Claim.BLOOMS),
        ("github.com/segmentio/parquet-go version 0.0.0-2023(build 1)", Claim.PAGE_BOUNDS),
        ("github.com/parquet-go/parquet-go version 0.30.1(build )", Claim.NOTHING),
        ("github.com/parquet-go/parquet-go", Claim.PAGE_BOUNDS),
        ("DuckDB version v1.5.4 (build 1)", Claim.NOTHING),
        ("", Claim.NOTHING),
        ("parquet-rs version 99999999999.0.0", Claim.BOUNDS | Claim.PAGE_BOUNDS),
    ],
)
def test_versions_are_compared_as_numbers_and_unreadable_ones_are_affected(
    created_by: str, claims: Claim
) -> None:
    assert doubted(created_by, LeafKind.BYTES) == claims


def long_texts(path: Path) -> None:
    """Two pages of long texts, whose upper bounds in the index are cut to 16 bytes."""
    texts = [f"text {i:04} with more than sixteen bytes" for i in range(40)]
    pq.write_table(
        pa.table({"text": texts}),
        path,
        use_dictionary=False,
        compression="none",
        write_page_index=True,
        write_batch_size=10,
        data_page_size=200,
    )
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    index = damaged.column_index(path, 0)
    fields = damaged.fields_of(whole[index[0] : index[1]])
    kind, data = fields[3]
    cut = [text[:16] for text in damaged.texts_of(data)]
    fields[3] = kind, encoded_value(cut)[1]
    new = damaged.struct_of(fields)
    padded = new + bytes(index[1] - index[0] - len(new))
    path.write_bytes(whole[: index[0]] + padded + whole[index[1] : start] + whole[start:])


def test_page_bounds_that_were_cut_and_not_raised_lose_no_row(tmp_path: Path) -> None:
    # segmentio/parquet-go: no statistics of the chunk contradict the index.
    path = tmp_path / "a.parquet"
    long_texts(path)
    damaged.set_statistics(path, 0, None)
    condition = "text = 'text 0039 with more than sixteen bytes'"
    assert rs.open_parquet(path).count(condition) == 0  # another writer is believed
    damaged.set_created_by(path, "github.com/segmentio/parquet-go")
    assert rs.open_parquet(path).count(condition) == 1


def test_filters_of_writers_with_a_fault_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"text": ["a", "c"]})
    pq.write_table(rows, path, bloom_filter_options={"text": {"ndv": 5, "fpp": 0.0001}})
    for created_by, pruned in (("somebody", 1), ("parquet-go version 18.4.0", 0)):
        damaged.set_created_by(path, created_by)
        scan = rs.open_parquet(path).scan("text = 'b'")
        assert scan.to_arrow().num_rows == 0
        assert scan.metrics.row_groups_pruned == pruned


def test_a_filter_without_the_bounds_of_its_chunk_is_not_believed(tmp_path: Path) -> None:
    path, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    options = {"bloom_filter_options": {"i": {"ndv": 5, "fpp": 0.0001}}}
    pq.write_table(pa.table({"i": pa.array([1, 5, 9], pa.int64())}), path, **options)
    pq.write_table(pa.table({"i": pa.array([2, 4, 6], pa.int64())}), other, **options)
    whole, chunk = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(0)
    of_other = pq.read_metadata(other).row_group(0).column(0)
    size = chunk.bloom_filter_length
    assert of_other.bloom_filter_length == size
    start = of_other.bloom_filter_offset
    filter_ = other.read_bytes()[start : start + size]
    whole[chunk.bloom_filter_offset : chunk.bloom_filter_offset + size] = filter_
    path.write_bytes(whole)
    assert rs.open_parquet(path).count("i = 5") == 1


def test_every_fault_names_its_source() -> None:
    for fault in FAULTS:
        assert fault.writer == fault.writer.lower()
        assert fault.claims
        assert "#" in fault.source or "-" in fault.source


def test_decimals_of_polars_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    amounts = pa.array([decimal.Decimal(-1), decimal.Decimal(5)], pa.decimal128(38, 0))
    pq.write_table(pa.table({"amount": amounts}), path)
    low, high = (value.to_bytes(16, "big", signed=True) for value in (5, 6))
    damaged.set_statistics(path, 0, {NULLS: nulls(0), MIN: low, MAX: high})
    damaged.set_created_by(path, "Polars")
    assert rs.open_parquet(path).count("amount = -1") == 1
